//! Texts that grow and change a little at a time, encoded at the cost of what changed.
//!
//! The ids of a text are kept together with *checkpoints*: places at which it can be cut without
//! changing an id, as long as the text before a second place, a little behind the first, stays as
//! it is. When another text comes, the last checkpoint that the text in common decides is where
//! encoding goes on.

use std::borrow::Cow;

use crate::encoding::Encoding;
use crate::error::Result;
use crate::memory::{append, collected, push, push_text, reserve, reserve_text};
use crate::normalize::{Alignment, Normalization, starts_stretch};
use crate::request::Request;
use crate::segments::{Fixed, FixedIds};
use crate::special_tokens::{Selection, SpecialTokens};

/// Bytes of text between two checkpoints, at least.
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
    /// Whether `fixed` was found in the text, as opposed to given with segments.
    is_searched: bool,
}

/// A place to go on from.
#[derive(Debug, Clone, Copy, Default)]
struct Checkpoint {
    /// The byte of the text.
    at: usize,
    /// It holds as long as the text before this byte stays as it is.
    decided: usize,
    /// How many ids there are before it, and how many of the fixed places.
    ids: usize,
    fixed: usize,
}

/// A text as it was given, with places `(in it, in the normalized text)` before which the texts
/// are each other's normalization, and where a character stands that starts a stretch.
#[derive(Debug, Clone, Default)]
struct Raw {
    text: String,
    places: Vec<(usize, usize)>,
}

impl Conversation {
    /// All ids.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// How many bytes of text there are.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// How many bytes of memory it takes.
    pub fn memory(&self) -> usize {
        let raw = self.raw.as_ref();
        self.text.capacity()
            + self.ids.capacity() * size_of::<u32>()
            + self.checkpoints.capacity() * size_of::<Checkpoint>()
            + self.fixed.capacity() * size_of::<Fixed>()
            + raw.map_or(0, |raw| raw.text.capacity() + raw.places.capacity() * 16)
    }

    /// Makes `text` the text, as `request` says.
    ///
    /// Returns how many of the ids stayed. After an error everything is as before.
    pub fn update_text(
        &mut self,
        encoding: &Encoding,
        text: &str,
        request: &Request,
    ) -> Result<usize> {
        let known = if self.is_searched { common_prefix(&self.text, text) } else { 0 };
        let (normal, raw, known) = match encoding.normalization() {
            Normalization::None => (Cow::Borrowed(text), None, known),
            form if self.stays_normal(text, known, form)? => (Cow::Borrowed(text), None, known),
            form => {
                let (normal, raw) = Raw::of(text, form, self.raw.as_ref(), &self.text)?;
                let known = if self.is_searched { common_prefix(&self.text, &normal) } else { 0 };
                (Cow::Owned(normal), Some(raw), known)
            }
        };
        let normal = &*normal;
        let special = encoding.special_tokens();
        // A name that was not there before ends behind what is known.
        let from = known.saturating_sub(request.longest_disallowed(special));
        request.check(special, &normal[floor_boundary(normal, from)..])?;
        let allowed = &request.allowed;
        let longest = special.all().longest();
        let mut fixed: Vec<Fixed> = match allowed {
            Selection::None => Vec::new(),
            _ => {
                // A name that ends so early is not the beginning of a longer one.
                let decided = |fixed: &Fixed| fixed.end + longest <= known;
                collected(self.fixed.iter().take_while(|fixed| decided(fixed)).cloned())?
            }
        };
        search(special, normal, allowed, &mut fixed)?;
        let same = if self.is_searched { known } else { common_prefix(&self.text, normal) };
        let kept = self.apply(encoding, normal, fixed, same)?;
        self.raw = raw;
        self.is_searched = true;
        Ok(kept)
    }

    /// Whether the text before and `text`, which begin with the same `known` bytes, both are their
    /// own normalization.
    fn stays_normal(&self, text: &str, known: usize, form: Normalization) -> Result<bool> {
        if self.raw.is_some() {
            return Ok(false);
        }
        let start = text[..known].char_indices().rev().find(|&(_, c)| starts_stretch(c));
        let start = start.map_or(0, |(at, _)| at);
        Ok(matches!(form.apply(&text[start..])?, Cow::Borrowed(_)))
    }

    /// Makes the text of a prompt the text. Runs of text between the fixed places are normalized.
    pub fn update_prompt(
        &mut self,
        encoding: &Encoding,
        text: String,
        fixed: Vec<Fixed>,
    ) -> Result<usize> {
        let (text, fixed) = match encoding.normalization() {
            Normalization::None => (text, fixed),
            normalization => normalize_runs(normalization, &text, fixed)?,
        };
        let same = common_prefix(&self.text, &text);
        let kept = self.apply(encoding, &text, fixed, same)?;
        (self.raw, self.is_searched) = (None, false);
        Ok(kept)
    }

