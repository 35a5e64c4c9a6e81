//! Configures random tests with a seed that reproduces them.

use std::hash::{BuildHasher, RandomState};

use proptest::test_runner::{Config, RngSeed};

/// Environment variable for the seed that a failed run prints.
const VARIABLE: &str = "BPE_ENGINE_TEST_SEED";

/// Returns a configuration with a new seed, which is printed: the output of a test is shown when it
/// fails. `BPE_ENGINE_TEST_SEED=<the seed> cargo test <the test>` repeats the run.
pub fn config(cases: u32) -> Config {
    let seed = match std::env::var(VARIABLE) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{VARIABLE}={text:?} is not a number")),
        Err(_) => RandomState::new().hash_one(cases),
    };
    println!("to run this again: {VARIABLE}={seed}");
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..Config::default() }
}
