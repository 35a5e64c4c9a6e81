//! Heals a prompt that ends inside a word: the ids that stay whatever follows it, and the bytes that
//! the next tokens must begin with.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, decompose_canonical};

use crate::engine::Engine;
use crate::engine::conversation::{normalize_runs, stable_ids, stable_prefix};
use crate::engine::segments::Prompt;
use crate::error::{Error, Result};
use crate::memory::{append, push, reserve_text, with_capacity};
use crate::normalize::{Normalization, starts_stretch};
use crate::once::OnceBox;
use crate::request::Request;
use crate::token_table::{Kind, TokenTable};

/// A prompt, and what the tokens that follow it must begin with.
#[derive(Debug, Default)]
pub struct Healed {
    /// The ids of the prompt that stay whatever follows it.
    pub ids: Vec<u32>,
    /// The tokens after them must begin with one of these. The first is the end of the prompt as it is;
    /// in the others, a mark that follows changes its last character.
    rests: Vec<Vec<u8>>,
}

impl Healed {
    /// Copies it; fails without memory.
    pub fn try_clone(&self) -> Result<Self> {
        let mut copy = Self::default();
        append(&mut copy.ids, &self.ids)?;
        copy.rests = copied(self.rests.iter().map(Vec::as_slice))?;
        Ok(copy)
    }

    /// A prompt without ids after which the next tokens must begin with one of these, as
    /// [`Self::rests`] returns them.
    pub fn of_rests<'a>(rests: impl Iterator<Item = &'a [u8]>) -> Result<Self> {
        let mut healed = Self { ids: Vec::new(), rests: copied(rests)? };
        if healed.rests.iter().any(Vec::is_empty) {
            healed.rests.clear();
        }
        Ok(healed)
    }

    /// Returns all that the next tokens may begin with, [`Self::rest`] first; empty once they have.
    pub fn rests(&self) -> &[Vec<u8>] {
        if self.is_done() { &[] } else { &self.rests }
    }

    /// Returns the bytes that the next tokens must begin with; empty once they have.
    pub fn rest(&self) -> &[u8] {
        self.rests.first().map_or(&[], Vec::as_slice)
    }

    /// Returns true if any token may come next.
    pub fn is_done(&self) -> bool {
        self.rests.iter().all(Vec::is_empty)
    }

    /// Sets the bits of the tokens that may come next, and clears all others. Once the prompt is
    /// healed, all bits are set.
    pub fn fill_mask(&self, table: &TokenTable, mask: &mut [u32]) -> Result<()> {
        let trie = table.trie()?;
        trie.fill_mask(self.rest(), mask)?;
        if self.is_done() {
            mask.fill(u32::MAX);
        }
        self.rests.iter().skip(1).try_for_each(|rest| trie.add_to_mask(rest, mask))
    }

    /// Takes the next token.
    ///
    /// Fails with [`Error::Invalid`], and stays as it was, if the token may not come next.
    pub fn advance(&mut self, table: &TokenTable, id: u32) -> Result<()> {
        if self.is_done() {
            return Ok(());
        }
        let token = table.get(id);
        let is_ordinary = table.kind(id) == Kind::Ordinary && !token.is_empty();
        let agrees =
            |rest: &&Vec<u8>| is_ordinary && (rest.starts_with(token) || token.starts_with(rest));
        let left = self.rests.iter().filter(agrees);
        let mut left = copied(left.map(|rest| &rest[token.len().min(rest.len())..]))?;
        if left.is_empty() {
            return Err(Error::Invalid(format!(
                "the token {id} does not agree with the end of the prompt, {:?}",
                String::from_utf8_lossy(self.rest())
            )));
        }
        if left.iter().any(Vec::is_empty) {
            left.clear();
        }
        self.rests = left;
        Ok(())
    }
}

/// Copies lists of bytes.
fn copied<'a>(lists: impl Iterator<Item = &'a [u8]>) -> Result<Vec<Vec<u8>>> {
    let mut copies = Vec::new();
    for list in lists {
        push(&mut copies, joined(list, &[])?)?;
    }
    Ok(copies)
}

/// Returns bytes one after the other.
fn joined(first: &[u8], second: &[u8]) -> Result<Vec<u8>> {
    let mut joined = with_capacity(first.len() + second.len())?;
    joined.extend_from_slice(first);
    joined.extend_from_slice(second);
    Ok(joined)
}

/// Heals a text. `part` is the first bytes of a character after it.
///
/// Fails if the bytes of tokens are not the text, as under a normalizer that removes accents.
pub fn heal<E: Engine + ?Sized>(
    engine: &E,
    text: &str,
    part: &[u8],
    request: &Request,
) -> Result<Healed> {
    let form = engine.token_form()?;
    let (stable, _) = stable_prefix(engine, text, request)?;
    let mut all = Vec::new();
    engine.encode_text(text, &Request::allowing(request.allowed.clone()), &mut all)?;
    healed(engine, all, &stable, &form.apply(text)?, part)
}

