//! Vectors with room for what a call is likely to make: to grow one would copy it. Memory that is
//! never written to costs nothing.

/// Room for the ids of this many bytes of text, more than they need in most cases.
pub fn for_ids(bytes: usize) -> Vec<u32> {
    const LONG: usize = 1 << 16;
    if_there_is(if bytes < LONG { bytes.min(bytes / 4 + 2048) + 4 } else { bytes / 2 })
}

/// Room for the bytes of this many ids.
pub fn for_bytes(ids: usize) -> Vec<u8> {
    if_there_is(ids.saturating_mul(5).saturating_add(32))
}

/// An empty vector with room for `capacity` items, or for none: whoever fills it asks for room
/// again, and reports that there is none.
pub fn if_there_is<T>(capacity: usize) -> Vec<T> {
    let mut items = Vec::new();
    let _ = items.try_reserve_exact(capacity);
    items
}
