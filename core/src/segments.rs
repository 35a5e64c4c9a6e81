//! Prompts made of segments. Special tokens are searched for inside one segment only; text is
//! encoded across the borders of segments.

use std::ops::Range;

use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::memory::{append, push, push_text, reserve, reserve_text};
use crate::normalize::{Normalization, starts_stretch};
use crate::polling::poll;
use crate::sink::Pieces;
use crate::special_tokens::{Selection, SpecialTokens};

/// Turns the parts of prompts and conversations into ids: an [`Encoding`], or the tokenizer of a
/// `tokenizer.json`.
///
/// The text between two special tokens is a run. Each run is encoded on its own.
pub trait Engine {
    /// The error type of the methods.
    type Error: From<Error>;

    /// Returns the special tokens that segments may name.
    fn special_tokens(&self) -> Result<&SpecialTokens, Self::Error>;

    /// Returns the normalization that comes before the search for special tokens. One that comes
    /// after it is part of encoding a run.
    fn normalization(&self) -> Normalization;

    /// Returns true if `id` is the id of a token.
    fn has_token(&self, id: u32) -> bool;

    /// Finds the special tokens of one segment that do not depend on its neighbors.
    fn find_in_segment(
        &self,
        text: &str,
        allowed: &Selection,
    ) -> Result<Vec<(Range<usize>, u32)>, Self::Error>;

    /// Finds the other special tokens of a prompt once all of its segments are known.
    fn find_in_prompt(&self, prompt: &mut Prompt) -> Result<(), Self::Error>;

    /// Appends the special tokens of a normalized text to `fixed`, which holds those of an earlier
    /// text with the same first `known` bytes.
    fn find_in_text(
        &self,
        text: &str,
        allowed: &Selection,
        known: usize,
        fixed: &mut Vec<Fixed>,
    ) -> Result<(), Self::Error>;

    /// Appends the special tokens of a normalized text that stay the same whatever follows it.
    /// Returns the first byte from which more text may form another special token.
    fn find_settled(
        &self,
        text: &str,
        allowed: &Selection,
        fixed: &mut Vec<Fixed>,
    ) -> Result<usize, Self::Error>;

    /// Appends the ids of a run of normalized text, or of a part of one between safe cuts.
    /// `is_first` is true if nothing comes before it.
    fn encode_run(&self, run: &str, is_first: bool, ids: &mut Vec<u32>) -> Result<(), Self::Error>;

    /// Calls `work` with a function that appends the ids of a run of `prompt`, given by its bytes.
    fn encode_runs(
        &self,
        prompt: &Prompt,
        work: impl FnOnce(
            &mut dyn FnMut(Range<usize>, &mut Vec<u32>) -> Result<(), Self::Error>,
        ) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Appends the ids of a run of `prompt`, and for each the bytes of the prompt it came from.
    fn encode_run_with_spans(
        &self,
        prompt: &Prompt,
        run: Range<usize>,
        ids: &mut Vec<u32>,
        spans: &mut Vec<Range<usize>>,
    ) -> Result<(), Self::Error>;

    /// Returns true if the texts of a run's ids are the run, one after the other.
    fn keeps_text(&self, run: &str) -> Result<bool, Self::Error>;

    /// Returns the length of the text of an id, which a run that keeps its text became.
    fn text_size(&self, id: u32) -> usize;

    /// Returns the first position in a run, from byte `near` on, where it can be cut without
    /// changing an id. Whether a position is safe depends on the characters on both sides of it
    /// only.
    fn safe_cut(&self, run: &str, near: usize) -> Option<usize>;

    /// [`Engine::safe_cut`] where the ids of the rest may be others when it is encoded on its own.
    fn beginning_cut(&self, run: &str, near: usize) -> Option<usize> {
        self.safe_cut(run, near)
    }

    /// Returns true if the ids of a run depend on its text alone, not on the segments it came from.
    fn ignores_segments(&self) -> bool;
}

/// Ids that are not the result of encoding text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixedIds {
    /// A special token.
    Special(u32),
    /// Ids given by the caller.
    Given(Vec<u32>),
}

impl FixedIds {
    /// Returns the ids.
    pub fn as_slice(&self) -> &[u32] {
        match self {
            Self::Special(id) => std::slice::from_ref(id),
            Self::Given(ids) => ids,
        }
    }
}

