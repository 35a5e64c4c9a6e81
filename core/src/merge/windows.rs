//! Merges long pieces with a heap, in windows: linear time for any text.
//!
//! The parts of a window stay in the L1 cache. Parts near the end of a window may depend on the
//! text after it, so the next window starts before them. Where two windows meet, the parts on both
//! sides must be a valid pair ([`is_valid_pair`]): a sequence of valid pairs is the result of
//! merging the whole piece. Otherwise the window starts further back and is twice as long, as are
//! all later ones.
//!
//! For ordered vocabularies only.

use super::merge_by_rule;
use super::runs::{Run, Runs};
use crate::error::Result;
use crate::memory::reserve;
use crate::polling::poll;
use crate::rule::is_valid_pair;
use crate::vocabulary::{NONE, Pairs, Vocabulary, three_byte_char};

/// The number of bytes merged at once, as long as windows meet in valid pairs.
const WINDOW: usize = 512;

/// Appends the parts of `piece` to `out`.
pub(super) fn merge_long(vocabulary: &Vocabulary, piece: &[u8], out: &mut Vec<u32>) -> Result<()> {
    let Some(run) = single_run(vocabulary.pairs(), piece) else {
        return merge_windows(vocabulary, piece, WINDOW, out);
    };
    let mut runs = Runs::default();
    runs.merge_one(vocabulary.pairs(), run)?;
    runs.append_all(out)
}

/// Returns the piece as one run if it is one repeated character that stays one part whatever
/// surrounds it.
fn single_run(pairs: &Pairs, piece: &[u8]) -> Option<Run> {
    let (part, width) = match three_byte_char(piece) {
        Some(code_point) => (pairs.character(code_point), 3),
        None => (pairs.byte(piece[0]), 1),
    };
    let repeats =
        piece.len().is_multiple_of(width) && piece[width..] == piece[..piece.len() - width];
    let count = u32::try_from(piece.len() / width).ok()?;
    (part != NONE && repeats).then_some(Run::new(part, count))
}

/// Merges in windows, the first of `window` bytes.
pub(super) fn merge_windows(
    vocabulary: &Vocabulary,
    piece: &[u8],
    mut window: usize,
    out: &mut Vec<u32>,
) -> Result<()> {
    let pairs = vocabulary.pairs();
    let length = |part: u32| {
        if (part as usize) < vocabulary.len() { vocabulary.token(part).len() } else { 1 }
    };
    let first = out.len();
    let mut runs = Runs::default();
    let mut start = 0_usize;
    loop {
        let end = piece.len().min(start.saturating_add(window));
        poll(end - start)?;
        if u32::try_from(end - start).is_err() {
            // Runs are counted in 32 bits.
            out.truncate(first);
            return merge_by_rule(pairs, piece, out);
        }
        runs.merge(pairs, &piece[start..end])?;
        let before = out[first..].last().copied();
        if before.is_some_and(|before| !is_valid_pair(pairs, before, runs.first_part())) {
            // Parts that were considered settled are not.
            let mut back = 0;
            while back < window && out.len() > first {
                back += out.pop().map_or(0, length);
            }
            start -= back;
            window *= 2;
            continue;
        }
        if end == piece.len() {
            return runs.append_all(out);
        }
        // The last eighth is merged again, with the text after it.
        let settled = end - start - (end - start).div_ceil(8);
        let from = start;
        runs.each(|part, count| {
            let length = length(part);
            let count = count.min((from + settled - start) / length);
            reserve(out, count)?;
            out.resize(out.len() + count, part);
            start += count * length;
            Ok(start + length <= from + settled)
        })?;
        if start == from {
            window *= 2;
        }
    }
}
