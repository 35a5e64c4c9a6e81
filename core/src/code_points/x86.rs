//! Converts sixteen code units at once, with AVX-512.

use std::arch::x86_64::*;

use super::{BLOCK, Room, Unit, append_blocks};
use crate::error::Result;

/// Like [`super::append`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
pub(super) fn append<U: Unit>(units: &[U], text: &mut String) -> Result<bool> {
    // SAFETY: `write` writes whole characters.
    unsafe { append_blocks(units, text, |units, room| write(units, room)) }
}

/// Like [`super::write`].
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
    // Every lane has the bytes of its character, the first one lowest, as its highest bytes.
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
