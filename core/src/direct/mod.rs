//! The direct path from text to ids, for pipelines of ranks: special tokens, NFC or no
//! normalization, one pattern, and byte pair encoding by rank in one loop.

mod spans;
mod special;
mod unstable;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lookup::PieceEncoder;
use crate::memory::reserve;
use crate::normalize::Normalization;
use crate::once::OnceBox;
use crate::polling::poll;
use crate::pool::Pool;
use crate::request::Request;
use crate::sink::{Count, Sink};
use crate::sorted_tokens::SortedTokens;
use crate::special_tokens::{Selection, SpecialTokens};
use crate::split::{BATCH, Batch, Piece, Splitter};
use crate::token_table::{TokenKind, TokenTable};
use crate::vocabulary::Vocabulary;

/// Normalization, special tokens, pattern and vocabulary: everything needed to encode text.
/// Immutable and shared between threads.
#[derive(Debug)]
pub struct Direct {
    normalization: Normalization,
    vocabulary: Arc<Vocabulary>,
    splitter: Splitter,
    special_tokens: SpecialTokens,
    workspaces: Pool,
    sorted_tokens: OnceBox<SortedTokens>,
    /// The fingerprint, once computed.
    digest: OnceBox<[u8; 32]>,
    token_table: OnceBox<Arc<TokenTable>>,
}

impl Direct {
    /// Creates an encoding without normalization. A special token must not have the id of another
    /// token.
    pub fn new(
        vocabulary: impl Into<Arc<Vocabulary>>,
        splitter: Splitter,
        special_tokens: SpecialTokens,
    ) -> Result<Self> {
        let vocabulary = vocabulary.into();
        if let Some((name, id)) =
            special_tokens.iter().find(|&(_, id)| vocabulary.rank_of_id(id).is_some())
        {
            return Err(Error::SpecialToken(format!(
                "the special token {name:?} has the id {id}, which is taken by a token of the \
                 ranks; the first free id is {}",
                vocabulary.max_id().saturating_add(1)
            )));
        }
        Ok(Self {
            normalization: Normalization::None,
            vocabulary,
            splitter,
            special_tokens,
            workspaces: Pool::default(),
            sorted_tokens: OnceBox::new(),
            digest: OnceBox::new(),
            token_table: OnceBox::new(),
        })
    }

    /// Returns the encoding with `normalization` as the first step.
    pub fn with_normalization(self, normalization: Normalization) -> Self {
        Self { normalization, digest: OnceBox::new(), ..self }
    }

    /// Returns the normalization that is applied to text.
    pub fn normalization(&self) -> Normalization {
        self.normalization
    }

    pub(crate) fn digest(&self) -> &OnceBox<[u8; 32]> {
        &self.digest
    }

    /// Returns the mergeable tokens, shared between pipelines.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the splitter, which cuts text into pieces.
    pub fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    /// Returns the special tokens.
    pub fn special_tokens(&self) -> &SpecialTokens {
        &self.special_tokens
    }

    /// Walks `text` into `sink` according to `request`. Positions refer to the normalized text.
    ///
    /// Fails with [`Error::DisallowedSpecial`] if the text contains a disallowed name.
    ///
    /// ```
    /// use bpe_core::direct::Direct;
    /// use bpe_core::{Request, SpecialTokens, Splitter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::build((0..=255).map(|byte| (vec![byte], byte.into())).collect())?;
    /// let encoding = Direct::new(vocabulary, Splitter::new(r"\w+|\W")?, SpecialTokens::new([])?)?;
    /// let mut ids = Vec::new();
    /// encoding.encode("hi", &Request::ORDINARY, &mut ids)?;
    /// assert_eq!(ids, [104, 105]);
    /// # Ok::<(), bpe_core::Error>(())
    /// ```
    #[inline]
    pub fn encode<S: Sink>(&self, text: &str, request: &Request, sink: &mut S) -> Result<()> {
        let text = self.prepare(text, request)?;
        self.encode_normal(&text, &request.allowed, sink)
    }

    /// Returns the number of tokens in a text, or any number above `limit` if the text has more.
    pub(crate) fn count(&self, text: &str, limit: usize, request: &Request) -> Result<usize> {
        let mut count = Count::till(limit);
        self.encode(text, request, &mut count)?;
        Ok(count.total)
    }

