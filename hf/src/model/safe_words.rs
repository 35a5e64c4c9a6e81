//! Looks up the words of a text for [`Viterbi`], whose sums are rounded differently after different
//! text.
//!
//! A path is the best whatever was before it if it is better than any other by more than all roundings
//! of both: a rounding is at most half of the last bit of the largest sum. Such words are cached; a
//! mark is cached for others, and these are searched for with the sum of the text before them.

use std::ops::Range;

use bpe_core::ablation::Mechanism;
use bpe_core::lookup::Resolve;
use bpe_core::memory::{filled, push};
use bpe_core::polling::poll;
use bpe_core::pool::Pool;
use bpe_core::split::Piece;

use super::piece::UNKNOWN;
use super::trie::Trie;
use super::viterbi::{Viterbi, Walk, character_length};
use crate::error::Result;

/// The longest word that is looked up, in bytes.
const LONGEST: usize = 64;
/// The words that are looked up at once.
const BATCH: usize = 256;
/// Sums up to these, and half of the last bit of one.
const SMALL: Limit = Limit { sum: 16_384.0, rounding: 1.0 / 2048.0 };
const LARGE: Limit = Limit { sum: 100_000.0, rounding: 1.0 / 256.0 };

struct Limit {
    sum: f32,
    rounding: f64,
}

/// The marks in the cache, after the ids of tokens.
#[derive(Clone, Copy)]
struct Marks {
    /// A character that is not a token.
    unknown: u32,
    /// The word must be searched for.
    searched: u32,
    /// Before the ids of a word that must be searched for where the sum is not [`SMALL`].
    small: u32,
}

/// The search of a text: the sum so far, and the ids.
pub(crate) struct Search<'a> {
    viterbi: &'a Viterbi,
    marks: Marks,
    /// The largest change of a sum by a word that is looked up; `None` if it is too large.
    change: Option<f32>,
    walk: Walk,
    words: Vec<Piece>,
    bytes: &'a [u32],
    ids: &'a mut Vec<u32>,
}

/// Finds the ids of words that are not cached.
struct Uncached<'a> {
    viterbi: &'a Viterbi,
    marks: Marks,
    /// Whether unknown characters become bytes, which only a search finds.
    has_bytes: bool,
}

impl Resolve for Uncached<'_> {
    fn resolve(&self, word: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        poll(word.len())?;
        let Self { viterbi, marks, has_bytes } = *self;
        let (path, margin) = viterbi.best_and_margin(word)?;
        let roundings = 2 * word.len() as u32 + 4;
        let is_safe = |limit: &Limit| margin > f64::from(roundings) * limit.rounding;
        if !is_safe(&SMALL) || has_bytes && path.contains(&UNKNOWN) {
            return push(ids, marks.searched);
        }
        if !is_safe(&LARGE) {
            push(ids, marks.small)?;
        }
        path.into_iter()
            .try_for_each(|id| push(ids, if id == UNKNOWN { marks.unknown } else { id }))
    }
}

impl<'a> Search<'a> {
    /// Appends the ids of a text to `ids`. A character that is not a token becomes its `bytes`, if
    /// there are any, or else [`UNKNOWN`].
    pub(crate) fn append(
        viterbi: &'a Viterbi,
        bytes: &'a [u32],
        pool: &Pool,
        text: &str,
        ids: &'a mut Vec<u32>,
    ) -> Result<()> {
        let first = viterbi.size();
        let marks = Marks { unknown: first, searched: first + 1, small: first + 2 };
        let change = viterbi.largest_score() * LONGEST as f32;
        let change = (change < SMALL.sum / 2.0 && Mechanism::Cuts.is_used()).then_some(change);
        let (walk, words) = (Walk::default(), Vec::new());
        let mut search = Self { viterbi, marks, change, walk, words, bytes, ids };
        let mut start = 0;
        while start < text.len() {
            let end = viterbi.part_end(text, start);
            if end - start <= LONGEST && search.change.is_some() {
                push(&mut search.words, Piece { start, end })?;
                if search.words.len() == BATCH {
                    search.look_up(pool, text)?;
                }
            } else {
                search.look_up(pool, text)?;
                search.search(&text[start..end])?;
            }
            start = end;
        }
        search.look_up(pool, text)
    }