/// A position in the text of a prompt whose ids are not the result of encoding text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    /// The first byte of a special token's name, or the position of given ids.
    pub start: usize,
    /// The byte after the name; `start` for given ids, which have no text.
    pub end: usize,
    /// The ids.
    pub ids: FixedIds,
}

/// The segments of a prompt, one after the other.
#[derive(Debug, Default)]
pub struct Prompt {
    text: String,
    fixed: Vec<Fixed>,
    /// The segment of each of `fixed`.
    fixed_segments: Vec<usize>,
    /// The end of each segment in the text.
    ends: Vec<usize>,
    /// The segments that may hold special tokens, in ascending order, and which ones.
    trusted: Vec<(usize, Selection)>,
}

/// The origins of ids: for consecutive ids of the same origin, the place after the last one, and
/// the origin.
pub type Origins = Vec<(usize, Origin)>;

/// The origin of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The segment of the special token or the given ids; for text, the segment with the first
    /// byte.
    pub segment: usize,
    /// The segment with its first byte, and the one with its last.
    pub segments: (usize, usize),
    /// True for a special token.
    pub is_special: bool,
}

impl Prompt {
    /// Creates an empty prompt with room for `segments` segments of ordinary length.
    pub fn with_room(segments: usize) -> Result<Self> {
        const LENGTH: usize = 64;
        let mut prompt = Self::default();
        reserve_text(&mut prompt.text, segments.saturating_mul(LENGTH))?;
        reserve(&mut prompt.ends, segments)?;
        reserve(&mut prompt.fixed, segments)?;
        reserve(&mut prompt.fixed_segments, segments)?;
        Ok(prompt)
    }

    /// Adds text in which the names in `allowed` are special tokens.
    pub fn push_text<E: Engine>(
        &mut self,
        engine: &E,
        text: &str,
        allowed: &Selection,
    ) -> Result<(), E::Error> {
        poll(text.len())?;
        reserve_text(&mut self.text, text.len())?;
        if *allowed != Selection::None {
            let base = self.text.len();
            for (name, id) in engine.find_in_segment(text, allowed)? {
                self.push_fixed(base + name.start..base + name.end, FixedIds::Special(id))?;
            }
            push(&mut self.trusted, (self.ends.len(), allowed.clone()))?;
        }
        self.text.push_str(text);
        Ok(push(&mut self.ends, self.text.len())?)
    }

    /// Replaces the U+FFFD at the end of the text, the first half of a surrogate pair, by
    /// `character`. The text pushed next began with the second half.
    pub fn join_halves(&mut self, character: char) -> Result<()> {
        let end = self.text.len();
        let is_name = self.fixed.last().is_some_and(|fixed| fixed.end == end);
        if is_name || !self.text.ends_with(char::REPLACEMENT_CHARACTER) {
            return push_text(&mut self.text, char::REPLACEMENT_CHARACTER.encode_utf8(&mut [0; 4]));
        }
        self.text.pop();
        push_text(&mut self.text, character.encode_utf8(&mut [0; 4]))?;
        for place in self.ends.iter_mut().rev().take_while(|place| **place == end) {
            *place = self.text.len();
        }
        Ok(())
    }

    /// Adds a special token.
    pub fn push_special(&mut self, name: &str, id: u32) -> Result<()> {
        let start = self.text.len();
        self.push_fixed(start..start + name.len(), FixedIds::Special(id))?;
        push_text(&mut self.text, name)?;
        push(&mut self.ends, self.text.len())
    }

    /// Adds ids. Text before and after them never merges, unless `ids` is empty.
    pub fn push_ids(&mut self, ids: Vec<u32>) -> Result<()> {
        let place = self.text.len();
        if !ids.is_empty() {
            self.push_fixed(place..place, FixedIds::Given(ids))?;
        }
        push(&mut self.ends, place)
    }

    fn push_fixed(&mut self, place: Range<usize>, ids: FixedIds) -> Result<()> {
        push(&mut self.fixed, Fixed { start: place.start, end: place.end, ids })?;
        push(&mut self.fixed_segments, self.ends.len())
    }

    /// Finds the special tokens that depend on more than one segment. Call it after the last
    /// segment.
    pub fn finish<E: Engine>(&mut self, engine: &E) -> Result<(), E::Error> {
        engine.find_in_prompt(self)
    }

