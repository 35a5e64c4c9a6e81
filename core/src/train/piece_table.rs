//! A hash table of pieces and their counts.

use std::cmp::Reverse;

use crate::error::{Error, Result};
use crate::hash::{hash_bytes, hash16, random_seeds};
use crate::memory::prefetch;
use crate::split::{Batch, Piece};

/// Distinct pieces and their counts, in the order of first occurrence.
#[derive(Debug)]
pub struct PieceTable {
    entries: Vec<Entry>,
    /// Bytes of pieces longer than [`MOST_INLINE`].
    long: Vec<u8>,
    /// Total length of the distinct pieces in bytes.
    bytes: usize,
    /// Open addressing: the number of an entry plus one in the lower half, part of its hash in the
    /// upper half. The length is a power of two, and at most three quarters of the slots are in
    /// use.
    slots: Vec<u64>,
    /// Random seeds: with fixed seeds, an attacker could write texts whose pieces all share a slot.
    seeds: [u64; 2],
    /// Memory for the pieces of a text: clearing it takes longer than counting a single line.
    pub(super) batch: Option<Box<Batch>>,
}

impl Default for PieceTable {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            long: Vec::new(),
            bytes: 0,
            slots: Vec::new(),
            seeds: random_seeds(),
            batch: None,
        }
    }
}

/// Maximum length in bytes of a piece that fits into its entry.
const MOST_INLINE: usize = 15;

/// Last byte of a longer piece's block.
const LONG_MARK: u8 = 0xff;

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The bytes of a short piece, zeros as padding, and the length as the last byte; or the start
    /// of a long piece, its length, and [`LONG_MARK`].
    block: [u8; 16],
    count: u64,
}

impl Entry {
    fn of_long(start: usize, length: u32, count: u64) -> Self {
        let mut block = [0; 16];
        block[..8].copy_from_slice(&(start as u64).to_le_bytes());
        block[8..12].copy_from_slice(&length.to_le_bytes());
        block[15] = LONG_MARK;
        Self { block, count }
    }

    #[inline(always)]
    fn piece<'a>(&'a self, long: &'a [u8]) -> &'a [u8] {
        match self.block[15] {
            LONG_MARK => {
                let words: [u64; 2] = bytemuck::cast(self.block);
                let start = u64::from_le(words[0]) as usize;
                &long[start..start + u64::from_le(words[1]) as u32 as usize]
            }
            length => &self.block[..usize::from(length)],
        }
    }
}

/// A piece to look up, with its hash.
#[derive(Debug, Clone, Copy)]
struct Probe<'a> {
    piece: &'a [u8],
    /// Block of a short piece's entry; zeros for a long piece.
    block: [u8; 16],
    hash: u64,
}

impl<'a> Probe<'a> {
    #[inline(always)]
    fn new(piece: &'a [u8], seeds: [u64; 2]) -> Self {
        let mut block = [0; 16];
        if piece.len() > MOST_INLINE {
            return Self { piece, block, hash: hash_bytes(piece, seeds) };
        }
        if let Some(first) = piece.first_chunk::<8>() {
            // Two copies of fixed length take less time than one copy of variable length.
            let (from, shift) = (piece.len() - 8, 8 * (16 - piece.len()) as u32);
            let mut last = [0; 16];
            last[8..].copy_from_slice(&piece[from..]);
            block = (u128::from_le_bytes(last) >> shift).to_le_bytes();
            block[..8].copy_from_slice(first);
        } else {
            block[..piece.len()].copy_from_slice(piece);
        }
        block[15] = piece.len() as u8;
        Self::of_block(piece, block, seeds)
    }

    #[inline(always)]
    fn of_block(piece: &'a [u8], block: [u8; 16], seeds: [u64; 2]) -> Self {
        Self { piece, block, hash: hash16(bytemuck::cast(block), seeds) }
    }
}

/// Number of slots of the smallest nonempty table.
const FEWEST_SLOTS: usize = 1 << 10;

/// Maximum number of distinct pieces in one table.
const MOST_PIECES: usize = u32::MAX as usize - 1;

/// Number of pieces looked up together, so that their slots and entries are prefetched.
const AT_ONCE: usize = 32;

