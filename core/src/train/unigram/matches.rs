//! Pieces that match at each position of all words, so that no step searches for them.

use std::ops::Range;

use crate::error::Result;
use crate::polling::poll;

use super::words::{END, Words};

/// Distance between positions whose first match is stored; other matches are counted from there.
const STEP: usize = 64;

/// Number of characters of words that one thread takes at a time.
const CHUNK: usize = 1 << 15;

/// Pieces by the positions where they match, shortest first.
pub(super) struct Matches {
    /// Number of pieces at each position.
    counts: Vec<u8>,
    pieces: Vec<u32>,
    /// Start of the pieces of every [`STEP`]-th position.
    starts: Vec<u32>,
}

/// A chunk of words: first position, first match, and the number of the first word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    pub(super) at: usize,
    first: usize,
    word: usize,
}

/// One word: its positions, its pieces by position, and its number.
pub(super) struct Word<'a> {
    pub(super) number: usize,
    pub(super) counts: &'a [u8],
    pub(super) pieces: &'a [u32],
}

impl Matches {
    /// Creates the matches of pieces, each given by its positions and its length.
    pub(super) fn new(size: usize, places: &[(&[u32], u32)]) -> Result<Self> {
        let mut counts = vec![0u8; size];
        for (places, _) in places {
            poll(places.len())?;
            for &at in *places {
                counts[at as usize] += 1;
            }
        }
        let mut next = Vec::with_capacity(size);
        let mut total = 0;
        for &count in &counts {
            next.push(total);
            total += u32::from(count);
        }
        let mut pieces = vec![0; total as usize];
        let mut order: Vec<u32> = (0..places.len() as u32).collect();
        order.sort_by_key(|&piece| places[piece as usize].1);
        for piece in order {
            let (places, _) = places[piece as usize];
            poll(places.len())?;
            for &at in places {
                let next = &mut next[at as usize];
                pieces[*next as usize] = piece;
                *next += 1;
            }
        }
        let mut new = Self { counts, pieces, starts: Vec::new() };
        new.index();
        Ok(new)
    }

    fn index(&mut self) {
        let mut total = 0;
        self.starts.clear();
        for step in self.counts.chunks(STEP) {
            self.starts.push(total);
            total += step.iter().map(|&count| u32::from(count)).sum::<u32>();
        }
    }

    /// Renumbers the pieces, and drops pieces without a new number.
    pub(super) fn renumber(&mut self, numbers: &[Option<u32>]) -> Result<()> {
        let (mut read, mut written) = (0, 0);
        for count in &mut self.counts {
            poll(usize::from(*count))?;
            let end = read + usize::from(*count);
            let first = written;
            for at in read..end {
                if let Some(number) = numbers[self.pieces[at] as usize] {
                    self.pieces[written] = number;
                    written += 1;
                }
            }
            *count = (written - first) as u8;
            read = end;
        }
        self.pieces.truncate(written);
        self.pieces.shrink_to_fit();
        self.index();
        Ok(())
    }

    /// Returns the start of the pieces at a position.
    fn first(&self, at: usize) -> usize {
        let before = &self.counts[at / STEP * STEP..at];
        let more: usize = before.iter().map(|&count| usize::from(count)).sum();
        self.starts[at / STEP] as usize + more
    }

    /// Returns the matches that begin in a range of positions.
    pub(super) fn stretch(&self, places: Range<usize>) -> Word<'_> {
        let first = self.first(places.start);
        let counts = &self.counts[places];
        let total: usize = counts.iter().map(|&count| usize::from(count)).sum();
        Word { number: 0, counts, pieces: &self.pieces[first..first + total] }
    }

    /// Cuts all words into chunks.
    pub(super) fn chunks(&self, words: &Words) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        let (mut start, mut first, mut number, mut matches) = (0, 0, 0, 0);
        let mut chunk = Chunk { at: 0, first: 0, word: 0 };
        for (at, (&code, &count)) in words.text.iter().zip(&self.counts).enumerate() {
            matches += usize::from(count);
            if code != END {
                continue;
            }
            number += 1;
            if at + 1 - start >= CHUNK || number == words.counts.len() {
                chunks.push(chunk);
                (start, first) = (at + 1, matches);
                chunk = Chunk { at: start, first, word: number };
            }
        }
        debug_assert_eq!((start, first), (words.text.len(), self.pieces.len()));
        chunks
    }

    /// Calls `visit` with each word of a chunk, until `visit` fails.
    pub(super) fn each(
        &self,
        words: &Words,
        chunk: Chunk,
        mut visit: impl FnMut(Word<'_>) -> Result<()>,
    ) -> Result<()> {
        let Chunk { at: mut start, mut first, word: mut number } = chunk;
        let until = (chunk.at + CHUNK).min(words.text.len());
        while start < until {
            let length = words.text[start..].iter().take_while(|&&code| code != END).count();
            let counts = &self.counts[start..start + length];
            let total: usize = counts.iter().map(|&count| usize::from(count)).sum();
            visit(Word { number, counts, pieces: &self.pieces[first..first + total] })?;
            (start, first, number) = (start + length + 1, first + total, number + 1);
        }
        Ok(())
    }
}
