//! Resolves cache misses in batches: each step runs for all pieces before the next step, and
//! prefetches the memory that the next step reads. The ids found are then inserted among the ids of
//! the other pieces.

use std::ops::Range;

use super::Resolve;
use super::probe::Probe;
use super::single::SingleEncoder;
use crate::ablation::Mechanism;
use crate::cache::{MEDIUM, MOST_IDS, MediumKey};
use crate::error::Result;
use crate::memory::reserve;
use crate::merge::{LANES_LIMIT, LaneMerger};
use crate::split::Piece;
use crate::tier::Tier;
use crate::vocabulary::{Key, NONE, SHORT, TokenProbe, Vocabulary, is_key_of_other, length_of};

/// The number of recent misses of up to [`SHORT`] bytes that a batch remembers, to recognize
/// repeated misses. Longer misses are resolved each time.
const RECENT: usize = 256;
/// Pieces merged in lanes have a key in the cache's table of short or of medium pieces.
const _: () = assert!(LANES_LIMIT <= MEDIUM);
/// The number of ids moved at once.
const COPY_WIDTH: usize = 32;
/// Buffers with room for more ids than this are freed after a batch.
const KEPT_CAPACITY: usize = 1 << 16;

/// Misses, and buffers for resolving them.
#[derive(Debug)]
pub(super) struct Misses {
    misses: Vec<Miss>,
    /// The ids of resolved misses.
    found: Vec<u32>,
    /// The short misses, each of which may be a token.
    short: Vec<ShortMiss>,
    /// For each of [`RECENT`] groups of cache sets, the index of the last miss in `short`; or an
    /// arbitrary number.
    recent: [usize; RECENT],
    /// Repeated misses, each with the earlier miss of the same piece.
    repeated: Vec<(usize, usize)>,
    /// The ids after the first miss, while they are moved.
    moved: Vec<u32>,
    /// The pieces to merge, with their keys and misses.
    merging: Vec<(Piece, (Key, usize))>,
    lanes: LaneMerger,
}

/// A piece that is missing from its home set in the cache.
#[derive(Debug, Clone)]
struct Miss {
    probe: Probe,
    /// The number of ids of other pieces before the miss.
    position: usize,
    /// The range of the piece's ids in [`Misses::found`]; empty until resolved.
    found: Range<usize>,
}

/// A miss of up to [`SHORT`] bytes.
#[derive(Debug, Clone, Copy)]
struct ShortMiss {
    piece: Piece,
    token: TokenProbe,
    miss: usize,
}

impl Default for Misses {
    fn default() -> Self {
        Self {
            misses: Vec::new(),
            found: Vec::new(),
            short: Vec::new(),
            recent: [0; RECENT],
            repeated: Vec::new(),
            moved: Vec::new(),
            merging: Vec::new(),
            lanes: LaneMerger::new(Tier::from_environment()),
        }
    }
}

impl Misses {
    /// Adds a miss whose ids belong after the first `position` ids of other pieces.
    #[inline(always)]
    pub(super) fn push(&mut self, probe: Probe, position: usize) {
        self.misses.push(Miss { probe, position, found: 0..0 });
    }

    pub(super) fn len(&self) -> usize {
        self.misses.len()
    }

    pub(super) fn clear(&mut self) {
        self.misses.clear();
    }

    /// Finds the ids of all misses and inserts them into `ids`. Removes all misses, even those that
    /// could not be resolved.
    #[inline(never)]
    pub(super) fn resolve<R: Resolve>(
        &mut self,
        single: &mut SingleEncoder<'_, R>,
        text: &[u8],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let result = self.find(single, text).and_then(|()| self.insert(ids));
        self.misses.clear();
        for buffer in [&mut self.found, &mut self.moved] {
            if buffer.capacity() > KEPT_CAPACITY {
                *buffer = Vec::new();
            }
        }
        result
    }

    /// Finds the ids of all misses.
    fn find<R: Resolve>(&mut self, single: &mut SingleEncoder<'_, R>, text: &[u8]) -> Result<()> {
        self.found.clear();
        reserve(&mut self.found, self.misses.len() * MOST_IDS)?;
        let vocabulary = single.resolver.vocabulary().filter(|it| it.is_ordered());
        if Mechanism::MissBatches.is_used()
            && self.misses.len() > 1
            && let Some(vocabulary) = vocabulary
        {
            self.find_in_steps(vocabulary, single, text);
        }
        for miss in self.misses.iter_mut().filter(|miss| miss.found.is_empty()) {
            let start = self.found.len();
            let piece = miss.probe.piece();
            reserve(&mut self.found, piece.end - piece.start)?;
            single.append(text, piece, &mut self.found)?;
            miss.found = start..self.found.len();
        }
        Ok(())
    }

