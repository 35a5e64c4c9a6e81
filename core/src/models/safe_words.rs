//! Looks up the words of a text for [`Viterbi`], whose sums round differently depending on earlier
//! text.
//!
//! A path is best after any text if its margin over every other path exceeds all rounding errors of
//! both: an error is at most half of the last bit of the largest sum. Such words are cached with
//! their ids; other words are cached as a mark, and searched with the sum of the text before them.

use std::cell::RefCell;

use crate::ablation::Mechanism;
use crate::lookup::Resolve;
use crate::polling::poll;
use crate::pool::Pool;
use crate::split::{Batch, Piece};

use super::piece::UNKNOWN;
use super::pieces::SentencePieces;
use super::viterbi::{Viterbi, Walk, each_match};
use crate::components::sentencepiece::{Normalizer, Words};
use crate::error::Result;

/// Maximum length in bytes of a word that is looked up.
const LONGEST: usize = 64;
/// Limit for small sums, and half the value of their last bit.
const SMALL: Limit = Limit { sum: 16_384.0, rounding: 1.0 / 2048.0 };
const LARGE: Limit = Limit { sum: 100_000.0, rounding: 1.0 / 256.0 };
/// Flag on the first id of a word: one for ids that the cache can pack, one for larger ids.
const FLAGS: [u32; 2] = [1 << 19, 1 << 23];

struct Limit {
    sum: f32,
    rounding: f64,
}

/// Marks in the cache, numbered after the token ids.
#[derive(Clone, Copy)]
struct Marks {
    /// Mark for a character that is not a token.
    unknown: u32,
    /// Mark for a word that must be searched.
    searched: u32,
    /// Precedes the ids of a word that must be searched if the sum is not [`SMALL`].
    small: u32,
    /// Flag added to the first id or mark of a word.
    first: u32,
}

impl Marks {
    /// Creates the marks, numbered from `unknown` on.
    fn new(unknown: u32) -> Option<Self> {
        let marks = |first| Self { unknown, searched: unknown + 1, small: unknown + 2, first };
        FLAGS.into_iter().map(marks).find(|marks| marks.small < marks.first)
    }
}

/// State of the search through a text: the sum so far, and the ids.
pub(crate) struct Search<'a> {
    viterbi: &'a Viterbi,
    /// Normalizer of the words, if they are not normalized yet.
    normalizer: Option<&'a Normalizer>,
    marks: Marks,
    /// Largest change that a looked-up word can make to the sum.
    change: f32,
    word: String,
    walk: Walk,
    bytes: &'a [u32],
    ids: &'a mut Vec<u32>,
}

/// Finds the ids of uncached words of a text.
struct Uncached<'a> {
    text: &'a str,
    viterbi: &'a Viterbi,
    normalizer: Option<&'a Normalizer>,
    marks: Marks,
    /// Whether unknown characters become byte tokens, which only a search finds.
    has_bytes: bool,
    memory: RefCell<(String, Vec<Best>)>,
}

impl Uncached<'_> {
    /// Appends the ids of the best path of a word, or marks for the word.
    fn append(&self, word: &str, best: &mut Vec<Best>, ids: &mut Vec<u32>) -> Result<()> {
        let Self { viterbi, marks, has_bytes, .. } = *self;
        if word.is_empty() || word.len() > LONGEST {
            ids.push(marks.searched);
            return Ok(());
        }
        let margin = viterbi.best_and_margin(word, best)?;
        let roundings = 2 * word.len() as u32 + 4;
        let is_safe = |limit: &Limit| margin > f64::from(roundings) * limit.rounding;
        if !is_safe(&SMALL) {
            ids.push(marks.searched);
            return Ok(());
        }
        let from = ids.len();
        let mut end = word.len();
        while end > 0 {
            let Best { id, start, .. } = best[end];
            if id == UNKNOWN && has_bytes {
                ids.truncate(from);
                ids.push(marks.searched);
                return Ok(());
            }
            ids.push(if id == UNKNOWN { marks.unknown } else { id });
            end = start as usize;
        }
        if !is_safe(&LARGE) {
            ids.push(marks.small);
        }
        ids[from..].reverse();
        Ok(())
    }
}

impl Resolve for Uncached<'_> {
    fn resolve(&self, _: &[u8], Piece { start, end }: Piece, ids: &mut Vec<u32>) -> Result<()> {
        poll(end - start)?;
        let word = &self.text[start..end];
        let from = ids.len();
        let mut memory = self.memory.borrow_mut();
        let (normalized, best) = &mut *memory;
        match self.normalizer {
            Some(normalizer) if word.len() <= LONGEST => {
                normalizer.write_word(word, normalized)?;
                self.append(normalized, best, ids)?;
            }
            _ => self.append(word, best, ids)?,
        }
        ids[from] |= self.marks.first;
        Ok(())
    }
}

