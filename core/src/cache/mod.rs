//! Remembers the ids of pieces.
//!
//! Three tables of fixed size: for pieces with a [`Key`], those of up to 15 bytes and runs; for
//! other pieces of up to 31 bytes; and for those of up to 127. What has too many ids for one table
//! is kept in the next. All are set-associative: a piece belongs into one of two places that lie side by
//! side. What is new pushes out what is older, which goes to one of two other sets if that has room,
//! and is lost otherwise, so that no text makes a table grow. PerfectHash come from a hash with a random seed,
//! so that nobody can choose texts whose pieces push each other out.

mod exchange;
mod keys;
mod table;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use crate::ablation::Mechanism;
use crate::lookup::Unit;
use crate::vocabulary::Key;

pub(crate) use exchange::Exchange;
pub use keys::LONGEST;
pub(crate) use keys::{LONG, LongKey, run_key};
pub(crate) use table::SetIndex;
use table::{Found, Ids, Table, View, is_kept};

/// How many sets of two the table of short pieces has: 4 MiB. A larger one would keep more pieces,
/// but further away.
const SHORT_SETS: usize = 1 << 16;
/// The same for longer pieces: 2 MiB.
const LONG_SETS: usize = 1 << 14;
/// The same for the longest: 2 MiB.
const LONGEST_SETS: usize = 1 << 12;

/// How much memory one cache takes, in bytes.
pub const CACHE_BYTES: usize = Short::BYTES + Long::BYTES + Longest::BYTES;

type Short = Table<2, SHORT_SETS>;
type Long = Table<4, LONG_SETS>;
type Longest = Table<16, LONGEST_SETS>;

/// The ids of pieces that came by.
#[derive(Debug)]
pub struct Cache {
    seeds: [u64; 2],
    short: Short,
    long: Long,
    longest: Longest,
    is_populated: bool,
}

impl Cache {
    /// An empty cache with seeds of its own; `None` when there is no memory for it.
    pub fn new() -> Option<Self> {
        if !Mechanism::Cache.is_used() {
            return None;
        }
        let random = || RandomState::new().build_hasher().finish();
        Some(Self {
            seeds: [random(), random()],
            short: Table::new()?,
            long: Table::new()?,
            longest: Table::new()?,
            is_populated: false,
        })
    }

    /// Takes all of its memory now, if that was not done before: much text will need it all, and
    /// fresh memory can be slow.
    pub(crate) fn populate(&mut self) {
        if !std::mem::replace(&mut self.is_populated, true) {
            self.short.populate();
            self.long.populate();
            self.longest.populate();
        }
    }

    /// Tells the other caches of this generation what this one has learnt, if that is much and
    /// there are any, and learns what they have told. Never waits.
    #[inline(always)]
    pub(crate) fn exchange(&mut self, ledger: &Exchange, generation: usize) {
        self.short.exchange(self.seeds, ledger, &ledger.short, generation);
        self.long.exchange(self.seeds, ledger, &ledger.long, generation);
    }

    /// For looking up many pieces with keys.
    #[inline(always)]
    pub(crate) fn short(&self) -> ShortPieces<'_> {
        ShortPieces { seeds: self.seeds, table: self.short.view() }
    }

    /// Appends the ids of the piece with this key. False when they are not known.
    #[inline(always)]
    pub(crate) fn append(&mut self, key: impl CacheKey, out: &mut Vec<u32>) -> bool {
        key.append(self, out)
    }

    /// Remembers the ids of the piece with this key, but not the most and the largest.
    #[inline(always)]
    pub(crate) fn put(&mut self, key: impl CacheKey, ids: &[u32]) {
        if is_kept(ids) {
            key.put(self, ids);
        }
    }

    /// Where to look for the piece with this key. What is there is brought near.
    #[inline(always)]
    pub(crate) fn prefetch(&self, key: impl CacheKey) -> SetIndex {
        key.prefetch(self)
    }

    /// Brings near what [`Cache::append`] and [`Cache::put`] read beside the set where the piece
    /// with this key belongs, which is near.
    #[inline(always)]
    pub(crate) fn prefetch_rest(&self, key: Key, home: SetIndex) {
        self.short.view().prefetch_rest(home, key, self.seeds);
    }

    /// Appends the ids of the piece with this key, if they are in this set.
    #[inline(always)]
    pub(crate) fn append_from(&self, set: SetIndex, key: Key, out: &mut Vec<u32>) -> bool {
        self.short.view().get(set, key).is_some_and(|ids| ids.append_to(out))
    }

    /// Appends the ids of a longer piece, if they are in this set.
    #[inline(always)]
    pub(crate) fn append_long_from(
        &self,
        set: SetIndex,
        LongKey(key): LongKey<4>,
        out: &mut Vec<u32>,
    ) -> bool {
        Mechanism::LongTables.is_used()
            && self.long.view().get(set, key).is_some_and(|ids| ids.append_to(out))
    }
}