    /// Encodes `text`, which begins with the `same` first bytes of the text before.
    fn apply(
        &mut self,
        encoding: &Encoding,
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
        encode_from(encoding, text, &fixed, from, &mut ids, &mut checkpoints)?;

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

/// Appends the ids behind a checkpoint, and new checkpoints.
fn encode_from(
    encoding: &Encoding,
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
            let cut = encoding.splitter().safe_cut(stretch, SPACING);
            let length = cut.unwrap_or(stretch.len());
            encoding.encode_normal(&stretch[..length], &Selection::None, ids)?;
            position += length;
            let Some(cut) = cut else { break };
            // The cut depends on the characters on both sides of it, and on nothing behind them.
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

/// Appends the special tokens in `text` behind those that are known.
fn search(
    special: &SpecialTokens,
    text: &str,
    allowed: &Selection,
    fixed: &mut Vec<Fixed>,
) -> Result<()> {
    let mut from = fixed.last().map_or(0, |last| last.end);
    while let Some((found, id)) = special.find_allowed(text, from, allowed) {
        let ids = FixedIds::Special(id);
        push(fixed, Fixed { start: found.start, end: found.end, ids })?;
        from = found.end;
    }
    Ok(())
}

/// Normalizes the runs of text between the fixed places, and moves these.
fn normalize_runs(
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
    /// A text and its normalization, of which what `before` and its normalization `normal_before`
    /// tell is not computed again.
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
            // The character at the place must be the same one, so that it starts a stretch.
            let valid = before.places.partition_point(|&(raw, _)| raw < same);
            if let Some(&(raw, place)) = valid.checked_sub(1).map(|last| &before.places[last]) {
                append(&mut places, &before.places[..valid])?;
                push_text(&mut normal, &normal_before[..place])?;
                from = raw;
            }
        }
        while from < text.len() {
            let rest = &text[from..];
            let near = floor_boundary(rest, SPACING.min(rest.len()));
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

/// The ids of a text that stay whatever follows it, and how many bytes of the text they stand for.
pub fn stable_prefix(
    encoding: &Encoding,
    text: &str,
    request: &Request,
) -> Result<(Vec<u32>, usize)> {
    let normalization = encoding.normalization();
    // What follows may combine with the last character that starts a stretch.
    let settled = match normalization {
        Normalization::None => text.len(),
        _ => text.char_indices().rev().find(|&(_, c)| starts_stretch(c)).map_or(0, |(at, _)| at),
    };
    let special = encoding.special_tokens();
    request.check(special, &normalization.apply(text)?)?;
    let (normal, alignment) = normalization.align(&text[..settled])?;
    // Whichever names are allowed: so a caller may change its mind before more text comes.
    let open = special.all().open_from(&normal);
    let mut fixed = Vec::new();
    search(special, &normal, &request.allowed, &mut fixed)?;
    fixed.retain(|fixed| fixed.start < open);
    let mut ids = Vec::new();
    let after_special = fixed.last().map_or(0, |last| last.end);
    let cuts = [last_cut(encoding, &normal, after_special, open), Some(after_special), Some(0)];
    let places = cuts.into_iter().flatten();
    let found = places.filter_map(|cut| Some((cut, original(&alignment, cut)?))).next();
    let Some((end, original)) = found else { return Ok((ids, 0)) };
    fixed.retain(|fixed| fixed.end <= end);
    let start = Checkpoint::default();
    encode_from(encoding, &normal[..end], &fixed, start, &mut ids, &mut Vec::new())?;
    Ok((ids, original))
}

fn original(alignment: &Alignment, position: usize) -> Option<usize> {
    if position == 0 { Some(0) } else { alignment.boundary(position) }
}

/// The last place after `start` at which `text` can be cut whatever stands behind byte `open`.
fn last_cut(encoding: &Encoding, text: &str, start: usize, open: usize) -> Option<usize> {
    let stretch = &text[start..open.max(start)];
    let mut back = 64;
    loop {
        let from = floor_boundary(stretch, stretch.len().saturating_sub(back));
        let mut found = None;
        let mut near = from.max(1);
        while let Some(cut) = encoding.splitter().safe_cut(stretch, near) {
            found = Some(start + cut);
            near = cut + 1;
        }
        if found.is_some() || from == 0 {
            return found;
        }
        back *= 8;
    }
}

/// How many bytes two texts have in common, up to a character boundary of both.
fn common_prefix(one: &str, other: &str) -> usize {
    const BLOCK: usize = 256;
    let (a, b) = (one.as_bytes(), other.as_bytes());
    let length = a.len().min(b.len());
    let mut same = 0;
    while same + BLOCK <= length && a[same..same + BLOCK] == b[same..same + BLOCK] {
        same += BLOCK;
    }
    same += a[same..length].iter().zip(&b[same..length]).take_while(|(a, b)| a == b).count();
    floor_boundary(other, floor_boundary(one, same))
}

/// The last character boundary at or before byte `at`.
pub(crate) fn floor_boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