/// Heals a prompt of segments.
///
/// Fails as [`heal`] does.
pub fn heal_prompt<E: Engine + ?Sized>(engine: &E, prompt: Prompt) -> Result<Healed> {
    let form = engine.token_form()?;
    let (mut all, mut stable) = (Vec::new(), Vec::new());
    prompt.encode(engine, true, &mut all)?;
    let (text, fixed) = prompt.into_parts();
    let (text, fixed) = normalize_runs(engine.normalization(), &text, fixed)?;
    if engine.ignores_segments() {
        stable_ids(engine, &text, &fixed, &mut stable)?;
    }
    healed(engine, all, &stable, &form.apply(&text)?, &[])
}

/// Heals the ids of `text`, of which the first are `stable`.
fn healed<E: Engine + ?Sized>(
    engine: &E,
    mut ids: Vec<u32>,
    stable: &[u32],
    text: &str,
    part: &[u8],
) -> Result<Healed> {
    let table = engine.token_table()?;
    let known = if ids.starts_with(stable) { stable.len() } else { 0 };
    let special = ids[known..].iter().rposition(|&id| table.kind(id) == Kind::Special);
    let known = special.map_or(known, |last| known + last + 1);
    let mut rest = Vec::new();
    for &id in &ids[known..] {
        append(&mut rest, table.get(id))?;
    }
    ids.truncate(known);
    let prepends = engine.prepends(true) || engine.prepends(false);
    let added = rest.strip_prefix(b" ").filter(|_| prepends);
    if !text.as_bytes().ends_with(added.unwrap_or(&rest)) && !text.as_bytes().ends_with(&rest) {
        return Err(Error::refused(
            "heal",
            "the bytes of the last tokens are not those of the text",
        ));
    }
    let rest = String::from_utf8(rest)
        .map_err(|_| Error::refused("heal", "the last tokens begin inside a character"))?;
    let is_open = rest.is_empty() && !part.is_empty() && engine.prepends(ids.is_empty());
    let mut rests = rests(rest, part, engine.token_form()?)?;
    if is_open {
        // Whether a space comes before depends on all of the character.
        add_spaced(&mut rests)?;
    }
    Ok(Healed { ids, rests })
}

/// Puts the same with a space before each of `rests` before them.
fn add_spaced(rests: &mut Vec<Vec<u8>>) -> Result<()> {
    let count = rests.len();
    for place in 0..count {
        let spaced = joined(b" ", &rests[place])?;
        push(rests, spaced)?;
    }
    // The spaced ones come first.
    rests.rotate_right(count);
    Ok(())
}

/// Returns what the next tokens must begin with, one of these, for a text that ends with `rest` and
/// the first bytes `part` of another character.
fn rests(rest: String, part: &[u8], form: Normalization) -> Result<Vec<Vec<u8>>> {
    let mut rests = Vec::new();
    let is_nfc = form == Normalization::Nfc;
    let may_combine = is_nfc && (part.is_empty() || may_combine(part)?);
    if may_combine && !rest.is_empty() {
        add_changed(&rest, !part.is_empty(), &mut rests)?;
    }
    let mut rest = rest.into_bytes();
    if is_nfc && !part.is_empty() {
        add_replaced(&rest, part, &mut rests)?;
    }
    append(&mut rest, part)?;
    push(&mut rests, rest)?;
    rests.rotate_right(1);
    Ok(rests)
}

/// Adds `rest` with the first byte of each character that may take the place of one that begins with
/// `part`.
fn add_replaced(rest: &[u8], part: &[u8], rests: &mut Vec<Vec<u8>>) -> Result<()> {
    for (_, first) in tables()?.replaced.iter().filter(|(old, _)| begins(*old, part)) {
        let rest = joined(rest, &[*first])?;
        if !rests.contains(&rest) {
            push(rests, rest)?;
        }
    }
    Ok(())
}

/// Returns true if the UTF-8 of a character begins with `part`.
fn begins(character: char, part: &[u8]) -> bool {
    character.encode_utf8(&mut [0; 4]).as_bytes().starts_with(part)
}

/// Returns true if a character that begins with these bytes may combine with the one before.
fn may_combine(part: &[u8]) -> Result<bool> {
    Ok(tables()?.combining.iter().any(|&(character, _)| begins(character, part)))
}

