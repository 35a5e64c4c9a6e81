//! Memory for ids that was used before. Fresh memory is slow when it is first touched: for a long
//! text that takes a good part of the time that encoding does.

use std::sync::Mutex;

/// How many buffers are kept, and how many ids each may have room for: 16 MiB in all.
const BUFFERS: usize = 2;
const LARGEST: usize = 2 << 20;
/// Below this the allocator is as fast.
const SMALLEST: usize = 1 << 14;

static SPARE: Mutex<Vec<Vec<u32>>> = Mutex::new(Vec::new());

/// An empty vector with room for about `capacity` ids.
pub fn take(capacity: usize) -> Vec<u32> {
    if (SMALLEST..=LARGEST).contains(&capacity)
        && let Ok(mut spare) = SPARE.try_lock()
        && let Some(place) = spare.iter().position(|ids| ids.capacity() >= capacity / 4 * 3)
    {
        return spare.swap_remove(place);
    }
    Vec::with_capacity(capacity)
}

/// Keeps a vector that is no longer needed, or frees it.
pub fn give(mut ids: Vec<u32>) {
    if (SMALLEST..=LARGEST).contains(&ids.capacity())
        && let Ok(mut spare) = SPARE.try_lock()
        && spare.len() < BUFFERS
    {
        ids.clear();
        spare.push(ids);
    }
}
