//! Hashes short keys and byte strings.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Multiplies to 128 bits and XORs the halves: each bit of the result depends on all bits of both
/// factors.
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

/// Seeds for tables whose keys are all known when the tables are built.
pub const FIXED_SEEDS: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345];

/// Returns unpredictable seeds, for tables whose keys come from untrusted text.
pub fn random_seeds() -> [u64; 2] {
    let random = || RandomState::new().build_hasher().finish();
    [random(), random()]
}

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
