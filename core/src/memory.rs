//! Memory for fast access: huge pages, prefetching, and allocations that may fail.

use std::hint::black_box;
use std::mem::MaybeUninit;

use crate::ablation::Mechanism;
use crate::error::{Error, Result};
use crate::system::{self, HUGE_PAGE};

/// Zeroed memory, on huge pages if the system grants them: look-ups at random positions then seldom
/// miss the TLB. Pages are mapped on first touch.
#[derive(Debug)]
pub struct Zeroed {
    map: system::Map,
    start: usize,
    length: usize,
}

impl Zeroed {
    /// Allocates `length` bytes, or returns `None` if the system is out of memory.
    pub fn new(length: usize) -> Option<Self> {
        let memory = Self::on_small_pages(length)?;
        memory.use_huge_pages();
        Some(memory)
    }

    /// Allocates on small pages, until [`Self::use_huge_pages`].
    pub fn on_small_pages(length: usize) -> Option<Self> {
        let map = system::map(length + HUGE_PAGE)?;
        let start = map.as_ptr().align_offset(HUGE_PAGE);
        Some(Self { map, start, length })
    }

    /// Uses huge pages for untouched memory; the system may move other memory to huge pages over
    /// time. Best effort: systems without huge pages use small pages.
    pub fn use_huge_pages(&self) {
        if Mechanism::HugePages.is_used() {
            system::advise_huge_pages(&raw const self.map[..]);
        }
    }

    /// Returns a pointer to the first byte, which is aligned to [`HUGE_PAGE`].
    pub fn as_ptr(&self) -> *const u8 {
        self.map.as_ptr().wrapping_add(self.start)
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map[self.start..self.start + self.length]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.start + self.length]
    }
}

/// Asks the system to back a large block of memory with huge pages when it is first touched: 512
/// times fewer page faults than with small pages. Best effort.
pub fn advise_huge_pages<T>(memory: *const [T]) {
    if memory.len().saturating_mul(size_of::<T>()) >= HUGE_PAGE && Mechanism::HugePages.is_used() {
        system::advise_huge_pages(memory);
    }
}

/// Writes a copy of `values` to `room`, which has the same length.
#[inline(always)]
pub fn write_copy<T: Copy>(room: &mut [MaybeUninit<T>], values: &[T]) {
    assert_eq!(room.len(), values.len());
    for (place, &value) in room.iter_mut().zip(values) {
        place.write(value);
    }
}

/// Asks the processor to fetch the memory of `value`, which will be read soon.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    if !Mechanism::Prefetch.is_used() {
        return;
    }
    let address = std::ptr::from_ref(value);
    // SAFETY: a prefetch reads nothing and never faults, and every x86-64 processor has it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{}]", in(reg) address, options(readonly, nostack, preserves_flags)
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Reserves room for `additional` more values, or fails with [`Error::OutOfMemory`].
pub fn reserve<T>(values: &mut Vec<T>, additional: usize) -> Result<()> {
    values
        .try_reserve(additional)
        .map_err(|_| Error::OutOfMemory { bytes: additional.saturating_mul(size_of::<T>()) })
}

/// Appends a value, or fails with [`Error::OutOfMemory`]; for lists that grow with a text.
#[inline]
pub fn push<T>(values: &mut Vec<T>, value: T) -> Result<()> {
    reserve(values, 1)?;
    values.push(value);
    Ok(())
}

/// Fails if the system cannot allocate `bytes`. For work whose allocations cannot fail cleanly.
pub fn ask_for(bytes: usize) -> Result<()> {
    let mut room = Vec::<u8>::new();
    reserve(&mut room, bytes)?;
    // Keeps the compiler from removing the unused allocation.
    black_box(room.as_mut_ptr());
    Ok(())
}

/// Appends values, or fails with [`Error::OutOfMemory`].
#[inline]
pub fn append<T: Clone>(values: &mut Vec<T>, more: &[T]) -> Result<()> {
    reserve(values, more.len())?;
    values.extend_from_slice(more);
    Ok(())
}

/// Creates an empty vector with room for `count` values, or fails with [`Error::OutOfMemory`].
pub fn with_capacity<T>(count: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    reserve(&mut values, count)?;
    Ok(values)
}

/// Like [`append`], for text.
#[inline]
pub fn append_text(text: &mut String, more: &str) -> Result<()> {
    reserve_text(text, more.len())?;
    text.push_str(more);
    Ok(())
}

/// Like [`reserve`], for text.
#[inline]
pub fn reserve_text(text: &mut String, bytes: usize) -> Result<()> {
    text.try_reserve(bytes).map_err(|_| Error::OutOfMemory { bytes })
}

/// Creates a vector of `count` zeros, on huge pages if the vector is large.
pub(crate) fn zeroed(count: usize) -> Vec<u64> {
    let values = bytemuck::allocation::zeroed_vec(count);
    advise_huge_pages(&raw const *values);
    values
}
