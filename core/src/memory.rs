//! Memory that is read and written fast.

use memmap2::MmapMut;

use crate::ablation::Mechanism;

/// How large huge pages are, and what they are aligned to, on the machines that have them.
pub const HUGE_PAGE: usize = 2 << 20;

/// Zeroed memory, on huge pages where the system grants them: a look-up at a random place then
/// seldom has to find out first where its page is. Pages are taken when they are first touched.
#[derive(Debug)]
pub(crate) struct Zeroed {
    map: MmapMut,
    start: usize,
    length: usize,
}

impl Zeroed {
    /// `length` bytes, or `None` when the system has no memory for them.
    pub(crate) fn new(length: usize) -> Option<Self> {
        let map = MmapMut::map_anon(length + HUGE_PAGE).ok()?;
        // A wish: systems without huge pages do without.
        #[cfg(target_os = "linux")]
        if Mechanism::HugePages.is_used() {
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        let start = map.as_ptr().align_offset(HUGE_PAGE);
        Some(Self { map, start, length })
    }

    /// Takes all pages now, so that nobody meets them one by one later. A wish.
    pub(crate) fn populate(&self) {
        #[cfg(target_os = "linux")]
        if Mechanism::Populate.is_used() {
            let advice = memmap2::Advice::PopulateWrite;
            let _ = self.map.advise_range(advice, self.start, self.length);
        }
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map[self.start..self.start + self.length]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.start + self.length]
    }
}

/// Asks the system to put large memory on huge pages as it is first touched: 512 times fewer
/// interruptions than with small ones. A wish: systems without huge pages do without.
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
/// read. A wish: systems that cannot do without.
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

/// Asks for the memory of `value` to be brought near, which will be read soon.
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
