//! Counts the tokens of a text that is cut, by what is known of the text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use super::long_piece::LongPiece;
use super::walk::{Border, Walk};
use super::{LONG_PIECE, Truncator};
use crate::error::Result;
use crate::split::CutPiece;

/// A text of which some borders between pieces are known.
pub(super) struct SplitText<'a> {
    truncator: Truncator<'a>,
    text: &'a str,
    walk: &'a Walk<'a>,
    long: Option<LongPiece<'a>>,
    /// The long piece, if it is one character over and over and stays one piece when it is cut.
    run: Option<Range<usize>>,
    /// How many tokens there are from some places on, those where pieces of a long suffix start. (Two
    /// suffixes of digits have pieces of the same three digits, or none.)
    rests: RefCell<HashMap<usize, usize>>,
    /// Pieces that many cuts go through.
    pieces: RefCell<[Option<CutPiece>; PIECES]>,
    /// The last stretch in which suffixes of a piece of the text may begin, and its end.
    suffixes: RefCell<(Range<usize>, usize)>,
}

/// Of a suffix with at least as many pieces that are none of the text it is kept where the first of
/// them start.
const KEPT_STARTS: usize = 8;

/// How many pieces are kept, the last ones looked at.
const PIECES: usize = 8;

/// The most bytes of a character.
pub(super) const CHARACTER: usize = 4;

impl<'a> SplitText<'a> {
    pub(super) fn new(
        truncator: Truncator<'a>,
        text: &'a str,
        walk: &'a Walk<'a>,
        long: Option<LongPiece<'a>>,
    ) -> Self {
        let splitter = truncator.encoding.splitter();
        let run = long.as_ref().filter(|long| long.is_run).map(|long| long.span().clone());
        let run = run.filter(|run| splitter.is_settled(text, run.start));
        Self {
            truncator,
            text,
            walk,
            long,
            run,
            rests: RefCell::default(),
            pieces: RefCell::default(),
            suffixes: RefCell::default(),
        }
    }

    /// The last place, `high` or before it, up to which the text may have `limit` tokens.
    pub(super) fn last_end(&self, high: usize, limit: usize) -> Result<usize> {
        last_end(self.truncator, self.text, self.walk, high, limit)
    }

    /// The first place, `low` or behind it, from which on the text up to `anchor`, a safe cut, may have
    /// `limit` tokens.
    pub(super) fn first_start(&self, low: usize, anchor: Border, limit: usize) -> Result<usize> {
        let is_family = self.truncator.encoding.splitter().is_family();
        if !is_family || self.walk.has_special(low, anchor.position) {
            return Ok(low);
        }
        let longest = self.truncator.encoding.longest_tokens()?;
        let start = |bytes: &[u8]| longest.furthest_start(bytes, limit);
        Ok(self.walk.first_covered(self.text, low..anchor.position, start))
    }

    /// The run that is cut, if that is before its end and up to `high`, and the tokens before it.
    pub(super) fn run_to_cut(&self, high: usize) -> Option<(Range<usize>, usize)> {
        let run = self.run.clone().filter(|run| run.start < high && high < run.end)?;
        let before = self.long.as_ref()?.before;
        (self.walk.is_normal() && !self.walk.has_special(run.start, run.end))
            .then_some((run, before))
    }

    /// The run that is cut, if that is behind its start and at `low` at least, and it ends at `end`.
    pub(super) fn run_to_start(&self, low: usize, end: usize) -> Option<Range<usize>> {
        let run = self.run.clone().filter(|run| run.start < low && run.end == end)?;
        (self.walk.is_normal() && !self.walk.has_special(run.start, run.end)).then_some(run)
    }

