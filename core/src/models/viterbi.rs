//! Finds the best path through a text: the segmentation into tokens with the highest sum of scores.
//!
//! [`Viterbi`] reproduces SentencePiece, with single-precision sums. Sums are rounded at every
//! token, so a path depends on all text before it. Text is cut where no token crosses, and each
//! part begins with the sum of the parts before it.
//!
//! Up to version 0.2.1, a sum is compared with the stored sums before rounding, and user-defined
//! pieces have a different score.

use std::ops::Range;

use crate::memory::reserve;
use crate::polling::poll;
use crate::split::{Batch, Piece};

use super::piece::{PieceKind, UNKNOWN, Version};
use super::token_lists::TokenList;
use crate::components::bytes::MARK;
use crate::components::trie::Trie;
use crate::error::Result;

/// Difference between the lowest token score and the score of unknown characters.
const PENALTY: f32 = 10.0;
/// Limit beyond which sums restart from zero.
const RESET: f32 = 100_000.0;

#[derive(Debug)]
pub(crate) struct Viterbi {
    trie: Trie,
    /// Score of each id, including user-defined pieces, in the precision of comparisons.
    pub(super) scores: Vec<f64>,
    unknown_score: f32,
    largest_score: f32,
    longest: usize,
    is_old: bool,
    pub(super) cuts: Cuts,
}

/// Word boundaries that no token crosses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cuts {
    /// Whether to cut between another character and a mark.
    pub(super) before_mark: bool,
    /// Whether to cut between a mark and another character.
    after_mark: bool,
}

/// Best last token before a position.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Best<S> {
    pub(crate) score: S,
    /// Length of the last token; 0 without tokens.
    pub(crate) length: u32,
    pub(crate) id: u32,
}

/// Number of bytes between two polls.
const POLLED: usize = 1 << 12;

/// Calls `found` with the id and the bytes of each token in a text, in order of start and then
/// length; [`UNKNOWN`] for a character that is not a token. `is_barred` excludes tokens.
#[inline(always)]
pub(crate) fn each_match(
    trie: &Trie,
    text: &str,
    is_barred: impl Fn(u32, Range<usize>) -> bool,
    mut found: impl FnMut(u32, Range<usize>),
) -> Result<()> {
    let (bytes, mut work, mut first_end) = (text.as_bytes(), 0, 0);
    while first_end < bytes.len() {
        let start = first_end;
        first_end += width(bytes[start]);
        let mut is_known = false;
        if trie.contains(bytes[start]) {
            trie.each_prefix(Trie::ROOT, &bytes[start..], |id, length| {
                let span = start..start + length;
                work += length;
                if !is_barred(id, span.clone()) {
                    is_known |= span.end == first_end;
                    found(id, span);
                }
            });
        }
        if !is_known {
            found(UNKNOWN, start..first_end);
        }
        work += 1;
        if work > POLLED {
            poll(work)?;
            work = 0;
        }
    }
    poll(work)
}

/// Returns the number of bytes of a character that begins with this byte.
#[inline(always)]
fn width(first: u8) -> usize {
    match first {
        ..0xc0 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
    }
}

/// Returns the tokens of the best path to the last position and their bytes, last token first.
pub(crate) fn path_from_end<S>(best: &[Best<S>]) -> impl Iterator<Item = (u32, Range<usize>)> {
    let mut end = best.len() - 1;
    std::iter::from_fn(move || {
        let Best { length, id, .. } = best[end];
        let span = end - length as usize..end;
        end = span.start;
        (!span.is_empty()).then_some((id, span))
    })
}

/// Buffers of a walk, and the sum of the text before it.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    best: Vec<Best<f32>>,
    /// Tokens of the path, last token first.
    path: Vec<(u32, Range<usize>)>,
    pub(crate) sum: f32,
}

impl Viterbi {
    pub(crate) fn new(
        tokens: &TokenList,
        scores: &[f32],
        kinds: &[PieceKind],
        version: Version,
    ) -> Result<Self> {
        let is_old = version == Version::V021;
        let normal = || scores.iter().zip(kinds).filter(|(_, kind)| **kind == PieceKind::Normal);
        let least = normal().fold(f32::MAX, |least, (&score, _)| least.min(score));
        let most = normal().fold(f32::MIN_POSITIVE, |most, (&score, _)| most.max(score));
        let (mut list, mut all) = (TokenList::default(), Vec::with_capacity(scores.len()));
        let mut cuts = Cuts { before_mark: true, after_mark: true };
        for ((text, id), (&score, &kind)) in tokens.iter().zip(scores.iter().zip(kinds)) {
            all.push(match kind {
                PieceKind::UserDefined if is_old => f64::from(text.len() as f32 * most) - 0.1,
                // The difference of lengths is exact; only the product is rounded.
                PieceKind::UserDefined => f64::from((0.1 * (text.len() as f64 - 1.0)) as f32),
                _ => f64::from(score),
            });
            if matches!(kind, PieceKind::Normal | PieceKind::UserDefined) {
                list.push(text, id);
                cuts.keep_apart(text);
            }
        }
        let trie = Trie::new(list.iter())?;
        let unknown_score = least - PENALTY;
        let largest = |largest: f32, &score: &f64| largest.max(score.abs() as f32);
        let largest_score = all.iter().fold(unknown_score.abs(), largest);
        let longest = list.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
        let longest = longest.max(char::MAX.len_utf8());
        Ok(Self { trie, scores: all, unknown_score, largest_score, longest, is_old, cuts })
    }

