//! Finds boundaries inside a piece that no token crosses: the segments between them merge
//! independently.
//!
//! Two neighboring three-byte characters (Chinese, Japanese, Korean and more) have a boundary
//! between them unless some token contains the end of the first and the start of the second. No
//! merge ever crosses a boundary, so both sides merge independently, and a side that is a token
//! merges into that token. (The last claim needs every token to be reachable; a vocabulary with
//! unreachable tokens has no boundaries.)

use std::ops::ControlFlow;

use super::Section;
use super::tokens::Tokens;
use crate::ablation::Mechanism;
use crate::error::Result;
use crate::polling::poll;

/// Hash bits for the set of character pairs inside tokens; a collision only costs a boundary.
const PAIR_BITS: u32 = 18;
/// Number of bits of a three-byte character's code point.
const CHAR_BITS: u32 = 16;

/// Boundaries that a vocabulary allows.
#[derive(Debug, Clone)]
pub(crate) struct Boundaries {
    pub(super) pairs: Section<u64>,
    /// The flags [`OPEN_BEFORE`] and [`OPEN_AFTER`] for each code point.
    pub(super) open: Section<u8>,
}

/// A token may join the character to a part of the previous character.
const OPEN_BEFORE: u8 = 1;
/// A token may join the character to a part of the next character.
const OPEN_AFTER: u8 = 2;

/// Returns the code point of `bytes` if they are one three-byte character.
#[inline(always)]
pub(crate) fn three_byte_char(bytes: &[u8]) -> Option<u32> {
    // Four bytes take one load; at the end, only three bytes remain.
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

/// Bytes on one side of a character boundary inside a token, as part of a three-byte character.
enum Side {
    Whole(u32),
    /// Too few bytes to decide: the lowest and the highest possible character.
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
        let mut pairs = vec![0; 1 << (PAIR_BITS - 6)];
        let mut open = vec![0; 1 << CHAR_BITS];
        // Ranges of characters that are open before: starts minus ends, by code point.
        let mut ranges = vec![0_i32; (1 << CHAR_BITS) + 1];
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

    /// Returns an empty set of boundaries.
    pub(super) fn none() -> Self {
        Self { pairs: Section::default(), open: Section::default() }
    }

    /// Returns false if pieces have no boundaries.
    #[inline(always)]
    pub(crate) fn are_any(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the three-byte character with this code point.
    #[inline(always)]
    fn character(&self, code_point: u32) -> Character {
        Character { code_point, open: self.open[code_point as usize] }
    }

    /// Returns true if no token crosses the boundary between these two characters.
    #[inline(always)]
    fn between(&self, before: Character, after: Character) -> bool {
        let is_open = before.open & OPEN_AFTER | after.open & OPEN_BEFORE;
        (is_open == 0) & !has(&self.pairs, pair_bit(before.code_point, after.code_point))
    }

    /// Calls `found` with every boundary in `bytes[start..end]`, in order, until `found` returns
    /// `Break`. Bytes that are not characters have no boundary next to them.
    #[inline(always)]
    pub(crate) fn each<B>(
        &self,
        bytes: &[u8],
        start: usize,
        end: usize,
        mut found: impl FnMut(usize) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        if !Mechanism::Boundaries.is_used() || !self.are_any() {
            return ControlFlow::Continue(());
        }
        // Branch-free, since the condition is unpredictable: every character's position is written,
        // and kept if it is a boundary.
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
