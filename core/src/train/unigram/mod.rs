//! Trains Unigram, like Hugging Face's and SentencePiece's trainers: starts with very many pieces,
//! estimates how often each is used by expectation maximization, and repeatedly drops the pieces
//! whose loss costs the least (Kudo, arXiv 1804.10959).
//!
//! | module | purpose |
//! |---|---|
//! | `words` | distinct words as one text of numbers |
//! | `seeds` | the initial pieces |
//! | `matches` | the pieces that match at each place, found once |
//! | `paths` | sums and best paths over the pieces of a word |
//!
//! Sums over words are integers, so no result depends on the order of words or on threads.

mod matches;
mod paths;
mod seeds;
mod words;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::polling::poll;

use super::piece_table::PieceTable;
use matches::{Matches, Word};
use paths::{Model, Walk};
use words::Words;

/// Training options, as in Hugging Face's trainer.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Number of tokens, including special tokens.
    pub vocab_size: usize,
    /// Number of special tokens, which are not pieces.
    pub special_tokens: usize,
    /// Texts that do not become pieces, because they are other tokens.
    pub excluded: Vec<String>,
    /// Share of all character occurrences that pieces cover; all by default.
    pub character_coverage: Option<f64>,
    /// Characters that become pieces even if they do not occur.
    pub initial_alphabet: Vec<char>,
    /// Share of the pieces kept in each round of pruning: above 0 and below 1.
    pub shrinking_factor: f64,
    /// Rounds of expectation maximization between two rounds of pruning.
    pub sub_iterations: usize,
    /// Maximum number of characters in a piece, up to 255.
    pub max_piece_length: usize,
    /// Number of initial pieces.
    pub seed_size: usize,
    /// The number of threads.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            vocab_size: 8000,
            special_tokens: 0,
            excluded: Vec::new(),
            character_coverage: None,
            initial_alphabet: Vec::new(),
            shrinking_factor: 0.75,
            sub_iterations: 2,
            max_piece_length: 16,
            seed_size: 1_000_000,
            threads: 1,
        }
    }
}

/// Largest possible `max_piece_length`.
const LONGEST: usize = 255;

/// Minimum expected count of a piece to be kept.
const LEAST_EXPECTED: f64 = 0.5;

/// Score difference between characters that are in the vocabulary only because they occur.
const CHARACTER_STEP: f64 = 0.0001;

/// Learns pieces of UTF-8 words, with their scores, best first.
///
/// `progress` is called with the number of remaining pieces. On `Break`, the result has the best
/// pieces so far.
///
/// ```
/// use std::ops::ControlFlow;
/// use bpe_core::train::piece_table::PieceTable;
/// use bpe_core::train::unigram::{Options, train};
///
/// let mut words = PieceTable::default();
/// for (word, count) in [("hug", 10), ("pug", 5), ("pun", 12), ("bun", 4), ("hugs", 5)] {
///     words.add(word.as_bytes(), count)?;
/// }
/// let options = Options { vocab_size: 9, ..Options::default() };
/// let pieces = train(words, &options, &mut |_| ControlFlow::Continue(()))?;
/// assert_eq!(pieces.len(), 9);
/// assert_eq!(pieces[0].0, "pu");
/// # Ok::<(), bpe_core::Error>(())
/// ```
pub fn train(
    words: PieceTable,
    options: &Options,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Vec<(String, f64)>> {
    options.check()?;
    let words = Words::new(words, options.character_coverage)?;
    let mut required: Vec<char> = words.letters().collect();
    required.extend(&options.initial_alphabet);
    required.sort_unstable();
    required.dedup();
    required.retain(|&it| !options.excluded.iter().any(|name| name.chars().eq([it])));
    let (size, special) = (options.vocab_size, options.special_tokens);
    if required.len().saturating_add(special) > size {
        return Err(Error::Vocabulary(format!(
            "a vocabulary of {size} tokens has no room for the {} characters of the text and \
             {special} special tokens; ask for more, or leave rare characters out",
            required.len()
        )));
    }
    let seeds = seeds::find(&words, options.seed_size, options.max_piece_length)?;
    let mut trainer = Trainer::new(&words, seeds, options);
    // Other trainers also count an unknown piece.
    let wanted = options.vocab_size.saturating_mul(11) / 10;
    loop {
        for _ in 0..options.sub_iterations {
            trainer.maximize()?;
        }
        let left = trainer.pieces.len();
        if left < wanted || progress(left).is_break() {
            break;
        }
        trainer.prune(wanted)?;
        if trainer.pieces.len() == left {
            break;
        }
    }
    Ok(trainer.finish(required))
}

impl Options {
    fn check(&self) -> Result<()> {
        let wrong = |text: String| Err(Error::Vocabulary(text));
        let Self { shrinking_factor, sub_iterations, max_piece_length, seed_size, .. } = self;
        if !(*shrinking_factor > 0.0 && *shrinking_factor < 1.0) {
            return wrong(format!(
                "the shrinking factor is {shrinking_factor}; it must be above 0 and below 1"
            ));
        }
        if *sub_iterations == 0 {
            return wrong("there are 0 sub-iterations; 1 or more are needed".to_owned());
        }
        if !(1..=LONGEST).contains(max_piece_length) {
            return wrong(format!(
                "the longest piece has {max_piece_length} characters; it can have 1 to {LONGEST}"
            ));
        }
        if *seed_size == 0 {
            return wrong("the seed size is 0; it must be 1 or more".to_owned());
        }
        Ok(())
    }
}

/// A piece: its first occurrence, and its characters.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: u32,
    length: u32,
}

