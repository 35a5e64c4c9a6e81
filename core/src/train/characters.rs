//! Trains BPE over characters, and WordPiece, which marks the rest of a word with a prefix.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::polling::poll;

use super::corpus::Corpus;
use super::piece_table::PieceTable;
use super::symbols::{Limits, Symbols};

/// Training options, as in Hugging Face's trainers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Size of the vocabulary; special tokens and the alphabet are always included.
    pub vocab_size: usize,
    /// Minimum count of a pair to be merged. 0 means 1.
    pub min_frequency: u64,
    /// Tokens that get the first ids.
    pub special_tokens: Vec<String>,
    /// Maximum number of characters in the alphabet; the most frequent characters are kept.
    pub limit_alphabet: Option<usize>,
    /// Share of all occurrences of characters that the alphabet covers; all by default.
    pub character_coverage: Option<f64>,
    /// Characters of the alphabet that need not occur.
    pub initial_alphabet: Vec<char>,
    /// Prefix of tokens that do not begin a word.
    pub prefix: String,
    /// Suffix of tokens that end a word.
    pub suffix: String,
    /// Exclusive maximum length of a merged token in characters; two are always allowed.
    pub max_token_length: Option<usize>,
}

/// A vocabulary and its merges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trained {
    /// The tokens, in the order of their ids.
    pub tokens: Vec<String>,
    /// Ids of the two tokens of each merge, in the order of learning.
    pub merges: Vec<(u32, u32)>,
}

