//! DeepSeek's three splits in one pass: digits, then Chinese and Japanese, then the rest by a
//! pattern that sees nothing beyond either.
//!
//! The time is linear: each rule looks at most one character beyond what it takes, but for
//! whitespace, which is looked at twice.

use std::collections::HashMap;

use bpe_core::once::LockFreeOnce;
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

static CLASSES: LockFreeOnce<Classes> = LockFreeOnce::new();

/// Makes what [`cut`] needs, once in a process.
pub(crate) fn prepare() {
    CLASSES.get_or_init(Classes::new);
}

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
    let scanner = Scanner { text, classes: CLASSES.get_or_init(Classes::new) };
    let mut start = 0;
    // Where what no rule matches began.
    let mut unmatched = 0;
    while let Some((class, width)) = scanner.any(start) {
        if unmatched == start
            && let Some(end) = scanner.ascii_word(start)
        {
            found(Piece { start, end })?;
            (start, unmatched) = (end, end);
            continue;
        }
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

/// How many of these bytes are ASCII letters before the first that is none. Counted without a branch
/// for each: words of few letters come in no order that a processor could predict.
#[inline(always)]
fn leading_letters(bytes: [u8; 8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(bytes);
    // The high bit of each byte: whether its letter, made small, is at least `a`, or above `z`.
    let small = (word | ONES << 5) & !HIGH;
    let from_a = small + ONES * (0x80 - b'a' as u64);
    let above_z = small + ONES * (0x7f - b'z' as u64);
    let others = !(from_a & !above_z & !word) & HIGH;
    others.trailing_zeros() as usize / 8
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

    /// The end of ASCII letters, perhaps with a space before them, if what follows is ASCII too:
    /// most of most texts.
    #[inline(always)]
    fn ascii_word(&self, start: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let first = start + usize::from(bytes[start] == b' ');
        let mut end = first;
        while let Some(&eight) = bytes.get(end..).and_then(<[u8]>::first_chunk) {
            let letters = leading_letters(eight);
            end += letters;
            if letters < 8 {
                break;
            }
        }
        if bytes.len() - end < 8 {
            end += bytes[end..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        }
        (end > first && bytes.get(end).is_none_or(u8::is_ascii)).then_some(end)
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

    /// Chinese and Japanese: U+4E00 to U+9FA5 and U+3040 to U+30FF, in UTF-8.
    fn cjk(&self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        while let Some(
            [0xe5..=0xe8, _, _]
            | [0xe4, 0xb8..=0xbf, _]
            | [0xe9, 0x80..=0xbd, _]
            | [0xe9, 0xbe, 0x80..=0xa5]
            | [0xe3, 0x81..=0x83, _],
        ) = bytes.get(at..at + 3)
        {
            at += 3;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted_as_one_by_one() {
        for byte in 0..=255 {
            for place in 0..8 {
                for around in [b'a', b'Z', b' ', 0xff] {
                    let mut bytes = [around; 8];
                    bytes[place] = byte;
                    let expected = bytes.iter().take_while(|b| b.is_ascii_alphabetic()).count();
                    assert_eq!(leading_letters(bytes), expected, "{bytes:?}");
                }
            }
        }
        assert_eq!(leading_letters(*b"lettersz"), 8);
    }
}
