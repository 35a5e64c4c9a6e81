//! Looks up whether two neighboring parts merge, and into which token.
//!
//! A part is a rank, or [`missing`]`(byte)` for a single byte that is not a token.
//!
//! Merging is defined on bytes: two parts merge if their concatenation is a token. Yet each token
//! needs only one pair. When two neighbors form a token, every merge between its first and last
//! byte has happened inside it, in the order in which its bytes alone would merge, so the two parts
//! are always the same. A token whose bytes alone do not merge into it is never the result of a
//! merge: it is *unreachable*.

use bytemuck::{Pod, Zeroable};

use super::boundaries::three_byte_char;
use super::perfect_hash::PerfectHash;
use super::tokens::Tokens;
use super::{NONE, RANK_BITS, RANK_MASK, Section};
use crate::error::{Error, Result};
use crate::hash::fold;
use crate::memory::prefetch;
use crate::rule::MergeTable;

/// Returns the part of a single byte that is not a token.
pub(crate) fn missing(tokens: usize, byte: u8) -> u32 {
    tokens as u32 + u32::from(byte)
}

/// Merge ranks of two neighboring single bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub(crate) struct Neighbors {
    /// Rank of their concatenation, or [`NONE`].
    pub rank: u32,
    /// Lowest rank of a merge of the second byte with a part that ends in the first byte.
    pub left_merge_rank: u32,
    /// Lowest rank of a merge of the first byte with a part that starts with the second byte.
    pub right_merge_rank: u32,
    padding: u32,
}

impl Neighbors {
    /// Neighbors at the ends of a piece, which do not merge.
    pub(crate) const NONE: Self =
        Self { rank: NONE, left_merge_rank: NONE, right_merge_rank: NONE, padding: 0 };
}

#[derive(Debug, Clone)]
pub(crate) struct Pairs {
    /// Part of each byte.
    pub(super) bytes: Section<u32>,
    /// True if every byte is a token.
    pub(super) every_byte: bool,
    /// Indexed by `first byte * 256 + second byte`.
    pub(super) neighbors: Section<Neighbors>,
    /// By code point, for three-byte characters: the token that the character becomes before it
    /// merges with any other part, or [`NONE`] if that depends on its neighbors.
    pub(super) characters: Section<u32>,
    /// By rank: the pair that a token is merged from, or [`NONE`] twice.
    pub(super) splits: Section<[u32; 2]>,
    /// Rank of each pair; a word has the pair in the high bits and the rank below.
    pub(super) by_pair: PerfectHash,
}

const _: () = assert!(3 * RANK_BITS < u64::BITS);

#[inline(always)]
fn hash_pair(pair: u64, seeds: [u64; 2]) -> u64 {
    fold(pair ^ seeds[0], seeds[1])
}

/// Packs a pair into twice [`RANK_BITS`] bits.
#[inline(always)]
pub(super) fn pack(left: u32, right: u32) -> u64 {
    u64::from(left) << RANK_BITS | u64::from(right)
}

/// Returns the pair and the rank of each token that is merged.
fn merges(splits: &[[u32; 2]]) -> impl Iterator<Item = (u64, u32)> {
    let merged = splits.iter().zip(0..).filter(|(split, _)| split[0] != NONE);
    merged.map(|(&[left, right], rank)| (pack(left, right), rank))
}

fn word(pair: u64, rank: u32) -> u64 {
    pair << RANK_BITS | u64::from(rank)
}

/// Returns the rank in a word if the word holds `pair`, or [`NONE`].
#[inline(always)]
fn rank_in(word: u64, pair: u64) -> u32 {
    if word >> RANK_BITS == pair { word as u32 & RANK_MASK } else { NONE }
}

/// State of a stepwise look-up for a pair.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PairProbe {
    pair: u64,
    /// Hash after the first step, slot after the second step.
    hash_or_slot: u64,
}

impl PairProbe {
    #[inline(always)]
    pub(crate) fn new(left: u32, right: u32) -> Self {
        Self { pair: pack(left, right), hash_or_slot: 0 }
    }
}

