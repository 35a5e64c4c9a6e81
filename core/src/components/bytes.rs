//! Characters that represent bytes in byte-level vocabularies: GPT-2's table.
//!
//! A printable Latin-1 character other than the space represents its own byte. The other bytes, in
//! order, are represented by the characters from U+0100.

use std::borrow::Cow;

use crate::memory::{reserve, reserve_text};
use memchr::{memchr_iter, memmem};

use crate::error::Result;

/// Character that represents each byte.
pub(crate) static CHAR_OF: [char; 256] = {
    let mut table = ['\0'; 256];
    let (mut byte, mut next) = (0, 0x100);
    while byte < 256 {
        table[byte] = if matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) {
            byte as u8 as char
        } else {
            next += 1;
            match char::from_u32(next - 1) {
                Some(character) => character,
                None => panic!("U+0100 to U+0143 are characters"),
            }
        };
        byte += 1;
    }
    table
};

/// One more than the largest character of the table.
const END: usize = 0x144;
const NONE: u16 = u16::MAX;

static BYTE_OF: [u16; END] = {
    let mut table = [NONE; END];
    let mut byte = 0;
    while byte < 256 {
        table[CHAR_OF[byte] as usize] = byte as u16;
        byte += 1;
    }
    table
};

/// Appends the bytes that `text` represents. Appends nothing and returns false if a character
/// represents no byte.
pub(crate) fn append_bytes(text: &str, bytes: &mut Vec<u8>) -> Result<bool> {
    let before = bytes.len();
    let mut rest = text.as_bytes();
    reserve(bytes, rest.len())?;
    loop {
        // Characters of the table are one or two bytes long.
        let (code_point, after) = match *rest {
            [] => return Ok(true),
            [byte @ ..0x80, ref after @ ..] => (usize::from(byte), after),
            [first @ ..0xe0, second, ref after @ ..] => {
                (usize::from(first & 0x1f) << 6 | usize::from(second & 0x3f), after)
            }
            _ => (END, rest),
        };
        match BYTE_OF.get(code_point) {
            Some(&byte) if byte != NONE => bytes.push(byte as u8),
            _ => {
                bytes.truncate(before);
                return Ok(false);
            }
        }
        rest = after;
    }
}

/// Returns the bytes that `text` represents; `None` if a character represents no byte.
pub(crate) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    try_bytes_of(text).ok().flatten()
}

/// [`bytes_of`] for texts of any length; fails if memory runs out.
pub(crate) fn try_bytes_of(text: &str) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    Ok(append_bytes(text, &mut bytes)?.then_some(bytes))
}

pub(crate) fn represents_byte(character: char) -> bool {
    BYTE_OF.get(character as usize).is_some_and(|&byte| byte != NONE)
}

pub(crate) fn text_length(bytes: &[u8]) -> usize {
    bytes.iter().map(|&byte| CHAR_OF[usize::from(byte)].len_utf8()).sum()
}

/// Returns the characters that represent `bytes` in byte-level vocabularies.
pub fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 4);
    text.extend(bytes.iter().map(|&byte| CHAR_OF[usize::from(byte)]));
    text
}

/// Returns the byte that a token such as `<0xE2>` represents.
pub(crate) fn byte_of(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

pub(crate) fn is_in_utf8(byte: u8) -> bool {
    !matches!(byte, 0xc0 | 0xc1 | 0xf5..)
}

/// How the tokens of a vocabulary spell bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As the characters that represent bytes.
    Represented,
    /// As UTF-8, with spaces and marks [swapped](swap).
    Spaced,
}

impl Spelling {
    /// Returns the text of a token.
    pub(crate) fn text_of(self, bytes: &[u8]) -> String {
        match self {
            Self::Represented => text_of(bytes),
            Self::Spaced => String::from_utf8_lossy(bytes).chars().map(swap).collect(),
        }
    }

    /// Returns the bytes of a text; `None` if no token can be spelled this way.
    pub(crate) fn bytes_of(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Represented => bytes_of(text),
            Self::Spaced => Some(text.chars().map(swap).collect::<String>().into_bytes()),
        }
    }
}

/// Mark that represents a space in vocabularies over characters.
pub(crate) const MARK: char = '\u{2581}';

/// Swaps a space and a mark; other characters stay unchanged. Texts over characters have many marks
/// and hardly any spaces, and a space takes a third of a mark's bytes.
pub(crate) fn swap(character: char) -> char {
    match character {
        ' ' => MARK,
        MARK => ' ',
        other => other,
    }
}

/// Returns a text with spaces and marks [swapped](swap).
pub(crate) fn swapped(text: &str) -> Result<Cow<'_, str>> {
    let spaces = memchr_iter(b' ', text.as_bytes()).count();
    if spaces == 0 && !has_marks(text) {
        return Ok(Cow::Borrowed(text));
    }
    let mut new = String::new();
    reserve_text(&mut new, text.len() + spaces * (MARK.len_utf8() - 1))?;
    new.extend(text.chars().map(swap));
    Ok(Cow::Owned(new))
}

/// Returns the [swapped] form of a text whose spaces become marks, with a mark in front if
/// `is_prefixed`.
pub(crate) fn spaced(text: &str, is_prefixed: bool) -> Result<Cow<'_, str>> {
    let has_marks = has_marks(text);
    if !is_prefixed && !has_marks {
        return Ok(Cow::Borrowed(text));
    }
    let mut new = String::new();
    reserve_text(&mut new, text.len() + 1)?;
    if is_prefixed {
        new.push(' ');
    }
    if !has_marks {
        new.push_str(text);
        return Ok(Cow::Owned(new));
    }
    for (index, part) in text.split(MARK).enumerate() {
        if index > 0 {
            new.push(' ');
        }
        new.push_str(part);
    }
    Ok(Cow::Owned(new))
}

pub(crate) fn has_marks(text: &str) -> bool {
    memmem::find(text.as_bytes(), MARK.encode_utf8(&mut [0; 4]).as_bytes()).is_some()
}
