//! Pieces -> ids: a look-up in the cache, then in the vocabulary, then merging.

use std::ops::ControlFlow;

use crate::cache::{Cache, LONGEST, LongKey, SetIndex, run_key};
use crate::error::Result;
use crate::merge::merge;
use crate::split::Piece;
use crate::vocabulary::{NONE, SHORT, Vocabulary, key, three_byte_char};

/// How many pieces are looked up before the first of them is dealt with, and the same for texts
/// that are short.
const MANY: usize = 128;
const FEW: usize = 16;

/// Turns pieces into ids.
pub(crate) struct Merger<'a> {
    vocabulary: &'a Vocabulary,
    cache: Option<&'a mut Cache>,
}

impl<'a> Merger<'a> {
    pub(crate) fn new(vocabulary: &'a Vocabulary, cache: Option<&'a mut Cache>) -> Self {
        Self { vocabulary, cache }
    }

    /// Appends the ids of `pieces` of `text`, none of them empty.
    pub(crate) fn append(
        &mut self,
        text: &[u8],
        pieces: &[Piece],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if pieces.len() <= FEW {
            self.append_ahead::<FEW>(text, pieces, ids)
        } else {
            self.append_ahead::<MANY>(text, pieces, ids)
        }
    }

    /// Asks for what the look-ups of `N` pieces will read before the first of them, so that many
    /// reads of memory are under way at once.
    #[inline(always)]
    fn append_ahead<const N: usize>(
        &mut self,
        text: &[u8],
        pieces: &[Piece],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let mut sought = [([0; 2], SetIndex::default()); N];
        for pieces in pieces.chunks(N) {
            if let Some(cache) = self.cache() {
                let short = cache.short();
                for (piece, sought) in pieces.iter().zip(&mut sought) {
                    let key = key(text, piece.start, piece.end);
                    *sought = (key, short.approach(key));
                }
            }
            let mut next = 0;
            loop {
                if let Some(cache) = self.cache() {
                    next += cache.short().append_known(&sought[next..pieces.len()], ids);
                }
                let Some(&unknown) = pieces.get(next) else { break };
                self.append_unknown(text, unknown, ids)?;
                next += 1;
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn append_unknown(&mut self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        if piece.end - piece.start <= SHORT {
            self.append_short(text, piece, ids)
        } else {
            self.append_long(text, piece, ids)
        }
    }

    /// A piece of up to [`SHORT`] bytes.
    fn append_short(&mut self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        let key = key(text, piece.start, piece.end);
        self.append_remembered(
            ids,
            |cache, ids| cache.append(key, ids),
            |cache, ids| cache.put(key, ids),
            |merger, ids| {
                let vocabulary = merger.vocabulary;
                let rank = vocabulary.tokens().find_short(key);
                if rank != NONE {
                    ids.push(vocabulary.id(rank));
                    return Ok(());
                }
                let bytes = &text[..piece.end];
                let is_cut = three_byte_char(&bytes[piece.start..]).is_some()
                    && vocabulary.cuts().any(bytes, piece.start, piece.end);
                if is_cut {
                    return merger.append_segments(text, piece, ids);
                }
                let from = ids.len();
                merge(vocabulary, &bytes[piece.start..], ids);
                merger.finish(ids, from)
            },
        )
    }

    /// A piece of more than [`SHORT`] bytes. Runs of Chinese and the like seldom come twice;
    /// they are cut up at once.
    fn append_long(&mut self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        let bytes = &text[piece.start..piece.end];
        if let Some(key) = run_key(bytes) {
            return self.append_remembered(
                ids,
                |cache, ids| cache.append(key, ids),
                |cache, ids| cache.put(key, ids),
                |merger, ids| merger.append_uncut(bytes, ids),
            );
        }
        if bytes.len() > LONGEST || three_byte_char(bytes).is_some() {
            return self.append_segments(text, piece, ids);
        }
        let key = LongKey::new(bytes);
        self.append_remembered(
            ids,
            |cache, ids| cache.append_long(key, ids),
            |cache, ids| cache.put_long(key, ids),
            |merger, ids| merger.append_segments(text, piece, ids),
        )
    }

    /// Appends what the cache knows, or else what `find` finds, which the cache then learns.
    #[inline(always)]
    fn append_remembered(
        &mut self,
        ids: &mut Vec<u32>,
        get: impl FnOnce(&Cache, &mut Vec<u32>) -> bool,
        put: impl FnOnce(&mut Cache, &[u32]),
        find: impl FnOnce(&mut Self, &mut Vec<u32>) -> Result<()>,
    ) -> Result<()> {
        if self.cache().is_some_and(|cache| get(cache, ids)) {
            return Ok(());
        }
        let from = ids.len();
        find(self, ids)?;
        if let Some(cache) = self.cache() {
            put(cache, &ids[from..]);
        }
        Ok(())
    }

    /// Appends the ids of a long piece, cut apart where no token reaches across.
    fn append_segments(&mut self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        let vocabulary = self.vocabulary;
        let mut segments = Segments { waiting: [Piece::default(); FEW], count: 0 };
        let mut start = piece.start;
        let stopped = vocabulary.cuts().each(text, piece.start, piece.end, |cut| {
            let segment = Piece { start, end: cut };
            start = cut;
            match segments.add(self, text, segment, ids) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            }
        });
        if let ControlFlow::Break(error) = stopped {
            return Err(error);
        }
        segments.add(self, text, Piece { start, end: piece.end }, ids)?;
        segments.flush(self, text, ids)
    }

    /// Appends the ids of more than [`SHORT`] bytes that no cut goes through.
    fn append_uncut(&mut self, bytes: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        let vocabulary = self.vocabulary;
        if let Some(rank) = vocabulary.tokens().find_long(bytes) {
            ids.push(vocabulary.id(rank));
            return Ok(());
        }
        let from = ids.len();
        merge(vocabulary, bytes, ids);
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
        self.cache.as_deref_mut()
    }
}

/// Segments of a long piece: short ones are looked up together, like pieces.
struct Segments {
    waiting: [Piece; FEW],
    count: usize,
}

impl Segments {
    #[inline(always)]
    fn add(
        &mut self,
        merger: &mut Merger<'_>,
        text: &[u8],
        segment: Piece,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if segment.end - segment.start > SHORT {
            self.flush(merger, text, ids)?;
            return merger.append_uncut(&text[segment.start..segment.end], ids);
        }
        if self.count == FEW {
            self.flush(merger, text, ids)?;
        }
        self.waiting[self.count] = segment;
        self.count += 1;
        Ok(())
    }

    fn flush(&mut self, merger: &mut Merger<'_>, text: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        let count = std::mem::take(&mut self.count);
        if count == 0 { Ok(()) } else { merger.append(text, &self.waiting[..count], ids) }
    }
}
