//! Walks that record the position of each token.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use crate::char_boundary::{ceil, floor};
use crate::direct::Direct;
use crate::error::{Error, Result};
use crate::memory::reserve;
use crate::normalize::Alignment;
use crate::offsets::TokenEnd;
use crate::request::Request;
use crate::sink::{Places, Sink};
use crate::special_tokens::Selection;

/// The ids of a text, and the data to find the position of each id.
#[derive(Debug)]
pub struct Aligned<'a> {
    /// Ids, without skipped ones.
    pub ids: Vec<u32>,
    /// Number of ids that were skipped before them.
    skipped: usize,
    normal: Cow<'a, str>,
    alignment: Alignment,
    jumps: Vec<Jump>,
}

/// An id that does not start at the end of the previous id's bytes, because the pattern skips the
/// text between them or because either id is a special token, whose id may have several names.
#[derive(Debug)]
struct Jump {
    index: usize,
    start: usize,
    /// End of a special token.
    end: Option<usize>,
}

/// Keeps the ids in and around a range, and the jumps.
struct JumpSink {
    ids: Vec<u32>,
    jumps: Vec<Jump>,
    /// Start of the next id unless it is a jump; `None` if it is one anyway.
    expected: Option<usize>,
    /// Token numbers: ids before the range are skipped, and the walk ends after the range.
    wanted: Range<usize>,
    skipped: usize,
    /// Index of an id that is a jump: the ids before it can be skipped.
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
    const PLACES: Places = Places::Joined;

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
    /// Encodes `text` so that the position of each token can be found.
    pub fn encode_aligned<'a>(&self, text: &'a str, request: &Request) -> Result<Aligned<'a>> {
        let (normal, alignment) = self.prepare_aligned(text, request)?;
        self.align(normal, alignment, &request.allowed, 0..usize::MAX)
    }

    /// Encodes `text` without looking for disallowed names. Keeps the ids around the tokens with
    /// numbers in `wanted`: enough earlier ids are skipped, and enough later ids not produced, that
    /// memory and time do not grow with them.
    pub(crate) fn encode_aligned_around<'a>(
        &self,
        text: &'a str,
        allowed: &Selection,
        wanted: Range<usize>,
    ) -> Result<Aligned<'a>> {
        let (normal, alignment) = self.normalization().align(text)?;
        self.align(normal, alignment, allowed, wanted)
    }

    pub(crate) fn align<'a>(
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
    /// Returns the bytes of the text that each id covers, widened to whole characters: tokens that
    /// share a character overlap. `encoding` must be the encoding that produced the ids.
    pub fn spans(&self, encoding: &Direct) -> impl Iterator<Item = Result<Range<usize>>> {
        self.normal_spans(encoding).map(|span| {
            let Range { start, end } = span?;
            let span = floor(&self.normal, start)..ceil(&self.normal, end);
            Ok(self.alignment.original(span))
        })
    }

    /// Returns the end of each token.
    pub(crate) fn ends(&self, encoding: &Direct) -> impl Iterator<Item = Result<TokenEnd>> {
        self.normal_spans(encoding).zip(self.skipped + 1..).map(|(span, tokens)| {
            let end = span?.end;
            let characters = floor(&self.normal, end)..ceil(&self.normal, end);
            let Range { start: low, end: high } = self.alignment.original(characters);
            Ok(TokenEnd { tokens, low, high })
        })
    }

    /// Returns the number of tokens found, including skipped ones.
    pub(crate) fn total(&self) -> usize {
        self.skipped + self.ids.len()
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
