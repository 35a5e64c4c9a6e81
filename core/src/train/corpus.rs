//! Distinct pieces of a corpus during training, and the pairs in them.
//!
//! All pieces are in one array: a cell for each byte, and an empty cell before and after each
//! piece. The first and the last cell of a token hold its number; the cells between are empty. Both
//! neighbors of a token are found at once, and a merge changes four cells in a piece of any length.
//! A position is the first cell of the left token of a pair; it is stale once other tokens are
//! there, and then stays stale.
//!
//! Where a token is made again from different parts, a pair may occur again before it is merged.
//! With a base, it is merged everywhere. With affixes, the new occurrences are a separate pair in
//! the queue, as in Hugging Face's `tokenizers`: each pair has the count from when it was queued,
//! and merges the pieces where it occurred then.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

use crate::error::{Error, Result};
use crate::memory::{prefetch, reserve};
use crate::polling::poll;

use super::pairs::{FirstPairs, Pair, Pairs};
use super::sides::Side;
use super::symbols::{Limits, Symbols};

/// Cell value: no token begins or ends here.
const NONE: u32 = u32::MAX;

/// Cell value: the count of the piece needs more than 32 bits and is in `Corpus::large`.
const LARGE_COUNT: u32 = u32::MAX;

/// Bit in a length: the cell is the last cell of a token, not the first.
const ENDS: u32 = 1 << 31;

/// Prefetch distance in positions for the cells of a merge.
const AHEAD: usize = 16;

/// Maximum number of cells: positions are 32 bits wide.
const MOST_CELLS: usize = u32::MAX as usize - 1;

#[derive(Debug, Clone, Copy)]
struct Cell {
    token: u32,
    count: u32,
}

/// A pair in the queue; the greatest is merged first. Of pairs with the same count, the pair with
/// the lowest left token merges first, then the pair with the lowest right token, as in Hugging
/// Face's `tokenizers`; of equal pairs, the pair queued first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Queued {
    count: u64,
    tokens: Reverse<(u32, u32)>,
    turn: Reverse<u32>,
    pair: u32,
}

/// A pair that may be merged now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) left: u32,
    pub(super) right: u32,
    pub(super) count: u64,
}

/// A pair that becomes a token.
#[derive(Debug, Clone, Copy)]
struct Merging {
    left: u32,
    right: u32,
    new: u32,
}

#[derive(Debug)]
pub(super) struct Corpus {
    cells: Vec<Cell>,
    /// First cell and count of pieces whose count does not fit into a cell.
    large: Vec<(u32, u64)>,
    /// Length in cells of each token whose length varies, by its first and its last cell; absent if
    /// it equals the token's first length.
    lengths: HashMap<u32, u32>,
    pairs: Pairs,
    arena: Vec<u32>,
    /// Further positions of pairs, found when a token was made a second time.
    again: HashMap<u32, Vec<u32>>,
    /// First cells of the pieces, if pairs that occur again are separate pairs.
    starts: Vec<u32>,
    /// Pairs that the current merge has created.
    made: Vec<u32>,
    queue: BinaryHeap<Queued>,
    /// Number of times that a pair was queued.
    turn: u32,
    /// Pairs with a lower count are not queued yet.
    threshold: i64,
    before: Side,
    after: Side,
    pub(super) tokens: u64,
    limits: Limits,
}

