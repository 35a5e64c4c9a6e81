//! Learns the merges that a vocabulary needs so that each given word becomes one token.
//!
//! Every word is first cut into the pieces that the base's merges leave. Then the pair of adjacent
//! pieces with the highest frequency is repeatedly merged in all words, until no word has two
//! pieces left. Counts are updated with each merge, and a priority queue whose entries may be
//! stale, but never too low, gives the best pair.

use std::cmp::Reverse;
use std::collections::hash_map::Entry as MapEntry;
use std::collections::{BinaryHeap, HashMap};
use std::ops::ControlFlow;
use std::rc::Rc;

/// Rank of each token of the base. Learning only looks tokens up; the tables of a
/// [`crate::Vocabulary`] take longer to build than a short list takes to learn.
pub type Ranks = HashMap<Vec<u8>, u32>;

/// A word that is to become one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word<'a> {
    /// Bytes of the word, in UTF-8.
    pub bytes: &'a [u8],
    /// Frequency, possibly zero or negative.
    pub frequency: i64,
}

/// Learning options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum number of tokens to learn.
    pub max_tokens: Option<usize>,
    /// Minimum frequency of a pair to be merged.
    pub min_frequency: Option<i64>,
    /// Learn only tokens that are whole characters, and complete the characters first.
    pub whole_characters: bool,
    /// Count a merge towards `max_tokens` even if its token is not new.
    pub count_repeats: bool,
}

/// Whether a merged token is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Novelty {
    /// The token is new.
    New,
    /// The base already has the token, but its merges did not produce it here.
    InBase,
}

/// One merge, in the order of learning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    /// The bytes of the first part.
    pub left: Vec<u8>,
    /// The bytes of the second part.
    pub right: Vec<u8>,
    /// Whether the token is new.
    pub novelty: Novelty,
    /// Frequency of the pair when it was merged.
    pub frequency: i128,
    /// Number of words in which the pair was merged.
    pub words: usize,
}

/// The merges of one word, and its pieces before and after learning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path {
    /// End of each piece in bytes after the base's merges.
    pub first: Vec<usize>,
    /// End of each piece after learning; one entry if the word became one token.
    pub last: Vec<usize>,
    /// Merges that were applied, as indices in [`Learned::merges`].
    pub merges: Vec<u32>,
    /// With `whole_characters`: a character of the word is cut into three or more pieces and cannot
    /// become one piece, so the word was skipped.
    pub blocked: bool,
}

/// The merges, and one path for each word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Learned {
    /// The merges, in the order of learning.
    pub merges: Vec<Merge>,
    /// The paths, in the order of the words.
    pub paths: Vec<Path>,
}

/// The progress of learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Number of words that are one piece, or were skipped.
    pub finished: usize,
    /// Total number of words.
    pub words: usize,
    /// Number of merges so far.
    pub merges: usize,
}

/// Learning was cancelled by its progress callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled;

/// Number of words that are updated between two progress calls.
const WORDS_PER_TICK: usize = 1 << 10;

