//! An allocator that fails on request.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Smaller allocations never fail: they are smaller than the input.
const LARGE_ALLOCATION: usize = 384 * 1024;

/// Number of further large allocations that succeed; the maximum means all.
pub static LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Failing;

impl Failing {
    fn fails(size: usize) -> bool {
        let less = |left: usize| match left {
            usize::MAX => None,
            left => Some(left.saturating_sub(1)),
        };
        size >= LARGE_ALLOCATION && LEFT.fetch_update(SeqCst, SeqCst, less) == Ok(0)
    }
}

// SAFETY: forwards to the system's allocator, or returns a null pointer, which means that there is
// no memory.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::fails(layout.size()) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; all memory is from the system's allocator.
        unsafe { System.dealloc(memory, layout) };
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if Self::fails(size) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;
