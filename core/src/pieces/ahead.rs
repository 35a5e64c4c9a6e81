//! Many pieces at once: what they need of memory is asked for before it is used.

use std::ops::{ControlFlow, Range};

use super::alone::{Alone, Known};
use crate::cache::{Cache, LONG, LONGEST, LongKey, SetIndex, ShortPieces, run_key};
use crate::error::Result;
use crate::merge::{TOGETHER_LIMIT, Together};
use crate::split::Piece;
use crate::tier::Tier;
use crate::vocabulary::{
    Key, NONE, SHORT, SoughtToken, Vocabulary, is_key_of_other, key, key_of_other, length_of,
    three_byte_char,
};

/// How many units are sought at once. Of more, the first would be far away again when their turn
/// comes.
const UNITS: usize = 512;
/// One unknown unit in so many is few.
const FEW: usize = 512;
/// How many unknown pieces are told from those that come again.
const LATEST: usize = 256;
/// So many gaps are worth filling together.
const GAPS: usize = 128;
/// How many ids of unknown units there is room for from one lot to the next.
const KEPT: usize = 1 << 16;

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

/// A lot of units, and room to find what the cache does not know of them.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// The first `count` are of this lot.
    units: Vec<Unit>,
    count: usize,
    /// Whether few units were unknown of the last lot that had unknown ones, as in a text that was
    /// seen before.
    settled: bool,
    /// How many units there were in lots with unknown ones since `settled` was last set.
    since_settling: usize,
    gaps: Vec<Gap>,
    /// The ids that belong into the gaps.
    found: Vec<u32>,
    /// What may be a token.
    unknown: Vec<Unknown>,
    /// By the low bits of a set, the last of `unknown` that belongs there.
    latest: [usize; LATEST],
    /// Gaps, each with an earlier one of the same piece.
    repeated: Vec<(usize, usize)>,
    /// What is merged: pieces, their keys and their gaps.
    merging: Vec<(Piece, (Key, usize))>,
    together: Together,
}

/// A piece of up to [`SHORT`] bytes that the cache does not know.
#[derive(Debug, Clone, Copy)]
struct Unknown {
    piece: Piece,
    sought: SoughtToken,
    gap: usize,
}

/// Where the ids of a unit are missing, that the cache does not know at once.
#[derive(Debug, Clone)]
struct Gap {
    unit: Unit,
    /// How many ids come before.
    at: usize,
    /// Where they are among those that were found. Empty: not found yet.
    found: Range<usize>,
}

impl Default for Ahead {
    fn default() -> Self {
        Self {
            units: Vec::new(),
            count: 0,
            settled: false,
            since_settling: 0,
            gaps: Vec::new(),
            found: Vec::new(),
            unknown: Vec::new(),
            latest: [0; LATEST],
            repeated: Vec::new(),
            merging: Vec::new(),
            together: Together::new(Tier::from_environment()),
        }
    }
}