/// Learns the merges that make each of `words` one token, after the merges of `base`.
///
/// The pair with the highest frequency comes first; ties go to the merged token with fewer
/// characters (bytes that are not UTF-8 decoded as U+FFFD), then fewer bytes, then the lower text,
/// then the lower bytes. Every occurrence of a pair counts, including overlapping occurrences.
///
/// `progress` is called at intervals; `Break` ends the work.
///
/// ```
/// use std::ops::ControlFlow;
/// use bpe_core::train::extend::{Options, Ranks, Word, learn};
///
/// let base: Ranks = (0..=255u8).map(|byte| (vec![byte], u32::from(byte))).collect();
/// let words = [Word { bytes: b"low", frequency: 5 }, Word { bytes: b"lower", frequency: 2 }];
/// let go_on = &mut |_| ControlFlow::Continue(());
/// let learned = learn(&base, &words, &Options::default(), go_on).unwrap();
/// let tokens: Vec<_> = learned.merges.iter().map(|m| [&m.left[..], &m.right].concat()).collect();
/// assert_eq!(tokens, [&b"lo"[..], b"low", b"er", b"lower"]);
/// ```
pub fn learn(
    base: &Ranks,
    words: &[Word<'_>],
    options: &Options,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Learned, Cancelled> {
    let mut learner = Learner::new(options, progress, words.len());
    for word in words {
        learner.add(base, *word)?;
    }
    learner.queue_dirty();
    let mut tokens = 0;
    while options.max_tokens.is_none_or(|limit| tokens < limit) {
        let Some(pair) = learner.best() else { break };
        let novelty = learner.apply(base, pair)?;
        tokens += usize::from(novelty == Novelty::New || options.count_repeats);
    }
    Ok(learner.finish())
}

/// Returns the ends of the pieces of `word` after the merges of `base`.
///
/// All occurrences of the pair with the lowest rank are merged at once, left to right. For a
/// trained base, encoding does the same; for a base whose tokens have lower ranks than their parts,
/// encoding may merge occurrences one at a time in a different order.
fn existing_merges(base: &Ranks, word: &[u8]) -> Vec<usize> {
    // `joined[i]` is the rank of piece `i` joined with the next piece.
    let mut starts: Vec<usize> = (0..=word.len()).collect();
    let rank = |from: usize, to: usize| base.get(&word[from..to]).copied();
    let mut joined: Vec<Option<u32>> =
        starts.windows(3).map(|window| rank(window[0], window[2])).collect();
    while let Some(lowest) = joined.iter().flatten().min().copied() {
        let first = joined.iter().position(|&rank| rank == Some(lowest)).expect("it was found");
        let (left, right) =
            (&word[starts[first]..starts[first + 1]], &word[starts[first + 1]..starts[first + 2]]);
        let mut merged = starts[..=first].to_vec();
        let mut i = first;
        while i + 1 < starts.len() {
            let is_pair = i + 2 < starts.len()
                && word[starts[i]..starts[i + 1]] == *left
                && word[starts[i + 1]..starts[i + 2]] == *right;
            i += if is_pair { 2 } else { 1 };
            merged.push(starts[i]);
        }
        starts = merged;
        joined = starts.windows(3).map(|window| rank(window[0], window[2])).collect();
    }
    starts.split_off(1)
}

/// Order of pairs with the same frequency in the queue. Fields are in order of weight.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TieRule {
    characters: usize,
    length: usize,
    text: String,
    bytes: Vec<u8>,
}

impl TieRule {
    fn new(bytes: Vec<u8>) -> Self {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Self { characters: text.chars().count(), length: bytes.len(), text, bytes }
    }
}

/// Two adjacent pieces.
#[derive(Debug)]
struct Pair {
    left: u32,
    right: u32,
    /// 0 for a pair that completes a character when characters come first, otherwise 1.
    stage: u8,
    /// True if the pair may be merged.
    allowed: bool,
    rule: Rc<TieRule>,
    frequency: i128,
    /// Number of occurrences of the pair; a pair without occurrences is gone, for any frequency.
    places: u64,
    /// All words that contain the pair; words may repeat, and some words may have lost the pair.
    words: Vec<u32>,
    /// True while the pair waits in [`Learner::dirty`].
    dirty: bool,
}

/// An entry of the queue; the greatest comes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Queued {
    stage: Reverse<u8>,
    frequency: i128,
    rule: Reverse<Rc<TieRule>>,
    pair: u32,
}

struct LearnedWord {
    frequency: i64,
    pieces: Vec<u32>,
    path: Path,
}

struct Learner<'a> {
    options: &'a Options,
    progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    symbols: HashMap<Rc<[u8]>, u32>,
    symbol_bytes: Vec<Rc<[u8]>>,
    pair_numbers: HashMap<(u32, u32), u32>,
    pairs: Vec<Pair>,
    /// Pairs whose frequency may have grown since they were queued.
    dirty: Vec<u32>,
    queue: BinaryHeap<Queued>,
    words: Vec<LearnedWord>,
    merges: Vec<Merge>,
    total: usize,
    finished: usize,
    updates: usize,
}

