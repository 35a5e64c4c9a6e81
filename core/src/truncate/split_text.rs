//! Counts the tokens of a text that is cut, by what is known of the text.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;

use super::long_piece::LongPiece;
use super::walk::{Border, Walk};
use super::{LONG_PIECE, Truncator};
use crate::error::Result;
use crate::split::CutPiece;

/// A text of which some borders between pieces are known. All places are those of its normalized form,
/// but for what the methods take and return.
pub(super) struct SplitText<'a> {
    truncator: Truncator<'a>,
    text: &'a str,
    walk: &'a Walk<'a>,
    borders: Cow<'a, [Border]>,
    long: Option<LongPiece<'a>>,
    /// The long piece, if it is one character over and over and stays one piece when it is cut.
    run: Option<Range<usize>>,
    /// The ends up to which the long piece is one piece, and the starts from which on it is.
    ends: OnceCell<Range<usize>>,
    starts: OnceCell<Range<usize>>,
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

/// Up to this many places are sooner tried than ruled out together.
const FEW: usize = 8;

/// How many pieces are kept, the last ones looked at.
const PIECES: usize = 8;

/// The most bytes of a character.
pub(super) const CHARACTER: usize = 4;

impl<'a> SplitText<'a> {
    pub(super) fn new(
        truncator: Truncator<'a>,
        walk: &'a Walk<'a>,
        long: Option<LongPiece<'a>>,
    ) -> Self {
        let text = &*walk.normal;
        let splitter = truncator.encoding.splitter();
        let run = long.as_ref().filter(|long| long.is_run).map(|long| long.span().clone());
        let run = run.filter(|run| splitter.is_settled(text, run.start));
        Self {
            truncator,
            text,
            walk,
            borders: walk.normal_borders(),
            long,
            run,
            ends: OnceCell::new(),
            starts: OnceCell::new(),
            rests: RefCell::default(),
            pieces: RefCell::default(),
            suffixes: RefCell::default(),
        }
    }

    /// Where the long piece is, if it may be cut without regard to anything else.
    fn span_to_cut(&self) -> Option<Range<usize>> {
        let span = self.long.as_ref()?.span();
        (!self.has_special(span.start, span.end)).then(|| span.clone())
    }

    /// The places up to each of which the long piece is one piece of the text that is cut there.
    fn ends(&self) -> &Range<usize> {
        self.ends.get_or_init(|| {
            let Some(Range { start, end }) = self.span_to_cut() else { return 0..0 };
            if self.run.is_some() {
                return start + 1..end + 1;
            }
            let splitter = self.truncator.encoding.splitter();
            let piece = splitter.cut_piece(self.text, start).filter(|piece| piece.end() == end);
            let ends = piece.filter(|_| splitter.is_settled(self.text, start));
            ends.and_then(|piece| piece.prefixes(self.text)).unwrap_or_default()
        })
    }

    /// The places from each of which on the long piece is one piece.
    fn starts(&self) -> &Range<usize> {
        self.starts.get_or_init(|| {
            let Some(Range { start, end }) = self.span_to_cut() else { return 0..0 };
            if self.run.is_some() {
                // (The last character of a run may begin another piece.)
                return start..end.saturating_sub(CHARACTER);
            }
            let piece = self.truncator.encoding.splitter().cut_piece(self.text, start);
            let piece = piece.filter(|piece| piece.end() == end);
            piece.map(|piece| piece.suffixes(self.text)).unwrap_or_default()
        })
    }

    /// Whether the long piece has more tokens up to each place behind `near`, up to `high`, than up to
    /// `near`, after `limit` tokens of the text. False where that is not known, or few places are left.
    pub(super) fn is_passed_behind(&self, near: usize, high: usize, limit: usize) -> bool {
        high > near + FEW
            && self.walk.is_normal()
            && [near, high].iter().all(|place| self.ends().contains(place))
            && self.long.as_ref().is_some_and(|long| {
                long.tokens_before(near) == Some(limit) && long.ends_tokens(near, high)
            })
    }

    /// The same for the places before `near`, from `low` on; `before` tokens are before `near`.
    pub(super) fn is_passed_before(&self, low: usize, near: usize, before: usize) -> bool {
        near > low + FEW
            && self.walk.is_normal()
            && [low, near].iter().all(|place| self.starts().contains(place))
            && self.long.as_ref().is_some_and(|long| {
                long.tokens_before(near) == Some(before) && long.starts_tokens(near, low)
            })
    }

    /// The run that is cut, if it goes on so far behind `high` that no token reaches its end, and the
    /// tokens before it.
    pub(super) fn run_to_cut(&self, high: usize) -> Result<Option<(Range<usize>, usize)>> {
        let run = self.run_in_text(|run| run.start < high && high < run.end);
        let (Some(run), Some(long)) = (run, &self.long) else { return Ok(None) };
        let longest = self.truncator.encoding.longest_tokens()?;
        let longest = longest.longest_beginning(&self.text.as_bytes()[run.clone()]);
        Ok((run.end - high >= longest).then_some((run, long.before)))
    }

