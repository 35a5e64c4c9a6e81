//! Pieces -> ids: a look-up in the vocabulary, then in the cache, then merging.

use crate::cache::{Cache, LONGEST, LongKey};
use crate::error::Result;
use crate::merge::merge;
use crate::pool::{Lease, Pool};
use crate::split::Piece;
use crate::vocabulary::{NONE, SHORT, Vocabulary, key};

/// How many pieces are looked up before the first of them is dealt with. A run of look-ups
/// without a branch among them keeps many reads of memory under way at once.
const AHEAD: usize = 32;

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

    /// Appends the ids of `pieces` of `text`, none of them empty.
    pub(crate) fn append(
        &mut self,
        text: &[u8],
        pieces: &[Piece],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let tokens = self.vocabulary.tokens().short();
        let mut found = [NONE; AHEAD];
        for pieces in pieces.chunks(AHEAD) {
            for (piece, found) in pieces.iter().zip(&mut found) {
                *found = tokens.id(key(text, piece.start, piece.end));
            }
            for (piece, &id) in pieces.iter().zip(&found) {
                if id != NONE {
                    ids.push(id);
                } else if piece.end - piece.start <= SHORT {
                    self.append_short(text, *piece, ids)?;
                } else {
                    self.append_long(text, *piece, ids)?;
                }
            }
        }
        Ok(())
    }

    /// A piece of up to [`SHORT`] bytes that is no token.
    #[inline(never)]
    fn append_short(&mut self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        let vocabulary = self.vocabulary;
        let from = ids.len();
        let bytes = &text[piece.start..piece.end];
        match self.cache() {
            Some(cache) => {
                let key = key(text, piece.start, piece.end);
                let hash = cache.hash(key);
                if !cache.get(hash, key, ids) {
                    merge(vocabulary, bytes, ids);
                    cache.put(hash, key, &ids[from..]);
                }
            }
            None => merge(vocabulary, bytes, ids),
        }
        self.finish(ids, from)
    }

    /// A piece of more than [`SHORT`] bytes: cut apart where no token reaches across, if there
    /// is such a place.
    #[inline(never)]
    fn append_long(&mut self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        let vocabulary = self.vocabulary;
        let cuts = vocabulary.cuts();
        let bytes = &text[..piece.end];
        let mut start = piece.start;
        let mut end = cuts.next(bytes, start);
        if end == piece.end {
            return self.append_uncut(&text[start..end], ids);
        }
        let mut segments = [Piece::default(); AHEAD];
        let mut count = 0;
        loop {
            segments[count] = Piece { start, end };
            count += 1;
            if count == AHEAD || end == piece.end {
                self.append_segments(text, &segments[..count], ids)?;
                count = 0;
            }
            if end == piece.end {
                return Ok(());
            }
            start = end;
            end = cuts.next(bytes, start);
        }
    }

    /// Segments merge like pieces, and are not cut again.
    fn append_segments(
        &mut self,
        text: &[u8],
        segments: &[Piece],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        segments
            .chunk_by(|a, b| (a.end - a.start <= SHORT) == (b.end - b.start <= SHORT))
            .try_for_each(|run| {
                if run[0].end - run[0].start <= SHORT {
                    return self.append(text, run, ids);
                }
                run.iter().try_for_each(|segment| {
                    self.append_uncut(&text[segment.start..segment.end], ids)
                })
            })
    }

    /// Appends the ids of more than [`SHORT`] bytes that no cut goes through.
    fn append_uncut(&mut self, bytes: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        let vocabulary = self.vocabulary;
        if let Some(rank) = vocabulary.tokens().find_long(bytes) {
            ids.push(vocabulary.id(rank));
            return Ok(());
        }
        let from = ids.len();
        match self.cache() {
            Some(cache) if bytes.len() <= LONGEST => {
                let key = LongKey::new(bytes);
                let hash = cache.hash_long(key);
                if !cache.get_long(hash, key, ids) {
                    merge(vocabulary, bytes, ids);
                    cache.put_long(hash, key, &ids[from..]);
                }
            }
            _ => merge(vocabulary, bytes, ids),
        }
        self.finish(ids, from)
    }

    /// Turns the ranks from index `from` on into ids.
    #[inline(always)]
    fn finish(&self, ranks: &mut [u32], from: usize) -> Result<()> {
        if self.vocabulary.every_rank_is_an_id() {
            return Ok(());
        }
        for rank in &mut ranks[from..] {
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
