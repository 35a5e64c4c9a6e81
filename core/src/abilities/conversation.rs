//! Encodes texts that grow or change a little at a time, at the cost of the changes.
//!
//! The ids of a text are kept together with *checkpoints*: positions where the text can be cut
//! without changing an id, as long as the text up to a second position, shortly after the first,
//! stays the same. For the next text, encoding resumes at the last checkpoint within the common
//! prefix of both texts.

use std::borrow::Cow;
use std::ops::Range;

use crate::Pipeline;
use crate::char_boundary::floor;
use crate::error::Result;
use crate::fixed::Fixed;
use crate::memory::{append, append_text, push, reserve, reserve_text};
use crate::normalize::{Normalization, is_boundary_before};
use crate::pipeline::segments::Prompt;
use crate::pipeline::stable::{Stable, last_boundary, last_cut, settled};
use crate::request::Request;

/// The minimum number of bytes between two checkpoints.
const SPACING: usize = 1024;

/// A text with its ids and checkpoints.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    text: String,
    fixed: Vec<Fixed>,
    ids: Vec<u32>,
    checkpoints: Vec<Checkpoint>,
    /// The text before normalization, if normalization changed the text.
    raw: Option<Raw>,
    /// True if `fixed` was found in the text; false if the caller gave segments.
    is_searched: bool,
    /// The end of the prompt, if the text came from segments.
    end: End,
    /// The first half of a surrogate pair that ends the text, stored in the text as U+FFFD; for
    /// callers whose strings may contain surrogates.
    pub half: Option<u32>,
}

/// A position at which encoding can resume.
#[derive(Debug, Clone, Copy, Default)]
struct Checkpoint {
    /// Byte offset in the text.
    at: usize,
    /// The checkpoint is valid as long as the text before this byte offset stays the same.
    decided: usize,
    /// Number of ids, and number of fixed positions, before the checkpoint.
    ids: usize,
    fixed: usize,
}

/// A text before normalization, with pairs `(position, position in the normalized text)` where both
/// texts can be cut: the parts normalize to their counterparts, and a normalization run starts
/// there.
#[derive(Debug, Clone, Default)]
struct Raw {
    text: String,
    places: Vec<(usize, usize)>,
}

/// The end of a prompt, which further segments may change, before [`Prompt::finish`].
#[derive(Debug, Clone, Default)]
struct End {
    prompt: Prompt,
    /// Byte offset in the text at which `prompt` starts, and the number of fixed positions before
    /// that offset.
    at: usize,
    fixed: usize,
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

    /// Returns the memory in use, in bytes.
    pub fn memory(&self) -> usize {
        let raw = self.raw.as_ref();
        self.text.capacity()
            + self.ids.capacity() * size_of::<u32>()
            + self.checkpoints.capacity() * size_of::<Checkpoint>()
            + self.fixed.capacity() * size_of::<Fixed>()
            + self.end.prompt.memory()
            + raw.map_or(0, |raw| raw.text.capacity() + raw.places.capacity() * 16)
    }

    /// Returns true if text (`is_text`) or segments (otherwise) can be appended.
    pub fn takes(&self, is_text: bool) -> bool {
        let is_empty = self.text.is_empty() && self.ids.is_empty();
        is_empty || self.is_searched == is_text
    }

    /// Returns a copy of the prompt's end, for [`Conversation::append_prompt`].
    pub fn end(&self) -> Result<Prompt> {
        self.end.prompt.copy_from(0)
    }

    /// Replaces the text with `text`, in which `request` allows special tokens.
    ///
    /// Returns the number of leading ids that are unchanged. On error, the conversation is
    /// unchanged.
    pub fn update_text(
        &mut self,
        pipeline: &Pipeline,
        text: &str,
        request: &Request,
    ) -> Result<usize> {
        let same = common_prefix(&self.text, text);
        let (normal, raw, same) = match pipeline.normalization() {
            Normalization::None => (Cow::Borrowed(text), None, same),
            form if self.stays_normal(text, same, form)? => (Cow::Borrowed(text), None, same),
            form => {
                let (normal, raw) = Raw::of(text, form, self.raw.as_ref(), &self.text)?;
                let same = common_prefix(&self.text, &normal);
                (Cow::Owned(normal), Some(raw), same)
            }
        };
        let kept = self.replace_text(pipeline, same, &normal[same..], request)?;
        self.raw = raw;
        Ok(kept)
    }

