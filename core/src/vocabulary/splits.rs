//! Finds the split of each token: the two parts of the last merge of its bytes.
//!
//! Tokens are processed by length, since all parts of a token are shorter. For each token, its
//! prefixes that are tokens are tried as the first part, longest first. The rest must also be a
//! token, both must rank before the token, and merging must leave the two side by side
//! (`complete_side_by_side`). Then merging, which takes the lowest rank first, reaches the two
//! parts regardless of later ranks.
//!
//! A token without such a pair is unreachable, unless a token that ranks after it is used in
//! merging it. Then merging is not ordered, and every token is merged to see the result.

use std::hash::{BuildHasher, RandomState};

use super::pairs::{missing, pack};
use super::tokens::{Key, SHORT, TokenProbe, Tokens};
use super::{NONE, RANK_BITS, RANK_MASK};
use crate::error::Result;
use crate::hash::fold;
use crate::memory::{prefetch, zeroed};
use crate::polling::poll;
use crate::rule::{HeapMerger, MergeTable, complete_side_by_side, undo_at_border};

/// Number of tokens looked up together, and of rounds before each token is searched for alone.
pub(super) const AT_ONCE: usize = 64;
const ROUNDS: usize = 4;

/// Returns the split of each token by rank: [`NONE`] twice for single bytes and for unreachable
/// tokens. `prefixes` has the longest other token that is a prefix of each token.
pub(super) fn splits(tokens: &Tokens, bytes: &[u32], prefixes: &[u32]) -> Result<Vec<[u32; 2]>> {
    let mut search = Search::new(tokens, bytes);
    let order = by_length(tokens);
    let mut stuck = Vec::new();
    for same in order.chunk_by(|&a, &b| tokens.bytes(a).len() == tokens.bytes(b).len()) {
        for block in same.chunks(AT_ONCE) {
            poll(block.len() * tokens.bytes(block[0]).len())?;
            search.split_block(block, prefixes)?;
            stuck.reserve(block.len());
            stuck.extend(block.iter().filter(|&&rank| !search.has_split(rank)));
        }
    }
    for rank in stuck {
        poll(tokens.bytes(rank).len())?;
        if search.may_have_split(rank, prefixes) && search.merge(rank)?.is_some() {
            return splits_by_merging(tokens, bytes, &order);
        }
    }
    Ok(search.splits)
}

/// Finds the splits if tokens may rank before their parts.
fn splits_by_merging(tokens: &Tokens, bytes: &[u32], order: &[u32]) -> Result<Vec<[u32; 2]>> {
    let mut search = Search::new(tokens, bytes);
    for &rank in order {
        poll(tokens.bytes(rank).len())?;
        if let Some(split) = search.merge(rank)? {
            search.set_split(rank, split);
        }
    }
    Ok(search.splits)
}

/// Returns the tokens of two or more bytes by length, then by rank.
fn by_length(tokens: &Tokens) -> Vec<u32> {
    let ranks = 0..tokens.len() as u32;
    let mut order: Vec<u32> = ranks.filter(|&rank| tokens.bytes(rank).len() > 1).collect();
    order.sort_by_cached_key(|&rank| tokens.bytes(rank).len());
    order
}

/// A token whose split is searched for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) rank: u32,
    /// Longest prefix that is not ruled out, or [`NONE`] for the first byte.
    pub(super) prefix: u32,
    /// Part of the rest, or [`NONE`] if the rest has not been looked up.
    pub(super) rest: u32,
}

impl Default for Candidate {
    fn default() -> Self {
        Self { rank: NONE, prefix: NONE, rest: NONE }
    }
}

/// Splits and pairs known so far.
pub(super) struct Search<'a> {
    tokens: &'a Tokens,
    bytes: &'a [u32],
    pub(super) splits: Vec<[u32; 2]>,
    pairs: PairMap,
    merger: HeapMerger,
}

impl<'a> Search<'a> {
    pub(super) fn new(tokens: &'a Tokens, bytes: &'a [u32]) -> Self {
        Self {
            tokens,
            bytes,
            splits: vec![[NONE; 2]; tokens.len()],
            pairs: PairMap::new(tokens.len()),
            merger: HeapMerger::default(),
        }
    }

    pub(super) fn has_split(&self, rank: u32) -> bool {
        self.splits[rank as usize][0] != NONE
    }

    pub(super) fn set_split(&mut self, rank: u32, split: [u32; 2]) {
        self.splits[rank as usize] = split;
        self.pairs.insert(pack(split[0], split[1]), rank);
    }

