//! Trains byte-level BPE: repeatedly merges the most frequent pair of neighboring tokens into a new
//! token.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::merge;
use crate::polling::poll;
use crate::vocabulary::Vocabulary;

use super::corpus::{Candidate, Corpus};
use super::piece_table::PieceTable;
use super::symbols::Symbols;

pub use super::symbols::Limits;

/// Training options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Size of the vocabulary, including the tokens of the base.
    pub tokens: usize,
    /// Minimum count of a pair to be merged. 0 means 1.
    pub min_frequency: u64,
    /// Limits on new tokens.
    pub limits: Limits,
}

/// Pieces of a corpus, and the unit that measures its compression.
#[derive(Debug)]
pub struct Pieces {
    /// Distinct pieces.
    pub table: PieceTable,
    /// Number of bytes, characters or lines: the next merge serves the corpus with the fewest units
    /// per token.
    pub units: u64,
}

/// One merge. Tokens are numbered in the order of ids: first the base's tokens, then new tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merge {
    /// First part.
    pub left: u32,
    /// Second part.
    pub right: u32,
    /// Merged token. The token is not new if the vocabulary already had these bytes.
    pub token: u32,
    /// Count of the pair in the corpus that was served.
    pub frequency: u64,
    /// Index of the corpus that was served.
    pub corpus: u32,
}

/// Returns the maximum memory in bytes of training on these pieces, without pairs and tokens: while
/// the pieces are copied out of the table, or later, when the table is freed and they are merged.
pub fn memory(table: &PieceTable) -> usize {
    let (laid_out, merged) = Corpus::memory(table.len(), table.bytes());
    table.memory().saturating_add(laid_out).max(merged)
}

/// The result of training.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trained {
    /// New tokens, in the order of their ids.
    pub tokens: Vec<Vec<u8>>,
    /// All merges, in the order of learning.
    pub merges: Vec<Merge>,
    /// Number of tokens in each corpus when encoded with the result.
    pub corpus_tokens: Vec<u64>,
}

