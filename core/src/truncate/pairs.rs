//! Whether pairs of ids stay apart, kept from one candidate to the next: many end in the same few tokens.

use std::cell::Cell;

use super::Truncator;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    left: u32,
    right: u32,
    stay_apart: bool,
}

/// Those that were looked at last, by their ids.
#[derive(Debug, Default)]
pub(super) struct Pairs([Cell<Option<Pair>>; KEPT]);

const KEPT: usize = 32;

impl Truncator<'_> {
    /// Whether these two ids, next to each other in a piece, are certain to be what merging their bytes
    /// ends in.
    ///
    /// Two sequences of ids, each the encoding of its bytes, are together the encoding of all of the
    /// bytes if the last id of the one and the first of the other stay apart on their own, in ordered
    /// vocabularies.
    pub(super) fn stay_apart(&self, left: u32, right: u32) -> bool {
        let slot = &self.memo.pairs.0[(left.wrapping_mul(31) ^ right) as usize % KEPT];
        let known = slot.get().filter(|pair| (pair.left, pair.right) == (left, right));
        known.map_or_else(
            || {
                let stay_apart = self.encoding.stay_apart(left, right);
                slot.set(Some(Pair { left, right, stay_apart }));
                stay_apart
            },
            |pair| pair.stay_apart,
        )
    }
}
