//! Encodes texts that grow or change a little at a time, at the cost of the changes.
//!
//! The ids of a text are kept together with *checkpoints*: positions where it can be cut without
//! changing an id, as long as the text up to a second position, shortly after the first, stays the
//! same. When another text comes, encoding resumes at the last checkpoint within the beginning that
//! both texts share.

use std::borrow::Cow;

use crate::char_boundary::floor;
use crate::engine::Engine;
use crate::engine::segments::{Fixed, Prompt};
use crate::error::Result;
use crate::memory::{append, collected, push, push_text, reserve, reserve_text};
use crate::normalize::{Alignment, Normalization, starts_stretch};
use crate::request::Request;
use crate::special_tokens::Selection;

/// The minimum number of bytes between two checkpoints.
const SPACING: usize = 1024;

/// A text and its ids.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    text: String,
    fixed: Vec<Fixed>,
    ids: Vec<u32>,
    checkpoints: Vec<Checkpoint>,
    /// The text before normalization, if that changed it.
    raw: Option<Raw>,
    /// True if `fixed` was found in the text, false if it was given with segments.
    is_searched: bool,
}

/// A position at which encoding can resume.
#[derive(Debug, Clone, Copy, Default)]
struct Checkpoint {
    /// Its byte in the text.
    at: usize,
    /// It is valid as long as the text before this byte stays the same.
    decided: usize,
    /// The number of ids before it, and of fixed positions.
    ids: usize,
    fixed: usize,
}

/// A text before normalization, with `(position in it, position in the normalized text)` where both
/// can be cut: the parts normalize to each other, and a character starts a stretch there.
#[derive(Debug, Clone, Default)]
struct Raw {
    text: String,
    places: Vec<(usize, usize)>,
}

