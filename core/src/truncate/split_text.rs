//! Counts the tokens of a text that is cut, by what is known of the text.

use super::long_piece::LongPiece;
use super::walk::{Border, Walk};
use super::{LONG_PIECE, Truncator};
use crate::error::Result;

/// A text of which some borders between pieces are known.
pub(super) struct SplitText<'a> {
    pub(super) truncator: Truncator<'a>,
    pub(super) text: &'a str,
    pub(super) walk: &'a Walk,
    pub(super) long: Option<LongPiece<'a>>,
}

impl SplitText<'_> {
    /// The tokens of the text up to `end`; some number above `limit` if there are more than that.
    /// `None` where only encoding all of it can tell.
    ///
    /// The pieces before a settled border are those of the text. From there on pieces are cut one
    /// after the other: where each ends depends on nothing before it.
    pub(super) fn prefix(&self, end: usize, limit: usize) -> Result<Option<usize>> {
        let splitter = self.truncator.encoding.splitter();
        if !self.walk.is_normal || !splitter.is_family() {
            return Ok(None);
        }
        let borders = &self.walk.borders;
        let known = borders.partition_point(|border| border.position <= end);
        let is_settled = |border: &Border| splitter.is_settled(self.text, border.position);
        let Some(mut at) = borders[..known].iter().rposition(is_settled) else { return Ok(None) };
        let Border { mut position, before: mut count } = borders[at];
        if self.walk.special.iter().any(|span| position < span.end && span.start < end) {
            return Ok(None);
        }
        let text = &self.text[..end];
        while position < end && count <= limit {
            let Some(next) = splitter.piece_end(text, position) else { return Ok(None) };
            while at + 1 < known && borders[at].position < position {
                at += 1;
            }
            // (Behind the first border some may be left out.)
            let is_known = at > 0
                && borders[at].position == position
                && borders.get(at + 1).is_some_and(|border| border.position == next);
            count += if is_known {
                borders[at + 1].before - borders[at].before
            } else {
                self.count_piece(position, next)?
            };
            position = next;
        }
        Ok(Some(count))
    }

    /// The tokens of the text from `start` on; some number above `limit` if there are more than
    /// that. `None` where only encoding all of it can tell. The text has `total` tokens.
    ///
    /// Once a piece ends at a border of the text, the rest has the pieces of the text.
    pub(super) fn suffix(&self, start: usize, total: usize, limit: usize) -> Result<Option<usize>> {
        let splitter = self.truncator.encoding.splitter();
        if !self.walk.is_normal || !splitter.is_family() {
            return Ok(None);
        }
        let borders = &self.walk.borders;
        // Up to where there is text without special tokens.
        let special = self.walk.special.iter().find(|span| start < span.end);
        let end = special.map_or(self.text.len(), |span| span.start);
        let text = &self.text[..end];
        let mut at = borders.partition_point(|border| border.position < start);
        let (mut position, mut count) = (start, 0);
        while count <= limit {
            while borders.get(at).is_some_and(|border| border.position < position) {
                at += 1;
            }
            if let Some(border) = borders.get(at).filter(|border| border.position == position) {
                return Ok(Some(count + total - border.before));
            }
            if position == self.text.len() {
                return Ok(Some(count));
            }
            if position >= end {
                return Ok(None);
            }
            let Some(next) = splitter.piece_end(text, position) else { return Ok(None) };
            if next > self.walk.searched {
                return Ok(None);
            }
            count += self.count_piece(position, next)?;
            position = next;
        }
        Ok(Some(count))
    }

    /// The tokens of a piece of the cut text.
    fn count_piece(&self, start: usize, end: usize) -> Result<usize> {
        let span = start..end;
        match &self.long {
            Some(long) if span.len() > LONG_PIECE && long.begins_with(&span) => long.prefix(end),
            Some(long) if span.len() > LONG_PIECE && long.ends_with(&span) => long.suffix(start),
            _ => self.truncator.encoding.count_piece(&self.text.as_bytes()[span]),
        }
    }
}
