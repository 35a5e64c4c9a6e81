//! Merging of long pieces without merging: the longest token first, one after the other, each
//! checked against the one before it.
//!
//! Tokens side by side are the result of merging when no two neighbours among them could have
//! merged across their border while they were being merged themselves. So the piece is read from
//! the left: the longest token that fits the one before it is taken; where none fits, the token
//! before is given up for a shorter one. A position that has been given up is never tried again:
//! the tokens of the bytes before it are always the same, so it cannot turn out better. Each
//! position is given up at most once, so the time is linear in the piece (times the longest
//! token).

use super::merge_parts;
use crate::vocabulary::{NONE, Pairs, Trie, Vocabulary};

/// Appends the parts of `piece` to `out`. For ordered vocabularies only.
pub(super) fn backtrack(vocabulary: &Vocabulary, piece: &[u8], out: &mut Vec<u32>) {
    let pairs = vocabulary.pairs();
    let from = out.len();
    let done = match vocabulary.trie() {
        Some(trie) => walk(vocabulary, trie, piece, out),
        None => false,
    };
    if !done {
        // A byte that is no token, or too many tokens for a trie.
        out.truncate(from);
        let merged = |join: super::Join| pairs.merged(join.left, join.right);
        out.extend(merge_parts(piece, |byte| pairs.byte(byte), merged));
    }
}

/// False when the piece is not made of tokens.
fn walk(vocabulary: &Vocabulary, trie: &Trie, piece: &[u8], out: &mut Vec<u32>) -> bool {
    let from = out.len();
    let pairs = vocabulary.pairs();
    let mut given_up = Positions::new(piece.len() + 1);
    let mut remembered = Remembered::for_piece(piece);
    let mut position = 0;
    let mut token = trie.longest(piece);
    loop {
        while token != NONE {
            let end = position + vocabulary.token(token).len();
            let fits = !given_up.has(end)
                && out[from..].last().is_none_or(|&before| remembered.stand(pairs, before, token));
            if fits {
                out.push(token);
                position = end;
                if position == piece.len() {
                    return true;
                }
                token = trie.longest(&piece[position..]);
            } else {
                token = trie.shorter(token);
            }
        }
        given_up.add(position);
        if out.len() == from {
            return false;
        }
        let last = out.pop().expect("there is a token before");
        position -= vocabulary.token(last).len();
        token = trie.shorter(last);
    }
}

/// Whether merging leaves these two tokens side by side: whether no part at the end of the first
/// merges with a part at the start of the second before both tokens are complete.
///
/// Undoes the merges of both at their border, the latest first. `limit` is the rank of the merge
/// undone last: a merge across the border had to rank before it to come first.
#[inline]
fn stand(pairs: &Pairs, first: u32, second: u32) -> bool {
    let (mut left, mut right) = (first, second);
    let mut limit = NONE;
    loop {
        if pairs.merged(left, right) < limit {
            return false;
        }
        // Of two equal tokens the left one is merged first.
        match (pairs.split(left), pairs.split(right)) {
            (None, None) => return true,
            (Some((_, end)), split) if left > right || split.is_none() => {
                limit = left;
                left = end;
            }
            (_, Some((start, _))) => {
                // On a tie the merge across the border is the one further left.
                limit = right + 1;
                right = start;
            }
            (Some(_), None) => unreachable!("the second arm takes it"),
        }
    }
}

/// Answers of [`stand`]: in a long piece that repeats itself, the same two tokens are asked for
/// again and again.
struct Remembered {
    /// The two tokens, and 1 if they stand; [`NONE`] where nothing is remembered yet. None at all
    /// for short pieces.
    answers: Vec<[u32; 3]>,
}

impl Remembered {
    /// Pieces of fewer bytes do not repeat themselves enough.
    const WORTHWHILE: usize = 256;
    const ANSWERS: usize = 1024;

    fn for_piece(piece: &[u8]) -> Self {
        let answers = if piece.len() < Self::WORTHWHILE { 0 } else { Self::ANSWERS };
        Self { answers: vec![[NONE; 3]; answers] }
    }

    #[inline(always)]
    fn stand(&mut self, pairs: &Pairs, first: u32, second: u32) -> bool {
        let place = first.wrapping_mul(31).wrapping_add(second) as usize % Self::ANSWERS;
        let Some(answer) = self.answers.get_mut(place) else { return stand(pairs, first, second) };
        if answer[..2] != [first, second] {
            *answer = [first, second, u32::from(stand(pairs, first, second))];
        }
        answer[2] != 0
    }
}

/// A set of positions.
struct Positions(Vec<u64>);

impl Positions {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    #[inline(always)]
    fn has(&self, position: usize) -> bool {
        self.0[position / 64] >> (position % 64) & 1 != 0
    }

    fn add(&mut self, position: usize) {
        self.0[position / 64] |= 1 << (position % 64);
    }
}