impl Conversation {
    /// Returns all ids.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Returns the length of the text in bytes.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        let raw = self.raw.as_ref();
        self.text.capacity()
            + self.ids.capacity() * size_of::<u32>()
            + self.checkpoints.capacity() * size_of::<Checkpoint>()
            + self.fixed.capacity() * size_of::<Fixed>()
            + raw.map_or(0, |raw| raw.text.capacity() + raw.places.capacity() * 16)
    }

    /// Replaces the text by `text`, with the special tokens of `request`.
    ///
    /// Returns how many of the ids stayed. After an error nothing has changed.
    pub fn update_text<E: Engine + ?Sized>(
        &mut self,
        engine: &E,
        text: &str,
        request: &Request,
    ) -> Result<usize> {
        let known = if self.is_searched { common_prefix(&self.text, text) } else { 0 };
        let (normal, raw, known) = match engine.normalization() {
            Normalization::None => (Cow::Borrowed(text), None, known),
            form if self.stays_normal(text, known, form)? => (Cow::Borrowed(text), None, known),
            form => {
                let (normal, raw) = Raw::of(text, form, self.raw.as_ref(), &self.text)?;
                let known = if self.is_searched { common_prefix(&self.text, &normal) } else { 0 };
                (Cow::Owned(normal), Some(raw), known)
            }
        };
        let normal = &*normal;
        let special = engine.special_tokens()?;
        // A name that was not there before ends after the known bytes.
        let from = known.saturating_sub(request.longest_disallowed(special));
        request.check(special, &normal[floor(normal, from)..])?;
        let mut fixed = match request.allowed {
            Selection::None => Vec::new(),
            _ => collected(self.fixed.iter().take_while(|fixed| fixed.end <= known).cloned())?,
        };
        engine.find_in_text(normal, &request.allowed, known, &mut fixed)?;
        let same = if self.is_searched { known } else { common_prefix(&self.text, normal) };
        let kept = self.apply(engine, normal, fixed, same)?;
        self.raw = raw;
        self.is_searched = true;
        Ok(kept)
    }

    /// Returns true if the text so far and `text`, which share their first `known` bytes, are both
    /// normalized already.
    fn stays_normal(&self, text: &str, known: usize, form: Normalization) -> Result<bool> {
        if self.raw.is_some() {
            return Ok(false);
        }
        let start = text[..known].char_indices().rev().find(|&(_, c)| starts_stretch(c));
        let start = start.map_or(0, |(at, _)| at);
        Ok(matches!(form.apply(&text[start..])?, Cow::Borrowed(_)))
    }

    /// Replaces the text by that of a prompt. Runs of text between the fixed positions are
    /// normalized.
    pub fn update_prompt<E: Engine + ?Sized>(
        &mut self,
        engine: &E,
        prompt: Prompt,
    ) -> Result<usize> {
        if !engine.ignores_segments() {
            let mut ids = Vec::new();
            prompt.encode(engine, true, &mut ids)?;
            let kept = self.ids.iter().zip(&ids).take_while(|(old, new)| old == new).count();
            *self = Self { ids, ..Self::default() };
            return Ok(kept);
        }
        let (text, fixed) = prompt.into_parts();
        let (text, fixed) = match engine.normalization() {
            Normalization::None => (text, fixed),
            normalization => normalize_runs(normalization, &text, fixed)?,
        };
        let same = common_prefix(&self.text, &text);
        let kept = self.apply(engine, &text, fixed, same)?;
        (self.raw, self.is_searched) = (None, false);
        Ok(kept)
    }

    /// Encodes `text`, whose first `same` bytes are those of the text so far.
    fn apply<E: Engine + ?Sized>(
        &mut self,
        engine: &E,
        text: &str,
        fixed: Vec<Fixed>,
        same: usize,
    ) -> Result<usize> {
        let alike = self.fixed.iter().zip(&fixed).take_while(|(old, new)| old == new).count();
        let differs = [self.fixed.get(alike), fixed.get(alike)];
        let same = differs.iter().flatten().map(|fixed| fixed.start).fold(same, usize::min);
        let valid = self
            .checkpoints
            .partition_point(|checkpoint| checkpoint.decided <= same && checkpoint.fixed <= alike);
        let from = valid.checked_sub(1).map(|last| self.checkpoints[last]).unwrap_or_default();

        let (mut ids, mut checkpoints) = (Vec::new(), Vec::new());
        encode_from(engine, text, &fixed, from, &mut ids, &mut checkpoints)?;

        let stay =
            self.ids[from.ids..].iter().zip(&ids).take_while(|(old, new)| old == new).count();
        let more = text.len().saturating_sub(self.text.len());
        reserve_text(&mut self.text, more)?;
        reserve(&mut self.ids, ids.len())?;
        reserve(&mut self.checkpoints, checkpoints.len())?;
        self.text.truncate(from.at);
        self.text.push_str(&text[from.at..]);
        self.ids.truncate(from.ids + stay);
        self.ids.extend_from_slice(&ids[stay..]);
        self.checkpoints.truncate(valid);
        self.checkpoints.append(&mut checkpoints);
        self.fixed = fixed;
        Ok(from.ids + stay)
    }
}

/// Appends the ids after a checkpoint, and new checkpoints.
fn encode_from<E: Engine + ?Sized>(
    engine: &E,
    text: &str,
    fixed: &[Fixed],
    from: Checkpoint,
    ids: &mut Vec<u32>,
    checkpoints: &mut Vec<Checkpoint>,
) -> Result<()> {
    let mut position = from.at;
    for index in from.fixed..=fixed.len() {
        let next = fixed.get(index);
        let end = next.map_or(text.len(), |fixed| fixed.start);
        while position < end {
            let stretch = &text[position..end];
            let cut = engine.safe_cut(stretch, SPACING);
            let length = cut.unwrap_or(stretch.len());
            engine.encode_run(&stretch[..length], position == 0 && index == 0, ids)?;
            position += length;
            let Some(cut) = cut else { break };
            // The cut depends on the characters on both sides of it only.
            let width = stretch[cut..].chars().next().map_or(0, char::len_utf8);
            let (decided, ids) = (position + width, from.ids + ids.len());
            push(checkpoints, Checkpoint { at: position, decided, ids, fixed: index })?;
        }
        if let Some(next) = next {
            append(ids, next.ids.as_slice())?;
            position = next.end;
            let (at, ids, fixed) = (position, from.ids + ids.len(), index + 1);
            push(checkpoints, Checkpoint { at, decided: at, ids, fixed })?;
        }
    }
    Ok(())
}