/// Learns tokens from UTF-8 words.
///
/// Pairs with the same count merge in the order of their ids, the left token's first. Ids go to
/// special tokens, to characters in their order, to characters with affixes as they occur in words
/// (the most frequent word first, ties in byte order), and to merges. A merge whose token already
/// exists takes no id.
///
/// `progress` is called with the number of tokens. `Break` ends the work.
///
/// ```
/// use std::ops::ControlFlow;
/// use bpe_core::train::characters::{Options, train};
/// use bpe_core::train::piece_table::PieceTable;
///
/// let mut words = PieceTable::default();
/// for (word, count) in [("hug", 10), ("pug", 5), ("pun", 12), ("bun", 4), ("hugs", 5)] {
///     words.add(word.as_bytes(), count)?;
/// }
/// let options = Options { vocab_size: 10, ..Options::default() };
/// let trained = train(words, &options, &mut |_| ControlFlow::Continue(()))?;
/// assert_eq!(trained.tokens[7..], ["ug", "un", "hug"]);
/// # Ok::<(), bpe_core::Error>(())
/// ```
pub fn train(
    words: PieceTable,
    options: &Options,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Trained> {
    let mut symbols = Symbols::default();
    for token in &options.special_tokens {
        symbols.intern_of(token.as_bytes(), 0)?;
    }
    let mut corpus = laid_out(words, options, &mut symbols)?;
    let mut merges = Vec::new();
    while symbols.len() < options.vocab_size {
        let Some(pair) = corpus.best(options.min_frequency)? else { break };
        let (left, right) = (pair.left, pair.right);
        let token = joined(&symbols, left, right, options);
        let (new, _) = symbols.intern_joined(&token, [left, right])?;
        corpus.merge(&symbols, pair, new)?;
        merges.push((left, right));
        if progress(symbols.len()).is_break() {
            break;
        }
    }
    let text = |token| String::from_utf8_lossy(symbols.bytes(token)).into_owned();
    Ok(Trained { tokens: (0..symbols.len() as u32).map(text).collect(), merges: last(merges) })
}

/// Keeps the last of repeated merges.
fn last(merges: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    let mut seen = HashSet::new();
    let mut kept: Vec<_> = merges.into_iter().rev().filter(|&merge| seen.insert(merge)).collect();
    kept.reverse();
    kept
}

/// Concatenates two tokens, without the prefix of the second token.
fn joined(symbols: &Symbols, left: u32, right: u32, options: &Options) -> Vec<u8> {
    let right = symbols.bytes(right);
    let rest = right.strip_prefix(options.prefix.as_bytes()).unwrap_or(right);
    [symbols.bytes(left), rest].concat()
}

/// A character, its count, and its token by position: alone in a word, first, inside, last.
#[derive(Clone, Copy)]
struct Letter {
    character: char,
    count: u64,
    is_kept: bool,
    tokens: [Option<u32>; 4],
    met: [Option<Met>; 4],
}

/// The occurrence of a character that decides the id of its token: in the most frequent word, ties
/// in byte order.
#[derive(Clone, Copy)]
struct Met {
    count: u64,
    word: u32,
    at: u32,
}

/// The characters of words, found by their code points.
struct Letters {
    list: Vec<Letter>,
    /// Number of each letter plus one, by code point. Pages of zeros take no memory.
    numbers: Vec<u32>,
    /// Number of characters in all distinct words.
    cells: usize,
}

impl Letters {
    /// Counts the characters of words.
    fn of(words: &PieceTable) -> Result<Self> {
        let numbers = vec![0; char::MAX as usize + 1];
        let mut letters = Self { list: Vec::new(), numbers, cells: 0 };
        for (number, (word, count)) in (0..).zip(words.iter()) {
            poll(word.len())?;
            for (at, (place, character)) in (0..).zip(places(text(word)?)) {
                letters.cells += 1;
                let letter = letters.get_or_add(character);
                letter.count = letter.count.saturating_add(count);
                let is_earlier = |met: Met| {
                    count > met.count
                        || count == met.count
                            && number != met.word
                            && word < words.get(met.word as usize).0
                };
                if letter.met[place].is_none_or(is_earlier) {
                    letter.met[place] = Some(Met { count, word: number, at });
                }
            }
        }
        Ok(letters)
    }

    #[inline]
    fn get_or_add(&mut self, character: char) -> &mut Letter {
        let number = &mut self.numbers[character as usize];
        if *number == 0 {
            let (tokens, met) = ([None; 4], [None; 4]);
            self.list.push(Letter { character, count: 0, is_kept: false, tokens, met });
            *number = self.list.len() as u32;
        }
        &mut self.list[*number as usize - 1]
    }

    /// Assigns tokens to the characters with affixes, in the order in which they occur in words.
    fn intern(
        &mut self,
        words: &PieceTable,
        options: &Options,
        symbols: &mut Symbols,
    ) -> Result<()> {
        let mut order = Vec::new();
        for (number, letter) in self.list.iter().enumerate().filter(|(_, it)| it.is_kept) {
            for (place, met) in letter.met.iter().enumerate() {
                if let Some(Met { count, word, at }) = *met {
                    let word = words.get(word as usize).0;
                    order.push((Reverse(count), word, at, number, place));
                }
            }
        }
        order.sort_unstable();
        for (_, _, _, number, place) in order {
            let letter = &mut self.list[number];
            let prefix = if place >= 2 { &options.prefix } else { "" };
            let suffix = if place % 2 == 1 { &options.suffix } else { "" };
            let form = format!("{prefix}{}{suffix}", letter.character);
            letter.tokens[place] = Some(symbols.intern_of(form.as_bytes(), 1)?.0);
        }
        Ok(())
    }
}

fn places(word: &str) -> impl Iterator<Item = (usize, char)> {
    let mut characters = word.chars().peekable();
    let mut is_first = true;
    std::iter::from_fn(move || {
        let character = characters.next()?;
        let is_last = characters.peek().is_none();
        let place = usize::from(!is_first) * 2 + usize::from(is_last);
        is_first = false;
        Some((place, character))
    })
}

/// Finds the alphabet, assigns tokens to its characters, and lays out words as these tokens.
fn laid_out(words: PieceTable, options: &Options, symbols: &mut Symbols) -> Result<Corpus> {
    let mut letters = Letters::of(&words)?;
    for &character in &options.initial_alphabet {
        letters.get_or_add(character).count = u64::MAX;
    }
    let mut order: Vec<_> =
        letters.list.iter().map(|letter| (Reverse(letter.count), letter.character)).collect();
    order.sort_unstable();
    order.truncate(options.limit_alphabet.unwrap_or(usize::MAX));
    order.truncate(covered(order.iter().map(|it| it.0.0), options.character_coverage));
    let mut kept: Vec<char> = order.into_iter().map(|(_, character)| character).collect();
    kept.sort_unstable();
    let mut buffer = [0; 4];
    for character in kept {
        symbols.intern_of(character.encode_utf8(&mut buffer).as_bytes(), 0)?;
    }
    for letter in &mut letters.list {
        // A special token of one character is also in the alphabet.
        let text = letter.character.encode_utf8(&mut buffer);
        letter.is_kept = symbols.number(text.as_bytes()).is_some();
    }
    letters.intern(&words, options, symbols)?;
    let longest = options.max_token_length.map(|most| most.saturating_sub(1).max(2) as u32);
    let mut corpus = Corpus::new(Limits { bytes: longest, words: None });
    corpus.reserve(words.len(), letters.cells)?;
    let (prefix, suffix) = (&options.prefix[..], &options.suffix[..]);
    let mut has_affix = false;
    let (mut tokens, mut kept) = (Vec::new(), String::new());
    // The merges do not depend on the order of words.
    for (word, count) in words.iter() {
        poll(word.len())?;
        tokens.clear();
        kept.clear();
        for (place, character) in places(text(word)?) {
            if let Some(token) = letters.get_or_add(character).tokens[place] {
                tokens.push(token);
                kept.push(character);
            }
        }
        has_affix |= !prefix.is_empty() && kept.starts_with(prefix);
        has_affix |= !suffix.is_empty() && kept.contains(suffix);
        corpus.add(symbols, &tokens, count)?;
    }
    drop(words);
    corpus.find_pairs(symbols)?;
    // Without affixes in words, no token is made a second time from different parts.
    if has_affix {
        corpus.keep_apart()?;
    }
    Ok(corpus)
}

/// Returns how many of the counts, in descending order, make up a share of their sum. The sum omits
/// counts of `u64::MAX`.
pub(super) fn covered(counts: impl Iterator<Item = u64> + Clone, part: Option<f64>) -> usize {
    let Some(part) = part else { return usize::MAX };
    let real = |count: u64| if count == u64::MAX { 0.0 } else { count as f64 };
    let wanted = part * counts.clone().map(real).sum::<f64>();
    let mut sum = 0.0;
    let is_needed = |&count: &u64| {
        let is_needed = sum < wanted || count == u64::MAX;
        sum += real(count);
        is_needed
    };
    counts.take_while(is_needed).count()
}

/// Returns a word as text.
pub fn text(word: &[u8]) -> Result<&str> {
    std::str::from_utf8(word).map_err(|_| {
        Error::Vocabulary(format!("the word b\"{}\" is not UTF-8", word.escape_ascii()))
    })
}

/// Returns a vocabulary of whole words: special tokens, then words by descending count, ties in
/// byte order, up to `most` tokens.
pub fn word_level(
    words: &PieceTable,
    special_tokens: &[String],
    most: usize,
    min_frequency: u64,
) -> Result<Vec<String>> {
    let mut tokens: Vec<String> = special_tokens.iter().take(most).cloned().collect();
    for number in words.by_count() {
        let (word, count) = words.get(number as usize);
        if tokens.len() >= most || count < min_frequency {
            break;
        }
        tokens.push(text(word)?.to_owned());
    }
    Ok(tokens)
}
