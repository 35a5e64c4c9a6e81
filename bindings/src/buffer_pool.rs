//! Buffers for texts and ids that are used again. Each page of fresh memory costs a page fault, for a
//! long text a good part of the time that encoding takes; for a short one, asking the allocator does.

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

/// How many long buffers of a kind are kept, and how many bytes each may have room for: 32 MiB in
/// all for the two kinds.
const BUFFERS: usize = 2;
const LARGEST: usize = 8 << 20;
/// Buffers of this many bytes are long. Of shorter ones each thread keeps one of a kind.
const LONG: usize = 1 << 16;
/// The least bytes of a thread's short buffer.
const SHORTEST: usize = 1 << 11;
/// The largest header of an allocator: memory of whole huge pages less this is aligned to them.
const ADDED: usize = 64;

/// Room for the ids of this many bytes of text, and for what looking them up asks for beyond them,
/// more than they need in most cases: to grow a buffer would copy it.
pub fn likely_ids(bytes: usize) -> usize {
    if bytes < LONG { bytes.min(bytes / 4 + 2048) + 4 } else { bytes / 2 }
}

/// Room for the bytes of this many ids.
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

    /// An empty vector with room for `capacity` items or more, or for none if the system has no
    /// memory for that many.
    pub fn take(&self, capacity: usize) -> Vec<T> {
        let bytes = capacity.saturating_mul(size_of::<T>());
        if bytes < LONG || !Mechanism::BufferPool.is_used() {
            return empty(capacity);
        }
        if let Ok(mut spare) = self.long.try_lock()
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

    /// The same for a vector that this call gives back: a short one may be the thread's, and have
    /// much more room.
    pub fn borrow(&self, capacity: usize) -> Vec<T> {
        let bytes = capacity.saturating_mul(size_of::<T>());
        if bytes >= LONG || !Mechanism::BufferPool.is_used() {
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
        if bytes < LONG {
            // Of two the larger one stays; none in a thread that is about to end.
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

/// An empty vector with room for `capacity` items if there is memory for them.
fn empty<T>(capacity: usize) -> Vec<T> {
    let mut items = Vec::new();
    // Whoever fills it asks for room again, and reports that there is none.
    let _ = items.try_reserve_exact(capacity);
    items
}
