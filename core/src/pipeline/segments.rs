//! Prompts made of segments. Special tokens are found only within a segment; text is encoded across
//! segment boundaries.

use std::ops::Range;

use crate::char_boundary::{ceil, floor};
use crate::error::Result;
use crate::fixed::{Fixed, FixedIds};
use crate::memory::{append, append_text, push, reserve, reserve_text};
use crate::pipeline::assembly::Pipeline;
use crate::pipeline::independent::quiet_place;
use crate::polling::poll;
use crate::special_tokens::Selection;

/// Maps byte ranges of a changed text to the original.
pub type Originals<'a> = Box<dyn Fn(Range<usize>) -> Range<usize> + 'a>;

/// Appends the ids of a prompt's run, given by its byte range.
pub type EncodeRun<'a> = &'a mut dyn FnMut(Range<usize>, &mut Vec<u32>) -> Result<()>;

/// The segments of a prompt, in order.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    text: String,
    fixed: Vec<Fixed>,
    fixed_segments: Vec<usize>,
    /// End of each segment in the text.
    ends: Vec<usize>,
    /// Segments that may contain special tokens, in ascending order, each with these tokens.
    trusted: Vec<(usize, Selection)>,
    is_one_text: bool,
}

/// Origins of ids in runs: the index after the last id of the run, and the origin.
pub type Origins = Vec<(usize, Origin)>;

/// The origin of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Segment of the special token or of the given ids; for text, the segment with the first byte.
    pub segment: usize,
    /// Segments of the first byte and of the last byte.
    pub segments: (usize, usize),
    /// True for a special token.
    pub is_special: bool,
}

impl Prompt {
    /// Creates a prompt of one text, in which the names in `allowed` are special tokens.
    pub fn of_text(pipeline: &Pipeline, text: &str, allowed: &Selection) -> Result<Self> {
        let mut prompt = Self { is_one_text: true, ..Self::default() };
        prompt.push_text(pipeline, text, allowed)?;
        prompt.finish(pipeline)?;
        Ok(prompt)
    }

    /// Returns true if the prompt is one trusted text, encoded as a whole.
    pub fn is_one_text(&self) -> bool {
        self.is_one_text
    }

    /// Adds text in which the names in `allowed` are special tokens.
    pub fn push_text(
        &mut self,
        pipeline: &Pipeline,
        text: &str,
        allowed: &Selection,
    ) -> Result<()> {
        poll(text.len())?;
        reserve_text(&mut self.text, text.len())?;
        if *allowed != Selection::None {
            let base = self.text.len();
            for (name, id) in pipeline.find_in_segment(text, allowed)? {
                self.push_fixed(base + name.start..base + name.end, FixedIds::Special(id))?;
            }
            self.trusted.push((self.ends.len(), allowed.clone()));
        }
        self.text.push_str(text);
        self.ends.push(self.text.len());
        Ok(())
    }

    /// Replaces the U+FFFD at the end of the text, from the first half of a surrogate pair, with
    /// `character`. The text pushed next began with the second half.
    pub fn join_halves(&mut self, character: char) {
        let end = self.text.len();
        let is_name = self.fixed.last().is_some_and(|fixed| fixed.end == end);
        if is_name || !self.text.ends_with(char::REPLACEMENT_CHARACTER) {
            self.text.push_str(char::REPLACEMENT_CHARACTER.encode_utf8(&mut [0; 4]));
            return;
        }
        self.text.pop();
        self.text.push_str(character.encode_utf8(&mut [0; 4]));
        for place in self.ends.iter_mut().rev().take_while(|place| **place == end) {
            *place = self.text.len();
        }
    }

    /// Adds a special token.
    pub fn push_special(&mut self, name: &str, id: u32) -> Result<()> {
        let start = self.text.len();
        self.push_fixed(start..start + name.len(), FixedIds::Special(id))?;
        append_text(&mut self.text, name)?;
        push(&mut self.ends, self.text.len())
    }

    /// Adds ids. Text before and after the ids never merges, unless `ids` is empty.
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

    /// Finds the special tokens that depend on more than one segment. Call this method after the
    /// last segment.
    pub fn finish(&mut self, pipeline: &Pipeline) -> Result<()> {
        pipeline.find_in_prompt(self)
    }

