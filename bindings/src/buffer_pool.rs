//! Buffers for texts and ids that are used again. Each page of fresh memory costs a page fault, for a
//! long text a good part of the time that encoding takes.

use std::sync::Mutex;

use bpe_core::ablation::Mechanism;
use bpe_core::memory::advise_huge_pages;

/// The ids of long texts.
pub static IDS: BufferPool<u32> = BufferPool::new();
/// Long texts as UTF-8.
pub static TEXT: BufferPool<u8> = BufferPool::new();

/// How many buffers of a kind are kept, and how many bytes each may have room for: 32 MiB in all
/// for the two kinds.
const BUFFERS: usize = 2;
const LARGEST: usize = 8 << 20;
/// Below this the allocator is as fast.
const SMALLEST: usize = 1 << 16;
/// The largest header of an allocator: memory of whole huge pages less this is aligned to them.
const ADDED: usize = 64;

/// Room for the ids of this many bytes of text, more than they need in most cases: to grow a buffer
/// would copy it.
pub fn likely_ids(bytes: usize) -> usize {
    if bytes < SMALLEST { bytes.min(bytes / 4 + 2048) + 4 } else { bytes / 2 }
}

/// Room for the bytes of this many ids.
pub fn likely_bytes(ids: usize) -> usize {
    ids.saturating_mul(5).saturating_add(32)
}

/// Buffers for items of one type.
pub struct BufferPool<T>(Mutex<Vec<Vec<T>>>);

impl<T> BufferPool<T> {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// An empty vector with room for `capacity` items or more, or for none if the system has no
    /// memory for that many.
    pub fn take(&self, capacity: usize) -> Vec<T> {
        let bytes = capacity.saturating_mul(size_of::<T>());
        if bytes < SMALLEST || !Mechanism::BufferPool.is_used() {
            return empty(capacity);
        }
        if let Ok(mut spare) = self.0.try_lock()
            && let Some(place) = spare.iter().position(|items| items.capacity() >= capacity)
        {
            return spare.swap_remove(place);
        }
        // Of few different sizes, so that the next text fits in as well. Memory that is not
        // touched costs nothing.
        let bytes = bytes.checked_next_power_of_two().unwrap_or(bytes) - ADDED;
        let mut items = empty(capacity.max(bytes / size_of::<T>()));
        advise_huge_pages(items.spare_capacity_mut());
        items
    }

    /// Keeps a vector that is no longer needed, or frees it.
    pub fn give(&self, mut items: Vec<T>) {
        if (SMALLEST / 2..=LARGEST).contains(&(items.capacity() * size_of::<T>()))
            && let Ok(mut spare) = self.0.try_lock()
            && spare.len() < BUFFERS
        {
            items.clear();
            spare.push(items);
        }
    }
}

/// An empty vector with room for `capacity` items if there is memory for them.
fn empty<T>(capacity: usize) -> Vec<T> {
    let mut items = Vec::new();
    // Whoever fills it asks for room again, and reports that there is none.
    let _ = items.try_reserve_exact(capacity);
    items
}
