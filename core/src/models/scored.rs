//! SentencePiece's byte pair encoding: merges the pair whose piece has the highest score, the leftmost
//! first, and takes pieces that are not used apart again.

use std::ops::Range;

use crate::agenda::Agenda;
use crate::polling::poll;

use super::pair_table::FastMap;
use super::piece::{Kind, UNKNOWN, Version};
use super::pieces::Pieces;
use crate::error::Result;

/// The most times that a piece is taken apart in turn, since version 0.2.3.
const DEEPEST: usize = 100;
/// The work of a merge, in bytes of text: see [`poll`].
const WORK: usize = 32;

/// A part of a text that may still merge.
struct Symbol {
    start: usize,
    /// 0 once merged into another.
    length: usize,
    before: Option<usize>,
    after: Option<usize>,
    is_frozen: bool,
    /// The rank of the piece that it becomes with the next symbol.
    rank: Option<u32>,
}

/// Merges one text.
pub(crate) struct Merging<'a, F> {
    pieces: &'a Pieces,
    text: &'a str,
    is_barred: F,
    symbols: Vec<Symbol>,
    agenda: Agenda,
    /// The length of the left part that each piece that is not used was last made of.
    apart: FastMap<&'a str, usize>,
}

impl<'a, F: Fn(u32, Range<usize>) -> bool> Merging<'a, F> {
    /// Calls `found` with the id of each token of a text and its bytes; [`UNKNOWN`] for what is not a
    /// token.
    pub(crate) fn each_token(
        pieces: &'a Pieces,
        text: &'a str,
        is_barred: F,
        mut found: impl FnMut(u32, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let (symbols, agenda) = (Vec::new(), Agenda::default());
        let mut merging =
            Self { pieces, text, is_barred, symbols, agenda, apart: FastMap::default() };
        merging.cut()?;
        merging.merge()?;
        let mut next = (!merging.symbols.is_empty()).then_some(0);
        while let Some(index) = next {
            let Symbol { start, length, after, .. } = merging.symbols[index];
            merging.take_apart(start..start + length, &mut found)?;
            next = after;
        }
        Ok(())
    }

    /// Cuts the text into user-defined pieces and other characters, and finds the first pairs.
    fn cut(&mut self) -> Result<()> {
        let mut start = 0;
        while start < self.text.len() {
            let (length, is_frozen) = self.pieces.first(self.text, start, &self.is_barred);
            let index = self.symbols.len();
            let after = (start + length < self.text.len()).then_some(index + 1);
            let before = index.checked_sub(1);
            let symbol = Symbol { start, length, before, after, is_frozen, rank: None };
            self.symbols.push(symbol);
            start += length;
        }
        (1..self.symbols.len()).try_for_each(|right| self.consider(Some(right - 1), Some(right)))
    }

    fn merge(&mut self) -> Result<()> {
        while let Some((rank, left)) = self.agenda.pop() {
            poll(WORK)?;
            let Symbol { rank: now, after: Some(right), .. } = self.symbols[left] else { continue };
            if now != Some(rank) {
                continue;
            }
            let Symbol { length, after, .. } = self.symbols[right];
            (self.symbols[right].length, self.symbols[right].rank) = (0, None);
            self.symbols[left].length += length;
            self.symbols[left].after = after;
            if let Some(after) = after {
                self.symbols[after].before = Some(left);
            }
            self.consider(self.symbols[left].before, Some(left))?;
            self.consider(Some(left), after)?;
        }
        Ok(())
    }

    /// Adds two symbols side by side to the agenda, if they are a piece together.
    fn consider(&mut self, left: Option<usize>, right: Option<usize>) -> Result<()> {
        let Some(left) = left else { return Ok(()) };
        self.symbols[left].rank = None;
        let Some(right) = right else { return Ok(()) };
        let (l, r) = (&self.symbols[left], &self.symbols[right]);
        if l.is_frozen || r.is_frozen {
            return Ok(());
        }
        let (span, cut) = (l.start..r.start + r.length, l.length);
        poll(span.len())?;
        let piece = &self.text[span.clone()];
        let Some(id) = self.pieces.mergeable(piece).filter(|&id| !(self.is_barred)(id, span))
        else {
            return Ok(());
        };
        if self.pieces.kinds[id as usize] == Kind::Unused {
            self.apart.insert(piece, cut);
        }
        // The highest score has the lowest rank.
        let rank = self.pieces.order_of(id).wrapping_sub(i32::MIN).cast_unsigned();
        self.symbols[left].rank = Some(!rank);
        self.agenda.push(!rank, left)
    }

    /// Calls `found` with a piece, or with the parts of one that is not used.
    fn take_apart(
        &self,
        whole: Range<usize>,
        found: &mut impl FnMut(u32, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut waiting = vec![(whole, 0)];
        while let Some((span, depth)) = waiting.pop() {
            poll(WORK)?;
            let piece = &self.text[span.clone()];
            let id = self.pieces.final_id(piece)?;
            let is_new = self.pieces.version == Version::V023;
            let is_unused = id != UNKNOWN && self.pieces.kinds[id as usize] == Kind::Unused;
            match self.apart.get(piece) {
                _ if !is_unused || is_new && depth > DEEPEST => found(id, span)?,
                None => found(if is_new { UNKNOWN } else { id }, span)?,
                Some(&cut) => {
                    let middle = span.start + cut;
                    waiting.push((middle..span.end, depth + 1));
                    waiting.push((span.start..middle, depth + 1));
                }
            }
        }
        Ok(())
    }
}
