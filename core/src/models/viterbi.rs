//! SentencePiece's Unigram: the path of the highest sum of scores, with its sums of single precision.
//!
//! Sums are rounded at every token, so a path depends on all text before it. Text is cut where no
//! token crosses, and each part begins with the sum of those before.
//!
//! Up to version 0.2.1, a sum is compared with those that are stored before it is rounded, and the
//! score of a user-defined piece is another.

use std::ops::Range;

use crate::memory::reserve;
use crate::polling::poll;
use crate::split::{Batch, Piece};

use super::piece::{Kind, UNKNOWN, Version};
use super::token_lists::TokenList;
use crate::components::bytes::MARK;
use crate::components::trie::Trie;
use crate::error::{Error, Result};

/// How far unknown characters score below the lowest token.
const PENALTY: f32 = 10.0;
/// The sum beyond which sums begin again from zero.
const RESET: f32 = 100_000.0;

/// Tokens with their scores.
#[derive(Debug)]
pub(crate) struct Viterbi {
    trie: Trie,
    /// By id: with user-defined pieces, and as wide as sums are compared.
    scores: Vec<f64>,
    unknown_score: f32,
    largest_score: f32,
    is_old: bool,
    cuts: Cuts,
}

/// Where no token crosses a border of words.
#[derive(Debug, Clone, Copy, Default)]
struct Cuts {
    /// Between another character and a mark.
    before_mark: bool,
    /// Between a mark and another character.
    after_mark: bool,
}

/// The best tokens of a part before some place.
#[derive(Debug, Clone, Copy)]
struct Best {
    score: f32,
    /// The start of the last token; [`NOWHERE`] without tokens.
    start: u32,
    id: u32,
}

const NOWHERE: u32 = u32::MAX;

/// The memory of a walk, and the sum of the text before it.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    best: Vec<Best>,
    /// From the end.
    path: Vec<(u32, Range<usize>)>,
    pub(crate) sum: f32,
}

impl Walk {
    /// Takes the path of the last part.
    fn take_path(&mut self) -> impl Iterator<Item = (u32, Range<usize>)> + '_ {
        self.path.drain(..).rev()
    }
}

impl Viterbi {
    pub(crate) fn new(
        tokens: &TokenList,
        scores: &[f32],
        kinds: &[Kind],
        version: Version,
    ) -> Result<Self> {
        let is_old = version == Version::V021;
        let normal = || scores.iter().zip(kinds).filter(|(_, kind)| **kind == Kind::Normal);
        let least = normal().fold(f32::MAX, |least, (&score, _)| least.min(score));
        let most = normal().fold(f32::MIN_POSITIVE, |most, (&score, _)| most.max(score));
        let (mut list, mut all) = (TokenList::default(), Vec::with_capacity(scores.len()));
        let mut cuts = Cuts { before_mark: true, after_mark: true };
        for ((text, id), (&score, &kind)) in tokens.iter().zip(scores.iter().zip(kinds)) {
            all.push(match kind {
                Kind::UserDefined if is_old => f64::from(text.len() as f32 * most) - 0.1,
                // The difference of lengths is exact, and the product is rounded once.
                Kind::UserDefined => f64::from((0.1 * (text.len() as f64 - 1.0)) as f32),
                _ => f64::from(score),
            });
            if matches!(kind, Kind::Normal | Kind::UserDefined) {
                list.push(text, id);
                cuts.keep_apart(text);
            }
        }
        let trie = Trie::new(list.iter())?;
        let unknown_score = least - PENALTY;
        let largest = |largest: f32, &score: &f64| largest.max(score.abs() as f32);
        let largest_score = all.iter().fold(unknown_score.abs(), largest);
        Ok(Self { trie, scores: all, unknown_score, largest_score, is_old, cuts })
    }