    /// Calls `found` with the id and the bytes of each token of a text; [`UNKNOWN`] for a character
    /// that is not a token. `is_barred` excludes tokens.
    pub(crate) fn each_token(
        &self,
        text: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        found: impl FnMut(u32, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        self.walk(text, is_barred, &mut Walk::default(), found)
    }

    /// Like [`Self::each_token`], but continues the sum of a walk.
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
            for (id, span) in walk.path.drain(..).rev() {
                found(id, start + span.start..start + span.end)?;
            }
            start = end;
        }
        Ok(())
    }

    pub(crate) fn trie(&self) -> &Trie {
        &self.trie
    }

    /// Returns the number of ids.
    pub(crate) fn size(&self) -> u32 {
        self.scores.len() as u32
    }

    /// Adds the score of a token to a sum, rounding as SentencePiece does.
    #[inline(always)]
    pub(crate) fn sum(&self, sum: f32, id: u32) -> f32 {
        let score = self.scores[id as usize];
        if self.is_old { (score + f64::from(sum)) as f32 } else { score as f32 + sum }
    }

    pub(crate) fn unknown_score(&self) -> f32 {
        self.unknown_score
    }

    /// Returns the largest absolute score of a token or an unknown character.
    pub(crate) fn largest_score(&self) -> f32 {
        self.largest_score
    }

    /// Writes the parts of a text, cut where no token crosses, and returns their number.
    pub(crate) fn fill(&self, text: &str, start: &mut usize, batch: &mut Batch) -> usize {
        let mut count = 0;
        while *start < text.len() && count < batch.len() {
            let end = self.cuts.end(text.as_bytes(), *start);
            batch[count] = Piece { start: *start, end };
            (*start, count) = (end, count + 1);
        }
        count
    }

    /// Finds the path through a part of a text, from its end, and updates the sum.
    fn walk_part(
        &self,
        part: &str,
        base: usize,
        is_barred: &impl Fn(u32, Range<usize>) -> bool,
        walk: &mut Walk,
    ) -> Result<()> {
        walk.best.clear();
        reserve(&mut walk.best, part.len() + 1)?;
        walk.best.resize(part.len() + 1, Best::default());
        walk.best[0].score = walk.sum;
        let (best, mut last) = (&mut *walk.best, usize::MAX);
        let is_barred = |id, span: Range<usize>| is_barred(id, base + span.start..base + span.end);
        each_match(&self.trie, part, is_barred, |id, span| {
            if span.start != last {
                last = span.start;
                self.reset(best, last);
            }
            let sum = best[span.start].score;
            let new = match id {
                UNKNOWN => f64::from(self.unknown_score + sum),
                _ if self.is_old => self.scores[id as usize] + f64::from(sum),
                _ => f64::from(self.scores[id as usize] as f32 + sum),
            };
            let other = &mut best[span.end];
            if other.length == 0 || new > f64::from(other.score) {
                *other = Best { score: new as f32, length: span.len() as u32, id };
            }
        })?;
        walk.sum = walk.best[part.len()].score;
        walk.path.extend(path_from_end(&walk.best));
        Ok(())
    }

    /// Restarts sums from zero if the sum of the text before `start` has become too large.
    fn reset(&self, best: &mut [Best<f32>], start: usize) {
        let sum = best[start].score;
        if self.is_old || sum.abs() <= RESET {
            return;
        }
        best[start].score -= sum;
        let later = best[start + 1..].iter_mut().take(self.longest);
        later.filter(|other| other.length > 0).for_each(|other| other.score -= sum);
    }
}

impl Cuts {
    /// Records the adjacent characters of a token.
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

    /// Returns the end of the part that begins at `start`.
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
            // Marks are close together, so a vectorized search would not be faster.
            while at < text.len() && !is_mark(text, at) {
                at += 1;
            }
            if at == text.len() || self.before_mark && other < at {
                return at;
            }
        }
    }
}

/// Whether there is a mark at this position.
#[inline(always)]
fn is_mark(text: &[u8], at: usize) -> bool {
    matches!(text[at..], [0xe2, 0x96, 0x81, ..])
}
