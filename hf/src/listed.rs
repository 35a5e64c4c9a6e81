//! Merging by the list of a file itself, where no ranks say the same.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use foldhash::fast::FixedState;

pub(crate) type FastMap<K, V> = HashMap<K, V, FixedState>;

/// Two tokens, by id.
pub(crate) type Pair = (u32, u32);

/// What the list says.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The id of each byte.
    pub(crate) bytes: Vec<u32>,
    /// What a pair becomes, and when: `(place in the list, id)`.
    pub(crate) pairs: FastMap<Pair, (u32, u32)>,
}

impl Listed {
    /// Appends the ids of one piece: the pair that comes first in the list merges, the leftmost of
    /// equals, until none is left.
    pub(crate) fn merge(&self, piece: &[u8], ids: &mut Vec<u32>) {
        let end = piece.len();
        let mut parts: Vec<u32> = piece.iter().map(|&b| self.bytes[usize::from(b)]).collect();
        // Part i starts at byte i; 0 marks one that was merged into the part before it.
        let mut next: Vec<usize> = (1..=end).collect();
        let mut previous: Vec<usize> = (0..end).map(|at| at.wrapping_sub(1)).collect();
        let merge = |parts: &[u32], next: &[usize], left: usize| {
            let right = *parts.get(next[left])?;
            self.pairs.get(&(parts[left], right)).copied()
        };
        let mut queue: BinaryHeap<Reverse<(u32, usize)>> = (0..end)
            .filter_map(|left| Some(Reverse((merge(&parts, &next, left)?.0, left))))
            .collect();
        while let Some(Reverse((place, left))) = queue.pop() {
            let Some((now, product)) = merge(&parts, &next, left).filter(|_| next[left] != 0)
            else {
                continue;
            };
            if now != place {
                continue;
            }
            let right = next[left];
            parts[left] = product;
            next[left] = next[right];
            next[right] = 0;
            if next[left] < end {
                previous[next[left]] = left;
            }
            for left in [previous[left], left] {
                if left < end
                    && let Some((place, _)) = merge(&parts, &next, left)
                {
                    queue.push(Reverse((place, left)));
                }
            }
        }
        let mut at = 0;
        while at < end {
            ids.push(parts[at]);
            at = next[at];
        }
    }
}