/// What one of the tables of a cache knows a piece by.
pub(crate) trait CacheKey: Copy {
    /// [`Cache::prefetch`].
    fn prefetch(self, cache: &Cache) -> SetIndex;
    /// [`Cache::append`].
    fn append(self, cache: &mut Cache, out: &mut Vec<u32>) -> bool;
    /// [`Cache::put`], for ids that are kept.
    fn put(self, cache: &mut Cache, ids: &[u32]);
}

impl CacheKey for Key {
    #[inline(always)]
    fn prefetch(self, cache: &Cache) -> SetIndex {
        cache.short().prefetch(self)
    }

    #[inline(never)]
    fn append(self, cache: &mut Cache, out: &mut Vec<u32>) -> bool {
        match cache.short.append(self, cache.seeds, out) {
            Found::Here => true,
            Found::Elsewhere => LongKey::<4>::of_other(self).append(cache, out),
            Found::Unknown => false,
        }
    }

    fn put(self, cache: &mut Cache, ids: &[u32]) {
        if !cache.short.remember(self, cache.seeds, ids) {
            LongKey::<4>::of_other(self).put(cache, ids);
        }
    }
}

impl CacheKey for LongKey<4> {
    fn prefetch(self, cache: &Cache) -> SetIndex {
        cache.long.view().prefetch(self.0, cache.seeds)
    }

    fn append(self, cache: &mut Cache, out: &mut Vec<u32>) -> bool {
        if !Mechanism::LongTables.is_used() {
            return false;
        }
        match cache.long.append(self.0, cache.seeds, out) {
            Found::Here => true,
            Found::Elsewhere => LongKey::<16>::of_other(self.0).append(cache, out),
            Found::Unknown => false,
        }
    }

    fn put(self, cache: &mut Cache, ids: &[u32]) {
        if !cache.long.remember(self.0, cache.seeds, ids) {
            LongKey::<16>::of_other(self.0).put(cache, ids);
        }
    }
}

impl CacheKey for LongKey<16> {
    fn prefetch(self, cache: &Cache) -> SetIndex {
        cache.longest.view().prefetch(self.0, cache.seeds)
    }

    fn append(self, cache: &mut Cache, out: &mut Vec<u32>) -> bool {
        if !Mechanism::LongTables.is_used() {
            return false;
        }
        matches!(cache.longest.append(self.0, cache.seeds, out), Found::Here)
    }

    fn put(self, cache: &mut Cache, ids: &[u32]) {
        cache.longest.remember(self.0, cache.seeds, ids);
    }
}

/// The pieces with keys in a cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortPieces<'a> {
    seeds: [u64; 2],
    table: View<'a, 2, SHORT_SETS>,
}

impl ShortPieces<'_> {
    /// Where to look for this key. What is there is brought near.
    #[inline(always)]
    pub(crate) fn prefetch(self, key: Key) -> SetIndex {
        self.table.prefetch(key, self.seeds)
    }

    /// Appends the ids of `units`, up to the first that is unknown. Returns how many were known.
    #[inline(always)]
    pub(crate) fn append_known(self, units: &[Unit], out: &mut Vec<u32>) -> usize {
        out.reserve(Ids::<2>::CAPACITY * units.len());
        let mut length = out.len();
        let room = out.as_mut_ptr();
        let mut known = 0;
        for unit in units {
            let Some(ids) = self.table.get(unit.set, unit.key) else { break };
            // SAFETY: `write` writes no more than `CAPACITY` ids, and room was reserved for so many
            // of each unit.
            let more = unsafe { ids.write(room.add(length)) };
            if more == 0 {
                break;
            }
            length += more;
            known += 1;
        }
        // SAFETY: so many have been written.
        unsafe { out.set_len(length) };
        known
    }
}

#[cfg(test)]
mod tests {
    use super::table::{hash, other_sets_of, set_of};
    use super::{Cache, LONG_SETS, LongKey, SHORT_SETS, run_key};
    use crate::vocabulary::key;