    /// Finds the splits of tokens of one length, given the splits of all shorter tokens.
    fn split_block(&mut self, block: &[u32], prefixes: &[u32]) -> Result<()> {
        for &rank in block {
            self.tokens.prefetch_start(prefixes[rank as usize]);
        }
        let mut candidates = [Candidate::default(); AT_ONCE];
        for (candidate, &rank) in candidates.iter_mut().zip(block) {
            *candidate = Candidate { rank, prefix: prefixes[rank as usize], rest: NONE };
        }
        let mut left = block.len();
        for _ in 0..ROUNDS {
            let candidates = &mut candidates[..left];
            self.look_up(prefixes, candidates);
            self.prefetch_borders(candidates);
            left = 0;
            for index in 0..candidates.len() {
                let mut candidate = candidates[index];
                let Candidate { rank, prefix, rest } = candidate;
                if rest != NONE {
                    if self.is_split(prefix, rest) {
                        self.splits[rank as usize] = [prefix, rest];
                        continue;
                    }
                    candidate =
                        Candidate { prefix: prefixes[prefix as usize], rest: NONE, ..candidate };
                }
                candidates[left] = candidate;
                left += 1;
            }
        }
        for &Candidate { rank, prefix, .. } in &candidates[..left] {
            if let Some(split) = self.split_by_prefix(rank, prefix, prefixes)? {
                self.splits[rank as usize] = split;
            }
        }
        let found = block.iter().map(|&rank| (rank, self.splits[rank as usize]));
        let found = found.filter(|&(_, [left, _])| left != NONE);
        for (_, [left, right]) in found.clone() {
            self.pairs.prefetch(pack(left, right));
        }
        for (rank, [left, right]) in found {
            self.pairs.insert(pack(left, right), rank);
        }
        Ok(())
    }

    /// Looks up the rests of all candidates after their prefixes. Rules out a prefix if the rest is
    /// not a token that ranks before the candidate.
    fn look_up(&self, prefixes: &[u32], candidates: &mut [Candidate]) {
        let mut probes = [(0, TokenProbe::new([0; 2])); AT_ONCE];
        let mut count = 0;
        for (index, candidate) in candidates.iter_mut().enumerate() {
            if let Some(key) = self.next_rest(prefixes, candidate) {
                probes[count] = (index, TokenProbe::new(key));
                self.tokens.prefetch(&mut probes[count].1);
                count += 1;
            }
        }
        let probes = &mut probes[..count];
        probes.iter_mut().for_each(|(_, probe)| self.tokens.prefetch_slot(probe));
        probes.iter_mut().for_each(|(_, probe)| self.tokens.prefetch_bytes(probe));
        for (index, probe) in probes {
            let candidate = &mut candidates[*index];
            let rest = self.tokens.found(probe);
            if rest < candidate.rank {
                candidate.rest = rest;
            } else {
                candidate.prefix = prefixes[candidate.prefix as usize];
            }
        }
    }

    /// Prefetches the memory that [`Search::set_split`] writes, if already known.
    pub(super) fn prefetch_pairs(&self, candidates: &[Candidate]) {
        for &Candidate { prefix, rest, .. } in candidates {
            self.pairs.prefetch(pack(prefix, rest));
        }
    }

    /// Prefetches the memory that [`Search::is_split`] reads first.
    pub(super) fn prefetch_borders(&self, candidates: &[Candidate]) {
        let found = candidates.iter().filter(|candidate| candidate.rest != NONE);
        for &Candidate { prefix, rest, .. } in found.clone() {
            prefetch(&self.splits[prefix as usize]);
            if let Some(split) = self.splits.get(rest as usize) {
                prefetch(split);
            }
        }
        for &Candidate { prefix, rest, .. } in found {
            let mut border = [prefix, rest];
            if undo_at_border(self, &mut border).is_some() {
                self.pairs.prefetch(pack(border[0], border[1]));
            }
        }
    }

    /// Returns the key of the rest after the prefix of a candidate, or after the next shorter
    /// prefix that ranks before the token. `None` if the candidate needs no look-up or another kind
    /// of look-up.
    fn next_rest(&self, prefixes: &[u32], candidate: &mut Candidate) -> Option<Key> {
        let token = self.tokens.bytes(candidate.rank);
        while candidate.prefix != NONE {
            let from = self.tokens.bytes(candidate.prefix).len();
            if from == 1 || candidate.prefix < candidate.rank {
                if from + 1 == token.len() {
                    candidate.rest = self.bytes[usize::from(token[from])];
                    return None;
                }
                let is_short = token.len() - from <= SHORT;
                return is_short.then(|| self.tokens.key_of_end(candidate.rank, from));
            }
            candidate.prefix = prefixes[candidate.prefix as usize];
        }
        None
    }

