//! Differences between operating systems: mapped memory, advice about pages. No other module checks
//! for the operating system.

#[cfg(not(any(unix, windows)))]
pub(crate) use allocated::{Map, can_map, map};
#[cfg(any(unix, windows))]
pub(crate) use mapped::{Map, can_map, map};

/// Size and alignment of huge pages, on machines with huge pages.
pub const HUGE_PAGE: usize = 2 << 20;

#[cfg(any(unix, windows))]
mod mapped {
    use memmap2::{MmapMut, MmapOptions};

    /// Zeroed memory; pages are mapped on first touch.
    pub(crate) type Map = MmapMut;

    /// Maps memory, or returns `None` if the system is out of memory.
    pub(crate) fn map(length: usize) -> Option<Map> {
        MmapMut::map_anon(length).ok()
    }

    /// Returns whether the process can map `bytes` more bytes at once. Costs two system calls for
    /// any size. If true, small allocations of several threads do not fail.
    pub(crate) fn can_map(bytes: usize) -> bool {
        MmapOptions::new().len(bytes.max(1)).no_reserve_swap().map_anon().is_ok()
    }
}

/// Fallback for systems without memory mappings, such as WebAssembly: allocated memory.
#[cfg(not(any(unix, windows)))]
mod allocated {
    pub(crate) type Map = Box<[u8]>;

    pub(crate) fn map(length: usize) -> Option<Map> {
        bytemuck::allocation::try_zeroed_slice_box(length).ok()
    }

    pub(crate) fn can_map(_: usize) -> bool {
        true
    }
}

/// Asks for huge pages where `memory` is first touched; the system may move other memory to huge
/// pages over time. Best effort: systems other than Linux decide for themselves.
pub(crate) fn advise_huge_pages<T>(memory: *const [T]) {
    #[cfg(target_os = "linux")]
    advise(memory, libc::MADV_HUGEPAGE);
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Asks the system to map part of a file at once instead of page by page. Best effort.
pub fn prefault(part: &'static [u8]) {
    #[cfg(target_os = "linux")]
    advise(part, libc::MADV_POPULATE_READ);
    #[cfg(not(target_os = "linux"))]
    let _ = part;
}

/// Advises the system about the pages of `memory`; the advice neither changes nor frees them.
#[cfg(target_os = "linux")]
fn advise<T>(memory: *const [T], advice: libc::c_int) {
    const PAGE: usize = 4096;
    let start = memory.cast::<libc::c_void>().cast_mut();
    let before = start.addr() % PAGE;
    let length = before.saturating_add(memory.len().saturating_mul(size_of::<T>()));
    // SAFETY: the advice changes neither the contents of memory nor access to it, whoever owns the
    // pages; for unmapped pages it fails.
    unsafe { libc::madvise(start.wrapping_byte_sub(before), length, advice) };
}
