//! SentencePiece's byte pair encoding: merges the pair whose piece has the highest score, leftmost
//! on ties, and splits unused pieces into their parts again.

use std::ops::Range;

use crate::polling::poll;
use crate::rule::{HeapMerger, Merges, NONE};

use super::pair_table::FastMap;
use super::piece::{PieceKind, UNKNOWN, Version};
use super::pieces::SentencePieces;
use crate::error::Result;

/// Maximum depth at which an unused piece is split, since version 0.2.3.
const DEEPEST: usize = 100;
/// Cost of a merge, in bytes of text: see [`poll`].
const WORK: usize = 32;

struct Symbol {
    start: usize,
    length: usize,
    is_frozen: bool,
}

pub(crate) struct Merging<'a, F> {
    pieces: &'a SentencePieces,
    text: &'a str,
    is_barred: F,
    symbols: Vec<Symbol>,
    /// Length of the left part in the last merge that made each unused piece.
    apart: FastMap<&'a str, usize>,
}

impl<F: Fn(u32, Range<usize>) -> bool> Merges for Merging<'_, F> {
    /// Turns scores into ranks: the highest score has the lowest rank.
    fn rank(&mut self, left: usize, right: usize) -> Result<u32> {
        let (l, r) = (&self.symbols[left], &self.symbols[right]);
        if l.is_frozen || r.is_frozen {
            return Ok(NONE);
        }
        let (span, cut) = (l.start..r.start + r.length, l.length);
        poll(span.len())?;
        let piece = &self.text[span.clone()];
        let Some(id) = self.pieces.mergeable(piece).filter(|&id| !(self.is_barred)(id, span))
        else {
            return Ok(NONE);
        };
        if self.pieces.kinds[id as usize] == PieceKind::Unused {
            self.apart.insert(piece, cut);
        }
        Ok(!self.pieces.order_of(id).wrapping_sub(i32::MIN).cast_unsigned())
    }

    fn join(&mut self, left: usize, right: usize, _: u32) -> Result<()> {
        self.symbols[left].length += self.symbols[right].length;
        poll(WORK)
    }
}

impl<'a, F: Fn(u32, Range<usize>) -> bool> Merging<'a, F> {
    /// Calls `found` with the id and the bytes of each token of a text; [`UNKNOWN`] for text that
    /// is not a token.
    pub(crate) fn each_token(
        pieces: &'a SentencePieces,
        text: &'a str,
        is_barred: F,
        mut found: impl FnMut(u32, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        // Start from user-defined pieces and single characters.
        let (mut symbols, mut start) = (Vec::new(), 0);
        while start < text.len() {
            let (length, is_frozen) = pieces.first(text, start, &is_barred);
            symbols.push(Symbol { start, length, is_frozen });
            start += length;
        }
        let count = symbols.len();
        let mut merging = Self { pieces, text, is_barred, symbols, apart: FastMap::default() };
        for index in HeapMerger::default().merge(&mut merging, count)? {
            let Symbol { start, length, .. } = merging.symbols[index];
            merging.take_apart(start..start + length, &mut found)?;
        }
        Ok(())
    }

    /// Calls `found` with a piece, or if the piece is unused, with its parts.
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
            let is_unused = id != UNKNOWN && self.pieces.kinds[id as usize] == PieceKind::Unused;
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
