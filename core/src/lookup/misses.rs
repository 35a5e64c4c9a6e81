//! Units that the cache does not know leave gaps among the ids, which are filled together.

use std::ops::Range;

use super::prefetch::Unit;
use super::single::SingleEncoder;
use crate::ablation::Mechanism;
use crate::cache::{LONG, LongKey};
use crate::error::Result;
use crate::merge::{LANES_LIMIT, LaneMerger};
use crate::split::Piece;
use crate::tier::Tier;
use crate::vocabulary::{Key, NONE, SHORT, TokenProbe, is_key_of_other, length_of};

/// So many unknown pieces of up to [`SHORT`] bytes can be told from those that come again. (Longer
/// ones that do are found again each time.)
const LATEST: usize = 256;
/// What is merged together has a key in one of the cache's first two tables.
const _: () = assert!(LANES_LIMIT <= LONG);
/// How many ids are moved at once.
const WIDE: usize = 32;
/// How many ids there is room for from one filling to the next.
const KEPT: usize = 1 << 16;

/// Misses, and room to find what belongs into them.
#[derive(Debug)]
pub(super) struct Misses {
    gaps: Vec<Miss>,
    /// The ids that belong into the gaps.
    found: Vec<u32>,
    /// What may be a token.
    unknown: Vec<Unknown>,
    /// By the set where the cache would have it, the last of `unknown`; or anything.
    latest: [usize; LATEST],
    /// Misses, each with an earlier one of the same piece.
    repeated: Vec<(usize, usize)>,
    /// The ids behind the first gap, while they are moved.
    behind: Vec<u32>,
    /// What is merged: pieces, their keys and their gaps.
    merging: Vec<(Piece, (Key, usize))>,
    together: LaneMerger,
}

/// Where the ids of a unit are missing, that the cache does not know at once.
#[derive(Debug, Clone)]
struct Miss {
    unit: Unit,
    /// How many ids come before.
    at: usize,
    /// Where they are among those that were found. Empty: not found yet.
    found: Range<usize>,
}

/// A piece of up to [`SHORT`] bytes that the cache does not know.
#[derive(Debug, Clone, Copy)]
struct Unknown {
    piece: Piece,
    sought: TokenProbe,
    gap: usize,
}

impl Default for Misses {
    fn default() -> Self {
        Self {
            gaps: Vec::new(),
            found: Vec::new(),
            unknown: Vec::new(),
            latest: [0; LATEST],
            repeated: Vec::new(),
            behind: Vec::new(),
            merging: Vec::new(),
            together: LaneMerger::new(Tier::from_environment()),
        }
    }
}

impl Misses {
    /// Notes that the ids of a unit are missing behind so many others.
    #[inline(always)]
    pub(super) fn push(&mut self, unit: Unit, at: usize) {
        self.gaps.push(Miss { unit, at, found: 0..0 });
    }

    pub(super) fn len(&self) -> usize {
        self.gaps.len()
    }

    pub(super) fn clear(&mut self) {
        self.gaps.clear();
    }

    /// Finds what belongs into the gaps of `ids` and puts it there. No gap is left, whether or not
    /// it was found.
    #[inline(never)]
    pub(super) fn fill(
        &mut self,
        alone: &mut SingleEncoder<'_>,
        text: &[u8],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let result = self.find(alone, text);
        if result.is_ok() {
            self.insert(ids);
        }
        self.gaps.clear();
        for room in [&mut self.found, &mut self.behind] {
            if room.capacity() > KEPT {
                *room = Vec::new();
            }
        }
        result
    }

    /// Finds what belongs into the gaps.
    fn find(&mut self, alone: &mut SingleEncoder<'_>, text: &[u8]) -> Result<()> {
        self.found.clear();
        if Mechanism::MissBatches.is_used() && self.gaps.len() > 1 && alone.vocabulary.is_ordered()
        {
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
    fn find_together(&mut self, alone: &mut SingleEncoder<'_>, text: &[u8]) {
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
                        let mut sought = TokenProbe::new(unit.key);
                        alone.vocabulary.tokens().prefetch(&mut sought);
                        unknown.push(Unknown { piece, sought, gap: i });
                    }
                }
            } else if is_key_of_other(unit.key) && length_of(unit.key) <= LANES_LIMIT {
                // Merged as a whole: to cut it would change nothing.
                if alone.append_known_or_token(text, unit.piece(), found) {
                    gap.found = start..found.len();
                } else {
                    merging.push((unit.piece(), (unit.key, i)));
                }
            }
        }
        let SingleEncoder { vocabulary, cache: Some(cache), .. } = alone else { return };
        let tokens = vocabulary.tokens();
        for Unknown { sought, .. } in &mut *unknown {
            tokens.prefetch_slot(sought);
        }
        for Unknown { sought, .. } in &mut *unknown {
            tokens.prefetch_bytes(sought);
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

    /// Puts what was found where it belongs.
    fn insert(&mut self, ids: &mut Vec<u32>) {
        let Some(first) = self.gaps.first().map(|gap| gap.at) else { return };
        let missing: usize = self.gaps.iter().map(|gap| gap.found.len()).sum();
        let length = ids.len() + missing;
        self.behind.clear();
        self.behind.extend_from_slice(&ids[first..]);
        // For the wide copies, which read and write more than they must.
        self.behind.resize(self.behind.len() + WIDE, 0);
        self.found.resize(self.found.len() + WIDE, 0);
        ids.resize(length + WIDE, 0);
        let mut room = &mut ids[first..];
        let mut from = first;
        for Miss { at, found, .. } in &self.gaps {
            room = copy_wide(&self.behind[from - first..], at - from, room);
            room = copy_wide(&self.found[found.start..], found.len(), room);
            from = *at;
        }
        let rest = &self.behind[from - first..];
        room.copy_from_slice(rest);
        ids.truncate(length);
    }
}

/// Copies the first `count` ids of `from` to `to`, and returns what is behind them there. Both must
/// have room for [`WIDE`] more than `count`: a copy of a known size takes less time than one that is
/// just as long as it must be.
#[inline(always)]
fn copy_wide<'a>(from: &[u32], count: usize, to: &'a mut [u32]) -> &'a mut [u32] {
    let wide = count.next_multiple_of(WIDE);
    let (from, to_wide) = (from[..wide].as_chunks::<WIDE>().0, &mut to[..wide]);
    for (to, from) in to_wide.as_chunks_mut::<WIDE>().0.iter_mut().zip(from) {
        *to = *from;
    }
    &mut to[count..]
}
