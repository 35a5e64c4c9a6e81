//! A table of a cache: keys of so many words, and the ids of each.

use bytemuck::{Pod, Zeroable};

use super::exchange::{Exchange, News, Told};
use crate::ablation::Mechanism;
use crate::hash::hash16;
use crate::memory::{Zeroed, prefetch};

/// The ids of a piece, two in each word: the highest byte of the first id has their number,
/// [`MARK`] and [`HEARD`]. If they are too many for that they are packed, and the number is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Zeroable, Pod)]
#[repr(transparent)]
pub(super) struct Ids<const W: usize>([u64; W]);

const COUNT_SHIFT: u32 = 24;
const COUNT_MASK: u64 = 0x3f;
/// In the newest entry of a set: an entry of the set has become a guest of another.
const MARK: u64 = 1 << 31;
/// In an entry that another cache has learnt.
const HEARD: u64 = 1 << 30;
/// How many bits a packed id takes.
const PACKED_BITS: usize = 20;
/// What these bits can be at most. Smaller ids are packed, each with one added.
const PACKED_MAX: u32 = (1 << PACKED_BITS) - 1;

impl<const W: usize> Ids<W> {
    /// Too many for this table: the next one has them.
    const ELSEWHERE: Self = Self([0; W]);
    /// How many ids fit in that are not packed.
    pub(super) const CAPACITY: usize = 2 * W;
    /// How many packed ones do.
    const PACKED: usize = (64 * W - 8) / PACKED_BITS;

    #[inline(always)]
    fn is_marked(&self) -> bool {
        self.0[0] & MARK != 0
    }

    fn with_mark(mut self) -> Self {
        self.0[0] |= MARK;
        self
    }

    /// With a mark if the other has one.
    fn marked_as(mut self, other: &Self) -> Self {
        self.0[0] |= other.0[0] & MARK;
        self
    }

    fn is_heard(&self) -> bool {
        self.0[0] & HEARD != 0
    }

    fn as_heard(mut self) -> Self {
        self.0[0] |= HEARD;
        self
    }

    fn without_mark(mut self) -> Self {
        self.0[0] &= !MARK;
        self
    }

    /// `None` when they are too many, or too large to pack them.
    fn new(ids: &[u32]) -> Option<Self> {
        debug_assert!(is_kept(ids));
        if ids.len() > Self::CAPACITY {
            return Self::packed(ids);
        }
        let mut words = [0; W];
        for (i, &id) in ids.iter().enumerate() {
            words[i / 2] |= u64::from(id) << (32 * (i % 2));
        }
        words[0] |= (ids.len() as u64) << COUNT_SHIFT;
        Some(Self(words))
    }

    /// Puts each id, plus one, behind the other: from the second word on, and at last into what is
    /// not taken of the first.
    fn packed(ids: &[u32]) -> Option<Self> {
        if !Mechanism::PackedIds.is_used()
            || ids.len() > Self::PACKED
            || ids.iter().any(|&id| id >= PACKED_MAX)
        {
            return None;
        }
        let mut words = [0; W];
        for (i, &id) in ids.iter().enumerate() {
            let (word, shift) = (PACKED_BITS * i / 64, PACKED_BITS * i % 64);
            let bits = u128::from(id + 1) << shift;
            words[(word + 1) % W] |= bits as u64;
            words[(word + 2) % W] |= (bits >> 64) as u64;
        }
        words[0] = words[0].rotate_left(32);
        Some(Self(words))
    }

    /// Appends the ids to `out`. False when there are none.
    #[inline(always)]
    pub(super) fn append_to(&self, out: &mut Vec<u32>) -> bool {
        out.reserve(Self::CAPACITY);
        // SAFETY: there is room for so many, and those counted have been written.
        let count = unsafe {
            let count = self.write(out.as_mut_ptr().add(out.len()));
            out.set_len(out.len() + count);
            count
        };
        count > 0 || self.append_packed_to(out)
    }

    fn append_packed_to(&self, out: &mut Vec<u32>) -> bool {
        let mut words = self.0;
        words[0] = words[0].rotate_left(32);
        let from = out.len();
        out.extend((0..Self::PACKED).map_while(|i| {
            let (word, shift) = (PACKED_BITS * i / 64, PACKED_BITS * i % 64);
            let pair = u128::from(words[(word + 2) % W]) << 64 | u128::from(words[(word + 1) % W]);
            ((pair >> shift) as u32 & PACKED_MAX).checked_sub(1)
        }));
        out.len() > from
    }

