//! Heals a prompt that ends inside a word: the ids that no later text can change, and the bytes
//! that the next tokens must begin with.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::decompose_canonical;
use unicode_normalization_alignments::char::canonical_combining_class;

use crate::Pipeline;
use crate::abilities::conversation::{normalize_runs, stable_ids, stable_prefix};
use crate::components::decode::Decoder;
use crate::components::normalize::Normalizer;
use crate::error::{Error, Result};
use crate::models::LOST;
use crate::normalize::{Normalization, is_boundary_before};
use crate::once::OnceBox;
use crate::pipeline::segments::Prompt;
use crate::request::Request;
use crate::token_table::rests::{Draft, Rests};
use crate::token_table::{TokenKind, TokenTable};

/// The character that represents a space in SentencePiece vocabularies.
const MARK: char = '\u{2581}';

/// Maximum number of bytes of a prompt that an error shows.
const SHOWN: usize = 60;

/// A prompt, and the bytes that the tokens after it must begin with.
#[derive(Debug, Clone, Default)]
pub struct Healed {
    /// The ids of the prompt that no later text can change.
    pub ids: Vec<u32>,
    /// The bytes that the next tokens must begin with. The first alternative is the end of the
    /// prompt; in the other alternatives, later text changes the prompt's last character.
    pub rests: Rests,
}

impl Healed {
    /// Sets the bits of the tokens that may come next and clears all others. Sets all bits once the
    /// prompt is healed.
    pub fn fill_mask(&self, table: &TokenTable, mask: &mut [u32]) -> Result<()> {
        table.trie()?.fill_mask_of(&self.rests, mask)
    }

    /// Consumes the next token.
    ///
    /// Fails with [`Error::Invalid`], changing nothing, if the token cannot come next.
    pub fn advance(&mut self, table: &TokenTable, id: u32) -> Result<()> {
        if self.rests.is_done() || table.is_spelling(id) && self.rests.advance(table.get(id)) {
            return Ok(());
        }
        let rest = self.rests.first();
        let shown = String::from_utf8_lossy(&rest[..rest.len().min(SHOWN)]);
        let more = match rest.len() > SHOWN {
            true => format!("... ({} bytes)", rest.len()),
            false => String::new(),
        };
        Err(Error::Invalid(format!(
            "the token {id} does not agree with the end of the prompt, {shown:?}{more}"
        )))
    }
}

/// Heals a text. `part` has the first bytes of an incomplete last character.
///
/// Fails if the tokens do not decode to the text, as under a normalizer that removes accents.
pub fn heal(pipeline: &Pipeline, text: &str, part: &[u8], request: &Request) -> Result<Healed> {
    pipeline.token_form()?;
    pipeline.check_text(text)?;
    let (stable, _) = stable_prefix(pipeline, text, request)?;
    let mut all = Vec::new();
    pipeline.encode_text(text, &Request::allowing(request.allowed.clone()), &mut all)?;
    healed(pipeline, all, &stable, part)
}

/// Heals a prompt of segments.
///
/// Fails as [`heal`] does.
pub fn heal_prompt(pipeline: &Pipeline, prompt: Prompt) -> Result<Healed> {
    pipeline.token_form()?;
    pipeline.check_text(prompt.text())?;
    let (mut all, mut stable) = (Vec::new(), Vec::new());
    prompt.encode(pipeline, true, &mut all)?;
    if pipeline.ignores_segments() {
        let (text, fixed) = prompt.into_parts();
        let (text, fixed) = normalize_runs(pipeline.normalization(), &text, fixed)?;
        stable_ids(pipeline, &text, &fixed, &mut stable)?;
    }
    healed(pipeline, all, &stable, &[])
}

/// Heals a prompt, given its ids; later text cannot change the ids in `stable`.
fn healed(pipeline: &Pipeline, mut ids: Vec<u32>, stable: &[u32], part: &[u8]) -> Result<Healed> {
    let table = pipeline.token_table()?;
    let known = if ids.starts_with(stable) { stable.len() } else { 0 };
    let special = ids[known..].iter().rposition(|&id| table.kind(id) == TokenKind::Special);
    let known = special.map_or(known, |last| known + last + 1);
    let last = special.filter(|_| known == ids.len()).and_then(|_| ids.last().copied());
    pipeline.check_end(last, !part.is_empty())?;
    // Uses the bytes of the tokens, not the text: U+2581 in a token is a space, and a normalizer
    // may follow another version of Unicode.
    let mut rest = Vec::new();
    for &id in &ids[known..] {
        rest.extend_from_slice(table.get(id));
    }
    ids.truncate(known);
    Ok(Healed { rests: rests(pipeline, rest, part, ids.is_empty())?, ids })
}

