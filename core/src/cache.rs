//! Remembers the ids of pieces.
//!
//! Two tables of fixed size: pieces of up to 15 bytes, and pieces of 16 to 31. Both are
//! set-associative: a piece can be in two places of one cache line or pair of lines, and what is
//! new pushes out what is older, so that no text makes a table grow. Places come from a hash
//! with a random seed, so that nobody can choose texts whose pieces push each other out.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use crate::hash::hash16;
use crate::memory::Zeroed;
use crate::vocabulary::{Key, SHORT};

/// Pieces of up to this many bytes are kept.
pub const LONGEST: usize = 31;

/// How many bytes each of the two tables takes: 65,536 short pieces, and 32,768 longer ones.
const TABLE_BYTES: usize = 2 << 20;

/// How much memory one cache takes, in bytes.
pub const CACHE_BYTES: usize = 2 * TABLE_BYTES;

/// The ids of a piece, two in each word: the first id has their number in its highest byte.
/// All zero: not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ids<const W: usize>([u64; W]);

const COUNT_SHIFT: u32 = 24;

impl<const W: usize> Ids<W> {
    pub(crate) const UNKNOWN: Self = Self([0; W]);
    /// How many ids fit in.
    pub(crate) const CAPACITY: usize = 2 * W;

    /// `None` when they do not fit.
    fn new(ids: &[u32]) -> Option<Self> {
        let first = *ids.first()?;
        if ids.len() > Self::CAPACITY || first >> COUNT_SHIFT != 0 {
            return None;
        }
        let mut words = [0; W];
        for (i, &id) in ids.iter().enumerate() {
            words[i / 2] |= u64::from(id) << (32 * (i % 2));
        }
        words[0] |= (ids.len() as u64) << COUNT_SHIFT;
        Some(Self(words))
    }

    /// How many there are, and the ids, followed by zeros up to [`Ids::CAPACITY`].
    #[inline(always)]
    pub(crate) fn unpack(self) -> (usize, [[u32; 2]; W]) {
        let count = self.0[0] >> COUNT_SHIFT & 0xff;
        let mut words = self.0;
        words[0] &= !(0xff << COUNT_SHIFT);
        (count as usize, words.map(|word| [word as u32, (word >> 32) as u32]))
    }
}

/// A piece of up to `8 * W - 1` bytes, and its ids.
type Entry<const W: usize> = [[u64; W]; 2];

/// Two entries, the newer one first.
type Set<const W: usize> = [Entry<W>; 2];

#[derive(Debug)]
struct Table<const W: usize>(Zeroed);

impl<const W: usize> Table<W> {
    fn new() -> Self {
        Self(Zeroed::new(TABLE_BYTES))
    }

    #[inline(always)]
    fn set_of(hash: u64) -> usize {
        (hash >> 20) as usize & (TABLE_BYTES / size_of::<Set<W>>() - 1)
    }

    #[inline(always)]
    fn view(&self) -> View<'_, W> {
        View(bytemuck::cast_slice(self.0.bytes()))
    }

    fn put(&mut self, hash: u64, key: [u64; W], ids: &[u32]) {
        if let Some(Ids(ids)) = Ids::new(ids) {
            let sets: &mut [Set<W>] = bytemuck::cast_slice_mut(self.0.bytes_mut());
            let set = &mut sets[Self::set_of(hash)];
            set[1] = set[0];
            set[0] = [key, ids];
        }
    }
}

/// A table to look up many pieces in.
#[derive(Debug, Clone, Copy)]
struct View<'a, const W: usize>(&'a [Set<W>]);

impl<const W: usize> View<'_, W> {
    /// The ids at this key. Both entries are read and one is chosen without a branch, which
    /// would be mispredicted.
    #[inline(always)]
    fn get(self, hash: u64, key: [u64; W]) -> Ids<W> {
        let [first, second] = &self.0[Table::<W>::set_of(hash)];
        let (in_first, in_second) = (all_if_same(first[0], key), all_if_same(second[0], key));
        let mut ids = [0; W];
        for i in 0..W {
            ids[i] = first[1][i] & in_first | second[1][i] & in_second;
        }
        Ids(ids)
    }
}

/// All ones when the keys are the same, or zero.
#[inline(always)]
fn all_if_same<const W: usize>(a: [u64; W], b: [u64; W]) -> u64 {
    let mut difference = 0;
    for i in 0..W {
        difference |= a[i] ^ b[i];
    }
    ((difference | difference.wrapping_neg()) >> 63).wrapping_sub(1)
}

/// The key of a piece of 16 to [`LONGEST`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LongKey([u64; 4]);

impl LongKey {
    pub(crate) fn new(piece: &[u8]) -> Self {
        debug_assert!((SHORT + 1..=LONGEST).contains(&piece.len()));
        let mut block = [0; 32];
        block[..16].copy_from_slice(&piece[..16]);
        // The last 16 bytes, less those that are among the first.
        let last: [u8; 16] = piece[piece.len() - 16..].try_into().expect("16 bytes");
        let rest = u128::from_le_bytes(last).unbounded_shr(8 * (32 - piece.len()) as u32);
        block[16..].copy_from_slice(&rest.to_le_bytes());
        block[31] = piece.len() as u8;
        Self(bytemuck::cast(block))
    }
}

/// The ids of pieces that came by.
#[derive(Debug)]
pub struct Cache {
    seeds: [u64; 2],
    short: Table<2>,
    long: Table<4>,
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
        Self { seeds: [random(), random()], short: Table::new(), long: Table::new() }
    }

    /// For looking up many pieces of up to 15 bytes.
    #[inline(always)]
    pub(crate) fn short(&self) -> ShortPieces<'_> {
        ShortPieces { seeds: self.seeds, table: self.short.view() }
    }

    pub(crate) fn put(&mut self, key: Key, ids: &[u32]) {
        self.short.put(hash16(key, self.seeds), key, ids);
    }

    fn hash_long(&self, LongKey([a, b, c, d]): LongKey) -> u64 {
        hash16([hash16([a, b], self.seeds) ^ c, d], self.seeds)
    }

    pub(crate) fn get_long(&self, key: LongKey) -> Ids<4> {
        self.long.view().get(self.hash_long(key), key.0)
    }

    pub(crate) fn put_long(&mut self, key: LongKey, ids: &[u32]) {
        self.long.put(self.hash_long(key), key.0, ids);
    }
}

/// The pieces of up to 15 bytes in a cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortPieces<'a> {
    seeds: [u64; 2],
    table: View<'a, 2>,
}

impl ShortPieces<'_> {
    #[inline(always)]
    pub(crate) fn get(self, key: Key) -> Ids<2> {
        self.table.get(hash16(key, self.seeds), key)
    }
}
