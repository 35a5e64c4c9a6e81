//! A constant table without collisions, by "hash and displace".
//!
//! Keys are grouped into buckets by the high bits of their hash; each bucket has a displacement
//! that gives each key its slot. Next to its displacement a bucket stores some bits of the hashes
//! of its keys, which rule out most other keys: the buckets are small enough to stay in the L2
//! cache, unlike the slots.
//!
//! Source: Belazzougui, Botelho, Dietzfelbinger, "Hash, displace, and compress", ESA 2009.

use std::hash::{BuildHasher, RandomState};
use std::hint::select_unpredictable;
use std::ops::Range;

use super::Section;
use crate::error::Result;
use crate::hash::{FIXED_SEEDS, fold};
use crate::memory::{prefetch, with_capacity};
use crate::polling::poll;

/// Slots for words that the caller computes, found by a hash of the key with
/// [`PerfectHash::seeds`].
#[derive(Debug, Clone)]
pub(crate) struct PerfectHash {
    pub(super) seeds: [u64; 2],
    /// Displacement in the lowest 8 bits, [`marks`] of the keys above. The number of buckets is a
    /// power of two.
    pub(super) buckets: Section<u32>,
    /// Slots, whose number is a power of two, and one last slot that is always empty.
    pub(super) slots: Section<u64>,
}

/// Minimum number of slots: in smaller tables (with 7 keys in 8 slots, say), all seeds may fail by
/// chance.
const FEWEST_SLOTS: usize = 256;
/// Word of an empty slot; callers never compute this word.
pub(crate) const EMPTY: u64 = u64::MAX;

#[inline(always)]
fn bucket_of(hash: u64, buckets: usize) -> usize {
    (hash >> 40) as usize & (buckets - 1)
}

/// Spreads displacements over the whole table, so that it fills evenly.
#[inline(always)]
fn slot_of(hash: u64, displacement: u32, slots: usize) -> usize {
    (hash as u32 ^ displacement.wrapping_mul(0x9e37_79b1)) as usize & (slots - 1)
}

/// Returns the two bits that a key sets in its bucket: one of 16 and one of 8, chosen by bits of
/// the hash that choose neither bucket nor slot. A bucket of three keys has both bits of another
/// key in 6 % of cases.
#[inline(always)]
fn marks(hash: u64) -> u32 {
    1 << (DISPLACEMENT_BITS + (hash >> 24 & 15) as u32) | 1 << (24 + (hash >> 28 & 7) as u32)
}

const DISPLACEMENT_BITS: u32 = 8;
const DISPLACEMENT_MASK: u32 = (1 << DISPLACEMENT_BITS) - 1;

/// Maximum number of keys in a bucket; above it, the hashes fail at once. Unless keys are chosen to
/// collide, buckets have three keys on average.
const LARGEST_BUCKET: usize = 64;
/// Number of fixed seeds that are tried first; later seeds are random, so that no one can choose
/// colliding keys.
const FIXED_ATTEMPTS: usize = 8;
const ATTEMPTS: usize = 64;

impl PerfectHash {
    /// Finds a slot for each of `items`, in a table filled to at most 80 %. `hash(item, seeds)`
    /// hashes the key of an item; `word(item, hash)` is the word in its slot.
    ///
    /// `None` if all seeds fail, which is less likely than broken hardware.
    pub(super) fn build(
        items: &[u32],
        hash: impl Fn(u32, [u64; 2]) -> u64,
        word: impl Fn(u32, u64) -> u64,
    ) -> Result<Option<Self>> {
        let mut seeds = FIXED_SEEDS;
        let mut hashes = vec![0; items.len()];
        for attempt in 0..ATTEMPTS {
            for (slot, &item) in hashes.iter_mut().zip(items) {
                *slot = hash(item, seeds);
            }
            poll(items.len())?;
            if let Some(buckets) = displace(&hashes) {
                let mut table = Self { seeds, buckets: buckets.into(), slots: Section::default() };
                let words =
                    items.iter().zip(&hashes).map(|(&item, &hash)| (hash, word(item, hash)));
                table.fill(items.len(), words)?;
                poll(items.len())?;
                return Ok(Some(table));
            }
            seeds = if attempt + 1 < FIXED_ATTEMPTS {
                [fold(seeds[0], seeds[1]), fold(seeds[1], !seeds[0])]
            } else {
                let random = RandomState::new();
                [random.hash_one(0), random.hash_one(1)]
            };
        }
        Ok(None)
    }

