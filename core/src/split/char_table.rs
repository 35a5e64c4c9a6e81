//! The class of every character, as `examples/generate_char_table.rs` writes them.

/// The rows of the code points `64 * i .. 64 * (i + 1)` as `u16`; the different rows, a byte for
/// each of 64 code points; for each row a `u64`. All little-endian.
const TABLE: &[u8] = include_bytes!("char_table.bin");

const ROW: usize = 64;
const NUMBERS: usize = 0x11_0000 / ROW;
const COUNT: usize = (TABLE.len() - 2 * NUMBERS) / (ROW + 8);

/// Row of `ROWS` for the code points `64 * i .. 64 * (i + 1)`.
pub(super) static ROW_OF: [u16; NUMBERS] = {
    let mut numbers = [0; NUMBERS];
    let mut at = 0;
    while at < NUMBERS {
        numbers[at] = u16::from_le_bytes([TABLE[2 * at], TABLE[2 * at + 1]]);
        at += 1;
    }
    numbers
};

/// The different rows: one class for each of 64 code points.
pub(super) static ROWS: [[u8; ROW]; COUNT] = {
    let mut rows = [[0; ROW]; COUNT];
    let mut at = 0;
    while at < ROW * COUNT {
        rows[at / ROW][at % ROW] = TABLE[2 * NUMBERS + at];
        at += 1;
    }
    rows
};

/// For each row a bit for each code point: whether it is `[\p{P}\p{S}]`.
pub(super) static PUNCTUATION: [u64; COUNT] = {
    let mut bits = [0; COUNT];
    let mut at = 0;
    while at < 8 * COUNT {
        bits[at / 8] |= (TABLE[2 * NUMBERS + ROW * COUNT + at] as u64) << (at % 8 * 8);
        at += 1;
    }
    bits
};
