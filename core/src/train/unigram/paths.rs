//! Sums and best paths over the pieces of a word.

use super::matches::Word;

/// The data of a piece that paths need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weighted {
    /// Logarithm of the probability.
    pub(super) score: f64,
    pub(super) probability: f64,
    /// Length of the piece in characters.
    pub(super) length: u32,
}

/// All pieces, with the unknown character.
pub(super) struct Model {
    pub(super) pieces: Vec<Weighted>,
    pub(super) unknown: Weighted,
}

/// Difference between the lowest piece score and the score of an unknown character.
const PENALTY: f64 = 10.0;

/// Sums below this limit are multiplied by its inverse.
const TINY: f64 = 1e-120;

/// Number of an unknown character on a path.
pub(super) const UNKNOWN: u32 = u32::MAX;

impl Model {
    pub(super) fn new(scores: &[f64], lengths: impl Iterator<Item = u32>) -> Self {
        let weighted =
            |(&score, length): (&f64, u32)| Weighted { score, probability: score.exp(), length };
        let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let unknown = weighted((&(least - PENALTY), 1));
        Self { pieces: scores.iter().zip(lengths).map(weighted).collect(), unknown }
    }

    pub(super) fn score(&self, piece: u32) -> f64 {
        self.pieces.get(piece as usize).unwrap_or(&self.unknown).score
    }

    /// Returns the positions of a word, with the pieces that begin there.
    #[inline(always)]
    fn places<'a>(&'a self, word: &Word<'a>) -> impl Iterator<Item = (usize, Edges<'a>)> {
        let mut rest = word.pieces;
        word.counts.iter().enumerate().map(move |(at, &count)| {
            let (pieces, after) = rest.split_at(usize::from(count));
            rest = after;
            (at, Edges { model: self, pieces })
        })
    }
}

/// Pieces that begin at a position.
struct Edges<'a> {
    model: &'a Model,
    pieces: &'a [u32],
}

impl Edges<'_> {
    /// Calls `visit` with each piece, and with an unknown character if no piece is one character.
    #[inline(always)]
    fn each(&self, mut visit: impl FnMut(u32, &Weighted)) {
        let mut is_known = false;
        for &piece in self.pieces {
            let weighted = &self.model.pieces[piece as usize];
            is_known |= weighted.length == 1;
            visit(piece, weighted);
        }
        if !is_known {
            visit(UNKNOWN, &self.model.unknown);
        }
    }
}

/// Buffers of a walk over words.
#[derive(Default)]
pub(super) struct Walk {
    /// Sum of all paths to each position, and the number of [`TINY`] factors removed.
    before: Vec<(f64, i32)>,
    after: Vec<f64>,
    best: Vec<(f64, u32, u32)>,
    path: Vec<u32>,
}

impl Walk {
    /// Adds the expected count of each piece in a word that occurs `times` times to sums in units
    /// of `1 / unit`.
    pub(super) fn expect(
        &mut self,
        model: &Model,
        word: &Word<'_>,
        longest: usize,
        times: f64,
        expected: &mut [u64],
    ) {
        let length = word.counts.len();
        self.before.clear();
        self.before.resize(length + 1, (0.0, 0));
        self.before[0].0 = 1.0;
        let mut taken = 0;
        for (at, edges) in model.places(word) {
            if self.before[at].0 < TINY {
                taken += 1;
                let end = (at + longest).min(length);
                self.before[at..=end].iter_mut().for_each(|sum| sum.0 /= TINY);
            }
            self.before[at].1 = taken;
            let sum = self.before[at].0;
            edges.each(|_, piece| {
                if let Some(next) = self.before.get_mut(at + piece.length as usize) {
                    next.0 += sum * piece.probability;
                }
            });
        }
        let whole = times / self.before[length].0;
        self.after.clear();
        self.after.resize(length + 1, 0.0);
        self.after[length] = 1.0;
        let (mut end, mut behind) = (word.pieces.len(), 0);
        for at in (0..length).rev() {
            let start = end - usize::from(word.counts[at]);
            let edges = Edges { model, pieces: &word.pieces[start..end] };
            end = start;
            let (sum, before) = self.before[at];
            let factor = match taken - before - behind {
                0 => sum * whole,
                // The sums of both sides lack fewer `TINY` factors than the whole, by `others`.
                others => sum * whole * TINY.powi(-others),
            };
            let mut all = 0.0;
            edges.each(|number, piece| {
                let part = piece.probability * self.after[at + piece.length as usize];
                all += part;
                if number != UNKNOWN {
                    expected[number as usize] += (factor * part) as u64;
                }
            });
            self.after[at] = all;
            if all < TINY {
                behind += 1;
                let end = (at + longest).min(length);
                self.after[at..=end].iter_mut().for_each(|sum| *sum /= TINY);
            }
        }
    }

    /// Returns the best path, last piece first. On ties, the longest last piece wins; with
    /// `prefers_short`, the shortest. `is_barred` excludes one piece.
    pub(super) fn best(
        &mut self,
        model: &Model,
        word: &Word<'_>,
        barred: Option<u32>,
        prefers_short: bool,
    ) -> &[u32] {
        let length = word.counts.len();
        self.best.clear();
        self.best.resize(length + 1, (f64::NEG_INFINITY, 0, UNKNOWN));
        self.best[0].0 = 0.0;
        for (at, edges) in model.places(word) {
            let score = self.best[at].0;
            edges.each(|number, piece| {
                let Some(next) = self.best.get_mut(at + piece.length as usize) else { return };
                let new = score + piece.score;
                if Some(number) != barred && (new > next.0 || prefers_short && new == next.0) {
                    *next = (new, at as u32, number);
                }
            });
        }
        self.path.clear();
        let mut at = length;
        while at > 0 {
            let (_, start, piece) = self.best[at];
            self.path.push(piece);
            at = start as usize;
        }
        &self.path
    }

    /// Returns the score of the last path found.
    pub(super) fn score(&self) -> f64 {
        self.best.last().map_or(0.0, |best| best.0)
    }
}
