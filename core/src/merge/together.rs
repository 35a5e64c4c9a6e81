//! Merging of many short pieces at once: while memory is read for one, the others go on.
//!
//! Which pair is looked up next depends on what the last look-up found, so that a piece on its own
//! waits for memory again and again.

use super::scan::Parts;
use crate::split::Piece;
use crate::vocabulary::{Pairs, Sought, Vocabulary};

/// How many pieces are merged at once.
const TOGETHER: usize = 32;

/// Room to merge pieces of less than `N` bytes.
#[derive(Debug)]
pub(crate) struct Together<const N: usize>([Merging<N>; TOGETHER]);

#[derive(Debug, Clone, Copy, Default)]
struct Merging<const N: usize> {
    /// Which piece.
    index: usize,
    parts: Parts<N>,
    /// The pairs that the last merged part is in: two at most.
    pending: [Pending; 2],
    pending_count: usize,
}

/// A pair that is looked up.
#[derive(Debug, Clone, Copy, Default)]
struct Pending {
    /// Its right part.
    right: usize,
    sought: Sought,
}

impl<const N: usize> Default for Together<N> {
    fn default() -> Self {
        Self([Merging::default(); TOGETHER])
    }
}

impl<const N: usize> Together<N> {
    /// Tells `done` the ids of each of `pieces` of `text`, with what came beside it, in any order.
    /// Leaves out pieces that hold a byte that is no token. For ordered vocabularies only.
    pub(crate) fn merge<T: Copy>(
        &mut self,
        vocabulary: &Vocabulary,
        text: &[u8],
        pieces: &[(Piece, T)],
        mut done: impl FnMut(T, &[u32]),
    ) {
        for pieces in pieces.chunks(TOGETHER) {
            let merging = &mut self.0[..pieces.len()];
            for (index, (merging, (piece, _))) in merging.iter_mut().zip(pieces).enumerate() {
                merging.index = index;
                merging.parts.start(vocabulary.pairs(), &text[piece.start..piece.end]);
            }
            merge(vocabulary, merging, |index, ids| done(pieces[index].1, ids));
        }
    }
}

/// Merges all to the end, each a step at a time.
#[inline(always)]
fn merge<const N: usize>(
    vocabulary: &Vocabulary,
    merging: &mut [Merging<N>],
    mut done: impl FnMut(usize, &[u32]),
) {
    let pairs = vocabulary.pairs();
    find_first_ranks(pairs, merging);
    let mut count = merging.len();
    while count > 0 {
        let mut next = 0;
        while next < count {
            let this = &mut merging[next];
            for Pending { right, sought } in this.pending[..this.pending_count].iter().copied() {
                this.parts.set_rank(right, pairs.found(sought));
            }
            if let Some(at) = this.parts.merge_lowest() {
                this.seek_beside(pairs, at);
                next += 1;
                continue;
            }
            let ids = this.parts.as_mut_slice();
            if vocabulary.turn_into_ids(ids).is_ok() {
                done(this.index, ids);
            }
            count -= 1;
            merging.swap(next, count);
        }
        for this in &mut merging[..count] {
            for pending in &mut this.pending[..this.pending_count] {
                pairs.approach_slot(&mut pending.sought);
            }
        }
    }
}

/// Looks up the pairs that pieces start with.
#[inline(always)]
fn find_first_ranks<const N: usize>(pairs: &Pairs, merging: &mut [Merging<N>]) {
    for Merging { parts, .. } in &*merging {
        for right in 1..parts.count() {
            let (left, right) = parts.pair(right);
            pairs.seek(left, right);
        }
    }
    for Merging { parts, .. } in &*merging {
        for right in 1..parts.count() {
            let (left, right) = parts.pair(right);
            pairs.approach_slot(&mut pairs.seek(left, right));
        }
    }
    for Merging { parts, pending_count, .. } in merging {
        for right in 1..parts.count() {
            parts.find_rank(pairs, right);
        }
        *pending_count = 0;
    }
}

impl<const N: usize> Merging<N> {
    /// Seeks the pairs that part `at` is in.
    #[inline(always)]
    fn seek_beside(&mut self, pairs: &Pairs, at: usize) {
        self.pending_count = 0;
        for right in at.max(1)..(at + 2).min(self.parts.count()) {
            let (left, part) = self.parts.pair(right);
            self.pending[self.pending_count] = Pending { right, sought: pairs.seek(left, part) };
            self.pending_count += 1;
        }
    }
}
