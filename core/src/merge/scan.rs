//! Merging of short pieces: a pass of merges that need no comparing, then the lowest rank, again
//! and again, by looking at all of them.

use super::SCAN_LIMIT;
use crate::vocabulary::{NONE, Pairs, three_byte_char};

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

/// Single bytes, but for what is certain to merge with each other: characters of three bytes
/// that are complete before anything else can take a part of them, and pairs of bytes.
///
/// Two neighbouring bytes are certain to when their merge ranks before every merge that could
/// take the first from the left, or the second from the right: both are still single bytes when
/// the turn of their rank comes. To do it at once changes nothing, since whatever merges with
/// the result ranks after it.
fn start(pairs: &Pairs, piece: &[u8]) -> Parts {
    let mut state =
        Parts { parts: [NONE; SCAN_LIMIT + 1], ranks: [NONE; SCAN_LIMIT + 1], count: 0 };
    let next_to = |position: usize| {
        let pair = piece.get(position..position + 2);
        pair.map(|pair| pairs.neighbours(pair[0], pair[1]))
    };
    let mut taken_left = NONE;
    let mut position = 0;
    while position < piece.len() {
        let mut part = pairs.byte(piece[position]);
        let mut length = 1;
        let character = three_byte_char(&piece[position..]);
        let character = character.map_or(NONE, |code_point| pairs.character(code_point));
        if character != NONE {
            (part, length) = (character, 3);
        } else if let Some(pair) = next_to(position) {
            let taken_right = next_to(position + 1).map_or(NONE, |next| next.taken_right);
            if pair.rank < taken_left && pair.rank < taken_right {
                (part, length) = (pair.rank, 2);
            }
        }
        state.parts[state.count] = part;
        state.count += 1;
        position += length;
        taken_left = next_to(position - 1).map_or(NONE, |pair| pair.taken_left);
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
