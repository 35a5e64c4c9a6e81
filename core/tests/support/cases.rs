//! Runs checks on random values.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};

use crate::support;

/// Runs `check` on `FUZZ_CASES` values of `strategy`.
pub fn fuzz<S: Strategy>(strategy: S, check: impl Fn(S::Value) -> TestCaseResult) {
    let cases = std::env::var("FUZZ_CASES").map_or(1000, |text| {
        text.parse().unwrap_or_else(|_| panic!("FUZZ_CASES={text:?} is not a number"))
    });
    let config = Config { max_shrink_iters: 20_000, ..support::config(cases) };
    if let Err(failure) = TestRunner::new(config).run(&strategy, check) {
        panic!("{failure}");
    }
}