    /// Writes the ids to `room`, whatever behind them, and returns how many they are.
    ///
    /// # Safety
    ///
    /// `room` is valid for writes of [`Ids::CAPACITY`] ids.
    #[inline(always)]
    pub(super) unsafe fn write(&self, room: *mut u32) -> usize {
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
pub(super) fn is_kept(ids: &[u32]) -> bool {
    (1..=Ids::<16>::PACKED).contains(&ids.len()) && ids[0] >> COUNT_SHIFT == 0
}

/// A piece of up to `8 * W - 1` bytes, and its ids.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
pub(super) struct Entry<const W: usize> {
    key: [u64; W],
    ids: Ids<W>,
}

// SAFETY: two arrays of the same type, one behind the other.
unsafe impl<const W: usize> Pod for Entry<W> {}

impl<const W: usize> Entry<W> {
    fn is_empty(&self) -> bool {
        self.key == [0; W]
    }

    /// Whether it may go: nothing that was learnt here is lost with it.
    fn is_free(&self) -> bool {
        self.is_empty() || self.ids.is_heard()
    }
}

/// Two entries, the newer one first. The second may be a guest, an entry that was pushed out of the
/// set where it belongs.
type Set<const W: usize> = [Entry<W>; 2];

/// How many bytes processors fetch at once.
const LINE: usize = 64;

/// So many sets, a power of two.
#[derive(Debug)]
pub(super) struct Table<const W: usize, const SETS: usize> {
    memory: Zeroed,
    pub(super) news: News<W>,
}

impl<const W: usize, const SETS: usize> Table<W, SETS> {
    /// How much memory it takes.
    pub(super) const BYTES: usize = SETS * size_of::<Set<W>>();

    /// An empty table; `None` when there is no memory for it.
    pub(super) fn new() -> Option<Self> {
        Some(Self { memory: Zeroed::new(Self::BYTES)?, news: News::default() })
    }

    /// Takes all of its memory now.
    pub(super) fn populate(&self) {
        self.memory.populate();
    }

    #[inline(always)]
    pub(super) fn view(&self) -> View<'_, W, SETS> {
        let sets: &[Set<W>] = bytemuck::cast_slice(self.memory.bytes());
        View(sets.try_into().expect("so many sets"))
    }

    /// Appends the ids of the piece with this key.
    pub(super) fn append(&mut self, key: [u64; W], seeds: [u64; 2], out: &mut Vec<u32>) -> Found {
        self.recall(key, seeds);
        match self.view().get(SetIndex::of(hash(key, seeds), SETS), key) {
            None => Found::Unknown,
            Some(ids) if ids.append_to(out) => Found::Here,
            Some(_) => Found::Elsewhere,
        }
    }

    /// Remembers the ids of the piece with this key. False when they are too many; the entry
    /// says so then.
    pub(super) fn remember(&mut self, key: [u64; W], seeds: [u64; 2], ids: &[u32]) -> bool {
        let kept = Ids::new(ids);
        self.put(Entry { key, ids: kept.unwrap_or(Ids::ELSEWHERE) }, seeds);
        if let Some(ids) = kept {
            self.news.add(Entry { key, ids });
        }
        kept.is_some()
    }

    /// Tells other tables of this generation what was learnt, and takes in what they told.
    #[inline(always)]
    pub(super) fn exchange(
        &mut self,
        seeds: [u64; 2],
        ledger: &Exchange,
        told: &Told<W>,
        generation: usize,
    ) {
        if let Some(heard) = self.news.exchange(ledger, told, generation) {
            self.hear(&heard, seeds);
        }
    }

    /// Takes in what others have learnt, where that pushes out nothing that was learnt here.
    #[inline(never)]
    fn hear(&mut self, entries: &[Entry<W>], seeds: [u64; 2]) {
        /// So many sets are brought near at once.
        const NEAR: usize = 128;
        for entries in entries.chunks(NEAR) {
            for entry in entries {
                self.view().prefetch(entry.key, seeds);
            }
            let sets: &mut [Set<W>] = bytemuck::cast_slice_mut(self.memory.bytes_mut());
            for &Entry { key, ids } in entries {
                let set = &mut sets[set_of(hash(key, seeds), SETS)];
                if set.iter().any(|entry| entry.key == key) {
                    continue;
                }
                let empty = set.iter().position(Entry::is_empty);
                if let Some(place) = empty.or_else(|| set.iter().rposition(Entry::is_free)) {
                    let ids = ids.as_heard().marked_as(&set[place].ids);
                    set[place] = Entry { key, ids };
                }
            }
        }
    }

    /// Puts an entry into its set. The one that this pushes out becomes a guest of another set, if
    /// no entry has a better right to the place. What was heard goes first, for good.
    fn put(&mut self, Entry { key, ids }: Entry<W>, seeds: [u64; 2]) {
        let sets: &mut [Set<W>] = bytemuck::cast_slice_mut(self.memory.bytes_mut());
        let home = set_of(hash(key, seeds), SETS);
        let set = &mut sets[home];
        if set[0].key == key {
            return;
        }
        let newest = Entry { key, ids: ids.marked_as(&set[0].ids) };
        let mut newer = std::mem::replace(&mut set[0], newest);
        newer.ids = newer.ids.without_mark();
        if newer.is_empty() || (newer.is_free() && !set[1].is_free()) {
            return;
        }
        let pushed_out = std::mem::replace(&mut set[1], newer);
        let pushed_hash = hash(pushed_out.key, seeds);
        let is_guest = set_of(pushed_hash, SETS) != home;
        if !Mechanism::Relocation.is_used()
            || pushed_out.is_free()
            || pushed_out.key == key
            || is_guest
        {
            return;
        }
        let others = other_sets_of(pushed_hash, SETS);
        let is_free = |&set: &usize| sets[set][1].is_free();
        let has_guest = |&set: &usize| set_of(hash(sets[set][1].key, seeds), SETS) != set;
        let other = others.into_iter().find(is_free).or_else(|| others.into_iter().find(has_guest));
        if let Some(other) = other {
            sets[other][1] = pushed_out;
            let newest = &mut sets[home][0].ids;
            *newest = newest.with_mark();
        }
    }

    /// Moves the guest with this key, if there is one, back to its set.
    fn recall(&mut self, key: [u64; W], seeds: [u64; 2]) {
        let sets: &mut [Set<W>] = bytemuck::cast_slice_mut(self.memory.bytes_mut());
        if !sets[set_of(hash(key, seeds), SETS)][0].ids.is_marked() {
            return;
        }
        let others = other_sets_of(hash(key, seeds), SETS);
        let Some(other) = others.into_iter().find(|&set| sets[set][1].key == key) else { return };
        let place = &mut sets[other][1];
        let ids = place.ids;
        *place = Entry::zeroed();
        self.put(Entry { key, ids }, seeds);
    }
}

/// What a table says about a key.
pub(super) enum Found {
    /// The ids are appended.
    Here,
    /// The next table has them.
    Elsewhere,
    Unknown,
}

/// Hashes a key of an even number of words.
#[inline(always)]
pub(super) fn hash<const W: usize>(key: [u64; W], seeds: [u64; 2]) -> u64 {
    let (pairs, _) = key.as_chunks();
    pairs.iter().fold(0, |hash, &[a, b]| hash16([a ^ hash, b], seeds))
}

/// The set where an entry belongs. `sets` is a power of two.
#[inline(always)]
pub(super) fn set_of(hash: u64, sets: usize) -> usize {
    (hash >> 20) as usize & (sets - 1)
}

/// The sets that it may be a guest of: two that lie side by side.
#[inline(always)]
pub(super) fn other_sets_of(hash: u64, sets: usize) -> [usize; 2] {
    let other = (hash >> 40) as usize & (sets - 1);
    [other, other ^ 1]
}

/// A table to look up many pieces in.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a, const W: usize, const SETS: usize>(&'a [Set<W>; SETS]);

impl<'a, const W: usize, const SETS: usize> View<'a, W, SETS> {
    /// Where to look for this key. What is there is brought near.
    #[inline(always)]
    pub(super) fn prefetch(self, key: [u64; W], seeds: [u64; 2]) -> SetIndex {
        let set = SetIndex::of(hash(key, seeds), SETS);
        // What lies in one line of memory comes together.
        let entries = if size_of::<Set<W>>() <= LINE { 1 } else { 2 };
        self.set(set).iter().take(entries).for_each(prefetch);
        set
    }

