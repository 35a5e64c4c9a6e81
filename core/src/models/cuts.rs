//! Cuts text between characters that are adjacent in no token: no merge can cross such a cut.

use std::ops::Range;

use crate::ablation::Mechanism;
use crate::split::Piece;

use crate::components::bytes::MARK;
use crate::error::Result;

/// The characters that are tokens, and the pairs of characters that are adjacent in a token.
#[derive(Debug)]
pub(crate) struct Cutter {
    /// One bit per code point: whether the character is a token.
    known: Vec<u64>,
    joined: Joined,
}

/// A part of a text between two cuts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Characters that are tokens and may merge.
    Known(Range<usize>),
    /// Characters that are not tokens.
    Unknown(Range<usize>),
}

impl Cutter {
    /// Creates a table of these characters without adjacent pairs.
    pub(crate) fn new(characters: impl Iterator<Item = char>) -> Self {
        let mut known = vec![0; (char::MAX as usize).div_ceil(64)];
        for code in characters.map(|character| character as usize) {
            known[code / 64] |= 1 << (code % 64);
        }
        Self { known, joined: Joined::new(Vec::new()) }
    }

    /// Sets the adjacent pairs, which may repeat.
    pub(crate) fn join(&mut self, pairs: Vec<[char; 2]>) {
        self.joined = Joined::new(pairs);
    }

    pub(crate) fn count(&self) -> usize {
        self.known.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn is_known(&self, character: char) -> bool {
        let code = character as usize;
        self.known[code / 64] >> (code % 64) & 1 != 0
    }

    /// Whether a text can be cut between these two characters.
    pub(crate) fn are_apart(&self, before: char, after: char) -> bool {
        match (self.is_known(before), self.is_known(after)) {
            (false, false) => false,
            (true, true) => !self.joined.contains(before, after),
            _ => true,
        }
    }

    /// Cuts a text into parts that merge independently.
    ///
    /// With `in_bytes`, each byte of a character that is not a token is a piece, except spaces and
    /// marks, which are swapped.
    pub(crate) fn cuts<'a>(&'a self, text: &'a str, in_bytes: bool) -> Cuts<'a> {
        Cuts { cutter: self, text, in_bytes, start: 0, read: 0 }
    }

    /// Calls `found` with the parts of a text, like [`Cutter::cuts`], until `found` fails.
    pub(crate) fn each_part(
        &self,
        text: &str,
        mut found: impl FnMut(Cut) -> Result<()>,
    ) -> Result<()> {
        let mut cuts = self.cuts(text, false);
        let mut pieces = [Piece::default(); 2 * BLOCK];
        loop {
            let count = cuts.fill(&mut pieces);
            pieces[..count]
                .iter()
                .try_for_each(|piece| found(Cut::Known(piece.start..piece.end)))?;
            if count == 0 {
                let Some(range) = cuts.unknown() else { return Ok(()) };
                found(Cut::Unknown(range))?;
            }
        }
    }
}

/// Parts of a text, from [`Cutter::cuts`].
pub(crate) struct Cuts<'a> {
    cutter: &'a Cutter,
    text: &'a str,
    in_bytes: bool,
    start: usize,
    /// End of the text read so far, within the next piece.
    read: usize,
}

/// Number of characters that are read at once.
const BLOCK: usize = 32;

