//! Merging of short pieces: a pass of merges that need no comparing, then the lowest rank, again
//! and again, by looking at all of them.

use super::SCAN_LIMIT;
use crate::vocabulary::{NONE, Pairs};

/// Parts that are still there, and the ranks of their merges with the next one.
struct Parts {
    parts: [u32; SCAN_LIMIT + 1],
    /// [`NONE`] where nothing merges, and behind the last part.
    ranks: [u32; SCAN_LIMIT + 1],
    count: usize,
}

/// Appends the parts of `piece`, at most [`SCAN_LIMIT`] bytes, to `out`. For ordered
/// vocabularies only.
pub(super) fn scan(pairs: &Pairs, piece: &[u8], out: &mut Vec<u32>) {
    let mut state = start(pairs, piece);
    loop {
        let mut lowest = NONE;
        let mut at = 0;
        for i in 0..state.count {
            if state.ranks[i] < lowest {
                (lowest, at) = (state.ranks[i], i);
            }
        }
        if lowest == NONE {
            break;
        }
        state.merge(pairs, at, lowest);
    }
    out.extend_from_slice(&state.parts[..state.count]);
}

/// Single bytes, but for the pairs that are certain to merge with each other.
///
/// Two neighbouring bytes are when their merge ranks before every merge that could take the
/// first from the left, or the second from the right: both are still single bytes when the
/// turn of their rank comes. To do it at once changes nothing, since whatever merges with the
/// result ranks after it.
fn start(pairs: &Pairs, piece: &[u8]) -> Parts {
    let mut state =
        Parts { parts: [NONE; SCAN_LIMIT + 1], ranks: [NONE; SCAN_LIMIT + 1], count: 0 };
    let mut taken_left = NONE;
    let mut position = 0;
    while position < piece.len() {
        let byte = piece[position];
        let mut part = pairs.byte(byte);
        let mut length = 1;
        let mut left_of_next = NONE;
        if position + 1 < piece.len() {
            let pair = pairs.neighbours(byte, piece[position + 1]);
            left_of_next = pair.taken_left;
            let taken_right = if position + 2 < piece.len() {
                pairs.neighbours(piece[position + 1], piece[position + 2]).taken_right
            } else {
                NONE
            };
            if pair.rank < taken_left && pair.rank < taken_right {
                part = pair.rank;
                length = 2;
                left_of_next = if position + 2 < piece.len() {
                    pairs.neighbours(piece[position + 1], piece[position + 2]).taken_left
                } else {
                    NONE
                };
            }
        }
        state.parts[state.count] = part;
        state.count += 1;
        taken_left = left_of_next;
        position += length;
    }
    for i in 1..state.count {
        state.ranks[i - 1] = pairs.merged(state.parts[i - 1], state.parts[i]);
    }
    state
}

impl Parts {
    /// Merges part `at` with the next one into `rank`.
    #[inline(always)]
    fn merge(&mut self, pairs: &Pairs, at: usize, rank: u32) {
        self.parts[at] = rank;
        self.count -= 1;
        for i in at + 1..self.count {
            self.parts[i] = self.parts[i + 1];
            self.ranks[i] = self.ranks[i + 1];
        }
        self.ranks[self.count] = NONE;
        self.ranks[at] =
            if at + 1 < self.count { pairs.merged(rank, self.parts[at + 1]) } else { NONE };
        if at > 0 {
            self.ranks[at - 1] = pairs.merged(self.parts[at - 1], rank);
        }
    }
}
