//! DeepSeek's three splits in one pass: digits, then Chinese and Japanese, then the rest by a
//! pattern that sees nothing beyond either.
//!
//! The time is linear: each rule looks at most one character beyond what it takes, but for
//! whitespace, which is looked at twice.

use std::collections::HashMap;
use std::sync::LazyLock;

use bpe_core::split::Piece;
use foldhash::fast::FixedState;
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
    ascii: [u8; 128],
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
        let mut places: HashMap<_, _, FixedState> = HashMap::default();
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
        let mut ascii = [0; 128];
        ascii.copy_from_slice(&all[..128]);
        Self { ascii, page_of, pages }
    }

    #[inline(always)]
    fn of(&self, code_point: u32) -> u8 {
        let page = self.page_of[code_point as usize / PAGE];
        self.pages[usize::from(page)][code_point as usize % PAGE]
    }
}

/// What the third split does not see.
const OUTSIDE: u8 = NUMBER | CJK;

/// A text on the way through.
struct Scanner<'a> {
    text: &'a str,
    classes: &'a Classes,
}

/// Calls `found` with the pieces of `text`, in order, until it fails.
pub(crate) fn cut<E>(
    text: &str,
    mut found: impl FnMut(Piece) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let scanner = Scanner { text, classes: &CLASSES };
    let mut start = 0;
    // Where what no rule matches began.
    let mut unmatched = 0;
    while let Some((class, width)) = scanner.any(start) {
        let end = if class & NUMBER != 0 {
            Some(scanner.number(start))
        } else if class & CJK != 0 {
            Some(scanner.cjk(start))
        } else {
            scanner.matched(start)
        };
        let Some(end) = end else {
            start += width;
            continue;
        };
        if unmatched < start {
            found(Piece { start: unmatched, end: start })?;
        }
        found(Piece { start, end })?;
        (start, unmatched) = (end, end);
    }
    if unmatched < start {
        found(Piece { start: unmatched, end: start })?;
    }
    Ok(())
}

impl Scanner<'_> {
    /// Class and width of the character at a position, if there is one.
    #[inline(always)]
    fn any(&self, position: usize) -> Option<(u8, usize)> {
        let byte = *self.text.as_bytes().get(position)?;
        if byte < 0x80 {
            return Some((self.classes.ascii[usize::from(byte)], 1));
        }
        let character = self.text[position..].chars().next()?;
        Some((self.classes.of(character.into()), character.len_utf8()))
    }

    /// The same as the third split sees it, whose text ends where the first two splits cut.
    #[inline(always)]
    fn at(&self, position: usize) -> Option<(u8, usize)> {
        self.any(position).filter(|&(class, _)| class & OUTSIDE == 0)
    }

    /// Up to three digits.
    fn number(&self, start: usize) -> usize {
        let mut end = start;
        for _ in 0..3 {
            match self.any(end) {
                Some((class, width)) if class & NUMBER != 0 => end += width,
                _ => break,
            }
        }
        end
    }

    /// Chinese and Japanese.
    fn cjk(&self, mut at: usize) -> usize {
        while let Some((class, width)) = self.any(at) {
            if class & CJK == 0 {
                break;
            }
            at += width;
        }
        at
    }

    /// The first position from `at` on whose character is of none of these classes.
    #[inline(always)]
    fn run(&self, mut at: usize, classes: u8) -> usize {
        while let Some((class, width)) = self.at(at) {
            if class & classes == 0 {
                break;
            }
            at += width;
        }
        at
    }

    /// The end of the match of the third split at `start`, if there is one.
    #[inline(always)]
    fn matched(&self, start: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let (class, width) = self.at(start)?;
        let next = start + width;
        let next_class = self.at(next).map_or(0, |(class, _)| class);
        if class & WORD != 0 {
            return Some(self.run(next, WORD));
        }
        if class & PUNCT != 0 {
            let is_letter = |byte: &u8| byte.is_ascii_alphabetic();
            if bytes[start].is_ascii_punctuation() && bytes.get(next).is_some_and(is_letter) {
                let letters = bytes[next..].iter().take_while(|byte| is_letter(byte));
                return Some(next + letters.count());
            }
            return Some(self.punctuation(start));
        }
        if class & NEWLINE == 0 && next_class & WORD != 0 {
            return Some(self.run(next, WORD));
        }
        if bytes[start] == b' ' && next_class & PUNCT != 0 {
            return Some(self.punctuation(next));
        }
        (class & SPACE != 0).then(|| self.whitespace(start))
    }

    fn punctuation(&self, start: usize) -> usize {
        let end = self.run(start, PUNCT);
        self.run(end, NEWLINE)
    }

    /// Whitespace up to the last line end, or to the end of the stretch, or but for the last
    /// character.
    fn whitespace(&self, start: usize) -> usize {
        let (mut end, mut last, mut after_newline) = (start, start, start);
        let mut is_end = true;
        while let Some((class, width)) = self.at(end) {
            if class & SPACE == 0 {
                is_end = false;
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
        } else if is_end || last == start {
            end
        } else {
            last
        }
    }
}
