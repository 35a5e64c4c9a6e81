//! Pairs of neighboring tokens, with their counts and positions.

use crate::error::{Error, Result};
use crate::hash::fold;

#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) left: u32,
    pub(super) right: u32,
    /// Count of the pair. Negative if occurrences were subtracted but, because of a limit, never
    /// added.
    pub(super) count: i64,
    /// Start of the pair's positions in the arena.
    pub(super) start: usize,
    pub(super) length: u32,
    kind: Kind,
}

/// A pair of tokens has one entry, or several: the newest, which has the count, and older entries.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Only,
    Newest,
    Older,
}

/// Pairs by number, found by their tokens.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) list: Vec<Pair>,
    /// Open addressing: the number of a pair plus one. The length is a power of two, and at most
    /// half of the slots are in use.
    slots: Vec<u32>,
}

const FEWEST_SLOTS: usize = 1 << 12;

/// Maximum number of pairs: a number plus one must fit in 32 bits.
const MOST_PAIRS: usize = u32::MAX as usize - 1;

#[inline(always)]
fn hash(left: u32, right: u32) -> usize {
    fold(u64::from(left) << 32 | u64::from(right), 0x9e37_79b9_7f4a_7c15) as usize
}

impl Pairs {
    /// Returns the number of the pair, if the pair has occurred.
    #[inline]
    pub(super) fn find(&self, left: u32, right: u32) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = hash(left, right) & mask;
        loop {
            let number = self.slots[at].checked_sub(1)?;
            let pair = &self.list[number as usize];
            if (pair.left, pair.right) == (left, right) {
                return Some(number);
            }
            at = (at + 1) & mask;
        }
    }

    /// Returns the number of the pair; a new pair gets the next number.
    #[inline]
    pub(super) fn find_or_add(&mut self, left: u32, right: u32) -> Result<u32> {
        if self.list.len() >= self.slots.len() / 2 {
            self.grow()?;
        }
        let mask = self.slots.len() - 1;
        let mut at = hash(left, right) & mask;
        while let Some(number) = self.slots[at].checked_sub(1) {
            let pair = &self.list[number as usize];
            if (pair.left, pair.right) == (left, right) {
                return Ok(number);
            }
            at = (at + 1) & mask;
        }
        let number = self.list.len() as u32;
        self.list.reserve(1);
        self.slots[at] = number + 1;
        self.list.push(Pair { left, right, count: 0, start: 0, length: 0, kind: Kind::Only });
        Ok(number)
    }

    /// Returns the current count of a pair, from its newest entry.
    #[inline]
    pub(super) fn count(&self, number: u32) -> i64 {
        let pair = &self.list[number as usize];
        match pair.kind {
            Kind::Only | Kind::Newest => pair.count,
            Kind::Older => {
                let newest = self.find(pair.left, pair.right);
                newest.map_or(0, |newest| self.list[newest as usize].count)
            }
        }
    }

    pub(super) fn is_one_of_several(&self, number: u32) -> bool {
        self.list[number as usize].kind != Kind::Only
    }

    /// Adds a new entry, without positions, for a pair's tokens, and returns the entry's number.
    /// The new entry has the count from now on.
    pub(super) fn renew(&mut self, number: u32) -> Result<u32> {
        if self.list.len() >= self.slots.len() / 2 {
            self.grow()?;
        }
        let new = self.list.len() as u32;
        let old = &mut self.list[number as usize];
        let pair = Pair { length: 0, kind: Kind::Newest, ..*old };
        old.kind = Kind::Older;
        let mask = self.slots.len() - 1;
        let mut at = hash(pair.left, pair.right) & mask;
        while self.slots[at] != number + 1 {
            at = (at + 1) & mask;
        }
        self.slots[at] = new + 1;
        self.list.push(pair);
        Ok(new)
    }

    fn grow(&mut self) -> Result<()> {
        if self.list.len() >= MOST_PAIRS {
            return Err(Error::OutOfMemory { bytes: self.slots.len() * 4 });
        }
        let mut slots = vec![0u32; (self.slots.len() * 2).max(FEWEST_SLOTS)];
        let mask = slots.len() - 1;
        let found = self.list.iter().enumerate().filter(|(_, pair)| pair.kind != Kind::Older);
        for (number, pair) in found {
            let mut at = hash(pair.left, pair.right) & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = number as u32 + 1;
        }
        self.slots = slots;
        Ok(())
    }
}

/// Numbers of the first pairs: without a base, these are pairs of single bytes, which are found
/// without hashing.
#[derive(Debug)]
pub(super) struct FirstPairs {
    /// Number of a pair plus one, by both tokens.
    numbers: Vec<u32>,
    tokens: usize,
}

impl FirstPairs {
    /// Maximum number of tokens whose pairs are all in the table.
    const MOST: usize = 1024;

    /// Creates an empty table for pairs of `tokens` tokens.
    pub(super) fn new(tokens: usize) -> FirstPairs {
        let tokens = if tokens <= Self::MOST { tokens } else { 0 };
        Self { numbers: vec![0; tokens * tokens], tokens }
    }

    /// Like [`Pairs::find_or_add`], with this table.
    #[inline(always)]
    pub(super) fn find_or_add(&mut self, pairs: &mut Pairs, left: u32, right: u32) -> Result<u32> {
        let at = left as usize * self.tokens + right as usize;
        match self.numbers.get_mut(at) {
            None => pairs.find_or_add(left, right),
            Some(0) => {
                let number = pairs.find_or_add(left, right)?;
                self.numbers[at] = number + 1;
                Ok(number)
            }
            Some(number) => Ok(*number - 1),
        }
    }
}
