//! Cuts text into pieces, the units that merging never crosses.
//!
//! A pattern that is exactly a published spelling of a family is cut by that family's rules:
//! [`scan`] is the truth, [`blocks`] the fast way to the same pieces. Every other pattern is
//! matched by a regex engine, in [`pattern`].

mod char_table;
mod chars;
mod linear;
mod pattern;
mod rules;
mod scan;
#[cfg(test)]
mod tests;

use crate::error::Result;
use pattern::{Pattern, PatternPieces};
use rules::{Family, FamilyName, FamilyVisitor};

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
    method: Method,
}

#[derive(Debug, Clone)]
enum Method {
    Family(FamilyName),
    Pattern(Pattern),
}

impl Splitter {
    /// A splitter for `pattern`, the text of a regular expression.
    ///
    /// Fails with [`Error::Pattern`](crate::Error::Pattern) when the pattern does not compile.
    ///
    /// ```
    /// use bpe_core::split::{BATCH, Piece, Splitter};
    ///
    /// let splitter = Splitter::new(r"\w+|[^\w\s]+")?;
    /// let mut batch = [Piece::default(); BATCH];
    /// let count = splitter.pieces("Hi there!").fill(&mut batch)?;
    /// let pieces: Vec<_> = batch[..count].iter().map(|piece| (piece.start, piece.end)).collect();
    /// assert_eq!(pieces, [(0, 2), (3, 8), (8, 9)]);
    /// # Ok::<(), bpe_core::Error>(())
    /// ```
    pub fn new(pattern: &str) -> Result<Self> {
        let method = match FamilyName::of_pattern(pattern) {
            Some(family) => Method::Family(family),
            None => Method::Pattern(Pattern::new(pattern)?),
        };
        Ok(Self { method })
    }

    /// Cuts `text`, which is looked at on its own: its end is the end of the text for `$` and
    /// for look-ahead.
    pub fn pieces<'a>(&'a self, text: &'a str) -> Pieces<'a> {
        Pieces(match &self.method {
            Method::Family(family) => Cursor::Family { family: *family, text, position: 0 },
            Method::Pattern(pattern) => Cursor::Pattern(pattern.matches(text)),
        })
    }
}

/// The pieces of one text, batch by batch.
#[derive(Debug)]
pub struct Pieces<'a>(Cursor<'a>);

#[derive(Debug)]
enum Cursor<'a> {
    Family { family: FamilyName, text: &'a str, position: usize },
    Pattern(PatternPieces<'a>),
}

impl Pieces<'_> {
    /// Writes the next pieces into `batch` and returns how many; 0 at the end of the text.
    ///
    /// Fails with [`Error::PatternLimit`](crate::Error::PatternLimit) when the regex engine
    /// gives up on the text, which the published patterns never make it do.
    pub fn fill(&mut self, batch: &mut Batch) -> Result<usize> {
        match &mut self.0 {
            Cursor::Family { family, text, position } => {
                Ok(family.visit(Fill { text, position, batch }))
            }
            Cursor::Pattern(pieces) => pieces.fill(batch),
        }
    }
}

struct Fill<'a> {
    text: &'a str,
    position: &'a mut usize,
    batch: &'a mut Batch,
}

impl FamilyVisitor for Fill<'_> {
    type Output = usize;

    fn visit<F: Family>(self) -> usize {
        let bytes = self.text.as_bytes();
        let mut count = 0;
        for slot in self.batch.iter_mut() {
            if *self.position >= bytes.len() {
                break;
            }
            let end = scan::next_piece::<F>(bytes, *self.position);
            *slot = Piece { start: *self.position, end };
            *self.position = end;
            count += 1;
        }
        count
    }
}