/// Returns the bytes that the next tokens must begin with, for a text that ends with `rest` and
/// `part`, the first bytes of another character. `is_first` is true if no id precedes `rest`.
fn rests(pipeline: &Pipeline, mut rest: Vec<u8>, part: &[u8], is_first: bool) -> Result<Rests> {
    let is_nfc = pipeline.token_form()? == Normalization::Nfc;
    let mut changes = Vec::new();
    if is_nfc {
        let text = rest.utf8_chunks().last().filter(|last| last.invalid().is_empty());
        let text = text.map_or("", |last| last.valid());
        add_changed(pipeline, text, rest.len() - text.len(), part, &mut changes);
    }
    let end = rest.len();
    if !part.is_empty() {
        if is_nfc {
            add_replaced(end, part, &mut changes);
        }
        if begins(MARK, part) && becomes_space(pipeline)? {
            changes.push(Change::new(end, ' '));
        }
    }
    rest.extend_from_slice(part);
    // The whole character decides whether a space comes before it.
    if end == 0 && !part.is_empty() && pipeline.prepends(is_first) {
        rest.push(b' ');
        rest.rotate_right(1);
        let mut draft = Draft::new(rest);
        draft.add(0, part);
        for change in &changes {
            draft.add(0, change.bytes());
            draft.add(b" ".len(), change.bytes());
        }
        return Ok(draft.finish());
    }
    let mut draft = Draft::new(rest);
    changes.iter().for_each(|change| draft.add(change.at, change.bytes()));
    Ok(draft.finish())
}

/// Adds the NFC forms of a character that begins with `part` and of marks after it, except forms
/// that also begin with `part`.
fn add_replaced(at: usize, part: &[u8], changes: &mut Vec<Change>) {
    let tables = tables();
    let before = |old: char| old.encode_utf8(&mut [0; 4]).as_bytes() < part;
    let from = tables.replaced.partition_point(|&(old, _)| before(old));
    let replaced = tables.replaced[from..].iter().take_while(|(old, _)| begins(*old, part));
    let mut bases = replaced.map(|&(_, base)| base).collect::<Vec<_>>();
    bases.sort_unstable();
    bases.dedup();
    for base in bases {
        let mut block = None;
        for new in std::iter::once(base).chain(tables.composed_from(base)) {
            // Compares all bytes but the last of the 11,172 Hangul syllables, up to a difference.
            let is_syllable = ('\u{ac00}'..'\u{d7a4}').contains(&new);
            if is_syllable && block.replace(new as u32 / 64) == Some(new as u32 / 64)
                || begins(new, part)
            {
                continue;
            }
            let mut change = Change::new(at, new);
            if is_syllable {
                let same = change.bytes().iter().zip(part).take_while(|(one, other)| one == other);
                change.size = same.count() + 1;
            }
            changes.push(change);
        }
    }
}

/// Returns true if a [`MARK`] in a text becomes a token that decodes to a space.
fn becomes_space(pipeline: &Pipeline) -> Result<bool> {
    let (mut ids, mut bytes) = (Vec::new(), Vec::new());
    pipeline.encode_run("a\u{2581}", false, &mut ids)?;
    ids.iter().try_for_each(|&id| {
        bytes.extend_from_slice(pipeline.token_table()?.get(id));
        Ok(())
    })?;
    Ok(bytes.ends_with(b" "))
}

/// Returns true if the UTF-8 of a character begins with `part`.
fn begins(character: char, part: &[u8]) -> bool {
    character.encode_utf8(&mut [0; 4]).as_bytes().starts_with(part)
}

/// The first bytes of a replacement for the text from byte `at` on.
#[derive(Debug, Clone, Copy)]
struct Change {
    at: usize,
    to: [u8; 4],
    size: usize,
}

impl Change {
    fn new(at: usize, to: char) -> Self {
        let mut bytes = [0; 4];
        let size = to.encode_utf8(&mut bytes).len();
        Self { at, to: bytes, size }
    }

    fn bytes(&self) -> &[u8] {
        &self.to[..self.size]
    }
}

