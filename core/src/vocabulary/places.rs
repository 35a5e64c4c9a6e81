//! A table of ranks that never changes, with no collisions in it: "hash and displace".
//!
//! Keys are grouped into buckets by the high bits of their hash; each bucket has a displacement
//! under which all of its keys land in slots of their own. A slot holds a rank and some more bits
//! of the hash, so that most keys that are not there are told apart by one read of memory. What
//! the rank stands for lies elsewhere, in the order of ranks: what is frequent lies together.
//!
//! Source: Belazzougui, Botelho, Dietzfelbinger, "Hash, displace, and compress", ESA 2009.

use super::{NONE, RANK_BITS, Section};
use crate::hash::{FIXED_SEEDS, fold};

/// Where ranks are, by a hash that its owner computes from the key and [`Places::seeds`].
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(super) seeds: [u64; 2],
    /// One for each bucket; a power of two of them.
    pub(super) displacements: Section<u32>,
    /// A rank in the low [`RANK_BITS`], a tag above it; a power of two of them.
    pub(super) slots: Section<u32>,
}

const RANK_MASK: u32 = (1 << RANK_BITS) - 1;
const TAG_MASK: u32 = !RANK_MASK;
/// Few keys in as few slots as many would get (7 in 8, say) can be without a place under any of
/// the seeds that are tried, by bad luck alone.
const FEWEST_SLOTS: usize = 256;
/// No rank is this large.
const EMPTY: u32 = u32::MAX;

#[inline(always)]
fn bucket_of(hash: u64, buckets: usize) -> usize {
    (hash >> 40) as usize & (buckets - 1)
}

#[inline(always)]
fn slot_of(hash: u64, displacement: u32, slots: usize) -> usize {
    (hash as usize ^ displacement as usize) & (slots - 1)
}

/// Bits of the hash that choose neither bucket nor slot.
#[inline(always)]
fn tag_of(hash: u64) -> u32 {
    (hash >> 8) as u32 & TAG_MASK
}

impl Places {
    /// Finds a slot of its own for each of `ranks`, in a table that they fill at most 80 % of.
    /// `hash(rank, seeds)` hashes the key of a rank.
    ///
    /// `None` when no seeds do, which takes keys made for it.
    pub(super) fn build(ranks: &[u32], hash: impl Fn(u32, [u64; 2]) -> u64) -> Option<Self> {
        const ATTEMPTS: usize = 64;
        let mut seeds = FIXED_SEEDS;
        for _ in 0..ATTEMPTS {
            let hashes: Vec<u64> = ranks.iter().map(|&rank| hash(rank, seeds)).collect();
            if let Some((displacements, slots)) = place(ranks, &hashes) {
                return Some(Self {
                    seeds,
                    displacements: displacements.into(),
                    slots: slots.into(),
                });
            }
            seeds = [fold(seeds[0], seeds[1]), fold(seeds[1], !seeds[0])];
        }
        None
    }

    /// The only rank that the key with this hash can have, or [`NONE`]. The caller compares keys.
    #[inline(always)]
    pub(crate) fn candidate(&self, hash: u64) -> u32 {
        let displacement = self.displacements[bucket_of(hash, self.displacements.len())];
        let slot = self.slots[slot_of(hash, displacement, self.slots.len())];
        if slot & TAG_MASK == tag_of(hash) && slot != EMPTY { slot & RANK_MASK } else { NONE }
    }
}

/// Displacements and slots, if there are some for these hashes.
fn place(ranks: &[u32], hashes: &[u64]) -> Option<(Vec<u32>, Vec<u32>)> {
    let table = (hashes.len() * 5 / 4).next_power_of_two().max(FEWEST_SLOTS);
    let buckets = (hashes.len() / 3).next_power_of_two();
    let mut order: Vec<(usize, usize)> =
        (0..hashes.len()).map(|key| (bucket_of(hashes[key], buckets), key)).collect();
    order.sort_unstable();
    let mut groups: Vec<&[(usize, usize)]> = order.chunk_by(|a, b| a.0 == b.0).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));

    let mut displacements = vec![0; buckets];
    let mut slots = vec![EMPTY; table];
    let mut found: Vec<usize> = Vec::new();
    for group in groups {
        let displacement = (0..table as u32).find(|&displacement| {
            found.clear();
            group.iter().all(|&(_, key)| {
                let slot = slot_of(hashes[key], displacement, table);
                let free = slots[slot] == EMPTY && !found.contains(&slot);
                found.push(slot);
                free
            })
        })?;
        displacements[group[0].0] = displacement;
        for (&(_, key), &slot) in group.iter().zip(&found) {
            slots[slot] = ranks[key] | tag_of(hashes[key]);
        }
    }
    Some((displacements, slots))
}

#[cfg(test)]
mod tests {
    use super::Places;
    use crate::hash::fold;
    use crate::vocabulary::NONE;

    /// Few keys have few seeds that place them all; there have to be enough.
    #[test]
    fn there_are_places_for_any_few_keys() {
        for count in 0..120u32 {
            for salt in 0..if count < 30 { 2000 } else { 40 } {
                let hash = |rank: u32, seeds: [u64; 2]| {
                    fold(u64::from(rank) << 8 ^ salt << 40 ^ seeds[0], seeds[1])
                };
                let ranks: Vec<u32> = (0..count).collect();
                let places = Places::build(&ranks, hash);
                let places = places.unwrap_or_else(|| panic!("{count} keys, salt {salt}"));
                for &rank in &ranks {
                    assert_eq!(places.candidate(hash(rank, places.seeds)), rank);
                }
                let other = places.candidate(hash(count, places.seeds));
                assert!(other == NONE || other < count);
            }
        }
    }
}
