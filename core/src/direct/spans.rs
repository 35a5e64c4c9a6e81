//! Finds the bytes of the text that each token covers.

use std::ops::{ControlFlow, Range};

use crate::char_boundary::{ceil, floor};
use crate::direct::Direct;
use crate::error::Result;
use crate::memory::{reserve, with_capacity};
use crate::offsets::TokenEnd;
use crate::request::Request;
use crate::sink::Sink;
use crate::special_tokens::Selection;

/// Collects ids, and the bytes of the normalized text that each id covers.
struct SpanSink<'a> {
    direct: &'a Direct,
    ids: Vec<u32>,
    /// Spans of `ids`; spans of the last pieces are missing until [`SpanSink::locate`].
    spans: Vec<Range<usize>>,
    /// Start of the next span.
    position: usize,
    /// Token numbers: ids before the range are dropped, and the walk ends after the range.
    wanted: Range<usize>,
    dropped: usize,
}

impl<'a> SpanSink<'a> {
    fn new(direct: &'a Direct, wanted: Range<usize>) -> Self {
        Self { direct, ids: Vec::new(), spans: Vec::new(), position: 0, wanted, dropped: 0 }
    }

    /// Adds the missing spans: tokens of adjacent pieces are contiguous.
    fn locate(&mut self) {
        for &id in &self.ids[self.spans.len()..] {
            let start = self.position;
            self.position += self.direct.text_size(id);
            self.spans.push(start..self.position);
        }
    }
}

impl Sink for SpanSink<'_> {
    const HAS_POSITIONS: bool = true;

    fn ids(&mut self) -> &mut Vec<u32> {
        &mut self.ids
    }

    fn reserve(&mut self, ids: usize) -> Result<()> {
        reserve(&mut self.spans, ids)?;
        reserve(&mut self.ids, ids)
    }

    fn batch_done(&mut self) -> ControlFlow<()> {
        self.locate();
        let seen = self.dropped + self.ids.len();
        if seen > self.wanted.end {
            return ControlFlow::Break(());
        }
        if seen < self.wanted.start {
            self.dropped = seen;
            self.ids.clear();
            self.spans.clear();
        }
        ControlFlow::Continue(())
    }

    fn piece(&mut self, bytes: Range<usize>) {
        self.locate();
        self.position = bytes.start;
    }

    /// Records `bytes`, because the id of a special token may have several names.
    fn special(&mut self, bytes: Range<usize>) {
        self.locate();
        self.spans.push(bytes);
    }
}

impl Direct {
    /// Returns the ids of a text and, for each id, the range of bytes that it covers; `is_whole`
    /// widens ranges to whole characters, and is required if normalization changes the text.
    ///
    /// Fails like [`Direct::encode`].
    pub fn encode_with_spans(
        &self,
        text: &str,
        request: &Request,
        is_whole: bool,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let (normal, alignment) = self.normalization().align(text)?;
        request.check(self.special_tokens(), &normal)?;
        let mut sink = SpanSink::new(self, 0..usize::MAX);
        self.encode_normal(&normal, &request.allowed, &mut sink)?;
        if is_whole {
            for span in &mut sink.spans {
                *span = alignment.original(floor(&normal, span.start)..ceil(&normal, span.end));
            }
        }
        Ok((sink.ids, sink.spans))
    }

    /// Returns where tokens of a text end, and the number of tokens, without checking for
    /// disallowed names. Tokens outside `wanted` may be missing, and tokens after `wanted` may go
    /// uncounted: memory and time do not depend on them.
    pub(crate) fn token_ends(
        &self,
        text: &str,
        allowed: &Selection,
        wanted: Range<usize>,
    ) -> Result<(Vec<TokenEnd>, usize)> {
        let (normal, alignment) = self.normalization().align(text)?;
        let mut sink = SpanSink::new(self, wanted);
        self.encode_normal(&normal, allowed, &mut sink)?;
        let mut ends = with_capacity(sink.ids.len())?;
        ends.extend((sink.dropped + 1..).zip(&sink.spans).map(|(tokens, span)| {
            let end = floor(&normal, span.end)..ceil(&normal, span.end);
            let Range { start: low, end: high } = alignment.original(end);
            TokenEnd { tokens, low, high }
        }));
        Ok((ends, sink.dropped + sink.ids.len()))
    }

    /// Returns true if the concatenated texts of a run's ids equal the run.
    pub(crate) fn keeps_text(&self, run: &str) -> bool {
        // A pattern outside the families may skip text.
        self.splitter().is_family() && self.normalization().keeps(run)
    }

    /// Returns the length of an id's text.
    pub(crate) fn text_size(&self, id: u32) -> usize {
        self.token_bytes(id).map_or(0, <[u8]>::len)
    }
}
