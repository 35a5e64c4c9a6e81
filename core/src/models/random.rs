//! Random numbers for models that sample.

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};

use serde::{Deserialize, Serialize};

/// Sampling settings, which are never in files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Sampling {
    /// Factor that multiplies the scores; `None` to find the best tokens.
    pub(crate) alpha: Option<f64>,
    /// Number of best paths to sample from; 0 for all.
    pub(crate) nbest_size: Option<usize>,
    /// Seed, which makes encoding deterministic.
    pub(crate) seed: Option<u64>,
}

impl Sampling {
    pub(crate) const FIELDS: [&'static str; 3] = ["alpha", "nbest_size", "seed"];

    /// Returns the factor of the scores and the number of paths; `None` to find the best tokens.
    pub(crate) fn choice(&self) -> Option<(f64, usize)> {
        let alpha = self.alpha.filter(|&alpha| alpha != 0.0)?;
        Some((alpha, self.nbest_size.unwrap_or(0)))
    }

    /// Seeds the generator for a text, if there is a seed.
    pub(crate) fn begin(&self, text: &str) {
        const PRIME: u64 = 0x100_0000_01b3;
        if let Some(seed) = self.seed {
            let hash = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
            STATE.set(Some(text.as_bytes().iter().fold(mixed(seed), hash)));
        }
    }
}

thread_local! {
    static STATE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Increment of the SplitMix64 generator.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mixed(state: u64) -> u64 {
    let state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ state >> 31
}

fn next() -> u64 {
    let random = || RandomState::new().build_hasher().finish();
    let state = STATE.get().unwrap_or_else(random).wrapping_add(STEP);
    STATE.set(Some(state));
    mixed(state)
}

/// Returns a 24-bit number in `0..1`.
pub(crate) fn next_f32() -> f32 {
    (next() >> 40) as f32 / (1u32 << 24) as f32
}

/// Returns a 53-bit number in `0..1`.
pub(crate) fn next_f64() -> f64 {
    (next() >> 11) as f64 / (1u64 << 53) as f64
}
