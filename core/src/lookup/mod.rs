//! Pieces -> ids.
//!
//! Many pieces are under way at once, since memory is what takes the time: what the cache will be
//! asked for is brought near for all of them, then the ids of what it knows are written one after
//! the other. What it does not know, it learns, for many pieces at once as well ([`gaps`]), or
//! for one, in its turn ([`alone`]).

mod misses;
mod prefetch;
mod single;

pub(crate) use prefetch::{ProbeBatch, Unit};

use crate::cache::Cache;
use crate::error::Result;
use crate::split::Piece;
use crate::vocabulary::Vocabulary;
use single::SingleEncoder;

/// Turns pieces into ids.
pub(crate) struct PieceEncoder<'a> {
    alone: SingleEncoder<'a>,
    ahead: &'a mut ProbeBatch,
}

impl<'a> PieceEncoder<'a> {
    pub(crate) fn new(
        vocabulary: &'a Vocabulary,
        cache: Option<&'a mut Cache>,
        ahead: &'a mut ProbeBatch,
    ) -> Self {
        Self { alone: SingleEncoder { vocabulary, cache }, ahead }
    }

    /// Appends the ids of `pieces` of `text`, none of them empty.
    pub(crate) fn append(
        &mut self,
        text: &[u8],
        pieces: &[Piece],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let Self { alone, ahead } = self;
        if alone.cache.is_none() {
            return pieces.iter().try_for_each(|&piece| alone.append(text, piece, ids));
        }
        ahead.clear();
        let mut stream = prefetch::Stream::new(pieces);
        while let Some(cache) = &alone.cache
            && ahead.seek(alone.vocabulary, cache, text, &mut stream)
        {
            ahead.append(alone, text, ids)?;
        }
        ahead.finish(alone, text, ids)
    }
}