    /// Returns the texts of all segments, one after the other.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the positions with ids that are not the result of encoding text, each with its
    /// segment.
    pub fn fixed(&self) -> impl Iterator<Item = (&Fixed, usize)> {
        self.fixed.iter().zip(self.fixed_segments.iter().copied())
    }

    /// Replaces the positions that [`Prompt::fixed`] returns. They must ascend.
    pub fn set_fixed(&mut self, fixed: Vec<(Fixed, usize)>) {
        (self.fixed, self.fixed_segments) = fixed.into_iter().unzip();
    }

    /// Returns, for each segment that may hold special tokens, its bytes, those special tokens, and
    /// its index.
    pub fn trusted(&self) -> impl Iterator<Item = (Range<usize>, &Selection, usize)> {
        self.trusted_near(0..self.text.len())
    }

    /// Returns what [`Prompt::trusted`] does for the segments that overlap or touch `range`.
    pub fn trusted_near(
        &self,
        range: Range<usize>,
    ) -> impl Iterator<Item = (Range<usize>, &Selection, usize)> {
        let first = self.trusted.partition_point(|&(segment, _)| self.ends[segment] < range.start);
        let segments = self.trusted[first..].iter().map(|(segment, allowed)| {
            let start = segment.checked_sub(1).map_or(0, |before| self.ends[before]);
            (start..self.ends[*segment], allowed, *segment)
        });
        segments.take_while(move |(segment, ..)| segment.start <= range.end)
    }

    /// Returns the texts of all segments, and the positions in them with other ids.
    pub fn into_parts(self) -> (String, Vec<Fixed>) {
        (self.text, self.fixed)
    }

