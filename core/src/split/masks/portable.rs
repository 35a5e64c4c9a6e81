//! The portable tier: classifies text in machine words of eight bytes.

use super::{Classifier, WINDOW, Window, add_multibyte, low_bits};
use crate::split::chars::{LOWER, NEWLINE, NUMBER, SPACE, UPPER};

#[derive(Debug, Clone, Copy)]
pub(super) struct Portable;

#[derive(Debug, Clone, Copy)]
pub(super) struct PortableWindow {
    words: [u64; 8],
    by_class: [u64; 8],
    continuation: u64,
    valid: u64,
}

const HIGH: u64 = 0x8080_8080_8080_8080;
const ONES: u64 = 0x0101_0101_0101_0101;

/// Packs the high bits of the bytes of `word` into eight bits.
#[inline(always)]
fn gather(word: u64) -> u64 {
    ((word & HIGH) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Applies `test`, whose result is the high bit of each byte, to all words.
#[inline(always)]
fn mask(words: &[u64; 8], test: impl Fn(u64) -> u64) -> u64 {
    let mut mask = 0;
    for (index, &word) in words.iter().enumerate() {
        mask |= gather(test(word)) << (8 * index);
    }
    mask
}

/// Returns the bytes in `first..=last`, both ASCII or both not.
#[inline(always)]
fn range(words: &[u64; 8], first: u8, last: u8) -> u64 {
    let from = ONES * u64::from(0x80 - (first & 0x7F));
    let above = ONES * u64::from(0x7F - (last & 0x7F));
    let other_half = if first < 0x80 { 0 } else { HIGH };
    mask(words, |word| {
        let low = word & !HIGH;
        (low + from) & !(low + above) & !(word ^ other_half)
    })
}

/// Returns the first bytes of a text, padded with zeros.
#[inline(always)]
fn words(rest: &[u8]) -> [u64; 8] {
    let mut bytes = [0; WINDOW];
    match rest.first_chunk::<WINDOW>() {
        Some(chunk) => bytes = *chunk,
        None => bytes[..rest.len()].copy_from_slice(rest),
    }
    let mut words = [0; 8];
    for (word, chunk) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*chunk);
    }
    words
}

impl Classifier for Portable {
    type Window = PortableWindow;

    #[inline(always)]
    fn bytes(self, text: &[u8], at: usize) -> PortableWindow {
        let rest = &text[at..];
        let valid = low_bits(rest.len());
        PortableWindow { words: words(rest), by_class: [0; 8], continuation: 0, valid }
    }

    #[inline(always)]
    fn window(self, text: &[u8], at: usize) -> PortableWindow {
        let rest = &text[at..];
        let words = words(rest);
        let mut by_class = [0; 8];
        let newline = range(&words, b'\n', b'\n') | range(&words, b'\r', b'\r');
        by_class[UPPER.trailing_zeros() as usize] = range(&words, b'A', b'Z');
        by_class[LOWER.trailing_zeros() as usize] = range(&words, b'a', b'z');
        by_class[NUMBER.trailing_zeros() as usize] = range(&words, b'0', b'9');
        by_class[NEWLINE.trailing_zeros() as usize] = newline;
        by_class[SPACE.trailing_zeros() as usize] =
            range(&words, b' ', b' ') | range(&words, b'\t', b'\r');
        let mut valid = low_bits(rest.len());
        let high = mask(&words, |word| word);
        let mut continuation = 0;
        if high != 0 {
            continuation = mask(&words, |word| word & !(word << 1));
            valid &= add_multibyte(text, at, high & !continuation, &mut by_class);
            continuation &= valid;
        }
        PortableWindow { words, by_class, continuation, valid }
    }
}

impl Window for PortableWindow {
    #[inline(always)]
    fn any(&self, classes: u8) -> u64 {
        union(&self.by_class, classes)
    }

    #[inline(always)]
    fn equal(&self, byte: u8) -> u64 {
        range(&self.words, byte, byte)
    }

    #[inline(always)]
    fn between(&self, first: u8, last: u8) -> u64 {
        range(&self.words, first, last)
    }

    #[inline(always)]
    fn continuation(&self) -> u64 {
        self.continuation
    }

    #[inline(always)]
    fn valid(&self) -> u64 {
        self.valid
    }
}

/// Returns the union of the masks of `classes`.
#[inline(always)]
pub(super) fn union(by_class: &[u64; 8], classes: u8) -> u64 {
    let mut union = 0;
    for (bit, mask) in by_class.iter().enumerate() {
        if classes & (1 << bit) != 0 {
            union |= mask;
        }
    }
    union
}
