//! The bytes of the text that each token covers.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use crate::char_boundary::{ceil, floor};
use crate::direct::Direct;
use crate::error::{Error, Result};
use crate::memory::{append, reserve, with_capacity};
use crate::normalize::Alignment;
use crate::offsets::TokenEnd;
use crate::request::Request;
use crate::sink::Sink;
use crate::special_tokens::Selection;

/// The ids of a text, and the data from which to compute their positions.
#[derive(Debug)]
struct Aligned<'a> {
    /// Ids, without skipped ones.
    ids: Vec<u32>,
    /// Number of ids skipped before the first.
    skipped: usize,
    normal: Cow<'a, str>,
    alignment: Alignment,
    jumps: Vec<Jump>,
}

/// An id that does not start at the end of the previous id's bytes, because the pattern skips text
/// between them, or because one is a special token, whose id may have several names.
#[derive(Debug)]
struct Jump {
    /// Index of the id.
    index: usize,
    start: usize,
    /// End of a special token.
    end: Option<usize>,
}

/// Keeps the ids in and around a range, and the jumps.
struct JumpSink {
    ids: Vec<u32>,
    jumps: Vec<Jump>,
    /// Start of the next id unless it is a jump; `None` if the next id is a jump in any case.
    expected: Option<usize>,
    /// Token numbers: ids before the range are skipped, and the walk ends after the range.
    wanted: Range<usize>,
    skipped: usize,
    /// Index of an id that is a jump, before which ids can be skipped.
    mark: usize,
}

/// Minimum number of ids that are skipped at once.
const SKIPPED_AT_ONCE: usize = 1024;

impl JumpSink {
    fn new(wanted: Range<usize>) -> Self {
        Self { ids: Vec::new(), jumps: Vec::new(), expected: None, wanted, skipped: 0, mark: 0 }
    }

    /// Skips the ids before the mark.
    fn skip(&mut self) {
        let mark = std::mem::take(&mut self.mark);
        self.ids.drain(..mark);
        self.jumps.retain_mut(|jump| {
            let is_kept = jump.index >= mark;
            jump.index = jump.index.saturating_sub(mark);
            is_kept
        });
        self.skipped += mark;
    }
}

impl Sink for JumpSink {
    const HAS_POSITIONS: bool = true;

    fn ids(&mut self) -> &mut Vec<u32> {
        &mut self.ids
    }

    fn reserve(&mut self, pieces: usize, ids: usize) -> Result<()> {
        reserve(&mut self.jumps, pieces)?;
        reserve(&mut self.ids, ids)
    }

    fn batch_done(&mut self) -> ControlFlow<()> {
        if self.skipped + self.ids.len() > self.wanted.end {
            return ControlFlow::Break(());
        }
        if self.ids.len() - self.mark >= SKIPPED_AT_ONCE && self.wanted.start > 0 {
            if self.skipped + self.mark < self.wanted.start {
                self.skip();
            }
            self.mark = self.ids.len();
            self.expected = None;
        }
        ControlFlow::Continue(())
    }

    fn piece(&mut self, bytes: Range<usize>) {
        if self.expected != Some(bytes.start) {
            self.jumps.push(Jump { index: self.ids.len(), start: bytes.start, end: None });
        }
        self.expected = Some(bytes.end);
    }

    fn special(&mut self, bytes: Range<usize>) {
        let (start, end) = (bytes.start, Some(bytes.end));
        self.jumps.push(Jump { index: self.ids.len(), start, end });
        self.expected = None;
    }
}

impl Direct {
    /// Returns the ids of a text and, for each id, its bytes in the text, widened to whole
    /// characters: tokens that share a character overlap.
    ///
    /// Fails like [`Direct::encode`].
    pub fn encode_with_spans(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let (normal, alignment) = self.normalization().align(text)?;
        request.check(self.special_tokens(), &normal)?;
        let aligned = self.align(normal, alignment, &request.allowed, 0..usize::MAX)?;
        let mut spans = Vec::new();
        aligned.append_spans(self, 0, &mut spans)?;
        Ok((aligned.ids, spans))
    }

