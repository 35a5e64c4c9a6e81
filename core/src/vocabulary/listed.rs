//! Takes the splits of tokens from a list of merges: verifying splits is faster than searching.
//!
//! Tokens are processed in the order of ranks. A listed pair is the split of its token if both
//! parts rank before the token, are themselves reachable, and are complete side by side. Only
//! tokens of lower ranks can merge before the pair does, and their splits are known.

use super::NONE;
use super::splits::{AT_ONCE, Candidate, Search};
use super::tokens::{SHORT, TokenProbe, Tokens};
use crate::error::Result;
use crate::polling::poll;

/// Returns the split of each token by rank, [`NONE`] twice for single bytes and for unreachable
/// tokens. `cuts` lists, by ascending rank, possible lengths in bytes of the first of the two parts
/// of a token.
///
/// `None` if the cuts lack the split of a reachable token, or if a token with cuts is unreachable
/// or ranks before its parts.
pub(super) fn listed_splits(
    tokens: &Tokens,
    bytes: &[u32],
    cuts: &[(u32, u32)],
) -> Result<Option<Vec<[u32; 2]>>> {
    let mut search = Search::new(tokens, bytes);
    if !cuts.is_sorted_by_key(|&(rank, _)| rank) {
        return Ok(None);
    }
    let mut candidates = [Candidate::default(); AT_ONCE];
    for block in cuts.chunks(AT_ONCE) {
        let candidates = &mut candidates[..block.len()];
        if !find_parts(tokens, bytes, block, candidates)? {
            return Ok(None);
        }
        search.prefetch_pairs(candidates);
        search.prefetch_borders(candidates);
        for &Candidate { rank, prefix, rest } in &*candidates {
            let is_before = |part: u32| part < rank || tokens.bytes(part).len() == 1;
            if !search.has_split(rank)
                && is_before(prefix)
                && is_before(rest)
                && search.is_split(prefix, rest)
            {
                search.set_split(rank, [prefix, rest]);
            }
        }
    }
    // Every token with cuts must have a split now, and other tokens cannot have a split.
    let mut listed = cuts.iter().map(|&(rank, _)| rank).peekable();
    for rank in 0..tokens.len() as u32 {
        let mut is_listed = false;
        while listed.next_if_eq(&rank).is_some() {
            is_listed = true;
        }
        let is_right = match tokens.bytes(rank).len() {
            0 | 1 => !is_listed,
            _ if is_listed => search.has_split(rank),
            length => {
                poll(length)?;
                search.merge(rank)?.is_none()
            }
        };
        if !is_right {
            return Ok(None);
        }
    }
    Ok(listed.next().is_none().then_some(search.splits))
}