    /// Returns the length of the text in bytes.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// Calls `work` for every run of text, and with an index for the ids between runs. With
    /// `is_joined`, a run continues across the borders of segments.
    fn walk<E>(
        &self,
        is_joined: bool,
        mut work: impl FnMut(Range<usize>, Option<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut position = 0;
        let mut ends = self.ends.iter();
        for index in 0..=self.fixed.len() {
            let next = self.fixed.get(index);
            let stop = next.map_or(self.text.len(), |fixed| fixed.start);
            if !is_joined {
                let within = ends.as_slice().partition_point(|&end| end < stop);
                for &end in ends.by_ref().take(within) {
                    if end > position {
                        work(position..end, None)?;
                        position = end;
                    }
                }
            }
            if stop > position {
                work(position..stop, None)?;
            }
            if let Some(fixed) = next {
                work(fixed.start..fixed.end, Some(index))?;
                position = fixed.end;
            }
        }
        Ok(())
    }

    /// Returns true if nothing comes before a run, given by its bytes.
    pub fn is_first(&self, run: &Range<usize>) -> bool {
        run.start == 0 && self.fixed.first().is_none_or(|fixed| fixed.end > 0)
    }

    /// Appends the ids.
    pub fn encode<E: Engine>(
        &self,
        engine: &E,
        is_joined: bool,
        ids: &mut Vec<u32>,
    ) -> Result<(), E::Error> {
        engine.encode_runs(self, |encode| {
            self.walk(is_joined, |span, fixed| match fixed {
                Some(index) => Ok(append(ids, self.fixed[index].ids.as_slice())?),
                None => encode(span, ids),
            })
        })
    }

    /// Appends the ids and their origins to empty vectors.
    pub fn encode_with_origins<E: Engine>(
        &self,
        engine: &E,
        is_joined: bool,
        ids: &mut Vec<u32>,
        origins: &mut Origins,
    ) -> Result<(), E::Error> {
        let special = engine.special_tokens()?;
        let mut spans = Vec::new();
        // Each run borrows its memory alone: a run that needs spans borrows some of its own.
        self.walk(is_joined, |span, fixed| {
            let first = ids.len();
            if let Some(index) = fixed {
                let segment = self.fixed_segments[index];
                let segments = match self.fixed[index].ids {
                    FixedIds::Special(_) => self.segments_at(span),
                    FixedIds::Given(_) => (segment, segment),
                };
                append(ids, self.fixed[index].ids.as_slice())?;
                for (place, &id) in ids.iter().enumerate().skip(first) {
                    let is_special = special.name(id).is_some();
                    add_origin(origins, place + 1, Origin { segment, segments, is_special })?;
                }
                return Ok(());
            }
            let segments = self.segments_at(span.clone());
            if segments.0 == segments.1 {
                engine.encode_runs(self, |encode| encode(span, ids))?;
                return Ok(add_origin(origins, ids.len(), Origin::of_text(segments))?);
            }
            if engine.keeps_text(&self.text[span.clone()])? {
                engine.encode_runs(self, |encode| encode(span.clone(), ids))?;
                return Ok(self.locate(|id| engine.text_size(id), span, ids, first, origins)?);
            }
            spans.clear();
            engine.encode_run_with_spans(self, span, ids, &mut spans)?;
            for (place, bytes) in (first..).zip(spans.drain(..)) {
                add_origin(origins, place + 1, Origin::of_text(self.segments_at(bytes)))?;
            }
            Ok(())
        })
    }

    /// Appends the origins of the ids from `first` on, which a run that keeps its text became. The
    /// longest segment needs no look at its ids.
    fn locate(
        &self,
        size: impl Fn(u32) -> usize,
        run: Range<usize>,
        ids: &[u32],
        first: usize,
        origins: &mut Origins,
    ) -> Result<()> {
        let (from, to) = self.segments_at(run.clone());
        let bounds = |segment: usize| {
            let start = segment.checked_sub(1).map_or(0, |before| self.ends[before]);
            start.max(run.start)..self.ends[segment].min(run.end)
        };
        let longest = (from..=to).max_by_key(|&segment| bounds(segment).len()).unwrap_or(from);
        // The ids behind the longest segment, or across its end, and their first byte.
        let (mut tail, mut tail_at) = (ids.len(), run.end);
        while tail > first && tail_at > bounds(longest).end {
            tail -= 1;
            tail_at = tail_at.saturating_sub(size(ids[tail]));
        }
        let (mut place, mut at, mut segment) = (first, run.start, from);
        while place < ids.len() {
            if place < tail && at >= bounds(longest).start {
                (place, at, segment) = (tail, tail_at, longest);
                add_origin(origins, place, Origin::of_text((longest, longest)))?;
                continue;
            }
            while segment < to && self.ends[segment] <= at {
                segment += 1;
            }
            let before = segment;
            at += size(ids[place]);
            while segment < to && self.ends[segment] < at {
                segment += 1;
            }
            place += 1;
            add_origin(origins, place, Origin::of_text((before, segment)))?;
        }
        Ok(())
    }

    /// Returns the segments with the first and with the last of these bytes.
    fn segments_at(&self, bytes: Range<usize>) -> (usize, usize) {
        let first = self.segment_at(bytes.start);
        (first, self.segment_at(bytes.end.max(1) - 1).max(first))
    }

    /// Returns the segment with the byte at `position`.
    fn segment_at(&self, position: usize) -> usize {
        self.ends.partition_point(|&end| end <= position).min(self.ends.len().saturating_sub(1))
    }
}

impl Origin {
    /// The origin of text between a byte of one segment and a byte of another.
    fn of_text(segments: (usize, usize)) -> Self {
        Self { segment: segments.0, segments, is_special: false }
    }
}

/// Notes the origin of the ids before `end`.
fn add_origin(origins: &mut Origins, end: usize, origin: Origin) -> Result<()> {
    match origins.last_mut() {
        Some((last, same)) if *same == origin => *last = end,
        Some((last, _)) if *last == end => {}
        None if end == 0 => {}
        _ => push(origins, (end, origin))?,
    }
    Ok(())
}

impl Engine for Encoding {
    type Error = Error;

    fn special_tokens(&self) -> Result<&SpecialTokens> {
        Ok(self.special_tokens())
    }

    fn normalization(&self) -> Normalization {
        self.normalization()
    }

    fn has_token(&self, id: u32) -> bool {
        self.token_bytes(id).is_some()
    }

    /// Searches the text before it is normalized, so that normalization forms no name. Names that
    /// normalization would change inside this text are ordinary text, as in [`Encoding::encode`].
    fn find_in_segment(&self, text: &str, allowed: &Selection) -> Result<Vec<(Range<usize>, u32)>> {
        let mut names = Vec::new();
        let mut from = 0;
        while let Some((found, id)) = self.special_tokens().find_allowed(text, from, allowed) {
            let name = found.start..found.end;
            from = found.end;
            if self.normalization() != Normalization::None
                && !survives(self.normalization(), text, &name)?
            {
                from = found.start + 1;
                continue;
            }
            push(&mut names, (name, id))?;
        }
        Ok(names)
    }