    /// Fills the slots, given the hash and the word of each of `count` keys.
    pub(super) fn fill(
        &mut self,
        count: usize,
        words: impl Iterator<Item = (u64, u64)>,
    ) -> Result<()> {
        let size = table_size(count);
        let mut slots = with_capacity(size + 1)?;
        slots.resize(size + 1, EMPTY);
        for (hash, word) in words {
            let bucket = self.buckets[bucket_of(hash, self.buckets.len())];
            slots[slot_of(hash, bucket & DISPLACEMENT_MASK, size)] = word;
        }
        self.slots = slots.into();
        Ok(())
    }

    /// Returns the word in the slot for this hash: the key's own word if the key is present;
    /// otherwise [`EMPTY`] or another key's word.
    #[inline(always)]
    pub(crate) fn word(&self, hash: u64) -> u64 {
        self.slots[self.slot(hash)]
    }

    /// Prefetches the memory that [`PerfectHash::prefetch_slot`] reads.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(&self.buckets[bucket_of(hash, self.buckets.len())]);
    }

    /// Prefetches the memory that [`PerfectHash::at`] reads, after [`PerfectHash::prefetch`], and
    /// returns the slot.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, hash: u64) -> usize {
        let slot = self.slot(hash);
        prefetch(&self.slots[slot]);
        slot
    }

    #[inline(always)]
    pub(crate) fn at(&self, slot: usize) -> u64 {
        self.slots[slot]
    }

    #[inline(always)]
    fn slot(&self, hash: u64) -> usize {
        let bucket = self.buckets[bucket_of(hash, self.buckets.len())];
        let last = self.slots.len() - 1;
        let marks = marks(hash);
        let slot = slot_of(hash, bucket & DISPLACEMENT_MASK, last);
        // Branch-free: a branch would be mispredicted.
        select_unpredictable(bucket & marks == marks, slot, last)
    }
}

fn table_size(keys: usize) -> usize {
    (keys * 5 / 4).next_power_of_two().max(FEWEST_SLOTS)
}

/// Finds the displacement of each bucket; `None` if these hashes have none.
fn displace(hashes: &[u64]) -> Option<Vec<u32>> {
    let table = table_size(hashes.len());
    let mut buckets: Vec<u32> = vec![0; (hashes.len() / 3).next_power_of_two()];
    let groups = Groups::new(hashes, buckets.len())?;
    let mut taken: Vec<u64> = vec![0; table.div_ceil(64)];
    let mut slots = [0; LARGEST_BUCKET];
    for (bucket, range) in groups.largest_first() {
        let hashes = &groups.hashes[range];
        let slots = &mut slots[..hashes.len()];
        // The compiler unrolls the loops of the most common bucket sizes.
        let displacement = match *hashes {
            [a] => free_displacement(&[a], &taken, table, slots),
            [a, b] => free_displacement(&[a, b], &taken, table, slots),
            [a, b, c] => free_displacement(&[a, b, c], &taken, table, slots),
            [a, b, c, d] => free_displacement(&[a, b, c, d], &taken, table, slots),
            _ => free_displacement(hashes, &taken, table, slots),
        };
        let displacement = displacement?;
        buckets[bucket] = displacement;
        for (&hash, &slot) in hashes.iter().zip(&*slots) {
            taken[slot / 64] |= 1 << (slot % 64);
            buckets[bucket] |= marks(hash);
        }
    }
    Some(buckets)
}

/// Finds the first displacement that gives the keys with these hashes distinct free slots, and
/// returns it with the slots.
#[inline(always)]
fn free_displacement(
    hashes: &[u64],
    taken: &[u64],
    table: usize,
    slots: &mut [usize],
) -> Option<u32> {
    let slots = &mut slots[..hashes.len()];
    for displacement in 0..=DISPLACEMENT_MASK {
        // Branch-free test of all slots: a branch would be mispredicted.
        let mut is_taken = 0;
        for (slot, &hash) in slots.iter_mut().zip(hashes) {
            *slot = slot_of(hash, displacement, table);
            is_taken |= taken[*slot / 64] >> (*slot % 64);
        }
        if is_taken & 1 == 0 && (1..hashes.len()).all(|i| !slots[..i].contains(&slots[i])) {
            return Some(displacement);
        }
    }
    None
}

