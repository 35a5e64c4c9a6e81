//! The tokens of a piece that is no token itself.
//!
//! The rule: starting from single bytes, the two neighbouring parts whose concatenation has the
//! lowest rank merge, leftmost on ties, until no two neighbours make a token.
//!
//! Five ways lead to the same parts. [`merge_parts`] follows the rule to the letter, for any
//! vocabulary, in O(n log n). For ordered vocabularies (see [`Vocabulary::is_ordered`]) `scan`
//! is faster on short pieces, `runs` on one character over and over, and `greedy`, which never
//! merges anything, on other long ones. `together` merges many short pieces at once.

mod backtrack;
mod initial;
mod lanes;
mod runs;
mod scan;

pub(crate) use lanes::{LANES_LIMIT, LaneMerger};

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::vocabulary::{NONE, Vocabulary};

/// Two neighbours that may merge: their parts, and the bytes that they cover.
pub(crate) struct Join {
    pub left: u32,
    pub right: u32,
    pub start: usize,
    pub end: usize,
}

/// Merges `bytes` by the rule. `part` tells what a single byte is, `merged` what two neighbours
/// become, or [`NONE`].
pub(crate) fn merge_parts(
    bytes: &[u8],
    part: impl Fn(u8) -> u32,
    merged: impl Fn(Join) -> u32,
) -> Vec<u32> {
    let end = bytes.len();
    let mut parts: Vec<u32> = bytes.iter().map(|&byte| part(byte)).collect();
    // Part i starts at byte i; a part that was merged into the one before it has no successor.
    let mut next: Vec<usize> = (1..=end).collect();
    let mut previous: Vec<usize> = (0..end).map(|i| i.wrapping_sub(1)).collect();
    let join = |parts: &[u32], next: &[usize], left: usize| {
        let right = next[left];
        if right >= end {
            return NONE;
        }
        merged(Join { left: parts[left], right: parts[right], start: left, end: next[right] })
    };
    let mut queue: BinaryHeap<Reverse<(u32, usize)>> = (0..end)
        .map(|left| Reverse((join(&parts, &next, left), left)))
        .filter(|Reverse((rank, _))| *rank != NONE)
        .collect();
    while let Some(Reverse((rank, left))) = queue.pop() {
        // An entry is stale when its part is gone or has other neighbours by now.
        if next[left] == 0 || join(&parts, &next, left) != rank {
            continue;
        }
        let right = next[left];
        parts[left] = rank;
        next[left] = next[right];
        next[right] = 0;
        if next[left] < end {
            previous[next[left]] = left;
        }
        for left in [previous[left], left] {
            if left < end {
                let rank = join(&parts, &next, left);
                if rank != NONE {
                    queue.push(Reverse((rank, left)));
                }
            }
        }
    }
    let mut merged_parts = Vec::new();
    let mut position = 0;
    while position < end {
        merged_parts.push(parts[position]);
        position = next[position];
    }
    merged_parts
}

/// Pieces of up to this many bytes are scanned. Above it `greedy` is faster, and its time is
/// linear where that of the scan is quadratic.
pub const SCAN_LIMIT: usize = 31;

