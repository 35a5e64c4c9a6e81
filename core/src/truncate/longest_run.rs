//! The longest runs of one character with some number of tokens, found once for all the chunks of a
//! text: many lengths have to be tried, since a longer run often has fewer tokens.

use std::cell::RefCell;
use std::ops::Range;

/// A run of one character over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LongestRun {
    pub(super) character: char,
    /// At most so many tokens.
    pub(super) tokens: usize,
    /// Its length in bytes.
    pub(super) length: usize,
    /// Up to which length runs were tried, or cannot be of so few tokens.
    pub(super) tried: usize,
}

/// Those that were found.
#[derive(Debug, Default)]
pub(super) struct LongestRuns(RefCell<Vec<LongestRun>>);

/// How many are kept.
const KEPT: usize = 16;

impl LongestRuns {
    /// The length in bytes of the longest part of `run` with at most `tokens` tokens, if it was found
    /// in a run that is no longer.
    pub(super) fn length(&self, text: &str, run: &Range<usize>, tokens: usize) -> Option<usize> {
        let character = text[run.start..].chars().next()?;
        let found = self.0.borrow();
        let same = |found: &&LongestRun| found.character == character && found.tokens == tokens;
        found.iter().find(same).filter(|found| found.tried <= run.len()).map(|found| found.length)
    }

    /// Keeps what was found of `run`.
    pub(super) fn keep(
        &self,
        text: &str,
        run: &Range<usize>,
        (tokens, length, tried): (usize, usize, usize),
    ) {
        let mut found = self.0.borrow_mut();
        if let Some(character) = text[run.start..].chars().next() {
            if found.len() == KEPT {
                found.remove(0);
            }
            found.push(LongestRun { character, tokens, length, tried });
        }
    }
}
