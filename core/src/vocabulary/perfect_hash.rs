//! A table that never changes, with no collisions in it: "hash and displace".
//!
//! Keys are grouped into buckets by the high bits of their hash; each bucket has a displacement
//! under which all of its keys land in slots of their own. Beside its displacement a bucket
//! remembers some bits of the hashes of its keys, so that most keys that are not there are told
//! apart by the bucket alone: there are few of those, so they stay in a near cache, which slots
//! do not.
//!
//! Source: Belazzougui, Botelho, Dietzfelbinger, "Hash, displace, and compress", ESA 2009.

use std::hint::select_unpredictable;

use super::Section;
use crate::hash::{FIXED_SEEDS, fold};
use crate::memory::prefetch;

/// Slots for words that their owner makes, by a hash that it computes from the key and
/// [`PerfectHash::seeds`].
#[derive(Debug, Clone)]
pub(crate) struct PerfectHash {
    pub(super) seeds: [u64; 2],
    /// A displacement in the lowest 8 bits, [`marks`] of the keys above; a power of two of them.
    pub(super) buckets: Section<u32>,
    /// A power of two of them, and one at the end that is always empty.
    pub(super) slots: Section<u64>,
}

/// Few keys in as few slots as many would get (7 in 8, say) can be without a place under any of
/// the seeds that are tried, by bad luck alone.
const FEWEST_SLOTS: usize = 256;
/// No owner makes this word.
pub(crate) const EMPTY: u64 = u64::MAX;

#[inline(always)]
fn bucket_of(hash: u64, buckets: usize) -> usize {
    (hash >> 40) as usize & (buckets - 1)
}

/// Displacements are spread over the whole table, so that no part of it can be too full.
#[inline(always)]
fn slot_of(hash: u64, displacement: u32, slots: usize) -> usize {
    (hash as u32 ^ displacement.wrapping_mul(0x9e37_79b1)) as usize & (slots - 1)
}

/// Two bits that a key marks its bucket with, chosen by bits of the hash that choose neither
/// bucket nor slot: one of 16, and one of 8. A bucket of three keys has those of another key in
/// 6 cases of 100.
#[inline(always)]
fn marks(hash: u64) -> u32 {
    1 << (DISPLACEMENT_BITS + (hash >> 24 & 15) as u32) | 1 << (24 + (hash >> 28 & 7) as u32)
}

const DISPLACEMENT_BITS: u32 = 8;
const DISPLACEMENT_MASK: u32 = (1 << DISPLACEMENT_BITS) - 1;

impl PerfectHash {
    /// Finds a slot of its own for each of `items`, in a table that they fill at most 80 % of.
    /// `hash(item, seeds)` hashes the key of an item; `word(item, hash)` is what its slot holds.
    ///
    /// `None` when no seeds do, which takes keys made for it.
    pub(super) fn build(
        items: &[u32],
        hash: impl Fn(u32, [u64; 2]) -> u64,
        word: impl Fn(u32, u64) -> u64,
    ) -> Option<Self> {
        const ATTEMPTS: usize = 64;
        let mut seeds = FIXED_SEEDS;
        for _ in 0..ATTEMPTS {
            let hashes: Vec<u64> = items.iter().map(|&item| hash(item, seeds)).collect();
            if let Some((buckets, slots)) = place(&hashes, |i| word(items[i], hashes[i])) {
                return Some(Self { seeds, buckets: buckets.into(), slots: slots.into() });
            }
            seeds = [fold(seeds[0], seeds[1]), fold(seeds[1], !seeds[0])];
        }
        None
    }

    /// The only word that the key with this hash can have, or [`EMPTY`], or that of another key.
    #[inline(always)]
    pub(crate) fn word(&self, hash: u64) -> u64 {
        self.slots[self.slot(hash)]
    }

    /// Brings near what [`PerfectHash::prefetch_slot`] reads.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(&self.buckets[bucket_of(hash, self.buckets.len())]);
    }

    /// Brings near what [`PerfectHash::word`] reads, after [`PerfectHash::prefetch`], and returns where it is.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, hash: u64) -> usize {
        let slot = self.slot(hash);
        prefetch(&self.slots[slot]);
        slot
    }

    /// The word in this slot.
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
        // Not branched on: a branch would be mispredicted.
        select_unpredictable(bucket & marks == marks, slot, last)
    }
}

/// Displacements and slots, if there are some for these hashes.
fn place(hashes: &[u64], word: impl Fn(usize) -> u64) -> Option<(Vec<u32>, Vec<u64>)> {
    let table = (hashes.len() * 5 / 4).next_power_of_two().max(FEWEST_SLOTS);
    let mut buckets = vec![0; (hashes.len() / 3).next_power_of_two()];
    let mut order: Vec<(usize, usize)> =
        (0..hashes.len()).map(|key| (bucket_of(hashes[key], buckets.len()), key)).collect();
    order.sort_unstable();
    let mut groups: Vec<&[(usize, usize)]> = order.chunk_by(|a, b| a.0 == b.0).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));

    let mut slots = vec![EMPTY; table + 1];
    let mut found: Vec<usize> = Vec::new();
    for group in groups {
        let displacement = (0..=DISPLACEMENT_MASK).find(|&displacement| {
            found.clear();
            group.iter().all(|&(_, key)| {
                let slot = slot_of(hashes[key], displacement, table);
                let free = slots[slot] == EMPTY && !found.contains(&slot);
                found.push(slot);
                free
            })
        })?;
        let bucket: &mut u32 = &mut buckets[group[0].0];
        *bucket = displacement;
        for (&(_, key), &slot) in group.iter().zip(&found) {
            slots[slot] = word(key);
            *bucket |= marks(hashes[key]);
        }
    }
    Some((buckets, slots))
}

#[cfg(test)]
mod tests {
    use super::{EMPTY, PerfectHash};
    use crate::hash::fold;

    /// Few keys have few seeds that place them all; there have to be enough.
    #[test]
    fn there_are_places_for_any_few_keys() {
        for count in 0..120u32 {
            for salt in 0..if count < 30 { 2000 } else { 40 } {
                let hash = |rank: u32, seeds: [u64; 2]| {
                    fold(u64::from(rank) << 8 ^ salt << 40 ^ seeds[0], seeds[1])
                };
                let ranks: Vec<u32> = (0..count).collect();
                let places = PerfectHash::build(&ranks, hash, |rank, _| rank.into());
                let places = places.unwrap_or_else(|| panic!("{count} keys, salt {salt}"));
                for &rank in &ranks {
                    assert_eq!(places.word(hash(rank, places.seeds)), rank.into());
                }
                let other = places.word(hash(count, places.seeds));
                assert!(other == EMPTY || other < count.into());
            }
        }
    }
}