/// Adds the changes that NFC may make to `rest` once a mark follows. If `part` is not empty, a
/// character that begins with it comes before the mark, or is the mark. `start` is added to the
/// offsets.
fn add_changed(
    pipeline: &Pipeline,
    rest: &str,
    start: usize,
    part: &[u8],
    changes: &mut Vec<Change>,
) {
    let tables = tables();
    let class_of = |character| pipeline.mark_class(character);
    let parts = || tables.combining.iter().filter(|(mark, _)| begins(*mark, part));
    if rest.is_empty() && part.is_empty() || parts().next().is_none() {
        return;
    }
    let starter = rest.char_indices().rev().find(|&(_, it)| class_of(it) == 0);
    let (at, starter) = starter.map_or((0, None), |(at, it)| (at, Some(it)));
    let cluster = &rest[at..];
    let marks = &cluster[starter.map_or(0, char::len_utf8)..];
    let first = start + rest.len() - marks.len();

    // A mark moves before marks of larger classes; the last of these may belong to `part`.
    let mut largest = marks.chars().next_back().map_or(0, class_of);
    if !part.is_empty() {
        largest = parts().map(|&(mark, _)| class_of(mark)).fold(largest, u8::max);
    }
    let places = places_of_classes(marks, class_of);
    for &(mark, to) in &tables.combining {
        let class = class_of(mark);
        if (1..largest).contains(&class) {
            changes.push(Change::new(first + places[usize::from(class)], to));
        }
    }

    // The mark composes with the character before it.
    let Some(starter) = starter else { return };
    let mut followed = String::new();
    append_reduced(cluster, class_of, &mut followed);
    let size = followed.len();
    for composed in tables.composed_from(starter) {
        followed.truncate(size);
        // A composed character has at most three marks.
        followed.reserve(4 * 3);
        let mut count = 0;
        decompose_canonical(composed, |mark| {
            if count > 0 && !is_in(&followed[..size], mark) {
                followed.push(mark);
            }
            count += 1;
        });
        let to = followed.nfc().next().unwrap_or(starter);
        if to != starter {
            changes.push(Change::new(start + at, to));
        }
    }
}

/// Returns, for each class, where the marks up to that class end. `marks` are sorted by class.
fn places_of_classes(marks: &str, class_of: impl Fn(char) -> u8) -> [usize; 256] {
    let mut places = [marks.len(); 256];
    let mut next = 0;
    for (at, mark) in marks.char_indices() {
        let class = usize::from(class_of(mark));
        if class > next {
            places[next..class].fill(at);
            next = class;
        }
    }
    places
}

/// Appends a character and its marks: no more of a class than can compose with the character.
fn append_reduced(cluster: &str, class_of: impl Fn(char) -> u8, reduced: &mut String) {
    let (mut last, mut count) = (0, 0);
    for character in cluster.chars() {
        let class = class_of(character);
        count = if class == last { count + 1 } else { 0 };
        last = class;
        if count < 4 {
            reduced.push_str(character.encode_utf8(&mut [0; 4]));
        }
    }
}

/// Returns true if `mark` is part of the decomposition of `cluster`.
fn is_in(cluster: &str, mark: char) -> bool {
    let mut found = false;
    cluster.chars().for_each(|it| decompose_canonical(it, |part| found |= part == mark));
    found
}

/// Returns the first character of the decomposition, and the decomposition's length.
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
    /// Characters that may combine with the character before, and how the NFC form of each begins.
    combining: Vec<(char, char)>,
    /// Sorted pairs: the first character of a decomposition, and the composed NFC character.
    composed: Vec<(char, char)>,
    /// Characters that normalization may replace, on their own or before a mark, and the first
    /// character of each decomposition, sorted.
    replaced: Vec<(char, char)>,
}

fn tables() -> &'static Tables {
    static TABLES: OnceBox<Tables> = OnceBox::new();
    TABLES.get_or_init(|| Box::new(Tables::new()))
}

impl Tables {
    fn new() -> Tables {
        let mut tables = Self::default();
        // Ideographs and private-use characters neither combine nor are composed.
        let characters =
            ('\u{a0}'..'\u{3400}').chain('\u{a000}'..'\u{e000}').chain('\u{f900}'..'\u{20000}');
        for character in characters.chain('\u{2f800}'..'\u{2fa20}') {
            if !is_boundary_before(character) {
                tables.combining.push((character, first_of(character)));
            }
            let (base, parts) = base_of(character);
            if parts > 1 || base != character {
                tables.replaced.push((character, base));
            }
            if parts > 1 && first_of(character) == character {
                tables.composed.push((base, character));
            }
        }
        tables.composed.sort_unstable();
        for group in tables.composed.chunk_by(|one, other| one.0 == other.0) {
            tables.replaced.push((group[0].0, group[0].0));
        }
        tables.replaced.sort_unstable();
        tables
    }