    /// The run that is cut, if no token from `low` on reaches its start, and it ends at `end`.
    pub(super) fn run_to_start(&self, low: usize, end: usize) -> Result<Option<Range<usize>>> {
        let run = self.run_in_text(|run| run.start < low && run.end == end);
        let Some(run) = run else { return Ok(None) };
        let longest = self.truncator.encoding.longest_tokens()?;
        let longest = longest.longest_ending(&self.text.as_bytes()[run.clone()]);
        Ok((low - run.start >= longest).then_some(run))
    }

    /// The run, if this holds for it and nothing but its tokens is in it.
    fn run_in_text(&self, is_wanted: impl FnOnce(&Range<usize>) -> bool) -> Option<Range<usize>> {
        let run = self.run.clone().filter(|run| self.walk.is_normal() && is_wanted(run))?;
        (!self.walk.has_special(run.start, run.end)).then_some(run)
    }

    /// Where the normalized text is cut if the text is cut at `position`; `None` where only encoding all
    /// of the cut text can tell its tokens.
    fn place_to_cut(&self, position: usize) -> Option<usize> {
        let is_family = self.truncator.encoding.splitter().is_family();
        is_family.then(|| self.walk.alignment.normal(position))?
    }

    /// Whether a special token may stand, in part, between these places.
    fn has_special(&self, start: usize, end: usize) -> bool {
        let places = (self.walk.place(start), self.walk.place(end));
        let (Some(start), Some(end)) = places else { return true };
        self.walk.has_special(start, end)
    }

    /// The tokens of the text up to `end`; some number above `limit` if there are more than that.
    /// `None` where only encoding all of it can tell.
    ///
    /// The pieces before a settled border are those of the text. From there on pieces are cut one
    /// after the other: where each ends depends on nothing before it.
    pub(super) fn prefix(&self, end: usize, limit: usize) -> Result<Option<usize>> {
        let splitter = self.truncator.encoding.splitter();
        let Some(end) = self.place_to_cut(end) else { return Ok(None) };
        if let Some(long) = self.long.as_ref().filter(|_| self.ends().contains(&end)) {
            let mut ids = self.truncator.memo.ids.borrow_mut();
            return Ok(Some(long.before + long.prefix(end, &mut ids)?));
        }
        let borders = &self.borders;
        let known = borders.partition_point(|border| border.position <= end);
        let is_settled = |border: &Border| splitter.is_settled_in(self.text, border.position, end);
        let Some(mut at) = borders[..known].iter().rposition(is_settled) else { return Ok(None) };
        let Border { mut position, before: mut count } = borders[at];
        if self.has_special(position, end) {
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
        let (walk, borders) = (self.walk, &self.borders);
        if let Some(start) = self.place_to_cut(start).filter(|start| self.starts().contains(start))
            && let Some(long) = &self.long
        {
            let mut ids = self.truncator.memo.ids.borrow_mut();
            return Ok(Some(long.suffix(start, &mut ids)? + total - long.behind()));
        }
        // Up to where there is text without special tokens.
        let special = walk.special.iter().find(|span| start < span.end);
        let end = special.map_or(Some(self.text.len()), |span| walk.alignment.normal(span.start));
        let (Some(start), Some(end)) = (self.place_to_cut(start), end) else { return Ok(None) };
        let text = &self.text[..end];
        let mut at = borders.partition_point(|border| border.position < start);
        let (mut position, mut count) = (start, 0);
        let (mut starts, mut kept) = ([(0, 0); KEPT_STARTS], 0);
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
            if let Some(start) = starts.get_mut(kept) {
                *start = (position, count);
                kept += 1;
            }
            let next = self.piece_of_suffix(text, position);
            if walk.alignment.normal(walk.searched).is_none_or(|searched| searched < next) {
                return Ok(None);
            }
            count += self.count_piece(position, next)?;
            position = next;
        }
        if kept == KEPT_STARTS {
            let mut rests = self.rests.borrow_mut();
            rests.extend(starts.into_iter().map(|(start, before)| (start, count - before)));
        }
        Ok(Some(count))
    }

    /// The tokens of a piece of the cut text.
    fn count_piece(&self, start: usize, end: usize) -> Result<usize> {
        let span = start..end;
        let mut ids = self.truncator.memo.ids.borrow_mut();
        let long = self.long.as_ref().filter(|_| span.len() > LONG_PIECE);
        match long {
            Some(long) if long.begins_with(&span) => long.prefix(end, &mut ids),
            Some(long) if long.ends_with(&span) => long.suffix(start, &mut ids),
            _ => self.truncator.count_piece(&self.text.as_bytes()[span], &mut ids),
        }
    }
}
