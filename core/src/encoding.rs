//! Runs the stages: one walk, many sinks.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::pieces::Merger;
use crate::pool::Pool;
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
    caches: Pool,
}

impl Encoding {
    /// Puts the parts together. A special token may not take the id of another token.
    pub fn new(
        vocabulary: Vocabulary,
        splitter: Splitter,
        special_tokens: SpecialTokens,
    ) -> Result<Self> {
        if let Some((name, id)) =
            special_tokens.iter().find(|&(_, id)| vocabulary.rank_of_id(id).is_some())
        {
            return Err(Error::SpecialToken(format!(
                "the special token {name:?} has the id {id}, which is taken by a token of the \
                 ranks; the first free id is {}",
                vocabulary.max_id().saturating_add(1)
            )));
        }
        Ok(Self { vocabulary, splitter, special_tokens, caches: Pool::default() })
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
        let mut merger = Merger::new(&self.vocabulary, &self.caches);
        loop {
            let special = self.special_tokens.find_allowed(text, position, allowed);
            let end = special.map_or(text.len(), |(found, _)| found.start);
            if self.encode_stretch(&text[position..end], position, &mut merger, sink)?.is_break() {
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
        merger: &mut Merger<'_>,
        sink: &mut S,
    ) -> Result<ControlFlow<()>> {
        let mut batch: Batch = [Piece::default(); BATCH];
        let mut pieces = self.splitter.pieces(text);
        loop {
            let count = pieces.fill(&mut batch)?;
            if count == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            if S::WANTS_PIECES {
                for piece in &batch[..count] {
                    sink.piece(base + piece.start);
                    merger.append(text.as_bytes(), std::slice::from_ref(piece), sink.ids())?;
                }
            } else {
                merger.append(text.as_bytes(), &batch[..count], sink.ids())?;
            }
            if sink.batch_done().is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Appends the ids of one piece, given as bytes: no splitting, no special tokens.
    pub fn encode_piece(&self, piece: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let mut merger = Merger::new(&self.vocabulary, &self.caches);
        merger.append(piece, &[Piece { start: 0, end: piece.len() }], ids)
    }

    /// Appends the ids of pieces that are cut already.
    #[doc(hidden)]
    pub fn encode_pieces(&self, text: &[u8], pieces: &[Piece], ids: &mut Vec<u32>) -> Result<()> {
        Merger::new(&self.vocabulary, &self.caches).append(text, pieces, ids)
    }

    /// Forgets the pieces that were merged before, and so what texts came by.
    pub fn clear_cache(&self) {
        self.caches.clear();
    }

    /// The caches of merged pieces.
    pub fn caches(&self) -> &Pool {
        &self.caches
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
