//! The size of a cache, and how to parse and print it: `64MiB`.

use crate::error::{Error, Result};

/// The size of a cache in bytes, a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheSize(usize);

impl CacheSize {
    /// 64 KiB.
    pub const MIN: Self = Self(1 << 16);
    /// 8 MiB: a larger cache holds more pieces, but misses the processor's caches more often.
    pub const DEFAULT: Self = Self(1 << 23);
    /// 1 GiB.
    pub const MAX: Self = Self(1 << 30);

    /// Returns the largest size of at most `bytes` bytes; fails if `bytes` is less than
    /// [`CacheSize::MIN`] or more than [`CacheSize::MAX`].
    pub fn new(bytes: usize) -> Result<Self> {
        if !(Self::MIN.0..=Self::MAX.0).contains(&bytes) {
            return Err(Error::CacheSize(bytes.to_string()));
        }
        Ok(Self(1 << bytes.ilog2()))
    }

    /// Returns the number of bytes.
    pub fn bytes(self) -> usize {
        self.0
    }

    /// Returns the size in bytes of the table for short pieces: half of the cache.
    pub(super) fn short(self) -> usize {
        self.0 / 2
    }

    /// Returns the size in bytes of each table for longer pieces: a quarter of the cache.
    pub(super) fn longer(self) -> usize {
        self.0 / 4
    }
}

/// Parses a number of bytes, or a number with the unit `KiB`, `MiB` or `GiB`: `8388608`, `64 MiB`.
impl std::str::FromStr for CacheSize {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::CacheSize(format!("{text:?}"));
        let text = text.trim_ascii();
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let shift = match text[digits.len()..].trim_ascii() {
            "" => 0,
            "KiB" => 10,
            "MiB" => 20,
            "GiB" => 30,
            _ => return Err(wrong()),
        };
        let number = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.and_then(|digits| digits.parse::<usize>().ok()).ok_or_else(wrong)?;
        number.checked_mul(1 << shift).and_then(|bytes| Self::new(bytes).ok()).ok_or_else(wrong)
    }
}
