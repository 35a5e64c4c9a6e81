//! Matches patterns outside the families with a regex engine, also the oracle for the families.
//!
//! Pieces are the successive matches of the pattern; text between matches is dropped. Backtracking
//! over long runs is avoided where the matches stay the same: see [`linear`](super::linear).

use fancy_regex::{Matches, Regex};

use super::compile::{compile, limit};
use super::linear::Linear;
use super::{Batch, Piece};
use crate::error::Result;

#[derive(Debug, Clone)]
pub(super) enum Pattern {
    /// Matched in linear time.
    Linear(Box<Linear>),
    /// Matched by backtracking.
    Backtracking(Regex),
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Result<Self> {
        let regex = compile(pattern)?;
        Ok(match Linear::new(pattern) {
            Some(linear) => Pattern::Linear(Box::new(linear)),
            None => Pattern::Backtracking(regex),
        })
    }

    pub(super) fn matches<'a>(&'a self, text: &'a str) -> PatternPieces<'a> {
        match self {
            Pattern::Linear(linear) => PatternPieces::Linear { linear, text, position: 0 },
            Pattern::Backtracking(regex) => PatternPieces::Backtracking(regex.find_iter(text)),
        }
    }
}

#[derive(Debug)]
pub(super) enum PatternPieces<'a> {
    Linear { linear: &'a Linear, text: &'a str, position: usize },
    Backtracking(Matches<'a, 'a, str>),
}

impl PatternPieces<'_> {
    /// Writes the next pieces into `batch` and returns their number; 0 at the end.
    pub(super) fn fill(&mut self, batch: &mut Batch) -> Result<usize> {
        let mut count = 0;
        for slot in batch.iter_mut() {
            let Some(piece) = self.next_piece()? else { break };
            *slot = piece;
            count += 1;
        }
        Ok(count)
    }

    /// Returns the next nonempty match.
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
