//! Runs the stages: one walk, many sinks.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::lookup::PieceEncoder;
use crate::pool::Pool;
use crate::sink::Sink;
use crate::special_tokens::{Selection, SpecialTokens};
use crate::split::{Batch, Piece, Splitter};
use crate::vocabulary::Vocabulary;

/// A vocabulary, a pattern and special tokens: everything that text needs to become ids.
/// Immutable, and shared freely between threads.
#[derive(Debug)]
pub struct Encoding {
    vocabulary: Vocabulary,
    splitter: Splitter,
    special_tokens: SpecialTokens,
    workspaces: Pool,
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
        Ok(Self { vocabulary, splitter, special_tokens, workspaces: Pool::default() })
    }

    /// Its mergeable tokens.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// What cuts its text into pieces.
    pub fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    /// Its special tokens.
    pub fn special_tokens(&self) -> &SpecialTokens {
        &self.special_tokens
    }

    /// Walks `text` into `sink`. Names in `allowed` become their special tokens; every other
    /// text, special names included, is ordinary. Names that are no special token are ignored.
    pub fn encode<S: Sink>(&self, text: &str, allowed: &Selection, sink: &mut S) -> Result<()> {
        let mut position = 0;
        let mut lease = self.workspaces.borrow();
        let (batch, mut merger) = lease.workspace().parts(&self.vocabulary);
        loop {
            let special = self.special_tokens.find_allowed(text, position, allowed);
            let end = special.map_or(text.len(), |(found, _)| found.start);
            let stretch = &text[position..end];
            if self.encode_stretch(stretch, position, batch, &mut merger, sink)?.is_break() {
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
        batch: &mut Batch,
        merger: &mut PieceEncoder<'_>,
        sink: &mut S,
    ) -> Result<ControlFlow<()>> {
        let mut pieces = self.splitter.pieces(text);
        let mut padded = [0; 2 * PADDED];
        let bytes = pad(text.as_bytes(), &mut padded);
        loop {
            let count = pieces.fill(batch)?;
            if count == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            if S::WANTS_PIECES {
                for piece in &batch[..count] {
                    sink.piece(base + piece.start);
                    merger.append(bytes, std::slice::from_ref(piece), sink.ids())?;
                }
            } else {
                merger.append(bytes, &batch[..count], sink.ids())?;
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
        let mut lease = self.workspaces.borrow();
        let (_, mut merger) = lease.workspace().parts(&self.vocabulary);
        merger.append(piece, &[Piece { start: 0, end: piece.len() }], ids)
    }

    /// Appends the ids of pieces of `text`, none of them empty: no splitting, no special tokens.
    pub fn encode_pieces(&self, text: &str, pieces: &[Piece], ids: &mut Vec<u32>) -> Result<()> {
        let mut lease = self.workspaces.borrow();
        let (_, mut merger) = lease.workspace().parts(&self.vocabulary);
        merger.append(text.as_bytes(), pieces, ids)
    }

    /// What calls borrow, caches among it: to clear them, or to do without.
    pub fn workspaces(&self) -> &Pool {
        &self.workspaces
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
        let mut bytes = Vec::with_capacity(ids.len() * 5 + 32);
        self.append_bytes(ids, &mut bytes)?;
        Ok(bytes)
    }

    /// Appends the bytes that `ids` stand for.
    pub fn append_bytes(&self, ids: &[u32], bytes: &mut Vec<u8>) -> Result<()> {
        let mut rest = ids;
        loop {
            rest = &rest[self.vocabulary.append_bytes(rest, bytes)..];
            let Some((&id, after)) = rest.split_first() else { return Ok(()) };
            let special = self.special_tokens.name(id).ok_or(Error::UnknownId(id.into()))?;
            bytes.extend_from_slice(special.as_bytes());
            rest = after;
        }
    }
}

/// Texts of up to this many bytes are copied to where more can be read behind their end: pieces
/// are read 16 bytes at a time, and in a short text all of them are near the end.
const PADDED: usize = 32;

#[inline(always)]
fn pad<'a>(text: &'a [u8], padded: &'a mut [u8; 2 * PADDED]) -> &'a [u8] {
    if text.len() > PADDED {
        return text;
    }
    padded[..text.len()].copy_from_slice(text);
    padded
}
