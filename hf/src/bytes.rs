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

/// Appends the bytes that `text` stands for. Appends nothing, and returns false, if a character
/// stands for none.
pub(crate) fn append_bytes(text: &str, bytes: &mut Vec<u8>) -> bool {
    let before = bytes.len();
    let mut rest = text.as_bytes();
    bytes.reserve(rest.len());
    loop {
        // Characters of the table have one byte or two.
        let (code_point, after) = match *rest {
            [] => return true,
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
                return false;
            }
        }
        rest = after;
    }
}

/// The bytes that `text` stands for; `None` if a character stands for none.
pub(crate) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    append_bytes(text, &mut bytes).then_some(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_stands_for_its_byte_or_none() {
        for character in (0..=char::MAX as u32).filter_map(char::from_u32) {
            let expected = CHAR_OF.iter().position(|&other| other == character);
            let expected = expected.map(|byte| vec![b'x', byte as u8, b'y']);
            assert_eq!(bytes_of(&format!("x{character}y")), expected, "{character:?}");
        }
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes_of(&text_of(&bytes)), Some(bytes));
        let mut kept = vec![1];
        assert!(!append_bytes("a b", &mut kept));
        assert_eq!(kept, [1]);
    }
}
