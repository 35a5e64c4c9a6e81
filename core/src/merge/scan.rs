//! Merging of short pieces: a pass of merges that need no comparing, then the lowest rank, again
//! and again, by looking at all of them.

use super::SCAN_LIMIT;
use crate::vocabulary::{NONE, Neighbours, Pairs, three_byte_char};

/// Parts that are still there, and the ranks of their merges with the next one, of a piece of less
/// than `N` bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<const N: usize> {
    parts: [u32; N],
    /// [`NONE`] where nothing merges, as for the last part.
    ranks: [u32; N],
    count: usize,
}

/// Appends the parts of `piece`, at most [`SCAN_LIMIT`] bytes, to `out`. For ordered
/// vocabularies only.
pub(super) fn scan(pairs: &Pairs, piece: &[u8], out: &mut Vec<u32>) {
    let mut parts = Parts::<{ SCAN_LIMIT + 1 }>::default();
    parts.start(pairs, piece);
    for right in 1..parts.count {
        parts.find_rank(pairs, right);
    }
    while let Some(at) = parts.merge_lowest() {
        for right in at.max(1)..(at + 2).min(parts.count) {
            parts.find_rank(pairs, right);
        }
    }
    out.extend_from_slice(parts.as_mut_slice());
}

impl<const N: usize> Default for Parts<N> {
    fn default() -> Self {
        Self { parts: [NONE; N], ranks: [NONE; N], count: 0 }
    }
}

impl<const N: usize> Parts<N> {
    /// Starts with single bytes, but for what is certain to merge with each other: characters of
    /// three bytes that are complete before anything else can take a part of them, and pairs of
    /// bytes.
    ///
    /// Two neighbouring bytes are certain to when their merge ranks before every merge that could
    /// take the first from the left, or the second from the right: both are still single bytes when
    /// the turn of their rank comes. To do it at once changes nothing, since whatever merges with
    /// the result ranks after it.
    ///
    /// The ranks are not known yet.
    #[inline(always)]
    pub(super) fn start(&mut self, pairs: &Pairs, piece: &[u8]) {
        let next_to = |position: usize| match piece.get(position..position + 2) {
            Some(pair) => *pairs.neighbours(pair[0], pair[1]),
            None => Neighbours::NONE,
        };
        let mut count = 0;
        let mut position = 0;
        let mut taken_left = NONE;
        let mut here = next_to(0);
        while position < piece.len() {
            let character = three_byte_char(&piece[position..]);
            let character = character.map_or(NONE, |code_point| pairs.character(code_point));
            let next = next_to(position + 1);
            if character != NONE {
                self.parts[count] = character;
                position += 3;
                taken_left = next_to(position - 1).taken_left;
                here = next_to(position);
            } else if here.rank < taken_left && here.rank < next.taken_right {
                self.parts[count] = here.rank;
                position += 2;
                taken_left = next.taken_left;
                here = next_to(position);
            } else {
                self.parts[count] = pairs.byte(piece[position]);
                position += 1;
                taken_left = here.taken_left;
                here = next;
            }
            count += 1;
        }
        self.count = count;
        // Behind the last part there is none to merge with.
        self.ranks[self.count - 1] = NONE;
    }

    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u32] {
        &mut self.parts[..self.count]
    }

    /// Part `right`, which is not the first, and the one before it.
    #[inline(always)]
    pub(super) fn pair(&self, right: usize) -> (u32, u32) {
        (self.parts[right - 1], self.parts[right])
    }

    /// Finds the rank of this pair.
    #[inline(always)]
    pub(super) fn find_rank(&mut self, pairs: &Pairs, right: usize) {
        let (left, part) = self.pair(right);
        self.set_rank(right, pairs.merged(left, part));
    }

    #[inline(always)]
    pub(super) fn set_rank(&mut self, right: usize, rank: u32) {
        self.ranks[right - 1] = rank;
    }

    /// Merges the two parts that come first, all ranks being known. Returns which part they
    /// became; the ranks of its merges with the parts beside it are not known yet.
    #[inline(always)]
    pub(super) fn merge_lowest(&mut self) -> Option<usize> {
        let mut lowest = NONE;
        let mut at = 0;
        for (i, &rank) in self.ranks[..self.count].iter().enumerate() {
            if rank < lowest {
                (lowest, at) = (rank, i);
            }
        }
        if lowest == NONE {
            return None;
        }
        self.parts[at] = lowest;
        self.count -= 1;
        for i in at + 1..self.count {
            self.parts[i] = self.parts[i + 1];
            self.ranks[i] = self.ranks[i + 1];
        }
        self.ranks[self.count] = NONE;
        // Of the last part, nothing merges.
        self.ranks[at] = NONE;
        Some(at)
    }
}