/// Normalizes the runs of text between the fixed positions, and moves these.
pub(crate) fn normalize_runs(
    normalization: Normalization,
    text: &str,
    mut fixed: Vec<Fixed>,
) -> Result<(String, Vec<Fixed>)> {
    let mut normal = String::new();
    reserve_text(&mut normal, text.len())?;
    let mut position = 0;
    for place in &mut fixed {
        push_text(&mut normal, &normalization.apply(&text[position..place.start])?)?;
        position = place.end;
        let start = normal.len();
        push_text(&mut normal, &text[place.start..place.end])?;
        (place.start, place.end) = (start, normal.len());
    }
    push_text(&mut normal, &normalization.apply(&text[position..])?)?;
    Ok((normal, fixed))
}

impl Raw {
    /// Normalizes a text. Reuses the normalization `normal_before` of `before` as far as the texts
    /// agree.
    fn of(
        text: &str,
        normalization: Normalization,
        before: Option<&Raw>,
        normal_before: &str,
    ) -> Result<(String, Raw)> {
        let (mut normal, mut places) = (String::new(), Vec::new());
        reserve_text(&mut normal, text.len())?;
        let mut from = 0;
        if let Some(before) = before {
            let same = common_prefix(&before.text, text);
            // The character at the position must be the same, so that it starts a stretch.
            let valid = before.places.partition_point(|&(raw, _)| raw < same);
            if let Some(&(raw, place)) = valid.checked_sub(1).map(|last| &before.places[last]) {
                append(&mut places, &before.places[..valid])?;
                push_text(&mut normal, &normal_before[..place])?;
                from = raw;
            }
        }
        while from < text.len() {
            let rest = &text[from..];
            let near = floor(rest, SPACING.min(rest.len()));
            let end = rest[near..]
                .char_indices()
                .find(|&(offset, character)| near + offset > 0 && starts_stretch(character))
                .map_or(rest.len(), |(offset, _)| near + offset);
            push_text(&mut normal, &normalization.apply(&rest[..end])?)?;
            from += end;
            if from < text.len() {
                push(&mut places, (from, normal.len()))?;
            }
        }
        let mut raw = String::new();
        push_text(&mut raw, text)?;
        Ok((normal, Raw { text: raw, places }))
    }
}

/// Returns the ids of a text that stay the same whatever follows it, and the number of bytes of
/// text that they cover.
pub fn stable_prefix<E: Engine + ?Sized>(
    engine: &E,
    text: &str,
    request: &Request,
) -> Result<(Vec<u32>, usize)> {
    request.check(engine.special_tokens()?, &engine.normalization().apply(text)?)?;
    let Stable { normal, end, fixed, original } = Stable::of(engine, text, &request.allowed)?;
    let mut ids = Vec::new();
    let start = Checkpoint::default();
    encode_from(engine, &normal[..end], &fixed, start, &mut ids, &mut Vec::new())?;
    Ok((ids, original))
}

/// Returns the number of bytes at the start of a text whose tokens, when they are encoded on their
/// own, are the first tokens of the text, whatever follows it.
fn stable_length<E: Engine + ?Sized>(engine: &E, text: &str, allowed: &Selection) -> Result<usize> {
    Ok(Stable::of(engine, text, allowed)?.original)
}

/// The bytes of the first beginning that is tried, and of the room for a few tokens more.
const LEAST: usize = 1024;

/// Finds a beginning of a text that has at least `most` tokens, all of them the first of the text.
/// Leaves their ids in `ids`. `None` if that would not save half of the text.
pub fn beginning<'a, E: Engine + ?Sized>(
    engine: &E,
    text: &'a str,
    most: usize,
    request: &Request,
    ids: &mut Vec<u32>,
) -> Result<Option<&'a str>> {
    // The first try shows how many bytes a token has.
    let mut size = (most / 2).max(LEAST);
    while size <= text.len() / 2 {
        let window = &text[..floor(text, size)];
        let length = stable_length(engine, window, &request.allowed)?;
        // Without a place to cut, a larger window does not help.
        if length < window.len() / 2 {
            break;
        }
        ids.clear();
        engine.encode_text(&text[..length], request, ids)?;
        if ids.len() >= most {
            return Ok(Some(&text[..length]));
        }
        let needed = length as f64 / ids.len().max(1) as f64 * most as f64 * 1.1;
        size = (needed as usize).saturating_add(LEAST).max(size + size / 2);
    }
    Ok(None)
}

