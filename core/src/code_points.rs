//! Converts text that an interpreter stores as code points to UTF-8.

#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;

use encoding_rs::mem::{convert_latin1_to_utf8, convert_utf16_to_utf8};

use crate::error::Result;
use crate::memory::reserve_text;
use crate::once::OnceBox;
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

    /// Estimates the length in UTF-8: returns the maximum for short texts, and extrapolates from
    /// samples for long texts.
    pub fn likely_utf8_length(self) -> usize {
        match self {
            Self::Latin1(units) => likely_utf8_length(units, [0x80]),
            Self::Ucs2(units) => likely_utf8_length(units, [0x80, 0x800]),
            Self::Ucs4(units) => likely_utf8_length(units, [0x80, 0x800, 0x1_0000]),
        }
    }

    /// Appends the code points to `text` as UTF-8. Surrogates, which UTF-8 cannot represent, are
    /// repaired: valid pairs are joined, lone surrogates become U+FFFD. Returns true if there were
    /// any.
    pub fn append_to(self, text: &mut String) -> Result<bool> {
        static TIER: OnceBox<Tier> = OnceBox::new();
        let tier = TIER.get_or_init(|| Box::new(Tier::from_environment()));
        self.append_on(*tier, text)
    }

    /// Like [`CodePoints::append_to`], on the given tier.
    fn append_on(self, tier: Tier, text: &mut String) -> Result<bool> {
        let from = text.len();
        let is_sound = match self {
            Self::Latin1(units) => append_on(tier, units, text, append_latin1)?,
            Self::Ucs2(units) => append_on(tier, units, text, append_ucs2)?,
            Self::Ucs4(units) => append_on(tier, units, text, append_ucs4)?,
        };
        if !is_sound {
            text.truncate(from);
            match self {
                Self::Latin1(units) => append_repaired(units, text),
                Self::Ucs2(units) => append_repaired(units, text),
                Self::Ucs4(units) => append_repaired(units, text),
            }
        }
        Ok(!is_sound)
    }
}

/// A code point in 1, 2 or 4 bytes.
trait Unit: Copy + Default + Into<u32> {}
impl<T: Copy + Default + Into<u32>> Unit for T {}

/// Appends units as UTF-8, with `portable` if the tier has no faster conversion. Returns false at a
/// surrogate; units before it may have been appended.
fn append_on<U: Unit>(
    tier: Tier,
    units: &[U],
    text: &mut String,
    portable: impl Fn(&[U], &mut String) -> Result<bool>,
) -> Result<bool> {
    match tier.kind() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the tier guarantees the instructions.
        crate::tier::Instructions::Avx512 if crate::ablation::Mechanism::CodePoints.is_used() => unsafe {
            x86::append(units, text)
        },
        _ => portable(units, text),
    }
}

fn append_latin1(units: &[u8], text: &mut String) -> Result<bool> {
    for block in units.chunks(BLOCK) {
        // SAFETY: the function writes UTF-8, at most two bytes per unit.
        unsafe { append(text, 2 * block.len(), |room| convert_latin1_to_utf8(block, room))? };
    }
    Ok(true)
}

fn append_ucs2(units: &[u16], text: &mut String) -> Result<bool> {
    if has_surrogates(units) {
        return Ok(false);
    }
    units.chunks(BLOCK).try_for_each(|block| append_utf16(block, text))?;
    Ok(true)
}

fn append_ucs4(units: &[u32], text: &mut String) -> Result<bool> {
    if has_surrogates(units) {
        return Ok(false);
    }
    let mut narrow = [0; 2 * BLOCK];
    for block in units.chunks(BLOCK) {
        append_utf16(narrowed(block, &mut narrow), text)?;
    }
    Ok(true)
}

/// Number of code points converted at once.
const BLOCK: usize = 512;

/// Appends the output of `fill`, which gets a buffer of `most` bytes and returns the length used.
///
/// # Safety
/// `fill` must write UTF-8.
unsafe fn append(
    text: &mut String,
    most: usize,
    fill: impl FnOnce(&mut [u8]) -> usize,
) -> Result<()> {
    reserve_text(text, most)?;
    // SAFETY: zeros are UTF-8, and so is the output of `fill`.
    let bytes = unsafe { text.as_mut_vec() };
    let from = bytes.len();
    bytes.resize(from + most, 0);
    let length = fill(&mut bytes[from..]);
    bytes.truncate(from + length);
    Ok(())
}

fn append_utf16(units: &[u16], text: &mut String) -> Result<()> {
    // SAFETY: the function writes UTF-8, at most three bytes per unit.
    unsafe { append(text, 3 * units.len(), |room| convert_utf16_to_utf8(units, room)) }
}

/// Returns true if any unit is a surrogate.
fn has_surrogates<U: Unit>(units: &[U]) -> bool {
    // No early exit inside a block, so that the loop is vectorized.
    let is_surrogate = |&unit: &U| unit.into() & !0x7ff == 0xd800;
    let has = |block: &[U]| block.iter().fold(false, |has, unit| has | is_surrogate(unit));
    units.chunks(BLOCK).any(has)
}

/// Writes code points without surrogates as UTF-16.
fn narrowed<'a>(units: &[u32], room: &'a mut [u16; 2 * BLOCK]) -> &'a [u16] {
    if units.iter().fold(0, |all, &unit| all | unit) < 0x1_0000 {
        room.iter_mut().zip(units).for_each(|(narrow, &unit)| *narrow = unit as u16);
        return &room[..units.len()];
    }
    let mut length = 0;
    for &unit in units {
        let character = char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER);
        length += character.encode_utf16(&mut room[length..]).len();
    }
    &room[..length]
}

/// Counts one byte per unit, and one more for each of `steps` that the unit reaches. Returns the
/// maximum for short texts, slightly above an estimate from samples for long texts.
fn likely_utf8_length<U: Unit, const N: usize>(units: &[U], steps: [u32; N]) -> usize {
    const SAMPLES: usize = 64;
    const SAMPLE: usize = 64;
    /// Number of units up to which room for the widest characters takes little memory.
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

/// Appends code points that may be surrogates.
fn append_repaired<U: Unit>(units: &[U], text: &mut String) {
    let utf16 = units.iter().flat_map(|&unit| {
        let unit: u32 = unit.into();
        match unit.checked_sub(0x1_0000) {
            None => [Some(unit as u16), None],
            Some(rest) => [Some(0xd800 | (rest >> 10) as u16), Some(0xdc00 | rest as u16 & 0x3ff)],
        }
    });
    for character in char::decode_utf16(utf16.flatten()) {
        let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
        text.push_str(character.encode_utf8(&mut [0; 4]));
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::{CodePoints, Tier};

    /// Checks the converted text, and whether it was repaired, on each tier.
    fn check(code_points: CodePoints<'_>, expected: &str, repaired: bool) {
        for tier in Tier::all() {
            let mut text = "before".to_owned();
            assert_eq!(code_points.append_on(tier, &mut text), Ok(repaired));
            assert_eq!(text.strip_prefix("before"), Some(expected));
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

        /// Mixes lone surrogates, pairs and astral characters.
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
    }
}
