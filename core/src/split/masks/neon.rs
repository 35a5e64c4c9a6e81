//! The tier of aarch64: classifies text with NEON, which every aarch64 processor has.

use std::arch::aarch64::*;

use super::{Classifier, WINDOW, Window, low_bits};
use crate::split::chars::{self, ASCII};

#[derive(Debug, Clone, Copy)]
pub(super) struct Neon;

/// The 64 bytes of a window.
type Bytes = [uint8x16_t; 4];

#[derive(Debug, Clone, Copy)]
pub(super) struct NeonWindow {
    bytes: Bytes,
    /// The class of each byte's character.
    classes: Bytes,
    continuation: u64,
    valid: u64,
}

/// Loads 64 bytes.
#[inline(always)]
fn load(bytes: &[u8; WINDOW]) -> Bytes {
    // SAFETY: the four loads are inside the 64 bytes.
    unsafe { [0, 16, 32, 48].map(|offset| vld1q_u8(bytes.as_ptr().add(offset))) }
}

/// Returns one bit for each byte of `masks`, which are 0 or 0xFF: each byte keeps one bit of eight,
/// and three rounds of pairwise sums join eight bytes.
#[inline(always)]
fn gather(masks: Bytes) -> u64 {
    // SAFETY: every aarch64 processor has NEON.
    unsafe {
        let bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
        let [a, b, c, d] = masks.map(|mask| vandq_u8(mask, bits));
        let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
    }
}

/// Returns the bytes from `first` to `last`.
#[inline(always)]
fn range(bytes: Bytes, first: u8, last: u8) -> u64 {
    // SAFETY: every aarch64 processor has NEON.
    unsafe {
        let (first, most) = (vdupq_n_u8(first), vdupq_n_u8(last - first));
        gather(bytes.map(|bytes| vcleq_u8(vsubq_u8(bytes, first), most)))
    }
}

/// Returns the classes of ASCII bytes, and 0 for other bytes.
#[inline(always)]
fn ascii_classes(bytes: Bytes) -> Bytes {
    let (halves, _) = ASCII.as_chunks::<WINDOW>();
    let [low, high] = [0, 1].map(|half| {
        let [a, b, c, d] = load(&halves[half]);
        uint8x16x4_t(a, b, c, d)
    });
    // A look-up beyond the table gives 0, or keeps the value of the other half.
    // SAFETY: every aarch64 processor has NEON.
    unsafe {
        let other_half = vdupq_n_u8(0x40);
        bytes.map(|bytes| vqtbx4q_u8(vqtbl4q_u8(low, bytes), high, veorq_u8(bytes, other_half)))
    }
}

/// Returns the classes of multi-byte characters, at each of their bytes; the classes of other bytes
/// are arbitrary. `leads` has the first bytes of these characters. Also returns the bytes of the
/// characters that end in the window.
#[inline(never)]
fn multibyte_classes(text: &[u8], at: usize, mut leads: u64) -> ([u8; WINDOW], u64) {
    // Four bytes are written for each character; later characters correct them.
    let mut classes = [0; WINDOW + 4];
    let mut valid = u64::MAX;
    while leads != 0 {
        let offset = leads.trailing_zeros() as usize;
        let Some((class, width)) = chars::class_at(text, at + offset) else { break };
        let is_whole = offset + width <= WINDOW;
        let class = if is_whole { class } else { 0 };
        classes[offset..offset + 4].copy_from_slice(&[class; 4]);
        if !is_whole {
            valid = (1 << offset) - 1;
            break;
        }
        leads &= leads - 1;
    }
    (*classes.first_chunk().expect("it is longer"), valid)
}

impl Classifier for Neon {
    type Window = NeonWindow;

    #[inline(always)]
    fn bytes(self, text: &[u8], at: usize) -> NeonWindow {
        let rest = &text[at..];
        let mut copy = [0; WINDOW];
        let bytes = match rest.first_chunk() {
            Some(chunk) => load(chunk),
            None => {
                copy[..rest.len()].copy_from_slice(rest);
                load(&copy)
            }
        };
        let classes = load(&[0; WINDOW]);
        NeonWindow { bytes, classes, continuation: 0, valid: low_bits(rest.len()) }
    }

    #[inline(always)]
    fn window(self, text: &[u8], at: usize) -> NeonWindow {
        let mut window = self.bytes(text, at);
        let bytes = window.bytes;
        window.classes = ascii_classes(bytes);
        let [a, b, c, d] = bytes;
        // SAFETY: every aarch64 processor has NEON.
        if unsafe { vmaxvq_u8(vorrq_u8(vorrq_u8(a, b), vorrq_u8(c, d))) } < 0x80 {
            return window;
        }
        let (classes, valid) = multibyte_classes(text, at, range(bytes, 0xC0, 0xFF));
        let wide = load(&classes);
        for (index, class) in window.classes.iter_mut().enumerate() {
            // SAFETY: every aarch64 processor has NEON.
            unsafe {
                let is_wide = vcgeq_u8(bytes[index], vdupq_n_u8(0x80));
                *class = vbslq_u8(is_wide, wide[index], *class);
            }
        }
        window.valid &= valid;
        window.continuation = range(bytes, 0x80, 0xBF) & window.valid;
        window
    }
}

impl Window for NeonWindow {
    #[inline(always)]
    fn any(&self, classes: u8) -> u64 {
        // SAFETY: every aarch64 processor has NEON.
        let has = |class| unsafe { vtstq_u8(class, vdupq_n_u8(classes)) };
        gather(self.classes.map(has))
    }

    #[inline(always)]
    fn equal(&self, byte: u8) -> u64 {
        // SAFETY: every aarch64 processor has NEON.
        let is_equal = |bytes| unsafe { vceqq_u8(bytes, vdupq_n_u8(byte)) };
        gather(self.bytes.map(is_equal))
    }

    #[inline(always)]
    fn between(&self, first: u8, last: u8) -> u64 {
        range(self.bytes, first, last)
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
