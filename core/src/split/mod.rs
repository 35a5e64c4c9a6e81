//! Cuts text into pieces, the units that merging never crosses.

mod pattern;

use crate::error::Result;

/// A piece of the text: bytes `start..end`, never empty, at character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Piece {
    pub start: usize,
    pub end: usize,
}

/// How many pieces are cut at once before they are looked up.
pub const BATCH: usize = 256;

/// Pieces cut and not yet looked up.
pub type Batch = [Piece; BATCH];

/// Cuts text by one pattern.
#[derive(Debug, Clone)]
pub struct Splitter {
    pattern: pattern::Pattern,
}

impl Splitter {
    /// A splitter for `pattern`, the text of a regular expression.
    pub fn new(pattern: &str) -> Result<Self> {
        Ok(Self { pattern: pattern::Pattern::new(pattern)? })
    }

    /// Cuts `text`, which is looked at on its own: its end is the end of the text for `$` and
    /// for look-ahead.
    pub fn pieces<'a>(&'a self, text: &'a str) -> Pieces<'a> {
        Pieces { splitter: self, text, position: 0 }
    }
}

/// The pieces of one text, batch by batch.
#[derive(Debug)]
pub struct Pieces<'a> {
    splitter: &'a Splitter,
    text: &'a str,
    position: usize,
}

impl Pieces<'_> {
    /// Writes the next pieces into `batch` and returns how many; 0 at the end of the text.
    pub fn fill(&mut self, batch: &mut Batch) -> Result<usize> {
        self.splitter.pattern.fill(self.text, &mut self.position, batch)
    }
}
