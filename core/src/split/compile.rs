//! Compiling of patterns, within limits.

use fancy_regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};

/// How many times the engine may backtrack for one match: some seconds at the worst.
const BACKTRACK_LIMIT: usize = 20_000_000;

/// How many instructions a pattern may compile to.
const PROGRAM_LIMIT: usize = 200_000;

/// How many bytes a pattern may have; published ones have less than 1000.
const LENGTH_LIMIT: usize = 100_000;

/// Compiles `pattern`; the error says what is wrong with it.
pub(super) fn compile(pattern: &str) -> Result<Regex> {
    let error = |reason: String| Error::Pattern { pattern: shortened(pattern), reason };
    if pattern.len() > LENGTH_LIMIT {
        return Err(error(format!(
            "it has {} bytes, and at most {LENGTH_LIMIT} are supported",
            pattern.len()
        )));
    }
    RegexBuilder::new(pattern)
        .backtrack_limit(BACKTRACK_LIMIT)
        .max_prog_size(PROGRAM_LIMIT)
        .build()
        .map_err(|reason| error(reason.to_string()))
}

/// The pattern as it stands in an error message.
fn shortened(pattern: &str) -> String {
    const SHOWN: usize = 1000;
    match pattern.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}...", &pattern[..at]),
        None => pattern.to_owned(),
    }
}

/// The engine gave up when it looked for the match after `position`.
pub(super) fn limit(position: usize, error: &fancy_regex::Error) -> Error {
    Error::PatternLimit { position, reason: error.to_string() }
}