    /// Appends `more` to a text. The result is the same as from [`Conversation::update_text`] with
    /// the whole text, at the cost of `more` alone. `pair` is a character above U+FFFF; the text
    /// ends with its first half, as U+FFFD.
    pub fn append_text(
        &mut self,
        pipeline: &Pipeline,
        pair: Option<char>,
        more: &str,
        request: &Request,
    ) -> Result<usize> {
        let half = pair.map_or(0, |_| char::REPLACEMENT_CHARACTER.len_utf8());
        let end = self.text.len() - half;
        let form = pipeline.normalization();
        // The form depends only on the text, not on whether earlier text was normalized.
        let start = match form {
            Normalization::None => end,
            _ => last_boundary(&self.text[..end]),
        };
        let mut tail = String::new();
        append_text(&mut tail, &self.text[start..end])?;
        if let Some(pair) = pair {
            tail.push_str(pair.encode_utf8(&mut [0; 4]));
        }
        let given = tail.len() - (end - start);
        append_text(&mut tail, more)?;
        let normal = form.apply(&tail)?;
        if self.raw.is_none() && *normal != *tail {
            let mut raw = Raw::default();
            append_text(&mut raw.text, &self.text)?;
            self.raw = Some(raw);
        }
        if let Some(raw) = &mut self.raw {
            reserve_text(&mut raw.text, given + more.len())?;
        }
        let same = start + common_prefix(&self.text[start..], &normal);
        let kept = self.replace_text(pipeline, same, &normal[same - start..], request)?;
        if let Some(raw) = &mut self.raw {
            raw.text.truncate(raw.text.len() - half);
            let size = raw.text.len();
            while raw.places.pop_if(|&mut (place, _)| place >= size).is_some() {}
            raw.text.push_str(&tail[end - start..]);
        }
        Ok(kept)
    }

    /// Replaces the text after the first `same` bytes with `tail`, and searches for special tokens.
    fn replace_text(
        &mut self,
        pipeline: &Pipeline,
        same: usize,
        tail: &str,
        request: &Request,
    ) -> Result<usize> {
        let known = if self.is_searched { same } else { 0 };
        let special = pipeline.special_tokens()?;
        let kept = self.apply(pipeline, same, tail, |text, earlier| {
            // New names end after the known bytes.
            let from = known.saturating_sub(request.longest_disallowed(special));
            request.check(special, &text[floor(text, from)..])?;
            let earlier = if known == 0 { &[] } else { earlier };
            pipeline.find_in_text(text, &request.allowed, known, earlier)
        })?;
        (self.is_searched, self.end) = (true, End::default());
        Ok(kept)
    }

    /// Returns true if the text so far and `text`, which share their first `same` bytes, are
    /// normalized.
    fn stays_normal(&self, text: &str, same: usize, form: Normalization) -> Result<bool> {
        if self.raw.is_some() {
            return Ok(false);
        }
        let known = if self.is_searched { same } else { 0 };
        let start = last_boundary(&text[..known]);
        Ok(matches!(form.apply(&text[start..])?, Cow::Borrowed(_)))
    }

    /// Replaces the text with an unfinished prompt: [`Prompt::finish`] has not been called.
    /// Normalizes the runs of text between the fixed positions.
    pub fn update_prompt(&mut self, pipeline: &Pipeline, prompt: Prompt) -> Result<usize> {
        self.replace_prompt(pipeline, prompt, 0, 0)
    }

    /// Appends segments, which follow [`Conversation::end`], to a prompt. The result is the same as
    /// from [`Conversation::update_prompt`] with all segments, at the cost of the new segments.
    pub fn append_prompt(&mut self, pipeline: &Pipeline, prompt: Prompt) -> Result<usize> {
        self.replace_prompt(pipeline, prompt, self.end.at, self.end.fixed)
    }

    /// Replaces the text from byte `start` on, and all fixed positions after the first `before`.
    fn replace_prompt(
        &mut self,
        pipeline: &Pipeline,
        mut prompt: Prompt,
        start: usize,
        before: usize,
    ) -> Result<usize> {
        let mut end = End { prompt: prompt.end(pipeline)?, at: 0, fixed: 0 };
        prompt.finish(pipeline)?;
        if !pipeline.ignores_segments() {
            let mut ids = Vec::new();
            prompt.encode(pipeline, true, &mut ids)?;
            let kept = self.ids.iter().zip(&ids).take_while(|(old, new)| old == new).count();
            *self = Self { ids, end, ..Self::default() };
            return Ok(kept);
        }
        let (text, fixed) = prompt.into_parts();
        let mut open = end.prompt.size();
        let (text, mut fixed) = match pipeline.normalization() {
            Normalization::None => (text, fixed),
            form => {
                let (raw, places) = end.prompt.copy_from(0)?.into_parts();
                open = normalize_runs(form, &raw, places)?.0.len();
                normalize_runs(form, &text, fixed)?
            }
        };
        end.at = start + text.len() - open;
        for place in &mut fixed {
            (place.start, place.end) = (place.start + start, place.end + start);
        }
        let same = start + common_prefix(&self.text[start..], &text);
        let kept = self.apply(pipeline, same, &text[same - start..], |_, _| Ok((before, fixed)))?;
        end.fixed = self.fixed.partition_point(|fixed| fixed.start < end.at);
        (self.raw, self.is_searched, self.end) = (None, false, end);
        Ok(kept)
    }