impl Cuts<'_> {
    /// Writes the next pieces and returns their number: 0 at the end, and before characters that
    /// are not tokens, which [`Cuts::unknown`] takes. There must be room for twice [`BLOCK`].
    ///
    /// Every position is written, and kept if the text is cut there: a branch per position would be
    /// unpredictable.
    #[inline(never)]
    pub(crate) fn fill(&mut self, pieces: &mut [Piece]) -> usize {
        let Self { cutter, text, in_bytes, .. } = *self;
        let joined = &cutter.joined;
        // An ASCII byte that is not a token never joins other characters.
        let any_byte = in_bytes && cutter.is_known(' ');
        let are_pieces =
            |block: &[u8]| any_byte || block.iter().all(|&byte| cutter.is_known(byte.into()));
        let (mut start, mut at, mut count) = (self.start, self.read, 0);
        // If no piece is open, the character does not matter.
        let mut before = text[start..at].chars().next_back().unwrap_or('\0');
        while at < text.len() && count + 2 * BLOCK <= pieces.len() {
            if let Some(block) = text.as_bytes()[at..].first_chunk::<BLOCK>()
                && before.is_ascii()
                && block.is_ascii()
                && are_pieces(block)
                && Mechanism::Cuts.is_used()
            {
                let mut before_byte = before as u8;
                for (place, &byte) in block.iter().enumerate() {
                    let end = at + place;
                    let is_apart = (start < end) & joined.is_apart(before_byte, byte);
                    pieces[count] = Piece { start, end };
                    count += usize::from(is_apart);
                    start = if is_apart { end } else { start };
                    before_byte = byte;
                }
                before = before_byte.into();
                at += BLOCK;
                continue;
            }
            for character in text[at..].chars().take(BLOCK) {
                if !cutter.is_known(character) {
                    pieces[count] = Piece { start, end: at };
                    count += usize::from(start < at);
                    start = at;
                    if !in_bytes || matches!(character, ' ' | MARK) {
                        (self.start, self.read) = (at, at);
                        return count;
                    }
                    for _ in 0..character.len_utf8() {
                        pieces[count] = Piece { start, end: start + 1 };
                        count += 1;
                        start += 1;
                    }
                    at = start;
                    // `pieces` may be full.
                    break;
                }
                let is_apart = (start < at) & !joined.contains(before, character);
                pieces[count] = Piece { start, end: at };
                count += usize::from(is_apart);
                start = if is_apart { at } else { start };
                before = character;
                at += character.len_utf8();
            }
        }
        if at == text.len() && start < at {
            pieces[count] = Piece { start, end: at };
            count += 1;
            start = at;
        }
        (self.start, self.read) = (start, at);
        count
    }

    /// Returns the characters outside the vocabulary at the position where [`Cuts::fill`] stopped.
    pub(crate) fn unknown(&mut self) -> Option<Range<usize>> {
        let (start, rest) = (self.start, &self.text[self.start..]);
        let is_known = |character| self.cutter.is_known(character);
        self.start += rest.find(is_known).unwrap_or(rest.len());
        self.read = self.start;
        (start < self.start).then_some(start..self.start)
    }
}

/// Pairs of characters that are adjacent in a token. May also report other pairs outside ASCII,
/// which only makes pieces longer.
#[derive(Debug)]
struct Joined {
    /// 1 for each pair of ASCII characters that is adjacent in no token.
    apart: Box<[[u8; 128]; 128]>,
    /// One bit per hash of any other pair.
    others: Vec<u64>,
    /// 64 minus the number of bits of a hash.
    shift: u32,
}

/// Bits of the table per pair: many, because text without other cuts relies on this table.
const SPARSE: usize = 64;

impl Joined {
    /// Creates the table; pairs may repeat.
    fn new(mut pairs: Vec<[char; 2]>) -> Joined {
        let mut apart = Box::new([[1; 128]; 128]);
        let is_ascii = |pair: &[char; 2]| pair.iter().all(char::is_ascii);
        pairs.iter().filter(|pair| is_ascii(pair)).for_each(|pair| {
            apart[pair[0] as usize][pair[1] as usize] = 0;
        });
        pairs.retain(|pair| !is_ascii(pair));
        pairs.sort_unstable();
        pairs.dedup();
        let bits = (pairs.len() * SPARSE).next_power_of_two().ilog2().clamp(6, 32);
        let mut joined = Self { apart, others: vec![0; 1 << (bits - 6)], shift: u64::BITS - bits };
        for [before, after] in pairs {
            let (word, bit) = joined.place(before, after);
            joined.others[word] |= 1 << bit;
        }
        joined
    }

    /// Returns the index of the word for a pair outside ASCII, and the bit in the word.
    #[inline(always)]
    fn place(&self, before: char, after: char) -> (usize, u32) {
        let pair = u64::from(before as u32) << 32 | u64::from(after as u32);
        let hash = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        ((hash >> 6) as usize, hash as u32 & 63)
    }

    #[inline(always)]
    fn contains(&self, before: char, after: char) -> bool {
        if !Mechanism::Cuts.is_used() {
            return true;
        }
        if before.is_ascii() && after.is_ascii() {
            return !self.is_apart(before as u8, after as u8);
        }
        let (word, bit) = self.place(before, after);
        self.others[word] >> bit & 1 != 0
    }

    /// Whether [`Joined::contains`] is false for two ASCII characters.
    #[inline(always)]
    fn is_apart(&self, before: u8, after: u8) -> bool {
        self.apart[usize::from(before & 127)][usize::from(after & 127)] != 0
    }
}