    /// Returns `text` normalized, after checking for disallowed names.
    #[inline]
    fn prepare<'a>(&self, text: &'a str, request: &Request) -> Result<Cow<'a, str>> {
        let text = self.normalization.apply(text)?;
        request.check(&self.special_tokens, &text)?;
        Ok(text)
    }

    /// Walks normalized text into `sink`. Names in `allowed` become their special tokens; all other
    /// text is ordinary, including other special names.
    pub(crate) fn encode_normal<S: Sink>(
        &self,
        text: &str,
        allowed: &Selection,
        sink: &mut S,
    ) -> Result<()> {
        let mut position = 0;
        let mut lease = self.workspaces.borrow();
        let (batch, mut merger) = lease.workspace().parts(&*self.vocabulary);
        loop {
            let special = self.special_tokens.find_allowed(text, position, allowed);
            let end = special.map_or(text.len(), |(found, _)| found.start);
            let run = &text[position..end];
            let mut pieces = self.splitter.pieces(run);
            let cut = |batch: &mut Batch| pieces.fill(batch);
            if encode_run(run, position, cut, batch, &mut merger, sink)?.is_break() {
                return Ok(());
            }
            let Some((found, id)) = special else { return Ok(()) };
            poll(found.end - found.start)?;
            sink.reserve(1)?;
            if S::HAS_POSITIONS {
                sink.special(found.start..found.end);
            }
            sink.ids().push(id);
            if sink.batch_done().is_break() {
                return Ok(());
            }
            position = found.end;
        }
    }

    /// Calls `work` with a function that appends the ids of a normalized text without special
    /// tokens; all texts share one workspace.
    pub(crate) fn encode_runs(
        &self,
        work: impl FnOnce(&mut dyn FnMut(&str, &mut Vec<u32>) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let mut lease = self.workspaces.borrow();
        let (batch, mut merger) = lease.workspace().parts(&*self.vocabulary);
        work(&mut |text, ids| {
            let mut pieces = self.splitter.pieces(text);
            encode_run(text, 0, |batch| pieces.fill(batch), batch, &mut merger, ids).map(drop)
        })
    }

    /// Appends the ids of one piece, given as bytes, without splitting the piece or searching it
    /// for special tokens.
    pub fn encode_piece(&self, piece: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        reserve(ids, piece.len())?;
        let mut lease = self.workspaces.borrow();
        let (_, mut merger) = lease.workspace().parts(&*self.vocabulary);
        merger.append_one(piece, Piece { start: 0, end: piece.len() }, ids)
    }

    /// Appends the ids of nonempty pieces of `text`, without splitting the pieces or searching them
    /// for special tokens.
    pub fn encode_pieces(&self, text: &str, pieces: &[Piece], ids: &mut Vec<u32>) -> Result<()> {
        // A piece has at most as many ids as bytes.
        reserve(ids, pieces.iter().map(|piece| piece.end - piece.start).sum())?;
        let mut lease = self.workspaces.borrow();
        let (_, mut merger) = lease.workspace().parts(&*self.vocabulary);
        merger.append(text.as_bytes(), pieces, ids)
    }

    /// Appends the ids of nonempty pieces of `text`, in order. `cut` writes the next pieces and
    /// returns their number; 0 ends the call.
    pub fn encode_cut(
        &self,
        text: &str,
        cut: impl FnMut(&mut Batch) -> Result<usize>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let mut lease = self.workspaces.borrow();
        let (batch, mut merger) = lease.workspace().parts(&*self.vocabulary);
        encode_run(text, 0, cut, batch, &mut merger, ids).map(drop)
    }

    /// Splits `text` into pieces; allowed special tokens are separate pieces. Passes the normalized
    /// text and its pieces, batch by batch, to `take`. Text that the pattern does not match is
    /// omitted.
    pub fn split(
        &self,
        text: &str,
        request: &Request,
        take: impl FnMut(&str, &[Piece]) -> Result<()>,
    ) -> Result<()> {
        self.split_normal(&self.prepare(text, request)?, &request.allowed, take)
    }

    /// Splits normalized text.
    fn split_normal(
        &self,
        text: &str,
        allowed: &Selection,
        mut take: impl FnMut(&str, &[Piece]) -> Result<()>,
    ) -> Result<()> {
        let mut batch: Batch = [Piece::default(); BATCH];
        let mut position = 0;
        loop {
            let special = self.special_tokens().find_allowed(text, position, allowed);
            let end = special.map_or(text.len(), |(found, _)| found.start);
            let run = &text[position..end];
            let mut pieces = self.splitter().pieces(run);
            loop {
                let count = pieces.fill(&mut batch)?;
                if count == 0 {
                    break;
                }
                poll(batch[count - 1].end - batch[0].start)?;
                take(run, &batch[..count])?;
            }
            let Some((found, _)) = special else { return Ok(()) };
            take(text, &[Piece { start: found.start, end: found.end }])?;
            position = found.end;
        }
    }

    /// Returns the workspaces that calls borrow, to clear or disable their caches.
    pub fn workspaces(&self) -> &Pool {
        &self.workspaces
    }

    /// Returns the tokens in the order of their bytes, sorted on first use.
    pub fn sorted_tokens(&self) -> &SortedTokens {
        self.sorted_tokens.get_or_init(|| Box::new(SortedTokens::new(&self.vocabulary)))
    }

    /// Returns the table of all ids, created on first use.
    pub fn token_table(&self) -> Result<&Arc<TokenTable>> {
        self.token_table.get_or_try_init(|| {
            let special = self.special_tokens.iter().map(|(_, id)| id).max();
            let largest = self.vocabulary.max_id().max(special.unwrap_or(0));
            let mut table = TokenTable::with_largest_id(Some(largest))?;
            for id in 0..=largest {
                match (self.vocabulary.rank_of_id(id), self.special_tokens.name(id)) {
                    (Some(rank), _) => {
                        table.push(self.vocabulary.token(rank), TokenKind::Ordinary)?
                    }
                    (None, Some(name)) => table.push(name.as_bytes(), TokenKind::Special)?,
                    (None, None) => table.push(&[], TokenKind::Absent)?,
                }
            }
            Ok(Box::new(Arc::new(table)))
        })
    }

    /// Returns the bytes of the token with this id, special or not.
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        match self.vocabulary.rank_of_id(id) {
            Some(rank) => Some(self.vocabulary.token(rank)),
            None => self.special_tokens.name(id).map(str::as_bytes),
        }
    }

    /// Decodes `ids` to bytes.
    pub fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.append_bytes(ids, &mut bytes)?;
        Ok(bytes)
    }

    /// Appends the bytes of `ids`.
    pub fn append_bytes(&self, ids: &[u32], bytes: &mut Vec<u8>) -> Result<()> {
        for ids in ids.chunks(DECODED_AT_ONCE) {
            poll(ids.len())?;
            self.append_some_bytes(ids, bytes)?;
        }
        Ok(())
    }

    fn append_some_bytes(&self, ids: &[u32], bytes: &mut Vec<u8>) -> Result<()> {
        let mut rest = ids;
        loop {
            rest = &rest[self.vocabulary.append_bytes(rest, bytes)?..];
            let Some((&id, after)) = rest.split_first() else { return Ok(()) };
            let special = self.special_tokens.name(id).ok_or(Error::UnknownId(id.into()))?;
            reserve(bytes, special.len())?;
            bytes.extend_from_slice(special.as_bytes());
            rest = after;
        }
    }
}

/// Walks text without special tokens into `sink`: `cut` fills one batch of pieces after another,
/// until it returns 0. The text begins at byte `base` of the whole text.
#[inline(always)]
fn encode_run<S: Sink>(
    text: &str,
    base: usize,
    mut cut: impl FnMut(&mut Batch) -> Result<usize>,
    batch: &mut Batch,
    merger: &mut PieceEncoder<'_, Vocabulary>,
    sink: &mut S,
) -> Result<ControlFlow<()>> {
    loop {
        let count = cut(batch)?;
        if count == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        // A piece has at most as many ids as bytes.
        let size = batch[count - 1].end - batch[0].start;
        poll(size)?;
        sink.reserve(size)?;
        if !S::HAS_POSITIONS {
            merger.append(text.as_bytes(), &batch[..count], sink.ids())?;
        } else {
            for pieces in batch[..count].chunk_by(|a, b| a.end == b.start) {
                sink.piece(base + pieces[0].start..base + pieces[pieces.len() - 1].end);
                merger.append(text.as_bytes(), pieces, sink.ids())?;
            }
        }
        if sink.batch_done().is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
}

/// Number of ids decoded between two polls.
const DECODED_AT_ONCE: usize = 1 << 16;