    /// Appends the ids of a word by the sum so far.
    fn search(&mut self, word: &str) -> Result<()> {
        self.viterbi.walk_part(word, 0, &|_, _| false, &mut self.walk)?;
        for (id, span) in self.walk.take_path() {
            if id != UNKNOWN || self.bytes.is_empty() {
                push(self.ids, id)?;
                continue;
            }
            for &byte in &word.as_bytes()[span] {
                push(self.ids, self.bytes[usize::from(byte)])?;
            }
        }
        Ok(())
    }

    fn uncached(&self) -> Uncached<'a> {
        let Self { viterbi, marks, bytes, .. } = *self;
        Uncached { viterbi, marks, has_bytes: !bytes.is_empty() }
    }

    /// Appends the ids of the words that wait.
    fn look_up(&mut self, pool: &Pool, text: &str) -> Result<()> {
        if self.words.is_empty() {
            return Ok(());
        }
        let words = std::mem::take(&mut self.words);
        let (from, sum) = (self.ids.len(), self.walk.sum);
        pool.encode_pieces(&self.uncached(), text, &words, self.ids)?;
        if !self.accept(from) {
            self.ids.truncate(from);
            self.walk.sum = sum;
            for &Piece { start, end } in &words {
                self.look_up_one(pool, &text[start..end])?;
            }
        }
        self.words = words;
        self.words.clear();
        Ok(())
    }

    fn look_up_one(&mut self, pool: &Pool, word: &str) -> Result<()> {
        let from = self.ids.len();
        pool.encode_piece(&self.uncached(), word, self.ids)?;
        let sum = self.walk.sum;
        if !self.accept(from) {
            self.ids.truncate(from);
            self.walk.sum = sum;
            return self.search(word);
        }
        Ok(())
    }

    /// Takes the ids from `from` on, and adds their scores to the sum. Returns false if a word must be
    /// searched for.
    fn accept(&mut self, from: usize) -> bool {
        let Self { viterbi, marks, change, ids, .. } = self;
        let (mut sum, mut largest, mut small) = (self.walk.sum, self.walk.sum.abs(), 0);
        for &id in &ids[from..] {
            sum = match id {
                id if id < marks.unknown => viterbi.sum(sum, id),
                id if id == marks.unknown => viterbi.unknown_score() + sum,
                id if id == marks.small => {
                    small += 1;
                    continue;
                }
                _ => return false,
            };
            largest = largest.max(sum.abs());
        }
        let limit = if small > 0 { SMALL } else { LARGE };
        if largest + change.unwrap_or(f32::INFINITY) > limit.sum {
            return false;
        }
        self.walk.sum = sum;
        self.clean(from..self.ids.len());
        true
    }

    /// Removes the marks from ids.
    fn clean(&mut self, range: Range<usize>) {
        let marks = self.marks;
        if self.ids[range.clone()].iter().all(|&id| id < marks.unknown) {
            return;
        }
        let mut kept = range.start;
        for at in range {
            let id = self.ids[at];
            if id != marks.small {
                self.ids[kept] = if id == marks.unknown { UNKNOWN } else { id };
                kept += 1;
            }
        }
        self.ids.truncate(kept);
    }
}

/// The two best paths before a place.
#[derive(Clone, Copy)]
struct Best {
    score: f64,
    second: f64,
    start: usize,
    id: u32,
}

impl Best {
    const NONE: Self =
        Self { score: f64::NEG_INFINITY, second: f64::NEG_INFINITY, start: 0, id: 0 };

    /// Takes the paths by one more token.
    fn improve(&mut self, before: Self, score: f64, start: usize, id: u32) {
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
    /// The ids of the best path of a word, without roundings, and by how much it is better than the
    /// second.
    fn best_and_margin(&self, word: &[u8]) -> Result<(Vec<u32>, f64)> {
        let mut best = filled(Best::NONE, word.len() + 1)?;
        best[0].score = 0.0;
        let mut start = 0;
        while start < word.len() {
            let length = character_length(word[start]);
            let (before, mut is_known) = (best[start], false);
            self.trie().each_prefix(Trie::ROOT, &word[start..], |id, size| {
                best[start + size].improve(before, self.wide_score(id), start, id);
                is_known |= size == length;
            });
            if !is_known {
                let score = f64::from(self.unknown_score());
                best[start + length].improve(before, score, start, UNKNOWN);
            }
            start += length;
        }
        let (mut path, mut end) = (Vec::new(), word.len());
        let margin = best[end].score - best[end].second;
        while end > 0 {
            push(&mut path, best[end].id)?;
            end = best[end].start;
        }
        path.reverse();
        Ok((path, margin))
    }
}
