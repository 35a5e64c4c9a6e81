//! Merges one short piece by repeatedly scanning all ranks for the lowest.

use super::SCAN_LIMIT;
use super::initial::first_parts;
use crate::vocabulary::{NONE, Pairs};

/// Appends the parts of `piece`, at most [`SCAN_LIMIT`] bytes, to `out`. For ordered
/// vocabularies only.
pub(super) fn scan(pairs: &Pairs, piece: &[u8], out: &mut Vec<u32>) {
    let mut parts = Parts::start(pairs, piece);
    while let Some(at) = parts.merge_lowest() {
        for right in at.max(1)..(at + 2).min(parts.count) {
            parts.find_rank(pairs, right);
        }
    }
    out.extend_from_slice(&parts.parts[..parts.count]);
}

/// Remaining parts, and the rank of each part's merge with the next part.
struct Parts {
    parts: [u32; SCAN_LIMIT + 1],
    /// [`NONE`] for parts that do not merge, and for the last part.
    ranks: [u32; SCAN_LIMIT + 1],
    count: usize,
}

impl Parts {
    /// Finds the initial parts.
    #[inline(always)]
    fn start(pairs: &Pairs, piece: &[u8]) -> Self {
        let mut this =
            Self { parts: [NONE; SCAN_LIMIT + 1], ranks: [NONE; SCAN_LIMIT + 1], count: 0 };
        first_parts(pairs, piece, |first| {
            let at = this.count;
            this.parts[at] = first.part;
            this.count += 1;
            if !first.is_known {
                this.find_rank(pairs, at);
            } else if at > 0 {
                this.ranks[at - 1] = first.rank;
            }
        });
        this
    }

    /// Finds the rank of merging part `right` with its predecessor.
    #[inline(always)]
    fn find_rank(&mut self, pairs: &Pairs, right: usize) {
        self.ranks[right - 1] = pairs.merged(self.parts[right - 1], self.parts[right]);
    }

    /// Merges the lowest-ranked pair. Returns the index of the result; the ranks of its merges with
    /// its neighbors are still unknown.
    #[inline(always)]
    fn merge_lowest(&mut self) -> Option<usize> {
        let mut lowest = NONE;
        let mut at = 0;
        for (i, &rank) in self.ranks[..self.count].iter().enumerate() {
            if rank < lowest {
                (lowest, at) = (rank, i);
            }
        }
        if lowest == NONE {
            return None;
        }
        self.parts[at] = lowest;
        self.count -= 1;
        for i in at + 1..self.count {
            self.parts[i] = self.parts[i + 1];
            self.ranks[i] = self.ranks[i + 1];
        }
        self.ranks[self.count] = NONE;
        // The last part has no successor.
        self.ranks[at] = NONE;
        Some(at)
    }
}
