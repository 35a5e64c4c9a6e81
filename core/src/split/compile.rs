//! Compiles patterns within limits on size and backtracking.

use fancy_regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};

/// Maximum number of backtracking steps per match: a few seconds in the worst case.
const BACKTRACK_LIMIT: usize = 20_000_000;

/// Maximum number of instructions in a compiled pattern.
const PROGRAM_LIMIT: usize = 200_000;

/// Maximum length of a pattern in bytes; published patterns have fewer than 1000 bytes.
const LENGTH_LIMIT: usize = 100_000;

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

/// Shortens a pattern for an error message.
fn shortened(pattern: &str) -> String {
    const SHOWN: usize = 1000;
    match pattern.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}...", &pattern[..at]),
        None => pattern.to_owned(),
    }
}

/// Returns the error for a regex engine that gave up on the match after `position`.
pub(super) fn limit(position: usize, error: &fancy_regex::Error) -> Error {
    Error::PatternLimit { position, reason: error.to_string() }
}
