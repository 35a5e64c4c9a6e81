//! Looks up many pieces at once: prefetches the memory for all pieces before reading.

use std::ops::ControlFlow;

use super::Resolve;
use super::misses::Misses;
use super::probe::Probe;
use super::single::SingleEncoder;
use crate::cache::{
    Cache, LONG, LongKey, MEDIUM, MOST_IDS, MediumKey, SetIndex, ShortPieces, run_key,
};
use crate::error::Result;
use crate::memory::reserve;
use crate::split::Piece;
use crate::vocabulary::{
    Boundaries, SHORT, Vocabulary, is_key_of_other, key, key_of_other, length_of, three_byte_char,
};

/// The number of pieces looked up at once. Larger batches evict prefetched lines before use.
const BATCH_SIZE: usize = 512;
/// The minimum number of misses for which a batch pays off.
const MISS_BATCH: usize = 128;

/// Pieces still to look up.
pub(super) struct PieceStream<'a> {
    pieces: &'a [Piece],
    /// The rest of a piece whose first segments were already looked up.
    rest: Option<Piece>,
}

impl<'a> PieceStream<'a> {
    pub(super) fn new(pieces: &'a [Piece]) -> Self {
        Self { pieces, rest: None }
    }
}

/// Look-ups done together, and their misses.
#[derive(Debug, Default)]
pub(crate) struct ProbeBatch {
    /// The first `count` probes belong to this batch.
    probes: Vec<Probe>,
    count: usize,
    /// The misses of this batch, and earlier misses still to be resolved.
    misses: Misses,
}

impl ProbeBatch {
    /// Takes the next pieces of the stream and prefetches their cache sets. Returns false at the
    /// end.
    #[inline(always)]
    pub(super) fn prefetch(
        &mut self,
        vocabulary: Option<&Vocabulary>,
        cache: &Cache,
        text: &[u8],
        stream: &mut PieceStream<'_>,
    ) -> bool {
        self.count = 0;
        if self.probes.is_empty() {
            self.probes = vec![Probe::default(); BATCH_SIZE];
        }
        let boundaries = vocabulary.map(Vocabulary::boundaries).filter(|it| it.are_any());
        if stream.rest.is_some() {
            self.push_segments(boundaries, cache, text, stream);
        }
        let are_segmented = boundaries.is_some();
        while self.count < BATCH_SIZE && !stream.pieces.is_empty() {
            let probes = &mut self.probes[self.count..BATCH_SIZE];
            let count = prefetch_short(probes, stream.pieces, cache.short(), text, are_segmented);
            self.count += count;
            stream.pieces = &stream.pieces[count..];
            if self.count < BATCH_SIZE
                && let Some((&piece, rest)) = stream.pieces.split_first()
            {
                stream.pieces = rest;
                self.prefetch_long(boundaries, cache, text, piece, stream);
            }
        }
        self.count > 0
    }

    /// Takes a long piece or a Chinese piece. Takes a piece of three-byte characters segment by
    /// segment, because segments recur more often than whole pieces.
    #[inline(never)]
    fn prefetch_long(
        &mut self,
        boundaries: Option<&Boundaries>,
        cache: &Cache,
        text: &[u8],
        piece: Piece,
        stream: &mut PieceStream<'_>,
    ) {
        let bytes = &text[piece.start..piece.end];
        let is_segmented = boundaries.is_some() && bytes.len() > 3 && {
            // The first character may be of a different kind, such as a space.
            let second = (1..4).find(|&at| bytes[at] & 0xc0 != 0x80).unwrap_or(4);
            [0, second].iter().any(|&at| three_byte_char(&bytes[at..]).is_some())
        };
        if is_segmented && !(bytes.len() > SHORT && run_key(bytes).is_some()) {
            stream.rest = Some(piece);
            self.push_segments(boundaries, cache, text, stream);
        } else {
            self.push(cache, text, piece);
        }
    }

