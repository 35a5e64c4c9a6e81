//! DeepSeek's three splits in one pass: digits, then Chinese and Japanese, then the rest by a
//! pattern that sees nothing beyond either.
//!
//! The time is linear: each rule looks at most one character beyond what it takes, but for
//! whitespace, which is looked at twice.

use std::collections::HashMap;
use std::sync::LazyLock;

use bpe_core::split::Piece;
use regex_syntax::hir::{Class, HirKind};

const LETTER: u8 = 1;
const MARK: u8 = 1 << 1;
const NUMBER: u8 = 1 << 2;
/// Punctuation and symbols.
const PUNCT: u8 = 1 << 3;
const SPACE: u8 = 1 << 4;
const NEWLINE: u8 = 1 << 5;
/// The letters that the second split takes.
const CJK: u8 = 1 << 6;

const WORD: u8 = LETTER | MARK;
/// Code points of a page.
const PAGE: usize = 256;

/// The classes of every character, in pages, of which equal ones are kept once.
struct Classes {
    page_of: Vec<u16>,
    pages: Vec<[u8; PAGE]>,
}

static CLASSES: LazyLock<Classes> = LazyLock::new(Classes::new);

impl Classes {
    fn new() -> Self {
        let mut all = vec![0; char::MAX as usize + 1];
        let classes = [
            (r"\p{L}", LETTER),
            (r"\p{M}", MARK),
            (r"\p{N}", NUMBER),
            (r"[\p{P}\p{S}]", PUNCT),
            (r"\s", SPACE),
            (r"[\r\n]", NEWLINE),
            (r"[\x{4e00}-\x{9fa5}\x{3040}-\x{30ff}]", CJK),
        ];
        for (pattern, class) in classes {
            let hir = regex_syntax::parse(pattern).expect("the pattern is well-formed");
            let HirKind::Class(Class::Unicode(ranges)) = hir.kind() else {
                unreachable!("the pattern is a class")
            };
            for range in ranges.ranges() {
                for entry in &mut all[range.start() as usize..=range.end() as usize] {
                    *entry |= class;
                }
            }
        }
        let mut places = HashMap::new();
        let mut pages = Vec::new();
        let page_of = all.chunks(PAGE).map(|chunk| {
            let mut page = [0; PAGE];
            page[..chunk.len()].copy_from_slice(chunk);
            *places.entry(page).or_insert_with(|| {
                pages.push(page);
                (pages.len() - 1) as u16
            })
        });
        let page_of = page_of.collect();
        Self { page_of, pages }
    }

    #[inline(always)]
    fn of(&self, code_point: u32) -> u8 {
        let page = self.page_of[code_point as usize / PAGE];
        self.pages[usize::from(page)][code_point as usize % PAGE]
    }
}

/// A text on the way through.
struct Scanner<'a> {
    text: &'a str,
    classes: &'a Classes,
    /// Where the stretch ends that the third split sees.
    end: usize,
}

/// Appends the pieces of `text`.
pub(crate) fn cut(text: &str, pieces: &mut Vec<Piece>) {
    let mut scanner = Scanner { text, classes: &CLASSES, end: 0 };
    let mut start = 0;
    while let Some((class, width)) = scanner.at(start, text.len()) {
        let end = if class & NUMBER != 0 {
            let mut end = start + width;
            for _ in 1..3 {
                match scanner.at(end, text.len()) {
                    Some((class, width)) if class & NUMBER != 0 => end += width,
                    _ => break,
                }
            }
            end
        } else if class & CJK != 0 {
            scanner.run(start, text.len(), |class| class & CJK != 0)
        } else {
            scanner.end = scanner.run(start, text.len(), |class| class & (NUMBER | CJK) == 0);
            scanner.stretch(start, pieces);
            start = scanner.end;
            continue;
        };
        pieces.push(Piece { start, end });
        start = end;
    }
}

impl Scanner<'_> {
    /// Class and width of the character at a position before `end`.
    #[inline(always)]
    fn at(&self, position: usize, end: usize) -> Option<(u8, usize)> {
        if position >= end {
            return None;
        }
        let byte = self.text.as_bytes()[position];
        if byte < 0x80 {
            return Some((self.classes.of(byte.into()), 1));
        }
        let character = self.text[position..].chars().next()?;
        Some((self.classes.of(character.into()), character.len_utf8()))
    }

    /// The first position from `at` on whose character is not `inside`.
    #[inline(always)]
    fn run(&self, mut at: usize, end: usize, inside: impl Fn(u8) -> bool) -> usize {
        while let Some((class, width)) = self.at(at, end) {
            if !inside(class) {
                break;
            }
            at += width;
        }
        at
    }

    /// The third split. What its pattern does not match is in pieces of its own.
    fn stretch(&self, mut start: usize, pieces: &mut Vec<Piece>) {
        let mut unmatched = start;
        while start < self.end {
            match self.matched(start) {
                Some(end) => {
                    if unmatched < start {
                        pieces.push(Piece { start: unmatched, end: start });
                    }
                    pieces.push(Piece { start, end });
                    (start, unmatched) = (end, end);
                }
                None => start += self.at(start, self.end).map_or(1, |(_, width)| width),
            }
        }
        if unmatched < start {
            pieces.push(Piece { start: unmatched, end: start });
        }
    }

    /// The end of the match at `start`, if there is one.
    #[inline(always)]
    fn matched(&self, start: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let (class, width) = self.at(start, self.end)?;
        let next = start + width;
        let next_class = self.at(next, self.end).map_or(0, |(class, _)| class);
        if class & WORD != 0 {
            return Some(self.run(next, self.end, |class| class & WORD != 0));
        }
        if class & PUNCT != 0 {
            let is_letter = |at: usize| at < self.end && bytes[at].is_ascii_alphabetic();
            if bytes[start].is_ascii_punctuation() && is_letter(next) {
                return Some((next..self.end).find(|&at| !is_letter(at)).unwrap_or(self.end));
            }
            return Some(self.punctuation(start));
        }
        if class & NEWLINE == 0 && next_class & WORD != 0 {
            return Some(self.run(next, self.end, |class| class & WORD != 0));
        }
        if bytes[start] == b' ' && next_class & PUNCT != 0 {
            return Some(self.punctuation(next));
        }
        (class & SPACE != 0).then(|| self.whitespace(start))
    }

    fn punctuation(&self, start: usize) -> usize {
        let end = self.run(start, self.end, |class| class & PUNCT != 0);
        self.run(end, self.end, |class| class & NEWLINE != 0)
    }

    /// Whitespace up to the last line end, or to the end of the stretch, or but for the last
    /// character.
    fn whitespace(&self, start: usize) -> usize {
        let (mut end, mut last, mut after_newline) = (start, start, start);
        while let Some((class, width)) = self.at(end, self.end) {
            if class & SPACE == 0 {
                break;
            }
            last = end;
            end += width;
            if class & NEWLINE != 0 {
                after_newline = end;
            }
        }
        if after_newline > start {
            after_newline
        } else if end == self.end || last == start {
            end
        } else {
            last
        }
    }
}
