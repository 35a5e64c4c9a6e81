//! Looks up the ids of pieces.
//!
//! Memory latency takes most of the time, so pieces are looked up hundreds at a time: all their
//! cache sets are prefetched (`prefetch`), then the ids of the cached pieces are written in order.
//! Misses are also resolved hundreds at a time (`misses`), or one at a time (`single`).

mod misses;
mod prefetch;
mod probe;
mod single;

pub(crate) use prefetch::ProbeBatch;

use crate::cache::Cache;
use crate::error::Result;
use crate::merge::merge;
use crate::split::Piece;
use crate::vocabulary::Vocabulary;
use single::SingleEncoder;

/// Finds the ids of pieces that are not cached.
pub trait Resolve {
    /// Returns the vocabulary, if merging the bytes of a piece gives its ids.
    fn vocabulary(&self) -> Option<&Vocabulary> {
        None
    }

    /// Appends the ids of a nonempty piece of `text`.
    fn resolve(&self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()>;
}

impl Resolve for Vocabulary {
    #[inline(always)]
    fn vocabulary(&self) -> Option<&Vocabulary> {
        Some(self)
    }

    /// Appends the id of the token with these bytes, otherwise the ids from merging the bytes.
    fn resolve(&self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        let piece = &text[piece.start..piece.end];
        if let Some(rank) = self.tokens().find_long(piece) {
            ids.push(self.id(rank));
            return Ok(());
        }
        let from = ids.len();
        merge(self, piece, ids)?;
        self.turn_into_ids(&mut ids[from..])
    }
}

/// Maximum number of pieces that are looked up in one step, without prefetching.
const FEW: usize = 4;

/// Encodes pieces to ids.
pub(crate) struct PieceEncoder<'a, R> {
    single: SingleEncoder<'a, R>,
    batch: &'a mut ProbeBatch,
}

impl<'a, R: Resolve> PieceEncoder<'a, R> {
    pub(crate) fn new(
        resolver: &'a R,
        cache: Option<&'a mut Cache>,
        batch: &'a mut ProbeBatch,
    ) -> Self {
        Self { single: SingleEncoder { resolver, cache }, batch }
    }

    /// Appends the ids of nonempty `pieces` of `text`.
    pub(crate) fn append(
        &mut self,
        text: &[u8],
        mut pieces: &[Piece],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let Self { single, batch } = self;
        let Some(cache) = &single.cache else {
            return pieces.iter().try_for_each(|&piece| single.append(text, piece, ids));
        };
        if pieces.len() <= FEW {
            let known = prefetch::append_few(cache.short(), text, pieces, ids)?;
            pieces = &pieces[known..];
            if pieces.is_empty() {
                return Ok(());
            }
        }
        batch.clear();
        let mut stream = prefetch::PieceStream::new(pieces);
        while let Some(cache) = &single.cache
            && batch.prefetch(single.resolver.vocabulary(), cache, text, &mut stream)
        {
            batch.append(single, text, ids)?;
        }
        batch.finish(single, text, ids)
    }

    /// Appends the ids of one nonempty piece of `text`, without prefetching.
    pub(crate) fn append_one(
        &mut self,
        text: &[u8],
        piece: Piece,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        self.single.append(text, piece, ids)
    }
}
