//! The merge rule, implemented literally.
//!
//! Starting from single bytes, the two neighboring parts whose concatenation has the lowest rank
//! merge, leftmost on ties, until no two neighbors make a token.
//!
//! A part is the rank of a token, or a number for a single byte that is not a token. Building a
//! vocabulary and merging a piece both follow the rule, with tables of their own.

use crate::agenda::Agenda;
use crate::error::Result;
use crate::memory::reserve;

/// No rank.
pub const NONE: u32 = u32::MAX;

/// A table of the pairs of parts that merge.
pub trait MergeTable {
    /// Returns the rank of the token that two neighbors merge into, or [`NONE`].
    fn merged(&self, left: u32, right: u32) -> u32;

    /// Returns the two parts that a part is merged from, or [`NONE`] twice for a byte.
    fn split(&self, part: u32) -> [u32; 2];
}

/// Merges with a heap of candidates, in O(n log n), for any vocabulary. Reuses its memory from
/// piece to piece.
#[derive(Debug, Default)]
pub(crate) struct HeapMerger {
    parts: Vec<u32>,
    /// The rank of the merge of each part with the next one, or [`NONE`].
    ranks: Vec<u32>,
    /// The starts of the part before and of the part after each part.
    previous: Vec<usize>,
    next: Vec<usize>,
    candidates: Agenda,
}

impl HeapMerger {
    /// Merges `parts`, one for each byte, and returns the resulting parts.
    pub(crate) fn merge(
        &mut self,
        table: &impl MergeTable,
        parts: impl ExactSizeIterator<Item = u32>,
    ) -> Result<&[u32]> {
        let end = parts.len();
        self.start(table, parts)?;
        while let Some((rank, left)) = self.candidates.pop() {
            // A candidate is stale when its part is gone or has another neighbor by now.
            if self.ranks[left] != rank {
                continue;
            }
            let right = self.next[left];
            let after = self.next[right];
            self.parts[left] = rank;
            self.ranks[right] = NONE;
            self.next[left] = after;
            self.set_rank(table, left)?;
            if after < end {
                self.previous[after] = left;
            }
            if left > 0 {
                self.set_rank(table, self.previous[left])?;
            }
        }
        let (mut count, mut position) = (0, 0);
        while position < end {
            self.parts[count] = self.parts[position];
            (count, position) = (count + 1, self.next[position]);
        }
        Ok(&self.parts[..count])
    }

    fn start(
        &mut self,
        table: &impl MergeTable,
        parts: impl ExactSizeIterator<Item = u32>,
    ) -> Result<()> {
        let count = parts.len();
        self.parts.clear();
        reserve(&mut self.parts, count)?;
        self.parts.extend(parts);
        for links in [&mut self.next, &mut self.previous] {
            links.clear();
            reserve(links, count)?;
        }
        self.next.extend(1..=count);
        self.previous.extend((0..count).map(|position| position.wrapping_sub(1)));
        self.ranks.clear();
        reserve(&mut self.ranks, count)?;
        self.ranks.extend(self.parts.windows(2).map(|pair| table.merged(pair[0], pair[1])));
        self.ranks.resize(count, NONE);
        self.candidates.clear();
        for (left, &rank) in self.ranks.iter().enumerate().filter(|&(_, &rank)| rank != NONE) {
            self.candidates.push(rank, left)?;
        }
        Ok(())
    }

    /// Looks up the merge of the part at `left` with the next one.
    fn set_rank(&mut self, table: &impl MergeTable, left: usize) -> Result<()> {
        let right = self.next[left];
        let rank = match self.parts.get(right) {
            Some(&part) => table.merged(self.parts[left], part),
            None => NONE,
        };
        self.ranks[left] = rank;
        if rank == NONE { Ok(()) } else { self.candidates.push(rank, left) }
    }
}

/// Returns true if merging leaves these two tokens side by side: no part at the end of the first
/// merges with a part at the start of the second before both tokens are complete, nor do the two
/// themselves afterwards. For tables in which every token ranks after the two that it is merged
/// from.
///
/// Source: `is_valid_token_pair` of the crate `bpe`, <https://github.com/github/rust-gems>.
#[inline]
pub(crate) fn is_valid_pair(table: &impl MergeTable, first: u32, second: u32) -> bool {
    table.merged(first, second) == NONE && complete_side_by_side(table, first, second)
}

/// Returns true if both tokens are complete before a part of one merges with a part of the other.
///
/// Undoes the merges of both at their border, the latest first.
#[inline]
pub(crate) fn complete_side_by_side(table: &impl MergeTable, first: u32, second: u32) -> bool {
    let mut border = [first, second];
    while let Some(limit) = undo_at_border(table, &mut border) {
        if table.merged(border[0], border[1]) < limit {
            return false;
        }
    }
    true
}

/// Undoes the latest merge of the two parts at a border, and returns its rank: a merge across the
/// border with a lower rank comes first. `None` for two bytes.
#[inline(always)]
pub(crate) fn undo_at_border(table: &impl MergeTable, border: &mut [u32; 2]) -> Option<u32> {
    let [left, right] = *border;
    let (of_left, of_right) = (table.split(left), table.split(right));
    // Of two equal tokens the left one is merged first.
    if of_left[0] != NONE && (left > right || of_right[0] == NONE) {
        border[0] = of_left[1];
        Some(left)
    } else if of_right[0] != NONE {
        // On a tie the merge across the border is the one further left.
        border[1] = of_right[0];
        Some(right + 1)
    } else {
        None
    }
}
