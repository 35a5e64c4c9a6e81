//! Packs the ids of a piece into a cache entry.

use bytemuck::{Pod, Zeroable};

use crate::ablation::Mechanism;

/// The ids of a piece, two in each word; the highest byte of the first id holds the number of ids
/// and [`RELOCATED`]. Longer lists are packed, with zero as the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Zeroable, Pod)]
#[repr(transparent)]
pub(super) struct Ids<const W: usize>([u64; W]);

const COUNT_SHIFT: u32 = 24;
const COUNT_MASK: u64 = 0x3f;
/// Flag in the newer entry of a set: another entry of the set was moved to another set.
const RELOCATED: u64 = 1 << 31;
/// Number of bits of a packed id.
const PACKED_BITS: usize = 20;
/// The largest packed number. Packed ids are stored plus one, so ids must be smaller.
const PACKED_MAX: u32 = (1 << PACKED_BITS) - 1;

/// Returns true if the ids fit into an entry, with a count in the first id.
pub(super) fn is_cacheable(ids: &[u32]) -> bool {
    (1..=Ids::<16>::PACKED).contains(&ids.len()) && ids[0] >> COUNT_SHIFT == 0
}

impl<const W: usize> Ids<W> {
    /// Marks an entry with too many ids for this table: the ids are in the next table.
    pub(super) const ELSEWHERE: Self = Self([0; W]);
    /// The number of ids that fit unpacked.
    pub(super) const CAPACITY: usize = 2 * W;
    /// The number of ids that fit packed.
    pub(super) const PACKED: usize = (64 * W - 8) / PACKED_BITS;

    /// Stores ids; `None` if there are too many ids, or an id is too large to pack.
    pub(super) fn new(ids: &[u32]) -> Option<Self> {
        debug_assert!(is_cacheable(ids));
        if ids.len() > Self::CAPACITY {
            return Self::packed(ids);
        }
        let mut words = [0; W];
        for (i, &id) in ids.iter().enumerate() {
            words[i / 2] |= u64::from(id) << (32 * (i % 2));
        }
        words[0] |= (ids.len() as u64) << COUNT_SHIFT;
        Some(Self(words))
    }

    /// Packs the ids, each plus one, into the words from the second on, and the last id into the
    /// bits of the first word that the count leaves free.
    fn packed(ids: &[u32]) -> Option<Self> {
        if !Mechanism::PackedIds.is_used()
            || ids.len() > Self::PACKED
            || ids.iter().any(|&id| id >= PACKED_MAX)
        {
            return None;
        }
        let mut words = [0; W];
        for (i, &id) in ids.iter().enumerate() {
            let (word, shift) = (PACKED_BITS * i / 64, PACKED_BITS * i % 64);
            let bits = u128::from(id + 1) << shift;
            words[(word + 1) % W] |= bits as u64;
            words[(word + 2) % W] |= (bits >> 64) as u64;
        }
        words[0] = words[0].rotate_left(32);
        Some(Self(words))
    }

    #[inline(always)]
    pub(super) fn is_relocated(&self) -> bool {
        self.0[0] & RELOCATED != 0
    }

    pub(super) fn set_relocated(&mut self, is_relocated: bool) {
        self.0[0] = self.0[0] & !RELOCATED | if is_relocated { RELOCATED } else { 0 };
    }

    /// Appends the ids to `out`, which must have capacity for [`super::MOST_IDS`] more, because
    /// running out of memory here would abort the process. Returns false if there are no ids.
    #[inline(always)]
    pub(super) fn append_to(&self, out: &mut Vec<u32>) -> bool {
        out.reserve(Self::CAPACITY);
        // SAFETY: `out` has capacity for `CAPACITY` more ids, and `write` has initialized as many
        // as it returned.
        let count = unsafe {
            let count = self.write(out.as_mut_ptr().add(out.len()));
            out.set_len(out.len() + count);
            count
        };
        count > 0 || self.append_packed_to(out)
    }

    fn append_packed_to(&self, out: &mut Vec<u32>) -> bool {
        let mut words = self.0;
        words[0] = words[0].rotate_left(32);
        let from = out.len();
        out.extend((0..Self::PACKED).map_while(|i| {
            let (word, shift) = (PACKED_BITS * i / 64, PACKED_BITS * i % 64);
            let pair = u128::from(words[(word + 2) % W]) << 64 | u128::from(words[(word + 1) % W]);
            ((pair >> shift) as u32 & PACKED_MAX).checked_sub(1)
        }));
        out.len() > from
    }

    /// Writes the ids to `room`, possibly with arbitrary values after them, and returns the number
    /// of ids.
    ///
    /// # Safety
    ///
    /// `room` is valid for writes of [`Ids::CAPACITY`] ids.
    #[inline(always)]
    pub(super) unsafe fn write(&self, room: *mut u32) -> usize {
        for (i, word) in self.0.iter().enumerate() {
            let word = if i == 0 { word & !(0xff << COUNT_SHIFT) } else { *word };
            // SAFETY: no more than `CAPACITY` ids, for which the caller has room.
            unsafe {
                room.add(2 * i).write(word as u32);
                room.add(2 * i + 1).write((word >> 32) as u32);
            }
        }
        (self.0[0] >> COUNT_SHIFT & COUNT_MASK) as usize
    }
}
