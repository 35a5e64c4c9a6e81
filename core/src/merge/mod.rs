//! Merges the bytes of a piece that is not itself a token into tokens.
//!
//! Four algorithms give the same parts. `HeapMerger` implements the rule literally (see
//! [`crate::rule`]), for any vocabulary, in O(n log n). For ordered vocabularies (see
//! [`Vocabulary::is_ordered`]) `scan` is faster on short pieces, `windows` on long pieces, and
//! `lanes` merges many short pieces at once.

mod initial;
mod lanes;
mod runs;
mod scan;
mod windows;

pub(crate) use lanes::{LANES_LIMIT, LaneMerger};

use crate::ablation::Mechanism;
use crate::error::Result;
use crate::rule::{HeapMerger, MergeTable};
use crate::vocabulary::Vocabulary;

/// Maximum length in bytes of a piece to scan: the scan is quadratic, and slower than a heap for
/// longer pieces.
pub const SCAN_LIMIT: usize = 31;

pub(crate) fn merge(vocabulary: &Vocabulary, piece: &[u8], out: &mut Vec<u32>) -> Result<()> {
    if !vocabulary.is_ordered() {
        let pairs = vocabulary.pairs()?;
        return merge_by_rule(pairs, piece.iter().map(|&byte| pairs.byte(byte)), out);
    }
    if piece.len() > SCAN_LIMIT || !Mechanism::Scan.is_used() {
        return windows::merge_long(vocabulary, piece, out);
    }
    scan::scan(vocabulary.pairs()?, piece, out);
    Ok(())
}

/// Merges parts, one per unit, by the literal rule and appends the result to `out`.
fn merge_by_rule(
    table: &impl MergeTable,
    parts: impl ExactSizeIterator<Item = u32>,
    out: &mut Vec<u32>,
) -> Result<()> {
    out.extend_from_slice(HeapMerger::default().merge_ranks(table, parts)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::{LANES_LIMIT, LaneMerger, windows};
    use crate::Vocabulary;
    use crate::error::Result;
    use crate::rule::is_valid_pair;
    use crate::split::Piece;
    use crate::tier::Tier;
    use crate::vocabulary::Pairs;

    /// Generates ordered vocabularies: every token is merged from two tokens of lower rank.
    fn learned() -> impl Strategy<Value = (Vocabulary, Vec<Vec<u8>>)> {
        let bytes: &[&[u8]] =
            &[b"ab", b"abc", b"a\0", b"\xe4\xb8\x80ab", b"\xe4\xb8\x80\x81a", b"\xd0\xb0\xd1"];
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

    fn merge_by_rule(pairs: &Pairs, piece: &[u8], out: &mut Vec<u32>) -> Result<()> {
        super::merge_by_rule(pairs, piece.iter().map(|&byte| pairs.byte(byte)), out)
    }

    proptest! {
        #![proptest_config(crate::test_support::config(800))]

        #[test]
        fn pairs_are_valid_where_merging_leaves_them((vocabulary, _) in learned()) {
            prop_assume!(vocabulary.is_ordered());
            let pairs = vocabulary.pairs().unwrap();
            let ranks = 0..vocabulary.len() as u32;
            let reachable: Vec<u32> = ranks.filter(|&rank| vocabulary.is_reachable(rank)).collect();
            for &first in &reachable {
                for &second in &reachable {
                    let bytes = [vocabulary.token(first), vocabulary.token(second)].concat();
                    let mut parts = Vec::new();
                    merge_by_rule(pairs, &bytes, &mut parts).unwrap();
                    let valid = is_valid_pair(pairs, first, second);
                    prop_assert_eq!(valid, parts == [first, second], "{}", bytes.escape_ascii());
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
                    assert_eq!(found[i].replace(ids.to_vec()), None, "once each");
                });
                for ((place, i), found) in places.iter().zip(&found) {
                    let piece = &text[place.start..place.end];
                    let mut ids = Vec::new();
                    super::merge(&vocabulary, piece, &mut ids).unwrap();
                    let expected = vocabulary.turn_into_ids(&mut ids).is_ok().then_some(ids);
                    let piece = piece.escape_ascii();
                    prop_assert_eq!(found, &expected, "{:?}, piece {}: {}", tier, i, piece);
                }
            }
        }

        #[test]
        fn long_pieces_have_the_same_parts(
            (vocabulary, pieces) in learned(),
            runs in vec((any::<Index>(), 1..3usize, 1..80usize), 1..60),
        ) {
            prop_assume!(vocabulary.is_ordered());
            let mut piece = Vec::new();
            for (which, width, count) in runs {
                let source = which.get(&pieces);
                piece.extend(source[..width.min(source.len())].repeat(count));
            }
            let mut by_the_letter = Vec::new();
            merge_by_rule(vocabulary.pairs().unwrap(), &piece, &mut by_the_letter).unwrap();
            for window in [1, 7, 64, 512] {
                let mut parts = vec![0];
                windows::merge_windows(&vocabulary, &piece, window, &mut parts).unwrap();
                prop_assert_eq!(&parts[1..], &by_the_letter, "{} {}", window, piece.escape_ascii());
            }
        }
    }
}