/// Adds what `rest` may begin with instead once a mark follows, up to the first character that
/// differs. With `has_part`, the mark may come before another one that is known in part.
fn add_changed(rest: &str, has_part: bool, rests: &mut Vec<Vec<u8>>) -> Result<()> {
    let starter = rest.char_indices().rev().find(|&(_, it)| canonical_combining_class(it) == 0);
    let (at, starter) = starter.unwrap_or((0, '\0'));
    let cluster = &rest[at..];
    let mut add = |followed: &str| {
        let changed = Normalization::Nfc.apply(followed)?;
        if let Some(end) = first_change(cluster, &changed, has_part) {
            let rest = joined(&rest.as_bytes()[..at], &changed.as_bytes()[..end])?;
            if !rests.contains(&rest) {
                push(rests, rest)?;
            }
        }
        Ok(())
    };
    let tables = tables()?;
    let mut followed = String::new();
    // A composed character has three marks at most.
    reserve_text(&mut followed, cluster.len() + 4 * 3)?;
    followed.push_str(cluster);
    for &(mark, class) in &tables.combining {
        if class > 0 && (has_part || class < last_class(cluster)) {
            followed.truncate(cluster.len());
            followed.push(mark);
            add(&followed)?;
        }
    }
    for composed in tables.composed_from(starter) {
        followed.truncate(cluster.len());
        let mut parts = 0;
        decompose_canonical(composed, |mark| {
            if parts > 0 && !is_in(cluster, mark) {
                followed.push(mark);
            }
            parts += 1;
        });
        add(&followed)?;
    }
    Ok(())
}

/// Returns true if `mark` is a part of the decomposition of `cluster`.
fn is_in(cluster: &str, mark: char) -> bool {
    let mut found = false;
    cluster.chars().for_each(|it| decompose_canonical(it, |part| found |= part == mark));
    found
}

/// Returns the class of the last mark of a character.
fn last_class(cluster: &str) -> u8 {
    cluster.chars().next_back().map_or(0, canonical_combining_class)
}

/// Returns the end of the first character of `changed` that `cluster` does not have there. Without
/// `has_all`, only a character that replaces another counts.
fn first_change(cluster: &str, changed: &str, has_all: bool) -> Option<usize> {
    let mut old = cluster.chars();
    for (at, new) in changed.char_indices() {
        match old.next() {
            Some(old) if old == new => {}
            None if !has_all => return None,
            _ => return Some(at + new.len_utf8()),
        }
    }
    None
}

/// Returns the first character of the decomposition, and the number of characters.
fn base_of(character: char) -> (char, usize) {
    let (mut base, mut parts) = (None, 0);
    decompose_canonical(character, |part| {
        base.get_or_insert(part);
        parts += 1;
    });
    (base.unwrap_or(character), parts)
}

/// The characters that composition changes.
#[derive(Debug, Default)]
struct Tables {
    /// Characters that may combine with the one before, each with its class.
    combining: Vec<(char, u8)>,
    /// The first character of the decomposition of each composed character, and that, sorted.
    composed: Vec<(char, char)>,
    /// Characters that normalization may replace, alone or with a mark after them, and the first byte
    /// of what it replaces them by.
    replaced: Vec<(char, u8)>,
}

fn tables() -> Result<&'static Tables> {
    static TABLES: OnceBox<Tables> = OnceBox::new();
    TABLES.get_or_try_init(|| Tables::new().map(Box::new))
}

impl Tables {
    fn new() -> Result<Self> {
        let mut tables = Self::default();
        // Ideographs and the private use area neither combine nor are composed.
        let characters =
            ('\u{a0}'..'\u{3400}').chain('\u{a000}'..'\u{e000}').chain('\u{f900}'..'\u{20000}');
        for character in characters.chain('\u{2f800}'..'\u{2fa20}') {
            if !starts_stretch(character) {
                push(&mut tables.combining, (character, canonical_combining_class(character)))?;
            }
            let (normal, first) = first_byte(character);
            if normal != character {
                push(&mut tables.replaced, (character, first))?;
            }
            let (base, parts) = base_of(character);
            if parts > 1 {
                push(&mut tables.composed, (base, character))?;
            }
        }
        tables.composed.sort_unstable();
        tables.add_replaced()?;
        Ok(tables)
    }

    /// Adds the characters that a mark after them replaces.
    fn add_replaced(&mut self) -> Result<()> {
        let is_kept = |&&(_, composed): &&(char, char)| first_byte(composed).0 == composed;
        for group in self.composed.chunk_by(|one, other| one.0 == other.0) {
            let kept = || group.iter().filter(is_kept).map(|&(_, composed)| composed);
            let bases =
                group[..1].iter().filter(|_| kept().next().is_some()).map(|&(base, _)| base);
            for old in kept().chain(bases) {
                for (_, first) in kept().map(first_byte) {
                    if self.replaced.last() != Some(&(old, first)) {
                        push(&mut self.replaced, (old, first))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the composed characters that begin with the same character as `starter`.
    fn composed_from(&self, starter: char) -> impl Iterator<Item = char> {
        let base = base_of(starter).0;
        let first = self.composed.partition_point(|&(of, _)| of < base);
        self.composed[first..].iter().take_while(move |(of, _)| *of == base).map(|&(_, it)| it)
    }
}

/// Returns the first character of form C of a character, and its first byte.
fn first_byte(character: char) -> (char, u8) {
    let first = std::iter::once(character).nfc().next().unwrap_or(character);
    (first, first.encode_utf8(&mut [0; 4]).as_bytes()[0])
}