impl<'a> Learner<'a> {
    fn new(
        options: &'a Options,
        progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
        total: usize,
    ) -> Self {
        Self {
            options,
            progress,
            symbols: HashMap::new(),
            symbol_bytes: Vec::new(),
            pair_numbers: HashMap::new(),
            pairs: Vec::new(),
            dirty: Vec::new(),
            queue: BinaryHeap::new(),
            words: Vec::with_capacity(total),
            merges: Vec::new(),
            total,
            finished: 0,
            updates: 0,
        }
    }

    fn tick(&mut self) -> Result<(), Cancelled> {
        self.updates += 1;
        if self.updates.is_multiple_of(WORDS_PER_TICK) {
            let now =
                Progress { finished: self.finished, words: self.total, merges: self.merges.len() };
            if (self.progress)(now).is_break() {
                return Err(Cancelled);
            }
        }
        Ok(())
    }

    /// Adds a word: its pieces, and their pairs.
    fn add(&mut self, base: &Ranks, word: Word<'_>) -> Result<(), Cancelled> {
        self.tick()?;
        let first = existing_merges(base, word.bytes);
        let blocked = self.options.whole_characters && cuts_a_character_twice(word.bytes, &first);
        let mut start = 0;
        let mut pieces = Vec::with_capacity(first.len());
        for &end in &first {
            pieces.push(self.symbol(&word.bytes[start..end]));
            start = end;
        }
        let number = self.words.len() as u32;
        if blocked || pieces.len() < 2 {
            self.finished += 1;
        } else {
            for i in 0..pieces.len() - 1 {
                self.count(pieces[i], pieces[i + 1], word.frequency, number);
            }
        }
        let path = Path { first, blocked, ..Path::default() };
        self.words.push(LearnedWord { frequency: word.frequency, pieces, path });
        Ok(())
    }

    fn symbol(&mut self, bytes: &[u8]) -> u32 {
        if let Some(&symbol) = self.symbols.get(bytes) {
            return symbol;
        }
        let symbol = self.symbol_bytes.len() as u32;
        let bytes: Rc<[u8]> = bytes.into();
        self.symbols.insert(Rc::clone(&bytes), symbol);
        self.symbol_bytes.push(bytes);
        symbol
    }

    /// Counts one more occurrence of the pair, in the word `number`.
    fn count(&mut self, left: u32, right: u32, frequency: i64, number: u32) {
        let pair = match self.pair_numbers.entry((left, right)) {
            MapEntry::Occupied(entry) => *entry.get(),
            MapEntry::Vacant(entry) => {
                let parts = [&self.symbol_bytes[left as usize], &self.symbol_bytes[right as usize]];
                let bytes = parts.map(|part| &part[..]).concat();
                let whole = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
                let cut = self.options.whole_characters && !parts.iter().all(|part| whole(part));
                let number = self.pairs.len() as u32;
                self.pairs.push(Pair {
                    left,
                    right,
                    stage: u8::from(!cut),
                    allowed: !self.options.whole_characters || whole(&bytes),
                    rule: Rc::new(TieRule::new(bytes)),
                    frequency: 0,
                    places: 0,
                    words: Vec::new(),
                    dirty: false,
                });
                *entry.insert(number)
            }
        };
        let entry = &mut self.pairs[pair as usize];
        entry.frequency += i128::from(frequency);
        entry.places += 1;
        if entry.words.last() != Some(&number) {
            entry.words.push(number);
        }
        if !entry.dirty {
            entry.dirty = true;
            self.dirty.push(pair);
        }
    }

    /// Subtracts one occurrence of the pair.
    fn uncount(&mut self, left: u32, right: u32, frequency: i64) {
        let pair = &mut self.pairs[self.pair_numbers[&(left, right)] as usize];
        pair.frequency -= i128::from(frequency);
        pair.places -= 1;
        // One occurrence fewer of a negative frequency raises the pair's frequency.
        if frequency < 0 && !pair.dirty {
            pair.dirty = true;
            self.dirty.push(self.pair_numbers[&(left, right)]);
        }
    }

    fn queue_dirty(&mut self) {
        for pair in std::mem::take(&mut self.dirty) {
            self.pairs[pair as usize].dirty = false;
            self.enqueue(pair);
        }
    }