    /// Returns the composed characters that begin with the same character as `starter`.
    fn composed_from(&self, starter: char) -> impl Iterator<Item = char> {
        let base = base_of(starter).0;
        let first = self.composed.partition_point(|&(of, _)| of < base);
        self.composed[first..].iter().take_while(move |(of, _)| *of == base).map(|&(_, it)| it)
    }
}

/// Returns the first character of a character's NFC form.
fn first_of(character: char) -> char {
    std::iter::once(character).nfc().next().unwrap_or(character)
}

impl Pipeline {
    /// Returns why the bytes of tokens may differ from the normalized text; `None` if they cannot.
    fn why_other_bytes(&self) -> Option<String> {
        let is_byte_level = matches!(self.decoder(), Some(Decoder::ByteLevel));
        let makes_bytes = is_byte_level || self.byte_runs().is_some();
        let is_random = self.model().sampling().is_some();
        let at_random = is_random.then(|| "tokens are chosen at random".into());
        let of_model = || self.model().why_other_bytes(is_byte_level);
        at_random.or_else(of_model).or_else(|| (!makes_bytes).then(|| LOST.into()))
    }

    /// Returns true if a space is encoded as a token that decodes to a space. Without the token
    /// '\u{2581}', a space may become the bytes of that character.
    fn spells_spaces(&self) -> Result<bool> {
        if self.byte_runs().is_none() || self.model().token_to_id("\u{2581}").is_some() {
            return Ok(true);
        }
        let (mut ids, mut bytes) = (Vec::new(), Vec::new());
        self.encode_run("a ", false, &mut ids)?;
        ids.iter().try_for_each(|&id| self.append_token(id, &mut bytes))?;
        Ok(bytes.ends_with(b" "))
    }

    /// Returns the normalization of a text whose bytes, possibly after a space, equal the bytes of
    /// its tokens. Later text changes no byte before the last character.
    ///
    /// Fails if the bytes of tokens may differ, or if later text may change more.
    pub fn token_form(&self) -> Result<Normalization> {
        if let Some(direct) = self.direct() {
            return Ok(direct.normalization());
        }
        if let Some(why) = self.why_other_bytes() {
            let reason = format!("tokens have other bytes than the text: {why}");
            return Err(Error::refused("heal", reason));
        }
        if !self.spells_spaces()? {
            let reason =
                "a space becomes the bytes of its mark '\u{2581}', which is no token by itself";
            return Err(Error::refused("heal", reason));
        }
        self.normalizer().map_or(Ok(Normalization::None), Normalizer::token_form)
    }

    /// Fails if the bytes of a prompt's tokens may differ from its text.
    pub(crate) fn check_text(&self, text: &str) -> Result<()> {
        let has_name = || text.contains("<0x") || text.ends_with('<') || text.ends_with("<0");
        if self.byte_runs().is_some() && self.model().finds_byte_names() && has_name() {
            let reason = "the prompt has the name of a byte, such as '<0x7E>', or its beginning, and this \
                          file takes it for the byte; end the prompt before it";
            return Err(Error::refused("heal", reason));
        }
        Ok(())
    }

    /// Fails if later text may change the end of a prompt: its last token, the special token
    /// `last`, or, with `is_inside`, the character that the prompt ends inside.
    pub fn check_end(&self, last: Option<u32>, is_inside: bool) -> Result<()> {
        let token = last.and_then(|id| self.added().token(id)).filter(|token| token.single_word);
        if let Some(content) = token.map(|token| &token.content) {
            let reason = format!(
                "the added token '{content}' at the end of the prompt is text if a letter follows; put a \
                 space after it"
            );
            return Err(Error::refused("heal", reason));
        }
        if is_inside && self.split().may_change_characters() {
            let reason = "the pre-tokenizer may leave out or rewrite the character that the prompt ends \
                          inside; end the prompt before it";
            return Err(Error::refused("heal", reason));
        }
        Ok(())
    }

    /// Returns the combining class of a character in the tables of [`Pipeline::token_form`], which
    /// may follow another version of Unicode.
    pub fn mark_class(&self, character: char) -> u8 {
        match self.direct() {
            Some(_) => unicode_normalization::char::canonical_combining_class(character),
            None => canonical_combining_class(character),
        }
    }
}
