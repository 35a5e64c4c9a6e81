//! The longest suffix that fits.

use std::borrow::Cow;
use std::ops::Range;

use super::split_text::{CHARACTER, SplitText};
use super::walk::Border;
use super::{CHANGED, STRETCH, TOKENS_BEFORE, TOKENS_BEHIND, Truncator, around, ceil, positions};
use crate::error::Result;

/// Where the last safe cut before a place is.
enum SafeCut {
    At(usize),
    /// Not among the characters that are looked at.
    Far,
    /// Not between the beginning of the text and the place, which are near.
    BeforeText,
}

impl Truncator<'_> {
    pub(super) fn suffix(&self, text: &str, max_tokens: usize) -> Result<usize> {
        let mut size = max_tokens.saturating_mul(6).saturating_add(64);
        if !self.encoding.splitter().is_family() {
            size = text.len();
        }
        loop {
            let from = ceil(text, text.len().saturating_sub(size));
            let window = &text[from..];
            let total = self.count(window, usize::MAX)?;
            // What the window begins with may be cut in another way than in the text.
            let enough = max_tokens.saturating_add(TOKENS_BEFORE + CHANGED);
            if (from == 0 || total > enough)
                && let Some(start) = self.suffix_of(window, max_tokens, total, from == 0)?
            {
                return Ok(from + start);
            }
            size = size.saturating_mul(2);
        }
    }

    /// Where the longest suffix of `text`, which has `total` tokens, starts that fits. `None` if it
    /// may start before `text`, where that is not all of the text.
    fn suffix_of(
        &self,
        text: &str,
        max_tokens: usize,
        total: usize,
        is_all: bool,
    ) -> Result<Option<usize>> {
        let Some(surplus) = total.checked_sub(max_tokens).filter(|&surplus| surplus > 0) else {
            return Ok(Some(0));
        };
        let walk = self.walk(text, surplus - 1)?;
        let borders = &walk.borders;
        let end = Border { position: text.len(), before: total };
        let first = borders.partition_point(|border| border.before < surplus);
        // From a safe cut on, tokens are the same whatever stands before. (A cut among digits, or in
        // a run of one letter, may change the groups of all that follow.)
        let is_safe = |border: &&Border| self.is_safe(text, border.position);
        let anchor = borders.iter().skip(first).find(is_safe).copied().unwrap_or(end);
        // So the longest suffix starts behind the last safe cut with too many tokens.
        let next = borders.get(first).map_or(text.len(), |border| border.position);
        let long = match first.checked_sub(1).map(|before| borders[before]) {
            Some(before) => self.long_piece(before.position..next, before.before, &walk)?,
            None => None,
        };
        let low = match self.safe_before(text, next, &walk.special) {
            // The text may begin inside of a special token.
            SafeCut::At(cut) if !is_all && cut < self.encoding.special_tokens().all().longest() => {
                return Ok(None);
            }
            SafeCut::At(cut) => cut,
            SafeCut::BeforeText if is_all => 0,
            SafeCut::BeforeText => return Ok(None),
            // In a long stretch the tokens tell.
            SafeCut::Far => {
                let known = long.as_ref().and_then(|long| {
                    long.border(long.borders_within(surplus - 1).saturating_sub(TOKENS_BEHIND))
                });
                known.unwrap_or(borders[first.saturating_sub(CHANGED)]).position
            }
        };
        // From here on the tokens are the same with a cut.
        let near = long.as_ref().and_then(|long| long.border(long.borders_within(surplus - 1)));
        let near = near.unwrap_or(anchor).position;
        let split = SplitText::new(*self, &walk, long);
        let room = max_tokens.saturating_sub(total - anchor.before);
        let covered = self.first_start(text, &walk, low, anchor, room)?;
        // (What is found among some of the starts is none of the longest runs.)
        let run = split.run_to_start(covered, anchor.position)?.filter(|_| low < covered);
        let mut low = covered;
        if split.is_passed_before(low, near, surplus) {
            low = near;
        }
        let fits = |start: usize| {
            if let Some(count) = split.suffix(start, total)? {
                return Ok(count <= max_tokens);
            }
            let room = max_tokens - (total - anchor.before).min(max_tokens);
            let is_end = anchor.position == text.len();
            Ok((is_end || self.count_candidate(&text[start..anchor.position], room)? <= room)
                && self.count_candidate(&text[start..], max_tokens)? <= max_tokens)
        };
        if let Some(length) = run.as_ref().and_then(|run| self.memo.runs.length(text, run, room)) {
            return Ok(Some(anchor.position - length));
        }
        let work = &self.memo.work;
        work.allow((text.len() - near).max(max_tokens));
        for high in [near.min(next), next, anchor.position] {
            let candidates = positions(text, low..high.clamp(low, anchor.position))?;
            let count = candidates.len();
            let found = work.farthest(count, |index| fits(candidates[count - 1 - index]))?;
            if let Some(found) = found {
                let start = candidates[count - 1 - found];
                if let Some(run) = run.filter(|run| start + CHARACTER < run.end && !work.is_done())
                {
                    let found = (room, run.end - start, run.end - low);
                    self.memo.runs.keep(text, &run, found);
                }
                return Ok(Some(start));
            }
        }
        // The anchor fits, if nothing else does.
        Ok(Some(anchor.position))
    }

    /// Whether `text` can be cut at `position` without changing a piece before or behind it.
    fn is_safe(&self, text: &str, position: usize) -> bool {
        let before = &text[..ceil(text, position + 1)];
        self.encoding.splitter().safe_cut(before, position) == Some(position)
            && self.is_normal_at(text, position)
    }

    /// Whether normalization leaves the characters on either side of `position` as they are.
    fn is_normal_at(&self, text: &str, position: usize) -> bool {
        let last = text[..position].chars().next_back().map_or(0, char::len_utf8);
        let pair = &text[position - last..ceil(text, position + 1)];
        matches!(self.encoding.normalization().apply(pair), Ok(Cow::Borrowed(_)))
    }

    /// The last safe cut before `position`, no more than [`STRETCH`] characters away. That is one of
    /// [`Truncator::is_safe`], or where a special token begins; inside of one none is safe.
    fn safe_before(&self, text: &str, position: usize, special: &[Range<usize>]) -> SafeCut {
        if !self.encoding.splitter().is_family() {
            return SafeCut::Far;
        }
        let mut starts = text[..position].char_indices().rev().map(|(start, _)| start);
        let mut near = starts.by_ref().take(STRETCH);
        let is_special = |start| {
            special.iter().any(|span| span.start == start) && self.is_normal_at(text, start)
        };
        let is_cut = |start| {
            around(special, start).is_none() && (self.is_safe(text, start) || is_special(start))
        };
        match near.find(|&start| is_cut(start)) {
            Some(cut) => SafeCut::At(cut),
            None if starts.next().is_none() => SafeCut::BeforeText,
            None => SafeCut::Far,
        }
    }
}
