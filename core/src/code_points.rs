//! Converts text as interpreters store it, in code points, to UTF-8.

#[cfg(target_arch = "x86_64")]
mod x86;

use std::mem::MaybeUninit;
use std::ops::Range;

use bytemuck::Pod;

use crate::error::{Error, Result};
use crate::memory::write_copy;
use crate::once::OnceBox;
#[cfg(target_arch = "x86_64")]
use crate::tier::Kind;
use crate::tier::Tier;

/// Text as code points of one, two or four bytes each, possibly with surrogates.
#[derive(Debug, Clone, Copy)]
pub enum CodePoints<'a> {
    /// Up to U+00FF.
    Latin1(&'a [u8]),
    /// Up to U+FFFF.
    Ucs2(&'a [u16]),
    /// Any code points.
    Ucs4(&'a [u32]),
}

impl CodePoints<'_> {
    /// Returns the code points at the indices in `range`.
    pub fn part(self, range: Range<usize>) -> Self {
        match self {
            Self::Latin1(units) => Self::Latin1(&units[range]),
            Self::Ucs2(units) => Self::Ucs2(&units[range]),
            Self::Ucs4(units) => Self::Ucs4(&units[range]),
        }
    }

    /// Returns the code point at `index`.
    pub fn get(self, index: usize) -> u32 {
        match self {
            Self::Latin1(units) => units[index].into(),
            Self::Ucs2(units) => units[index].into(),
            Self::Ucs4(units) => units[index],
        }
    }

    /// Returns the number of code points.
    pub fn len(self) -> usize {
        match self {
            Self::Latin1(units) => units.len(),
            Self::Ucs2(units) => units.len(),
            Self::Ucs4(units) => units.len(),
        }
    }

    /// Returns true for an empty text.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Estimates the length as UTF-8: the maximum for short texts, from a sample for long ones.
    pub fn likely_utf8_length(self) -> usize {
        match self {
            Self::Latin1(units) => likely_utf8_length(units, [0x80]),
            Self::Ucs2(units) => likely_utf8_length(units, [0x80, 0x800]),
            Self::Ucs4(units) => likely_utf8_length(units, [0x80, 0x800, 0x1_0000]),
        }
    }

    /// Appends them to `text` as UTF-8. Surrogates, which UTF-8 cannot represent, are repaired:
    /// valid pairs are joined, lone ones become U+FFFD. Returns true if there were any.
    pub fn append_to(self, text: &mut String) -> Result<bool> {
        static TIER: OnceBox<Tier> = OnceBox::new();
        let tier = TIER.get_or_init(|| Box::new(Tier::from_environment()));
        self.append_on(*tier, text)
    }

    /// Like [`CodePoints::append_to`], on the given tier.
    fn append_on(self, tier: Tier, text: &mut String) -> Result<bool> {
        let from = text.len();
        let is_sound = match self {
            Self::Latin1(units) => append(tier, units, text)?,
            Self::Ucs2(units) => append(tier, units, text)?,
            Self::Ucs4(units) => append(tier, units, text)?,
        };
        if is_sound {
            return Ok(false);
        }
        text.truncate(from);
        match self {
            Self::Latin1(units) => append_repaired(units, text)?,
            Self::Ucs2(units) => append_repaired(units, text)?,
            Self::Ucs4(units) => append_repaired(units, text)?,
        }
        Ok(true)
    }
}

/// A code point in 1, 2 or 4 bytes.
trait Unit: Pod + Into<u32> {}
impl<T: Pod + Into<u32>> Unit for T {}

/// How many units are written at once, and how many that are all ASCII.
const BLOCK: usize = 16;
const STRETCH: usize = 64;
/// The most bytes of a character.
const WIDEST: usize = 4;
/// Room for a block as UTF-8.
type Room = [MaybeUninit<u8>; WIDEST * BLOCK];

/// Returns one byte for each unit, and one more for each of `steps` that it reaches: the maximum
/// for short texts, slightly above an estimate from samples for long ones.
fn likely_utf8_length<U: Unit, const N: usize>(units: &[U], steps: [u32; N]) -> usize {
    const SAMPLES: usize = 64;
    const SAMPLE: usize = 64;
    /// So few units that room for the widest characters is little.
    const SHORT_TEXT: usize = 2 * SAMPLES * SAMPLE;
    let more = |unit: &U| -> usize {
        let unit: u32 = (*unit).into();
        steps.iter().map(|&step| usize::from(unit >= step)).sum()
    };
    if units.len() <= SHORT_TEXT {
        return units.len() * (1 + N);
    }
    let distance = units.len() / SAMPLES;
    let samples = units.chunks(distance).flat_map(|chunk| &chunk[..SAMPLE.min(chunk.len())]);
    let more: usize = samples.map(more).sum();
    let likely = units.len() + more * distance / SAMPLE;
    likely + likely / 16
}

/// Appends units as UTF-8. Returns false at a unit that is not a character; those before it may
/// have been appended.
fn append<U: Unit>(tier: Tier, units: &[U], text: &mut String) -> Result<bool> {
    match tier.kind() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the tier guarantees the instructions.
        Kind::Avx512 => unsafe { x86::append(units, text) },
        // SAFETY: `write` writes whole characters.
        _ => unsafe { append_blocks(units, text, write) },
    }
}

