//! Pieces -> ids: a look-up in the cache, then in the vocabulary, then merging.

use crate::cache::{Cache, Ids, LONGEST, LongKey};
use crate::error::Result;
use crate::merge::merge;
use crate::pool::{Lease, Pool};
use crate::split::Piece;
use crate::vocabulary::{SHORT, Vocabulary, key, three_byte_char};

/// How many pieces are looked up before the first of them is dealt with. A run of look-ups
/// without a branch among them keeps many reads of memory under way at once.
const AHEAD: usize = 32;

/// Turns pieces into ids, with a cache of its own for as long as it lives.
pub(crate) struct Merger<'a> {
    vocabulary: &'a Vocabulary,
    lease: Option<Lease<'a>>,
}

impl<'a> Merger<'a> {
    pub(crate) fn new(vocabulary: &'a Vocabulary, pool: &'a Pool) -> Self {
        Self { vocabulary, lease: pool.borrow() }
    }

    /// Appends the ids of `pieces` of `text`, none of them empty.
    pub(crate) fn append(
        &mut self,
        text: &[u8],
        pieces: &[Piece],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let mut known = [Ids::UNKNOWN; AHEAD];
        for pieces in pieces.chunks(AHEAD) {
            if let Some(cache) = self.cache() {
                let cache = cache.short();
                for (piece, known) in pieces.iter().zip(&mut known) {
                    *known = cache.get(key(text, piece.start, piece.end));
                }
            }
            for (piece, known) in pieces.iter().zip(&known) {
                if !append_known(*known, ids) {
                    self.append_unknown(text, *piece, ids)?;
                }
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
        let vocabulary = self.vocabulary;
        let key = key(text, piece.start, piece.end);
        // An equal piece may have come by since the look-up.
        if self.cache().is_some_and(|cache| append_known(cache.short().get(key), ids)) {
            return Ok(());
        }
        let from = ids.len();
        match vocabulary.tokens().find_short(key) {
            Some(id) => ids.push(id),
            None => {
                merge(vocabulary, &text[piece.start..piece.end], ids);
                self.finish(ids, from)?;
            }
        }
        if let Some(cache) = self.cache() {
            cache.put(key, &ids[from..]);
        }
        Ok(())
    }

    /// A piece of more than [`SHORT`] bytes. Runs of Chinese and the like seldom come twice;
    /// they are cut up at once.
    fn append_long(&mut self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        let bytes = &text[piece.start..piece.end];
        if bytes.len() > LONGEST || three_byte_char(bytes).is_some() {
            return self.append_segments(text, piece, ids);
        }
        let key = LongKey::new(bytes);
        if self.cache().is_some_and(|cache| append_known(cache.get_long(key), ids)) {
            return Ok(());
        }
        let from = ids.len();
        self.append_segments(text, piece, ids)?;
        if let Some(cache) = self.cache() {
            cache.put_long(key, &ids[from..]);
        }
        Ok(())
    }

    /// Appends the ids of a long piece, cut apart where no token reaches across.
    fn append_segments(&mut self, text: &[u8], piece: Piece, ids: &mut Vec<u32>) -> Result<()> {
        let vocabulary = self.vocabulary;
        let bytes = &text[..piece.end];
        let mut segments = [Piece::default(); AHEAD];
        let mut count = 0;
        let mut start = piece.start;
        while start < piece.end {
            let end = vocabulary.cuts().next(bytes, start);
            let is_short = end - start <= SHORT;
            if is_short {
                segments[count] = Piece { start, end };
                count += 1;
            }
            if count == AHEAD || !is_short || end == piece.end {
                self.append(text, &segments[..count], ids)?;
                count = 0;
            }
            if !is_short {
                self.append_uncut(&text[start..end], ids)?;
            }
            start = end;
        }
        Ok(())
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
        self.lease.as_mut().map(Lease::cache)
    }
}

/// Appends ids, if they are known.
#[inline(always)]
fn append_known<const W: usize>(known: Ids<W>, ids: &mut Vec<u32>) -> bool {
    let (count, unpacked) = known.unpack();
    let unpacked = unpacked.as_flattened();
    ids.reserve(unpacked.len());
    let length = ids.len();
    for (spare, &id) in ids.spare_capacity_mut()[..unpacked.len()].iter_mut().zip(unpacked) {
        spare.write(id);
    }
    // SAFETY: as many elements after `length` as `unpacked` has have just been written.
    unsafe { ids.set_len(length + count.min(unpacked.len())) };
    count != 0
}
