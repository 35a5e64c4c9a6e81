//! Memory that is read and written fast: huge pages, mapping ahead, prefetching.

use memmap2::MmapMut;

use crate::ablation::Mechanism;
use crate::error::{Error, Result};

/// The size and alignment of huge pages, on the machines that have them.
pub const HUGE_PAGE: usize = 2 << 20;

/// Zeroed memory, on huge pages where the system grants them: look-ups at random places then seldom
/// miss the processor's cache of page addresses. Pages are mapped when they are first touched.
#[derive(Debug)]
pub struct Zeroed {
    map: MmapMut,
    start: usize,
    length: usize,
}

impl Zeroed {
    /// `length` bytes, or `None` when the system has no memory for them.
    pub fn new(length: usize) -> Option<Self> {
        let memory = Self::on_small_pages(length)?;
        memory.use_huge_pages();
        Some(memory)
    }

    /// The same on small pages, until [`Self::use_huge_pages`].
    pub fn on_small_pages(length: usize) -> Option<Self> {
        let map = MmapMut::map_anon(length + HUGE_PAGE).ok()?;
        let start = map.as_ptr().align_offset(HUGE_PAGE);
        Some(Self { map, start, length })
    }

    /// Puts what has not been touched yet on huge pages; the system may move the rest in time. Best
    /// effort: systems without huge pages use small ones.
    pub fn use_huge_pages(&self) {
        #[cfg(target_os = "linux")]
        if Mechanism::HugePages.is_used() {
            let _ = self.map.advise(memmap2::Advice::HugePage);
        }
    }

    /// The first byte, aligned to [`HUGE_PAGE`].
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

/// Asks the system to put large memory on huge pages as it is first touched: 512 times fewer page
/// faults than with small ones. Best effort.
pub fn advise_huge_pages<T>(memory: *const [T]) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let bytes = memory.len().saturating_mul(size_of::<T>());
        let start = memory.cast::<libc::c_void>().cast_mut();
        let before = start.addr() % PAGE;
        if bytes >= HUGE_PAGE && Mechanism::HugePages.is_used() {
            let (start, length) = (start.wrapping_byte_sub(before), (before + bytes) / PAGE * PAGE);
            // SAFETY: the advice changes neither what is in memory nor whether it may be used,
            // whoever it belongs to; where there is none, it is refused.
            unsafe { libc::madvise(start, length, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Has the system map all of a part of a file at once, rather than page by page as each is first
/// read. Best effort.
pub fn prefault(part: &'static [u8]) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let start = part.as_ptr().cast_mut().cast::<libc::c_void>();
        let before = start.addr() % PAGE;
        // SAFETY: the advice changes neither what is in memory nor whether it may be used. It is
        // given for the pages of `part`, which are there for good.
        unsafe {
            let start = start.wrapping_byte_sub(before);
            libc::madvise(start, before + part.len(), libc::MADV_POPULATE_READ);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = part;
}

/// Asks the processor to fetch the memory of `value`, which will be read soon.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        if !Mechanism::Prefetch.is_used() {
            return;
        }
        // SAFETY: a prefetch reads nothing and never faults, and every x86-64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Makes room for `additional` values more, or says that there is none.
pub fn reserve<T>(values: &mut Vec<T>, additional: usize) -> Result<()> {
    values
        .try_reserve(additional)
        .map_err(|_| Error::OutOfMemory { bytes: additional.saturating_mul(size_of::<T>()) })
}

/// Appends a value, for lists that grow with the input.
#[inline]
pub fn push<T>(values: &mut Vec<T>, value: T) -> Result<()> {
    reserve(values, 1)?;
    values.push(value);
    Ok(())
}

/// Appends values.
#[inline]
pub(crate) fn append<T: Clone>(values: &mut Vec<T>, more: &[T]) -> Result<()> {
    reserve(values, more.len())?;
    values.extend_from_slice(more);
    Ok(())
}

/// The values of an iterator.
pub(crate) fn collected<T>(values: impl Iterator<Item = T>) -> Result<Vec<T>> {
    let mut list = with_capacity(values.size_hint().0)?;
    for value in values {
        push(&mut list, value)?;
    }
    Ok(list)
}

/// [`reserve`] for text.
pub(crate) fn reserve_text(text: &mut String, bytes: usize) -> Result<()> {
    text.try_reserve(bytes).map_err(|_| Error::OutOfMemory { bytes })
}

/// Appends text, for texts that grow with the input.
pub fn push_text(text: &mut String, more: &str) -> Result<()> {
    reserve_text(text, more.len())?;
    text.push_str(more);
    Ok(())
}

/// An empty vector with room for `count` values.
pub(crate) fn with_capacity<T>(count: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    reserve(&mut values, count)?;
    Ok(values)
}

/// `count` times `value`.
pub(crate) fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>> {
    let mut values = with_capacity(count)?;
    values.resize(count, value);
    Ok(values)
}

/// `count` zeroes, on huge pages where they are many.
pub(crate) fn zeroed(count: usize) -> Result<Vec<u64>> {
    let values = bytemuck::allocation::try_zeroed_slice_box(count)
        .map_err(|()| Error::OutOfMemory { bytes: count.saturating_mul(size_of::<u64>()) })?;
    advise_huge_pages(&raw const *values);
    Ok(values.into_vec())
}
