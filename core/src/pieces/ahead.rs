//! Many pieces at once: what they need of memory is asked for before it is used.

use std::ops::ControlFlow;

use crate::cache::{Cache, LONG, LONGEST, LongKey, SetIndex, ShortPieces, run_key};
use crate::merge::Together;
use crate::split::Piece;
use crate::vocabulary::{
    Key, NONE, SHORT, Vocabulary, key, key_of_other, length_of, three_byte_char,
};

/// How many units are sought at once. Of more, the first would be far away again when their turn
/// comes.
const UNITS: usize = 1024;
/// One unknown unit in so many is few.
const FEW: usize = 128;

/// What is looked up: a piece, or a segment of one that can be cut.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unit {
    pub(crate) key: Key,
    start: usize,
    pub(crate) set: SetIndex,
}

impl Unit {
    #[inline(always)]
    pub(crate) fn piece(&self) -> Piece {
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

/// A lot of units, and room to learn those that the cache does not know.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// The first `count` are of this lot.
    units: Vec<Unit>,
    count: usize,
    /// The unknown ones of up to [`SHORT`] bytes. Longer ones take so long to merge that waiting for
    /// memory matters less; they are dealt with one by one.
    unknown: Vec<(Piece, Key)>,
    /// Whether few of the lot before were unknown.
    settled: bool,
    together: Together<{ SHORT + 1 }>,
}

impl Ahead {
    pub(super) fn units(&self) -> &[Unit] {
        &self.units[..self.count]
    }

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

    /// Cuts up the piece that is begun, until there are units enough.
    fn cut(
        &mut self,
        vocabulary: &Vocabulary,
        cache: &Cache,
        text: &[u8],
        stream: &mut Stream<'_>,
    ) {
        let Some(Piece { mut start, end }) = stream.begun.take() else { return };
        let stopped = vocabulary.cuts().each(text, start, end, |cut| {
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
        let key = if piece.end - piece.start <= SHORT {
            key(text, piece.start, piece.end)
        } else {
            long_key(cache, &text[piece.start..piece.end])
        };
        let set = cache.short().approach(key);
        self.units[self.count] = Unit { key, start: piece.start, set };
        self.count += 1;
    }

    /// Whether to [`Ahead::learn`] this lot, to judge by the one before. In a text that was seen
    /// before few units are unknown, and they are sooner dealt with one by one.
    pub(super) fn expects_news(&self) -> bool {
        !self.settled
    }

    /// So many units of this lot were unknown.
    pub(super) fn note_unknown(&mut self, count: usize) {
        self.settled = count * FEW < self.count;
    }

    /// Has the cache learn what it does not know of the units from `first` on. Each step is done
    /// for all of them before the next, so that they wait for memory together. What cannot be
    /// learned this way stays unknown.
    #[inline(never)]
    pub(super) fn learn(
        &mut self,
        vocabulary: &Vocabulary,
        cache: &mut Cache,
        text: &[u8],
        first: usize,
    ) {
        self.unknown.clear();
        let known = cache.short();
        for unit in &self.units[first..self.count] {
            let key = unit.key;
            if length_of(key) <= SHORT && !known.knows(unit.set, key) {
                self.unknown.push((unit.piece(), key));
                cache.approach_other(key);
            }
        }
        if self.unknown.len() < 2 || !vocabulary.is_ordered() {
            return self.note_unknown(self.unknown.len());
        }
        self.approach_vocabulary(vocabulary, text);
        let mut count = 0;
        self.unknown.retain(|&(_, key)| {
            if cache.recall(key) {
                return false;
            }
            count += 1;
            let rank = vocabulary.tokens().find_short(key);
            if rank != NONE {
                cache.put(key, &[vocabulary.id(rank)]);
            }
            rank == NONE
        });
        self.note_unknown(count);
        self.together.merge(vocabulary, text, &self.unknown, |key, ids| cache.put(key, ids));
    }

    /// Brings near what looking for tokens reads, and what merging reads first.
    fn approach_vocabulary(&self, vocabulary: &Vocabulary, text: &[u8]) {
        let tokens = vocabulary.tokens();
        for &(_, key) in &self.unknown {
            tokens.approach(key);
        }
        for &(_, key) in &self.unknown {
            tokens.approach_slot(key);
        }
        for &(piece, key) in &self.unknown {
            if !tokens.approach_bytes(key) {
                vocabulary.pairs().approach_bytes(&text[piece.start..piece.end]);
            }
        }
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
        *unit = Unit { key, start, set: cache.approach(key) };
        count += 1;
    }
    count
}

/// The key of a longer piece: one that nothing is known by, unless it is a run. What the cache
/// knows of other ones is brought near.
#[inline(never)]
fn long_key(cache: &Cache, bytes: &[u8]) -> Key {
    run_key(bytes).unwrap_or_else(|| {
        if bytes.len() <= LONG {
            cache.approach_long(LongKey::<4>::new(bytes));
        } else if bytes.len() <= LONGEST {
            cache.approach_longest(LongKey::<16>::new(bytes));
        }
        key_of_other(bytes.len())
    })
}

/// Whether a character with this first byte is, in all likelihood, Chinese: U+4000 to U+9FFF.
#[inline(always)]
fn is_han(first: u8) -> bool {
    matches!(first, 0xe4..=0xe9)
}
