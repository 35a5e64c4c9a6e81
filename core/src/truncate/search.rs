//! Searches for the last of many candidates that fits, and does not try them all at any cost.

use std::cell::Cell;

use crate::error::Result;

/// Up to this many candidates are all tried. Among more, the border is searched by halving, which
/// takes "longer" for "more tokens".
const TRY_ALL: usize = 256;

/// How many candidates beyond the one found by halving are tried.
const TRY_BEYOND: usize = 32;

/// How many of the first candidates are all tried: the first characters of a text may have more tokens
/// than some more of it.
const TRY_FIRST: usize = 8;

/// How many bytes may be encoded to try candidates: for each byte that is kept, and beside these.
const PER_BYTE: usize = 8;
const AT_LEAST: isize = 1 << 16;

/// What encoding a candidate takes beside its bytes, as if there were more of them.
const CANDIDATE: usize = 16;

/// How many bytes more may be encoded to try candidates; below 0 if that were too many. What one cut
/// leaves is there for the next ones, and what it took too much is taken from them, so that all of them
/// together take no more than a multiple of what is kept, whatever the text.
#[derive(Debug)]
pub(super) struct Work(Cell<isize>);

impl Default for Work {
    fn default() -> Self {
        Self(Cell::new(AT_LEAST))
    }
}

impl Work {
    /// Takes note that about so many bytes are kept.
    pub(super) fn allow(&self, bytes: usize) {
        let more = bytes.saturating_add(CANDIDATE).saturating_mul(PER_BYTE);
        self.0.set(self.0.get().saturating_add_unsigned(more));
    }

    /// Takes note of a candidate, or of the part of one that is encoded.
    pub(super) fn add(&self, bytes: usize) {
        self.0.set(self.0.get().saturating_sub_unsigned(bytes.saturating_add(CANDIDATE)));
    }

    /// Whether no more may be encoded.
    pub(super) fn is_done(&self) -> bool {
        self.0.get() <= 0
    }

    /// Begins anew.
    pub(super) fn renew(&self) {
        self.0.set(AT_LEAST);
    }

    /// The largest index below `count` for which `fits` holds; where finding that takes too much, one
    /// behind which the next does not fit. `fits` takes note of what it encodes.
    pub(super) fn farthest(
        &self,
        count: usize,
        mut fits: impl FnMut(usize) -> Result<bool>,
    ) -> Result<Option<usize>> {
        let (mut range, mut known) = (0..count, None);
        if count > TRY_ALL {
            known = by_halving(count, &mut fits)?;
            let found = known.unwrap_or(0);
            range = found.saturating_sub(TRY_BEYOND)..(found + 1 + TRY_BEYOND).min(count);
        }
        for index in range.clone().rev() {
            if known == Some(index) {
                return Ok(known);
            }
            if self.is_done() {
                return if known.is_some() { Ok(known) } else { by_halving(index + 1, fits) };
            }
            if fits(index)? {
                let is_last = index + 1 < range.end || range.end == count;
                return if is_last {
                    Ok(Some(index))
                } else {
                    bisect(index, count, fits).map(Some)
                };
            }
        }
        Ok(None)
    }
}

/// An index below `count` for which `fits` holds, and not for the one behind it: the largest one if it
/// holds for none behind the first for which it does not, but for some at the beginning.
fn by_halving(count: usize, mut fits: impl FnMut(usize) -> Result<bool>) -> Result<Option<usize>> {
    let first = count.min(TRY_FIRST);
    for index in (0..first).rev() {
        if fits(index)? {
            let is_last = index + 1 < first;
            return if is_last { Ok(Some(index)) } else { bisect(index, count, fits).map(Some) };
        }
    }
    Ok(None)
}

/// The largest index from `low` on, for which `fits` holds, up to `high`, for which it does not, if it
/// holds for all up to some index. The first ones are tried first: they stand for less text.
pub(super) fn bisect(
    mut low: usize,
    mut high: usize,
    mut fits: impl FnMut(usize) -> Result<bool>,
) -> Result<usize> {
    let mut step = 1;
    while high - low > 1 {
        let middle = low + step.min((high - low) / 2);
        if fits(middle)? {
            low = middle
        } else {
            high = middle
        }
        step *= 2;
    }
    Ok(low)
}
