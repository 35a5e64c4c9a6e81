//! Character classes that the patterns of the families distinguish.

use super::char_table::{PUNCTUATION, ROW_OF, ROWS};

/// `\p{Lu}`, `\p{Lt}`
pub(super) const UPPER: u8 = 1;
/// `\p{Ll}`
pub(super) const LOWER: u8 = 1 << 1;
/// `\p{Lm}`, `\p{Lo}`: letters without case
pub(super) const CASELESS: u8 = 1 << 2;
/// `\p{M}`
pub(super) const MARK: u8 = 1 << 3;
/// `\p{N}`
pub(super) const NUMBER: u8 = 1 << 4;
/// `\s`, White_Space
pub(super) const SPACE: u8 = 1 << 5;
/// `\r` and `\n`; always also SPACE
pub(super) const NEWLINE: u8 = 1 << 6;
/// `\p{Han}`, in addition to the character's other classes
pub(super) const HAN: u8 = 1 << 7;

/// `\p{L}`
pub(super) const LETTER: u8 = UPPER | LOWER | CASELESS;

/// Returns the classes of the 64 characters whose UTF-8 differs from `code_point`'s only in the
/// last byte. Code points above U+10FFFF have the classes of unassigned code points.
#[inline]
pub(super) fn row(code_point: u32) -> &'static [u8; 64] {
    let row = ROW_OF.get(code_point as usize / 64).copied().unwrap_or(0);
    &ROWS[usize::from(row) % ROWS.len()]
}

/// Returns the class of a character: a set of the bits above; 0 for all other characters, such as
/// punctuation, symbols and controls.
#[inline]
pub(super) fn class(code_point: u32) -> u8 {
    row(code_point)[code_point as usize % 64]
}

const fn ascii_classes() -> [u8; 128] {
    let mut classes = [0; 128];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = ROWS[ROW_OF[byte / 64] as usize][byte % 64];
        byte += 1;
    }
    classes
}

/// Classes of the ASCII characters.
pub(super) static ASCII: [u8; 128] = ascii_classes();

/// Returns the class and the width in bytes of the character at `at`; `None` at the end of the
/// text. `bytes` is UTF-8 and `at` a character boundary.
#[inline(always)]
pub(super) fn class_at(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    let lead = *bytes.get(at)?;
    if lead < 0x80 {
        return Some((ASCII[usize::from(lead)], 1));
    }
    Some(class_of_multibyte(bytes, at))
}

#[inline]
fn class_of_multibyte(bytes: &[u8], at: usize) -> (u8, usize) {
    // Invalid UTF-8 has no class.
    let Some((row_start, last, width)) = multibyte(bytes, at) else { return (0, 1) };
    (row(row_start)[usize::from(last)], width)
}

/// Returns the multi-byte character at `at`: the first character of its row, its index in the row,
/// and its width in bytes.
#[inline(always)]
fn multibyte(bytes: &[u8], at: usize) -> Option<(u32, u8, usize)> {
    let low = |byte: u8| u32::from(byte & 0x3F);
    // Characters of a row differ only in the last byte.
    let (row, last, width) = match bytes[at..] {
        [lead @ ..0xE0, last, ..] => (u32::from(lead & 0x1F), last, 2),
        [lead @ ..0xF0, second, last, ..] => (u32::from(lead & 0x0F) << 6 | low(second), last, 3),
        [lead, second, third, last, ..] => {
            (u32::from(lead & 0x07) << 12 | low(second) << 6 | low(third), last, 4)
        }
        _ => return None,
    };
    Some((row << 6, last & 0x3F, width))
}

/// Returns true if the character at `at` is `[\p{P}\p{S}]`: characters without a class may also be
/// control, format, private-use or unassigned characters. `bytes` is UTF-8 and `at` a character
/// boundary before its end.
#[inline]
pub(super) fn is_punctuation(bytes: &[u8], at: usize) -> bool {
    let (row_start, place) = match bytes[at] {
        ascii @ ..0x80 => (u32::from(ascii & 0x40), ascii & 0x3F),
        _ => multibyte(bytes, at).map_or((0, 0), |(row_start, place, _)| (row_start, place)),
    };
    let row = ROW_OF.get(row_start as usize / 64).copied().unwrap_or(0);
    PUNCTUATION[usize::from(row) % PUNCTUATION.len()] >> place & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::Regex;

    #[test]
    fn every_code_point_agrees_with_the_regex_crate() {
        let classes = [
            (UPPER, r"[\p{Lu}\p{Lt}]"),
            (LOWER, r"\p{Ll}"),
            (CASELESS, r"[\p{Lm}\p{Lo}]"),
            (LETTER, r"\p{L}"),
            (MARK, r"\p{M}"),
            (NUMBER, r"\p{N}"),
            (SPACE, r"\s"),
            (NEWLINE, r"[\r\n]"),
            (HAN, r"\p{Han}"),
        ];
        for (bits, pattern) in classes {
            check_every_code_point(pattern, |c| class(c as u32) & bits != 0);
        }
        let mut buffer = [0; 4];
        check_every_code_point(r"[\p{P}\p{S}]", |c| {
            is_punctuation(c.encode_utf8(&mut buffer).as_bytes(), 0)
        });
    }

    fn check_every_code_point(pattern: &str, mut is_inside: impl FnMut(char) -> bool) {
        let all: String = (0..=char::MAX as u32).filter_map(char::from_u32).collect();
        let matching: String =
            Regex::new(pattern).unwrap().find_iter(&all).map(|found| found.as_str()).collect();
        let mut expected = matching.chars().peekable();
        for c in all.chars() {
            let inside = expected.next_if_eq(&c).is_some();
            assert_eq!(is_inside(c), inside, "{c:?} and {pattern}");
        }
    }

    #[test]
    fn a_character_in_utf8_has_the_class_of_its_code_point() {
        let mut buffer = [0; 4];
        for c in (0..=char::MAX as u32).filter_map(char::from_u32) {
            let bytes = c.encode_utf8(&mut buffer).as_bytes();
            assert_eq!(class_at(bytes, 0), Some((class(c as u32), bytes.len())), "{c:?}");
        }
        assert_eq!(class_at(b"", 0), None);
    }
}