/// Learns tokens after `base`, whose tokens are in the order of their ids.
///
/// Pieces are first encoded with the base; a piece that is a token of the base becomes that token.
/// The pair with the highest count in the corpus with the worst compression is merged in all
/// corpora. A merge whose bytes are already a token yields that token and takes no id. Learning
/// ends before `options.tokens` if no pair occurs often enough.
///
/// `progress` is called with the number of tokens. On `Break`, the result has the tokens learned so
/// far.
///
/// ```
/// use std::ops::ControlFlow;
/// use bpe_core::train::bpe::{Limits, Options, Pieces, train};
/// use bpe_core::train::piece_table::PieceTable;
///
/// let mut table = PieceTable::default();
/// for (piece, count) in [("hug", 10), ("pug", 5), ("pun", 12), ("bun", 4), ("hugs", 5)] {
///     table.add(piece.as_bytes(), count)?;
/// }
/// let base: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
/// let options = Options { tokens: 259, min_frequency: 2, limits: Limits::default() };
/// let go_on = &mut |_| ControlFlow::Continue(());
/// let trained = train(&base, vec![Pieces { table, units: 0 }], &options, go_on)?;
/// assert_eq!(trained.tokens, [&b"ug"[..], b"un", b"hug"]);
/// # Ok::<(), bpe_core::Error>(())
/// ```
pub fn train(
    base: &[Vec<u8>],
    corpora: Vec<Pieces>,
    options: &Options,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Trained> {
    let mut symbols = Symbols::default();
    for token in base {
        if !symbols.intern(token)?.1 || token.is_empty() {
            return Err(Error::Vocabulary(format!(
                "the base has the token b\"{}\" twice, or it is empty",
                token.escape_ascii()
            )));
        }
    }
    let encoder = BaseEncoder::new(base)?;
    let units: Vec<u64> = corpora.iter().map(|pieces| pieces.units).collect();
    let mut ready = Vec::with_capacity(corpora.len());
    for pieces in corpora {
        ready.push(encoder.corpus(&symbols, &pieces.table, options)?);
    }
    let mut trainer = Trainer { symbols, corpora: ready, units, options, merges: Vec::new() };
    while trainer.symbols.len() < options.tokens {
        let Some((corpus, pair)) = trainer.next()? else { break };
        trainer.merge(corpus, pair)?;
        if progress(trainer.symbols.len()).is_break() {
            break;
        }
    }
    Ok(trainer.finish(base.len()))
}

/// Encodes pieces with the base.
enum BaseEncoder {
    /// For a base of single bytes only: the number of each byte's token.
    Bytes(Box<[Option<u32>; 256]>),
    Vocabulary(Box<Vocabulary>),
}

impl BaseEncoder {
    fn new(base: &[Vec<u8>]) -> Result<Self> {
        if base.iter().any(|token| token.len() != 1) {
            let ranks = base.iter().cloned().zip(0..).collect();
            return Ok(Self::Vocabulary(Box::new(Vocabulary::build(ranks)?)));
        }
        let mut numbers = Box::new([None; 256]);
        for (token, number) in base.iter().zip(0..) {
            numbers[usize::from(token[0])] = Some(number);
        }
        Ok(Self::Bytes(numbers))
    }

    fn encode(&self, piece: &[u8], tokens: &mut Vec<u32>) -> Result<()> {
        match self {
            Self::Bytes(numbers) => {
                for &byte in piece {
                    let number = numbers[usize::from(byte)];
                    tokens.push(number.ok_or(Error::MissingByte { byte })?);
                }
                Ok(())
            }
            Self::Vocabulary(vocabulary) => match vocabulary.rank(piece) {
                Some(rank) => {
                    tokens.push(rank);
                    Ok(())
                }
                None => merge::merge(vocabulary, piece, tokens),
            },
        }
    }

    fn corpus(&self, symbols: &Symbols, table: &PieceTable, options: &Options) -> Result<Corpus> {
        let mut corpus = Corpus::new(options.limits);
        corpus.reserve(table.len(), table.bytes())?;
        let mut tokens = Vec::new();
        // The merges do not depend on the order of pieces.
        for (piece, count) in table.iter() {
            tokens.clear();
            poll(piece.len())?;
            tokens.reserve(piece.len());
            self.encode(piece, &mut tokens)?;
            corpus.add(symbols, &tokens, count)?;
        }
        corpus.find_pairs(symbols)?;
        Ok(corpus)
    }
}

struct Trainer<'a> {
    symbols: Symbols,
    corpora: Vec<Corpus>,
    units: Vec<u64>,
    options: &'a Options,
    merges: Vec<Merge>,
}

impl Trainer<'_> {
    /// Returns the next merge, and the corpus it serves: the corpus with the worst compression
    /// among those with a merge.
    fn next(&mut self) -> Result<Option<(usize, Candidate)>> {
        let mut order: Vec<usize> = (0..self.corpora.len()).collect();
        // Fewest units per token first: a / b < c / d if a * d < c * b.
        order.sort_by(|&a, &b| {
            let ratio = |one: usize, other: usize| {
                u128::from(self.units[one]) * u128::from(self.corpora[other].tokens.max(1))
            };
            ratio(a, b).cmp(&ratio(b, a))
        });
        for corpus in order {
            if let Some(pair) = self.corpora[corpus].best(self.options.min_frequency)? {
                return Ok(Some((corpus, pair)));
            }
        }
        Ok(None)
    }

    fn merge(&mut self, corpus: usize, pair: Candidate) -> Result<()> {
        let Candidate { left, right, count, .. } = pair;
        let (new, _) = self.symbols.intern(&self.symbols.joined(left, right))?;
        for corpus in &mut self.corpora {
            corpus.merge(&self.symbols, pair, new)?;
        }
        let (frequency, corpus) = (count, corpus as u32);
        self.merges.push(Merge { left, right, token: new, frequency, corpus });
        Ok(())
    }

    fn finish(self, base: usize) -> Trained {
        let new = base as u32..self.symbols.len() as u32;
        Trained {
            tokens: new.map(|token| self.symbols.bytes(token).to_vec()).collect::<Vec<_>>(),
            merges: self.merges,
            corpus_tokens: self.corpora.iter().map(|corpus| corpus.tokens).collect(),
        }
    }
}
