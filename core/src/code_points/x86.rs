//! Converts sixteen code units at once, with AVX-512.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::Unit;
use crate::error::Result;
use crate::memory::reserve_text;

/// Number of units written at once: in general, and if all units are ASCII.
const BLOCK: usize = 16;
const STRETCH: usize = 64;
/// Buffer for a block as UTF-8.
type Room = [MaybeUninit<u8>; 4 * BLOCK];

/// Appends units as UTF-8. Returns false at a unit that is not a character; units before it may
/// have been appended.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
pub(super) fn append<U: Unit>(units: &[U], text: &mut String) -> Result<bool> {
    let (stretches, rest) = units.as_chunks::<STRETCH>();
    for stretch in stretches {
        if append_ascii(stretch, text)? {
            continue;
        }
        for block in stretch.as_chunks().0 {
            if !append_block(block, 0, text)? {
                return Ok(false);
            }
        }
    }
    let (blocks, rest) = rest.as_chunks();
    for block in blocks {
        if !append_block(block, 0, text)? {
            return Ok(false);
        }
    }
    let mut last = [U::default(); BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    Ok(rest.is_empty() || append_block(&last, BLOCK - rest.len(), text)?)
}

/// Appends the units if all are ASCII; otherwise returns false.
#[inline(always)]
fn append_ascii<U: Unit>(units: &[U; STRETCH], text: &mut String) -> Result<bool> {
    if units.iter().fold(0, |all, &unit| all | unit.into()) >= 0x80 {
        return Ok(false);
    }
    reserve_text(text, STRETCH)?;
    let bytes = units.map(|unit| unit.into() as u8);
    // SAFETY: ASCII is UTF-8.
    unsafe { text.as_mut_vec() }.extend_from_slice(&bytes);
    Ok(true)
}

/// Appends a block whose last `padding` units are zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
fn append_block<U: Unit>(units: &[U; BLOCK], padding: usize, text: &mut String) -> Result<bool> {
    reserve_text(text, size_of::<Room>())?;
    // SAFETY: `write` writes UTF-8. A unit of padding is one byte.
    unsafe {
        let bytes = text.as_mut_vec();
        let room = bytes.spare_capacity_mut().first_chunk_mut().expect("it was reserved");
        let Some(length) = write(units, room) else { return Ok(false) };
        bytes.set_len(bytes.len() + length - padding);
    }
    Ok(true)
}

/// Writes units as UTF-8. Returns the number of bytes, or `None` if a unit is not a character.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
fn write<U: Unit>(units: &[U; BLOCK], room: &mut Room) -> Option<usize> {
    let lanes = |bits: u32| _mm512_set1_epi32(bits.cast_signed());
    let units: [u32; BLOCK] = units.map(Into::into);
    // SAFETY: reads the 64 bytes of `units`.
    let units = unsafe { _mm512_loadu_si512(units.as_ptr().cast()) };

    let high = _mm512_and_si512(units, lanes(0xffff_f800));
    let surrogates = _mm512_cmpeq_epi32_mask(high, lanes(0xd800));
    if surrogates | _mm512_cmpgt_epu32_mask(units, lanes(0x10_ffff)) != 0 {
        return None;
    }
    // Each lane holds the bytes of its character, first byte lowest, in its highest bytes.
    let group = |bits: u32| _mm512_and_si512(units, lanes(bits));
    let groups = _mm512_or_si512(
        _mm512_or_si512(
            _mm512_slli_epi32::<24>(group(0x3f)),
            _mm512_slli_epi32::<10>(group(0xfc0)),
        ),
        _mm512_or_si512(
            _mm512_srli_epi32::<4>(group(0x3_f000)),
            _mm512_srli_epi32::<18>(group(0x1c_0000)),
        ),
    );
    let mut bytes = _mm512_slli_epi32::<24>(units);
    let mut used = lanes(0xff00_0000);
    for (least, marks, width) in [
        (0x80, 0x80c0_0000, 0xffff_0000),
        (0x800, 0x8080_e000, 0xffff_ff00),
        (0x1_0000, 0x8080_80f0, 0xffff_ffff),
    ] {
        let reached = _mm512_cmpge_epu32_mask(units, lanes(least));
        bytes = _mm512_mask_or_epi32(bytes, reached, groups, lanes(marks));
        used = _mm512_mask_mov_epi32(used, reached, lanes(width));
    }
    let used = _mm512_movepi8_mask(used);
    let packed = _mm512_maskz_compress_epi8(used, bytes);
    // SAFETY: writes the 64 bytes of the room.
    unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), packed) };
    Some(used.count_ones() as usize)
}