    /// Returns the end of an unfinished prompt: the part that further segments may change.
    pub(crate) fn end(&self, pipeline: &Pipeline) -> Result<Self> {
        let place = |start: usize| self.fixed.partition_point(|fixed| fixed.start < start);
        let is_free = |at: usize| {
            let index = place(at);
            let before = index.checked_sub(1).is_none_or(|last| self.fixed[last].end < at);
            before && self.fixed.get(index).is_none_or(|next| at < next.start)
        };
        let start = match pipeline.ignores_segments() {
            true => quiet_place(pipeline, &self.text, self.text.len(), is_free)?,
            false => 0,
        };
        self.copy_from(start)
    }

    /// Returns a copy of the prompt from byte `start` on; `start` is 0 or touches no fixed
    /// position.
    pub fn copy_from(&self, start: usize) -> Result<Self> {
        let first = if start == 0 { 0 } else { self.segment_at(start) };
        let mut end = Self { is_one_text: self.is_one_text, ..Self::default() };
        append_text(&mut end.text, &self.text[start..])?;
        let skipped = self.fixed.partition_point(|fixed| fixed.start < start);
        for (fixed, segment) in self.fixed().skip(skipped) {
            push(&mut end.fixed, fixed.moved_back(start))?;
            push(&mut end.fixed_segments, segment - first)?;
        }
        reserve(&mut end.ends, self.ends.len() - first)?;
        end.ends.extend(self.ends[first..].iter().map(|end| end - start));
        let trusted = self.trusted.iter().filter(|(segment, _)| *segment >= first);
        let trusted = trusted.map(|(segment, allowed)| (segment - first, allowed.clone()));
        end.trusted = trusted.collect::<Vec<_>>();
        Ok(end)
    }

    /// Returns the memory in use, in bytes.
    pub fn memory(&self) -> usize {
        self.text.capacity()
            + self.fixed.capacity() * size_of::<(Fixed, usize)>()
            + self.ends.capacity() * size_of::<usize>()
            + self.trusted.capacity() * size_of::<(usize, Selection)>()
    }

    /// Returns the concatenated texts of all segments.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the fixed positions, each with its segment.
    pub fn fixed(&self) -> impl Iterator<Item = (&Fixed, usize)> {
        self.fixed.iter().zip(self.fixed_segments.iter().copied())
    }

    /// Replaces the positions of [`Prompt::fixed`]. The new positions must ascend.
    pub fn set_fixed(&mut self, fixed: Vec<(Fixed, usize)>) -> Result<()> {
        self.fixed_segments.clear();
        reserve(&mut self.fixed_segments, fixed.len())?;
        self.fixed_segments.extend(fixed.iter().map(|&(_, segment)| segment));
        self.fixed.clear();
        reserve(&mut self.fixed, fixed.len())?;
        self.fixed.extend(fixed.into_iter().map(|(fixed, _)| fixed));
        Ok(())
    }

    /// Returns, for each segment that may contain special tokens, its bytes, these special tokens,
    /// and its index.
    pub fn trusted(&self) -> impl Iterator<Item = (Range<usize>, &Selection, usize)> {
        self.trusted_near(0..self.text.len())
    }

    /// Returns the items of [`Prompt::trusted`] for segments that overlap or touch `range`.
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

    /// Returns the concatenated texts of all segments, and the fixed positions.
    pub fn into_parts(self) -> (String, Vec<Fixed>) {
        (self.text, self.fixed)
    }

