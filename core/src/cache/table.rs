//! One table of a cache: maps keys of `W` words to ids.

use bytemuck::{Pod, Zeroable};

use super::ids::Ids;
use crate::hash::hash16;
use crate::memory::{Zeroed, prefetch};

/// A piece of up to `8 * W - 1` bytes, and its ids. An empty entry is all zeros.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
struct Entry<const W: usize> {
    key: [u64; W],
    ids: Ids<W>,
}

// SAFETY: two arrays of the same type, without padding.
unsafe impl<const W: usize> Pod for Entry<W> {}

impl<const W: usize> Entry<W> {
    fn is_empty(&self) -> bool {
        self.key == [0; W]
    }
}

/// Two entries, the newer entry first. The second may be a relocated entry, evicted from its home:
/// the set to which its key hashes.
type Set<const W: usize> = [Entry<W>; 2];

/// The size in bytes of a cache line.
const LINE: usize = 64;

/// A hash table of sets, whose number is a power of two.
#[derive(Debug)]
pub(super) struct Table<const W: usize> {
    memory: Zeroed,
}

impl<const W: usize> Table<W> {
    /// Creates an empty table of `bytes` bytes, a power of two; `None` if memory runs out.
    pub(super) fn new(bytes: usize) -> Option<Self> {
        assert!(bytes.is_power_of_two() && bytes >= 2 * size_of::<Set<W>>(), "{bytes} bytes");
        Some(Self { memory: Zeroed::new(bytes)? })
    }

    #[inline(always)]
    pub(super) fn view(&self) -> View<'_, W> {
        let sets: &[Set<W>] = bytemuck::cast_slice(self.memory.bytes());
        View { sets, mask: size_of_val(sets) - size_of::<Set<W>>() }
    }

    fn sets_mut(&mut self) -> &mut [Set<W>] {
        bytemuck::cast_slice_mut(self.memory.bytes_mut())
    }

    /// Appends the ids of the piece with this key.
    pub(super) fn append(&mut self, key: [u64; W], seeds: [u64; 2], out: &mut Vec<u32>) -> Found {
        self.move_home(key, seeds);
        match self.view().get(SetIndex::of(hash(key, seeds)), key) {
            None => Found::Unknown,
            Some(ids) if ids.append_to(out) => Found::Here,
            Some(_) => Found::Elsewhere,
        }
    }

    /// Inserts the ids of the piece with this key. If there are too many ids, marks the entry as
    /// elsewhere and returns false.
    pub(super) fn insert(&mut self, key: [u64; W], seeds: [u64; 2], ids: &[u32]) -> bool {
        let fitting = Ids::new(ids);
        self.put(Entry { key, ids: fitting.unwrap_or(Ids::ELSEWHERE) }, seeds);
        fitting.is_some()
    }

    /// Puts an entry first in its home, which evicts the older of the two entries there. The
    /// evicted entry moves to the second slot of another set if that slot is empty or has a
    /// relocated entry, and is lost otherwise. An evicted entry that was relocated before is lost.
    fn put(&mut self, mut entry: Entry<W>, seeds: [u64; 2]) {
        let sets = self.sets_mut();
        let count = sets.len();
        let home_of = |entry: &Entry<W>| home::<W>(hash(entry.key, seeds), count);
        let index = home_of(&entry);
        let set = &mut sets[index];
        if set[0].key == entry.key {
            return;
        }
        entry.ids.set_relocated(set[0].ids.is_relocated());
        let mut newer = std::mem::replace(&mut set[0], entry);
        if newer.is_empty() {
            return;
        }
        newer.ids.set_relocated(false);
        let evicted = std::mem::replace(&mut set[1], newer);
        let is_replaced = evicted.is_empty() || evicted.key == entry.key;
        if is_replaced || home_of(&evicted) != index {
            return;
        }
        let others = alternatives(hash(evicted.key, seeds), count);
        let is_empty = |&other: &usize| sets[other][1].is_empty();
        let is_relocated = |&other: &usize| home_of(&sets[other][1]) != other;
        let free = others.into_iter().find(is_empty);
        if let Some(other) = free.or_else(|| others.into_iter().find(is_relocated)) {
            sets[other][1] = evicted;
            sets[index][0].ids.set_relocated(true);
        }
    }

    /// Moves the relocated entry with this key, if any, back to its home.
    fn move_home(&mut self, key: [u64; W], seeds: [u64; 2]) {
        let sets = self.sets_mut();
        let (hash, count) = (hash(key, seeds), sets.len());
        if !sets[home::<W>(hash, count)][0].ids.is_relocated() {
            return;
        }
        let mut others = alternatives(hash, count).into_iter();
        if let Some(other) = others.find(|&other| sets[other][1].key == key) {
            let entry = std::mem::replace(&mut sets[other][1], Entry::zeroed());
            self.put(entry, seeds);
        }
    }
}

