//! Pieces -> ids: a look-up in the vocabulary, then in the cache, then merging.

use crate::cache::{Cache, LONGEST, LongKey};
use crate::error::Result;
use crate::merge::merge;
use crate::pool::{Lease, Pool};
use crate::split::Piece;
use crate::vocabulary::{Key, SHORT, Vocabulary, key};

/// Turns pieces into ids, with a cache that it borrows at the first piece that is no token.
pub(crate) struct Merger<'a> {
    vocabulary: &'a Vocabulary,
    pool: &'a Pool,
    lease: Option<Lease<'a>>,
    asked: bool,
}

impl<'a> Merger<'a> {
    pub(crate) fn new(vocabulary: &'a Vocabulary, pool: &'a Pool) -> Self {
        Self { vocabulary, pool, lease: None, asked: false }
    }

    /// Appends the ids of `pieces` of `text`.
    #[inline]
    pub(crate) fn append(
        &mut self,
        text: &[u8],
        pieces: &[Piece],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let tokens = self.vocabulary.tokens();
        for piece in pieces {
            if piece.end - piece.start <= SHORT {
                let key = key(text, piece.start, piece.end);
                match tokens.find_short(key) {
                    Some(found) => ids.push(found.id),
                    None => self.append_short(text, *piece, key, ids)?,
                }
            } else {
                self.append_long(text, *piece, ids)?;
            }
        }
        Ok(())
    }

    /// A piece of up to [`SHORT`] bytes that is no token.
    #[inline(never)]
    fn append_short(
        &mut self,
        text: &[u8],
        piece: Piece,
        key: Key,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let from = ids.len();
        self.merge_short(&text[piece.start..piece.end], key, ids);
        self.finish(ids, from)
    }

    /// Appends the ranks of up to [`SHORT`] bytes that are no token, or must be merged though.
    #[inline(always)]
    fn merge_short(&mut self, bytes: &[u8], key: Key, ranks: &mut Vec<u32>) {
        let vocabulary = self.vocabulary;
        let from = ranks.len();
        let Some(cache) = self.cache() else { return merge(vocabulary, bytes, ranks) };
        let hash = cache.hash(key);
        if !cache.get(hash, key, ranks) {
            merge(vocabulary, bytes, ranks);
            cache.put(hash, key, &ranks[from..]);
        }
    }

    /// A piece of more than [`SHORT`] bytes.
    #[inline(never)]
    fn append_long(&mut self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        let bytes = &text[piece.start..piece.end];
        if let Some(found) = self.vocabulary.tokens().find_long(bytes) {
            ids.push(found.id);
            return Ok(());
        }
        let from = ids.len();
        if bytes.len() > LONGEST {
            self.merge_segments(text, piece, ids);
            return self.finish(ids, from);
        }
        let key = LongKey::new(bytes);
        let hash = self.cache().map(|cache| cache.hash_long(key));
        let known = match (hash, self.cache()) {
            (Some(hash), Some(cache)) => cache.get_long(hash, key, ids),
            _ => false,
        };
        if !known {
            self.merge_segments(text, piece, ids);
            if let (Some(hash), Some(cache)) = (hash, self.cache()) {
                cache.put_long(hash, key, &ids[from..]);
            }
        }
        self.finish(ids, from)
    }

    /// Appends the ranks of a piece, cut apart where no token reaches across.
    fn merge_segments(&mut self, text: &[u8], piece: Piece, ranks: &mut Vec<u32>) {
        let vocabulary = self.vocabulary;
        let bytes = &text[..piece.end];
        let mut start = piece.start;
        while start < piece.end {
            let end = vocabulary.cuts().next(bytes, start);
            self.merge_segment(text, Piece { start, end }, ranks);
            start = end;
        }
    }

    /// Appends the ranks of a stretch that merges on its own.
    fn merge_segment(&mut self, text: &[u8], segment: Piece, ranks: &mut Vec<u32>) {
        let vocabulary = self.vocabulary;
        let bytes = &text[segment.start..segment.end];
        if bytes.len() > SHORT {
            merge(vocabulary, bytes, ranks);
            return;
        }
        let key = key(text, segment.start, segment.end);
        if let Some(found) = vocabulary.tokens().find_short(key)
            && found.reachable
        {
            ranks.push(found.rank);
            return;
        }
        self.merge_short(bytes, key, ranks);
    }

    /// Turns the ranks from index `from` on into ids.
    #[inline(always)]
    fn finish(&self, ranks: &mut [u32], from: usize) -> Result<()> {
        if self.vocabulary.every_rank_is_an_id() {
            return Ok(());
        }
        self.to_ids(&mut ranks[from..])
    }

    #[inline(never)]
    fn to_ids(&self, ranks: &mut [u32]) -> Result<()> {
        for rank in ranks {
            *rank = self.vocabulary.part_id(*rank)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn cache(&mut self) -> Option<&mut Cache> {
        if !self.asked {
            self.asked = true;
            self.lease = self.pool.borrow();
        }
        self.lease.as_mut().map(Lease::cache)
    }
}
