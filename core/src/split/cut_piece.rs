//! Where a piece ends if the text is cut inside of it, without another look at all of it.

use std::ops::Range;

use super::chars::{HAN, SPACE, class_at};
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
    /// A piece is what stands up to the last newline, if there is one and this says so.
    Whitespace {
        to_newline: bool,
    },
}

impl CutPiece {
    /// The piece of the text `bytes` that begins at `start`. `None` for other kinds, such as digits.
    pub(super) fn at<F: Family>(bytes: &[u8], start: usize) -> Option<Self> {
        let rules = &F::RULES;
        let (class, width) = class_at(bytes, start)?;
        let (next_class, next_width) = class_at(bytes, start + width)?;
        let is_han = |class| rules.han_runs && class & HAN != 0;
        if rules.three_splits || bytes[start] == b'\'' || is_han(class) || is_han(next_class) {
            return None;
        }
        let end = next_piece::<F>(bytes, start);
        let second = start + width + next_width;
        let is_punct = |class| rules.is_punct(class) && !rules.is_letter(class);
        if class & next_class & SPACE != 0 {
            let to_newline = rules.newline_run && !rules.end_space_first;
            let last_cut = run(bytes, second, |class| class & SPACE != 0);
            return Some(Self {
                kind: Kind::Whitespace { to_newline },
                start,
                second,
                last_cut,
                end,
            });
        }
        let kind = if rules.is_letter(class) {
            Kind::Word(start)
        } else if rules.is_letter(next_class) && rules.is_prefix(class, bytes[start]) {
            Kind::Word(start + width)
        } else if is_punct(next_class) && bytes[start] == b' ' || is_punct(class) {
            Kind::Punctuation
        } else {
            return None;
        };
        if let Kind::Word(first) = kind
            && (rules.case_runs || rules.contraction == Contraction::Suffix)
            && !bytes[first..end].iter().all(u8::is_ascii_alphabetic)
        {
            return None;
        }
        Some(Self { kind, start, second, last_cut: end, end })
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Its end in the whole text.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// The end of the piece that begins there in `text` up to `cut`, if that is known.
    pub(crate) fn end_with_cut(&self, text: &str, cut: usize) -> Option<usize> {
        if cut < self.second {
            return None;
        }
        if cut > self.last_cut {
            return Some(self.end);
        }
        let newline = match self.kind {
            Kind::Whitespace { to_newline: true } => {
                memchr::memrchr2(b'\r', b'\n', &text.as_bytes()[self.start..cut])
            }
            _ => None,
        };
        Some(newline.map_or(cut, |newline| self.start + newline + 1))
    }

    /// The places in it from each of which on the rest of it is a piece of `text`.
    pub(crate) fn suffixes(&self, text: &str) -> Range<usize> {
        match self.kind {
            Kind::Word(first) => first..self.end,
            Kind::Whitespace { .. } => self.start..self.end,
            Kind::Punctuation => {
                // The last character may lead a word, an apostrophe may be one.
                let piece = &text[self.start..self.end];
                let run = piece.split(['\r', '\n']).next().unwrap_or(piece);
                let is_plain = run.bytes().all(|byte| byte.is_ascii() && byte != b'\'');
                if is_plain { self.second - 1..self.start + run.len().max(1) - 1 } else { 0..0 }
            }
        }
    }
}