impl Pairs {
    /// Builds the tables; `splits` has the split of every token, by rank.
    pub(super) fn build(tokens: &Tokens, bytes: Vec<u32>, splits: Vec<[u32; 2]>) -> Result<Self> {
        let merged: Vec<u32> = merges(&splits).map(|(_, rank)| rank).collect();
        let pair = |rank: u32| {
            let [left, right] = splits[rank as usize];
            pack(left, right)
        };
        let by_pair = PerfectHash::build(
            &merged,
            |rank, seeds| hash_pair(pair(rank), seeds),
            |rank, _| word(pair(rank), rank),
        )?
        .ok_or_else(|| Error::Vocabulary("no seeds hash the pairs without collisions".into()))?;
        Ok(Self {
            every_byte: bytes.iter().all(|&part| (part as usize) < tokens.len()),
            neighbors: neighbors(tokens, &splits).into(),
            characters: characters(tokens, &splits).into(),
            bytes: bytes.into(),
            splits: splits.into(),
            by_pair,
        })
    }

    /// Returns false for the pairs of an image, whose slots are empty.
    #[inline(always)]
    pub(super) fn are_filled(&self) -> bool {
        !self.by_pair.slots.is_empty()
    }

    /// Returns the pairs of an image with the slots filled.
    #[cold]
    pub(super) fn filled(&self) -> Result<Self> {
        let mut pairs = self.clone();
        let seeds = pairs.by_pair.seeds;
        let words =
            merges(&self.splits).map(|(pair, rank)| (hash_pair(pair, seeds), word(pair, rank)));
        pairs.by_pair.fill(merges(&self.splits).count(), words)?;
        Ok(pairs)
    }

    /// Returns the token that two parts merge into, or [`NONE`].
    #[inline(always)]
    pub(crate) fn merged(&self, left: u32, right: u32) -> u32 {
        let pair = pack(left, right);
        rank_in(self.by_pair.word(hash_pair(pair, self.by_pair.seeds)), pair)
    }

    /// Prefetches the memory that merging a piece reads first.
    #[inline(always)]
    pub(crate) fn prefetch_start(&self, piece: &[u8]) {
        for (position, pair) in piece.windows(2).enumerate() {
            let [first, second] = [pair[0], pair[1]];
            prefetch(self.neighbors(first, second));
            if first & 0xf0 == 0xe0
                && let Some(code_point) = three_byte_char(&piece[position..])
            {
                prefetch(&self.characters[code_point as usize]);
            }
        }
    }

    /// Starts looking up the merge of two parts: the first of three steps. Each step prefetches the
    /// memory that the next step reads, so that the look-ups of a batch overlap.
    #[inline(always)]
    pub(crate) fn prefetch(&self, probe: &mut PairProbe) {
        probe.hash_or_slot = hash_pair(probe.pair, self.by_pair.seeds);
        self.by_pair.prefetch(probe.hash_or_slot);
    }

    /// Runs the second step.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, probe: &mut PairProbe) {
        probe.hash_or_slot = self.by_pair.prefetch_slot(probe.hash_or_slot) as u64;
    }

    /// Returns the token that the two parts merge into, or [`NONE`], after the second step.
    #[inline(always)]
    pub(crate) fn found(&self, PairProbe { pair, hash_or_slot }: PairProbe) -> u32 {
        rank_in(self.by_pair.at(hash_or_slot as usize), pair)
    }

    #[inline(always)]
    pub(crate) fn byte(&self, byte: u8) -> u32 {
        self.bytes[usize::from(byte)]
    }

    #[inline(always)]
    pub(crate) fn neighbors(&self, first: u8, second: u8) -> &Neighbors {
        &self.neighbors[usize::from(first) << 8 | usize::from(second)]
    }

    /// Returns the token that a three-byte character, given by its code point, becomes before it
    /// merges with any other part; or [`NONE`].
    #[inline(always)]
    pub(crate) fn character(&self, code_point: u32) -> u32 {
        self.characters[code_point as usize]
    }

    /// Returns the two parts that a part is merged from; `None` for any single byte.
    #[inline(always)]
    pub(crate) fn split(&self, part: u32) -> Option<(u32, u32)> {
        let [left, right] = *self.splits.get(part as usize)?;
        (left != NONE).then_some((left, right))
    }

    /// Returns true if every token ranks after the parts it is merged from. Single bytes exist from
    /// the start, regardless of rank.
    pub(super) fn is_ordered(&self, tokens: &Tokens) -> bool {
        let before = |part: u32, rank: u32| {
            part as usize >= tokens.len() || tokens.bytes(part).len() == 1 || part < rank
        };
        self.splits.iter().zip(0..).all(|(&[left, right], rank)| {
            left == NONE || (before(left, rank) && before(right, rank))
        })
    }
}

