//! The longest prefix that fits.

use super::search::bisect;
use super::split_text::SplitText;
use super::walk::Walk;
use super::{CHANGED, STRETCH, TOKENS_BEFORE, TOKENS_BEHIND, Truncator, positions};
use crate::error::Result;

impl<'a> Truncator<'a> {
    pub(super) fn prefix(&self, text: &str, max_tokens: usize) -> Result<usize> {
        let (window, walk) = self.walk_window(text, max_tokens)?;
        self.prefix_of(window, max_tokens, &walk)
    }

    /// The same for the beginning of a text that was walked over.
    pub(super) fn prefix_of(
        &self,
        text: &'a str,
        max_tokens: usize,
        walk: &'a Walk<'a>,
    ) -> Result<usize> {
        if walk.total <= max_tokens {
            return Ok(text.len());
        }
        let borders = &walk.borders;
        let last = borders.partition_point(|border| border.before <= max_tokens) - 1;
        let mut anchor = borders[last.saturating_sub(CHANGED)];
        let next = borders.get(last + 1).map_or(text.len(), |border| border.position);
        let mut high = borders.get(last + CHANGED).map_or(text.len(), |border| border.position);
        let passed = borders[last].position..next;
        if self.encoding.splitter().is_family() && !text[passed.clone()].trim().is_empty() {
            // Only white space is cut by what follows it.
            high = next;
        }
        if let Some(special) = walk.special.iter().find(|special| special.start == high) {
            // What is before it may have fewer tokens with the beginning of its name.
            high = special.end;
        }
        let start = borders[last].position;
        let mut near = start;
        let mut behind = None;
        // Of a longer stretch not all ends are tried: a longer part seldom has fewer tokens.
        let is_stretch = text[start..next].chars().nth(STRETCH).is_some();
        let long = self.long_piece(passed, borders[last].before, walk)?;
        if let Some(long) = &long {
            let within = long.borders_within(max_tokens);
            let border = |index: usize| long.border(index);
            if let Some(before) = within.checked_sub(TOKENS_BEFORE).filter(|_| is_stretch) {
                anchor = border(before).unwrap_or(anchor);
            }
            // Up to here the tokens are the same with a cut, if the piece is.
            near = within.checked_sub(1).and_then(border).map_or(near, |last| last.position);
            behind = border(within + TOKENS_BEHIND).map(|border| border.position);
        }
        let split = SplitText::new(*self, walk, long);
        high = match walk.last_end {
            Some(last) => high.min(last),
            None => self.last_end(text, walk, high, false, max_tokens)?,
        };
        // (What is found among some of the ends is none of the longest runs.)
        let run = split
            .run_to_cut(high)?
            .filter(|_| !is_stretch || behind.is_none_or(|behind| high <= behind));
        if let Some(behind) = behind.filter(|_| is_stretch) {
            high = high.min(behind);
        }
        if split.is_passed_behind(near, high, max_tokens) {
            high = near;
        }
        let looks_behind = self.encoding.splitter().looks_behind();
        let fits = |end: usize| {
            if let Some(count) = split.prefix(end, max_tokens)? {
                return Ok(count <= max_tokens);
            }
            let is_known = anchor.position == 0 || looks_behind || end < anchor.position;
            let room = max_tokens - anchor.before;
            Ok((is_known || self.count_candidate(&text[anchor.position..end], room)? <= room)
                && self.count_candidate(&text[..end], max_tokens)? <= max_tokens)
        };
        if let Some((run, before)) = &run
            && let Some(length) = self.memo.runs.length(text, run, max_tokens - before)
        {
            return Ok(run.start + length);
        }
        let work = &self.memo.work;
        work.allow(near.max(max_tokens));
        for low in [near, start.max(anchor.position), start.min(anchor.position)] {
            let candidates = positions(text, low.min(high)..high)?;
            let found = work.farthest(candidates.len(), |index| fits(candidates[index]))?;
            if let Some(found) = found {
                let end = candidates[found];
                if let Some((run, before)) =
                    run.filter(|(run, _)| run.start < end && !work.is_done())
                {
                    let found = (max_tokens - before, end - run.start, high - run.start);
                    self.memo.runs.keep(text, &run, found);
                }
                return Ok(end);
            }
        }
        self.prefix_far_before(text, max_tokens, anchor.position)
    }

    /// The same where nothing near fits: the pattern looks further than any of the published ones do.
    fn prefix_far_before(
        &self,
        text: &str,
        max_tokens: usize,
        mut too_long: usize,
    ) -> Result<usize> {
        let fits = |end: usize| Ok(self.count(&text[..end], max_tokens)? <= max_tokens);
        let mut fewer = max_tokens;
        loop {
            fewer /= 2;
            let borders = self.walk(text, fewer)?.borders;
            let last = borders.iter().rev().find(|border| border.before <= fewer);
            let end = last.map_or(0, |border| border.position);
            if fewer == 0 || fits(end)? {
                let candidates = positions(text, end..too_long.max(end))?;
                return Ok(
                    candidates[bisect(0, candidates.len(), |index| fits(candidates[index]))?]
                );
            }
            too_long = end;
        }
    }
}