    /// Takes the next segments of `stream.rest`, until the batch is full.
    fn push_segments(
        &mut self,
        boundaries: Option<&Boundaries>,
        cache: &Cache,
        text: &[u8],
        stream: &mut PieceStream<'_>,
    ) {
        let (Some(Piece { mut start, end }), Some(boundaries)) = (stream.rest.take(), boundaries)
        else {
            return;
        };
        let stopped = boundaries.each(text, start, end, |boundary| {
            self.push(cache, text, Piece { start, end: boundary });
            start = boundary;
            if self.count < BATCH_SIZE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let rest = Piece { start, end };
        if stopped.is_break() {
            stream.rest = Some(rest);
        } else {
            self.push(cache, text, rest);
        }
    }

    #[inline(always)]
    fn push(&mut self, cache: &Cache, text: &[u8], piece: Piece) {
        if piece.end - piece.start > SHORT {
            return self.push_long(cache, text, piece);
        }
        let key = key(text, piece.start, piece.end);
        let set = cache.short().prefetch(key);
        self.probes[self.count] = Probe { key, start: piece.start, set };
        self.count += 1;
    }

    #[inline(never)]
    fn push_long(&mut self, cache: &Cache, text: &[u8], Piece { start, end }: Piece) {
        let bytes = &text[start..end];
        let (key, set) = match run_key(bytes) {
            Some(key) => (key, cache.short().prefetch(key)),
            None => (key_of_other(bytes.len()), prefetch_unkeyed(cache, bytes)),
        };
        self.probes[self.count] = Probe { key, start, set };
        self.count += 1;
    }

    /// Appends the ids of this batch without the misses, which [`ProbeBatch::finish`] inserts.
    #[inline(always)]
    pub(super) fn append<R: Resolve>(
        &mut self,
        single: &mut SingleEncoder<'_, R>,
        text: &[u8],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let Some(cache) = &single.cache else { return Ok(()) };
        let known = cache.short().append_known(&self.probes[..self.count], Probe::place, ids)?;
        if known == self.count {
            return Ok(());
        }
        self.append_rest(single, text, known, ids)
    }

    /// Continues [`ProbeBatch::append`] at `next`, a piece that is uncached, long, or has many ids.
    #[inline(never)]
    fn append_rest<R: Resolve>(
        &mut self,
        single: &mut SingleEncoder<'_, R>,
        text: &[u8],
        mut next: usize,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        while next < self.count {
            let Some(cache) = &single.cache else { break };
            let probe = &self.probes[next];
            reserve(ids, MOST_IDS)?;
            if !append_from_home(cache, text, probe, ids) {
                if length_of(probe.key) <= SHORT {
                    cache.prefetch_alternatives(probe.key, probe.set);
                }
                self.misses.push(*probe, ids.len());
            }
            next += 1;
            next +=
                cache.short().append_known(&self.probes[next..self.count], Probe::place, ids)?;
        }
        if self.misses.len() >= MISS_BATCH {
            self.misses.resolve(single, text, ids)?;
        }
        Ok(())
    }

    /// Clears the batch, including misses left by an error.
    pub(super) fn clear(&mut self) {
        self.misses.clear();
    }

    /// Inserts the ids of all misses since [`ProbeBatch::clear`] that are still to be resolved.
    #[inline(always)]
    pub(super) fn finish<R: Resolve>(
        &mut self,
        single: &mut SingleEncoder<'_, R>,
        text: &[u8],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if self.misses.len() == 0 { Ok(()) } else { self.misses.resolve(single, text, ids) }
    }
}

/// Appends the ids of pieces up to the first piece that is long or missing from its home set.
/// Returns the number of pieces.
#[inline(always)]
pub(super) fn append_few(
    cache: ShortPieces<'_>,
    text: &[u8],
    pieces: &[Piece],
    ids: &mut Vec<u32>,
) -> Result<usize> {
    let place = |&Piece { start, end }: &Piece| {
        if end - start > SHORT {
            return (key_of_other(end - start), SetIndex::default());
        }
        let key = key(text, start, end);
        (key, cache.prefetch(key))
    };
    cache.append_known(pieces, place, ids)
}

/// Takes pieces up to the first long piece, or Chinese piece if Chinese pieces are segmented, and
/// prefetches their cache sets. Returns the number of pieces.
#[inline(never)]
fn prefetch_short(
    probes: &mut [Probe],
    pieces: &[Piece],
    cache: ShortPieces<'_>,
    text: &[u8],
    are_segmented: bool,
) -> usize {
    let mut count = 0;
    for (probe, &Piece { start, end }) in probes.iter_mut().zip(pieces) {
        let key = key(text, start, end);
        if (end - start > SHORT) | (are_segmented & is_han(key[0] as u8)) {
            break;
        }
        *probe = Probe { key, start, set: cache.prefetch(key) };
        count += 1;
    }
    count
}

/// Appends the ids of a piece, if they are in its home set of the cache.
#[inline(always)]
fn append_from_home(cache: &Cache, text: &[u8], probe: &Probe, ids: &mut Vec<u32>) -> bool {
    let Piece { start, end } = probe.piece();
    if !is_key_of_other(probe.key) {
        cache.append_from(probe.set, probe.key, ids)
    } else {
        end - start <= MEDIUM
            && cache.append_medium_from(probe.set, MediumKey::new(&text[start..end]), ids)
    }
}

/// Prefetches the set of a piece that is too long for a key, and returns the set.
fn prefetch_unkeyed(cache: &Cache, bytes: &[u8]) -> SetIndex {
    if bytes.len() <= MEDIUM {
        cache.prefetch_medium(MediumKey::new(bytes))
    } else if bytes.len() <= LONG {
        cache.prefetch_long(LongKey::new(bytes))
    } else {
        SetIndex::default()
    }
}

/// Returns true if a character with this first byte is most likely Chinese: U+4000 to U+9FFF.
#[inline(always)]
fn is_han(first: u8) -> bool {
    matches!(first, 0xe4..=0xe9)
}
