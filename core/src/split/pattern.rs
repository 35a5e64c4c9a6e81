//! The regex path: any pattern that no family declares, and the oracle of the families.
//!
//! Pieces are the matches of the pattern, as the regex engine iterates over them; text between
//! matches is in no piece. Backtracking over long runs is avoided where that changes nothing:
//! see [`linear`](super::linear).

use fancy_regex::{Matches, Regex, RegexBuilder};

use super::linear::Linear;
use super::{Batch, Piece};
use crate::error::{Error, Result};

/// How many times the engine may backtrack for one match: some seconds at the worst.
const BACKTRACK_LIMIT: usize = 20_000_000;

/// How many instructions a pattern may compile to.
const PROGRAM_LIMIT: usize = 200_000;

/// How many bytes a pattern may have; published ones have less than 1000.
const LENGTH_LIMIT: usize = 100_000;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    /// Matched in linear time.
    Linear(Box<Linear>),
    /// Matched by backtracking.
    Backtracking(Regex),
}

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

impl Pattern {
    pub(super) fn new(pattern: &str) -> Result<Self> {
        let regex = compile(pattern)?;
        Ok(match Linear::new(pattern) {
            Some(linear) => Pattern::Linear(Box::new(linear)),
            None => Pattern::Backtracking(regex),
        })
    }

    /// The matches in `text`.
    pub(super) fn matches<'a>(&'a self, text: &'a str) -> PatternPieces<'a> {
        match self {
            Pattern::Linear(linear) => PatternPieces::Linear { linear, text, position: 0 },
            Pattern::Backtracking(regex) => PatternPieces::Backtracking(regex.find_iter(text)),
        }
    }
}

/// The pieces of one text.
#[derive(Debug)]
pub(super) enum PatternPieces<'a> {
    Linear { linear: &'a Linear, text: &'a str, position: usize },
    Backtracking(Matches<'a, 'a, str>),
}

impl PatternPieces<'_> {
    /// Writes the next pieces into `batch` and returns how many; 0 at the end.
    pub(super) fn fill(&mut self, batch: &mut Batch) -> Result<usize> {
        let mut count = 0;
        for slot in batch.iter_mut() {
            let Some(piece) = self.next_piece()? else { break };
            *slot = piece;
            count += 1;
        }
        Ok(count)
    }

    /// The next match that is not empty.
    fn next_piece(&mut self) -> Result<Option<Piece>> {
        match self {
            PatternPieces::Linear { linear, text, position } => linear.next_piece(text, position),
            PatternPieces::Backtracking(matches) => loop {
                let position = matches.input().start();
                let Some(found) = matches.next() else { return Ok(None) };
                let found = found.map_err(|error| limit(position, &error))?;
                if found.end() > found.start() {
                    return Ok(Some(Piece { start: found.start(), end: found.end() }));
                }
            },
        }
    }
}

/// The engine gave up when it looked for the match after `position`.
pub(super) fn limit(position: usize, error: &fancy_regex::Error) -> Error {
    Error::PatternLimit { position, reason: error.to_string() }
}
