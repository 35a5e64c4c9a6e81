//! Merges long pieces with a heap, in windows: linear time for any text.
//!
//! The parts of a window stay in the L1 cache. Parts near the end of a window may depend on the
//! text after it, so the next window starts before them. Where two windows meet, the parts on both
//! sides must be a valid pair ([`is_valid_pair`]): a sequence of valid pairs is the result of
//! merging the whole piece. Otherwise the window starts further back and doubles in length, as do
//! all later windows.
//!
//! For ordered vocabularies only.

use std::ops::Range;

use super::initial::{FirstPart, first_parts};
use super::merge_by_rule;
use super::runs::{Run, Runs};
use crate::error::Result;
use crate::memory::reserve;
use crate::polling::poll;
use crate::rule::{MergeTable, is_valid_pair};
use crate::vocabulary::{NONE, Pairs, Vocabulary, three_byte_char};

/// Number of units merged at once while windows meet in valid pairs.
pub(super) const WINDOW: usize = 512;

/// Units that are merged: bytes, or parts.
pub(super) trait Units {
    type Table: MergeTable;

    fn table(&self) -> &Self::Table;

    /// Number of units.
    fn len(&self) -> usize;

    /// Adds the initial parts of a window.
    fn start(&self, window: Range<usize>, runs: &mut Runs);

    /// Number of units that a part covers.
    fn width(&self, part: u32) -> usize;

    /// Appends the parts of all units, merged by the literal rule.
    fn merge_by_rule(&self, out: &mut Vec<u32>) -> Result<()>;
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a> {
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) piece: &'a [u8],
}

impl Units for Bytes<'_> {
    type Table = Pairs;

    fn table(&self) -> &Pairs {
        self.vocabulary.pairs()
    }

    fn len(&self) -> usize {
        self.piece.len()
    }

    fn start(&self, window: Range<usize>, runs: &mut Runs) {
        let pairs = self.table();
        first_parts(pairs, &self.piece[window], |first| runs.add(pairs, first));
    }

    fn width(&self, part: u32) -> usize {
        if (part as usize) < self.vocabulary.len() { self.vocabulary.token(part).len() } else { 1 }
    }

    fn merge_by_rule(&self, out: &mut Vec<u32>) -> Result<()> {
        merge_by_rule(self.table(), self.piece.iter().map(|&byte| self.table().byte(byte)), out)
    }
}

/// Parts, with the number of parts that a token is merged from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a, T, W> {
    pub(super) table: &'a T,
    pub(super) parts: &'a [u32],
    pub(super) width: W,
}

impl<T: MergeTable, W: Fn(u32) -> usize> Units for Parts<'_, T, W> {
    type Table = T;

    fn table(&self) -> &T {
        self.table
    }

    fn len(&self) -> usize {
        self.parts.len()
    }

    fn start(&self, window: Range<usize>, runs: &mut Runs) {
        for &part in &self.parts[window] {
            runs.add(self.table, FirstPart { part, is_known: false, rank: NONE });
        }
    }

    fn width(&self, part: u32) -> usize {
        (self.width)(part)
    }

    fn merge_by_rule(&self, out: &mut Vec<u32>) -> Result<()> {
        merge_by_rule(self.table, self.parts.iter().copied(), out)
    }
}

pub(super) fn merge_long(vocabulary: &Vocabulary, piece: &[u8], out: &mut Vec<u32>) -> Result<()> {
    let Some(run) = single_run(vocabulary.pairs(), piece) else {
        return merge_windows(&Bytes { vocabulary, piece }, WINDOW, out);
    };
    let mut runs = Runs::default();
    runs.merge_one(vocabulary.pairs(), run)?;
    runs.append_all(out)
}

/// Returns the piece as one run if it is one repeated character that stays one part in any context.
fn single_run(pairs: &Pairs, piece: &[u8]) -> Option<Run> {
    let (part, width) = match three_byte_char(piece) {
        Some(code_point) => (pairs.character(code_point), 3),
        None => (pairs.byte(piece[0]), 1),
    };
    let repeats =
        piece.len().is_multiple_of(width) && piece[width..] == piece[..piece.len() - width];
    let count = u32::try_from(piece.len() / width).ok()?;
    (part != NONE && repeats).then_some(Run::new(part, count))
}

/// Merges in windows, starting with a length of `window` units.
pub(super) fn merge_windows(
    units: &impl Units,
    mut window: usize,
    out: &mut Vec<u32>,
) -> Result<()> {
    let table = units.table();
    let first = out.len();
    let mut runs = Runs::default();
    let mut start = 0_usize;
    while start < units.len() {
        let end = units.len().min(start.saturating_add(window));
        poll(end - start)?;
        if u32::try_from(end - start).is_err() {
            // Run lengths are 32-bit.
            out.truncate(first);
            return units.merge_by_rule(out);
        }
        runs.clear(end - start)?;
        units.start(start..end, &mut runs);
        runs.merge_all(table)?;
        let before = out[first..].last().copied();
        if before.is_some_and(|before| !is_valid_pair(table, before, runs.first_part())) {
            // Parts taken as settled were not.
            let mut back = 0;
            while back < window && out.len() > first {
                back += out.pop().map_or(0, |part| units.width(part));
            }
            start -= back;
            window *= 2;
            continue;
        }
        if end == units.len() {
            return runs.append_all(out);
        }
        // The last eighth is merged again, with the text that follows.
        let settled = end - start - (end - start).div_ceil(8);
        let from = start;
        runs.each(|part, count| {
            let width = units.width(part);
            let count = count.min((from + settled - start) / width);
            reserve(out, count)?;
            out.resize(out.len() + count, part);
            start += count * width;
            Ok(start + width <= from + settled)
        })?;
        if start == from {
            window *= 2;
        }
    }
    Ok(())
}