    /// Replaces the text after the first `same` bytes with `tail`. `find` returns how many fixed
    /// positions to keep, and the positions after them.
    fn apply(
        &mut self,
        pipeline: &Pipeline,
        same: usize,
        tail: &str,
        find: impl FnOnce(&str, &[Fixed]) -> Result<(usize, Vec<Fixed>)>,
    ) -> Result<usize> {
        let mut removed = String::new();
        append_text(&mut removed, &self.text[same..])?;
        reserve_text(&mut self.text, tail.len().saturating_sub(removed.len()))?;
        self.text.truncate(same);
        self.text.push_str(tail);
        let result = self.encode(pipeline, same, find);
        if result.is_err() {
            self.text.truncate(same);
            self.text.push_str(&removed);
        }
        result
    }

    /// Encodes the text, whose first `same` bytes are unchanged.
    fn encode(
        &mut self,
        pipeline: &Pipeline,
        same: usize,
        find: impl FnOnce(&str, &[Fixed]) -> Result<(usize, Vec<Fixed>)>,
    ) -> Result<usize> {
        let (kept, mut fixed) = find(&self.text, &self.fixed)?;
        let old = self.fixed[kept..].iter();
        let more = old.zip(&fixed).take_while(|(old, new)| old == new).count();
        let alike = kept + more;
        fixed.drain(..more);
        let differs = [self.fixed.get(alike), fixed.first()];
        let same = differs.iter().flatten().map(|fixed| fixed.start).fold(same, usize::min);
        let valid = self
            .checkpoints
            .partition_point(|checkpoint| checkpoint.decided <= same && checkpoint.fixed <= alike);
        let from = valid.checked_sub(1).map(|last| self.checkpoints[last]).unwrap_or_default();

        let (mut ids, mut checkpoints) = (Vec::new(), Vec::new());
        let places = self.fixed[from.fixed..alike].iter().chain(&fixed);
        encode_from(pipeline, &self.text, places, from, &mut ids, &mut checkpoints)?;

        let stay =
            self.ids[from.ids..].iter().zip(&ids).take_while(|(old, new)| old == new).count();
        reserve(&mut self.ids, ids.len())?;
        reserve(&mut self.checkpoints, checkpoints.len())?;
        reserve(&mut self.fixed, fixed.len())?;
        self.ids.truncate(from.ids + stay);
        self.ids.extend_from_slice(&ids[stay..]);
        self.checkpoints.truncate(valid);
        self.checkpoints.append(&mut checkpoints);
        self.fixed.truncate(alike);
        self.fixed.append(&mut fixed);
        Ok(from.ids + stay)
    }
}

/// Appends the ids after a checkpoint, and new checkpoints. `fixed` holds the fixed positions after
/// the checkpoint.
fn encode_from<'a>(
    pipeline: &Pipeline,
    text: &str,
    mut fixed: impl Iterator<Item = &'a Fixed>,
    from: Checkpoint,
    ids: &mut Vec<u32>,
    checkpoints: &mut Vec<Checkpoint>,
) -> Result<()> {
    let mut position = from.at;
    let mut is_inside = from.decided > from.at;
    for index in from.fixed.. {
        let next = fixed.next();
        let end = next.map_or(text.len(), |fixed| fixed.start);
        while position < end {
            let run = &text[position..end];
            let cut = pipeline.beginning_cut(run, SPACING);
            let part = position..cut.map_or(end, |cut| position + cut);
            if is_inside {
                continue_run(pipeline, text, part.clone(), ids)?;
            } else {
                pipeline.encode_run(&text[part.clone()], position == 0 && index == 0, ids)?;
            }
            (position, is_inside) = (part.end, true);
            if cut.is_none() {
                break;
            }
            // The cut depends only on the characters next to it.
            let width = text[position..end].chars().next().map_or(0, char::len_utf8);
            let (decided, ids) = (position + width, from.ids + ids.len());
            push(checkpoints, Checkpoint { at: position, decided, ids, fixed: index })?;
        }
        let Some(next) = next else { break };
        append(ids, next.ids.as_slice())?;
        (position, is_inside) = (next.end, false);
        let (at, ids, fixed) = (position, from.ids + ids.len(), index + 1);
        push(checkpoints, Checkpoint { at, decided: at, ids, fixed })?;
    }
    Ok(())
}