impl<'a> Search<'a> {
    /// Appends the ids of a text, which is normalized if there are no `words`. A character that is
    /// not a token becomes its `bytes`, if any, otherwise [`UNKNOWN`].
    ///
    /// Returns false if words cannot be looked up.
    pub(crate) fn append(
        viterbi: &'a Viterbi,
        pieces: &'a SentencePieces,
        pool: &Pool,
        text: &str,
        words: Option<(&'a Normalizer, &Words)>,
        ids: &'a mut Vec<u32>,
    ) -> Result<bool> {
        let change = viterbi.largest_score() * LONGEST as f32;
        let is_small = change < SMALL.sum / 2.0 && Mechanism::Margins.is_used();
        let Some(marks) = Marks::new(viterbi.size()).filter(|_| is_small) else {
            return Ok(false);
        };
        let (bytes, normalizer) = (&*pieces.bytes, words.map(|(normalizer, _)| normalizer));
        let permits = |it| words.is_some_and(|(_, words)| words.permits(it));
        let mut cut = words.map(|(_, words)| words.cut(text, &permits));
        let mut start = 0;
        let fill = |batch: &mut Batch| match &mut cut {
            Some(cut) => {
                let count = cut.fill(batch);
                if let Some((normalizer, words)) = words
                    && normalizer.remove_extra_whitespaces
                {
                    words.leave_out_spaces(text.as_bytes(), &mut batch[..count]);
                }
                count
            }
            None => viterbi.fill(text, &mut start, batch),
        };
        let (walk, word) = (Walk::default(), String::new());
        let mut search = Self { viterbi, normalizer, marks, change, word, walk, bytes, ids };
        let memory = RefCell::default();
        let uncached =
            Uncached { text, viterbi, normalizer, marks, has_bytes: !bytes.is_empty(), memory };
        let mut found = Vec::with_capacity(text.len() / 3);
        pool.encode_batches(&uncached, text, fill, &mut found, |pieces, found| {
            search.take(text, pieces, found)?;
            found.clear();
            Ok(())
        })?;
        Ok(true)
    }

    /// Appends the ids of words found in the cache, and searches the words that need a search.
    fn take(&mut self, text: &str, words: &[Piece], found: &[u32]) -> Result<()> {
        self.ids.reserve(found.len());
        let Self { viterbi, marks, change, .. } = *self;
        let (small, large) = (SMALL.sum - change, LARGE.sum - change);
        let (mut word, mut is_taken) = (0, true);
        for &marked in found {
            let first = marked & marks.first;
            word += usize::from(first != 0);
            let id = marked ^ first;
            let sum = self.walk.sum;
            if (id < marks.unknown) & (sum.abs() <= large) & is_taken {
                self.walk.sum = viterbi.sum(sum, id);
                self.ids.push(id);
                continue;
            }
            if first != 0 {
                let most = if id == marks.small { small } else { large };
                is_taken = id != marks.searched && sum.abs() <= most;
                if !is_taken {
                    let Piece { start, end } = words[word - 1];
                    self.search(&text[start..end])?;
                }
            }
            if is_taken && id != marks.small {
                let is_unknown = id == marks.unknown;
                self.walk.sum = match is_unknown {
                    true => viterbi.unknown_score() + sum,
                    false => viterbi.sum(sum, id),
                };
                self.ids.push(if is_unknown { UNKNOWN } else { id });
            }
        }
        Ok(())
    }

    /// Searches a word, continuing the sum so far, and appends its ids.
    fn search(&mut self, word: &str) -> Result<()> {
        let word = match self.normalizer {
            Some(normalizer) => {
                normalizer.write_word(word, &mut self.word)?;
                &self.word
            }
            None => word,
        };
        self.viterbi.walk(
            word,
            |_, _| false,
            &mut self.walk,
            |id, span| {
                if id != UNKNOWN || self.bytes.is_empty() {
                    self.ids.push(id);
                    return Ok(());
                }
                let bytes = word.as_bytes()[span].iter();
                self.ids.extend(bytes.map(|&byte| self.bytes[usize::from(byte)]));
                Ok(())
            },
        )
    }
}

/// The two best paths to a position.
#[derive(Clone, Copy)]
struct Best {
    score: f64,
    second: f64,
    start: u32,
    id: u32,
}

impl Best {
    const NONE: Self =
        Self { score: f64::NEG_INFINITY, second: f64::NEG_INFINITY, start: 0, id: 0 };

    /// Extends the paths by one token.
    #[inline(always)]
    fn improve(&mut self, before: Self, score: f64, start: u32, id: u32) {
        let (one, two) = (before.score + score, before.second + score);
        if one > self.score {
            self.second = self.score.max(two);
            (self.score, self.start, self.id) = (one, start, id);
        } else {
            self.second = self.second.max(one);
        }
    }
}

impl Viterbi {
    /// Finds the best path to each position of a word, without rounding. Returns the margin of the
    /// best path of the word over the second best.
    fn best_and_margin(&self, word: &str, best: &mut Vec<Best>) -> Result<f64> {
        best.clear();
        best.reserve(word.len() + 1);
        best.resize(word.len() + 1, Best::NONE);
        best[0].score = 0.0;
        each_match(
            self.trie(),
            word,
            |_, _| false,
            |id, span| {
                let score = match id {
                    UNKNOWN => f64::from(self.unknown_score()),
                    _ => self.scores[id as usize],
                };
                let before = best[span.start];
                best[span.end].improve(before, score, span.start as u32, id);
            },
        )?;
        let last = best[word.len()];
        Ok(last.score - last.second)
    }
}