    /// Returns the length of the text in bytes.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// Calls `work` for each run of text, and with the index of each fixed position between runs.
    /// With `is_joined`, a run continues across segment boundaries.
    fn walk(
        &self,
        is_joined: bool,
        mut work: impl FnMut(Range<usize>, Option<usize>) -> Result<()>,
    ) -> Result<()> {
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

    /// Returns true if no text precedes a run, given by its bytes.
    pub fn is_first(&self, run: &Range<usize>) -> bool {
        run.start == 0 && self.fixed.first().is_none_or(|fixed| fixed.end > 0)
    }

    /// Appends the ids of the prompt.
    pub fn encode(&self, pipeline: &Pipeline, is_joined: bool, ids: &mut Vec<u32>) -> Result<()> {
        pipeline.encode_runs(self, &mut |encode| {
            self.walk(is_joined, |span, fixed| match fixed {
                Some(index) => append(ids, self.fixed[index].ids.as_slice()),
                None => encode(span, ids),
            })
        })
    }

    /// Appends the ids and, for each id, its bytes in the text, widened to whole characters. Given
    /// ids have empty ranges.
    pub fn encode_with_spans(
        &self,
        pipeline: &Pipeline,
        ids: &mut Vec<u32>,
        spans: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        self.walk(true, |span, fixed| {
            if let Some(index) = fixed {
                append(ids, self.fixed[index].ids.as_slice())?;
                reserve(spans, ids.len() - spans.len())?;
                spans.resize(ids.len(), span);
                return Ok(());
            }
            if !pipeline.keeps_text(&self.text[span.clone()])? {
                return pipeline.encode_run_with_spans(self, span, ids, spans);
            }
            let (first, mut end) = (ids.len(), span.start);
            pipeline.encode_runs(self, &mut |encode| encode(span.clone(), ids))?;
            reserve(spans, ids.len() - first)?;
            for &id in &ids[first..] {
                let start = end;
                end += pipeline.text_size(id);
                spans.push(floor(&self.text, start)..ceil(&self.text, end));
            }
            Ok(())
        })
    }

    /// Appends the ids and their origins to empty vectors.
    pub fn encode_with_origins(
        &self,
        pipeline: &Pipeline,
        is_joined: bool,
        ids: &mut Vec<u32>,
        origins: &mut Origins,
    ) -> Result<()> {
        let special = pipeline.special_tokens()?;
        let mut spans = Vec::new();
        // Each run borrows its own workspace, because a run with spans borrows a second workspace.
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
                    add_origin(origins, place + 1, Origin { segment, segments, is_special });
                }
                return Ok(());
            }
            let segments = self.segments_at(span.clone());
            if segments.0 == segments.1 {
                pipeline.encode_runs(self, &mut |encode| encode(span.clone(), ids))?;
                add_origin(origins, ids.len(), Origin::of_text(segments));
                return Ok(());
            }
            if pipeline.keeps_text(&self.text[span.clone()])? {
                pipeline.encode_runs(self, &mut |encode| encode(span.clone(), ids))?;
                self.locate(|id| pipeline.text_size(id), span, ids, first, origins);
                return Ok(());
            }
            spans.clear();
            pipeline.encode_run_with_spans(self, span, ids, &mut spans)?;
            for (place, bytes) in (first..).zip(spans.drain(..)) {
                add_origin(origins, place + 1, Origin::of_text(self.segments_at(bytes)));
            }
            Ok(())
        })
    }

    /// Appends the origins of the ids from index `first`, for a run whose ids spell its text. The
    /// ids inside the longest segment need no look-up.
    fn locate(
        &self,
        size: impl Fn(u32) -> usize,
        run: Range<usize>,
        ids: &[u32],
        first: usize,
        origins: &mut Origins,
    ) {
        let (from, to) = self.segments_at(run.clone());
        let bounds = |segment: usize| {
            let start = segment.checked_sub(1).map_or(0, |before| self.ends[before]);
            start.max(run.start)..self.ends[segment].min(run.end)
        };
        let longest = (from..=to).max_by_key(|&segment| bounds(segment).len()).unwrap_or(from);
        // Ids after the longest segment, or across its end, and their first byte.
        let (mut tail, mut tail_at) = (ids.len(), run.end);
        while tail > first && tail_at > bounds(longest).end {
            tail -= 1;
            tail_at = tail_at.saturating_sub(size(ids[tail]));
        }
        let (mut place, mut at, mut segment) = (first, run.start, from);
        while place < ids.len() {
            if place < tail && at >= bounds(longest).start {
                (place, at, segment) = (tail, tail_at, longest);
                add_origin(origins, place, Origin::of_text((longest, longest)));
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
            add_origin(origins, place, Origin::of_text((before, segment)));
        }
    }

    /// Returns the segments with the first and the last of these bytes.
    fn segments_at(&self, bytes: Range<usize>) -> (usize, usize) {
        let first = self.segment_at(bytes.start);
        (first, self.segment_at(bytes.end.max(1) - 1).max(first))
    }

    fn segment_at(&self, position: usize) -> usize {
        self.ends.partition_point(|&end| end <= position).min(self.ends.len().saturating_sub(1))
    }
}

impl Origin {
    /// Returns the origin of text that begins in one segment and ends in another.
    fn of_text(segments: (usize, usize)) -> Self {
        Self { segment: segments.0, segments, is_special: false }
    }
}

/// Appends the origin of the ids before `end`.
fn add_origin(origins: &mut Origins, end: usize, origin: Origin) {
    match origins.last_mut() {
        Some((last, same)) if *same == origin => *last = end,
        Some((last, _)) if *last == end => {}
        None if end == 0 => {}
        _ => origins.push((end, origin)),
    }
}
