//! The regex path: any pattern that no family declares, and the oracle of the families.
//!
//! Pieces are the matches of the pattern, as the regex engine iterates over them; text between
//! matches is in no piece. Backtracking over long runs is avoided where that changes nothing:
//! see [`linear`](super::linear).

use fancy_regex::{Matches, Regex};

use super::compile::{compile, limit};
use super::linear::Linear;
use super::{Batch, Piece};
use crate::error::Result;

/// How patterns are spelled that look at what stands before a match, beside `^`.
const LOOK_BEHIND: [&str; 6] = ["(?<", r"\b", r"\B", r"\A", r"\G", r"\K"];

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    matcher: Matcher,
    looks_behind: bool,
}

#[derive(Debug, Clone)]
enum Matcher {
    /// Matched in linear time.
    Linear(Box<Linear>),
    /// Matched by backtracking.
    Backtracking(Regex),
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Result<Self> {
        let regex = compile(pattern)?;
        let matcher = match Linear::new(pattern) {
            Some(linear) => Matcher::Linear(Box::new(linear)),
            None => Matcher::Backtracking(regex),
        };
        let looks_behind = LOOK_BEHIND.iter().any(|spelling| pattern.contains(spelling))
            || pattern.replace("[^", "").contains('^');
        Ok(Self { matcher, looks_behind })
    }

    /// Whether a match may depend on what stands before it. (Some that do not are said to.)
    pub(super) fn looks_behind(&self) -> bool {
        self.looks_behind
    }

    /// The matches in `text`.
    pub(super) fn matches<'a>(&'a self, text: &'a str) -> PatternPieces<'a> {
        match &self.matcher {
            Matcher::Linear(linear) => PatternPieces::Linear { linear, text, position: 0 },
            Matcher::Backtracking(regex) => PatternPieces::Backtracking(regex.find_iter(text)),
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