    /// Calls `found` with the id of each token of a text and its bytes; [`UNKNOWN`] for a character
    /// that is not a token. `is_barred` has tokens that are left out.
    pub(crate) fn each_token(
        &self,
        text: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        found: impl FnMut(u32, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        self.walk(text, is_barred, &mut Walk::default(), found)
    }

    /// [`Self::each_token`], with the sum that it leads to.
    pub(crate) fn walk(
        &self,
        text: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        walk: &mut Walk,
        mut found: impl FnMut(u32, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut start = 0;
        while start < text.len() {
            let end = self.cuts.end(text.as_bytes(), start);
            self.walk_part(&text[start..end], start, &is_barred, walk)?;
            for (id, span) in walk.take_path() {
                found(id, start + span.start..start + span.end)?;
            }
            start = end;
        }
        Ok(())
    }

    pub(crate) fn trie(&self) -> &Trie {
        &self.trie
    }

    /// The number of ids.
    pub(crate) fn size(&self) -> u32 {
        self.scores.len() as u32
    }

    /// A sum and the score of a token.
    #[inline(always)]
    pub(crate) fn sum(&self, sum: f32, id: u32) -> f32 {
        let score = self.scores[id as usize];
        if self.is_old { (score + f64::from(sum)) as f32 } else { score as f32 + sum }
    }

    pub(crate) fn wide_score(&self, id: u32) -> f64 {
        self.scores[id as usize]
    }

    pub(crate) fn unknown_score(&self) -> f32 {
        self.unknown_score
    }

    /// The largest score of a token or an unknown character, without its sign.
    pub(crate) fn largest_score(&self) -> f32 {
        self.largest_score
    }

    /// Whether no token crosses the place between another character and a mark.
    pub(crate) fn is_cut_before_marks(&self) -> bool {
        self.cuts.before_mark
    }

    /// Writes the parts of a text from `start` on, beyond which no token reaches, and returns how many.
    pub(crate) fn fill(&self, text: &str, start: &mut usize, batch: &mut Batch) -> usize {
        let mut count = 0;
        while *start < text.len() && count < batch.len() {
            let end = self.cuts.end(text.as_bytes(), *start);
            batch[count] = Piece { start: *start, end };
            (*start, count) = (end, count + 1);
        }
        count
    }

    /// Finds the path of a part of a text, from its end, with the sum that it leads to.
    fn walk_part(
        &self,
        part: &str,
        base: usize,
        is_barred: &impl Fn(u32, Range<usize>) -> bool,
        walk: &mut Walk,
    ) -> Result<()> {
        if part.len() >= NOWHERE as usize {
            return Err(Error::Invalid("a text of 4 GiB without a space is too long".into()));
        }
        walk.best.clear();
        reserve(&mut walk.best, part.len() + 1)?;
        walk.best.resize(part.len() + 1, Best { score: 0.0, start: NOWHERE, id: 0 });
        walk.best[0].score = walk.sum;
        let mut frontier = 0;
        for (start, first) in part.char_indices() {
            self.reset(&mut walk.best, start, frontier);
            let read = self.extend(part, start, first, base, is_barred, &mut walk.best);
            frontier = frontier.max(start + read.max(first.len_utf8()));
            poll(read.max(1))?;
        }
        walk.sum = walk.best[part.len()].score;
        let mut end = part.len();
        while end > 0 {
            let Best { start, id, .. } = walk.best[end];
            walk.path.push((id, start as usize..end));
            end = start as usize;
        }
        Ok(())
    }

    /// Begins sums from zero again where the sum of the text before `start` has become too large.
    fn reset(&self, best: &mut [Best], start: usize, frontier: usize) {
        let sum = best[start].score;
        if self.is_old || sum.abs() <= RESET {
            return;
        }
        best[start].score -= sum;
        for other in best.iter_mut().take(frontier + 1).skip(start + 1) {
            if other.start != NOWHERE {
                other.score -= sum;
            }
        }
    }

    /// Tries each token from `start` on, which begins with the character `first`. Returns the length of
    /// the longest.
    #[inline(always)]
    fn extend(
        &self,
        part: &str,
        start: usize,
        first: char,
        base: usize,
        is_barred: &impl Fn(u32, Range<usize>) -> bool,
        best: &mut [Best],
    ) -> usize {
        let (sum, length) = (best[start].score, first.len_utf8());
        let (mut is_known, mut longest) = (false, 0);
        self.trie.each_prefix(Trie::ROOT, &part.as_bytes()[start..], |id, size| {
            let end = start + size;
            if is_barred(id, base + start..base + end) {
                return;
            }
            best[end].improve(sum, self.scores[id as usize], self.is_old, start, id);
            is_known |= size == length;
            longest = size;
        });
        if !is_known {
            let (other, score) = (&mut best[start + length], self.unknown_score + sum);
            if other.start == NOWHERE || score > other.score {
                *other = Best { score, start: start as u32, id: UNKNOWN };
            }
        }
        longest
    }
}

impl Best {
    /// Takes the path with this sum and one more token, if it is better.
    #[inline(always)]
    fn improve(&mut self, sum: f32, score: f64, is_old: bool, start: usize, id: u32) {
        let new = match is_old {
            true => score + f64::from(sum),
            false => f64::from(score as f32 + sum),
        };
        if self.start == NOWHERE || new > f64::from(self.score) {
            *self = Self { score: new as f32, start: start as u32, id };
        }
    }
}

impl Cuts {
    /// Takes a token in which characters are side by side.
    fn keep_apart(&mut self, token: &str) {
        let mut before = None;
        for character in token.chars() {
            let is_mark = character == MARK;
            if before == Some(!is_mark) {
                *(if is_mark { &mut self.before_mark } else { &mut self.after_mark }) = false;
            }
            before = Some(is_mark);
        }
    }

    /// The end of the part that begins at `start`.
    fn end(&self, text: &[u8], start: usize) -> usize {
        if !self.before_mark && !self.after_mark {
            return text.len();
        }
        let mut at = start;
        loop {
            let run = at;
            while is_mark(text, at) {
                at += MARK.len_utf8();
            }
            if self.after_mark && run < at && at < text.len() {
                return at;
            }
            let other = at;
            // Marks are near: no search would be faster.
            while at < text.len() && !is_mark(text, at) {
                at += 1;
            }
            if at == text.len() || self.before_mark && other < at {
                return at;
            }
        }
    }
}

/// Whether there is a mark at this place.
#[inline(always)]
fn is_mark(text: &[u8], at: usize) -> bool {
    matches!(text[at..], [0xe2, 0x96, 0x81, ..])
}