    /// As many ids as there can be, in short pieces and in long ones, of the same and of other
    /// bytes.
    #[test]
    fn ids_come_back_or_are_unknown() {
        let mut cache = Cache::new().expect("memory");
        let piece: Vec<u8> = (b'a'..=b'z').cycle().take(127).collect();
        let ids = |length: usize, count: usize| -> Vec<u32> {
            (0..count as u32).map(|i| 1000 * length as u32 + i).collect()
        };
        for count in (1..15).chain(30..35).chain(48..53) {
            for length in 1..=15 {
                cache.put(key(&piece, 0, length), &ids(length, count));
            }
            for length in 16..=31 {
                cache.put(LongKey::<4>::new(&piece[..length]), &ids(length, count));
            }
            for length in 32..=127 {
                cache.put(LongKey::<16>::new(&piece[..length]), &ids(length, count));
            }
            for length in 1..=127 {
                let mut found = vec![7];
                let is_known = match length {
                    1..=15 => cache.append(key(&piece, 0, length), &mut found),
                    16..=31 => cache.append(LongKey::<4>::new(&piece[..length]), &mut found),
                    _ => cache.append(LongKey::<16>::new(&piece[..length]), &mut found),
                };
                assert_eq!(is_known, count <= 50, "{length} bytes, {count} ids");
                let expected = if is_known { ids(length, count) } else { vec![] };
                assert_eq!(found[1..], expected);
            }
            cache = Cache::new().expect("memory");
        }
    }

    /// Five numbers of those whose key belongs into the same set, and into others as guests.
    fn of_one_set(sets: usize, hash: impl Fn(u32) -> u64) -> Vec<u32> {
        let mut by_set = std::collections::HashMap::<usize, Vec<u32>>::new();
        for i in 0.. {
            let home = set_of(hash(i), sets);
            let others = by_set.entry(home).or_default();
            let pair = |i| other_sets_of(hash(i), sets)[0] / 2;
            if pair(i) != home / 2 && others.iter().all(|&other| pair(other) != pair(i)) {
                others.push(i);
            }
            if others.len() == 5 {
                return others.clone();
            }
        }
        unreachable!("there are numbers enough for every set")
    }

    /// A set has two places. Pieces that are pushed out are found where they are guests, again and
    /// again, with their own ids, and so are those that push them out.
    #[test]
    fn pieces_that_are_pushed_out_come_back() {
        let mut cache = Cache::new().expect("memory");
        let seeds = cache.seeds;
        let short = |i: u32| key(format!("{i:08}").as_bytes(), 0, 8);
        let long = |i: u32| LongKey::<4>::new(format!("{i:024}").as_bytes());
        let shorts = of_one_set(SHORT_SETS, |i| hash(short(i), seeds));
        let longs = of_one_set(LONG_SETS, |i| hash(long(i).0, seeds));
        for (i, n) in (0..).zip(&shorts) {
            cache.put(short(*n), &[*n, i, 7, 8][..3 + i as usize % 2]);
        }
        for (i, n) in (0..).zip(&longs) {
            cache.put(long(*n), &[*n, i]);
        }
        for turn in 0..20 {
            let i = turn * 3 % 5;
            let mut found = vec![];
            assert!(cache.append(short(shorts[i]), &mut found), "short {i}, turn {turn}");
            assert_eq!(found, [shorts[i], i as u32, 7, 8][..3 + i % 2]);
            let mut found = vec![];
            assert!(cache.append(long(longs[i]), &mut found), "long {i}, turn {turn}");
            assert_eq!(found, [longs[i], i as u32]);
        }
        assert!(!cache.append(short(u32::MAX), &mut vec![]));
    }

    #[test]
    fn ids_that_need_more_bits_are_not_kept() {
        let mut cache = Cache::new().expect("memory");
        let key = key(b"abc", 0, 3);
        for ids in [vec![1 << 24], vec![1 << 24, 1, 2, 3, 4]] {
            cache.put(key, &ids);
            assert!(!cache.append(key, &mut vec![]));
        }
        // The count stands beside the first, and the most have less room each.
        for count in 1..60 {
            for (byte, large, most) in [
                (b'=', (1 << 20) - 2, 50),
                (b'-', (1 << 20) - 1, 32),
                (b'+', u32::MAX - 1, 32),
                (b'*', u32::MAX, 32),
            ] {
                let mut ids = vec![large; count];
                ids[0] = 1;
                let key = run_key(&vec![byte; 16 * count]).expect("a run");
                cache.put(key, &ids);
                let mut found = vec![];
                let is_known = cache.append(key, &mut found);
                assert_eq!(is_known, count <= most, "{count} times {large}");
                assert!(!is_known || found == ids, "{count} times {large}");
            }
        }
    }

    /// Ids of zeros only are not taken for none.
    #[test]
    fn zeros_are_ids() {
        let mut cache = Cache::new().expect("memory");
        for count in 1..=50 {
            let key = run_key(&vec![b'!'; 16 + count]).expect("a run");
            cache.put(key, &vec![0; count]);
            let mut found = vec![];
            assert!(cache.append(key, &mut found));
            assert_eq!(found, vec![0; count]);
        }
    }
}
