//! How often each piece occurs.

use crate::error::{Error, Result};
use crate::hash::{FIXED_SEEDS, hash_bytes};
use crate::memory::{filled, reserve};

/// Distinct pieces and their counts, in the order in which they were met.
#[derive(Debug, Default)]
pub struct PieceTable {
    /// The bytes of all pieces.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Open addressing: the number of an entry plus one in the lower half, a part of its hash in
    /// the upper. The length is a power of two, and at most three quarters are in use.
    slots: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: usize,
    length: u32,
    count: u64,
}

/// The slots of a table that is not empty.
const FEWEST_SLOTS: usize = 1 << 10;

/// The most distinct pieces of one table.
const MOST_PIECES: usize = u32::MAX as usize - 1;

impl PieceTable {
    /// Counts `piece` `times` times more. Counts stop at the largest `u64`.
    ///
    /// Fails with [`Error::OutOfMemory`] when there is no memory for a new piece.
    pub fn add(&mut self, piece: &[u8], times: u64) -> Result<()> {
        if self.entries.len() >= self.slots.len() / 4 * 3 {
            self.grow()?;
        }
        let hash = hash_bytes(piece, FIXED_SEEDS);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            if slot >> 32 == hash >> 32 {
                let entry = &mut self.entries[slot as u32 as usize - 1];
                if self.bytes[entry.start..entry.start + entry.length as usize] == *piece {
                    entry.count = entry.count.saturating_add(times);
                    return Ok(());
                }
            }
            at = (at + 1) & mask;
        }
        let length =
            u32::try_from(piece.len()).map_err(|_| Error::OutOfMemory { bytes: piece.len() })?;
        let start = self.bytes.len();
        reserve(&mut self.bytes, piece.len())?;
        reserve(&mut self.entries, 1)?;
        self.slots[at] = (hash >> 32) << 32 | (self.entries.len() as u64 + 1);
        self.bytes.extend_from_slice(piece);
        self.entries.push(Entry { start, length, count: times });
        Ok(())
    }

    /// Twice as many slots.
    fn grow(&mut self) -> Result<()> {
        if self.entries.len() >= MOST_PIECES {
            return Err(Error::OutOfMemory { bytes: self.slots.len() * 8 });
        }
        let mut slots = filled(0u64, (self.slots.len() * 2).max(FEWEST_SLOTS))?;
        let mask = slots.len() - 1;
        for (number, entry) in self.entries.iter().enumerate() {
            let piece = &self.bytes[entry.start..entry.start + entry.length as usize];
            let hash = hash_bytes(piece, FIXED_SEEDS);
            let mut at = hash as usize & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = (hash >> 32) << 32 | (number as u64 + 1);
        }
        self.slots = slots;
        Ok(())
    }

    /// How many distinct pieces there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of memory in use, what is reserved for growth included.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.slots.capacity() * size_of::<u64>()
    }

    /// The piece with this number, and its count.
    pub fn get(&self, number: usize) -> (&[u8], u64) {
        let entry = &self.entries[number];
        (&self.bytes[entry.start..entry.start + entry.length as usize], entry.count)
    }

    /// All pieces and counts, in the order in which they were met.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        (0..self.len()).map(|number| self.get(number))
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &PieceTable) -> Result<()> {
        other.iter().try_for_each(|(piece, count)| self.add(piece, count))
    }

    /// The numbers of the pieces, in the order of their bytes.
    pub fn by_bytes(&self) -> Result<Vec<u32>> {
        let mut order = self.numbers()?;
        order.sort_unstable_by_key(|&number| self.get(number as usize).0);
        Ok(order)
    }

    /// The numbers of the pieces, the most frequent first, equal ones in the order of their bytes:
    /// an order that does not depend on how the pieces were met.
    pub fn by_count(&self) -> Result<Vec<u32>> {
        let mut order = self.numbers()?;
        order.sort_unstable_by(|&a, &b| {
            let (a, b) = (self.get(a as usize), self.get(b as usize));
            b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0))
        });
        Ok(order)
    }

    fn numbers(&self) -> Result<Vec<u32>> {
        let mut numbers = Vec::new();
        reserve(&mut numbers, self.len())?;
        numbers.extend(0..self.len() as u32);
        Ok(numbers)
    }

    /// Forgets the pieces that occur less than `least` times; how many there were, and how often
    /// they occurred together.
    pub fn drop_rare(&mut self, least: u64) -> Result<(usize, u64)> {
        let mut kept = PieceTable::default();
        let (mut pieces, mut occurrences) = (0, 0u64);
        for (piece, count) in self.iter() {
            if count < least {
                pieces += 1;
                occurrences = occurrences.saturating_add(count);
            } else {
                kept.add(piece, count)?;
            }
        }
        if pieces > 0 {
            *self = kept;
        }
        Ok((pieces, occurrences))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_are_those_of_a_map(pieces in prop::collection::vec((prop::collection::vec(0u8..3, 0..40), 1u64..5), 0..3000)) {
            let mut table = PieceTable::default();
            let mut expected: HashMap<Vec<u8>, u64> = HashMap::new();
            for (piece, count) in &pieces {
                table.add(piece, *count).unwrap();
                *expected.entry(piece.clone()).or_default() += count;
            }
            let found: HashMap<Vec<u8>, u64> =
                table.iter().map(|(piece, count)| (piece.to_vec(), count)).collect();
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(found.len(), table.len());
            let rare = expected.values().filter(|&&count| count < 3);
            let lost = (rare.clone().count(), rare.sum());
            prop_assert_eq!(table.drop_rare(3).unwrap(), lost);
            prop_assert!(table.iter().all(|(piece, count)| count >= 3 && expected[piece] == count));
        }
    }

    #[test]
    fn counts_stop_at_the_largest_number() {
        let mut table = PieceTable::default();
        table.add(b"a", u64::MAX - 1).unwrap();
        table.add(b"a", 5).unwrap();
        assert_eq!(table.get(0), (&b"a"[..], u64::MAX));
    }
}
