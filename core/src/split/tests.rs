//! Tests the scanner against the regex engine, the block cutter against the scanner, and the regex
//! path against itself. Contains shared helpers.

mod blocks;
mod patterns;
mod scanner;
mod words;

use super::compile;
use super::pattern::{Pattern, PatternPieces};
use super::rules::{DEEPSEEK, Family, FamilyName, FamilyVisitor, SPELLINGS};
use super::{BATCH, Piece, scan};
use crate::error::Error;

/// One character of each kind that the rules of the families distinguish.
pub(super) const ALPHABET: &str = "asATlLrEǅßſʰªあ的々\u{301}\u{16FF0}1٣〇² \t\n\r\u{A0}\u{85}\u{3000}'/!’，⺀・\
    \u{3097}\u{1F600}\u{1C}\u{378}\u{0}";

/// Generates random numbers from a seed, by xorshift.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub(super) fn letter(&mut self, alphabet: &str) -> char {
        let place = self.below(alphabet.chars().count());
        alphabet.chars().nth(place).unwrap()
    }
}

pub(super) struct Scan<'a>(&'a str);

impl FamilyVisitor for Scan<'_> {
    type Output = Vec<Piece>;

    fn visit<F: Family>(self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut start = 0;
        while start < self.0.len() {
            let end = scan::next_piece::<F>(self.0.as_bytes(), start);
            assert!(end > start, "no progress at {start} of {:?}", self.0);
            pieces.push(Piece { start, end });
            start = end;
        }
        pieces
    }
}

/// Returns the pieces that the scanner finds.
pub(super) fn scanned(family: FamilyName, text: &str) -> Vec<Piece> {
    family.visit(Scan(text))
}

/// Returns the pieces that the regex engine finds.
pub(super) fn matched(pattern: &Pattern, text: &str) -> Result<Vec<Piece>, Error> {
    let mut matches: PatternPieces = pattern.matches(text);
    let mut batch = [Piece::default(); BATCH];
    let mut pieces = Vec::new();
    loop {
        let count = matches.fill(&mut batch)?;
        if count == 0 {
            return Ok(pieces);
        }
        pieces.extend_from_slice(&batch[..count]);
    }
}

/// Returns the spellings that need no backtracking.
pub(super) fn linear_spellings() -> impl Iterator<Item = (FamilyName, &'static str)> {
    SPELLINGS.iter().copied().filter(|&(_, spelling)| spelling != DEEPSEEK)
}

/// Returns each spelling with its regex, matched by backtracking as the reference.
pub(super) fn oracles() -> Vec<(FamilyName, Pattern)> {
    SPELLINGS
        .iter()
        .map(|(family, spelling)| {
            (*family, Pattern::Backtracking(compile::compile(spelling).unwrap()))
        })
        .collect()
}

/// Calls `check` with all strings of `length` characters of `alphabet`.
pub(super) fn exhaustive(alphabet: &str, length: usize, mut check: impl FnMut(&str)) {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let mut digits = vec![0; length];
    let mut text = String::new();
    loop {
        text.clear();
        text.extend(digits.iter().map(|&digit| alphabet[digit]));
        check(&text);
        let Some(at) = digits.iter().rposition(|&digit| digit + 1 < alphabet.len()) else { return };
        digits[at] += 1;
        digits[at + 1..].fill(0);
    }
}

/// Returns a text of up to `length` characters with long runs of one character.
pub(super) fn random_text(random: &mut Random, length: usize, longest_run: usize) -> String {
    let mut text = String::new();
    let few: Vec<char> = (0..1 + random.below(8)).map(|_| random.letter(ALPHABET)).collect();
    let narrow = random.below(2) == 0;
    for _ in 0..random.below(length + 1) {
        let c = if narrow { random.pick(&few) } else { random.letter(ALPHABET) };
        let run = if random.below(12) == 0 { 1 + random.below(longest_run) } else { 1 };
        text.extend(std::iter::repeat_n(c, run));
    }
    text
}
