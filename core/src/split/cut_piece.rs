//! Where a piece ends if the text is cut inside of it, without another look at all of it.

use std::ops::Range;

use super::chars::{CASELESS, HAN, LOWER, MARK, SPACE, UPPER, class_at};
use super::rules::{Contraction, Family};
use super::scan::{next_piece, run};

/// A piece of a text, and what it becomes where the text is cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CutPiece {
    kind: Kind,
    start: usize,
    /// The end of its second character; a cut before that may change what kind it is.
    second: usize,
    /// Up to here a cut shortens it.
    last_cut: usize,
    /// Its end in the whole text.
    end: usize,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Letters, the first of them where this says. What is left of the word is one piece at either
    /// side of a cut between two of them.
    Word(usize),
    Punctuation,
    /// Two characters or more. A piece is what stands up to the last newline, if there is one and this
    /// says so.
    Whitespace {
        to_newline: bool,
    },
    /// Digits, words that are cut by case, apostrophes.
    Other,
}

impl CutPiece {
    /// The piece of the text `bytes` that begins at `start`.
    pub(super) fn at<F: Family>(bytes: &[u8], start: usize) -> Self {
        let end = next_piece::<F>(bytes, start);
        let mut piece = Self { kind: Kind::Other, start, second: end, last_cut: end, end };
        let rules = &F::RULES;
        let Some((class, width)) = class_at(bytes, start) else { return piece };
        let Some((next_class, next_width)) = class_at(bytes, start + width) else { return piece };
        let is_han = |class| rules.han_runs && class & HAN != 0;
        let is_contraction = bytes[start] == b'\'' && rules.is_letter(next_class);
        if rules.three_splits || is_contraction || is_han(class) || is_han(next_class) {
            return piece;
        }
        piece.second = start + width + next_width;
        let is_punct = |class| rules.is_punct(class) && !rules.is_letter(class);
        let word =
            |first| if is_word::<F>(bytes, first..end) { Kind::Word(first) } else { Kind::Other };
        if class & next_class & SPACE != 0 {
            piece.last_cut = run(bytes, piece.second, |class| class & SPACE != 0);
            let to_newline = rules.newline_run && !rules.end_space_first;
            piece.kind = Kind::Whitespace { to_newline };
        } else if rules.is_letter(class) {
            piece.kind = word(start);
        } else if rules.is_letter(next_class) && rules.is_prefix(class, bytes[start]) {
            piece.kind = word(start + width);
        } else if is_punct(next_class) && bytes[start] == b' ' || is_punct(class) {
            piece.kind = Kind::Punctuation;
        }
        piece
    }

    /// Its end in the whole text.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// The places up to each of which it is one piece of `text` if that is cut there; a cut behind them
    /// leaves all of it in one piece.
    pub(crate) fn prefixes(&self, text: &str) -> Option<Range<usize>> {
        let piece = &text.as_bytes()[self.start..self.end];
        let is_one = match self.kind {
            Kind::Word(_) | Kind::Punctuation => true,
            Kind::Whitespace { to_newline } => {
                !to_newline || memchr::memchr2(b'\r', b'\n', piece).is_none()
            }
            Kind::Other => false,
        };
        is_one.then_some(self.second..self.end + 1)
    }

    /// Whether [`CutPiece::end_with_cut`] may know the pieces that begin at `start`: it begins there
    /// itself, or its whitespace goes on there.
    pub(crate) fn covers(&self, start: usize) -> bool {
        let is_whitespace = matches!(self.kind, Kind::Whitespace { .. });
        start == self.start || is_whitespace && (self.start..self.last_cut).contains(&start)
    }

    /// The end of the piece that begins at `start`, which it covers, in `text` up to `cut`, if that is
    /// known.
    pub(crate) fn end_with_cut(&self, text: &str, start: usize, cut: usize) -> Option<usize> {
        let mut newline = None;
        let is_known = match self.kind {
            Kind::Word(_) | Kind::Punctuation => cut >= self.second,
            Kind::Whitespace { to_newline } => {
                if to_newline && cut <= self.last_cut {
                    newline = memchr::memrchr2(b'\r', b'\n', &text.as_bytes()[start..cut]);
                }
                cut <= self.last_cut || start < self.end
            }
            Kind::Other => false,
        };
        let end = match newline {
            Some(newline) => start + newline + 1,
            None if cut <= self.last_cut => cut,
            None => self.end,
        };
        is_known.then_some(end)
    }

    /// The places in it from each of which on the rest of it is a piece of `text`.
    pub(crate) fn suffixes(&self, text: &str) -> Range<usize> {
        match self.kind {
            Kind::Word(first) => first..self.end,
            Kind::Whitespace { .. } => self.start..self.end,
            Kind::Punctuation => {
                // The last character may lead a word, or be an apostrophe; a mark may be part of one.
                let piece = &text[self.start..self.end];
                let signs = piece.split(['\r', '\n']).next().unwrap_or(piece);
                let is_plain =
                    run(signs.as_bytes(), 0, |class| class & (MARK | HAN) == 0) == signs.len();
                let mut starts = signs.char_indices().map(|(offset, _)| self.start + offset);
                match (starts.nth(1), starts.next_back()) {
                    (Some(second), Some(last)) if is_plain => second..last,
                    _ => 0..0,
                }
            }
            Kind::Other => 0..0,
        }
    }
}

/// Whether each beginning and each end of these letters is one piece: where case matters, capitals
/// before small letters, or nothing with case.
fn is_word<F: Family>(bytes: &[u8], letters: Range<usize>) -> bool {
    let Range { start, end } = letters;
    if !F::RULES.case_runs {
        return F::RULES.contraction != Contraction::Suffix;
    }
    let bytes = &bytes[..end];
    let is_caseless = |class| class & (CASELESS | MARK) != 0;
    let small = run(bytes, start, |class| class & UPPER != 0 && !is_caseless(class));
    run(bytes, small, |class| class & LOWER != 0 && !is_caseless(class)) == end
        || run(bytes, start, is_caseless) == end
}