    fn find_in_prompt(&self, _: &mut Prompt) -> Result<()> {
        Ok(())
    }

    fn find_in_text(
        &self,
        text: &str,
        allowed: &Selection,
        known: usize,
        fixed: &mut Vec<Fixed>,
    ) -> Result<()> {
        let special = self.special_tokens();
        // A name that ends this early is not the beginning of a longer one.
        let longest = special.all().longest();
        fixed.truncate(fixed.partition_point(|fixed| fixed.end + longest <= known));
        let mut from = fixed.last().map_or(0, |last| last.end);
        while let Some((found, id)) = special.find_allowed(text, from, allowed) {
            let ids = FixedIds::Special(id);
            push(fixed, Fixed { start: found.start, end: found.end, ids })?;
            from = found.end;
        }
        Ok(())
    }

    fn find_settled(
        &self,
        text: &str,
        allowed: &Selection,
        fixed: &mut Vec<Fixed>,
    ) -> Result<usize> {
        // Asks about all names, so that a caller may allow others before more text comes.
        let open = self.special_tokens().all().open_from(text);
        self.find_in_text(text, allowed, 0, fixed)?;
        fixed.retain(|fixed| fixed.start < open);
        Ok(open)
    }

    fn encode_run(&self, run: &str, _: bool, ids: &mut Vec<u32>) -> Result<()> {
        self.encode_normal(run, &Selection::None, ids)
    }

    fn encode_runs(
        &self,
        prompt: &Prompt,
        work: impl FnOnce(&mut dyn FnMut(Range<usize>, &mut Vec<u32>) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let normalization = self.normalization();
        self.encode_stretches(|encode| {
            work(&mut |run, ids| encode(&normalization.apply(&prompt.text[run])?, ids))
        })
    }

    fn encode_run_with_spans(
        &self,
        prompt: &Prompt,
        run: Range<usize>,
        ids: &mut Vec<u32>,
        spans: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        let (text, alignment) = self.normalization().align(&prompt.text[run.clone()])?;
        let mut walk = Pieces::default();
        self.encode_normal(&text, &Selection::None, &mut walk)?;
        reserve(spans, walk.ids.len())?;
        spans.extend(token_spans(self, &walk).map(|bytes| {
            let original = alignment.original(bytes);
            run.start + original.start..run.start + original.end
        }));
        append(ids, &walk.ids)
    }

    fn keeps_text(&self, run: &str) -> Result<bool> {
        Ok(self.normalization().keeps(run))
    }

    fn text_size(&self, id: u32) -> usize {
        self.token_bytes(id).map_or(0, <[u8]>::len)
    }

    fn safe_cut(&self, run: &str, near: usize) -> Option<usize> {
        self.splitter().safe_cut(run, near)
    }

    fn ignores_segments(&self) -> bool {
        true
    }
}

/// Returns the bytes of each id in the text that was walked over.
fn token_spans<'a>(
    encoding: &'a Encoding,
    walk: &'a Pieces,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let ends = walk.starts.iter().skip(1).map(|&(_, index)| index).chain([walk.ids.len()]);
    walk.starts.iter().zip(ends).flat_map(move |(&(start, first), end)| {
        walk.ids[first..end].iter().scan(start, move |at, &id| {
            let start = *at;
            *at += encoding.token_bytes(id).map_or(0, <[u8]>::len);
            Some(start..*at)
        })
    })
}

/// Returns true if normalizing `text` leaves the name at `name` unchanged.
fn survives(normalization: Normalization, text: &str, name: &Range<usize>) -> Result<bool> {
    // Characters below U+0300 do not combine with a neighbor.
    let next = text[name.end..].chars().next();
    if text[name.clone()].is_ascii() && next.is_none_or(|character| character < '\u{300}') {
        return Ok(true);
    }
    let starts = |&(_, character): &(usize, char)| starts_stretch(character);
    let before = text[..name.start].char_indices().rev().find(starts);
    let before = before.map_or(0, |(offset, _)| offset);
    let after = text[name.end..].char_indices().find(starts);
    let after = after.map_or(text.len(), |(offset, _)| name.end + offset);
    let mut apart = normalization.apply(&text[before..name.start])?.into_owned();
    apart.push_str(&text[name.clone()]);
    apart.push_str(&normalization.apply(&text[name.end..after])?);
    Ok(normalization.apply(&text[before..after])? == apart)
}
