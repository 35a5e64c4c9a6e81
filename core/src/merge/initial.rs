//! Finds the parts that merging starts from.

use std::hint::select_unpredictable;

use crate::ablation::Mechanism;
use crate::vocabulary::{NONE, Neighbors, Pairs, three_byte_char};

/// An initial part of a piece.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstPart {
    pub(super) part: u32,
    /// True if the rank of the merge with the previous part is known, as between two single bytes.
    /// Always true for the first part.
    pub(super) is_known: bool,
    /// Rank of the merge with the previous part, or [`NONE`] if unknown.
    pub(super) rank: u32,
}

/// Calls `found` with the initial parts of `piece`, in order. The parts are single bytes;
/// three-byte characters whose bytes merge before any other merge can use them; and pairs of bytes
/// that are certain to merge. For ordered vocabularies only.
///
/// Two neighboring bytes are certain to merge if their merge ranks before every merge that could
/// take the first byte from the left or the second byte from the right: both are still single bytes
/// when that rank is due. Merging them at once changes nothing, since every merge with the result
/// ranks after it.
#[inline(always)]
pub(super) fn first_parts(pairs: &Pairs, piece: &[u8], mut found: impl FnMut(FirstPart)) {
    let next_to = |position: usize| match piece.get(position..position + 2) {
        Some(pair) => pairs.neighbors(pair[0], pair[1]),
        None => &Neighbors::NONE,
    };
    let mut position = 0;
    let mut left_merge_rank = NONE;
    let mut here = next_to(0);
    let mut rank = NONE;
    let mut is_byte_before = true;
    while let Some(&byte) = piece.get(position) {
        if Mechanism::FirstParts.is_used()
            && byte & 0xf0 == 0xe0
            && let Some(code_point) = three_byte_char(&piece[position..])
            && let character = pairs.character(code_point)
            && character != NONE
        {
            found(FirstPart { part: character, is_known: position == 0, rank: NONE });
            (rank, is_byte_before) = (NONE, false);
            position += 3;
            left_merge_rank = next_to(position - 1).left_merge_rank;
            here = next_to(position);
            continue;
        }
        let next = next_to(position + 1);
        // Branch-free: both conditions are unpredictable.
        let is_pair = Mechanism::FirstParts.is_used()
            & (here.rank < left_merge_rank)
            & (here.rank < next.right_merge_rank);
        let part = select_unpredictable(is_pair, here.rank, pairs.byte(byte));
        let is_known = is_byte_before & !is_pair | (position == 0);
        found(FirstPart { part, is_known, rank });
        rank = select_unpredictable(is_pair, NONE, here.rank);
        is_byte_before = !is_pair;
        position += 1 + usize::from(is_pair);
        left_merge_rank = select_unpredictable(is_pair, next, here).left_merge_rank;
        here = next_to(position);
    }
}
