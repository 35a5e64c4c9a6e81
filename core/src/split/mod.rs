//! Boundaries text into pieces, the units that merging never crosses.
//!
//! A pattern that is exactly a published spelling of a family is cut by that family's rules:
//! `scan` is the truth, `blocks` the fast way to the same pieces. Every other pattern is
//! matched by a regex engine, in `pattern`.

mod blocks;
mod char_table;
mod chars;
mod compile;
mod cut_piece;
mod deepseek;
mod linear;
mod masks;
mod pattern;
mod rules;
mod scan;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use crate::error::Result;
use crate::tier::Tier;

pub(crate) use cut_piece::CutPiece;
use pattern::{Pattern, PatternPieces, may_look_behind};
pub use rules::DEEPSEEK;
use rules::{Family, FamilyName, FamilyVisitor};

/// A piece of the text: bytes `start..end`, never empty, at character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Piece {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

/// How many pieces are cut at once before they are looked up.
pub const BATCH: usize = 4096;

/// Pieces cut and not yet looked up.
pub type Batch = [Piece; BATCH];

/// Boundaries text by one pattern.
#[derive(Debug, Clone)]
pub struct Splitter {
    method: Method,
    looks_behind: bool,
}

#[derive(Debug, Clone)]
enum Method {
    Family(FamilyName, Tier),
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
        Self::with_tier(pattern, Tier::from_environment())
    }

    /// A splitter that uses the instructions of `tier`. The pieces are the same on every tier.
    pub fn with_tier(pattern: &str, tier: Tier) -> Result<Self> {
        let method = match FamilyName::of_pattern(pattern) {
            Some(family) => Method::Family(family, tier),
            None => Method::Pattern(Pattern::new(pattern)?),
        };
        let looks_behind = matches!(method, Method::Pattern(_)) && may_look_behind(pattern);
        Ok(Self { method, looks_behind })
    }

    /// Whether the pattern is a published spelling of a family, so that it is known how far it
    /// looks.
    pub fn is_family(&self) -> bool {
        matches!(self.method, Method::Family(..))
    }

    /// Whether where a piece begins and ends may depend on what stands before it.
    pub(crate) fn looks_behind(&self) -> bool {
        self.looks_behind
    }

    /// Boundaries `text`, which is looked at on its own: its end is the end of the text for `$` and
    /// for look-ahead.
    pub fn pieces<'a>(&'a self, text: &'a str) -> Pieces<'a> {
        Pieces(match &self.method {
            Method::Family(family, tier) => {
                Cursor::Family { family: *family, tier: *tier, text, position: 0 }
            }
            Method::Pattern(pattern) => Cursor::Pattern(pattern.matches(text)),
        })
    }

    /// The first position from `near` on at which `text` can be cut in two without changing a
    /// piece: a piece begins there, whatever stands before, and the two parts, each cut on its
    /// own, have the pieces of the whole. `None` when there is none, and for every pattern that
    /// is not a published family.
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

    /// The end of the piece of `text` that begins at `start`, where a piece ends or the text begins.
    /// (Nothing before it matters.) `None` for a pattern that is no published family.
    pub(crate) fn piece_end(&self, text: &str, start: usize) -> Option<usize> {
        let Method::Family(family, _) = self.method else { return None };
        Some(family.visit(PieceEnd(At { text, position: start })))
    }

    /// Whether the pieces of `text` before `border`, where one of them ends, are the same where the text
    /// is cut at `end`.
    pub(crate) fn is_settled_in(&self, text: &str, border: usize, end: usize) -> bool {
        let Method::Family(family, _) = self.method else { return false };
        family.visit(IsSettledIn(At { text, position: border }, end))
    }

    /// The end of the whitespace behind `border`, where a piece ends: a cut of `text` behind that leaves
    /// the pieces before `border` as they are. `None` where that is not known.
    pub(crate) fn space_end(&self, text: &str, border: usize) -> Option<usize> {
        let Method::Family(family, _) = self.method else { return None };
        family.visit(SpaceEnd(At { text, position: border }))
    }

    /// Whether the pieces of `text` before `border`, where one of them ends, are the same however the text
    /// goes on. False for a pattern that is no published family.
    pub(crate) fn is_final(&self, text: &str, border: usize) -> bool {
        let Method::Family(family, _) = self.method else { return false };
        family.visit(IsFinal(At { text, position: border }))
    }

    /// The piece of `text` that begins at `start`, to look at with the text cut in many places. `None`
    /// for a pattern that is no published family.
    pub(crate) fn cut_piece(&self, text: &str, start: usize) -> Option<CutPiece> {
        let Method::Family(family, _) = self.method else { return None };
        Some(family.visit(PieceToCut(At { text, position: start })))
    }

    /// Whether the pieces of `text` before `border`, where one of them ends, are the same wherever
    /// the text is cut behind it. False for a pattern that is no published family.
    pub(crate) fn is_settled(&self, text: &str, border: usize) -> bool {
        let Method::Family(family, _) = self.method else { return false };
        family.visit(IsSettled(At { text, position: border }))
    }
}

/// Looks at one place of a text.
struct At<'a> {
    text: &'a str,
    position: usize,
}

/// [`Splitter::piece_end`]
struct PieceEnd<'a>(At<'a>);

impl FamilyVisitor for PieceEnd<'_> {
    type Output = usize;

    fn visit<F: Family>(self) -> usize {
        scan::next_piece::<F>(self.0.text.as_bytes(), self.0.position)
    }
}

/// [`Splitter::cut_piece`]
struct PieceToCut<'a>(At<'a>);

impl FamilyVisitor for PieceToCut<'_> {
    type Output = CutPiece;

    fn visit<F: Family>(self) -> CutPiece {
        CutPiece::at::<F>(self.0.text.as_bytes(), self.0.position)
    }
}

/// [`Splitter::is_settled`]
struct IsSettled<'a>(At<'a>);

impl FamilyVisitor for IsSettled<'_> {
    type Output = bool;

    fn visit<F: Family>(self) -> bool {
        scan::is_settled::<F>(self.0.text, self.0.position)
    }
}

/// [`Splitter::is_final`]
struct IsFinal<'a>(At<'a>);

impl FamilyVisitor for IsFinal<'_> {
    type Output = bool;

    fn visit<F: Family>(self) -> bool {
        scan::is_final::<F>(self.0.text, self.0.position)
    }
}

/// [`Splitter::is_settled_in`]
struct IsSettledIn<'a>(At<'a>, usize);

impl FamilyVisitor for IsSettledIn<'_> {
    type Output = bool;

    fn visit<F: Family>(self) -> bool {
        scan::is_settled_in::<F>(self.0.text, self.0.position, self.1)
    }
}

/// [`Splitter::space_end`]
struct SpaceEnd<'a>(At<'a>);

impl FamilyVisitor for SpaceEnd<'_> {
    type Output = Option<usize>;

    fn visit<F: Family>(self) -> Option<usize> {
        scan::space_end::<F>(self.0.text, self.0.position)
    }
}

/// The pieces of one text, batch by batch.
#[derive(Debug)]
pub struct Pieces<'a>(Cursor<'a>);

#[derive(Debug)]
enum Cursor<'a> {
    Family { family: FamilyName, tier: Tier, text: &'a str, position: usize },
    Pattern(PatternPieces<'a>),
}

impl Pieces<'_> {
    /// Writes the next pieces into `batch` and returns how many; 0 at the end of the text.
    ///
    /// Fails with [`Error::PatternLimit`](crate::Error::PatternLimit) when the regex engine
    /// gives up on the text, which the published patterns never make it do.
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
