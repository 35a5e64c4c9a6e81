//! Remembers the ids of pieces.
//!
//! Three tables of fixed size: for pieces with a [`Key`], those of up to 15 bytes and runs; for other
//! pieces of up to 31 bytes; and for those of up to 127. What has too many ids for one table is kept
//! in the next. All are set-associative: a piece belongs into one of two places that lie side by
//! side. What is new pushes out what is older, which goes to another set if that has room, and is
//! lost otherwise, so that no text makes a table grow. Places come from a hash with a random seed,
//! so that nobody can choose texts whose pieces push each other out.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use bytemuck::{Pod, Zeroable};

use crate::hash::hash16;
use crate::memory::{Zeroed, prefetch};
use crate::pieces::Unit;
use crate::vocabulary::{Key, SHORT, key_of_run};

/// Up to how many bytes the second table takes.
pub(crate) const LONG: usize = 31;
/// Pieces of up to this many bytes are kept, and longer runs.
pub const LONGEST: usize = 127;

/// How many sets of two the table of short pieces has: 4 MiB. A larger one would keep more pieces,
/// but further away.
const SHORT_SETS: usize = 1 << 16;
/// The same for longer pieces: 2 MiB.
const LONG_SETS: usize = 1 << 14;
/// The same for the longest: 2 MiB.
const LONGEST_SETS: usize = 1 << 12;

/// How much memory one cache takes, in bytes.
pub const CACHE_BYTES: usize = SHORT_SETS * size_of::<Set<2>>()
    + LONG_SETS * size_of::<Set<4>>()
    + LONGEST_SETS * size_of::<Set<16>>();

/// The ids of a piece, two in each word: the highest byte of the first id has their number, and
/// [`MARK`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Zeroable, Pod)]
#[repr(transparent)]
pub(crate) struct Ids<const W: usize>([u64; W]);

const COUNT_SHIFT: u32 = 24;
const COUNT_MASK: u64 = 0x7f;
/// In the newest entry of a set: an entry of the set has become a guest of another.
const MARK: u64 = 1 << 31;

impl<const W: usize> Ids<W> {
    /// Too many for this table: the next one has them.
    const ELSEWHERE: Self = Self([0; W]);
    /// How many ids fit in.
    pub(crate) const CAPACITY: usize = 2 * W;

    #[inline(always)]
    fn is_marked(&self) -> bool {
        self.0[0] & MARK != 0
    }

    fn with_mark(mut self) -> Self {
        self.0[0] |= MARK;
        self
    }

    fn without_mark(mut self) -> Self {
        self.0[0] &= !MARK;
        self
    }

    /// `None` when they are too many.
    fn new(ids: &[u32]) -> Option<Self> {
        debug_assert!(is_kept(ids));
        if ids.len() > Self::CAPACITY {
            return None;
        }
        let mut words = [0; W];
        for (i, &id) in ids.iter().enumerate() {
            words[i / 2] |= u64::from(id) << (32 * (i % 2));
        }
        words[0] |= (ids.len() as u64) << COUNT_SHIFT;
        Some(Self(words))
    }

    /// Appends the ids to `out`. False when there are none.
    #[inline(always)]
    fn append_to(&self, out: &mut Vec<u32>) -> bool {
        out.reserve(Self::CAPACITY);
        // SAFETY: there is room for so many, and those counted have been written.
        unsafe {
            let count = self.write(out.as_mut_ptr().add(out.len()));
            out.set_len(out.len() + count);
            count > 0
        }
    }

    /// Writes the ids to `room`, whatever behind them, and returns how many they are.
    ///
    /// # Safety
    ///
    /// `room` is valid for writes of [`Ids::CAPACITY`] ids.
    #[inline(always)]
    unsafe fn write(&self, room: *mut u32) -> usize {
        for (i, word) in self.0.iter().enumerate() {
            let word = if i == 0 { word & !(0xff << COUNT_SHIFT) } else { *word };
            // SAFETY: no more than `CAPACITY` ids, for which the caller has room.
            unsafe {
                room.add(2 * i).write(word as u32);
                room.add(2 * i + 1).write((word >> 32) as u32);
            }
        }
        (self.0[0] >> COUNT_SHIFT & COUNT_MASK) as usize
    }
}

/// Whether a table has room for so many ids, and for a count beside the first.
fn is_kept(ids: &[u32]) -> bool {
    (1..=Ids::<16>::CAPACITY).contains(&ids.len()) && ids[0] >> COUNT_SHIFT == 0
}

/// A piece of up to `8 * W - 1` bytes, and its ids.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
struct Entry<const W: usize> {
    key: [u64; W],
    ids: Ids<W>,
}

// SAFETY: two arrays of the same type, one behind the other.
unsafe impl<const W: usize> Pod for Entry<W> {}