impl PieceTable {
    /// Adds `times` to the count of `piece`. Counts saturate at the largest `u64`.
    ///
    /// Fails with [`Error::OutOfMemory`] if a new piece does not fit into memory.
    pub fn add(&mut self, piece: &[u8], times: u64) -> Result<()> {
        self.make_room(1);
        self.count(&Probe::new(piece, self.seeds), times)
    }

    /// Adds one to the count of each of these pieces of `text`.
    pub(super) fn add_all(&mut self, text: &[u8], pieces: &[Piece]) -> Result<()> {
        let seeds = self.seeds;
        self.add_probes(pieces.iter().map(|piece| {
            let piece = &text[piece.start..piece.end];
            (Probe::new(piece, seeds), 1)
        }))
    }

    #[inline(always)]
    fn add_probes<'a>(&mut self, probes: impl Iterator<Item = (Probe<'a>, u64)>) -> Result<()> {
        let mut batch = [(Probe { piece: &[], block: [0; 16], hash: 0 }, 0); AT_ONCE];
        let mut probes = probes.fuse();
        loop {
            self.make_room(AT_ONCE);
            let mask = self.slots.len() - 1;
            let mut length = 0;
            for probe in probes.by_ref().take(AT_ONCE) {
                batch[length] = probe;
                length += 1;
                prefetch(&self.slots[probe.0.hash as usize & mask]);
            }
            let batch = &batch[..length];
            for (probe, _) in batch {
                let slot = self.slots[probe.hash as usize & mask];
                if slot >> 32 == probe.hash >> 32 && slot != 0 {
                    prefetch(&self.entries[slot as u32 as usize - 1]);
                }
            }
            for (probe, times) in batch {
                self.count(probe, *times)?;
            }
            if length < AT_ONCE {
                return Ok(());
            }
        }
    }

    /// Counts a piece; a slot must be free.
    #[inline(always)]
    fn count(&mut self, probe: &Probe<'_>, times: u64) -> Result<()> {
        let mask = self.slots.len() - 1;
        let mut at = probe.hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return self.insert(probe, at, times);
            }
            if slot >> 32 == probe.hash >> 32 {
                let entry = &mut self.entries[slot as u32 as usize - 1];
                let same = if probe.piece.len() <= MOST_INLINE {
                    u128::from_ne_bytes(entry.block) == u128::from_ne_bytes(probe.block)
                } else {
                    entry.piece(&self.long) == probe.piece
                };
                if same {
                    entry.count = entry.count.saturating_add(times);
                    return Ok(());
                }
            }
            at = (at + 1) & mask;
        }
    }

    #[inline(never)]
    fn insert(&mut self, probe: &Probe<'_>, at: usize, times: u64) -> Result<()> {
        if self.entries.len() >= MOST_PIECES {
            return Err(Error::OutOfMemory { bytes: self.memory() });
        }
        self.entries.reserve(1);
        let mut entry = Entry { block: probe.block, count: times };
        if probe.piece.len() > MOST_INLINE {
            let length = u32::try_from(probe.piece.len());
            let length = length.map_err(|_| Error::OutOfMemory { bytes: probe.piece.len() })?;
            entry = Entry::of_long(self.long.len(), length, times);
            self.long.extend_from_slice(probe.piece);
        }
        self.slots[at] = (probe.hash >> 32) << 32 | (self.entries.len() as u64 + 1);
        self.entries.push(entry);
        self.bytes += probe.piece.len();
        Ok(())
    }

    /// Reserves slots for `more` pieces, and keeps one slot empty.
    #[inline(always)]
    fn make_room(&mut self, more: usize) {
        if self.entries.len() + more > self.slots.len() / 4 * 3 {
            self.grow();
        }
    }

    /// Doubles the number of slots.
    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![0u64; (self.slots.len() * 2).max(FEWEST_SLOTS)];
        let mask = slots.len() - 1;
        let mut number = 0u64;
        for entries in self.entries.chunks(AT_ONCE) {
            let mut hashes = [0; AT_ONCE];
            for (hash, entry) in hashes.iter_mut().zip(entries) {
                *hash = self.probe(entry, self.seeds).hash;
                prefetch(&slots[*hash as usize & mask]);
            }
            for hash in &hashes[..entries.len()] {
                let mut at = *hash as usize & mask;
                while slots[at] != 0 {
                    at = (at + 1) & mask;
                }
                number += 1;
                slots[at] = (hash >> 32) << 32 | number;
            }
        }
        self.slots = slots;
    }

    /// Returns the probe for an entry in a table with these seeds.
    #[inline(always)]
    fn probe<'a>(&'a self, entry: &'a Entry, seeds: [u64; 2]) -> Probe<'a> {
        let piece = entry.piece(&self.long);
        match entry.block[15] {
            LONG_MARK => Probe::new(piece, seeds),
            _ => Probe::of_block(piece, entry.block, seeds),
        }
    }

    /// Returns the number of distinct pieces.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the table has no pieces.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the total length of the distinct pieces in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the memory in use in bytes, including room for growth.
    pub fn memory(&self) -> usize {
        self.long.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.slots.capacity() * size_of::<u64>()
    }

    /// Returns the piece with this number, and its count.
    pub fn get(&self, number: usize) -> (&[u8], u64) {
        let entry = &self.entries[number];
        (entry.piece(&self.long), entry.count)
    }

    /// Iterates over all pieces and counts, in the order in which they were added.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        (0..self.len()).map(|number| self.get(number))
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &PieceTable) -> Result<()> {
        let seeds = self.seeds;
        self.add_probes(other.entries.iter().map(|entry| (other.probe(entry, seeds), entry.count)))
    }

    /// Returns the numbers of the pieces, in byte order.
    pub fn by_bytes(&self) -> Vec<u32> {
        let mut order = self.numbers();
        order.sort_unstable_by_key(|&number| self.get(number as usize).0);
        order
    }

    /// Returns the numbers of the pieces, the most frequent first, ties in byte order. The order of
    /// insertion has no effect.
    pub fn by_count(&self) -> Vec<u32> {
        // Most pieces differ in the count or in the first bytes.
        let mut keys = Vec::with_capacity(self.len());
        for (number, (piece, count)) in (0..).zip(self.iter()) {
            let mut first = [0; 8];
            let length = piece.len().min(8);
            first[..length].copy_from_slice(&piece[..length]);
            keys.push((Reverse(count), u64::from_be_bytes(first), number));
        }
        keys.sort_unstable_by(|a: &(_, _, u32), b| {
            let piece = |number: u32| self.get(number as usize).0;
            (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| piece(a.2).cmp(piece(b.2)))
        });
        keys.into_iter().map(|(_, _, number)| number).collect::<Vec<_>>()
    }

    pub(super) fn numbers(&self) -> Vec<u32> {
        (0..self.len() as u32).collect()
    }

    /// Removes pieces with a count below `least`. Returns their number and their total count.
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
            prop_assert_eq!(found.keys().map(Vec::len).sum::<usize>(), table.bytes());
            let rare = expected.values().filter(|&&count| count < 3);
            let lost = (rare.clone().count(), rare.sum());
            prop_assert_eq!(table.drop_rare(3).unwrap(), lost);
            prop_assert!(table.iter().all(|(piece, count)| count >= 3 && expected[piece] == count));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn pieces_at_once_are_those_one_by_one(lengths in prop::collection::vec(1usize..24, 0..3000), seed in any::<u64>()) {
            // Bytes that repeat often enough for pieces to occur again.
            let size: usize = lengths.iter().sum();
            let text: Vec<u8> = (0..size as u64).map(|at| (at ^ seed) as u8 % 5).collect();
            let mut end = 0;
            let pieces: Vec<Piece> = lengths
                .iter()
                .map(|length| {
                    end += length;
                    Piece { start: end - length, end }
                })
                .collect();
            let (first, second) = pieces.split_at(pieces.len() / 3);
            let (mut table, mut other) = (PieceTable::default(), PieceTable::default());
            table.add_all(&text, first).unwrap();
            other.add_all(&text, second).unwrap();
            table.merge(&other).unwrap();
            let mut expected = PieceTable::default();
            for piece in &pieces {
                expected.add(&text[piece.start..piece.end], 1).unwrap();
            }
            // Both tables are in the order of first occurrence.
            prop_assert!(table.iter().eq(expected.iter()));
            for order in [table.by_bytes(), table.by_count()] {
                prop_assert_eq!(order.len(), table.len());
            }
            let found: Vec<_> =
                table.by_count().into_iter().map(|number| table.get(number as usize)).collect();
            prop_assert!(found.is_sorted_by_key(|&(piece, count)| (Reverse(count), piece)));
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