struct Trainer<'a> {
    words: &'a Words,
    options: &'a Options,
    pieces: Vec<Place>,
    scores: Vec<f64>,
    matches: Matches,
    /// Number of fixed-point units per 1 in sums: a power of two.
    unit: f64,
}

impl<'a> Trainer<'a> {
    fn new(words: &'a Words, seeds: seeds::Seeds, options: &'a Options) -> Self {
        let seeds::Seeds { scores, matches, pieces } = seeds;
        let sum = scores.iter().sum::<f64>().ln();
        let scores = scores.iter().map(|score| score.ln() - sum).collect();
        let total = words.total().saturating_add(1);
        let unit = f64::from(total.leading_zeros().saturating_sub(1).min(52)).exp2();
        Self { words, options, pieces, scores, matches, unit }
    }

    fn model(&self) -> Model {
        Model::new(&self.scores, self.pieces.iter().map(|piece| piece.length))
    }

    /// Computes sums over all words, on several threads. `visit` adds the sums of a word.
    fn sums(&self, visit: impl Fn(&mut Walk, Word<'_>, &mut [u64]) + Sync) -> Result<Vec<u64>> {
        let chunks = self.matches.chunks(self.words);
        let threads = self.options.threads.clamp(1, chunks.len().max(1));
        let is_over = AtomicBool::new(false);
        let work = |thread: usize| {
            let (mut walk, mut sums) = (Walk::default(), vec![0u64; self.pieces.len() + 1]);
            for chunk in chunks.iter().skip(thread).step_by(threads) {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                self.matches.each(self.words, *chunk, |word| {
                    poll(word.counts.len() + word.pieces.len())?;
                    visit(&mut walk, word, &mut sums);
                    Ok(())
                })?;
            }
            Ok(sums)
        };
        std::thread::scope(|scope| {
            let work = &work;
            let others: Vec<_> =
                (1..threads).map(|thread| scope.spawn(move || work(thread))).collect();
            // Only this thread is interrupted; it stops the others.
            let mut sums = work(0).inspect_err(|_| is_over.store(true, Ordering::Relaxed));
            for other in others {
                let Ok(more) = other.join() else {
                    return Err(Error::Vocabulary("a thread of training panicked".to_owned()));
                };
                if let (Ok(sums), Ok(more)) = (&mut sums, more) {
                    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
                }
            }
            sums
        })
    }

    /// Computes scores from the expected counts of pieces, and drops pieces with hardly any count.
    fn maximize(&mut self) -> Result<()> {
        let (model, longest) = (self.model(), self.options.max_piece_length);
        let expected = self.sums(|walk, word, sums| {
            let times = self.words.counts[word.number] as f64 * self.unit;
            walk.expect(&model, &word, longest, times, sums);
        })?;
        let expected = expected.iter().map(|&sum| sum as f64 / self.unit);
        let mut kept: Vec<(u32, f64)> = (0..).zip(expected).take(self.pieces.len()).collect();
        kept.retain(|&(_, count)| count >= LEAST_EXPECTED);
        if kept.is_empty() {
            return Ok(());
        }
        let sum = digamma(kept.iter().map(|&(_, count)| count).sum());
        let scored = kept.iter().map(|&(piece, count)| (piece, digamma(count) - sum)).collect();
        self.keep(scored)
    }

    /// Keeps only the pieces in `kept`, with new scores and in this order.
    fn keep(&mut self, kept: Vec<(u32, f64)>) -> Result<()> {
        let mut numbers = vec![None; self.pieces.len()];
        for (new, &(piece, _)) in (0..).zip(&kept) {
            numbers[piece as usize] = Some(new);
        }
        self.matches.renumber(&numbers)?;
        self.pieces = kept.iter().map(|&(piece, _)| self.pieces[piece as usize]).collect();
        self.scores = kept.into_iter().map(|(_, score)| score).collect();
        Ok(())
    }

    /// Drops the pieces whose loss costs the least likelihood, down to a share of them or `wanted`.
    fn prune(&mut self, wanted: usize) -> Result<()> {
        let model = self.model();
        let unknown = self.pieces.len();
        let counts = self.sums(|walk, word, sums| {
            let times = self.words.counts[word.number];
            for &piece in walk.best(&model, &word, None, false) {
                sums[(piece as usize).min(unknown)] += times;
            }
        })?;
        let count = |piece: u32| counts[(piece as usize).min(unknown)] as f64;
        let sum: f64 = (0..=unknown as u32).map(count).sum();
        let words: f64 = self.words.counts.iter().map(|&count| count as f64).sum();
        let (mut kept, mut candidates, mut walk) = (Vec::new(), Vec::new(), Walk::default());
        for (piece, &Place { at, length }) in (0..).zip(&self.pieces) {
            poll(length as usize)?;
            let stretch = self.matches.stretch(at as usize..(at + length) as usize);
            let others =
                if length > 1 { walk.best(&model, &stretch, Some(piece), true) } else { &[] };
            let others = others.to_vec();
            let is_best = length == 1 || walk.score() < model.score(piece);
            let is_used = count(piece) > 0.0;
            if !(is_used || is_best && others.is_empty()) {
                continue;
            }
            if others.is_empty() || !is_best {
                kept.push(piece);
                continue;
            }
            let logarithm = count(piece).ln() - sum.ln();
            // Hugging Face's trainer uses the number of all pieces here, not of the alternatives.
            let more = (sum + count(piece) * self.pieces.len() as f64).ln();
            let instead = |&other: &u32| (count(other) + count(piece)).ln() - more;
            // `count / words` is below 1 if few words contain the piece.
            let instead = others.iter().map(instead).fold(0.0, |all, one| all + one);
            candidates.push((piece, count(piece) / words * (logarithm - instead)));
        }
        let part = (self.pieces.len() + 1) as f64 * self.options.shrinking_factor;
        let most = wanted.max(part as usize).saturating_sub(1);
        candidates.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        kept.extend(
            candidates.into_iter().map(|(piece, _)| piece).take(most.saturating_sub(kept.len())),
        );
        self.keep(kept.into_iter().map(|piece| (piece, self.scores[piece as usize])).collect())
    }

    /// Returns all characters and the first pieces, by score.
    fn finish(self, required: Vec<char>) -> Vec<(String, f64)> {
        let string = |piece: &Place| self.words.string(piece.at as usize, piece.length as usize);
        let least = self.scores.iter().copied().fold(f64::INFINITY, f64::min);
        let least = if least.is_finite() { least } else { 0.0 };
        let mut missing = 0;
        let mut pieces: Vec<(String, f64)> = Vec::new();
        let mut single = std::collections::HashMap::new();
        for (piece, &score) in self.pieces.iter().zip(&self.scores) {
            if piece.length == 1 {
                single.insert(string(piece), score);
            }
        }
        for character in required.into_iter().map(String::from) {
            let score = single.get(&character).copied().unwrap_or_else(|| {
                missing += 1;
                least + CHARACTER_STEP * f64::from(missing - 1)
            });
            pieces.push((character, score));
        }
        let room = self.options.vocab_size - self.options.special_tokens - pieces.len();
        let longer = self.pieces.iter().zip(&self.scores).filter(|(piece, _)| piece.length > 1);
        let longer = longer.map(|(piece, &score)| (string(piece), score));
        pieces.extend(longer.filter(|(it, _)| !self.options.excluded.contains(it)).take(room));
        pieces.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        pieces
    }
}

/// The digamma function: the logarithmic derivative of the gamma function.
fn digamma(mut x: f64) -> f64 {
    let mut result = 0.0;
    while x < 7.0 {
        result -= 1.0 / x;
        x += 1.0;
    }
    x -= 0.5;
    let square = 1.0 / x * (1.0 / x);
    let fourth = square * square;
    let terms = [
        1.0 / 24.0 * square,
        -7.0 / 960.0 * fourth,
        31.0 / 8064.0 * fourth * square,
        -127.0 / 30720.0 * fourth * fourth,
    ];
    result + terms.iter().fold(x.ln(), |sum, term| sum + term)
}
