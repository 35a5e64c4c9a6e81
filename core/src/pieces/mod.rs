//! Pieces -> ids.
//!
//! Many pieces are under way at once, since memory is what takes the time: what the cache will be
//! asked for is brought near for all of them, then the ids of what it knows are written one after
//! the other. What it does not know, it learns, for many pieces at once as well ([`ahead`]), or
//! for one, in its turn ([`alone`]).

mod ahead;
mod alone;

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
        Self { alone: Alone { vocabulary, cache, misses: 0 }, ahead }
    }

    /// Appends the ids of `pieces` of `text`, none of them empty.
    pub(crate) fn append(
        &mut self,
        text: &[u8],
        pieces: &[Piece],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let Self { alone, ahead } = self;
        let vocabulary = alone.vocabulary;
        if alone.cache.is_none() {
            return pieces.iter().try_for_each(|&piece| alone.append(text, piece, ids));
        }
        let mut stream = ahead::Stream::new(pieces);
        while let Some(cache) = alone.cache.as_deref_mut()
            && ahead.seek(vocabulary, cache, text, &mut stream)
        {
            let known = cache.short().append_known(ahead.units(), ids);
            if known < ahead.units().len() {
                let expects_news = ahead.expects_news();
                if expects_news {
                    ahead.learn(vocabulary, cache, text, known);
                }
                let misses = alone.misses;
                append_rest(alone, text, &ahead.units()[known..], ids)?;
                if !expects_news {
                    ahead.note_unknown(alone.misses - misses);
                }
            }
        }
        Ok(())
    }
}

/// Appends the ids of units of which the first was not known when last looked for.
#[inline(never)]
fn append_rest(
    alone: &mut Alone<'_>,
    text: &[u8],
    mut units: &[Unit],
    ids: &mut Vec<u32>,
) -> Result<()> {
    loop {
        let known = match &alone.cache {
            Some(cache) => cache.short().append_known(units, ids),
            None => 0,
        };
        let Some((unknown, rest)) = units[known..].split_first() else { return Ok(()) };
        alone.append(text, unknown.piece(), ids)?;
        units = rest;
    }
}