impl Corpus {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            cells: Vec::new(),
            large: Vec::new(),
            lengths: HashMap::new(),
            pairs: Pairs::default(),
            arena: Vec::new(),
            again: HashMap::new(),
            starts: Vec::new(),
            made: Vec::new(),
            queue: BinaryHeap::new(),
            turn: 0,
            threshold: i64::MAX,
            before: Side::default(),
            after: Side::default(),
            tokens: 0,
            limits,
        }
    }

    /// Returns the maximum memory in bytes for `pieces` distinct pieces of `bytes` bytes in total,
    /// without the pairs: after the pairs are found, and after the last merge. Each merge adds at
    /// most two positions per occurrence.
    pub(super) fn memory(pieces: usize, bytes: usize) -> (usize, usize) {
        let cells = bytes.saturating_add(pieces).saturating_mul(size_of::<Cell>());
        let positions = bytes.saturating_mul(size_of::<u32>());
        let merged = cells.saturating_add(positions.saturating_mul(3));
        (cells.saturating_add(positions), merged)
    }

    /// Reserves room for `pieces` pieces of `bytes` bytes in total.
    pub(super) fn reserve(&mut self, pieces: usize, bytes: usize) -> Result<()> {
        reserve(&mut self.cells, bytes.saturating_add(pieces).saturating_add(1).min(MOST_CELLS))
    }

    /// Adds a piece, as tokens.
    pub(super) fn add(&mut self, symbols: &Symbols, tokens: &[u32], count: u64) -> Result<()> {
        self.tokens = self.tokens.saturating_add(count.saturating_mul(tokens.len() as u64));
        if tokens.len() < 2 || count == 0 {
            return Ok(());
        }
        let length: usize = tokens.iter().map(|&token| symbols.length(token)).sum();
        if self.cells.len() + length + 2 > MOST_CELLS {
            return Err(Error::Vocabulary(format!(
                "the distinct pieces have more than {MOST_CELLS} bytes; leave rare ones out, or \
                 train on a sample"
            )));
        }
        reserve(&mut self.cells, length + 2)?;
        let small = u32::try_from(count).unwrap_or(LARGE_COUNT);
        let empty = Cell { token: NONE, count: small };
        if self.cells.is_empty() {
            self.cells.push(empty);
        }
        if small == LARGE_COUNT {
            self.large.push((self.cells.len() as u32, count));
        }
        if length == tokens.len() {
            self.cells.extend(tokens.iter().map(|&token| Cell { token, count: small }));
            self.cells.push(empty);
            return Ok(());
        }
        for &token in tokens {
            let start = self.cells.len();
            self.cells.resize(start + symbols.length(token), empty);
            self.cells[start].token = token;
            let last = self.cells.len() - 1;
            self.cells[last].token = token;
        }
        self.cells.push(empty);
        Ok(())
    }

    fn count_at(&self, position: usize) -> i64 {
        let small = self.cells[position].count;
        if small != LARGE_COUNT {
            return i64::from(small);
        }
        let piece = self.large.partition_point(|&(start, _)| start as usize <= position);
        i64::try_from(self.large[piece - 1].1).unwrap_or(i64::MAX)
    }

    /// Finds all pairs, after every piece has been added.
    pub(super) fn find_pairs(&mut self, symbols: &Symbols) -> Result<()> {
        let mut places: Vec<u32> = Vec::new();
        let mut numbers = FirstPairs::new(symbols.len());
        self.for_each_pair(symbols, |corpus, left, right, position| {
            let number = numbers.find_or_add(&mut corpus.pairs, left, right)?;
            if number as usize == places.len() {
                places.push(0);
            }
            places[number as usize] += 1;
            let count = corpus.count_at(position);
            let pair = &mut corpus.pairs.list[number as usize];
            pair.count = pair.count.saturating_add(count);
            Ok(())
        })?;
        let mut start = 0;
        for (pair, &places) in self.pairs.list.iter_mut().zip(&places) {
            pair.start = start;
            start += places as usize;
        }
        reserve(&mut self.arena, start)?;
        self.arena.resize(start, 0);
        self.for_each_pair(symbols, |corpus, left, right, position| {
            let number = numbers.find_or_add(&mut corpus.pairs, left, right)?;
            let pair = &mut corpus.pairs.list[number as usize];
            corpus.arena[pair.start + pair.length as usize] = position as u32;
            pair.length += 1;
            Ok(())
        })
    }

    /// Separates the occurrences of a pair that merges make at different times. Call this once,
    /// after [`Self::find_pairs`].
    pub(super) fn keep_apart(&mut self) -> Result<()> {
        let is_start = |pair: &[Cell]| pair[0].token == NONE && pair[1].token != NONE;
        let starts = (1..).zip(self.cells.windows(2));
        self.starts = starts.filter(|(_, pair)| is_start(pair)).map(|(at, _)| at).collect();
        self.threshold = i64::MIN;
        (0..self.pairs.list.len()).try_for_each(|number| self.enqueue(number as u32))
    }

    fn for_each_pair(
        &mut self,
        symbols: &Symbols,
        mut visit: impl FnMut(&mut Self, u32, u32, usize) -> Result<()>,
    ) -> Result<()> {
        let mut at = 0;
        while at < self.cells.len() {
            poll(1)?;
            let left = self.cells[at].token;
            if left == NONE {
                at += 1;
                continue;
            }
            let next = at + symbols.length(left);
            let right = self.cells[next].token;
            if right != NONE && symbols.shape(left).may_join(symbols.shape(right), self.limits) {
                visit(self, left, right, at)?;
            }
            at = next;
        }
        Ok(())
    }

    /// Returns the pair to merge next, if one occurs at least `least` times, without removing it.
    pub(super) fn best(&mut self, least: u64) -> Result<Option<Candidate>> {
        let least = least.max(1);
        loop {
            let Some(top) = self.queue.peek() else {
                if !self.lower_threshold(i64::try_from(least).unwrap_or(i64::MAX))? {
                    return Ok(None);
                }
                continue;
            };
            poll(1)?;
            let (number, count) = (top.pair, top.count);
            let Pair { left, right, length, .. } = self.pairs.list[number as usize];
            let is_live = length > 0 || self.again.contains_key(&number);
            if is_live && self.pairs.count(number) as u64 == count {
                let candidate = Candidate { left, right, count };
                return Ok(Some(candidate).filter(|_| count >= least));
            }
            self.queue.pop();
            if is_live {
                self.enqueue(number)?;
            }
        }
    }

    /// Queues pairs with lower counts; returns false if none are left.
    fn lower_threshold(&mut self, least: i64) -> Result<bool> {
        let again = &self.again;
        let is_live = |number: usize, length: u32| {
            length > 0 || !again.is_empty() && again.contains_key(&(number as u32))
        };
        let live = self.pairs.list.iter().enumerate();
        let highest = live
            .filter(|(number, pair)| pair.count < self.threshold && is_live(*number, pair.length))
            .map(|(_, pair)| pair.count)
            .max();
        let Some(highest) = highest.filter(|&count| count >= least) else { return Ok(false) };
        let range = (highest / 2).max(least)..self.threshold;
        self.threshold = range.start;
        for number in 0..self.pairs.list.len() {
            let pair = &self.pairs.list[number];
            let is_live = pair.length > 0 || self.again.contains_key(&(number as u32));
            if is_live && range.contains(&pair.count) {
                self.enqueue(number as u32)?;
            }
        }
        Ok(true)
    }

    /// Queues a pair, unless its count is below the threshold.
    fn enqueue(&mut self, number: u32) -> Result<()> {
        let Pair { left, right, .. } = self.pairs.list[number as usize];
        let count = self.pairs.count(number);
        if count < self.threshold {
            return Ok(());
        }
        let count = count as u64;
        let no_memory = |_| Error::OutOfMemory { bytes: size_of::<Queued>() };
        self.queue.try_reserve(1).map_err(no_memory)?;
        self.turn = self.turn.wrapping_add(1);
        let (tokens, turn) = (Reverse((left, right)), Reverse(self.turn));
        self.queue.push(Queued { count, tokens, turn, pair: number });
        Ok(())
    }

    /// Replaces each occurrence of a pair with the token `new`, from left to right. The pair is the
    /// result of [`Self::best`], of this corpus or of another corpus.
    ///
    /// Counts are updated as in Hugging Face's trainer: the count of the merged pair does not
    /// change except for overlapping occurrences, and counts again when the pair occurs again.
    pub(super) fn merge(&mut self, symbols: &Symbols, best: Candidate, new: u32) -> Result<()> {
        let Candidate { left, right, .. } = best;
        let merge = Merging { left, right, new };
        let found = match self.starts.is_empty() {
            true => self.pairs.find(left, right),
            false => self.queue.pop().map(|top| top.pair),
        };
        let Some(number) = found else { return Ok(()) };
        self.before.prepare(symbols.len());
        self.after.prepare(symbols.len());
        let pair = &mut self.pairs.list[number as usize];
        let positions = pair.start..pair.start + std::mem::take(&mut pair.length) as usize;
        let more = self.again.remove(&number);
        if !self.starts.is_empty() && (left == right || self.pairs.is_one_of_several(number)) {
            let more = more.unwrap_or_default();
            let positions = self.arena[positions].iter().chain(&more);
            let piece = |at: &u32| self.starts.partition_point(|start| start <= at) - 1;
            let mut pieces: Vec<usize> = positions.map(piece).collect();
            pieces.sort_unstable();
            pieces.dedup();
            for piece in pieces {
                self.merge_in_piece(symbols, self.starts[piece] as usize, merge)?;
            }
        } else if let Some(mut more) = more {
            more.extend_from_slice(&self.arena[positions]);
            more.sort_unstable();
            for position in more {
                self.merge_at(symbols, position, merge)?;
            }
        } else {
            let length = symbols.length(left) + symbols.length(right);
            let first = positions.start..positions.end.min(positions.start + AHEAD);
            self.prefetch_cells(first, length);
            for at in positions.clone() {
                if at + AHEAD < positions.end {
                    self.prefetch_cells(at + AHEAD..at + AHEAD + 1, length);
                }
                self.merge_at(symbols, self.arena[at], merge)?;
            }
        }
        self.apply_changes(symbols, merge)
    }

    /// Merges all occurrences of a pair in the piece whose first cell is `at`.
    fn merge_in_piece(&mut self, symbols: &Symbols, mut at: usize, merge: Merging) -> Result<()> {
        while self.cells[at].token != NONE {
            self.merge_at(symbols, at as u32, merge)?;
            at += length_at(&self.lengths, symbols, at, self.cells[at].token);
        }
        Ok(())
    }

    /// Prefetches the cells where a pair of this length begins and ends, for part of the arena. A
    /// pair with a token of several lengths may be shorter, and end with the last cell.
    #[inline(always)]
    fn prefetch_cells(&self, part: Range<usize>, length: usize) {
        for &position in &self.arena[part] {
            prefetch(&self.cells[position as usize]);
            if let Some(end) = self.cells.get(position as usize + length) {
                prefetch(end);
            }
        }
    }

    #[inline(always)]
    fn merge_at(&mut self, symbols: &Symbols, position: u32, merge: Merging) -> Result<()> {
        let Merging { left, right, new, .. } = merge;
        poll(8)?;
        if !is_at(&self.cells, &self.lengths, symbols, position, left, right) {
            return Ok(());
        }
        let start = position as usize;
        let middle = start + length_at(&self.lengths, symbols, start, left);
        let end = middle + length_at(&self.lengths, symbols, middle, right);
        let count = self.count_at(start);
        let (before, after) = (self.cells[start - 1].token, self.cells[end].token);
        let first_before = match before {
            NONE => 0,
            token => start - length_at(&self.lengths, symbols, start - 1, token),
        };
        if symbols.shape(new).varies {
            let length = (end - start) as u32;
            self.lengths.extend([(position, length), (end as u32 - 1, length | ENDS)]);
        } else if !self.lengths.is_empty() {
            self.lengths.remove(&position);
            self.lengths.remove(&(end as u32 - 1));
        }
        self.cells[middle - 1].token = NONE;
        self.cells[middle].token = NONE;
        self.cells[start].token = new;
        self.cells[end - 1].token = new;
        self.tokens = self.tokens.saturating_sub(count as u64);
        // A token may be too long here but not elsewhere.
        let most = self.limits.bytes.filter(|_| !self.starts.is_empty());
        let is_too_long = |neighbor: u32, length: usize| {
            let varies = symbols.shape(neighbor).varies || symbols.shape(new).varies;
            varies && most.is_some_and(|most| length > most as usize)
        };
        if before != NONE {
            match most.is_some() && is_too_long(before, end - first_before) {
                true => self.take_off(before, left, count)?,
                false => self.before.add(before, first_before as u32, count),
            }
        }
        if after != NONE {
            let last = || end + length_at(&self.lengths, symbols, end, after);
            match most.is_some() && is_too_long(after, last() - start) {
                true => self.take_off(right, after, count)?,
                false => self.after.add(after, position, count),
            }
        }
        Ok(())
    }

    /// Subtracts from the count of a pair.
    fn take_off(&mut self, left: u32, right: u32, count: i64) -> Result<()> {
        let number = match self.starts.is_empty() {
            true => self.pairs.find(left, right),
            // A pair that was too long until now may have a negative count.
            false => Some(self.pairs.find_or_add(left, right)?),
        };
        if let Some(number) = number {
            let pair = &mut self.pairs.list[number as usize];
            pair.count = pair.count.saturating_sub(count);
        }
        Ok(())
    }

    /// Turns the changes on both sides of a merge into counts and positions of pairs.
    fn apply_changes(&mut self, symbols: &Symbols, merge: Merging) -> Result<()> {
        let Merging { left, right, new } = merge;
        let (mut before, mut after) =
            (std::mem::take(&mut self.before), std::mem::take(&mut self.after));
        let first = self.arena.len();
        self.add_pairs(symbols, first, &mut before, |neighbor| (neighbor, new))?;
        self.add_pairs(symbols, first, &mut after, |neighbor| (new, neighbor))?;
        for &neighbor in &before.touched {
            self.take_off(neighbor, left, before.changes[neighbor as usize].count)?;
        }
        for &neighbor in &after.touched {
            self.take_off(right, neighbor, after.changes[neighbor as usize].count)?;
        }
        for at in 0..self.made.len() {
            if self.pairs.count(self.made[at]) > 0 {
                self.enqueue(self.made[at])?;
            }
        }
        self.made.clear();
        before.clear();
        after.clear();
        (self.before, self.after) = (before, after);
        Ok(())
    }

    /// Counts the new pairs on one side and keeps their positions, from `first` in the arena.
    fn add_pairs(
        &mut self,
        symbols: &Symbols,
        first: usize,
        side: &mut Side,
        pair_of: impl Fn(u32) -> (u32, u32),
    ) -> Result<()> {
        let mut again = false;
        for &neighbor in &side.touched {
            let (left, right) = pair_of(neighbor);
            let change = &mut side.changes[neighbor as usize];
            change.next = usize::MAX;
            let (one, other) = (symbols.shape(left), symbols.shape(right));
            if !(one.varies || other.varies || one.may_join(other, self.limits)) {
                continue;
            }
            let mut number = self.pairs.find_or_add(left, right)?;
            let mut pair = &mut self.pairs.list[number as usize];
            pair.count = pair.count.saturating_add(change.count);
            let is_apart = !self.starts.is_empty();
            if is_apart && pair.length > 0 && pair.start < first {
                number = self.pairs.renew(number)?;
                pair = &mut self.pairs.list[number as usize];
            }
            let is_live = pair.length > 0 || self.again.contains_key(&number);
            if pair.count >= self.threshold && !(is_apart && is_live) {
                self.made.push(number);
            }
            if is_live {
                let no_memory = |_| Error::OutOfMemory { bytes: size_of::<(u32, Vec<u32>)>() };
                self.again.try_reserve(1).map_err(no_memory)?;
                self.again.entry(number).or_default();
                again = true;
                continue;
            }
            change.next = self.arena.len();
            (pair.start, pair.length) = (change.next, change.places);
            reserve(&mut self.arena, change.places as usize)?;
            self.arena.resize(change.next + change.places as usize, 0);
        }
        for &(neighbor, position) in &side.places {
            let change = &mut side.changes[neighbor as usize];
            if change.next != usize::MAX {
                self.arena[change.next] = position;
                change.next += 1;
            } else if again {
                let (left, right) = pair_of(neighbor);
                let number = self.pairs.find(left, right);
                if let Some(more) = number.and_then(|number| self.again.get_mut(&number)) {
                    more.push(position);
                }
            }
        }
        Ok(())
    }
}

/// Returns the number of cells of the token that begins or ends at `cell`.
#[inline(always)]
fn length_at(lengths: &HashMap<u32, u32>, symbols: &Symbols, cell: usize, token: u32) -> usize {
    let shape = symbols.shape(token);
    match shape.varies {
        false => shape.length as usize,
        true => (lengths.get(&(cell as u32)).unwrap_or(&shape.length) & !ENDS) as usize,
    }
}

#[inline(always)]
fn is_at(
    cells: &[Cell],
    lengths: &HashMap<u32, u32>,
    symbols: &Symbols,
    position: u32,
    left: u32,
    right: u32,
) -> bool {
    let start = position as usize;
    let is_first = || lengths.get(&position).is_none_or(|length| length & ENDS == 0);
    cells[start].token == left
        && (!symbols.shape(left).varies || is_first())
        && cells[start + length_at(lengths, symbols, start, left)].token == right
}