/// Hashes of keys, grouped by bucket.
struct Groups {
    /// Start of the hashes of each bucket, and the end of the last bucket.
    starts: Vec<u32>,
    hashes: Vec<u64>,
    /// Buckets in descending order of size.
    order: Vec<u32>,
}

impl Groups {
    /// Groups hashes; `None` if a bucket has more keys than [`LARGEST_BUCKET`].
    fn new(hashes: &[u64], buckets: usize) -> Option<Groups> {
        let mut starts: Vec<u32> = vec![0; buckets + 1];
        for &hash in hashes {
            starts[bucket_of(hash, buckets) + 1] += 1;
        }
        let mut sizes = [0; LARGEST_BUCKET + 1];
        for &size in &starts[1..] {
            let count = sizes.get_mut(size as usize)?;
            *count += 1;
        }
        // Index of the first bucket of each size in the order.
        let mut place = 0;
        for size in sizes.iter_mut().rev() {
            place += std::mem::replace(size, place);
        }
        let mut order: Vec<u32> = vec![0; buckets];
        for (bucket, &size) in (0..).zip(&starts[1..]) {
            let place = &mut sizes[size as usize];
            order[*place] = bucket;
            *place += 1;
        }
        for bucket in 0..buckets {
            starts[bucket + 1] += starts[bucket];
        }
        let mut ends = starts[..buckets].to_vec();
        let mut sorted: Vec<u64> = vec![0; hashes.len()];
        for &hash in hashes {
            let end: &mut u32 = &mut ends[bucket_of(hash, buckets)];
            sorted[*end as usize] = hash;
            *end += 1;
        }
        Some(Self { starts, hashes: sorted, order })
    }

    /// Iterates over the nonempty buckets, with the range of their hashes.
    fn largest_first(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        self.order.iter().map_while(|&bucket| {
            let bucket = bucket as usize;
            let range = self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
            (!range.is_empty()).then_some((bucket, range))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{EMPTY, FIXED_ATTEMPTS, PerfectHash};
    use crate::hash::{FIXED_SEEDS, fold};

    fn build(items: &[u32], hash: impl Fn(u32, [u64; 2]) -> u64) -> Option<PerfectHash> {
        PerfectHash::build(items, hash, |item, _| item.into()).unwrap()
    }

    /// Small tables have few seeds that give all keys a slot; 64 seeds must be enough.
    #[test]
    fn few_keys_find_slots() {
        for count in 0..120u32 {
            for salt in 0..if count < 30 { 2000 } else { 40 } {
                let hash = |rank: u32, seeds: [u64; 2]| {
                    fold(u64::from(rank) << 8 ^ salt << 40 ^ seeds[0], seeds[1])
                };
                let ranks: Vec<u32> = (0..count).collect();
                let table = build(&ranks, hash);
                let table = table.unwrap_or_else(|| panic!("{count} keys, salt {salt}"));
                for &rank in &ranks {
                    assert_eq!(table.word(hash(rank, table.seeds)), u64::from(rank));
                }
                let other = table.word(hash(count, table.seeds));
                assert!(other == EMPTY || other < count.into());
            }
        }
    }

    /// Random seeds separate keys that have the same hash under every fixed seed.
    #[test]
    fn chosen_keys_are_told_apart_by_seeds_drawn_at_random() {
        let mut known = vec![FIXED_SEEDS];
        for _ in 1..FIXED_ATTEMPTS {
            let [a, b] = known[known.len() - 1];
            known.push([fold(a, b), fold(b, !a)]);
        }
        let hash = |rank: u32, seeds: [u64; 2]| {
            if known.contains(&seeds) { 7 } else { fold(u64::from(rank) ^ seeds[0], seeds[1]) }
        };
        let ranks: Vec<u32> = (0..10_000).collect();
        let table = build(&ranks, hash).expect("random seeds");
        assert!(ranks.iter().all(|&rank| table.word(hash(rank, table.seeds)) == u64::from(rank)));
    }
}