/// Looks up the two parts of each cut. Returns false if a part is not a token.
fn find_parts(
    tokens: &Tokens,
    bytes: &[u32],
    block: &[(u32, u32)],
    candidates: &mut [Candidate],
) -> Result<bool> {
    let mut probes = [TokenProbe::new([0; 2]); 2 * AT_ONCE];
    for (index, &(rank, cut)) in block.iter().enumerate() {
        let is_inside =
            (rank as usize) < tokens.len() && cut > 0 && (cut as usize) < tokens.bytes(rank).len();
        if !is_inside {
            return Ok(false);
        }
        let (length, cut) = (tokens.bytes(rank).len(), cut as usize);
        poll(length)?;
        for (part, (from, to)) in [(0, cut), (cut, length)].into_iter().enumerate() {
            if (2..=SHORT).contains(&(to - from)) {
                let probe = &mut probes[2 * index + part];
                *probe = TokenProbe::new(tokens.key_of_part(rank, from, to));
                tokens.prefetch(probe);
            }
        }
    }
    let probes = &mut probes[..2 * block.len()];
    // Prefetching unused probes is cheaper than skipping them.
    probes.iter_mut().for_each(|probe| tokens.prefetch_slot(probe));
    probes.iter_mut().for_each(|probe| tokens.prefetch_bytes(probe));
    let mut all_found = true;
    for (index, (candidate, &(rank, cut))) in candidates.iter_mut().zip(block).enumerate() {
        let (first, second) = tokens.bytes(rank).split_at(cut as usize);
        let find = |part: usize, of: &[u8]| match of.len() {
            1 => bytes[usize::from(of[0])],
            2..=SHORT => tokens.found(&probes[2 * index + part]),
            _ => tokens.find_long(of).unwrap_or(NONE),
        };
        *candidate = Candidate { rank, prefix: find(0, first), rest: find(1, second) };
        all_found &= candidate.prefix.max(candidate.rest) < tokens.len() as u32;
    }
    Ok(all_found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::vocabulary::{RankList, Vocabulary};

    /// Returns every cut of every token into two tokens of any rank.
    fn all_cuts(vocabulary: &Vocabulary) -> Vec<(u32, u32)> {
        let mut cuts = Vec::new();
        for rank in 0..vocabulary.len() as u32 {
            let token = vocabulary.token(rank);
            let is_token = |part: &[u8]| vocabulary.rank(part).is_some();
            cuts.extend(
                (1..token.len())
                    .filter(|&cut| is_token(&token[..cut]) && is_token(&token[cut..]))
                    .map(|cut| (rank, cut as u32)),
            );
        }
        cuts
    }

    fn true_cuts(vocabulary: &Vocabulary) -> Vec<(u32, u32)> {
        let split = |rank| Some((rank, vocabulary.split(rank)?.0));
        let splits = (0..vocabulary.len() as u32).filter_map(split);
        splits.map(|(rank, left)| (rank, vocabulary.token(left).len() as u32)).collect()
    }

    /// Generates bytes, and words of few letters in any order, some of them unreachable.
    fn tokens() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let words = prop::collection::hash_set(prop::collection::vec(b'a'..=b'c', 2..7), 0..40);
        words.prop_map(|words| {
            let bytes = (0..=255u8).map(|byte| vec![byte]);
            bytes.chain(words).collect()
        })
    }

    fn list(tokens: &[Vec<u8>]) -> RankList {
        RankList::try_from(tokens.iter().zip(0..).collect::<Vec<_>>()).unwrap()
    }

    proptest! {
        #![proptest_config(crate::test_support::config(400))]

        /// Accepted splits equal the result of the search; refused splits differ from it.
        #[test]
        fn listed_splits_are_those_that_are_searched_for(
            tokens in tokens(),
            dropped in prop::option::of(any::<prop::sample::Index>()),
            all in any::<bool>(),
        ) {
            let searched = Vocabulary::from_ranks(list(&tokens)).unwrap();
            let found = true_cuts(&searched);
            let mut cuts = if all { all_cuts(&searched) } else { found.clone() };
            if let (Some(index), false) = (dropped, cuts.is_empty()) {
                cuts.remove(index.index(cuts.len()));
            }
            let has_all = found.iter().all(|cut| cuts.contains(cut));
            let is_reached = cuts.iter().all(|&(rank, _)| searched.split(rank).is_some());
            match Vocabulary::from_cuts(list(&tokens), &cuts).unwrap() {
                Some(listed) => {
                    prop_assert!(has_all && is_reached);
                    prop_assert_eq!(listed.to_image(), searched.to_image());
                }
                None => prop_assert!(!(has_all && is_reached && searched.is_ordered())),
            }
        }
    }

    #[test]
    fn what_is_no_cut_is_refused() {
        let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
        tokens.extend([b"ab".to_vec(), b"abc".to_vec()]);
        for cuts in [
            &[(256, 1)][..],
            &[(257, 2), (256, 1)],
            &[(256, 1), (257, 1)],
            &[(256, 0), (257, 2)],
            &[(256, 2), (257, 2)],
            &[(256, 1), (257, 2), (258, 1)],
            &[(97, 1), (256, 1), (257, 2)],
        ] {
            assert!(Vocabulary::from_cuts(list(&tokens), cuts).unwrap().is_none(), "{cuts:?}");
        }
        assert!(Vocabulary::from_cuts(list(&tokens), &[(256, 1), (257, 2)]).unwrap().is_some());
        let doubled: Vec<Vec<u8>> = (0..6).map(|power| b"a".repeat(1 << power)).collect();
        let halves = (1..6).map(|power| (power, 1 << (power - 1))).collect::<Vec<_>>();
        assert!(Vocabulary::from_cuts(list(&doubled), &halves).unwrap().is_some());
        // A byte may rank after a token that contains it.
        let late = [b"ab".to_vec(), b"a".to_vec(), b"b".to_vec()];
        assert!(Vocabulary::from_cuts(list(&late), &[(0, 1)]).unwrap().is_some());
        // The first part is not a token; the number of that byte comes directly after the ranks.
        let open = [b"a".to_vec(), b"\0a".to_vec()];
        assert!(Vocabulary::from_cuts(list(&open), &[(1, 1)]).unwrap().is_none());
        tokens.push(b"ab".to_vec());
        let cuts = [(256, 1), (257, 2), (258, 1)];
        assert!(Vocabulary::from_cuts(list(&tokens), &cuts).unwrap().is_none());
    }
}