impl<const W: usize> Entry<W> {
    fn is_empty(&self) -> bool {
        self.key == [0; W]
    }
}

/// Two entries, the newer one first. The second may be a guest, an entry that was pushed out of the
/// set where it belongs.
type Set<const W: usize> = [Entry<W>; 2];

/// So many sets, a power of two.
#[derive(Debug)]
struct Table<const W: usize, const SETS: usize>(Zeroed);

impl<const W: usize, const SETS: usize> Table<W, SETS> {
    fn new() -> Option<Self> {
        Zeroed::new(SETS * size_of::<Set<W>>()).map(Self)
    }

    #[inline(always)]
    fn view(&self) -> View<'_, W, SETS> {
        let sets: &[Set<W>] = bytemuck::cast_slice(self.0.bytes());
        View(sets.try_into().expect("so many sets"))
    }

    /// Appends the ids of the piece with this key.
    fn append(&mut self, key: [u64; W], seeds: [u64; 2], out: &mut Vec<u32>) -> Found {
        self.recall(key, seeds);
        match self.view().get(set_of(hash(key, seeds), SETS), key) {
            None => Found::Unknown,
            Some(ids) if ids.append_to(out) => Found::Here,
            Some(_) => Found::Elsewhere,
        }
    }

    /// Remembers the ids of the piece with this key. False when they are too many; the entry
    /// says so then.
    fn remember(&mut self, key: [u64; W], seeds: [u64; 2], ids: &[u32]) -> bool {
        let kept = Ids::new(ids);
        self.put(key, seeds, kept.unwrap_or(Ids::ELSEWHERE));
        kept.is_some()
    }

    /// Where to look for this key. What is there is brought near.
    fn approach(&self, key: [u64; W], seeds: [u64; 2]) -> SetIndex {
        let set = set_of(hash(key, seeds), SETS);
        self.view().0[set].iter().for_each(prefetch);
        SetIndex(set as u32)
    }

    /// Puts an entry into its set. The one that this pushes out becomes a guest of its other set,
    /// if no entry has a better right to the place.
    fn put(&mut self, key: [u64; W], seeds: [u64; 2], ids: Ids<W>) {
        let sets: &mut [Set<W>] = bytemuck::cast_slice_mut(self.0.bytes_mut());
        let home = set_of(hash(key, seeds), SETS);
        let set = &mut sets[home];
        if set[0].key == key {
            return;
        }
        if set[0].is_empty() {
            set[0] = Entry { key, ids };
            return;
        }
        let pushed_out = set[1];
        set[1] = Entry { key: set[0].key, ids: set[0].ids.without_mark() };
        set[0] = Entry { key, ids: if set[0].ids.is_marked() { ids.with_mark() } else { ids } };
        let pushed_hash = hash(pushed_out.key, seeds);
        let is_guest = set_of(pushed_hash, SETS) != home;
        if pushed_out.is_empty() || pushed_out.key == key || is_guest {
            return;
        }
        let other = other_set_of(pushed_hash, SETS);
        let place = &sets[other][1];
        if place.is_empty() || set_of(hash(place.key, seeds), SETS) != other {
            sets[other][1] = pushed_out;
            let newest = &mut sets[home][0].ids;
            *newest = newest.with_mark();
        }
    }

    /// Moves the guest with this key, if there is one, back to its set.
    fn recall(&mut self, key: [u64; W], seeds: [u64; 2]) {
        let sets: &mut [Set<W>] = bytemuck::cast_slice_mut(self.0.bytes_mut());
        if !sets[set_of(hash(key, seeds), SETS)][0].ids.is_marked() {
            return;
        }
        let place = &mut sets[other_set_of(hash(key, seeds), SETS)][1];
        if place.key != key {
            return;
        }
        let ids = place.ids;
        *place = Entry::zeroed();
        self.put(key, seeds, ids);
    }
}

/// What a table says about a key.
enum Found {
    /// The ids are appended.
    Here,
    /// The next table has them.
    Elsewhere,
    Unknown,
}

/// Hashes a key of an even number of words.
#[inline(always)]
fn hash<const W: usize>(key: [u64; W], seeds: [u64; 2]) -> u64 {
    let (pairs, _) = key.as_chunks();
    pairs.iter().fold(0, |hash, &[a, b]| hash16([a ^ hash, b], seeds))
}

/// The set where an entry belongs. `sets` is a power of two.
#[inline(always)]
fn set_of(hash: u64, sets: usize) -> usize {
    (hash >> 20) as usize & (sets - 1)
}

/// The set that it may be a guest of.
#[inline(always)]
fn other_set_of(hash: u64, sets: usize) -> usize {
    (hash >> 40) as usize & (sets - 1)
}

