//! Remembers the ranks of pieces that had to be merged.
//!
//! Two tables of fixed size: pieces of up to 15 bytes, and pieces of 16 to 31. Both are
//! set-associative: a piece can be in two places, and what is new pushes out what is older, so
//! that no text makes a table grow. Places come from a hash with a random seed, so that nobody
//! can choose texts whose pieces push each other out.
//!
//! Tokens are not kept here: the vocabulary itself is as fast.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use bytemuck::Zeroable;

use crate::hash::hash16;
use crate::vocabulary::Key;

/// Pieces of up to this many bytes are kept.
pub const LONGEST: usize = 31;

/// How many short pieces a cache keeps: 2 MiB of entries.
const SHORT_ENTRIES: usize = 1 << 16;
/// How many pieces of more than 15 bytes a cache keeps: 2 MiB of entries.
const LONG_ENTRIES: usize = 1 << 15;

/// How much memory one cache takes, in bytes.
pub const CACHE_BYTES: usize =
    SHORT_ENTRIES * size_of::<Entry<2, 2>>() + LONG_ENTRIES * size_of::<Entry<4, 4>>();

/// Bits of a rank in an entry.
const BITS: u32 = 24;
const MASK: u64 = (1 << BITS) - 1;

/// A piece of up to `8 * K - 1` bytes and its ranks: the lowest byte of `ranks` counts them,
/// then they follow, 3 bytes each. All zero when empty, which is no piece's key.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
struct Entry<const K: usize, const V: usize> {
    key: [u64; K],
    ranks: [u64; V],
}

impl<const K: usize, const V: usize> Entry<K, V> {
    /// How many ranks fit in.
    const CAPACITY: usize = (8 * V - 1) / 3;

    fn new(key: [u64; K], ranks: &[u32]) -> Self {
        let mut packed = [0u64; V];
        packed[0] = ranks.len() as u64;
        for (i, &rank) in ranks.iter().enumerate() {
            let bit = 8 + i as u32 * BITS;
            let (word, shift) = ((bit / 64) as usize, bit % 64);
            packed[word] |= u64::from(rank) << shift;
            if shift + BITS > 64 {
                packed[word + 1] |= u64::from(rank) >> (64 - shift);
            }
        }
        Self { key, ranks: packed }
    }

    #[inline(always)]
    fn count(&self) -> usize {
        (self.ranks[0] & 0xff) as usize
    }

    #[inline(always)]
    fn rank(&self, i: usize) -> u32 {
        let bit = 8 + i as u32 * BITS;
        let (word, shift) = ((bit / 64) as usize, bit % 64);
        let mut rank = self.ranks[word] >> shift;
        if shift + BITS > 64 {
            rank |= self.ranks[word + 1] << (64 - shift);
        }
        (rank & MASK) as u32
    }

    #[inline(always)]
    fn append_to(&self, out: &mut Vec<u32>) {
        for i in 0..self.count() {
            out.push(self.rank(i));
        }
    }
}

/// Sets of two entries, the newer one first.
#[derive(Debug)]
struct Table<const K: usize, const V: usize> {
    sets: Box<[[Entry<K, V>; 2]]>,
}

impl<const K: usize, const V: usize> Table<K, V> {
    fn new(entries: usize) -> Self {
        Self { sets: bytemuck::zeroed_slice_box(entries / 2) }
    }

    #[inline(always)]
    fn set(&self, hash: u64) -> usize {
        (hash >> 20) as usize & (self.sets.len() - 1)
    }

    #[inline(always)]
    fn get(&self, hash: u64, key: [u64; K]) -> Option<&Entry<K, V>> {
        let set = &self.sets[self.set(hash)];
        let second = usize::from(set[0].key != key);
        let entry = &set[second];
        (entry.key == key).then_some(entry)
    }

    fn put(&mut self, hash: u64, key: [u64; K], ranks: &[u32]) {
        if ranks.len() <= Entry::<K, V>::CAPACITY {
            let set = self.set(hash);
            let set = &mut self.sets[set];
            set[1] = set[0];
            set[0] = Entry::new(key, ranks);
        }
    }
}

/// The key of a piece of 16 to [`LONGEST`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LongKey([u64; 4]);

impl LongKey {
    pub(crate) fn new(piece: &[u8]) -> Self {
        debug_assert!((16..=LONGEST).contains(&piece.len()));
        let mut block = [0; 32];
        block[..16].copy_from_slice(&piece[..16]);
        // The last 16 bytes, which may overlap the first, then what they overlap is cut off.
        let last: [u8; 16] = piece[piece.len() - 16..].try_into().expect("16 bytes");
        let rest = u128::from_le_bytes(last) >> (8 * (32 - piece.len()));
        block[16..].copy_from_slice(&rest.to_le_bytes());
        block[31] = piece.len() as u8;
        Self(bytemuck::cast(block))
    }
}

/// The ranks of pieces that were merged before.
#[derive(Debug)]
pub struct Cache {
    seeds: [u64; 2],
    short: Table<2, 2>,
    long: Table<4, 4>,
}

impl Default for Cache {
    fn default() -> Self {
        Self::new()
    }
}

impl Cache {
    /// An empty cache with seeds of its own.
    pub fn new() -> Self {
        let random = || RandomState::new().build_hasher().finish();
        Self {
            seeds: [random(), random()],
            short: Table::new(SHORT_ENTRIES),
            long: Table::new(LONG_ENTRIES),
        }
    }

    #[inline(always)]
    pub(crate) fn hash(&self, key: Key) -> u64 {
        hash16(key, self.seeds)
    }

    #[inline(always)]
    pub(crate) fn hash_long(&self, LongKey([a, b, c, d]): LongKey) -> u64 {
        hash16([hash16([a, b], self.seeds) ^ c, d], self.seeds)
    }

    /// Appends the ranks of a piece of up to 15 bytes, if it is there.
    #[inline(always)]
    pub(crate) fn get(&self, hash: u64, key: Key, out: &mut Vec<u32>) -> bool {
        self.short.get(hash, key).inspect(|entry| entry.append_to(out)).is_some()
    }

    #[inline(always)]
    pub(crate) fn get_long(&self, hash: u64, LongKey(key): LongKey, out: &mut Vec<u32>) -> bool {
        self.long.get(hash, key).inspect(|entry| entry.append_to(out)).is_some()
    }

    pub(crate) fn put(&mut self, hash: u64, key: Key, ranks: &[u32]) {
        self.short.put(hash, key, ranks);
    }

    pub(crate) fn put_long(&mut self, hash: u64, LongKey(key): LongKey, ranks: &[u32]) {
        self.long.put(hash, key, ranks);
    }
}
