//! Boundaries inside a piece that no token crosses: what they separate merges on its own.
//!
//! Between two characters of three bytes each (Chinese, Japanese and Korean, and more) there is
//! a boundary unless some token holds the end of the first and the start of the second. Then no
//! merge ever crosses, whatever the context, so that both sides merge on their own, and a side
//! that is a token merges into it. (The last needs every token to be reachable; a vocabulary where
//! some are not has no boundaries.)

use std::ops::ControlFlow;

use super::Section;
use super::tokens::Tokens;
use crate::ablation::Mechanism;
use crate::error::Result;
use crate::memory::filled;
use crate::polling::poll;

/// A bit for every pair of characters that some token holds, hashed: a bit set by another pair
/// costs a boundary and nothing else.
const PAIR_BITS: u32 = 18;
/// Code points of three-byte characters fit in this many bits.
const CHAR_BITS: u32 = 16;

/// The boundaries that a vocabulary allows.
#[derive(Debug, Clone)]
pub(crate) struct Boundaries {
    pub(super) pairs: Section<u64>,
    /// By code point: [`OPEN_BEFORE`] and [`OPEN_AFTER`].
    pub(super) open: Section<u8>,
}

/// The character may be joined to a part of the one before it.
const OPEN_BEFORE: u8 = 1;
/// The character may be joined to a part of the one after it.
const OPEN_AFTER: u8 = 2;

/// The code point of a three-byte character, if that is what the bytes are.
#[inline(always)]
pub(crate) fn three_byte_char(bytes: &[u8]) -> Option<u32> {
    // Four bytes are one load; of the last character there are three.
    let word = match *bytes {
        [a, b, c, d, ..] => u32::from_le_bytes([a, b, c, d]),
        [a, b, c] => u32::from_le_bytes([a, b, c, 0]),
        _ => return None,
    };
    let is_char = word & 0xc0_c0f0 == 0x80_80e0;
    is_char.then_some((word & 0xf) << 12 | word >> 2 & 0xfc0 | word >> 16 & 0x3f)
}

#[inline(always)]
fn pair_bit(before: u32, after: u32) -> usize {
    let pair = before << CHAR_BITS | after;
    (u64::from(pair).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PAIR_BITS)) as usize
}

#[inline(always)]
fn has(bits: &[u64], bit: usize) -> bool {
    bits[bit / 64] >> (bit % 64) & 1 != 0
}

fn set(bits: &mut [u64], bit: usize) {
    bits[bit / 64] |= 1 << (bit % 64);
}

/// A character of three bytes.
#[derive(Debug, Clone, Copy)]
struct Character {
    code_point: u32,
    open: u8,
}

/// How the bytes on one side of a border inside a token relate to a three-byte character.
enum Side {
    Whole(u32),
    /// Too few bytes to tell: the lowest and the highest character that it can be.
    Part(u32, u32),
    Other,
}

fn side_before(bytes: &[u8]) -> Side {
    if bytes.len() >= 3 {
        return three_byte_char(&bytes[bytes.len() - 3..]).map_or(Side::Other, Side::Whole);
    }
    if bytes.iter().all(|byte| byte & 0xc0 == 0x80) {
        Side::Part(0, (1 << CHAR_BITS) - 1)
    } else {
        Side::Other
    }
}

fn side_after(bytes: &[u8]) -> Side {
    match *bytes {
        [_, _, _, ..] => three_byte_char(bytes).map_or(Side::Other, Side::Whole),
        [first, second] if first & 0xf0 == 0xe0 && second & 0xc0 == 0x80 => {
            let low = u32::from(first & 0xf) << 12 | u32::from(second & 0x3f) << 6;
            Side::Part(low, low | 0x3f)
        }
        [first] if first & 0xf0 == 0xe0 => {
            let low = u32::from(first & 0xf) << 12;
            Side::Part(low, low | 0xfff)
        }
        _ => Side::Other,
    }
}

impl Boundaries {
    pub(super) fn build(tokens: &Tokens) -> Result<Self> {
        let mut pairs = filled(0, 1 << (PAIR_BITS - 6))?;
        let mut open = filled(0, 1 << CHAR_BITS)?;
        // Ranges of characters that are open before: by how many more of them start than end.
        let mut ranges = filled(0_i32, (1 << CHAR_BITS) + 1)?;
        if !tokens.all_reachable() {
            pairs.fill(u64::MAX);
        }
        for rank in 0..tokens.len() as u32 {
            let token = tokens.bytes(rank);
            poll(token.len())?;
            if token.is_ascii() {
                continue;
            }
            for border in 1..token.len() {
                if token[border] & 0xf0 != 0xe0 {
                    continue;
                }
                let (before, after) = token.split_at(border);
                match (side_before(before), side_after(after)) {
                    (Side::Whole(before), Side::Whole(after)) => {
                        set(&mut pairs, pair_bit(before, after));
                    }
                    (Side::Whole(before), Side::Part(..)) => open[before as usize] |= OPEN_AFTER,
                    (Side::Part(..), Side::Whole(after)) => open[after as usize] |= OPEN_BEFORE,
                    (Side::Part(..), Side::Part(low, high)) => {
                        ranges[low as usize] += 1;
                        ranges[high as usize + 1] -= 1;
                    }
                    _ => {}
                }
            }
        }
        let mut covering = 0;
        for (open, change) in open.iter_mut().zip(ranges) {
            covering += change;
            if covering > 0 {
                *open |= OPEN_BEFORE;
            }
        }
        Ok(Self { pairs: pairs.into(), open: open.into() })
    }

    /// A character of three bytes, given by its code point.
    #[inline(always)]
    fn character(&self, code_point: u32) -> Character {
        Character { code_point, open: self.open[code_point as usize] }
    }

    /// Whether no token reaches across the border of these two characters.
    #[inline(always)]
    fn between(&self, before: Character, after: Character) -> bool {
        let is_open = before.open & OPEN_AFTER | after.open & OPEN_BEFORE;
        (is_open == 0) & !has(&self.pairs, pair_bit(before.code_point, after.code_point))
    }

    /// Calls `found` with every boundary in `bytes[start..end]`, in order, until it breaks. There is
    /// none next to bytes that are no character.
    #[inline(always)]
    pub(crate) fn each<B>(
        &self,
        bytes: &[u8],
        start: usize,
        end: usize,
        mut found: impl FnMut(usize) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        if !Mechanism::Boundaries.is_used() {
            return ControlFlow::Continue(());
        }
        // Not branched on, since it cannot be predicted: the position of every character is
        // written, and is kept where there is a boundary.
        const CHARACTERS: usize = 32;
        let bytes = &bytes[..end];
        let mut before = None;
        let mut position = start;
        while position < end {
            let mut boundaries = [0; CHARACTERS];
            let mut count = 0;
            for _ in 0..CHARACTERS {
                let Some(rest) = bytes.get(position..).filter(|rest| !rest.is_empty()) else {
                    break;
                };
                let here = three_byte_char(rest).map(|code_point| self.character(code_point));
                boundaries[count % CHARACTERS] = position;
                if let (Some(before), Some(here)) = (before, here) {
                    count += usize::from(self.between(before, here));
                }
                position += if here.is_some() { 3 } else { 1 };
                before = here;
            }
            boundaries[..count].iter().try_for_each(|&boundary| found(boundary))?;
        }
        ControlFlow::Continue(())
    }
}
