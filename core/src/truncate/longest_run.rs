//! The longest runs of one character with some number of tokens, found once for all the chunks of a
//! text: many lengths have to be tried, since a longer run often has fewer tokens.

use std::cell::RefCell;
use std::ops::Range;

use crate::error::Result;
use crate::memory::{filled, reserve};

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

/// The tokens of runs of one character, by how many times it is there; 0 where that is not known.
#[derive(Debug)]
struct RunCounts {
    character: char,
    counts: Vec<u32>,
}

/// Those that were found.
#[derive(Debug, Default)]
pub(super) struct LongestRuns {
    found: RefCell<Vec<LongestRun>>,
    counts: RefCell<Vec<RunCounts>>,
}

/// How many are kept.
const KEPT: usize = 16;

/// Of how many characters the counts of runs are kept, and up to which length.
const KEPT_CHARACTERS: usize = 4;
const KEPT_LENGTHS: usize = 512;

impl LongestRuns {
    /// The length in bytes of the longest part of `run` with at most `tokens` tokens, if it was found
    /// in a run that is no longer.
    pub(super) fn length(&self, text: &str, run: &Range<usize>, tokens: usize) -> Option<usize> {
        let character = text[run.start..].chars().next()?;
        let found = self.found.borrow();
        let same = |found: &&LongestRun| found.character == character && found.tokens == tokens;
        found.iter().find(same).filter(|found| found.tried <= run.len()).map(|found| found.length)
    }

    /// The tokens of `run`, which `count` counts if they are not known.
    pub(super) fn count(
        &self,
        text: &str,
        run: &Range<usize>,
        count: impl FnOnce() -> Result<usize>,
    ) -> Result<usize> {
        let Some(character) = text[run.start..].chars().next() else { return count() };
        let length = run.len() / character.len_utf8();
        if length >= KEPT_LENGTHS {
            return count();
        }
        let mut kept = self.counts.borrow_mut();
        let known = kept.iter().position(|counts| counts.character == character);
        let counts = match known {
            Some(index) => &mut kept[index].counts,
            None => {
                if kept.len() == KEPT_CHARACTERS {
                    kept.remove(0);
                }
                let counts = filled(0, KEPT_LENGTHS)?;
                reserve(&mut kept, 1)?;
                &mut kept.push_mut(RunCounts { character, counts }).counts
            }
        };
        if counts[length] == 0 {
            counts[length] = count()? as u32;
        }
        Ok(counts[length] as usize)
    }

    /// Keeps what was found of `run`.
    pub(super) fn keep(
        &self,
        text: &str,
        run: &Range<usize>,
        (tokens, length, tried): (usize, usize, usize),
    ) {
        let mut found = self.found.borrow_mut();
        if let Some(character) = text[run.start..].chars().next() {
            if found.len() == KEPT {
                found.remove(0);
            }
            found.push(LongestRun { character, tokens, length, tried });
        }
    }
}