fn neighbors(tokens: &Tokens, splits: &[[u32; 2]]) -> Vec<Neighbors> {
    let mut table = vec![Neighbors::NONE; 1 << 16];
    for (rank, &[left, right]) in (0..).zip(splits) {
        if left == NONE {
            continue;
        }
        let token = tokens.bytes(rank);
        let length = |part: u32| {
            if (part as usize) < tokens.len() { tokens.bytes(part).len() } else { 1 }
        };
        let at = |first: u8, second: u8| usize::from(first) << 8 | usize::from(second);
        let border = length(left);
        let index = at(token[border - 1], token[border]);
        if length(right) == 1 {
            table[index].left_merge_rank = table[index].left_merge_rank.min(rank);
        }
        if border == 1 {
            table[index].right_merge_rank = table[index].right_merge_rank.min(rank);
        }
        if token.len() == 2 {
            table[index].rank = rank;
        }
    }
    table
}

/// Finds the three-byte characters that are complete before any other merge can take part of them:
/// characters that rank before every token that ends in the character's first bytes or starts with
/// its last bytes. (In an ordered vocabulary, merges inside a token rank before it.)
fn characters(tokens: &Tokens, splits: &[[u32; 2]]) -> Vec<u32> {
    // Lowest rank of a token that ends in, or starts with, one or two bytes.
    let mut ends_in = Lowest::new();
    let mut starts_with = Lowest::new();
    for rank in 0..tokens.len() as u32 {
        let token = tokens.bytes(rank);
        for part in 1..token.len().min(3) {
            let (end, start) = (&token[token.len() - part..], &token[..part]);
            if end[0] & 0xf0 == 0xe0 {
                ends_in.add(end, rank);
            }
            if start[0] & 0xc0 == 0x80 {
                starts_with.add(start, rank);
            }
        }
    }
    let before = |ranks: &Lowest, parts: [&[u8]; 2], rank: u32| {
        parts.iter().all(|part| rank < ranks.get(part))
    };
    let mut characters = vec![NONE; 1 << 16];
    for rank in 0..tokens.len() as u32 {
        let token = tokens.bytes(rank);
        let is_reachable = splits[rank as usize][0] != NONE;
        if token.len() != 3 || !is_reachable {
            continue;
        }
        if let Some(code_point) = three_byte_char(token)
            && before(&ends_in, [&token[..1], &token[..2]], rank)
            && before(&starts_with, [&token[1..], &token[2..]], rank)
        {
            characters[code_point as usize] = rank;
        }
    }
    characters
}

/// Lowest rank for each string of one or two bytes.
struct Lowest(Vec<u32>);

impl Lowest {
    fn new() -> Lowest {
        Self(vec![NONE; 257 << 8])
    }

    fn index(bytes: &[u8]) -> usize {
        match *bytes {
            [first] => usize::from(first),
            _ => ((usize::from(bytes[0]) + 1) << 8) | usize::from(bytes[1]),
        }
    }

    fn add(&mut self, bytes: &[u8], rank: u32) {
        let lowest = &mut self.0[Self::index(bytes)];
        *lowest = rank.min(*lowest);
    }

    fn get(&self, bytes: &[u8]) -> u32 {
        self.0[Self::index(bytes)]
    }
}

impl MergeTable for Pairs {
    #[inline(always)]
    fn merged(&self, left: u32, right: u32) -> u32 {
        Pairs::merged(self, left, right)
    }

    #[inline(always)]
    fn split(&self, part: u32) -> [u32; 2] {
        self.splits.get(part as usize).copied().unwrap_or([NONE; 2])
    }
}
