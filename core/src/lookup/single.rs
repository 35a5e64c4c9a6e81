//! Finds the ids of one piece: in the cache, then in the vocabulary, then by merging.

use std::ops::ControlFlow;

use super::Resolve;
use crate::cache::{Cache, CacheKey, LONG, LongKey, MEDIUM, MOST_IDS, MediumKey, run_key};
use crate::error::Result;
use crate::memory::reserve;
use crate::merge::merge;
use crate::split::Piece;
use crate::vocabulary::{NONE, SHORT, Vocabulary, key};

/// Encodes pieces one at a time.
pub(super) struct SingleEncoder<'a, R> {
    pub(super) resolver: &'a R,
    pub(super) cache: Option<&'a mut Cache>,
}

impl<R: Resolve> SingleEncoder<'_, R> {
    /// Appends the ids of a nonempty piece of `text`.
    #[inline(never)]
    pub(super) fn append(&mut self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        if piece.end - piece.start <= SHORT {
            self.append_short(text, piece, ids)
        } else {
            self.append_long(text, piece, ids)
        }
    }

    /// Appends the ids of a piece of up to [`SHORT`] bytes.
    fn append_short(&mut self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        let key = key(text, piece.start, piece.end);
        self.append_cached(key, ids, |single, ids| {
            let Some(vocabulary) = single.resolver.vocabulary() else {
                return single.resolver.resolve(text, piece, ids);
            };
            let bytes = &text[piece.start..piece.end];
            let rank = vocabulary.tokens().find_short(key);
            let rank = (rank != NONE).then_some(rank);
            append_token_or_merge(vocabulary, rank, bytes, ids)
        })
    }

    /// Appends the ids of a piece of more than [`SHORT`] bytes.
    fn append_long(&mut self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        let bytes = &text[piece.start..piece.end];
        let segments =
            |single: &mut Self, ids: &mut Vec<u32>| single.append_segments(text, piece, ids);
        if let Some(key) = run_key(bytes) {
            self.append_cached(key, ids, |single, ids| single.resolver.resolve(text, piece, ids))
        } else if bytes.len() <= MEDIUM {
            self.append_cached(MediumKey::new(bytes), ids, segments)
        } else if bytes.len() <= LONG {
            self.append_cached(LongKey::new(bytes), ids, segments)
        } else {
            segments(self, ids)
        }
    }

    /// Appends the ids of the piece with this key, if they are cached.
    #[inline(always)]
    pub(super) fn append_known(&mut self, key: impl CacheKey, ids: &mut Vec<u32>) -> bool {
        self.cache().is_some_and(|cache| cache.append(key, ids))
    }

    /// Appends the ids of a piece of more than [`SHORT`] and at most [`MEDIUM`] bytes, if they are
    /// cached or the piece is a token.
    pub(super) fn append_known_or_token(
        &mut self,
        text: &[u8],
        piece: Piece,
        vocabulary: &Vocabulary,
        ids: &mut Vec<u32>,
    ) -> bool {
        let bytes = &text[piece.start..piece.end];
        let key = MediumKey::new(bytes);
        if self.append_known(key, ids) {
            return true;
        }
        let Some(rank) = vocabulary.tokens().find_long(bytes) else { return false };
        let id = vocabulary.id(rank);
        ids.push(id);
        if let Some(cache) = self.cache() {
            cache.insert(key, &[id]);
        }
        true
    }

    /// Appends the ids if they are cached; otherwise calls `find` to append them, and caches them.
    #[inline(always)]
    fn append_cached(
        &mut self,
        key: impl CacheKey,
        ids: &mut Vec<u32>,
        find: impl FnOnce(&mut Self, &mut Vec<u32>) -> Result<()>,
    ) -> Result<()> {
        reserve(ids, MOST_IDS)?;
        if self.append_known(key, ids) {
            return Ok(());
        }
        let from = ids.len();
        find(self, ids)?;
        if let Some(cache) = self.cache() {
            cache.insert(key, &ids[from..]);
        }
        Ok(())
    }

    /// Appends the ids of a piece, segment by segment: no token crosses a boundary.
    fn append_segments(&mut self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        let Some(vocabulary) = self.resolver.vocabulary() else {
            return self.resolver.resolve(text, piece, ids);
        };
        let mut start = piece.start;
        let stopped = vocabulary.boundaries().each(text, piece.start, piece.end, |boundary| {
            let segment = Piece { start, end: boundary };
            start = boundary;
            match self.append_segment(text, segment, ids) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            }
        });
        match stopped {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => {
                self.append_segment(text, Piece { start, end: piece.end }, ids)
            }
        }
    }

    fn append_segment(&mut self, text: &[u8], segment: Piece, ids: &mut Vec<u32>) -> Result<()> {
        if segment.end - segment.start <= SHORT {
            self.append_short(text, segment, ids)
        } else {
            self.resolver.resolve(text, segment, ids)
        }
    }

    #[inline(always)]
    fn cache(&mut self) -> Option<&mut Cache> {
        self.cache.as_deref_mut()
    }
}

/// Appends the id of the token with this rank, or, without a rank, the ids from merging the bytes.
#[inline(always)]
fn append_token_or_merge(
    vocabulary: &Vocabulary,
    token: Option<u32>,
    bytes: &[u8],
    ids: &mut Vec<u32>,
) -> Result<()> {
    let from = ids.len();
    if let Some(rank) = token {
        ids.push(vocabulary.id(rank));
        return Ok(());
    }
    merge(vocabulary, bytes, ids)?;
    vocabulary.turn_into_ids(&mut ids[from..])
}