/// Appends units block by block.
///
/// # Safety
/// `write` writes UTF-8 to the beginning of the room, and returns the number of bytes, or `None`.
#[inline(always)]
unsafe fn append_blocks<U: Unit>(
    units: &[U],
    text: &mut String,
    write: impl Fn(&[U; BLOCK], &mut Room) -> Option<usize>,
) -> Result<bool> {
    let append = |text: &mut String, block: &[U; BLOCK], padding: usize| {
        reserve(text, size_of::<Room>())?;
        // SAFETY: `write` writes UTF-8. A unit of padding is the last of a block, and one byte.
        unsafe {
            let bytes = text.as_mut_vec();
            let room = bytes.spare_capacity_mut().first_chunk_mut().expect("it was reserved");
            let Some(length) = write(block, room) else { return Ok(false) };
            bytes.set_len(bytes.len() + length - padding);
        }
        Ok(true)
    };
    let (stretches, rest) = units.as_chunks::<STRETCH>();
    for stretch in stretches {
        if append_ascii(stretch, text)? {
            continue;
        }
        for block in stretch.as_chunks().0 {
            if !append(text, block, 0)? {
                return Ok(false);
            }
        }
    }
    let (blocks, rest) = rest.as_chunks();
    for block in blocks {
        if !append(text, block, 0)? {
            return Ok(false);
        }
    }
    let mut last = [U::zeroed(); BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    Ok(rest.is_empty() || append(text, &last, BLOCK - rest.len())?)
}

/// Appends units that are all ASCII. Returns false if they are not.
#[inline(always)]
fn append_ascii<U: Unit>(units: &[U; STRETCH], text: &mut String) -> Result<bool> {
    if units.iter().fold(0, |all, &unit| all | unit.into()) >= 0x80 {
        return Ok(false);
    }
    reserve(text, STRETCH)?;
    let bytes = units.map(|unit| unit.into() as u8);
    // SAFETY: ASCII is UTF-8.
    unsafe { text.as_mut_vec() }.extend_from_slice(&bytes);
    Ok(true)
}

#[inline(always)]
fn reserve(text: &mut String, bytes: usize) -> Result<()> {
    text.try_reserve(bytes).map_err(|_| Error::OutOfMemory { bytes })
}

/// Writes units as UTF-8. Returns the number of bytes, or `None` if a unit is not a character.
#[inline(always)]
fn write<U: Unit>(units: &[U; BLOCK], room: &mut Room) -> Option<usize> {
    if units.iter().fold(0, |all, &unit| all | unit.into()) < 0x80 {
        for (byte, &unit) in room.iter_mut().zip(units) {
            byte.write(unit.into() as u8);
        }
        return Some(BLOCK);
    }
    let mut length = 0;
    for &unit in units {
        let unit = unit.into();
        char::from_u32(unit)?;
        let (code, width) = utf8(unit);
        write_copy(&mut room[length..length + WIDEST], &code.to_le_bytes());
        length += width;
    }
    Some(length)
}

/// Returns the bytes of a character, the first one lowest, and their number. Without branches,
/// which would be mispredicted in text that mixes widths.
#[inline(always)]
fn utf8(character: u32) -> (u32, usize) {
    let group = |shift: u32| character >> shift & 0x3f | 0x80;
    let four = character >> 18 | 0xf0 | group(12) << 8 | group(6) << 16 | group(0) << 24;
    let width = 1
        + usize::from(character >= 0x80)
        + usize::from(character >= 0x800)
        + usize::from(character >= 0x1_0000);
    // The mark of the first byte, beside the 0x80 that every byte has.
    let mark = [0, 0, 0x40, 0x60, 0][width];
    let code = four >> (8 * (WIDEST - width)) | mark;
    (if width == 1 { character } else { code }, width)
}

fn append_repaired<U: Unit>(units: &[U], text: &mut String) -> Result<()> {
    let utf16 = units.iter().flat_map(|&unit| {
        let unit: u32 = unit.into();
        match unit.checked_sub(0x1_0000) {
            None => [Some(unit as u16), None],
            Some(rest) => [Some(0xd800 | (rest >> 10) as u16), Some(0xdc00 | rest as u16 & 0x3ff)],
        }
    });
    for character in char::decode_utf16(utf16.flatten()) {
        reserve(text, WIDEST)?;
        text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::CodePoints;
    use crate::tier::Tier;

    /// Checks the text, and whether it was repaired, on every tier.
    fn check(code_points: CodePoints<'_>, expected: &str, repaired: bool) {
        for tier in ["portable", "avx2", "avx512"] {
            let mut text = "before".to_owned();
            let tier = Tier::named(tier).expect("a tier");
            assert_eq!(code_points.append_on(tier, &mut text), Ok(repaired), "{tier:?}");
            assert_eq!(text.strip_prefix("before"), Some(expected), "{tier:?}");
        }
        if !repaired {
            assert!(code_points.likely_utf8_length() >= expected.len());
        }
    }

    #[test]
    fn every_character() {
        let all: Vec<char> = ('\0'..=char::MAX).collect();
        for count in [1, 7, 16, 300] {
            for characters in all.chunks(count).step_by(1 + 300 / count / 8) {
                let text: String = characters.iter().collect();
                let units: Vec<u32> = characters.iter().map(|&c| c.into()).collect();
                check(CodePoints::Ucs4(&units), &text, false);
                let units: Vec<u16> = units.iter().filter_map(|&c| c.try_into().ok()).collect();
                if units.len() == characters.len() {
                    check(CodePoints::Ucs2(&units), &text, false);
                }
            }
        }
        let latin: Vec<u8> = (0..=255).collect();
        check(
            CodePoints::Latin1(&latin),
            &latin.iter().map(|&c| char::from(c)).collect::<String>(),
            false,
        );
    }

    #[test]
    fn the_length_of_long_text_is_judged_by_samples() {
        let text = "naïve 数据 😀 ".repeat(5_000);
        let units: Vec<u32> = text.chars().map(u32::from).collect();
        let likely = CodePoints::Ucs4(&units).likely_utf8_length();
        assert!(likely >= text.len() && likely < text.len() / 4 * 5, "{likely} {}", text.len());
    }

    proptest! {
        #![proptest_config(crate::test_support::config(256))]

        /// Lone surrogates, pairs, and astral characters among them.
        #[test]
        fn surrogates_are_repaired(
            units in vec(select(&[0x41u16, 0xe9, 0x4e00, 0xd83d, 0xdbff, 0xdc00, 0xdfff][..]), 0..50)
        ) {
            let expected = String::from_utf16_lossy(&units);
            let repaired = units.iter().any(|unit| (0xd800..0xe000).contains(unit));
            check(CodePoints::Ucs2(&units), &expected, repaired);
            let wide: Vec<u32> = units.iter().map(|&unit| unit.into()).collect();
            check(CodePoints::Ucs4(&wide), &expected, repaired);
            let wide: Vec<u32> = wide.into_iter().chain([0x1_f600]).collect();
            check(CodePoints::Ucs4(&wide), &(expected + "😀"), repaired);
        }

        #[test]
        fn text_stays_what_it_is(text in "[ -~]{0,150}.{0,80}[ -~]{0,150}") {
            let units: Vec<u32> = text.chars().map(u32::from).collect();
            check(CodePoints::Ucs4(&units), &text, false);
            if let Ok(units) = units.iter().map(|&c| c.try_into()).collect::<Result<Vec<u16>, _>>() {
                check(CodePoints::Ucs2(&units), &text, false);
            }
            if let Ok(units) = units.iter().map(|&c| c.try_into()).collect::<Result<Vec<u8>, _>>() {
                check(CodePoints::Latin1(&units), &text, false);
            }
        }
    }
}
