//! Many pieces at once: what they need of memory is asked for before it is used.

use std::ops::ControlFlow;

use crate::cache::{Cache, LONGEST, LongKey, SetIndex, run_key};
use crate::merge::Together;
use crate::split::Piece;
use crate::vocabulary::{Key, NONE, SHORT, Vocabulary, key, three_byte_char};

/// How many units are sought at once. Of more, the first would be far away again when their turn
/// comes.
const UNITS: usize = 512;
/// One unknown unit in so many is few.
const FEW: usize = 128;

/// What is looked up: a piece, or a segment of one that can be cut.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unit {
    pub(crate) key: Key,
    pub(crate) set: SetIndex,
    pub(crate) piece: Piece,
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
    /// Those that the cache keeps in its table of longer pieces; later the unknown ones.
    long: Vec<(Piece, LongKey)>,
    /// The unknown ones among the others.
    short: Vec<(Piece, Key)>,
    /// Whether nearly all units of the lot before were known.
    settled: bool,
    merge_short: Together<{ SHORT + 1 }>,
    merge_long: Together<{ LONGEST + 1 }>,
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
        self.long.clear();
        if self.units.is_empty() {
            self.units = vec![Unit::default(); UNITS];
        }
        if stream.begun.is_some() {
            self.cut(vocabulary, cache, text, stream);
        }
        let short = cache.short();
        while self.count < UNITS && !stream.pieces.is_empty() {
            let mut count = 0;
            for (unit, &piece) in self.units[self.count..UNITS].iter_mut().zip(stream.pieces) {
                let key = key(text, piece.start, piece.end);
                let length = piece.end - piece.start;
                if (length > SHORT) | (is_han(key[0] as u8) & (length > 3)) {
                    break;
                }
                *unit = Unit { key, set: short.approach(key), piece };
                count += 1;
            }
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
        // A character of another kind may lead the word.
        let second = (1..4).find(|&at| bytes[at] & 0xc0 != 0x80).unwrap_or(4);
        let is_cut = [0, second].iter().any(|&at| three_byte_char(&bytes[at..]).is_some());
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

    fn push(&mut self, cache: &Cache, text: &[u8], piece: Piece) {
        let bytes = &text[piece.start..piece.end];
        let mut key = key(text, piece.start, piece.end);
        if bytes.len() > SHORT {
            if let Some(run) = run_key(bytes) {
                key = run;
            } else if bytes.len() <= LONGEST {
                let key = LongKey::new(bytes);
                cache.approach_long(key);
                self.long.push((piece, key));
            }
        }
        self.units[self.count] = Unit { key, set: cache.short().approach(key), piece };
        self.count += 1;
    }

    /// Whether it pays to [`Ahead::learn`] the units of this lot, some of which are unknown. In a
    /// text that was seen before they are few, and are sooner dealt with one by one.
    pub(super) fn is_new(&self) -> bool {
        !self.settled
    }

    /// So many units of this lot were new.
    pub(super) fn note_new(&mut self, count: usize) {
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
        self.short.clear();
        let known = cache.short();
        for &Unit { key, set, piece } in &self.units[first..self.count] {
            if piece.end - piece.start <= SHORT && !known.knows(set, key) {
                self.short.push((piece, key));
                cache.approach_other(key);
            }
        }
        self.long.retain(|&(_, key)| !cache.knows_long(key));
        if self.short.len() + self.long.len() < 2 || !vocabulary.is_ordered() {
            return self.note_new(self.short.len());
        }
        self.approach_vocabulary(vocabulary, text);
        let mut new = 0;
        self.short.retain(|&(_, key)| {
            if cache.recall(key) {
                return false;
            }
            new += 1;
            let rank = vocabulary.tokens().find_short(key);
            if rank != NONE {
                cache.put(key, &[vocabulary.id(rank)]);
            }
            rank == NONE
        });
        self.note_new(new);
        self.merge_short.merge(vocabulary, text, &self.short, |key, ids| cache.put(key, ids));
        self.long.retain(|&(piece, key)| {
            let rank = vocabulary.tokens().find_long(&text[piece.start..piece.end]);
            if let Some(rank) = rank {
                cache.put_long(key, &[vocabulary.id(rank)]);
            }
            rank.is_none()
        });
        self.merge_long.merge(vocabulary, text, &self.long, |key, ids| cache.put_long(key, ids));
    }

    /// Brings near what looking for tokens reads, and what merging reads first.
    fn approach_vocabulary(&self, vocabulary: &Vocabulary, text: &[u8]) {
        let tokens = vocabulary.tokens();
        for &(_, key) in &self.short {
            tokens.approach(key);
        }
        for &(piece, _) in &self.long {
            tokens.approach_long(&text[piece.start..piece.end]);
        }
        for &(_, key) in &self.short {
            tokens.approach_slot(key);
        }
        for &(piece, key) in &self.short {
            if !tokens.approach_bytes(key) {
                vocabulary.pairs().approach_bytes(&text[piece.start..piece.end]);
            }
        }
    }
}

/// Whether a character with this first byte is, in all likelihood, Chinese: U+4000 to U+9FFF.
#[inline(always)]
fn is_han(first: u8) -> bool {
    matches!(first, 0xe4..=0xe9)
}
