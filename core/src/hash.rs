//! Hashing of short keys, and places for the keys of a table that never changes.

/// Multiplies to 128 bits and folds the halves: every bit of the result depends on every bit of
/// both factors.
#[inline(always)]
pub fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

/// Mixes the two halves of a 16-byte key with two seeds.
#[inline(always)]
pub fn hash16(key: [u64; 2], seeds: [u64; 2]) -> u64 {
    fold(key[0] ^ seeds[0], key[1] ^ seeds[1])
}

/// The seeds of tables whose keys are known beforehand, which nobody can choose against.
pub const FIXED_SEEDS: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345];

/// Hashes bytes of any length.
pub fn hash_bytes(bytes: &[u8], seeds: [u64; 2]) -> u64 {
    let mut state = bytes.len() as u64;
    for chunk in bytes.chunks(16) {
        let mut block = [0; 16];
        block[..chunk.len()].copy_from_slice(chunk);
        let key = bytemuck::cast::<[u8; 16], [u64; 2]>(block);
        state = fold(state ^ seeds[0], hash16(key, seeds) ^ seeds[1]);
    }
    state
}

/// A hash with no collisions for a fixed set of keys: "hash and displace".
///
/// Keys are grouped into buckets by the high bits of their hash; each bucket has a displacement
/// under which all of its keys land in slots of their own. A look-up is one small table read and
/// one read of the slot, whether the key is there or not.
///
/// Source: Belazzougui, Botelho, Dietzfelbinger, "Hash, displace, and compress", ESA 2009.
///
/// `displacements` and the table have a power of two of elements each.
#[inline(always)]
pub fn slot(hash: u64, displacements: &[u32], table: usize) -> usize {
    let displacement = displacements[bucket_of(hash, displacements.len())];
    slot_of(hash, displacement, table)
}

#[inline(always)]
fn bucket_of(hash: u64, buckets: usize) -> usize {
    (hash >> 36) as usize & (buckets - 1)
}

#[inline(always)]
fn slot_of(hash: u64, displacement: u32, table: usize) -> usize {
    (hash as usize ^ displacement as usize) & (table - 1)
}

/// What [`place`] found.
#[derive(Debug)]
pub struct Placement {
    /// The seeds to hash keys with.
    pub seeds: [u64; 2],
    /// One for each bucket, to be given to [`slot`].
    pub displacements: Vec<u32>,
    /// The slot of each key.
    pub slots: Vec<usize>,
    /// How many slots the table has.
    pub table: usize,
}

/// Finds a slot of its own for each of `count` keys, in a table that they fill at most 80 % of.
/// `hash(key, seeds)` hashes the key with this place in the caller's list.
///
/// `None` when no seeds do, which takes keys made for it.
pub fn place(count: usize, hash: impl Fn(usize, [u64; 2]) -> u64) -> Option<Placement> {
    const ATTEMPTS: usize = 64;
    let mut seeds = FIXED_SEEDS;
    for _ in 0..ATTEMPTS {
        let hashes: Vec<u64> = (0..count).map(|key| hash(key, seeds)).collect();
        if let Some(placement) = place_hashes(&hashes, seeds) {
            return Some(placement);
        }
        seeds = [fold(seeds[0], seeds[1]), fold(seeds[1], !seeds[0])];
    }
    None
}

fn place_hashes(hashes: &[u64], seeds: [u64; 2]) -> Option<Placement> {
    let table = (hashes.len() * 5 / 4).next_power_of_two();
    let buckets = (hashes.len() / 3).next_power_of_two();
    let mut order: Vec<(usize, usize)> =
        (0..hashes.len()).map(|key| (bucket_of(hashes[key], buckets), key)).collect();
    order.sort_unstable();
    let mut groups: Vec<&[(usize, usize)]> = order.chunk_by(|a, b| a.0 == b.0).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));

    let mut displacements = vec![0; buckets];
    let mut slots = vec![0; hashes.len()];
    let mut taken = vec![false; table];
    let mut found: Vec<usize> = Vec::new();
    for group in groups {
        let displacement = (0..table as u32).find(|&displacement| {
            found.clear();
            group.iter().all(|&(_, key)| {
                let slot = slot_of(hashes[key], displacement, table);
                let free = !taken[slot] && !found.contains(&slot);
                found.push(slot);
                free
            })
        })?;
        displacements[group[0].0] = displacement;
        for (&(_, key), &slot) in group.iter().zip(&found) {
            taken[slot] = true;
            slots[key] = slot;
        }
    }
    Some(Placement { seeds, displacements, slots, table })
}
