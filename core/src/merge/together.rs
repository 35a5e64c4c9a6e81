//! Merging of many short pieces at once: while memory is read for one, the others go on.
//!
//! Which pair is looked up next depends on what the last look-up found, so that a piece on its own
//! waits for memory again and again.

use std::ops::Range;

use super::scan::Parts;
use crate::split::Piece;
use crate::vocabulary::{Pairs, Vocabulary};

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
    /// The part that two were last merged into.
    at: usize,
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
    find_ranks(pairs, merging, |merging| 1..merging.parts.count());
    let mut count = merging.len();
    while count > 0 {
        let mut next = 0;
        while next < count {
            let this = &mut merging[next];
            if let Some(at) = this.parts.merge_lowest() {
                this.at = at;
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
        find_ranks(pairs, &mut merging[..count], Merging::beside);
    }
}

/// Looks up the pairs that `rights` says, each by its right part.
#[inline(always)]
fn find_ranks<const N: usize>(
    pairs: &Pairs,
    merging: &mut [Merging<N>],
    rights: impl Fn(&Merging<N>) -> Range<usize>,
) {
    for merging in &*merging {
        for right in rights(merging) {
            let (left, right) = merging.parts.pair(right);
            pairs.approach(left, right);
        }
    }
    for merging in &*merging {
        for right in rights(merging) {
            let (left, right) = merging.parts.pair(right);
            pairs.approach_slot(left, right);
        }
    }
    for merging in merging {
        for right in rights(merging) {
            merging.parts.find_rank(pairs, right);
        }
    }
}

impl<const N: usize> Merging<N> {
    /// The right parts of the pairs that the last merged part is in.
    #[inline(always)]
    fn beside(&self) -> Range<usize> {
        self.at.max(1)..(self.at + 2).min(self.parts.count())
    }
}
