//! The characters that stand for bytes in byte-level vocabularies: GPT-2's table.
//!
//! A byte that is a printable Latin-1 character other than the space stands for itself; the
//! others, in order, are the characters from U+0100 on.

/// The character of each byte.
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

/// Above the largest character of the table.
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

/// The byte that a character stands for.
pub(crate) fn byte_of(character: char) -> Option<u8> {
    BYTE_OF.get(character as usize).and_then(|&byte| u8::try_from(byte).ok())
}

/// The bytes that `text` stands for; `None` if a character stands for none.
pub(crate) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    text.chars().map(byte_of).collect()
}

/// Appends the characters that stand for `bytes`.
pub(crate) fn append_text(bytes: &[u8], text: &mut String) {
    text.extend(bytes.iter().map(|&byte| CHAR_OF[usize::from(byte)]));
}

/// The characters that stand for `bytes` in byte-level vocabularies.
pub fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 4);
    append_text(bytes, &mut text);
    text
}
