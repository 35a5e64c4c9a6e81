//! A prepared cache look-up of one piece; many look-ups can wait for memory at the same time.

use crate::cache::SetIndex;
use crate::split::Piece;
use crate::vocabulary::{Key, length_of};

/// A pending look-up of a piece or of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Probe {
    pub(super) key: Key,
    pub(super) start: usize,
    /// The home set: in the cache's table of short pieces, unless the key is a [`key_of_other`].
    pub(super) set: SetIndex,
}

impl Probe {
    /// Returns the key and the set, for the cache.
    #[inline(always)]
    pub(super) fn place(&self) -> (Key, SetIndex) {
        (self.key, self.set)
    }

    #[inline(always)]
    pub(super) fn piece(&self) -> Piece {
        Piece { start: self.start, end: self.start + length_of(self.key) }
    }
}
