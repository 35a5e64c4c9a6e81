//! Caches the ids of pieces.
//!
//! There are three tables: for pieces with a `Key` (up to 15 bytes, and runs), for other pieces of
//! up to 31 bytes, and for pieces of up to 127 bytes. A piece with too many ids for one table goes
//! into the next. All tables are set-associative with two entries per set. A new entry evicts the
//! older entry, which moves to another set if that has room and is lost otherwise, so the tables
//! never grow. A hash with a random seed selects the set, so that no text can be built whose pieces
//! evict each other.

mod ids;
mod keys;
mod size;
mod table;

use crate::ablation::Mechanism;
use crate::error::Result;
use crate::hash::random_seeds;
use crate::memory::reserve;
use crate::vocabulary::Key;

use ids::{Ids, is_cacheable};
pub(crate) use keys::{LONG, LongKey, MEDIUM, MediumKey, run_key};
pub use size::CacheSize;
pub(crate) use table::SetIndex;
use table::{Found, Table, View};

/// Maximum number of ids for a cached piece.
pub(crate) const MOST_IDS: usize = Ids::<16>::PACKED;

/// The ids of pieces seen before.
#[derive(Debug)]
pub struct Cache {
    seeds: [u64; 2],
    short: Table<2>,
    medium: Table<4>,
    long: Table<16>,
}

impl Cache {
    /// Creates an empty cache with random seeds; `None` if memory runs out.
    pub fn new(size: CacheSize) -> Option<Self> {
        Self::with_seeds(size, random_seeds())
    }

    fn with_seeds(size: CacheSize, seeds: [u64; 2]) -> Option<Self> {
        if !Mechanism::Cache.is_used() {
            return None;
        }
        Some(Self {
            seeds,
            short: Table::new(size.short())?,
            medium: Table::new(size.longer())?,
            long: Table::new(size.longer())?,
        })
    }

    /// Returns a view for looking up many pieces with keys.
    #[inline(always)]
    pub(crate) fn short(&self) -> ShortPieces<'_> {
        ShortPieces { seeds: self.seeds, table: self.short.view() }
    }

    /// Appends the ids of the piece with this key. Returns false if they are not cached.
    #[inline(always)]
    pub(crate) fn append(&mut self, key: impl CacheKey, out: &mut Vec<u32>) -> bool {
        key.append(self, out)
    }

    /// Caches the ids of the piece with this key, which must not be cached yet. Ignores a piece
    /// with more than 50 ids, or with a first id of more than 24 bits.
    #[inline(always)]
    pub(crate) fn insert(&mut self, key: impl CacheKey, ids: &[u32]) {
        if is_cacheable(ids) {
            key.insert(self, ids);
        }
    }

    /// Prefetches the set of the piece with this key, and returns the set.
    pub(crate) fn prefetch_medium(&self, key: MediumKey) -> SetIndex {
        self.medium.view().prefetch(key.words(), self.seeds)
    }

    /// Prefetches the set of a piece of more than [`MEDIUM`] bytes, and returns the set.
    pub(crate) fn prefetch_long(&self, key: LongKey) -> SetIndex {
        self.long.view().prefetch(key.words(), self.seeds)
    }

    /// Prefetches the memory that [`Cache::append`] and [`Cache::insert`] read apart from the key's
    /// home set, which is already in the processor's cache.
    #[inline(always)]
    pub(crate) fn prefetch_alternatives(&self, key: Key, home: SetIndex) {
        self.short.view().prefetch_alternatives(home, key, self.seeds);
    }

    /// Appends the ids of the piece with this key, if they are in this set.
    #[inline(always)]
    pub(crate) fn append_from(&self, set: SetIndex, key: Key, out: &mut Vec<u32>) -> bool {
        self.short.view().get(set, key).is_some_and(|ids| ids.append_to(out))
    }

    /// Appends the ids of a longer piece, if they are in this set.
    #[inline(always)]
    pub(crate) fn append_medium_from(
        &self,
        set: SetIndex,
        key: MediumKey,
        out: &mut Vec<u32>,
    ) -> bool {
        Mechanism::LongTables.is_used()
            && self.medium.view().get(set, key.words()).is_some_and(|ids| ids.append_to(out))
    }
}

/// The key of a piece in one of the tables.
pub(crate) trait CacheKey: Copy {
    /// See [`Cache::append`].
    fn append(self, cache: &mut Cache, out: &mut Vec<u32>) -> bool;
    /// See [`Cache::insert`]; the ids are cacheable.
    fn insert(self, cache: &mut Cache, ids: &[u32]);
}

impl CacheKey for Key {
    #[inline(never)]
    fn append(self, cache: &mut Cache, out: &mut Vec<u32>) -> bool {
        match cache.short.append(self, cache.seeds, out) {
            Found::Here => true,
            Found::Elsewhere => MediumKey::padded(self).append(cache, out),
            Found::Unknown => false,
        }
    }

    fn insert(self, cache: &mut Cache, ids: &[u32]) {
        if !cache.short.insert(self, cache.seeds, ids) {
            MediumKey::padded(self).insert(cache, ids);
        }
    }
}

impl CacheKey for MediumKey {
    fn append(self, cache: &mut Cache, out: &mut Vec<u32>) -> bool {
        if !Mechanism::LongTables.is_used() {
            return false;
        }
        match cache.medium.append(self.words(), cache.seeds, out) {
            Found::Here => true,
            Found::Elsewhere => LongKey::padded(self.words()).append(cache, out),
            Found::Unknown => false,
        }
    }

    fn insert(self, cache: &mut Cache, ids: &[u32]) {
        if !cache.medium.insert(self.words(), cache.seeds, ids) {
            LongKey::padded(self.words()).insert(cache, ids);
        }
    }
}

impl CacheKey for LongKey {
    fn append(self, cache: &mut Cache, out: &mut Vec<u32>) -> bool {
        Mechanism::LongTables.is_used()
            && matches!(cache.long.append(self.words(), cache.seeds, out), Found::Here)
    }

    fn insert(self, cache: &mut Cache, ids: &[u32]) {
        cache.long.insert(self.words(), cache.seeds, ids);
    }
}

/// A view for looking up pieces with keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortPieces<'a> {
    seeds: [u64; 2],
    table: View<'a, 2>,
}

impl ShortPieces<'_> {
    #[inline(always)]
    pub(crate) fn prefetch(self, key: Key) -> SetIndex {
        self.table.prefetch(key, self.seeds)
    }

    /// Appends the ids of pieces up to the first piece that is not cached, and returns the number
    /// of pieces before it. `place` returns the key and the set of a piece.
    #[inline(always)]
    pub(crate) fn append_known<T>(
        self,
        pieces: &[T],
        place: impl Fn(&T) -> (Key, SetIndex),
        out: &mut Vec<u32>,
    ) -> Result<usize> {
        reserve(out, Ids::<2>::CAPACITY * pieces.len())?;
        let mut length = out.len();
        let room = out.as_mut_ptr();
        let mut known = 0;
        for piece in pieces {
            let (key, set) = place(piece);
            let Some(ids) = self.table.get(set, key) else { break };
            // SAFETY: `write` writes at most `CAPACITY` ids, and that much was reserved for each
            // piece.
            let more = unsafe { ids.write(room.add(length)) };
            if more == 0 {
                break;
            }
            length += more;
            known += 1;
        }
        // SAFETY: `length` ids have been written.
        unsafe { out.set_len(length) };
        Ok(known)
    }
}

#[cfg(test)]
mod tests;