    fn enqueue(&mut self, number: u32) {
        let pair = &self.pairs[number as usize];
        let enough = self.options.min_frequency.is_none_or(|least| pair.frequency >= least.into());
        if pair.places > 0 && pair.allowed && enough {
            self.queue.push(Queued {
                stage: Reverse(pair.stage),
                frequency: pair.frequency,
                rule: Reverse(Rc::clone(&pair.rule)),
                pair: number,
            });
        }
    }

    /// Removes the best pair from the queue.
    ///
    /// Two pairs never tie: the merges of the bytes between two boundaries depend on these bytes
    /// alone, so another pair of the same bytes never exists, now or before.
    fn best(&mut self) -> Option<u32> {
        while let Some(entry) = self.queue.pop() {
            let pair = &self.pairs[entry.pair as usize];
            if pair.places > 0 && pair.frequency == entry.frequency {
                return Some(entry.pair);
            }
            // Requeue a pair whose frequency fell. A frequency that grew is queued already.
            if pair.frequency < entry.frequency {
                self.enqueue(entry.pair);
            }
        }
        None
    }

    /// Merges a pair in all words.
    fn apply(&mut self, base: &Ranks, number: u32) -> Result<Novelty, Cancelled> {
        let pair = &mut self.pairs[number as usize];
        let (left, right, frequency) = (pair.left, pair.right, pair.frequency);
        let bytes = pair.rule.bytes.clone();
        let mut words = std::mem::take(&mut pair.words);
        words.sort_unstable();
        words.dedup();
        let merged = self.symbol(&bytes);
        let novelty = if base.contains_key(&bytes) { Novelty::InBase } else { Novelty::New };
        let merge = self.merges.len() as u32;
        self.merges.push(Merge {
            left: self.symbol_bytes[left as usize].to_vec(),
            right: self.symbol_bytes[right as usize].to_vec(),
            novelty,
            frequency,
            words: 0,
        });
        for word in words {
            if self.apply_in_word(word, (left, right), merged) {
                self.words[word as usize].path.merges.push(merge);
                self.merges[merge as usize].words += 1;
            }
            self.tick()?;
        }
        self.queue_dirty();
        Ok(novelty)
    }

    /// Merges all occurrences of a pair in one word, left to right; returns false if none occur.
    fn apply_in_word(&mut self, number: u32, (left, right): (u32, u32), merged: u32) -> bool {
        let word = &mut self.words[number as usize];
        let frequency = word.frequency;
        let Some(first) = word.pieces.windows(2).position(|two| two == [left, right]) else {
            return false;
        };
        let old = std::mem::take(&mut word.pieces);
        let mut new = old[..first].to_vec();
        let (mut i, mut last) = (first, first);
        while i < old.len() {
            if old[i] == left && old.get(i + 1) == Some(&right) {
                new.push(merged);
                last = i;
                i += 2;
            } else {
                new.push(old[i]);
                i += 1;
            }
        }
        // Only the pairs next to a merged piece change.
        let from = first.saturating_sub(1);
        let after = (old.len() - 1).saturating_sub(last + 2);
        for i in from..old.len() - 1 - after {
            self.uncount(old[i], old[i + 1], frequency);
        }
        for i in from..new.len() - 1 - after {
            self.count(new[i], new[i + 1], frequency, number);
        }
        self.finished += usize::from(new.len() == 1);
        self.words[number as usize].pieces = new;
        true
    }

    fn finish(self) -> Learned {
        let symbol_bytes = self.symbol_bytes;
        let ends = |word: LearnedWord| {
            let mut end = 0;
            let last = word.pieces.iter().map(|&symbol| {
                end += symbol_bytes[symbol as usize].len();
                end
            });
            Path { last: last.collect(), ..word.path }
        };
        Learned { merges: self.merges, paths: self.words.into_iter().map(ends).collect() }
    }
}

/// Returns true if three or more pieces lie between two positions where both a piece and a
/// character end: joining two such pieces never makes whole characters.
fn cuts_a_character_twice(word: &[u8], ends: &[usize]) -> bool {
    let Ok(text) = std::str::from_utf8(word) else { return true };
    let mut pieces = 0;
    ends.iter().any(|&end| {
        pieces += 1;
        let group = pieces;
        if text.is_char_boundary(end) {
            pieces = 0;
        }
        group > 2
    })
}