/// A table to look up many pieces in.
#[derive(Debug, Clone, Copy)]
struct View<'a, const W: usize, const SETS: usize>(&'a [Set<W>; SETS]);

impl<'a, const W: usize, const SETS: usize> View<'a, W, SETS> {
    /// The ids at this key. (An empty entry has the key that stands for no piece, and no ids.)
    ///
    /// Which of the two entries is looked at is computed, not branched on: a branch would be
    /// mispredicted.
    #[inline(always)]
    fn get(self, set: usize, key: [u64; W]) -> Option<&'a Ids<W>> {
        let set = &self.0[set & (SETS - 1)];
        let older = usize::from(difference(set[0].key, key) != 0);
        let entry = &set[older];
        (difference(entry.key, key) == 0).then_some(&entry.ids)
    }
}

/// Zero when the keys are the same.
#[inline(always)]
fn difference<const W: usize>(a: [u64; W], b: [u64; W]) -> u64 {
    (0..W).fold(0, |difference, i| difference | (a[i] ^ b[i]))
}

/// The key of a piece in one of the tables of longer ones: its bytes, zeros, and in the last byte
/// how many bytes there are. It is zero for what has a key in another table, but more ids than that
/// has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LongKey<const W: usize>([u64; W]);

impl LongKey<4> {
    /// Of a piece of 16 to [`LONG`] bytes.
    pub(crate) fn new(piece: &[u8]) -> Self {
        debug_assert!((SHORT + 1..=LONG).contains(&piece.len()));
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

impl LongKey<16> {
    /// Of a piece of 32 to [`LONGEST`] bytes.
    pub(crate) fn new(piece: &[u8]) -> Self {
        debug_assert!((LONG + 1..=LONGEST).contains(&piece.len()));
        let mut block = [0; 128];
        block[..piece.len()].copy_from_slice(piece);
        block[127] = piece.len() as u8;
        Self(bytemuck::cast(block))
    }
}

impl<const W: usize> LongKey<W> {
    /// Of what has this key in another table.
    fn of_other<const V: usize>(key: [u64; V]) -> Self {
        let mut words = [0; W];
        words[..V].copy_from_slice(&key);
        Self(words)
    }
}

/// The key of a piece of more than 15 bytes that is one character over and over, or one byte but
/// for what is before and behind it (rows of dots, rulers with a space or a line end): those and
/// the length say it all.
pub(crate) fn run_key(piece: &[u8]) -> Option<Key> {
    debug_assert!(piece.len() > SHORT);
    let [first, inner @ .., last, end] = piece else { return None };
    let what = if is_repeated(inner, 1) {
        // Above any character, so that the two kinds are told apart.
        1 << 32 | u64::from(u32::from_le_bytes([*first, inner[0], *last, *end]))
    } else {
        let width = match first {
            0xc0..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0.. => 4,
            _ => return None,
        };
        if !is_repeated(piece, width) {
            return None;
        }
        let mut character = [0; 8];
        character[..width].copy_from_slice(&piece[..width]);
        u64::from_le_bytes(character)
    };
    Some(key_of_run(what, piece.len()))
}

/// Whether the first `width` of many bytes come over and over.
fn is_repeated(bytes: &[u8], width: usize) -> bool {
    bytes[width..2 * width] == bytes[..width] && bytes[width..] == bytes[..bytes.len() - width]
}

/// The ids of pieces that came by.
#[derive(Debug)]
pub struct Cache {
    seeds: [u64; 2],
    short: Table<2, SHORT_SETS>,
    long: Table<4, LONG_SETS>,
    longest: Table<16, LONGEST_SETS>,
}

impl Cache {
    /// An empty cache with seeds of its own; `None` when there is no memory for it.
    pub fn new() -> Option<Self> {
        let random = || RandomState::new().build_hasher().finish();
        Some(Self {
            seeds: [random(), random()],
            short: Table::new()?,
            long: Table::new()?,
            longest: Table::new()?,
        })
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

    /// Brings near what [`Cache::append`] and [`Cache::put`] read beside the set where the piece
    /// with this key belongs, which is near.
    #[inline(always)]
    pub(crate) fn approach_rest(&self, key: Key, SetIndex(home): SetIndex) {
        let sets = self.short.view();
        let approach_other = |key| {
            prefetch(&sets.0[other_set_of(hash(key, self.seeds), SHORT_SETS)]);
        };
        let [newer, older] = &sets.0[home as usize % SHORT_SETS];
        if newer.ids.is_marked() {
            approach_other(key);
        }
        // Where the older one would become a guest.
        if !older.is_empty() {
            approach_other(older.key);
        }
    }

    /// Where to look for a longer piece. What is there is brought near.
    pub(crate) fn approach_long(&self, LongKey(key): LongKey<4>) -> SetIndex {
        self.long.approach(key, self.seeds)
    }

    /// The same for one of the longest.
    pub(crate) fn approach_longest(&self, LongKey(key): LongKey<16>) -> SetIndex {
        self.longest.approach(key, self.seeds)
    }

    /// Appends the ids of a longer piece, if they are in this set.
    #[inline(always)]
    pub(crate) fn append_long_from(
        &self,
        SetIndex(set): SetIndex,
        LongKey(key): LongKey<4>,
        out: &mut Vec<u32>,
    ) -> bool {
        self.long.view().get(set as usize, key).is_some_and(|ids| ids.append_to(out))
    }
}

/// What one of the tables of a cache knows a piece by.
pub(crate) trait CacheKey: Copy {
    /// [`Cache::append`].
    fn append(self, cache: &mut Cache, out: &mut Vec<u32>) -> bool;
    /// [`Cache::put`], for ids that are kept.
    fn put(self, cache: &mut Cache, ids: &[u32]);
}

impl CacheKey for Key {
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
    fn append(self, cache: &mut Cache, out: &mut Vec<u32>) -> bool {
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
    fn append(self, cache: &mut Cache, out: &mut Vec<u32>) -> bool {
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

impl<'a> ShortPieces<'a> {
    /// Where to look for this key. What is there is brought near.
    #[inline(always)]
    pub(crate) fn approach(self, key: Key) -> SetIndex {
        let set = set_of(hash(key, self.seeds), SHORT_SETS);
        prefetch(&self.table.0[set]);
        SetIndex(set as u32)
    }

    #[inline(always)]
    fn get(self, SetIndex(set): SetIndex, key: Key) -> Option<&'a Ids<2>> {
        self.table.get(set as usize, key)
    }

    /// Appends the ids of `units`, up to the first that is unknown. Returns how many were known.
    #[inline(always)]
    pub(crate) fn append_known(self, units: &[Unit], out: &mut Vec<u32>) -> usize {
        out.reserve(Ids::<2>::CAPACITY * units.len());
        let mut length = out.len();
        let room = out.as_mut_ptr();
        let mut known = 0;
        for unit in units {
            let Some(ids) = self.get(unit.set, unit.key) else { break };
            // SAFETY: no piece has more than `CAPACITY` ids (`Ids` are made with that many at
            // most), and for so many each of them room was reserved.
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

/// A set of a table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SetIndex(u32);

impl SetIndex {
    /// A number below `count`, the same for equal keys.
    #[inline(always)]
    pub(crate) fn below(self, count: usize) -> usize {
        self.0 as usize % count
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, LONG_SETS, LongKey, SHORT_SETS, hash, other_set_of, run_key, set_of};
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
        for count in (1..12).chain(30..35) {
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
                assert_eq!(is_known, count <= 32, "{length} bytes, {count} ids");
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
            let other = other_set_of(hash(i), sets);
            if other != home && others.iter().all(|&i| other_set_of(hash(i), sets) != other) {
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
    fn runs_have_keys_of_their_own() {
        let mut seen = std::collections::HashMap::new();
        let mut pieces: Vec<Vec<u8>> = vec![];
        for length in 16..40 {
            for run in [b'=', b'-', 0, 0xff] {
                for before in [run, b' ', 0] {
                    for behind in [[run; 2], [run, b'\n'], [b'\r', b'\n'], [0, 0]] {
                        let middle = vec![run; length - 3];
                        pieces.push([&[before][..], &middle, &behind].concat());
                    }
                }
            }
        }
        for character in ["\u{e9}", "\u{4e00}", "\u{1f600}"] {
            pieces.extend((16..40).map(|count| character.repeat(count).into_bytes()));
        }
        pieces.sort();
        pieces.dedup();
        for piece in pieces {
            let key = run_key(&piece).unwrap_or_else(|| panic!("{}", piece.escape_ascii()));
            assert_eq!(seen.insert(key, piece.clone()), None, "{}", piece.escape_ascii());
        }
        for other in [
            "--------+-------",
            "abababababababab",
            "\u{4e00}\u{4e00}\u{4e00}\u{4e00}\u{4e00}\u{4e01}",
        ] {
            assert_eq!(run_key(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn ids_that_need_more_bits_are_not_kept() {
        let mut cache = Cache::new().expect("memory");
        let key = key(b"abc", 0, 3);
        for ids in [vec![1 << 24], vec![1 << 24, 1, 2, 3, 4]] {
            cache.put(key, &ids);
            assert!(!cache.append(key, &mut vec![]));
        }
        // The count stands beside the first.
        let ids = [1, u32::MAX, 1 << 24];
        cache.put(key, &ids);
        let mut found = vec![];
        assert!(cache.append(key, &mut found));
        assert_eq!(found, ids);
    }
}