    /// Returns true if merging a token ends with these two parts, which form the token. Parts
    /// longer than a byte rank before the token.
    pub(super) fn is_split(&self, left: u32, right: u32) -> bool {
        let is_known = |part: u32| {
            self.splits
                .get(part as usize)
                .is_none_or(|split| split[0] != NONE || self.tokens.bytes(part).len() == 1)
        };
        is_known(left) && is_known(right) && complete_side_by_side(self, left, right)
    }

    /// Finds the split of a token, given all shorter tokens' splits and the longest possible
    /// prefix.
    fn split_by_prefix(
        &mut self,
        rank: u32,
        prefix: u32,
        prefixes: &[u32],
    ) -> Result<Option<[u32; 2]>> {
        let token = self.tokens.bytes(rank);
        let mut parts = Prefixes::new(self, token, prefix);
        while let Some((left, length)) = parts.next(self, prefixes) {
            if self.is_part_of(left, length, rank)
                && let Some(right) = self.part(&token[length..])
                && self.is_part_of(right, token.len() - length, rank)
                && complete_side_by_side(self, left, right)
            {
                return Ok(Some([left, right]));
            }
        }
        if !parts.are_too_many {
            return Ok(None);
        }
        let split = self.merge(rank)?;
        let is_before = |part: u32| match self.splits.get(part as usize) {
            Some(_) => self.is_part_of(part, self.tokens.bytes(part).len(), rank),
            None => true,
        };
        Ok(split.filter(|split| split.iter().all(|&part| is_before(part))))
    }

    /// Returns true if a token may have a split: if two reachable parts of any rank form it.
    ///
    /// If merging is not ordered, the shortest token whose split differs from the result of
    /// [`Search::split_by_prefix`] has such parts, which are shorter than the token.
    fn may_have_split(&self, rank: u32, prefixes: &[u32]) -> bool {
        let token = self.tokens.bytes(rank);
        let mut parts = Prefixes::new(self, token, prefixes[rank as usize]);
        while let Some((left, length)) = parts.next(self, prefixes) {
            if self.is_reachable(left, length)
                && let Some(right) = self.part(&token[length..])
                && self.is_reachable(right, token.len() - length)
            {
                return true;
            }
        }
        parts.are_too_many
    }

    fn part(&self, bytes: &[u8]) -> Option<u32> {
        match *bytes {
            [byte] => Some(self.bytes[usize::from(byte)]),
            _ => self.tokens.find(bytes),
        }
    }

    /// Returns true if merging the token with this rank can reach this part.
    fn is_part_of(&self, part: u32, length: usize, rank: u32) -> bool {
        length == 1 || (part < rank && self.splits[part as usize][0] != NONE)
    }

    /// Returns true if merging can reach this part, as far as known.
    fn is_reachable(&self, part: u32, length: usize) -> bool {
        length == 1 || self.splits[part as usize][0] != NONE
    }

    /// Finds the split of a token by merging, given the splits of all its possible parts.
    pub(super) fn merge(&mut self, rank: u32) -> Result<Option<[u32; 2]>> {
        let mut merger = std::mem::take(&mut self.merger);
        let bytes = self.tokens.bytes(rank).iter();
        let parts = merger.merge_ranks(self, bytes.map(|&byte| self.bytes[usize::from(byte)]))?;
        let split = <[u32; 2]>::try_from(parts).ok();
        self.merger = merger;
        Ok(split)
    }
}

/// Possible first parts of a token, longest first.
struct Prefixes {
    next: u32,
    is_done: bool,
    /// Part of the first byte.
    first: u32,
    length: usize,
    work: usize,
    /// True if some parts were skipped because trying them would take too long.
    are_too_many: bool,
}

impl Prefixes {
    /// Maximum work of all tries, as a multiple of the token's length and an additional constant;
    /// beyond it, merging is faster. Each try may take time linear in the token.
    const TRIES: usize = 4;
    const WORK: usize = 256;

    fn new(search: &Search, token: &[u8], longest: u32) -> Self {
        let first = token.first().map_or(NONE, |&byte| search.bytes[usize::from(byte)]);
        let length = token.len();
        Self { next: longest, is_done: length < 2, first, length, work: 0, are_too_many: false }
    }

