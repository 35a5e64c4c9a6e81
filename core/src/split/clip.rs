//! Scans with CLIP's pattern, whose pieces leave white space out.
//!
//! The time is linear: each rule looks at most one character beyond its piece, but for the names of
//! special tokens, which have a few.

use super::Piece;
use super::chars::{LETTER, NUMBER, SPACE, class_at};
use super::rules::Contraction;
use super::scan::{contraction, skip};
use crate::ablation::Mechanism;

/// The pattern of CLIP's tokenizer files.
pub const CLIP: &str = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+";

/// [`CLIP`] with the names of special tokens, as in CLIP's own program and in transformers.
pub const CLIP_WITH_NAMES: &str = concat!(
    r"<\|startoftext\|>|<\|endoftext\|>|",
    r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
);

const NAMES: [&[u8]; 2] = [b"<|startoftext|>", b"<|endoftext|>"];

/// The scanner of one of the patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clip {
    has_names: bool,
}

impl Clip {
    /// Returns the scanner for `pattern`, if it is one of CLIP's.
    pub(super) fn of_pattern(pattern: &str) -> Option<Self> {
        let has_names = pattern == CLIP_WITH_NAMES;
        let is_one = (has_names || pattern == CLIP) && Mechanism::Clip.is_used();
        is_one.then_some(Self { has_names })
    }

    /// Returns the first piece from `from` on, which is the start of the text or the end of a piece;
    /// `None` if only white space is left.
    pub(super) fn next_piece(self, bytes: &[u8], from: usize) -> Option<Piece> {
        let start = skip(bytes, from, |class| class & SPACE != 0);
        let (class, width) = class_at(bytes, start)?;
        Some(Piece { start, end: self.end(bytes, start, class, start + width) })
    }

    /// Returns the end of the piece at `start`, whose first character has this class and ends at
    /// `next`.
    #[inline]
    fn end(self, bytes: &[u8], start: usize, class: u8, next: usize) -> usize {
        if class & LETTER != 0 {
            return skip(bytes, next, |class| class & LETTER != 0);
        }
        if class & NUMBER != 0 {
            return next;
        }
        let known = match bytes[start] {
            b'\'' => contraction(bytes, start, Contraction::Lower),
            b'<' if self.has_names => {
                let rest = &bytes[start..];
                NAMES.iter().find(|name| rest.starts_with(name)).map_or(0, |name| name.len())
            }
            _ => 0,
        };
        match known {
            0 => skip(bytes, next, |class| class & (SPACE | LETTER | NUMBER) == 0),
            known => start + known,
        }
    }
}