    /// Returns the ids of a text and the exact bytes of each token, which are contiguous.
    pub(crate) fn encode_kept(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let (mut ids, mut end) = (Vec::new(), 0);
        self.encode(text, request, &mut ids)?;
        let mut spans = with_capacity(ids.len())?;
        spans.extend(ids.iter().map(|&id| {
            let start = end;
            end += self.text_size(id);
            start..end
        }));
        Ok((ids, spans))
    }

    /// Returns where tokens of a text end, and how many it has, without looking for disallowed names.
    /// Tokens with numbers outside `wanted` may be missing, and tokens after its end need not be
    /// counted: memory and time do not depend on them.
    pub(crate) fn token_ends(
        &self,
        text: &str,
        allowed: &Selection,
        wanted: Range<usize>,
    ) -> Result<(Vec<TokenEnd>, usize)> {
        let (normal, alignment) = self.normalization().align(text)?;
        let aligned = self.align(normal, alignment, allowed, wanted)?;
        let mut ends = with_capacity(aligned.ids.len())?;
        for (span, tokens) in aligned.normal_spans(self).zip(aligned.skipped + 1..) {
            let end = span?.end;
            let Range { start: low, end: high } = aligned.original(end..end);
            ends.push(TokenEnd { tokens, low, high });
        }
        Ok((ends, aligned.skipped + aligned.ids.len()))
    }

    /// Appends the ids of a run that begins at byte `base` of its prompt and, for each id, its
    /// bytes in the prompt.
    pub(crate) fn encode_run_with_spans(
        &self,
        run: &str,
        base: usize,
        ids: &mut Vec<u32>,
        spans: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        let (normal, alignment) = self.normalization().align(run)?;
        let aligned = self.align(normal, alignment, &Selection::None, 0..usize::MAX)?;
        aligned.append_spans(self, base, spans)?;
        append(ids, &aligned.ids)
    }

    /// Returns true if the concatenated texts of a run's ids are the run.
    pub(crate) fn keeps_text(&self, run: &str) -> Result<bool> {
        // Any other pattern may skip text.
        Ok(self.splitter().is_family() && self.normalization().keeps(run))
    }

    /// Returns the length of the text of an id.
    pub(crate) fn text_size(&self, id: u32) -> usize {
        self.token_bytes(id).map_or(0, <[u8]>::len)
    }

    /// Encodes a normalized text. Keeps the ids around the tokens with numbers in `wanted`. Skips
    /// enough earlier ids, and leaves out enough later ids, that memory and time do not depend on
    /// them.
    fn align<'a>(
        &self,
        normal: Cow<'a, str>,
        alignment: Alignment,
        allowed: &Selection,
        wanted: Range<usize>,
    ) -> Result<Aligned<'a>> {
        let mut sink = JumpSink::new(wanted);
        self.encode_normal(&normal, allowed, &mut sink)?;
        let JumpSink { ids, jumps, skipped, .. } = sink;
        Ok(Aligned { ids, skipped, normal, alignment, jumps })
    }
}

impl Aligned<'_> {
    /// Appends the bytes of a prompt that each id covers, widened to whole characters; the text begins
    /// at byte `base` of the prompt.
    fn append_spans(
        &self,
        encoding: &Direct,
        base: usize,
        spans: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        reserve(spans, self.ids.len())?;
        for span in self.normal_spans(encoding) {
            let Range { start, end } = self.original(span?);
            spans.push(base + start..base + end);
        }
        Ok(())
    }

    /// Returns the bytes of the original text for a span of the normalized text, widened to whole
    /// characters.
    fn original(&self, span: Range<usize>) -> Range<usize> {
        self.alignment.original(floor(&self.normal, span.start)..ceil(&self.normal, span.end))
    }

    /// Returns the bytes of the normalized text that each id covers.
    fn normal_spans(&self, encoding: &Direct) -> impl Iterator<Item = Result<Range<usize>>> {
        let mut jumps = self.jumps.iter().peekable();
        let mut position = 0;
        self.ids.iter().enumerate().map(move |(index, &id)| {
            let jump = jumps.next_if(|jump| jump.index == index);
            let start = jump.map_or(position, |jump| jump.start);
            position = match jump.and_then(|jump| jump.end) {
                Some(end) => end,
                None => {
                    let token = encoding.token_bytes(id).ok_or(Error::UnknownId(id.into()))?;
                    start + token.len()
                }
            };
            Ok(start..position)
        })
    }
}