    /// Finds the ids of short pieces, and of longer pieces that are merged in lanes, running each
    /// step for all pieces at once. Skips pieces that cannot be resolved in this way.
    fn find_in_steps<R: Resolve>(
        &mut self,
        vocabulary: &Vocabulary,
        single: &mut SingleEncoder<'_, R>,
        text: &[u8],
    ) {
        let Self { misses, found, short, merging, repeated, .. } = self;
        short.clear();
        merging.clear();
        repeated.clear();
        for (i, miss) in misses.iter_mut().enumerate() {
            let probe = &miss.probe;
            let start = found.len();
            if length_of(probe.key) <= SHORT {
                let recent = &mut self.recent[probe.set.below(RECENT)];
                match short.get(*recent) {
                    Some(same) if same.token.key() == probe.key => repeated.push((i, same.miss)),
                    _ if single.append_known(probe.key, found) => miss.found = start..found.len(),
                    _ => {
                        *recent = short.len();
                        let mut token = TokenProbe::new(probe.key);
                        vocabulary.tokens().prefetch(&mut token);
                        short.push(ShortMiss { piece: probe.piece(), token, miss: i });
                    }
                }
            } else if is_key_of_other(probe.key) && length_of(probe.key) <= LANES_LIMIT {
                // The piece is merged as a whole: merging its segments would give the same ids.
                if single.append_known_or_token(text, probe.piece(), vocabulary, found) {
                    miss.found = start..found.len();
                } else {
                    merging.push((probe.piece(), (probe.key, i)));
                }
            }
        }
        let SingleEncoder { cache: Some(cache), .. } = single else { return };
        let tokens = vocabulary.tokens();
        for ShortMiss { token, .. } in &mut *short {
            tokens.prefetch_slot(token);
        }
        for ShortMiss { token, .. } in &mut *short {
            tokens.prefetch_bytes(token);
        }
        for &ShortMiss { piece, token, miss } in &*short {
            let rank = tokens.found(&token);
            if rank == NONE {
                merging.push((piece, (token.key(), miss)));
                continue;
            }
            let start = found.len();
            found.push(vocabulary.id(rank));
            cache.insert(token.key(), &found[start..]);
            misses[miss].found = start..found.len();
        }
        self.lanes.merge(vocabulary, text, merging, |piece, (key, miss), ids| {
            let start = found.len();
            found.extend_from_slice(ids);
            misses[miss].found = start..found.len();
            if is_key_of_other(key) {
                cache.insert(MediumKey::new(&text[piece.start..piece.end]), ids);
            } else {
                cache.insert(key, ids);
            }
        });
        for &(miss, same) in &*repeated {
            misses[miss].found = misses[same].found.clone();
        }
    }

    /// Inserts the ids of all misses.
    fn insert(&mut self, ids: &mut Vec<u32>) -> Result<()> {
        let Some(first) = self.misses.first().map(|miss| miss.position) else { return Ok(()) };
        let missing: usize = self.misses.iter().map(|miss| miss.found.len()).sum();
        let length = ids.len() + missing;
        self.moved.clear();
        reserve(&mut self.moved, ids.len() - first + COPY_WIDTH)?;
        reserve(ids, missing + COPY_WIDTH)?;
        self.moved.extend_from_slice(&ids[first..]);
        // Room for the wide copies, which read and write more than needed.
        self.moved.resize(self.moved.len() + COPY_WIDTH, 0);
        reserve(&mut self.found, COPY_WIDTH)?;
        self.found.resize(self.found.len() + COPY_WIDTH, 0);
        ids.resize(length + COPY_WIDTH, 0);
        let mut room = &mut ids[first..];
        let mut from = first;
        for Miss { position, found, .. } in &self.misses {
            room = copy_wide(&self.moved[from - first..], position - from, room);
            room = copy_wide(&self.found[found.start..], found.len(), room);
            from = *position;
        }
        let rest = &self.moved[from - first..];
        room.copy_from_slice(rest);
        ids.truncate(length);
        Ok(())
    }
}

/// Copies the first `count` ids of `from` to `to`, and returns the rest of `to`. Both must have
/// room for [`COPY_WIDTH`] more than `count`, because copies of a constant length are faster than
/// exact copies.
#[inline(always)]
fn copy_wide<'a>(from: &[u32], count: usize, to: &'a mut [u32]) -> &'a mut [u32] {
    let wide = count.next_multiple_of(COPY_WIDTH);
    let (from, to_wide) = (from[..wide].as_chunks::<COPY_WIDTH>().0, &mut to[..wide]);
    for (to, from) in to_wide.as_chunks_mut::<COPY_WIDTH>().0.iter_mut().zip(from) {
        *to = *from;
    }
    &mut to[count..]
}
