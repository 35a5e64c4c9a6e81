//! Many pieces at once: what they need of memory is asked for before it is used.

use std::ops::ControlFlow;

use super::misses::Misses;
use super::single::SingleEncoder;
use crate::cache::{Cache, LONG, LONGEST, LongKey, SetIndex, ShortPieces, run_key};
use crate::error::Result;
use crate::split::Piece;
use crate::vocabulary::{
    Key, SHORT, Vocabulary, is_key_of_other, key, key_of_other, length_of, three_byte_char,
};

/// How many units are sought at once. Of more, the first would be far away again when their turn
/// comes.
const UNITS: usize = 512;
/// So many gaps are worth filling together.
const GAPS: usize = 128;

/// What is looked up: a piece, or a segment of one that can be cut.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unit {
    pub(crate) key: Key,
    start: usize,
    /// Where the cache would have it: in its first table, unless the key is that of other pieces.
    pub(crate) set: SetIndex,
}

impl Unit {
    #[inline(always)]
    pub(super) fn piece(&self) -> Piece {
        Piece { start: self.start, end: self.start + length_of(self.key) }
    }
}

/// Pieces, the first of them perhaps begun.
pub(super) struct Stream<'a> {
    pieces: &'a [Piece],
    /// What is left of a piece that is being cut up.
    begun: Option<Piece>,
}

impl<'a> Stream<'a> {
    pub(super) fn new(pieces: &'a [Piece]) -> Self {
        Self { pieces, begun: None }
    }
}

/// A lot of units, and room to find what the cache does not know of them.
#[derive(Debug, Default)]
pub(crate) struct ProbeBatch {
    /// The first `count` are of this lot.
    units: Vec<Unit>,
    count: usize,
    /// Where units were unknown in this lot and those before.
    gaps: Misses,
}

impl ProbeBatch {
    /// Takes the next units from the stream and brings near what the cache knows of them. False
    /// when there are none.
    #[inline(always)]
    pub(super) fn seek(
        &mut self,
        vocabulary: &Vocabulary,
        cache: &Cache,
        text: &[u8],
        stream: &mut Stream<'_>,
    ) -> bool {
        self.count = 0;
        if self.units.is_empty() {
            self.units = vec![Unit::default(); UNITS];
        }
        if stream.begun.is_some() {
            self.cut(vocabulary, cache, text, stream);
        }
        while self.count < UNITS && !stream.pieces.is_empty() {
            let units = &mut self.units[self.count..UNITS];
            let count = seek_short(units, stream.pieces, cache.short(), text);
            self.count += count;
            stream.pieces = &stream.pieces[count..];
            if self.count < UNITS
                && let Some((&piece, rest)) = stream.pieces.split_first()
            {
                stream.pieces = rest;
                self.seek_long(vocabulary, cache, text, piece, stream);
            }
        }
        self.count > 0
    }

    /// Takes a piece that is long, or Chinese: those of three-byte characters are cut up at once,
    /// since what stands between two cuts comes more often than the whole.
    #[inline(never)]
    fn seek_long(
        &mut self,
        vocabulary: &Vocabulary,
        cache: &Cache,
        text: &[u8],
        piece: Piece,
        stream: &mut Stream<'_>,
    ) {
        let bytes = &text[piece.start..piece.end];
        let is_cut = bytes.len() > 3 && {
            // A character of another kind may lead the word.
            let second = (1..4).find(|&at| bytes[at] & 0xc0 != 0x80).unwrap_or(4);
            [0, second].iter().any(|&at| three_byte_char(&bytes[at..]).is_some())
        };
        if is_cut && !(bytes.len() > SHORT && run_key(bytes).is_some()) {
            stream.begun = Some(piece);
            self.cut(vocabulary, cache, text, stream);
        } else {
            self.push(cache, text, piece);
        }
    }