    /// Returns the next part, and its length in bytes.
    #[inline]
    fn next(&mut self, search: &Search, prefixes: &[u32]) -> Option<(u32, usize)> {
        if self.is_done {
            return None;
        }
        if self.work > Self::TRIES * self.length + Self::WORK {
            self.are_too_many = true;
            return None;
        }
        self.work += self.length;
        // The last part is the first byte, which may not be a token.
        let (part, length) = match self.next {
            NONE => (self.first, 1),
            prefix => (prefix, search.tokens.bytes(prefix).len()),
        };
        self.is_done = length == 1;
        if !self.is_done {
            self.next = prefixes[part as usize];
        }
        Some((part, length))
    }
}

impl MergeTable for Search<'_> {
    #[inline]
    fn merged(&self, left: u32, right: u32) -> u32 {
        self.pairs.get(pack(left, right))
    }

    #[inline]
    fn split(&self, part: u32) -> [u32; 2] {
        self.splits.get(part as usize).copied().unwrap_or([NONE; 2])
    }
}

/// Hash table of packed pairs and their ranks, for the search: open addressing.
struct PairMap {
    /// A pair with its rank in the low bits, or [`PairMap::EMPTY`].
    words: Vec<u64>,
    /// Filter with two hashed bits per pair: most pairs looked up are absent, and the filter stays
    /// in the L2 cache.
    filter: Vec<u64>,
    seeds: [u64; 2],
}

impl PairMap {
    /// No pair is zero, since no token is merged from itself.
    const EMPTY: u64 = 0;

    fn new(count: usize) -> PairMap {
        // Random, so that nobody can choose colliding tokens.
        let random = RandomState::new();
        Self {
            words: zeroed((2 * count).next_power_of_two()),
            filter: vec![0; (count / 8).next_power_of_two()],
            seeds: [random.hash_one(0), random.hash_one(1)],
        }
    }

    #[inline]
    fn hash(&self, pair: u64) -> u64 {
        fold(pair ^ self.seeds[0], self.seeds[1])
    }

    /// Returns the index of the filter word of a hash, and its bits.
    #[inline]
    fn bits(&self, hash: u64) -> (usize, u64) {
        (
            (hash >> 44) as usize & (self.filter.len() - 1),
            1 << (hash >> 32 & 63) | 1 << (hash >> 38 & 63),
        )
    }

    /// Returns the slot of the pair with this hash, or the empty slot for it.
    #[inline]
    fn slot(&self, pair: u64, hash: u64) -> usize {
        let last = self.words.len() - 1;
        let mut slot = hash as usize & last;
        while self.words[slot] != Self::EMPTY && self.words[slot] >> RANK_BITS != pair {
            slot = (slot + 1) & last;
        }
        slot
    }

    #[inline]
    fn get(&self, pair: u64) -> u32 {
        let hash = self.hash(pair);
        let (word, bits) = self.bits(hash);
        if self.filter[word] & bits != bits {
            return NONE;
        }
        let word = self.words[self.slot(pair, hash)];
        if word == Self::EMPTY { NONE } else { word as u32 & RANK_MASK }
    }

    /// Prefetches the memory that [`PairMap::insert`] reads.
    #[inline]
    fn prefetch(&self, pair: u64) {
        prefetch(&self.words[self.hash(pair) as usize & (self.words.len() - 1)]);
    }

    fn insert(&mut self, pair: u64, rank: u32) {
        let hash = self.hash(pair);
        let slot = self.slot(pair, hash);
        self.words[slot] = pair << RANK_BITS | u64::from(rank);
        let (word, bits) = self.bits(hash);
        self.filter[word] |= bits;
    }
}

/// Returns the part of each byte: its token, or a number for a byte without a token.
pub(super) fn byte_parts(tokens: &Tokens) -> Vec<u32> {
    (0..=255u8).map(|byte| tokens.find(&[byte]).unwrap_or(missing(tokens.len(), byte))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::rank_list::RankList;
    use super::*;

    /// Generates bytes, and words of few letters in any order, which may rank before their parts.
    fn tokens() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let words = prop::collection::hash_set(prop::collection::vec(b'a'..=b'c', 2..9), 0..60);
        words.prop_map(|words| (b'a'..=b'c').map(|byte| vec![byte]).chain(words).collect())
    }

    proptest! {
        #![proptest_config(crate::test_support::config(200))]

        #[test]
        fn splits_are_those_of_merging(tokens in tokens()) {
            let list = RankList::try_from(tokens.iter().zip(0..).collect::<Vec<_>>()).unwrap();
            let (tokens, order) = Tokens::build(list).unwrap();
            let bytes = byte_parts(&tokens);
            let found = splits(&tokens, &bytes, &order.prefixes(|rank| tokens.bytes(rank).len())).unwrap();
            let order = by_length(&tokens);
            prop_assert_eq!(found, splits_by_merging(&tokens, &bytes, &order).unwrap());
        }
    }
}