/// Appends the parts of `piece` to `out`.
pub(crate) fn merge(vocabulary: &Vocabulary, piece: &[u8], out: &mut Vec<u32>) {
    if !vocabulary.is_ordered() {
        let pairs = vocabulary.pairs();
        out.extend(merge_parts(
            piece,
            |byte| pairs.byte(byte),
            |join| pairs.merged(join.left, join.right),
        ));
    } else if piece.len() <= SCAN_LIMIT {
        scan::scan(vocabulary.pairs(), piece, out);
    } else if !runs::merge_run(vocabulary.pairs(), piece, out) {
        backtrack::backtrack(vocabulary, piece, out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::{LANES_LIMIT, LaneMerger, SCAN_LIMIT, backtrack, merge_parts, runs, scan};
    use crate::Vocabulary;
    use crate::split::Piece;
    use crate::tier::Tier;

    /// Ordered vocabularies: every token is made of two that rank before it.
    fn learned() -> impl Strategy<Value = (Vocabulary, Vec<Vec<u8>>)> {
        let bytes: &[&[u8]] =
            &[b"ab", b"abc", b"\xe4\xb8\x80", b"\xe4\xb8\x80\x81a", b"\xd0\xb0\xd1"];
        let missing = prop::option::of(any::<Index>());
        let merges = vec(any::<(Index, Index)>(), 0..30);
        let pieces = vec(vec(any::<Index>(), 1..60), 1..40);
        (select(bytes), missing, merges, pieces).prop_map(|(bytes, missing, merges, pieces)| {
            let mut tokens: Vec<Vec<u8>> = bytes.iter().map(|&byte| vec![byte]).collect();
            for (left, right) in merges {
                let token = [left.get(&tokens).clone(), right.get(&tokens).clone()].concat();
                if token.len() < 60 && !tokens.contains(&token) {
                    tokens.push(token);
                }
            }
            let piece = |indexes: Vec<Index>| indexes.iter().map(|i| *i.get(bytes)).collect();
            let pieces = pieces.into_iter().map(piece).collect();
            if let Some(missing) = missing {
                tokens.remove(missing.index(bytes.len()));
            }
            let vocabulary = Vocabulary::build(tokens.into_iter().zip(0..).collect());
            (vocabulary.expect("a vocabulary"), pieces)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..<_>::default() })]

        #[test]
        fn every_way_leads_to_the_same_parts((vocabulary, pieces) in learned()) {
            prop_assume!(vocabulary.is_ordered());
            let pairs = vocabulary.pairs();
            for piece in pieces {
                let by_the_letter = merge_parts(
                    &piece,
                    |byte| pairs.byte(byte),
                    |join| pairs.merged(join.left, join.right),
                );
                // What is there already stays, and plays no part.
                let mut parts = vec![0];
                backtrack::backtrack(&vocabulary, &piece, &mut parts);
                prop_assert_eq!(&parts[1..], &by_the_letter, "greedy {}", piece.escape_ascii());
                if piece.len() <= SCAN_LIMIT {
                    let mut parts = vec![0];
                    scan::scan(pairs, &piece, &mut parts);
                    prop_assert_eq!(&parts[1..], &by_the_letter, "scan {}", piece.escape_ascii());
                }
            }
        }

        #[test]
        fn many_pieces_at_once_have_the_same_ids((vocabulary, pieces) in learned()) {
            prop_assume!(vocabulary.is_ordered());
            let mut text = Vec::new();
            let mut places = Vec::new();
            for piece in pieces.iter().cycle().take(150).filter(|piece| piece.len() <= LANES_LIMIT) {
                let place = Piece { start: text.len(), end: text.len() + piece.len() };
                text.extend_from_slice(piece);
                places.push((place, places.len()));
            }
            for tier in Tier::all() {
                let mut found = vec![None; places.len()];
                LaneMerger::new(tier).merge(&vocabulary, &text, &places, |_, i, ids| {
                    assert_eq!(found[i].replace(ids.to_vec()), None, "told once");
                });
                for ((place, i), found) in places.iter().zip(&found) {
                    let piece = &text[place.start..place.end];
                    let mut ids = Vec::new();
                    super::merge(&vocabulary, piece, &mut ids);
                    let expected = vocabulary.turn_into_ids(&mut ids).is_ok().then_some(ids);
                    let piece = piece.escape_ascii();
                    prop_assert_eq!(found, &expected, "{:?}, piece {}: {}", tier, i, piece);
                }
            }
        }

        #[test]
        fn runs_have_the_same_parts((vocabulary, pieces) in learned(), count in 2..400usize) {
            prop_assume!(vocabulary.is_ordered());
            let pairs = vocabulary.pairs();
            for piece in pieces {
                for width in [1, 3] {
                    let Some(character) = piece.get(..width) else { continue };
                    let run = character.repeat(count);
                    let mut parts = vec![0];
                    if !runs::merge_run(pairs, &run, &mut parts) {
                        prop_assert_eq!(parts, [0]);
                        continue;
                    }
                    let by_the_letter = merge_parts(
                        &run,
                        |byte| pairs.byte(byte),
                        |join| pairs.merged(join.left, join.right),
                    );
                    prop_assert_eq!(&parts[1..], &by_the_letter, "{}", run.escape_ascii());
                }
            }
        }
    }
}
