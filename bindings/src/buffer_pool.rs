//! Reusable buffers for texts and ids. Otherwise page faults in fresh memory would take much of the
//! time to encode a long text, and allocator calls much of the time to encode a short text.

use std::cell::Cell;
use std::sync::Mutex;
use std::thread::LocalKey;

use bpe_core::ablation::Mechanism;
use bpe_core::memory::advise_huge_pages;

/// Token ids.
pub static IDS: BufferPool<u32> = BufferPool::new(&SHORT_IDS);
/// Texts as UTF-8.
pub static TEXT: BufferPool<u8> = BufferPool::new(&SHORT_TEXT);

thread_local! {
    static SHORT_IDS: Cell<Vec<u32>> = const { Cell::new(Vec::new()) };
    static SHORT_TEXT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Maximum number of long buffers kept of each kind, and maximum size of each: 32 MiB in total.
const BUFFERS: usize = 2;
const LARGEST: usize = 8 << 20;
/// Buffers of at least this many bytes are long. Each thread keeps one shorter buffer of each kind.
const LONG_BUFFER: usize = 1 << 16;
/// Minimum size in bytes of a thread's short buffer.
const SHORTEST: usize = 1 << 11;
/// Maximum size of an allocator's header: a buffer of whole huge pages, less this size, is aligned
/// to them.
const ADDED: usize = 64;

/// Returns a capacity for the ids of this many bytes of text, with the extra room that look-ups
/// require. Usually more than needed, since growing a buffer copies it.
pub fn likely_ids(bytes: usize) -> usize {
    if bytes < LONG_BUFFER { bytes.min(bytes / 4 + 2048) + 4 } else { bytes / 2 }
}

/// Returns a capacity for the bytes of this many ids.
pub fn likely_bytes(ids: usize) -> usize {
    ids.saturating_mul(5).saturating_add(32)
}

/// Buffers for items of one type.
pub struct BufferPool<T: 'static> {
    long: Mutex<Vec<Vec<T>>>,
    short: &'static LocalKey<Cell<Vec<T>>>,
}

impl<T> BufferPool<T> {
    const fn new(short: &'static LocalKey<Cell<Vec<T>>>) -> Self {
        Self { long: Mutex::new(Vec::new()), short }
    }

    /// Returns an empty vector with room for at least `capacity` items, or without room if memory
    /// runs out.
    pub fn take(&self, capacity: usize) -> Vec<T> {
        let bytes = capacity.saturating_mul(size_of::<T>());
        if bytes < LONG_BUFFER || !Mechanism::BufferPool.is_used() {
            return empty(capacity);
        }
        if let Ok(mut spare) = self.long.try_lock()
            && let Some(place) = spare.iter().position(|items| items.capacity() >= capacity)
        {
            return spare.swap_remove(place);
        }
        // Few distinct sizes, so that the buffer fits later texts. Untouched memory costs nothing.
        let bytes = bytes.checked_next_power_of_two().unwrap_or(bytes) - ADDED;
        let mut items = empty(capacity.max(bytes / size_of::<T>()));
        advise_huge_pages(items.spare_capacity_mut());
        items
    }

    /// Takes a vector that the caller soon gives back: a short vector may be the thread's buffer,
    /// with much more room.
    pub fn borrow(&self, capacity: usize) -> Vec<T> {
        let bytes = capacity.saturating_mul(size_of::<T>());
        if bytes >= LONG_BUFFER || !Mechanism::BufferPool.is_used() {
            return self.take(capacity);
        }
        let items = self.short.try_with(Cell::take).unwrap_or_default();
        if items.capacity() >= capacity {
            return items;
        }
        empty(bytes.next_power_of_two().max(SHORTEST) / size_of::<T>())
    }

    /// Keeps a vector that is no longer needed, or frees it.
    pub fn give(&self, mut items: Vec<T>) {
        let bytes = items.capacity() * size_of::<T>();
        items.clear();
        if bytes < LONG_BUFFER {
            // Keeps the larger buffer; a thread that is about to end keeps none.
            let _ = self.short.try_with(|short| {
                let other = short.take();
                short.set(if other.capacity() > items.capacity() { other } else { items });
            });
        } else if bytes <= LARGEST
            && let Ok(mut spare) = self.long.try_lock()
            && spare.len() < BUFFERS
        {
            spare.push(items);
        }
    }
}

/// Returns an empty vector with room for `capacity` items, if memory permits.
fn empty<T>(capacity: usize) -> Vec<T> {
    let mut items = Vec::new();
    // The code that fills the buffer reserves room again and reports missing memory.
    let _ = items.try_reserve_exact(capacity);
    items
}