    /// Brings near what [`Table::append`] and [`Table::remember`] read beside the set where the key
    /// belongs, which is near.
    #[inline(always)]
    pub(super) fn prefetch_rest(self, home: SetIndex, key: [u64; W], seeds: [u64; 2]) {
        let prefetch_other =
            |key| other_sets_of(hash(key, seeds), SETS).map(|set| prefetch(&self.0[set][1]));
        let [newer, older] = self.set(home);
        if newer.ids.is_marked() {
            prefetch_other(key);
        }
        // Where the older one would become a guest.
        if !older.is_empty() {
            prefetch_other(older.key);
        }
    }

    #[inline(always)]
    fn set(self, SetIndex(set): SetIndex) -> &'a Set<W> {
        &self.0[set as usize & (SETS - 1)]
    }

    /// The ids at this key. (An empty entry has the key that stands for no piece, and no ids.)
    ///
    /// Which of the two entries is looked at is computed, not branched on: a branch would be
    /// mispredicted.
    #[inline(always)]
    pub(super) fn get(self, set: SetIndex, key: [u64; W]) -> Option<&'a Ids<W>> {
        let set = self.set(set);
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

/// A set of a table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SetIndex(u32);

impl SetIndex {
    #[inline(always)]
    fn of(hash: u64, sets: usize) -> Self {
        Self(set_of(hash, sets) as u32)
    }

    /// A number below `count`, the same for equal keys.
    #[inline(always)]
    pub(crate) fn below(self, count: usize) -> usize {
        self.0 as usize % count
    }
}
