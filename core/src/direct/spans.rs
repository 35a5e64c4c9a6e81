//! The bytes of the text that each token covers, for texts and for runs of prompts.

use std::ops::Range;

use crate::direct::Direct;
use crate::error::Result;
use crate::memory::{append, reserve, with_capacity};
use crate::offsets::TokenEnd;
use crate::request::Request;
use crate::sink::Count;
use crate::special_tokens::Selection;

impl Direct {
    /// Returns the ids of a text and, for each id, the bytes of the text it comes from, widened to
    /// whole characters: tokens that share a character overlap.
    ///
    /// Fails like [`Direct::encode`].
    pub(crate) fn encode_with_spans(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let aligned = self.encode_aligned(text, request)?;
        let mut spans = with_capacity(aligned.ids.len())?;
        for span in aligned.spans(self) {
            spans.push(span?);
        }
        Ok((aligned.ids, spans))
    }

    /// Returns the ids of a text and the bytes that each token keeps: tokens are contiguous.
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

    /// Returns the ends of tokens of a text, and the number of tokens. Tokens with numbers outside
    /// `wanted` may be missing, and tokens after its end need not be counted.
    pub(crate) fn token_ends(
        &self,
        text: &str,
        allowed: &Selection,
        wanted: Range<usize>,
    ) -> Result<(Vec<TokenEnd>, usize)> {
        let aligned = self.encode_aligned_around(text, allowed, wanted)?;
        let mut ends = with_capacity(aligned.ids.len())?;
        for end in aligned.ends(self) {
            ends.push(end?);
        }
        Ok((ends, aligned.total()))
    }

    /// Appends the ids of a run that begins at byte `base` of its prompt and, for each id, the
    /// bytes of the prompt it comes from.
    pub(crate) fn encode_run_with_spans(
        &self,
        run: &str,
        base: usize,
        ids: &mut Vec<u32>,
        spans: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        let (normal, alignment) = self.normalization().align(run)?;
        let aligned = self.align(normal, alignment, &Selection::None, 0..usize::MAX)?;
        reserve(spans, aligned.ids.len())?;
        for span in aligned.spans(self) {
            let Range { start, end } = span?;
            spans.push(base + start..base + end);
        }
        append(ids, &aligned.ids)
    }

    /// Returns true if the concatenated texts of a run's ids are the run.
    pub(crate) fn keeps_text(&self, run: &str) -> Result<bool> {
        // Another pattern may skip text.
        Ok(self.splitter().is_family() && self.normalization().keeps(run))
    }

    /// Returns the length of the text of an id.
    pub(crate) fn text_size(&self, id: u32) -> usize {
        self.token_bytes(id).map_or(0, <[u8]>::len)
    }

    /// Returns the number of tokens of a text, or any number above `limit`.
    pub(crate) fn count(&self, text: &str, limit: usize, request: &Request) -> Result<usize> {
        let mut count = Count::till(limit);
        self.encode(text, request, &mut count)?;
        Ok(count.total)
    }
}
