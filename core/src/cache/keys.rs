//! Cache keys of pieces that are too long for a [`Key`].

use crate::vocabulary::{Key, SHORT, key_of_run};

/// Maximum number of bytes of a piece with a [`MediumKey`].
pub(crate) const MEDIUM: usize = 31;
/// Maximum number of bytes of a piece with a [`LongKey`].
pub(crate) const LONG: usize = 127;

/// The key of a piece in a table of longer pieces: its bytes, zeros as padding, and its length as
/// the last byte. The last byte is zero if the ids of the piece do not fit into its home table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PaddedKey<const W: usize>([u64; W]);

/// The key of a piece of 16 to [`MEDIUM`] bytes.
pub(crate) type MediumKey = PaddedKey<4>;
/// The key of a piece of [`MEDIUM`]` + 1` to [`LONG`] bytes.
pub(crate) type LongKey = PaddedKey<16>;

impl MediumKey {
    pub(crate) fn new(piece: &[u8]) -> Self {
        debug_assert!((SHORT + 1..=MEDIUM).contains(&piece.len()));
        let mut block = [0; 32];
        block[..16].copy_from_slice(&piece[..16]);
        // The last 16 bytes, except bytes that are also among the first 16.
        let last: [u8; 16] = piece[piece.len() - 16..].try_into().expect("16 bytes");
        let rest = u128::from_le_bytes(last).unbounded_shr(8 * (32 - piece.len()) as u32);
        block[16..].copy_from_slice(&rest.to_le_bytes());
        block[31] = piece.len() as u8;
        Self(bytemuck::cast(block))
    }
}

impl LongKey {
    pub(crate) fn new(piece: &[u8]) -> Self {
        debug_assert!((MEDIUM + 1..=LONG).contains(&piece.len()));
        let mut block = [0; 128];
        block[..piece.len()].copy_from_slice(piece);
        block[127] = piece.len() as u8;
        Self(bytemuck::cast(block))
    }
}

impl<const W: usize> PaddedKey<W> {
    /// Pads the key of a narrower table.
    pub(super) fn padded<const V: usize>(key: [u64; V]) -> Self {
        let mut words = [0; W];
        words[..V].copy_from_slice(&key);
        Self(words)
    }

    #[inline(always)]
    pub(super) fn words(self) -> [u64; W] {
        self.0
    }
}

/// Returns the key of a piece of more than 15 bytes that repeats one character, or one byte except
/// for the first byte and the last two (rulers with a space before, or a line end after). The
/// repeated bytes, these three bytes and the length identify the piece.
pub(crate) fn run_key(piece: &[u8]) -> Option<Key> {
    debug_assert!(piece.len() > SHORT);
    let [first, inner @ .., last, end] = piece else { return None };
    let what = if is_repeated(inner, 1) {
        // Larger than any character, to tell the two kinds of runs apart.
        1 << 32 | u64::from(u32::from_le_bytes([*first, inner[0], *last, *end]))
    } else {
        let width = match first {
            0xc0..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0.. => 4,
            _ => return None,
        };
        if !is_repeated(piece, width) {
            return None;
        }
        let mut character = [0; 8];
        character[..width].copy_from_slice(&piece[..width]);
        u64::from_le_bytes(character)
    };
    Some(key_of_run(what, piece.len()))
}

/// Returns true if the first `width` bytes are repeated to the end.
fn is_repeated(bytes: &[u8], width: usize) -> bool {
    bytes[width..2 * width] == bytes[..width] && bytes[width..] == bytes[..bytes.len() - width]
}

#[cfg(test)]
mod tests {
    use super::run_key;

    #[test]
    fn runs_have_keys_of_their_own() {
        let mut seen = std::collections::HashMap::new();
        let mut pieces: Vec<Vec<u8>> = vec![];
        for length in 16..40 {
            for run in [b'=', b'-', 0, 0xff] {
                for before in [run, b' ', 0] {
                    for after in [[run; 2], [run, b'\n'], [b'\r', b'\n'], [0, 0]] {
                        let middle = vec![run; length - 3];
                        pieces.push([&[before][..], &middle, &after].concat());
                    }
                }
            }
        }
        for character in ["\u{e9}", "\u{4e00}", "\u{1f600}"] {
            pieces.extend((16..40).map(|count| character.repeat(count).into_bytes()));
        }
        // Here the repeated byte and the other bytes form characters.
        for character in ["\u{e9}", "\u{4e00}", "\u{1f600}"] {
            let mut block = [0; 4];
            block[..character.len()].copy_from_slice(character.as_bytes());
            for count in 16..40 {
                let middle = vec![block[1]; character.len() * count - 3];
                pieces.push([&block[..1], &middle, &block[2..]].concat());
            }
        }
        pieces.sort();
        pieces.dedup();
        for piece in pieces {
            let key = run_key(&piece).unwrap_or_else(|| panic!("{}", piece.escape_ascii()));
            assert_eq!(seen.insert(key, piece.clone()), None, "{}", piece.escape_ascii());
        }
        for other in [
            "--------+-------",
            "abababababababab",
            "\u{4e00}\u{4e00}\u{4e00}\u{4e00}\u{4e00}\u{4e01}",
        ] {
            assert_eq!(run_key(other.as_bytes()), None, "{other}");
        }
    }
}
