//! Distinct words as one text of character numbers.

use std::cmp::Reverse;

use crate::error::{Error, Result};
use crate::polling::poll;

use super::super::characters::{covered, text};
use super::super::piece_table::PieceTable;

/// The number after each word; no character has this number.
pub(super) const END: u32 = 0;

/// All words, concatenated as character numbers.
pub(super) struct Words {
    /// Numbers of characters, with [`END`] after each word.
    pub(super) text: Vec<u32>,
    pub(super) counts: Vec<u64>,
    /// Characters in ascending order; their numbers begin with 1.
    pub(super) characters: Vec<char>,
    /// Number of bits in a character number.
    pub(super) width: usize,
    /// Indexed by character number: true for a character in no piece.
    is_border: Vec<bool>,
}

impl Words {
    /// Lays out words as character numbers. No result depends on the order of words.
    ///
    /// Pieces contain no U+0000, and only characters that cover the share `coverage` of all
    /// occurrences.
    pub(super) fn new(table: PieceTable, coverage: Option<f64>) -> Result<Self> {
        let mut characters: Vec<char> = Vec::new();
        let mut is_met = vec![false; char::MAX as usize + 1];
        for (word, _) in table.iter() {
            poll(word.len())?;
            for character in text(word)?.chars() {
                if !std::mem::replace(&mut is_met[character as usize], true) {
                    characters.push(character);
                }
            }
        }
        drop(is_met);
        characters.sort_unstable();
        let mut numbers = vec![0u32; characters.last().map_or(0, |&last| last as usize + 1)];
        for (number, &character) in (1..).zip(&characters) {
            numbers[character as usize] = number;
        }
        let (mut whole, mut counts) = (Vec::new(), Vec::with_capacity(table.len()));
        for (word, count) in table.iter() {
            poll(word.len())?;
            if word.is_empty() || count == 0 {
                continue;
            }
            whole.extend(text(word)?.chars().map(|character| numbers[character as usize]));
            whole.push(END);
            counts.push(count);
        }
        if u32::try_from(whole.len()).is_err() {
            return Err(Error::Vocabulary(format!(
                "the distinct words have {} characters, more than {}; train on a sample, or cut \
                 text at spaces",
                whole.len(),
                u32::MAX
            )));
        }
        let width = 64 - (characters.len() as u64 + 1).leading_zeros() as usize;
        let mut is_border = vec![false; characters.len() + 1];
        if characters.first() == Some(&'\0') {
            is_border[1] = true;
        }
        let mut new = Self { text: whole, counts, characters, width, is_border };
        let mut order = new.character_counts();
        order.sort_unstable_by_key(|&(count, code)| (Reverse(count), code));
        let covered = covered(order.iter().map(|it| it.0), coverage);
        for (_, code) in order.into_iter().skip(covered) {
            new.is_border[code as usize] = true;
        }
        Ok(new)
    }

    /// Returns true for a character that occurs in no piece.
    #[inline(always)]
    pub(super) fn is_border(&self, code: u32) -> bool {
        self.is_border[code as usize]
    }

    /// Returns the characters that occur in pieces.
    pub(super) fn letters(&self) -> impl Iterator<Item = char> {
        let codes = (1..).zip(&self.characters);
        codes.filter(|&(code, _)| !self.is_border(code)).map(|(_, &character)| character)
    }

    /// Returns the number at a position; [`END`] for a character that occurs in no piece.
    #[inline(always)]
    pub(super) fn sorted(&self, at: usize) -> u32 {
        let code = self.text[at];
        if self.is_border(code) { END } else { code }
    }

    /// Packs the numbers from a position to the end of the word into one order-preserving number.
    #[inline(always)]
    pub(super) fn key(&self, mut at: usize, most: usize) -> u64 {
        let mut key = 0;
        for taken in 1..=most {
            let code = self.sorted(at);
            key = key << self.width | u64::from(code);
            if code == END {
                return key << (self.width * (most - taken));
            }
            at += 1;
        }
        key
    }

    /// Returns the count of each character, and its number.
    pub(super) fn character_counts(&self) -> Vec<(u64, u32)> {
        let mut counts = vec![0u64; self.characters.len() + 1];
        let mut word = 0;
        for &code in &self.text {
            if code == END {
                word += 1;
            } else {
                let count = &mut counts[code as usize];
                *count = count.saturating_add(self.counts[word]);
            }
        }
        let counts = counts.into_iter().zip(0..).skip(1);
        counts.filter(|&(_, code)| !self.is_border(code)).collect()
    }

    /// Returns the total count of all characters.
    pub(super) fn total(&self) -> u64 {
        let counts = self.character_counts().into_iter().map(|(count, _)| count);
        counts.fold(0, u64::saturating_add)
    }

    pub(super) fn string(&self, at: usize, length: usize) -> String {
        let codes = self.text[at..at + length].iter();
        codes.map(|&code| self.characters[code as usize - 1]).collect()
    }
}
