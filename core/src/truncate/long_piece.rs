//! The tokens of a long piece, to count those of its parts.

use std::ops::Range;

use super::walk::{Border, Walk};
use super::{LONG_PIECE, Truncator};
use crate::encoding::Encoding;
use crate::error::Result;
use crate::memory::reserve;

/// A piece of more than [`LONG_PIECE`] bytes. All places are those of the normalized text.
pub(super) struct LongPiece<'a> {
    encoding: &'a Encoding,
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

/// How many tokens are encoded again, those next to a cut, before all of a part is: a token further
/// away seldom depends on the cut.
const NEAR: [usize; 4] = [1, 2, 4, 8];

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
            encoding,
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

    /// The tokens of the piece up to `end`, which is a piece on its own.
    ///
    /// Two sequences of ids, each the encoding of its bytes, are together the encoding of all of the
    /// bytes if the last id of the one and the first of the other stay apart on their own, in ordered
    /// vocabularies.
    ///
    /// `ids` is overwritten.
    pub(super) fn prefix(&self, end: usize, ids: &mut Vec<u32>) -> Result<usize> {
        if self.is_run {
            // Its tokens all depend on its length, and the cache knows them.
            return self.encoding.count_piece(&self.text.as_bytes()[self.span.start..end], ids);
        }
        let next = self.borders.partition_point(|border| border.position < end);
        for near in NEAR {
            // From the start of the piece it is a count like any other.
            let Some(index) = next.checked_sub(near).filter(|&index| index > 0) else { break };
            let Border { position, before } = self.borders[index];
            ids.clear();
            self.encoding.encode_piece(&self.text.as_bytes()[position..end], ids)?;
            let tokens_before = before - self.before;
            if self.encoding.stay_apart(self.ids[tokens_before - 1], ids[0]) {
                return Ok(tokens_before + ids.len());
            }
        }
        self.encoding.count_piece(&self.text.as_bytes()[self.span.start..end], ids)
    }

    /// The tokens of the piece from `start` on, which is a piece on its own.
    pub(super) fn suffix(&self, start: usize, ids: &mut Vec<u32>) -> Result<usize> {
        let next = self.borders.partition_point(|border| border.position <= start);
        for near in NEAR.into_iter().filter(|_| !self.is_run) {
            let Some(border) = self.borders.get(next + near - 1) else { break };
            let Some(&id) = self.ids.get(border.before - self.before) else { break };
            ids.clear();
            self.encoding.encode_piece(&self.text.as_bytes()[start..border.position], ids)?;
            if self.encoding.stay_apart(ids[ids.len() - 1], id) {
                return Ok(ids.len() + self.ids.len() - (border.before - self.before));
            }
        }
        self.encoding.count_piece(&self.text.as_bytes()[start..self.span.end], ids)
    }
}

/// Whether `text`, not empty, is one character over and over.
fn is_run(text: &str) -> bool {
    let width = text.chars().next().map_or(0, char::len_utf8);
    text.as_bytes()[width..] == text.as_bytes()[..text.len() - width]
}