/// The beginning of a text that stays as it is whatever follows.
struct Stable<'a> {
    /// The text, normalized, and the end of the beginning in it.
    normal: Cow<'a, str>,
    end: usize,
    /// The special tokens up to there.
    fixed: Vec<Fixed>,
    /// The end before normalization.
    original: usize,
}

impl<'a> Stable<'a> {
    fn of<E: Engine + ?Sized>(engine: &E, text: &'a str, allowed: &Selection) -> Result<Self> {
        let normalization = engine.normalization();
        let settled = settled(normalization, text);
        let (normal, alignment) = normalization.align(&text[..settled])?;
        let mut fixed = Vec::new();
        let open = engine.find_settled(&normal, allowed, &mut fixed)?;
        let after_special = fixed.last().map_or(0, |last| last.end);
        let cuts = [last_cut(engine, &normal, after_special, open), Some(after_special)];
        let places = cuts.into_iter().flatten();
        let found = places.filter_map(|cut| Some((cut, original(&alignment, cut)?))).next();
        let (end, original) = found.unwrap_or_default();
        // With the spaces behind it, a token may end behind the next one.
        let kept = fixed.iter().rposition(|fixed| fixed.end <= end).map_or(0, |last| last + 1);
        fixed.truncate(kept);
        Ok(Self { normal, end, fixed, original })
    }
}

/// Returns the length of the beginning that normalization does not change whatever follows: text may
/// combine with the last character that starts a stretch.
fn settled(normalization: Normalization, text: &str) -> usize {
    let start = text.char_indices().rev().find(|&(_, c)| starts_stretch(c));
    match normalization {
        Normalization::None => text.len(),
        _ => start.map_or(0, |(at, _)| at),
    }
}

/// Appends the ids of a prompt that stay the same whatever text follows it. `text` is normalized.
pub(crate) fn stable_ids<E: Engine + ?Sized>(
    engine: &E,
    text: &str,
    fixed: &[Fixed],
    ids: &mut Vec<u32>,
) -> Result<()> {
    let after = fixed.last().map_or(0, |last| last.end);
    let open = settled(engine.normalization(), text);
    let end = last_cut(engine, text, after, open).unwrap_or(after);
    encode_from(engine, &text[..end], fixed, Checkpoint::default(), ids, &mut Vec::new())
}

fn original(alignment: &Alignment, position: usize) -> Option<usize> {
    if position == 0 { Some(0) } else { alignment.boundary(position) }
}

/// Returns the last position after `start` at which `text` can be cut, whatever comes after byte
/// `open`.
fn last_cut<E: Engine + ?Sized>(
    engine: &E,
    text: &str,
    start: usize,
    open: usize,
) -> Option<usize> {
    let stretch = &text[start..open.max(start)];
    let mut back = 64;
    loop {
        let from = floor(stretch, stretch.len().saturating_sub(back));
        let mut found = None;
        let mut near = from.max(1);
        while let Some(cut) = engine.beginning_cut(stretch, near) {
            found = Some(start + cut);
            near = cut + 1;
        }
        if found.is_some() || from == 0 {
            return found;
        }
        back *= 8;
    }
}

/// Returns how many bytes two texts have in common, up to a character boundary of both.
fn common_prefix(one: &str, other: &str) -> usize {
    const BLOCK: usize = 256;
    let (a, b) = (one.as_bytes(), other.as_bytes());
    let length = a.len().min(b.len());
    let mut same = 0;
    while same + BLOCK <= length && a[same..same + BLOCK] == b[same..same + BLOCK] {
        same += BLOCK;
    }
    same += a[same..length].iter().zip(&b[same..length]).take_while(|(a, b)| a == b).count();
    floor(other, floor(one, same))
}