    /// Boundaries up the piece that is begun, until there are units enough.
    fn cut(
        &mut self,
        vocabulary: &Vocabulary,
        cache: &Cache,
        text: &[u8],
        stream: &mut Stream<'_>,
    ) {
        let Some(Piece { mut start, end }) = stream.begun.take() else { return };
        let stopped = vocabulary.boundaries().each(text, start, end, |cut| {
            self.push(cache, text, Piece { start, end: cut });
            start = cut;
            if self.count < UNITS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let rest = Piece { start, end };
        if stopped.is_break() {
            stream.begun = Some(rest);
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
        self.units[self.count] = Unit { key, start: piece.start, set };
        self.count += 1;
    }

    #[inline(never)]
    fn push_long(&mut self, cache: &Cache, text: &[u8], Piece { start, end }: Piece) {
        let bytes = &text[start..end];
        let (key, set) = match run_key(bytes) {
            Some(key) => (key, cache.short().prefetch(key)),
            None => (key_of_other(bytes.len()), prefetch_long(cache, bytes)),
        };
        self.units[self.count] = Unit { key, start, set };
        self.count += 1;
    }

    /// Appends the ids of this lot. Where units are unknown it may leave gaps, which
    /// [`ProbeBatch::finish`] fills.
    #[inline(always)]
    pub(super) fn append(
        &mut self,
        alone: &mut SingleEncoder<'_>,
        text: &[u8],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let Some(cache) = &alone.cache else { return Ok(()) };
        let known = cache.short().append_known(&self.units[..self.count], ids);
        if known == self.count {
            return Ok(());
        }
        self.append_rest(alone, text, known, ids)
    }

    /// [`ProbeBatch::append`] for the units from this one on, which is unknown, long, or has many ids.
    #[inline(never)]
    fn append_rest(
        &mut self,
        alone: &mut SingleEncoder<'_>,
        text: &[u8],
        mut next: usize,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let Some(cache) = &mut alone.cache else { return Ok(()) };
        while next < self.count {
            let unit = &self.units[next];
            if !append_at_once(cache, text, unit, ids) {
                if length_of(unit.key) <= SHORT {
                    cache.prefetch_rest(unit.key, unit.set);
                }
                self.gaps.push(*unit, ids.len());
            }
            next += 1;
            next += cache.short().append_known(&self.units[next..self.count], ids);
        }
        if self.gaps.len() >= GAPS {
            cache.populate();
            self.gaps.fill(alone, text, ids)?;
        }
        Ok(())
    }

    /// Starts anew: forgets the gaps that a text left which was given up.
    pub(super) fn clear(&mut self) {
        self.gaps.clear();
    }

    /// Appends what is still missing of all lots since [`ProbeBatch::clear`].
    #[inline(always)]
    pub(super) fn finish(
        &mut self,
        alone: &mut SingleEncoder<'_>,
        text: &[u8],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if self.gaps.len() == 0 { Ok(()) } else { self.gaps.fill(alone, text, ids) }
    }
}

/// Takes pieces up to the first that is long or Chinese, and brings near what the cache knows of
/// them. Returns how many.
#[inline(never)]
fn seek_short(units: &mut [Unit], pieces: &[Piece], cache: ShortPieces<'_>, text: &[u8]) -> usize {
    let mut count = 0;
    for (unit, &Piece { start, end }) in units.iter_mut().zip(pieces) {
        let key = key(text, start, end);
        if (end - start > SHORT) | is_han(key[0] as u8) {
            break;
        }
        *unit = Unit { key, start, set: cache.prefetch(key) };
        count += 1;
    }
    count
}

/// Appends the ids of a unit, if the cache has them where it was sought.
#[inline(always)]
fn append_at_once(cache: &Cache, text: &[u8], unit: &Unit, ids: &mut Vec<u32>) -> bool {
    let Piece { start, end } = unit.piece();
    if !is_key_of_other(unit.key) {
        cache.append_from(unit.set, unit.key, ids)
    } else {
        end - start <= LONG
            && cache.append_long_from(unit.set, LongKey::<4>::new(&text[start..end]), ids)
    }
}

/// Where to look for a piece that is too long for a key. What is there is brought near.
fn prefetch_long(cache: &Cache, bytes: &[u8]) -> SetIndex {
    if bytes.len() <= LONG {
        cache.prefetch(LongKey::<4>::new(bytes))
    } else if bytes.len() <= LONGEST {
        cache.prefetch(LongKey::<16>::new(bytes))
    } else {
        SetIndex::default()
    }
}

/// Whether a character with this first byte is, in all likelihood, Chinese: U+4000 to U+9FFF.
#[inline(always)]
fn is_han(first: u8) -> bool {
    matches!(first, 0xe4..=0xe9)
}
