//! Classifies 64 bytes of text at once.
//!
//! A window is 64 bytes from a character boundary. For a set of classes it returns a mask with one
//! bit per byte, bit 0 first; all bytes of a character have its class. A character that does not
//! end in the window is omitted.
//!
//! Each tier has a [`Classifier`], a value that exists only where the processor supports the tier.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::{Piece, chars};
use crate::tier::Tier;

/// Maximum size of a window in bytes.
pub(super) const WINDOW: usize = 64;

/// A classified window of text.
pub(super) trait Window: Copy {
    /// Returns the bytes of characters in any of `classes`.
    fn any(&self, classes: u8) -> u64;
    /// Returns the bytes equal to `byte`, which is not NUL.
    fn equal(&self, byte: u8) -> u64;
    /// Returns the bytes in `first..=last`: both ASCII, or both not. If `first` is NUL, bytes
    /// beyond the end of the text may be included.
    fn between(&self, first: u8, last: u8) -> u64;
    /// Returns the continuation bytes.
    fn continuation(&self) -> u64;
    /// Returns the bytes of whole characters in the window, as the low bits.
    fn valid(&self) -> u64;
}

/// Classifies windows.
pub(super) trait Classifier: Copy {
    type Window: Window;
    /// Returns the window that begins at `at`, a character boundary of the UTF-8 text before its
    /// end.
    fn window(self, text: &[u8], at: usize) -> Self::Window;
    /// Returns the window that begins at `at` without classes: `any` and `continuation` are empty,
    /// and a character that does not end in the window is kept.
    fn bytes(self, text: &[u8], at: usize) -> Self::Window;

    /// Writes the pieces that end at the bits of `starts`, which count from `at`; the first piece
    /// begins at `at`. May also write later slots.
    #[inline(always)]
    fn emit(self, mut starts: u64, at: usize, out: &mut [Piece; WINDOW]) {
        // Most windows have at most 16 pieces: writes two groups without a branch, then the rest.
        let mut start = at;
        for (index, group) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            if index >= 2 && starts == 0 {
                break;
            }
            for slot in group {
                let end = at + starts.trailing_zeros() as usize;
                *slot = Piece { start, end };
                start = end;
                starts &= starts.wrapping_sub(1);
            }
        }
    }
}

/// Code generic over the classifier of a tier; `run` must be inlined, so that it is compiled for
/// the instructions of the tier.
pub(super) trait Kernel {
    type Output;
    fn run<C: Classifier>(self, classifier: C) -> Self::Output;
}

impl Tier {
    /// Runs `kernel` on this tier.
    #[inline]
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.kind() {
            // SAFETY: the tier guarantees the instructions.
            #[cfg(target_arch = "x86_64")]
            crate::tier::Instructions::Avx512 => unsafe { x86::run_avx512(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            crate::tier::Instructions::Avx2 => unsafe { x86::run_avx2(kernel) },
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            crate::tier::Instructions::Neon => kernel.run(neon::Neon),
            _ => kernel.run(portable::Portable),
        }
    }
}

/// Classifies multi-byte characters, for tiers that look them up one by one: adds them to
/// `by_class`, where entry k is the mask of class bit k. `leads` has the first bytes of these
/// characters. Returns the bytes of the characters that end in the window.
#[inline(never)]
fn add_multibyte(text: &[u8], at: usize, mut leads: u64, by_class: &mut [u64; 8]) -> u64 {
    let mut add = |mut class: u8, bytes: u64| {
        while class != 0 {
            by_class[class.trailing_zeros() as usize] |= bytes;
            class &= class - 1;
        }
    };
    // Neighbors mostly share a class, so runs of one class are added together.
    let (mut same_class, mut same_bytes) = (0, 0);
    let mut valid = u64::MAX;
    while leads != 0 {
        let offset = leads.trailing_zeros() as usize;
        let Some((class, width)) = chars::class_at(text, at + offset) else { break };
        if offset + width > WINDOW {
            valid = (1 << offset) - 1;
            break;
        }
        if class != same_class {
            add(same_class, same_bytes);
            (same_class, same_bytes) = (class, 0);
        }
        same_bytes |= ((1 << width) - 1) << offset;
        leads &= leads - 1;
    }
    add(same_class, same_bytes);
    valid
}

/// Returns a mask of the `count` low bits.
#[inline(always)]
fn low_bits(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}
