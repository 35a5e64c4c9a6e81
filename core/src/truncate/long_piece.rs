//! The tokens of a long piece, to count those of its parts.

use std::ops::Range;

use super::walk::{Border, Walk};
use super::{LONG_PIECE, NEAR, Truncator};
use crate::error::Result;
use crate::memory::reserve;

/// A piece of more than [`LONG_PIECE`] bytes. All places are those of the normalized text.
pub(super) struct LongPiece<'a> {
    truncator: Truncator<'a>,
    walk: &'a Walk<'a>,
    text: &'a str,
    span: Range<usize>,
    /// Tokens of the text before it.
    pub(super) before: usize,
    ids: &'a [u32],
    /// Whether it is one character over and over: then so are its parts, each of them one piece.
    pub(super) is_run: bool,
    /// The borders between its tokens at which the text can be cut; the last is its end.
    borders: Vec<Border>,
}

impl<'a> Truncator<'a> {
    /// The piece at `span` of the text, if it is long, which is the one in which `walk` passed its limit;
    /// `before` tokens are before it.
    pub(super) fn long_piece(
        &self,
        span: Range<usize>,
        before: usize,
        walk: &'a Walk<'a>,
    ) -> Result<Option<LongPiece<'a>>> {
        let text = &*walk.normal;
        let Some(span) = walk.normal_span(&span).filter(|span| span.len() > LONG_PIECE) else {
            return Ok(None);
        };
        let (encoding, ids) = (self.encoding, &walk.passed[..]);
        let mut borders = Vec::new();
        reserve(&mut borders, ids.len() + 1)?;
        let mut position = span.start;
        for (index, &id) in ids.iter().enumerate() {
            if walk.place(position).is_some() {
                borders.push(Border { position, before: before + index });
            }
            position += encoding.token_bytes(id).map_or(0, <[u8]>::len);
        }
        borders.push(Border { position: span.end, before: before + ids.len() });
        let is_covered = position == span.end;
        let is_run = is_run(&text[span.clone()]);
        Ok(is_covered.then_some(LongPiece {
            truncator: *self,
            walk,
            text,
            span,
            before,
            is_run,
            ids,
            borders,
        }))
    }
}

impl LongPiece<'_> {
    /// Where this piece starts and ends.
    pub(super) fn span(&self) -> &Range<usize> {
        &self.span
    }

    /// Tokens of the text up to its end.
    pub(super) fn behind(&self) -> usize {
        self.before + self.ids.len()
    }

    /// How many of its borders have at most `limit` tokens before them.
    pub(super) fn borders_within(&self, limit: usize) -> usize {
        self.borders.partition_point(|border| border.before <= limit)
    }

    /// One of its borders, as a place in the text.
    pub(super) fn border(&self, index: usize) -> Option<Border> {
        let &Border { position, before } = self.borders.get(index)?;
        self.walk.place(position).map(|position| Border { position, before })
    }

    /// Whether the bytes of `part` are the beginning of this piece.
    pub(super) fn begins_with(&self, part: &Range<usize>) -> bool {
        part.start == self.span.start && part.end <= self.span.end
    }

    /// Whether the bytes of `part` are the end of this piece.
    pub(super) fn ends_with(&self, part: &Range<usize>) -> bool {
        part.end == self.span.end && part.start >= self.span.start
    }

    /// Whether a cut of the piece behind the border at `position`, up to `end`, leaves the tokens before it
    /// as they are: whatever token stands first behind it, the last one before it stays apart from it.
    pub(super) fn ends_tokens(&self, position: usize, end: usize) -> bool {
        let Some(index) = self.token_at(position).and_then(|index| index.checked_sub(1)) else {
            return false;
        };
        let bytes = &self.text.as_bytes()[position..end];
        let mut tokens = (1..=bytes.len()).filter_map(|length| self.token(&bytes[..length]));
        tokens.all(|token| self.truncator.stay_apart(self.ids[index], token))
    }

    /// The same for a cut before the border, from `start` on, and the tokens behind it.
    pub(super) fn starts_tokens(&self, position: usize, start: usize) -> bool {
        let next = self.token_at(position).and_then(|index| self.ids.get(index));
        let Some(&next) = next else { return false };
        let bytes = &self.text.as_bytes()[start..position];
        let mut tokens = (0..bytes.len()).filter_map(|from| self.token(&bytes[from..]));
        tokens.all(|token| self.truncator.stay_apart(token, next))
    }

    /// The tokens of the text before the border at `position`.
    pub(super) fn tokens_before(&self, position: usize) -> Option<usize> {
        self.token_at(position).map(|index| self.before + index)
    }

    /// The index of the token that starts at `position`, or of the end.
    fn token_at(&self, position: usize) -> Option<usize> {
        let index = self.borders.binary_search_by_key(&position, |border| border.position).ok()?;
        Some(self.borders[index].before - self.before)
    }

    /// The id of the token that is `bytes`.
    fn token(&self, bytes: &[u8]) -> Option<u32> {
        let vocabulary = self.truncator.encoding.vocabulary();
        vocabulary.rank(bytes).map(|rank| vocabulary.id(rank))
    }

    /// The tokens of the piece up to `end`, which is a piece on its own. `ids` is overwritten.
    pub(super) fn prefix(&self, end: usize, ids: &mut Vec<u32>) -> Result<usize> {
        if self.is_run {
            // Its tokens all depend on its length, and the cache knows them.
            return self.truncator.count_piece(&self.text.as_bytes()[self.span.start..end], ids);
        }
        let next = self.borders.partition_point(|border| border.position < end);
        for near in NEAR {
            // From the start of the piece it is a count like any other.
            let Some(index) = next.checked_sub(near).filter(|&index| index > 0) else { break };
            let Border { position, before } = self.borders[index];
            self.truncator.encode_piece(&self.text.as_bytes()[position..end], ids)?;
            let tokens_before = before - self.before;
            if self.truncator.stay_apart(self.ids[tokens_before - 1], ids[0]) {
                return Ok(tokens_before + ids.len());
            }
        }
        self.truncator.count_piece(&self.text.as_bytes()[self.span.start..end], ids)
    }

    /// The tokens of the piece from `start` on, which is a piece on its own.
    pub(super) fn suffix(&self, start: usize, ids: &mut Vec<u32>) -> Result<usize> {
        let next = self.borders.partition_point(|border| border.position <= start);
        for near in NEAR.into_iter().filter(|_| !self.is_run) {
            let Some(border) = self.borders.get(next + near - 1) else { break };
            let Some(&id) = self.ids.get(border.before - self.before) else { break };
            self.truncator.encode_piece(&self.text.as_bytes()[start..border.position], ids)?;
            if self.truncator.stay_apart(ids[ids.len() - 1], id) {
                return Ok(ids.len() + self.ids.len() - (border.before - self.before));
            }
        }
        self.truncator.count_piece(&self.text.as_bytes()[start..self.span.end], ids)
    }
}

/// Whether `text`, not empty, is one character over and over.
fn is_run(text: &str) -> bool {
    let width = text.chars().next().map_or(0, char::len_utf8);
    text.as_bytes()[width..] == text.as_bytes()[..text.len() - width]
}
