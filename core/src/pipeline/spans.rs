//! Finds the bytes of a text that each id covers.

use std::ops::Range;

use crate::Request;
use crate::char_boundary::{ceil, floor};
use crate::memory::{append, push, reserve};
use crate::offsets::{TokenEnd, ends_of};
use crate::polling::poll;
use crate::special_tokens::Selection;

use crate::components::bytes::byte_of;
use crate::components::offsets::AlignedText;
use crate::components::split::Plan;
use crate::error::Result;
use crate::pipeline::assembly::Pipeline;
use crate::pipeline::segments::Prompt;
use crate::pipeline::tokens::PieceTracer;

impl Pipeline {
    /// Returns the ids of a text and, for each id, its bytes in the text, widened to whole
    /// characters: tokens that share a character overlap.
    ///
    /// Fails like [`Pipeline::encode_text`].
    pub fn encode_with_spans(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        if let Some(direct) = self.direct() {
            return direct.encode_with_spans(text, request, true);
        }
        self.check(text, request)?;
        let tokenizer = self.under(&request.allowed)?;
        if !self.model().is_sentencepiece() || tokenizer.keeps_out_of(text)? {
            return tokenizer.ids_and_spans(text);
        }
        let (mut ids, mut spans) = (Vec::new(), Vec::new());
        let mut pieces = PieceTracer(|piece: &AlignedText, added: Option<u32>| {
            tokenizer.each_span(piece, added, |id, (start, end)| {
                push(&mut ids, id)?;
                push(&mut spans, start..end)
            })
        });
        tokenizer.walk(text, &mut pieces)?;
        Ok((ids, spans))
    }

    /// Like [`Pipeline::encode_with_spans`], but a token that spells part of a character gets only
    /// the bytes of that part, if the text has them.
    pub fn encode_with_bytes(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let (ids, mut spans) = match self.direct() {
            Some(direct) if direct.normalization().keeps(text) => {
                return direct.encode_with_spans(text, request, false);
            }
            Some(direct) => direct.encode_with_spans(text, request, true)?,
            None => {
                self.check(text, request)?;
                self.under(&request.allowed)?.ids_and_spans(text)?
            }
        };
        self.narrow(text, &ids, &mut spans)?;
        Ok((ids, spans))
    }

    /// Returns the ids of a text and, for each id, its bytes as defined by the tokenizer's format:
    /// as in [`Pipeline::encode_with_bytes`] unless the format differs.
    pub fn encode_with_places(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        match self.model().is_sentencepiece() {
            true => self.encode_with_spans(text, request),
            false => self.encode_with_bytes(text, request),
        }
    }

    /// Returns where the tokens of a text end, and the number of tokens. Tokens outside `wanted`
    /// may be missing, and tokens after `wanted` may go uncounted.
    pub fn token_ends(
        &self,
        text: &str,
        allowed: &Selection,
        wanted: Range<usize>,
    ) -> Result<(Vec<TokenEnd>, usize)> {
        if let Some(direct) = self.direct() {
            return direct.token_ends(text, allowed, wanted);
        }
        let (ids, mut spans) = self.under(allowed)?.ids_and_spans(text)?;
        self.place_bytes(text, &ids, &mut spans)?;
        Ok((ends_of(&spans), ids.len()))
    }

    /// Appends the ids of a run of `prompt` and, for each id, its bytes in the prompt.
    pub fn encode_run_with_spans(
        &self,
        prompt: &Prompt,
        run: Range<usize>,
        ids: &mut Vec<u32>,
        spans: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        let Some(direct) = self.direct() else {
            let is_first = prompt.is_first(&run);
            return self.encode_traced(prompt, run, is_first, ids, spans);
        };
        let text = &prompt.text()[run.clone()];
        let (run_ids, run_spans) = direct.encode_with_spans(text, &Request::ORDINARY, true)?;
        append(ids, &run_ids)?;
        reserve(spans, run_spans.len())?;
        spans.extend(run_spans.iter().map(|span| run.start + span.start..run.start + span.end));
        Ok(())
    }

    /// Returns true if the concatenated texts of a run's ids equal the run.
    pub fn keeps_text(&self, run: &str) -> Result<bool> {
        if let Some(direct) = self.direct() {
            return Ok(direct.keeps_text(run));
        }
        let is_plain = matches!(self.split().plan(), Plan::Pattern { prefix_space: false, .. })
            && self.model().bpe_by_ranks().is_some_and(|bpe| bpe.keeps_bytes(run));
        match self.normalizer() {
            _ if !is_plain => Ok(false),
            None => Ok(true),
            Some(_) if self.added().has_normalized() => Ok(false),
            Some(normalizer) => Ok(normalizer.apply(run.into())? == run),
        }
    }

    /// Returns the length of an id's text, in a run whose ids spell its text.
    pub fn text_size(&self, id: u32) -> usize {
        if let Some(direct) = self.direct() {
            return direct.text_size(id);
        }
        self.model().bpe_by_ranks().and_then(|bpe| bpe.token_bytes(id)).map_or(0, <[u8]>::len)
    }

    /// Narrows spans of whole characters to the bytes of each token, if the text has these bytes.
    fn narrow(&self, text: &str, ids: &[u32], spans: &mut [Range<usize>]) -> Result<()> {
        if text.is_ascii() || self.token_table().is_err() {
            return Ok(());
        }
        let (mut last, mut token) = (0, Vec::new());
        for (&id, span) in ids.iter().zip(spans) {
            token.clear();
            self.append_token(id, &mut token)?;
            let start = if span.contains(&last) { last } else { span.start };
            let end = start + token.len();
            let is_same = floor(text, start) == span.start
                && end <= text.len()
                && ceil(text, end) == span.end
                && text.as_bytes()[start..end] == token;
            if is_same {
                *span = start..end;
            }
            last = span.end;
        }
        Ok(())
    }

    /// Returns the ids of a text and, for each id, its source bytes: all bytes that a normalizer
    /// rewrites together.
    fn ids_and_spans(&self, text: &str) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let prompt = Prompt::of_text(self, text, self.selection()?)?;
        let (mut ids, mut spans) = (Vec::new(), Vec::new());
        prompt.encode_with_spans(self, &mut ids, &mut spans)?;
        Ok((ids, spans))
    }

    /// Assigns byte tokens to their characters if a model turns several characters into bytes
    /// together.
    fn place_bytes(&self, text: &str, ids: &[u32], spans: &mut [Range<usize>]) -> Result<()> {
        let is_byte = |id, byte| self.id_to_token(id).and_then(|it| byte_of(&it)) == Some(byte);
        let mut start = 0;
        while let Some(span) = spans.get(start).cloned() {
            let count = spans[start..].iter().take_while(|other| **other == span).count();
            poll(count)?;
            let mut run = ids[start..].iter().zip(&text.as_bytes()[span.clone()]);
            if count > 1
                && count == span.len()
                && run.all(|(&id, &byte)| is_byte(id, byte))
                && let Some(characters) = text.get(span.clone())
            {
                let mut next = start;
                for (at, character) in characters.char_indices() {
                    let (at, size) = (span.start + at, character.len_utf8());
                    spans[next..next + size].fill(at..at + size);
                    next += size;
                }
            }
            start += count;
        }
        Ok(())
    }
}