impl Ahead {
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
        if piece.end - piece.start > SHORT {
            return self.push_long(cache, text, piece);
        }
        let key = key(text, piece.start, piece.end);
        let set = cache.short().approach(key);
        self.units[self.count] = Unit { key, start: piece.start, set };
        self.count += 1;
    }

    #[inline(never)]
    fn push_long(&mut self, cache: &Cache, text: &[u8], Piece { start, end }: Piece) {
        let bytes = &text[start..end];
        let (key, set) = match run_key(bytes) {
            Some(key) => (key, cache.short().approach(key)),
            None => (key_of_other(bytes.len()), approach_long(cache, bytes)),
        };
        self.units[self.count] = Unit { key, start, set };
        self.count += 1;
    }

    /// Appends the ids of this lot.
    #[inline(always)]
    pub(super) fn append(
        &mut self,
        alone: &mut Alone<'_>,
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

    /// Appends the ids of the units from this one on, which is unknown. Where few are, they are
    /// sooner found one by one.
    #[inline(never)]
    fn append_rest(
        &mut self,
        alone: &mut Alone<'_>,
        text: &[u8],
        mut next: usize,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        self.since_settling += self.count;
        while next < self.count {
            let unit = &self.units[next];
            if !alone.cache.as_deref().is_some_and(|cache| append_long(cache, text, unit, ids)) {
                if self.settled {
                    alone.append(text, unit.piece(), ids)?;
                } else {
                    if let Some(cache) = &alone.cache
                        && length_of(unit.key) <= SHORT
                    {
                        cache.approach_rest(unit.key, unit.set);
                    }
                    self.gaps.push(Gap { unit: *unit, at: ids.len(), found: 0..0 });
                }
            }
            next += 1;
            if let Some(cache) = &alone.cache {
                next += cache.short().append_known(&self.units[next..self.count], ids);
            }
        }
        if self.settled {
            self.settle(alone);
        } else if self.gaps.len() >= GAPS {
            self.append_unknown(alone, text, ids)?;
        }
        Ok(())
    }

    /// Finds out whether few units have been unknown since this was last asked.
    fn settle(&mut self, alone: &mut Alone<'_>) {
        let misses = std::mem::take(&mut alone.misses);
        self.settled = misses * FEW < std::mem::take(&mut self.since_settling);
    }

    /// Forgets the gaps of a text that was given up.
    pub(super) fn clear(&mut self) {
        self.gaps.clear();
        self.since_settling = 0;
    }

    /// Appends what is still missing of all lots since [`Ahead::clear`].
    #[inline(always)]
    pub(super) fn finish(
        &mut self,
        alone: &mut Alone<'_>,
        text: &[u8],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if self.gaps.is_empty() { Ok(()) } else { self.append_unknown(alone, text, ids) }
    }

    /// Finds what belongs into the gaps, and puts it there.
    #[inline(never)]
    fn append_unknown(
        &mut self,
        alone: &mut Alone<'_>,
        text: &[u8],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let result = self.find(alone, text);
        if result.is_ok() {
            self.fill_gaps(ids);
        }
        self.gaps.clear();
        self.settle(alone);
        if self.found.capacity() > KEPT {
            self.found = Vec::new();
        }
        result
    }

    /// Finds what belongs into the gaps.
    fn find(&mut self, alone: &mut Alone<'_>, text: &[u8]) -> Result<()> {
        self.found.clear();
        if self.gaps.len() > 1 && alone.vocabulary.is_ordered() {
            self.find_together(alone, text);
        }
        for gap in self.gaps.iter_mut().filter(|gap| gap.found.is_empty()) {
            let start = self.found.len();
            alone.append(text, gap.unit.piece(), &mut self.found)?;
            gap.found = start..self.found.len();
        }
        Ok(())
    }

    /// Finds what belongs into the gaps of pieces that can be merged together. Each step is done
    /// for all of them before the next, so that they wait for memory together. What cannot be found
    /// this way stays unknown.
    fn find_together(&mut self, alone: &mut Alone<'_>, text: &[u8]) {
        let Self { gaps, found, unknown, merging, repeated, .. } = self;
        unknown.clear();
        merging.clear();
        repeated.clear();
        for (i, gap) in gaps.iter_mut().enumerate() {
            let unit = &gap.unit;
            let start = found.len();
            if length_of(unit.key) <= SHORT {
                let latest = &mut self.latest[unit.set.below(LATEST)];
                match unknown.get(*latest) {
                    Some(same) if same.sought.key() == unit.key => repeated.push((i, same.gap)),
                    _ if alone.append_known(unit.key, found) => gap.found = start..found.len(),
                    _ => {
                        *latest = unknown.len();
                        let piece = unit.piece();
                        let mut sought = SoughtToken::new(unit.key);
                        alone.vocabulary.tokens().approach(&mut sought);
                        unknown.push(Unknown { piece, sought, gap: i });
                    }
                }
            } else if is_key_of_other(unit.key) && length_of(unit.key) <= TOGETHER_LIMIT {
                match alone.append_known_long(text, unit.piece(), found) {
                    Known::Appended => gap.found = start..found.len(),
                    Known::Mergeable => merging.push((unit.piece(), (unit.key, i))),
                    Known::Not => {}
                }
            }
        }
        let Alone { vocabulary, cache: Some(cache), .. } = alone else { return };
        let tokens = vocabulary.tokens();
        for Unknown { sought, .. } in &mut *unknown {
            tokens.approach_slot(sought);
        }
        for Unknown { sought, .. } in &mut *unknown {
            tokens.approach_bytes(sought);
        }
        for &Unknown { piece, sought, gap } in &*unknown {
            let rank = tokens.found(&sought);
            if rank == NONE {
                merging.push((piece, (sought.key(), gap)));
                continue;
            }
            let start = found.len();
            found.push(vocabulary.id(rank));
            cache.put(sought.key(), &found[start..]);
            gaps[gap].found = start..found.len();
        }
        self.together.merge(vocabulary, text, merging, |piece, (key, gap), ids| {
            let start = found.len();
            found.extend_from_slice(ids);
            gaps[gap].found = start..found.len();
            if is_key_of_other(key) {
                cache.put(LongKey::<4>::new(&text[piece.start..piece.end]), ids);
            } else {
                cache.put(key, ids);
            }
        });
        for &(gap, same) in &*repeated {
            gaps[gap].found = gaps[same].found.clone();
        }
    }

    /// Makes room for what was found, from the last gap to the first, and copies it there.
    fn fill_gaps(&self, ids: &mut Vec<u32>) {
        let mut from = ids.len();
        let found: usize = self.gaps.iter().map(|gap| gap.found.len()).sum();
        ids.resize(from + found, 0);
        let mut to = ids.len();
        for gap in self.gaps.iter().rev() {
            to -= from - gap.at;
            ids.copy_within(gap.at..from, to);
            from = gap.at;
            to -= gap.found.len();
            ids[to..to + gap.found.len()].copy_from_slice(&self.found[gap.found.clone()]);
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

/// Appends the ids of a piece that is too long for a key, if the cache has them at once.
#[inline(always)]
fn append_long(cache: &Cache, text: &[u8], unit: &Unit, ids: &mut Vec<u32>) -> bool {
    let Piece { start, end } = unit.piece();
    is_key_of_other(unit.key)
        && end - start <= LONG
        && cache.append_long_from(unit.set, LongKey::<4>::new(&text[start..end]), ids)
}

/// Where to look for a piece that is too long for a key. What is there is brought near.
fn approach_long(cache: &Cache, bytes: &[u8]) -> SetIndex {
    if bytes.len() <= LONG {
        cache.approach_long(LongKey::<4>::new(bytes))
    } else if bytes.len() <= LONGEST {
        cache.approach_longest(LongKey::<16>::new(bytes))
    } else {
        SetIndex::default()
    }
}

/// Whether a character with this first byte is, in all likelihood, Chinese: U+4000 to U+9FFF.
#[inline(always)]
fn is_han(first: u8) -> bool {
    matches!(first, 0xe4..=0xe9)
}
