//! How much of a text a number of tokens can cover at most, whatever tokens: what is beyond need not be
//! tried.

use super::walk::{Border, Walk, stretch_end, stretch_start};
use super::{Truncator, ceil, floor};
use crate::encoding::Encoding;
use crate::error::Result;
use crate::longest_tokens::Open;

impl Truncator<'_> {
    /// The last place, `high` or before it, up to which `text` may have `limit` tokens: it has more up to
    /// every place behind that. If the text `goes_on`, `high` stands for every place behind it, too.
    pub(super) fn last_end(
        &self,
        text: &str,
        walk: &Walk<'_>,
        high: usize,
        goes_on: bool,
        limit: usize,
    ) -> Result<usize> {
        let splitter = self.encoding.splitter();
        // A cut may change how what it is inside of is normalized, and so the last tokens before it. Where
        // one fits behind the border that is further than the pattern looks ahead.
        let most = if walk.is_normal() { Some(limit) } else { limit.checked_sub(1) };
        let settled = walk.borders.iter().rev().find_map(|&border| {
            let is_near = border.position <= high
                && most.is_some_and(|most| border.before <= most)
                && (!goes_on || walk.is_final(splitter, border.position));
            let from = is_near.then(|| walk.settled_from(splitter, text, border.position))??;
            Some((border, from))
        });
        let Some((Border { position: start, before }, from)) = settled else { return Ok(high) };
        let Some(normal) = walk.normal_span(&(start..high)) else { return Ok(high) };
        if walk.has_special(start, high) {
            return Ok(high);
        }
        let longest = self.encoding.longest_tokens()?;
        let mut passed = PassedBorders::new(self.encoding, walk);
        // A piece that a cut shortens and leaves one piece has the tokens of the text up to a place that
        // no token crosses.
        let mut ends = None;
        let known = |offset: usize| {
            passed.as_ref().filter(|passed| passed.start.position == start)?;
            let ends = ends.get_or_insert_with(|| splitter.cut_piece(text, start)?.prefixes(text));
            ends.as_ref().filter(|ends| ends.contains(&(start + offset)))?;
            Some(passed.as_mut()?.before(start + offset)? - before)
        };
        let open = match goes_on {
            _ if !walk.is_normal() => Open::Anywhere,
            true => Open::Behind,
            false => Open::Nothing,
        };
        let bytes = &walk.normal.as_bytes()[normal.clone()];
        let covered = normal.start + longest.furthest_end(bytes, open, limit - before, known);
        if walk.is_normal() {
            return Ok(floor(text, covered.max(from)).min(high));
        }
        // Up to the end of its stretch, a cut may change what is covered.
        let behind = walk.alignment.original(0..(covered + 1).min(walk.normal.len())).end;
        Ok(stretch_end(text, ceil(text, behind)).min(high))
    }

    /// The first place, `low` or behind it, from which on `text` up to `anchor`, a safe cut, may have
    /// `limit` tokens.
    pub(super) fn first_start(
        &self,
        text: &str,
        walk: &Walk<'_>,
        low: usize,
        anchor: Border,
        limit: usize,
    ) -> Result<usize> {
        let splitter = self.encoding.splitter();
        let span = low..anchor.position;
        let Some(normal) = walk.normal_span(&span) else { return Ok(low) };
        if !splitter.is_family() || walk.has_special(low, anchor.position) {
            return Ok(low);
        }
        let longest = self.encoding.longest_tokens()?;
        let mut passed = PassedBorders::new(self.encoding, walk);
        let mut suffixes = None;
        let known = |offset: usize| {
            let piece = passed.as_ref()?.start.position;
            let suffixes = suffixes.get_or_insert_with(|| {
                splitter.cut_piece(text, piece).map_or(0..0, |piece| piece.suffixes(text))
            });
            Some(suffixes).filter(|suffixes| suffixes.contains(&low))?;
            Some(anchor.before - passed.as_mut()?.before(low + offset)?)
        };
        let bytes = &walk.normal.as_bytes()[normal.clone()];
        let open = if walk.is_normal() { Open::Nothing } else { Open::Anywhere };
        let covered = normal.start + longest.furthest_start(bytes, open, limit, known);
        if walk.is_normal() {
            return Ok(ceil(text, covered));
        }
        let before = walk.alignment.original(covered.saturating_sub(1)..walk.normal.len()).start;
        Ok(stretch_start(text, floor(text, before)).max(low))
    }
}

/// The borders between the tokens of the piece in which a walk passed its limit.
struct PassedBorders<'a> {
    encoding: &'a Encoding,
    ids: &'a [u32],
    /// Where the piece starts.
    start: Border,
    /// A place between two of its tokens, and how many of them are before it.
    position: usize,
    index: usize,
}

impl<'a> PassedBorders<'a> {
    /// `None` where normalization changed the text: a cut changes what stands next to it.
    fn new(encoding: &'a Encoding, walk: &'a Walk<'_>) -> Option<Self> {
        let start = walk.passed_at.filter(|_| walk.is_normal())?;
        Some(Self { encoding, ids: &walk.passed, start, position: start.position, index: 0 })
    }

    /// The tokens before `position`, if that is such a border.
    fn before(&mut self, position: usize) -> Option<usize> {
        let length = |id| self.encoding.token_bytes(id).map_or(0, <[u8]>::len);
        while self.position < position && self.index < self.ids.len() {
            self.position += length(self.ids[self.index]);
            self.index += 1;
        }
        while self.position > position && self.index > 0 {
            self.index -= 1;
            self.position -= length(self.ids[self.index]);
        }
        (self.position == position).then_some(self.start.before + self.index)
    }
}
