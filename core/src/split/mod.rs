//! Cuts text into pieces; merges never cross the end of a piece.
//!
//! Published patterns belong to families with hand-written rules: `scan` is the reference, `blocks`
//! the fast implementation. Every other pattern is matched by a regex engine, in `pattern`. `words`
//! cuts at spaces, for tokenizers whose pieces are contained in such words.

mod blocks;
mod char_table;
mod chars;
mod compile;
mod deepseek;
mod linear;
mod masks;
mod pattern;
#[cfg(any(test, feature = "ablation"))]
mod plain_words;
mod rules;
mod scan;
#[cfg(test)]
mod tests;
mod word_rules;
mod words;

use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::Result;
use crate::tier::Tier;

use pattern::{Pattern, PatternPieces};
pub use rules::DEEPSEEK;
use rules::{Family, FamilyName, FamilyVisitor};
pub use word_rules::{Permits, WordRules};
pub use words::{WordSplitter, Words};

/// A piece of the text: the bytes `start..end`, never empty, at character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Piece {
    /// Index of the first byte.
    pub start: usize,
    /// Index after the last byte.
    pub end: usize,
}

/// Number of pieces to cut before looking them up.
pub const BATCH: usize = 4096;

/// Pieces cut from a text, to be looked up.
pub type Batch = [Piece; BATCH];

/// Cuts text by one pattern.
#[derive(Debug, Clone)]
pub struct Splitter {
    pattern: Arc<str>,
    method: Method,
}

#[derive(Debug, Clone)]
enum Method {
    Family(FamilyName, Tier),
    Pattern(Pattern),
}

/// Cuts text by the rules of a published pattern, without a regex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanner(FamilyName);

impl Scanner {
    /// Returns the scanner for `pattern`; `None` if the pattern belongs to no family.
    ///
    /// ```
    /// use bpe_core::split::{Piece, Scanner};
    ///
    /// let gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
    /// let scanner = Scanner::new(gpt2).ok_or("no scanner")?;
    /// let text = " isn't";
    /// assert_eq!(scanner.next_piece(text, 0), Some(Piece { start: 0, end: 4 }));
    /// assert_eq!(scanner.next_piece(text, 4), Some(Piece { start: 4, end: 6 }));
    /// assert_eq!(scanner.next_piece(text, 6), None);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn new(pattern: &str) -> Option<Self> {
        FamilyName::of_pattern(pattern).map(Self)
    }

    /// Returns all patterns with scanners.
    pub fn patterns() -> impl Iterator<Item = &'static str> {
        rules::SPELLINGS.iter().map(|&(_, spelling)| spelling)
    }

    /// Returns the piece that begins at `from`, which is the start of the text or the end of a
    /// piece; `None` at the end.
    pub fn next_piece(self, text: &str, from: usize) -> Option<Piece> {
        let end = || self.0.visit(Next { text, start: from });
        (from < text.len()).then(|| Piece { start: from, end: end() })
    }
}

struct Next<'a> {
    text: &'a str,
    start: usize,
}

impl FamilyVisitor for Next<'_> {
    type Output = usize;

    fn visit<F: Family>(self) -> usize {
        scan::next_piece::<F>(self.text.as_bytes(), self.start)
    }
}

impl Splitter {
    /// Creates a splitter for `pattern`, a regular expression.
    ///
    /// Fails with [`Error::Pattern`](crate::Error::Pattern) if the pattern does not compile.
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
        Self::with_tier(pattern, Tier::from_environment())
    }

    /// Creates a splitter that uses the instructions of `tier`. Pieces are the same on every tier.
    pub fn with_tier(pattern: &str, tier: Tier) -> Result<Self> {
        let method = match Scanner::new(pattern) {
            Some(Scanner(family)) => Method::Family(family, tier),
            None => Method::Pattern(Pattern::new(pattern)?),
        };
        Ok(Self { pattern: pattern.into(), method })
    }

    /// Returns the regular expression of the splitter.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Returns true if the pattern is a published spelling of a family, whose look-ahead is known.
    pub fn is_family(&self) -> bool {
        matches!(self.method, Method::Family(..))
    }

    /// Cuts `text` into pieces. `$` and look-ahead see the end of `text` as the end.
    pub fn pieces<'a>(&'a self, text: &'a str) -> Pieces<'a> {
        Pieces(match &self.method {
            Method::Family(family, tier) => {
                Cursor::Family { family: *family, tier: *tier, text, position: 0 }
            }
            Method::Pattern(pattern) => Cursor::Pattern(pattern.matches(text)),
        })
    }

    /// Returns the first position at or after `near` at which `text` can be cut in two without
    /// changing a piece: the two parts have the same pieces as the whole, for any earlier text.
    /// `None` if there is no such position, or the pattern belongs to no published family.
    ///
    /// ```
    /// use bpe_core::Splitter;
    ///
    /// let pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
    /// let splitter = Splitter::new(pattern)?;
    /// assert_eq!(splitter.safe_cut("don't stop here", 2), Some(5));
    /// assert_eq!(splitter.safe_cut("don't stop here", 11), None);
    /// # Ok::<(), bpe_core::Error>(())
    /// ```
    pub fn safe_cut(&self, text: &str, near: usize) -> Option<usize> {
        match &self.method {
            Method::Family(..) => scan::safe_cut(text, near),
            Method::Pattern(_) => None,
        }
    }
}

/// The pieces of one text, in batches.
#[derive(Debug)]
pub struct Pieces<'a>(Cursor<'a>);

#[derive(Debug)]
enum Cursor<'a> {
    Family { family: FamilyName, tier: Tier, text: &'a str, position: usize },
    Pattern(PatternPieces<'a>),
}

impl Pieces<'_> {
    /// Writes the next pieces into `batch` and returns their number; 0 at the end of the text.
    ///
    /// Fails with [`Error::PatternLimit`](crate::Error::PatternLimit) if the regex engine gives up
    /// on the text, which never happens with published patterns.
    pub fn fill(&mut self, batch: &mut Batch) -> Result<usize> {
        match &mut self.0 {
            Cursor::Family { text, position, .. } if *position >= text.len() => Ok(0),
            Cursor::Family { family, tier, text, position } => {
                Ok(family.visit(Fill { tier: *tier, text, position, batch }))
            }
            Cursor::Pattern(pieces) => pieces.fill(batch),
        }
    }
}

struct Fill<'a> {
    tier: Tier,
    text: &'a str,
    position: &'a mut usize,
    batch: &'a mut Batch,
}

impl FamilyVisitor for Fill<'_> {
    type Output = usize;

    fn visit<F: Family>(self) -> usize {
        let Self { tier, text, position, batch } = self;
        tier.run(blocks::Fill::<F> { text: text.as_bytes(), position, batch, family: PhantomData })
    }
}
