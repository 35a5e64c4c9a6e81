//! The merge rule, implemented literally.
//!
//! Starting from single bytes, the two neighboring parts whose concatenation has the lowest rank
//! merge, leftmost on ties, until no two neighbors form a token.
//!
//! A part is the rank of a token, or a number for a single byte that is not a token. Building a
//! vocabulary and merging a piece both follow the rule, each with its own tables.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::{Error, Result};
use crate::memory::reserve;

/// Rank of a pair that does not merge.
pub const NONE: u32 = u32::MAX;

/// A table of the pairs of parts that merge.
pub trait MergeTable {
    /// Returns the rank of the token into which two neighbors merge, or [`NONE`].
    fn merged(&self, left: u32, right: u32) -> u32;

    /// Returns the two parts from which a part is merged, or [`NONE`] twice for a byte.
    fn split(&self, part: u32) -> [u32; 2];
}

/// Parts of one piece, numbered by their first units.
pub(crate) trait Merges {
    /// Returns the rank of merging two neighbors, or [`NONE`].
    fn rank(&mut self, left: usize, right: usize) -> Result<u32>;

    /// Merges two neighbors into a part with the number of the left neighbor.
    fn join(&mut self, left: usize, right: usize, rank: u32) -> Result<()>;

    /// Returns true if a candidate of this rank is current for neighbors that now merge at `now`.
    fn is_current(&self, rank: u32, now: u32) -> bool {
        rank == now
    }

    /// Returns true if the next candidate must wait until another candidate has merged.
    fn skips(&mut self) -> bool {
        false
    }
}

/// Merges with a heap of candidates, in O(n log n): the lowest rank first, leftmost on ties. Reuses
/// its memory from piece to piece.
#[derive(Debug, Default)]
pub(crate) struct HeapMerger {
    /// Rank of merging each part with the next part, or [`NONE`].
    ranks: Vec<u32>,
    /// Numbers of the previous part and of the next part, for each part.
    previous: Vec<usize>,
    next: Vec<usize>,
    candidates: BinaryHeap<Reverse<(u32, usize)>>,
    /// The parts that [`HeapMerger::merge_ranks`] merges.
    parts: Vec<u32>,
}

impl HeapMerger {
    /// Merges `count` units, and returns the numbers of the resulting parts.
    pub(crate) fn merge<'s, M: Merges>(
        &'s mut self,
        merges: &mut M,
        count: usize,
    ) -> Result<impl Iterator<Item = usize> + use<'s, M>> {
        self.start(merges, count)?;
        let mut skipped = Vec::new();
        while let Some(Reverse((rank, left))) = self.candidates.pop() {
            if merges.skips() {
                skipped.push((rank, left));
                continue;
            }
            skipped.drain(..).try_for_each(|(rank, left)| self.add(rank, left))?;
            // A candidate is stale if its part is gone or now has a different neighbor.
            let now = self.ranks[left];
            if now == NONE || !merges.is_current(rank, now) {
                continue;
            }
            let right = self.next[left];
            let after = self.next[right];
            merges.join(left, right, rank)?;
            self.ranks[right] = NONE;
            self.next[left] = after;
            if after < count {
                self.previous[after] = left;
            }
            if left > 0 {
                self.set_rank(merges, self.previous[left])?;
            }
            self.set_rank(merges, left)?;
        }
        let first = (count > 0).then_some(0);
        let next = &self.next;
        Ok(std::iter::successors(first, move |&at| Some(next[at]).filter(|&at| at < count)))
    }

    /// Merges `parts`, one per unit, by the ranks of a table. Returns the resulting parts.
    pub(crate) fn merge_ranks(
        &mut self,
        table: &impl MergeTable,
        parts: impl ExactSizeIterator<Item = u32>,
    ) -> Result<&[u32]> {
        let mut ranks = Ranks { table, parts: std::mem::take(&mut self.parts) };
        ranks.parts.clear();
        reserve(&mut ranks.parts, parts.len())?;
        ranks.parts.extend(parts);
        let (count, mut kept) = (ranks.parts.len(), 0);
        for at in self.merge(&mut ranks, count)? {
            ranks.parts[kept] = ranks.parts[at];
            kept += 1;
        }
        self.parts = ranks.parts;
        Ok(&self.parts[..kept])
    }

    fn start(&mut self, merges: &mut impl Merges, count: usize) -> Result<()> {
        for links in [&mut self.next, &mut self.previous] {
            links.clear();
            reserve(links, count)?;
        }
        self.next.extend(1..=count);
        self.previous.extend((0..count).map(|position| position.wrapping_sub(1)));
        self.ranks.clear();
        reserve(&mut self.ranks, count)?;
        self.ranks.resize(count, NONE);
        self.candidates.clear();
        (0..count).try_for_each(|left| self.set_rank(merges, left))
    }

    /// Looks up the rank of merging the part at `left` with the next part.
    fn set_rank(&mut self, merges: &mut impl Merges, left: usize) -> Result<()> {
        let right = self.next[left];
        let rank = if right < self.next.len() { merges.rank(left, right)? } else { NONE };
        self.ranks[left] = rank;
        if rank == NONE { Ok(()) } else { self.add(rank, left) }
    }

    fn add(&mut self, rank: u32, left: usize) -> Result<()> {
        let bytes = size_of::<(u32, usize)>();
        self.candidates.try_reserve(1).map_err(|_| Error::OutOfMemory { bytes })?;
        self.candidates.push(Reverse((rank, left)));
        Ok(())
    }
}

/// Merges by the ranks of a table.
struct Ranks<'a, T> {
    table: &'a T,
    parts: Vec<u32>,
}

impl<T: MergeTable> Merges for Ranks<'_, T> {
    fn rank(&mut self, left: usize, right: usize) -> Result<u32> {
        Ok(self.table.merged(self.parts[left], self.parts[right]))
    }

    fn join(&mut self, left: usize, _: usize, rank: u32) -> Result<()> {
        self.parts[left] = rank;
        Ok(())
    }
}

/// Returns true if merging leaves these two tokens side by side: no part at the end of the first
/// merges with a part at the start of the second before both tokens are complete, and the two
/// tokens do not merge afterwards. For tables in which each token ranks after the two parts from
/// which it is merged.
///
/// Source: `is_valid_token_pair` of the crate `bpe`, <https://github.com/github/rust-gems>.
#[inline]
pub(crate) fn is_valid_pair(table: &impl MergeTable, first: u32, second: u32) -> bool {
    table.merged(first, second) == NONE && complete_side_by_side(table, first, second)
}

/// Returns true if both tokens are complete before parts of the two tokens merge.
///
/// Undoes the merges of both tokens at their boundary, latest first.
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

/// Undoes the latest merge of the two parts at a boundary and returns its rank: a merge across the
/// boundary with a lower rank would come first. `None` for two bytes.
#[inline(always)]
pub(crate) fn undo_at_border(table: &impl MergeTable, border: &mut [u32; 2]) -> Option<u32> {
    let [left, right] = *border;
    let (of_left, of_right) = (table.split(left), table.split(right));
    // Of two equal tokens, the left token merges first.
    if of_left[0] != NONE && (left > right || of_right[0] == NONE) {
        border[0] = of_left[1];
        Some(left)
    } else if of_right[0] != NONE {
        // On a tie, the merge across the boundary is further left.
        border[1] = of_right[0];
        Some(right + 1)
    } else {
        None
    }
}