/// Appends the ids of a part of a run after a cut. If the pipeline prepends text to each run, the
/// part is encoded with the character before it, whose ids stay the same.
fn continue_run(
    pipeline: &Pipeline,
    text: &str,
    part: Range<usize>,
    ids: &mut Vec<u32>,
) -> Result<()> {
    if !pipeline.prepends(false) {
        return pipeline.encode_run(&text[part], false, ids);
    }
    let before = floor(text, part.start - 1);
    let (mut first, start) = (Vec::new(), ids.len());
    pipeline.encode_run(&text[before..part.start], false, &mut first)?;
    pipeline.encode_run(&text[before..part.end], false, ids)?;
    debug_assert!(ids[start..].starts_with(&first), "a cut in the middle of a token");
    ids.drain(start..start + first.len());
    Ok(())
}

/// Normalizes the runs of text between the fixed positions, and moves the positions.
pub(crate) fn normalize_runs(
    normalization: Normalization,
    text: &str,
    mut fixed: Vec<Fixed>,
) -> Result<(String, Vec<Fixed>)> {
    let mut normal = String::new();
    reserve_text(&mut normal, text.len())?;
    let mut position = 0;
    for place in &mut fixed {
        append_text(&mut normal, &normalization.apply(&text[position..place.start])?)?;
        position = place.end;
        let start = normal.len();
        append_text(&mut normal, &text[place.start..place.end])?;
        (place.start, place.end) = (start, normal.len());
    }
    append_text(&mut normal, &normalization.apply(&text[position..])?)?;
    Ok((normal, fixed))
}

impl Raw {
    /// Normalizes a text. Reuses `normal_before`, the normalized `before`, up to the first
    /// difference.
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
            // The characters at the position must be equal, so that a run starts there.
            let valid = before.places.partition_point(|&(raw, _)| raw < same);
            if let Some(&(raw, place)) = valid.checked_sub(1).map(|last| &before.places[last]) {
                append(&mut places, &before.places[..valid])?;
                append_text(&mut normal, &normal_before[..place])?;
                from = raw;
            }
        }
        while from < text.len() {
            let rest = &text[from..];
            let near = floor(rest, SPACING.min(rest.len()));
            let end = rest[near..]
                .char_indices()
                .find(|&(offset, character)| near + offset > 0 && is_boundary_before(character))
                .map_or(rest.len(), |(offset, _)| near + offset);
            append_text(&mut normal, &normalization.apply(&rest[..end])?)?;
            from += end;
            if from < text.len() {
                push(&mut places, (from, normal.len()))?;
            }
        }
        let mut raw = String::new();
        append_text(&mut raw, text)?;
        Ok((normal, Raw { text: raw, places }))
    }
}

/// Returns the ids of a text that no later text can change, and the number of bytes they cover.
pub fn stable_prefix(
    pipeline: &Pipeline,
    text: &str,
    request: &Request,
) -> Result<(Vec<u32>, usize)> {
    request.check(pipeline.special_tokens()?, &pipeline.normalization().apply(text)?)?;
    let Stable { normal, end, fixed, original } = Stable::of(pipeline, text, &request.allowed)?;
    let mut ids = Vec::new();
    let start = Checkpoint::default();
    encode_from(pipeline, &normal[..end], fixed.iter(), start, &mut ids, &mut Vec::new())?;
    Ok((ids, original))
}

/// Appends the leading ids of a prompt that no later text can change. `text` is normalized.
pub(crate) fn stable_ids(
    pipeline: &Pipeline,
    text: &str,
    fixed: &[Fixed],
    ids: &mut Vec<u32>,
) -> Result<()> {
    let after = fixed.last().map_or(0, |last| last.end);
    let open = settled(pipeline.normalization(), text);
    let end = last_cut(pipeline, text, after, open).unwrap_or(after);
    encode_from(pipeline, &text[..end], fixed.iter(), Checkpoint::default(), ids, &mut Vec::new())
}

/// Returns the length in bytes of the longest common prefix that ends at a character boundary.
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
