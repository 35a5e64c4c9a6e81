//! Merges long pieces with a heap, in windows: linear time for any text.
//!
//! The parts of a window stay in the L1 cache. Parts near the end of a window may depend on the
//! text after it, so the next window starts before them. Where two windows meet, the parts on both
//! sides must be a valid pair ([`is_valid_pair`]): a sequence of valid pairs is the result of
//! merging the whole piece. Otherwise the window starts further back and doubles in length, as do
//! all later windows.
//!
//! For ordered vocabularies only.

use super::initial::first_parts;
use super::merge_by_rule;
use super::runs::{Run, Runs};
use crate::error::Result;
use crate::memory::reserve;
use crate::polling::poll;
use crate::rule::is_valid_pair;
use crate::vocabulary::{NONE, Vocabulary, three_byte_char};

/// The number of bytes merged at once, while windows meet in valid pairs.
const WINDOW: usize = 512;

/// Merges a long piece: as one run if one character that is a part in any context repeats, else in
/// windows.
pub(super) fn merge_long(vocabulary: &Vocabulary, piece: &[u8], out: &mut Vec<u32>) -> Result<()> {
    let pairs = vocabulary.pairs()?;
    let (part, width) = match three_byte_char(piece) {
        Some(code_point) => (pairs.character(code_point), 3),
        None => (pairs.byte(piece[0]), 1),
    };
    let repeats =
        piece.len().is_multiple_of(width) && piece[width..] == piece[..piece.len() - width];
    match u32::try_from(piece.len() / width) {
        Ok(count) if part != NONE && repeats => {
            let mut runs = Runs::default();
            runs.clear(1)?;
            runs.push(Run::new(part, count));
            runs.merge_all(pairs)?;
            runs.append_all(out)
        }
        _ => merge_windows(vocabulary, piece, WINDOW, out),
    }
}

/// Merges in windows, the first of `window` bytes.
pub(super) fn merge_windows(
    vocabulary: &Vocabulary,
    piece: &[u8],
    mut window: usize,
    out: &mut Vec<u32>,
) -> Result<()> {
    let pairs = vocabulary.pairs()?;
    let width = |part: u32| match (part as usize) < vocabulary.len() {
        true => vocabulary.token(part).len(),
        false => 1,
    };
    let first = out.len();
    let mut runs = Runs::default();
    let mut start = 0_usize;
    while start < piece.len() {
        let end = piece.len().min(start.saturating_add(window));
        poll(end - start)?;
        if u32::try_from(end - start).is_err() {
            // Run lengths are 32-bit.
            out.truncate(first);
            return merge_by_rule(pairs, piece.iter().map(|&byte| pairs.byte(byte)), out);
        }
        runs.clear(end - start)?;
        first_parts(pairs, &piece[start..end], |first| runs.add(pairs, first));
        runs.merge_all(pairs)?;
        let before = out[first..].last().copied();
        if before.is_some_and(|before| !is_valid_pair(pairs, before, runs.first_part())) {
            // Some parts were not settled after all.
            let mut back = 0;
            while back < window && out.len() > first {
                back += out.pop().map_or(0, width);
            }
            start -= back;
            window *= 2;
            continue;
        }
        if end == piece.len() {
            return runs.append_all(out);
        }
        // The last eighth is merged again, together with the text after it.
        let settled = end - start - (end - start).div_ceil(8);
        let from = start;
        runs.each(|part, count| {
            let width = width(part);
            let count = count.min((from + settled - start) / width);
            reserve(out, count)?;
            out.resize(out.len() + count, part);
            start += count * width;
            Ok(start + width <= from + settled)
        })?;
        if start == from {
            window *= 2;
        }
    }
    Ok(())
}
