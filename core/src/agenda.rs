//! Merges to do, in the order of their ranks and places.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::error::{Error, Result};
use crate::memory::reserve;

/// No entry.
const NOWHERE: usize = usize::MAX;
/// The most rows that may grow.
const OPEN: usize = 64;

/// A priority queue: the lowest rank comes first, and of equal ones the lowest place.
///
/// In repetitive text, merges of one rank are found from left to right. Those form a row, and only the
/// first of a row is in the heap: a heap of a million is slow, since it is all over the memory.
#[derive(Debug)]
pub struct Agenda {
    /// The first of each row: rank, place and entry.
    heap: BinaryHeap<Reverse<(u32, usize, usize)>>,
    entries: Vec<Entry>,
    /// The first free entry.
    free: usize,
    /// The last entries of rows, where their rank says.
    open: [usize; OPEN],
}

/// A merge, or a free entry.
#[derive(Debug, Clone, Copy)]
struct Entry {
    rank: u32,
    place: usize,
    /// The next of the row, or the next free one.
    next: usize,
}

impl Default for Agenda {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), entries: Vec::new(), free: NOWHERE, open: [NOWHERE; OPEN] }
    }
}

impl Agenda {
    /// Forgets all merges.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.entries.clear();
        (self.free, self.open) = (NOWHERE, [NOWHERE; OPEN]);
    }

    /// Adds a merge.
    #[inline]
    pub fn push(&mut self, rank: u32, place: usize) -> Result<()> {
        let made = Entry { rank, place, next: NOWHERE };
        let index = self.free;
        let index = match self.entries.get_mut(index) {
            Some(entry) => {
                self.free = entry.next;
                *entry = made;
                index
            }
            None => {
                reserve(&mut self.entries, 1)?;
                self.entries.push(made);
                self.entries.len() - 1
            }
        };
        let last = std::mem::replace(&mut self.open[rank as usize % OPEN], index);
        match self.entries.get_mut(last) {
            Some(last) if last.rank == rank && last.place < place => last.next = index,
            _ => {
                let first = Reverse((rank, place, index));
                let bytes = size_of_val(&first);
                self.heap.try_reserve(1).map_err(|_| Error::OutOfMemory { bytes })?;
                self.heap.push(first);
            }
        }
        Ok(())
    }

    /// Takes the first merge: its rank and its place.
    #[inline]
    pub fn pop(&mut self) -> Option<(u32, usize)> {
        let mut first = self.heap.peek_mut()?;
        let Reverse((rank, place, index)) = *first;
        let next = std::mem::replace(&mut self.entries[index].next, self.free);
        self.free = index;
        match self.entries.get(next) {
            Some(entry) => *first = Reverse((rank, entry.place, next)),
            None => {
                PeekMut::pop(first);
                let open = &mut self.open[rank as usize % OPEN];
                if *open == index {
                    *open = NOWHERE;
                }
            }
        }
        Some((rank, place))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn merges_come_in_order(steps in prop::collection::vec((0_u32..200, 0_usize..50), 0..400)) {
            let (mut agenda, mut expected) = (Agenda::default(), BinaryHeap::new());
            for (rank, place) in steps {
                // A rank that many have, others, and rows from left to right.
                match rank {
                    0..50 => assert_eq!(agenda.pop(), expected.pop().map(|Reverse(first)| first)),
                    _ => {
                        let merge = (if rank < 150 { rank % 3 } else { rank }, place);
                        agenda.push(merge.0, merge.1).unwrap();
                        expected.push(Reverse(merge));
                    }
                }
            }
            for _ in 0..=expected.len() {
                assert_eq!(agenda.pop(), expected.pop().map(|Reverse(first)| first));
            }
            assert_eq!(agenda.free == NOWHERE, agenda.entries.is_empty());
            agenda.clear();
            assert_eq!(agenda.pop(), None);
        }
    }
}
