//! Pieces -> ids.
//!
//! Many pieces are under way at once, since memory is what takes the time: what the cache will be
//! asked for is brought near for all of them, then the ids of what it knows are written one after
//! the other. What it does not know, it learns, for many pieces at once as well ([`gaps`]), or
//! for one, in its turn ([`alone`]).

mod ahead;
mod alone;
mod gaps;

pub(crate) use ahead::{Ahead, Unit};

use crate::cache::Cache;
use crate::error::Result;
use crate::split::Piece;
use crate::vocabulary::Vocabulary;
use alone::Alone;

/// Turns pieces into ids.
pub(crate) struct Merger<'a> {
    alone: Alone<'a>,
    ahead: &'a mut Ahead,
}

impl<'a> Merger<'a> {
    pub(crate) fn new(
        vocabulary: &'a Vocabulary,
        cache: Option<&'a mut Cache>,
        ahead: &'a mut Ahead,
    ) -> Self {
        Self { alone: Alone { vocabulary, cache }, ahead }
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
        let mut stream = ahead::Stream::new(pieces);
        while let Some(cache) = &alone.cache
            && ahead.seek(alone.vocabulary, cache, text, &mut stream)
        {
            ahead.append(alone, text, ids)?;
        }
        ahead.finish(alone, text, ids)
    }
}
