//! Runs the stages: one walk, many sinks.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::merge;
use crate::sink::Sink;
use crate::special_tokens::{Selection, SpecialTokens};
use crate::split::{BATCH, Batch, Piece, Splitter};
use crate::vocabulary::Vocabulary;

/// A vocabulary, a pattern and special tokens: everything that text needs to become ids.
/// Immutable, and shared freely between threads.
#[derive(Debug)]
pub struct Encoding {
    vocabulary: Vocabulary,
    splitter: Splitter,
    special_tokens: SpecialTokens,
}

impl Encoding {
    /// Puts the parts together. A special token may not take the id of another token.
    pub fn new(
        vocabulary: Vocabulary,
        splitter: Splitter,
        special_tokens: SpecialTokens,
    ) -> Result<Self> {
        Ok(Self { vocabulary, splitter, special_tokens })
    }

    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    pub fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    pub fn special_tokens(&self) -> &SpecialTokens {
        &self.special_tokens
    }

    /// Walks `text` into `sink`. Names in `allowed` become their special tokens; every other
    /// text, special names included, is ordinary. Names that are no special token are ignored.
    pub fn encode<S: Sink>(&self, text: &str, allowed: &Selection, sink: &mut S) -> Result<()> {
        let mut position = 0;
        loop {
            let special = self.special_tokens.find_allowed(text, position, allowed);
            let end = special.map_or(text.len(), |(found, _)| found.start);
            if self.encode_stretch(&text[position..end], position, sink)?.is_break() {
                return Ok(());
            }
            let Some((found, id)) = special else { return Ok(()) };
            if S::WANTS_PIECES {
                sink.piece(found.start);
            }
            sink.ids().push(id);
            if sink.batch_done().is_break() {
                return Ok(());
            }
            position = found.end;
        }
    }

    /// Walks text without special tokens. Its first byte is byte `base` of the whole text.
    fn encode_stretch<S: Sink>(
        &self,
        text: &str,
        base: usize,
        sink: &mut S,
    ) -> Result<ControlFlow<()>> {
        let mut batch: Batch = [Piece::default(); BATCH];
        let mut pieces = self.splitter.pieces(text);
        loop {
            let count = pieces.fill(&mut batch)?;
            if count == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            for piece in &batch[..count] {
                if S::WANTS_PIECES {
                    sink.piece(base + piece.start);
                }
                self.encode_piece(&text.as_bytes()[piece.start..piece.end], sink.ids())?;
            }
            if sink.batch_done().is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Appends the ids of one piece, given as bytes: no splitting, no special tokens.
    pub fn encode_piece(&self, piece: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        if let Some(rank) = self.vocabulary.rank(piece) {
            ids.push(self.vocabulary.id(rank));
            return Ok(());
        }
        let from = ids.len();
        merge::merge(&self.vocabulary, piece, ids)?;
        for rank in &mut ids[from..] {
            *rank = self.vocabulary.id(*rank);
        }
        Ok(())
    }

    /// The bytes of an id, special tokens included.
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        match self.vocabulary.rank_of_id(id) {
            Some(rank) => Some(self.vocabulary.token(rank)),
            None => self.special_tokens.name(id).map(str::as_bytes),
        }
    }

    /// The bytes that `ids` stand for.
    pub fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(ids.len() * 5);
        for &id in ids {
            bytes.extend_from_slice(self.token_bytes(id).ok_or(Error::UnknownId(u64::from(id)))?);
        }
        Ok(bytes)
    }
}
