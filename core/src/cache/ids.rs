//! The ids of a piece as an entry holds them.

use bytemuck::{Pod, Zeroable};

use crate::ablation::Mechanism;

/// The ids of a piece, two in each word: the highest byte of the first id holds their number and
/// [`RELOCATED`]. If they are too many for that they are packed, and the number is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Zeroable, Pod)]
#[repr(transparent)]
pub(super) struct Ids<const W: usize>([u64; W]);

const COUNT_SHIFT: u32 = 24;
const COUNT_MASK: u64 = 0x3f;
/// In the newer entry of a set: an entry of the set has been moved to another.
const RELOCATED: u64 = 1 << 31;
/// How many bits a packed id takes.
const PACKED_BITS: usize = 20;
/// What these bits can hold at most. Smaller ids are packed, each with one added.
const PACKED_MAX: u32 = (1 << PACKED_BITS) - 1;

/// Whether a table has room for these ids, and for a count beside the first.
pub(super) fn is_cacheable(ids: &[u32]) -> bool {
    (1..=Ids::<16>::PACKED).contains(&ids.len()) && ids[0] >> COUNT_SHIFT == 0
}

impl<const W: usize> Ids<W> {
    /// Too many for this table: the next one has them.
    pub(super) const ELSEWHERE: Self = Self([0; W]);
    /// How many ids fit in that are not packed.
    pub(super) const CAPACITY: usize = 2 * W;
    /// How many packed ones do.
    pub(super) const PACKED: usize = (64 * W - 8) / PACKED_BITS;

    /// `None` when they are too many, or too large to pack them.
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

    /// Puts each id, plus one, behind the other: from the second word on, and at last into the bits
    /// of the first that the count leaves free.
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

    /// Appends the ids to `out`, which has room for [`super::MOST_IDS`]: otherwise memory that is
    /// not there ends the process. False when there are none.
    #[inline(always)]
    pub(super) fn append_to(&self, out: &mut Vec<u32>) -> bool {
        out.reserve(Self::CAPACITY);
        // SAFETY: `write` has room for `CAPACITY` ids, and has written those that it counts.
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

    /// Writes the ids to `room`, and anything behind them; returns how many they are.
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
