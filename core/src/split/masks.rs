//! Classifies 64 bytes of text at once: the only SIMD of the crate.
//!
//! A window is 64 bytes from a character boundary on. Asked for a set of classes it gives a mask
//! with one bit per byte, bit 0 for the first; all bytes of a character have its class. A
//! character that does not end in the window is left out of it.
//!
//! There are three tiers: AVX-512 with VBMI, AVX2, and a portable one. Each is a [`Classifier`],
//! a value that exists only where the processor has what it needs.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::{Piece, chars};

/// How many bytes a window has at most.
pub(super) const WINDOW: usize = 64;

/// The name of the environment variable that lowers the tier.
const TIER_VARIABLE: &str = "BPE_ENGINE_TIER";

/// A classified stretch of text.
pub(super) trait Window: Copy {
    /// The bytes of the characters that have any of `classes`.
    fn any(&self, classes: u8) -> u64;
    /// The bytes equal to `byte`, which is ASCII but not NUL.
    fn equal(&self, byte: u8) -> u64;
    /// The bytes that begin no character.
    fn continuation(&self) -> u64;
    /// The bytes of the window: all those of its characters, as the low bits.
    fn valid(&self) -> u64;
}

/// A way to classify.
pub(super) trait Classifier: Copy {
    type Window: Window;
    /// The window that begins at `at`, a character boundary of the UTF-8 text before its end.
    fn window(self, text: &[u8], at: usize) -> Self::Window;

    /// Writes the pieces that end at the bits of `starts`, counted from `at`, where the first of
    /// them begins. Slots behind them may be written too.
    #[inline(always)]
    fn emit(self, mut starts: u64, at: usize, out: &mut [Piece; WINDOW]) {
        // Most windows have at most 16 pieces: two groups without a branch, then the rest.
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

/// Code to run with the classifier of a tier; `run` must be inlined, so that it is compiled for
/// the instructions of the tier.
pub(super) trait Kernel {
    type Output;
    fn run<C: Classifier>(self, classifier: C) -> Self::Output;
}

/// A tier that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Portable,
    Avx2,
    Avx512,
}

impl Tier {
    /// The best tier of this processor, or a lower one if the environment variable
    /// `BPE_ENGINE_TIER` names it: `portable`, `avx2` or `avx512`. Other values change nothing.
    pub fn from_environment() -> Self {
        Self::chosen(std::env::var(TIER_VARIABLE).ok().as_deref())
    }

    /// The tier for a value of the environment variable.
    pub(super) fn chosen(name: Option<&str>) -> Self {
        name.and_then(Self::named).unwrap_or_else(Self::best)
    }

    /// The best tier of this processor.
    pub fn best() -> Self {
        Self(best())
    }

    /// The tier `name`, or the best one below it that this processor has; `None` if there is no
    /// such name.
    ///
    /// ```
    /// use bpe_core::split::Tier;
    ///
    /// assert_eq!(Tier::named("portable").unwrap().name(), "portable");
    /// assert_eq!(Tier::named("avx1024"), None);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        let kind = match name {
            "portable" => Kind::Portable,
            "avx2" => Kind::Avx2,
            "avx512" => Kind::Avx512,
            _ => return None,
        };
        Some(Self(kind.min(best())))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            Kind::Avx2 => "avx2",
            Kind::Avx512 => "avx512",
        }
    }

    /// Runs `kernel` on this tier.
    #[inline]
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            // SAFETY: a tier is made by `best` and `named` only, and never above what the
            // processor was found to have.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { x86::run_avx512(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { x86::run_avx2(kernel) },
            _ => kernel.run(portable::Portable),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn best() -> Kind {
    if x86::has_avx512() {
        Kind::Avx512
    } else if x86::has_avx2() {
        Kind::Avx2
    } else {
        Kind::Portable
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn best() -> Kind {
    Kind::Portable
}

/// The classes of the characters of more than one byte, for the tiers that look them up one by
/// one: adds them to `by_class`, where entry k is the mask of class bit k. `leads` has the first
/// bytes of those characters. Returns the bytes of the characters that end in the window.
#[inline(never)]
fn add_multibyte(text: &[u8], at: usize, mut leads: u64, by_class: &mut [u64; 8]) -> u64 {
    let mut add = |mut class: u8, bytes: u64| {
        while class != 0 {
            by_class[class.trailing_zeros() as usize] |= bytes;
            class &= class - 1;
        }
    };
    // Neighbours mostly have the same class: they are added together.
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

/// A mask of the low `count` bits.
#[inline(always)]
fn low_bits(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}
