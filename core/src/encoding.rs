//! Runs the stages: one walk, many sinks.

use std::borrow::Cow;
use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::longest_tokens::LongestTokens;
use crate::lookup::PieceEncoder;
use crate::memory::reserve;
use crate::normalize::{Alignment, Normalization};
use crate::once::LockFreeOnce;
use crate::polling::poll;
use crate::pool::Pool;
use crate::request::Request;
use crate::rule::is_valid_pair;
use crate::sink::{Count, Sink};
use crate::sorted_tokens::SortedTokens;
use crate::special_tokens::{Selection, SpecialTokens};
use crate::split::{Batch, Piece, Splitter};
use crate::vocabulary::Vocabulary;

/// A normalization, special tokens, a pattern and a vocabulary: everything that text needs to
/// become ids. Immutable, and shared freely between threads.
#[derive(Debug)]
pub struct Encoding {
    normalization: Normalization,
    vocabulary: Vocabulary,
    splitter: Splitter,
    special_tokens: SpecialTokens,
    workspaces: Pool,
    sorted_tokens: LockFreeOnce<SortedTokens>,
    longest_tokens: LockFreeOnce<LongestTokens>,
}

impl Encoding {
    /// Puts the parts together, without normalization. A special token may not take the id of
    /// another token.
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
        Ok(Self {
            normalization: Normalization::None,
            vocabulary,
            splitter,
            special_tokens,
            workspaces: Pool::default(),
            sorted_tokens: LockFreeOnce::new(),
            longest_tokens: LockFreeOnce::new(),
        })
    }

    /// The same with text normalized before anything else looks at it.
    pub fn with_normalization(self, normalization: Normalization) -> Self {
        Self { normalization, ..self }
    }

    /// What is done to text first.
    pub fn normalization(&self) -> Normalization {
        self.normalization
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

    /// Walks `text` into `sink`, as `request` says. Positions that the sink is given are those of
    /// the normalized text.
    ///
    /// Fails with [`Error::DisallowedSpecial`] if the text holds a name that it must not hold.
    ///
    /// ```
    /// use bpe_core::{Encoding, Request, SpecialTokens, Splitter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::build((0..=255).map(|byte| (vec![byte], byte.into())).collect())?;
    /// let encoding = Encoding::new(vocabulary, Splitter::new(r"\w+|\W")?, SpecialTokens::new([])?)?;
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

    /// How many tokens `text` has; some number above `limit` if there are more than that.
    pub fn count(&self, text: &str, limit: usize, request: &Request) -> Result<usize> {
        let mut count = Count::till(limit);
        self.encode(text, request, &mut count)?;
        Ok(count.total)
    }

    /// The text that is encoded in place of `text`, which has been checked.
    #[inline]
    pub(crate) fn prepare<'a>(&self, text: &'a str, request: &Request) -> Result<Cow<'a, str>> {
        let text = self.normalization.apply(text)?;
        request.check(&self.special_tokens, &text)?;
        Ok(text)
    }

    /// [`Encoding::prepare`], with the way back to `text`.
    pub(crate) fn prepare_aligned<'a>(
        &self,
        text: &'a str,
        request: &Request,
    ) -> Result<(Cow<'a, str>, Alignment)> {
        let (normal, alignment) = self.normalization.align(text)?;
        request.check(&self.special_tokens, &normal)?;
        Ok((normal, alignment))
    }

    /// Walks normalized text into `sink`. Names in `allowed` become their special tokens; every
    /// other text, special names included, is ordinary.
    pub(crate) fn encode_normal<S: Sink>(
        &self,
        text: &str,
        allowed: &Selection,
        sink: &mut S,
    ) -> Result<()> {
        self.encode_normal_from(text, 0, allowed, sink)
    }

    /// The same from byte `position` of the text on, where a piece begins.
    pub(crate) fn encode_normal_from<S: Sink>(
        &self,
        text: &str,
        mut position: usize,
        allowed: &Selection,
        sink: &mut S,
    ) -> Result<()> {
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
            poll(found.end - found.start)?;
            sink.reserve(1, 1)?;
            if S::WANTS_PIECES {
                sink.special(found.start..found.end);
            }
            sink.ids().push(id);
            if sink.batch_done().is_break() {
                return Ok(());
            }
            position = found.end;
        }
    }

    /// Calls `work` with what appends the ids of a normalized text without special tokens: one
    /// workspace serves all the texts.
    pub(crate) fn encode_stretches(
        &self,
        work: impl FnOnce(&mut dyn FnMut(&str, &mut Vec<u32>) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let mut lease = self.workspaces.borrow();
        let (batch, mut merger) = lease.workspace().parts(&self.vocabulary);
        work(&mut |text, ids| self.encode_stretch(text, 0, batch, &mut merger, ids).map(|_| ()))
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
            // A piece has at most as many ids as bytes.
            let size = batch[count - 1].end - batch[0].start;
            poll(size)?;
            sink.reserve(count, size)?;
            if S::WANTS_PIECES {
                for piece in &batch[..count] {
                    sink.piece(base + piece.start..base + piece.end);
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
        reserve(ids, piece.len())?;
        let mut lease = self.workspaces.borrow();
        let (_, mut merger) = lease.workspace().parts(&self.vocabulary);
        merger.append_one(piece, Piece { start: 0, end: piece.len() }, ids)
    }

    /// How many tokens one piece has. `ids` is overwritten with them.
    pub(crate) fn count_piece(&self, piece: &[u8], ids: &mut Vec<u32>) -> Result<usize> {
        ids.clear();
        self.encode_piece(piece, ids)?;
        Ok(ids.len())
    }

    /// Whether these two ids, next to each other in a piece, are certain to be what merging their
    /// bytes ends in. False where that is not known: for vocabularies that are not ordered or have
    /// tokens out of reach.
    pub(crate) fn stay_apart(&self, left: u32, right: u32) -> bool {
        let vocabulary = &self.vocabulary;
        let ranks = (vocabulary.rank_of_id(left), vocabulary.rank_of_id(right));
        let (Some(left), Some(right)) = ranks else { return false };
        vocabulary.is_ordered()
            && vocabulary.all_reachable()
            && is_valid_pair(vocabulary.pairs(), left, right)
    }

    /// Appends the ids of pieces of `text`, none of them empty: no splitting, no special tokens.
    pub fn encode_pieces(&self, text: &str, pieces: &[Piece], ids: &mut Vec<u32>) -> Result<()> {
        // A piece has at most as many ids as bytes.
        reserve(ids, pieces.iter().map(|piece| piece.end - piece.start).sum())?;
        let mut lease = self.workspaces.borrow();
        let (_, mut merger) = lease.workspace().parts(&self.vocabulary);
        merger.append(text.as_bytes(), pieces, ids)
    }

    /// What calls borrow, caches among it: to clear them, or to do without.
    pub fn workspaces(&self) -> &Pool {
        &self.workspaces
    }

    /// The tokens in the order of their bytes, sorted when they are first needed.
    pub fn sorted_tokens(&self) -> Result<&SortedTokens> {
        self.sorted_tokens.get_or_try_init(|| SortedTokens::new(&self.vocabulary))
    }

    /// How long tokens may be, found when it is first needed.
    pub(crate) fn longest_tokens(&self) -> Result<&LongestTokens> {
        self.longest_tokens.get_or_try_init(|| LongestTokens::new(&self.vocabulary))
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
        let mut bytes = Vec::new();
        self.append_bytes(ids, &mut bytes)?;
        Ok(bytes)
    }

    /// Appends the bytes that `ids` stand for.
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

/// How many ids are decoded between two polls.
const DECODED_AT_ONCE: usize = 1 << 16;

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