    /// The tokens of the text up to `end`; some number above `limit` if there are more than that.
    /// `None` where only encoding all of it can tell.
    ///
    /// The pieces before a settled border are those of the text. From there on pieces are cut one
    /// after the other: where each ends depends on nothing before it.
    pub(super) fn prefix(&self, end: usize, limit: usize) -> Result<Option<usize>> {
        let splitter = self.truncator.encoding.splitter();
        if !self.walk.is_normal() || !splitter.is_family() {
            return Ok(None);
        }
        if let (Some(run), Some(long)) = (&self.run, &self.long)
            && run.start < end
            && end <= run.end
            && !self.walk.has_special(run.start, end)
        {
            let mut ids = self.truncator.memo.ids.borrow_mut();
            return Ok(Some(long.before + long.prefix(end, &mut ids)?));
        }
        let borders = &self.walk.borders;
        let known = borders.partition_point(|border| border.position <= end);
        let is_settled = |border: &Border| splitter.is_settled_in(self.text, border.position, end);
        let Some(mut at) = borders[..known].iter().rposition(is_settled) else { return Ok(None) };
        let Border { mut position, before: mut count } = borders[at];
        if self.walk.has_special(position, end) {
            return Ok(None);
        }
        while position < end && count <= limit {
            let next = self.piece_end(position, end);
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

    /// The end of the piece that begins at `start` where the text is cut at `end`.
    fn piece_end(&self, start: usize, end: usize) -> usize {
        let splitter = self.truncator.encoding.splitter();
        let mut pieces = self.pieces.borrow_mut();
        let kept = pieces.iter().flatten().find(|piece| piece.covers(start)).copied();
        let piece = kept.or_else(|| {
            pieces.rotate_right(1);
            pieces[0] = splitter.cut_piece(self.text, start);
            pieces[0]
        });
        let known = piece.and_then(|piece| piece.end_with_cut(self.text, start, end));
        known.unwrap_or_else(|| splitter.piece_end(&self.text[..end], start).unwrap_or(end))
    }

    /// The end of the piece that begins at `start` of a suffix of `text`.
    fn piece_of_suffix(&self, text: &str, start: usize) -> usize {
        let mut known = self.suffixes.borrow_mut();
        if known.0.contains(&start) {
            return known.1;
        }
        let Some(piece) = self.truncator.encoding.splitter().cut_piece(text, start) else {
            return text.len();
        };
        *known = (piece.suffixes(text), piece.end());
        piece.end()
    }

    /// The tokens of the text from `start` on. `None` where only encoding all of it can tell. The text
    /// has `total` tokens.
    ///
    /// Once a piece ends at a border of the text, the rest has the pieces of the text.
    pub(super) fn suffix(&self, start: usize, total: usize) -> Result<Option<usize>> {
        let splitter = self.truncator.encoding.splitter();
        if !self.walk.is_normal() || !splitter.is_family() {
            return Ok(None);
        }
        let borders = &self.walk.borders;
        // Up to where there is text without special tokens.
        let special = self.walk.special.iter().find(|span| start < span.end);
        let end = special.map_or(self.text.len(), |span| span.start);
        let text = &self.text[..end];
        let mut at = borders.partition_point(|border| border.position < start);
        let (mut position, mut count) = (start, 0);
        let mut starts = Vec::new();
        loop {
            while borders.get(at).is_some_and(|border| border.position < position) {
                at += 1;
            }
            if let Some(border) = borders.get(at).filter(|border| border.position == position) {
                count += total - border.before;
                break;
            }
            if let Some(rest) = self.rests.borrow().get(&position) {
                count += rest;
                break;
            }
            if position == self.text.len() {
                break;
            }
            if position >= end {
                return Ok(None);
            }
            if starts.len() < KEPT_STARTS {
                starts.push((position, count));
            }
            let next = match &self.run {
                // (The last character of a run may begin another piece.)
                Some(run) if run.start <= position && position + CHARACTER < run.end => run.end,
                _ => self.piece_of_suffix(text, position),
            };
            if next > self.walk.searched {
                return Ok(None);
            }
            count += self.count_piece(position, next)?;
            position = next;
        }
        if starts.len() == KEPT_STARTS {
            let mut rests = self.rests.borrow_mut();
            rests.extend(starts.into_iter().map(|(start, before)| (start, count - before)));
        }
        Ok(Some(count))
    }

    /// The tokens of a piece of the cut text.
    fn count_piece(&self, start: usize, end: usize) -> Result<usize> {
        let Truncator { encoding, memo, .. } = self.truncator;
        let span = start..end;
        let mut ids = memo.ids.borrow_mut();
        let long = self.long.as_ref().filter(|_| span.len() > LONG_PIECE);
        match long {
            Some(long) if long.begins_with(&span) => long.prefix(end, &mut ids),
            Some(long) if long.ends_with(&span) => long.suffix(start, &mut ids),
            _ => encoding.count_piece(&self.text.as_bytes()[span], &mut ids),
        }
    }
}

/// The last place, `high` or before it, up to which `text` may have `limit` tokens: it has more up to
/// every place behind that, whatever its tokens.
pub(super) fn last_end(
    truncator: Truncator<'_>,
    text: &str,
    walk: &Walk<'_>,
    high: usize,
    limit: usize,
) -> Result<usize> {
    let splitter = truncator.encoding.splitter();
    // A cut may change how what it is inside of is normalized. Where a token fits behind the border that
    // is further than the pattern looks ahead.
    let most = if walk.is_normal() { Some(limit) } else { limit.checked_sub(1) };
    let mut settled = walk.borders.iter().rev().filter(|border| {
        border.position <= high
            && most.is_some_and(|most| border.before <= most)
            && walk.is_settled(splitter, text, border.position)
    });
    let Some(border) = settled.next() else { return Ok(high) };
    if walk.has_special(border.position, high) {
        return Ok(high);
    }
    let longest = truncator.encoding.longest_tokens()?;
    let end = |bytes: &[u8]| longest.furthest_end(bytes, limit - border.before);
    Ok(walk.last_covered(text, border.position..high, end))
}