/// The result of looking up a key in a table.
pub(super) enum Found {
    /// The ids are appended.
    Here,
    /// The ids are in the next table.
    Elsewhere,
    Unknown,
}

/// Hashes a key of an even number of words.
#[inline(always)]
pub(super) fn hash<const W: usize>(key: [u64; W], seeds: [u64; 2]) -> u64 {
    let (pairs, _) = key.as_chunks();
    pairs.iter().fold(0, |hash, &[a, b]| hash16([a ^ hash, b], seeds))
}

/// Returns the home of an entry among `count` sets.
#[inline(always)]
pub(super) fn home<const W: usize>(hash: u64, count: usize) -> usize {
    SetIndex::of(hash).below(count * size_of::<Set<W>>()) / size_of::<Set<W>>()
}

/// Returns the two neighboring sets, among `count`, to which an entry may be relocated.
#[inline(always)]
pub(super) fn alternatives(hash: u64, count: usize) -> [usize; 2] {
    let other = (hash >> 40) as usize & (count - 1);
    [other, other ^ 1]
}

/// The index of a cache set: the low bits of a hash, taken as a byte offset and rounded down to a
/// set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SetIndex(u32);

impl SetIndex {
    #[inline(always)]
    fn of(hash: u64) -> Self {
        Self((hash >> 14) as u32)
    }

    /// Returns a number below `count`, a power of two. Equal keys give equal numbers.
    #[inline(always)]
    pub(crate) fn below(self, count: usize) -> usize {
        self.0 as usize & (count - 1)
    }
}

/// A view of a table for looking up many pieces.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a, const W: usize> {
    /// The sets; their number is a power of two, at least two.
    sets: &'a [Set<W>],
    /// Mask that gives the byte offset of a set.
    mask: usize,
}

impl<'a, const W: usize> View<'a, W> {
    #[inline(always)]
    pub(super) fn prefetch(self, key: [u64; W], seeds: [u64; 2]) -> SetIndex {
        let index = SetIndex::of(hash(key, seeds));
        // A set within one cache line is fetched as a whole.
        let entries = if size_of::<Set<W>>() <= LINE { 1 } else { 2 };
        self.set(index).iter().take(entries).for_each(prefetch);
        index
    }

    /// Prefetches the memory that [`Table::append`] and [`Table::insert`] read apart from the key's
    /// home set, which is already in the processor's cache.
    #[inline(always)]
    pub(super) fn prefetch_alternatives(self, home: SetIndex, key: [u64; W], seeds: [u64; 2]) {
        let prefetch_for = |key| {
            for other in alternatives(hash(key, seeds), self.sets.len()) {
                prefetch(&self.sets[other][1]);
            }
        };
        let [newer, older] = self.set(home);
        if newer.ids.is_relocated() {
            prefetch_for(key);
        }
        // The sets to which the older entry would be relocated.
        if !older.is_empty() {
            prefetch_for(older.key);
        }
    }

    #[inline(always)]
    fn set(self, SetIndex(index): SetIndex) -> &'a Set<W> {
        const { assert!(size_of::<Set<W>>().is_power_of_two()) }
        debug_assert_eq!(self.mask, size_of_val(self.sets) - size_of::<Set<W>>());
        debug_assert!(self.sets.len().is_power_of_two());
        // SAFETY: the number of sets and the size of a set are powers of two, so the masked bits
        // are a multiple of that size, at most the offset of the last set.
        unsafe { &*self.sets.as_ptr().byte_add(index as usize & self.mask) }
    }

    /// Returns the ids of this key. (An empty entry has the key of no piece, and no ids.)
    ///
    /// Selects between the two entries without a branch, which would be mispredicted.
    #[inline(always)]
    pub(super) fn get(self, index: SetIndex, key: [u64; W]) -> Option<&'a Ids<W>> {
        let set = self.set(index);
        let older = usize::from(difference(set[0].key, key) != 0);
        let entry = &set[older];
        (difference(entry.key, key) == 0).then_some(&entry.ids)
    }
}

/// Returns zero if the keys are equal.
#[inline(always)]
fn difference<const W: usize>(a: [u64; W], b: [u64; W]) -> u64 {
    (0..W).fold(0, |difference, i| difference | (a[i] ^ b[i]))
}
