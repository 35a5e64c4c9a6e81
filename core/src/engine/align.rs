//! Aligns the ids of two tokenizers: groups of both that cover the same bytes of a text.
//!
//! A *cut* of a sequence is a byte that no token crosses: all tokens before it end at or before it,
//! and all others begin at or after it. A group ends at each byte that is a cut of both sequences and
//! the end of a token of either.

use std::ops::Range;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::memory::{collected, with_capacity};
use crate::polling::poll;
use crate::request::Request;

/// The work of a token, in bytes of text: see [`poll`].
const WORK: usize = 4;

/// The ids of a text, and the bytes of the text that each comes from.
pub type Placed = (Vec<u32>, Vec<Range<usize>>);

/// Groups of two sequences of tokens. All lists of splits begin with 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    /// The end of each group in the first sequence.
    pub a_splits: Vec<usize>,
    /// The end of each group in the second sequence.
    pub b_splits: Vec<usize>,
    /// The bytes that the tokens of each group cover.
    pub spans: Vec<Range<usize>>,
}

/// A cut of a sequence.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// The bytes of the text at which it can be.
    low: usize,
    high: usize,
    /// The number of tokens before it.
    tokens: usize,
}

/// Returns the cuts of a sequence after its first token with a place. Tokens without a place come
/// after a cut, but before the last one.
fn cuts(spans: &[Range<usize>]) -> Result<Vec<Cut>> {
    let mut cuts: Vec<Cut> = with_capacity(spans.len() + 1)?;
    cuts.push(Cut { low: 0, high: usize::MAX, tokens: 0 });
    let mut low = 0;
    for (span, tokens) in spans.iter().zip(1..).filter(|(span, _)| !span.is_empty()) {
        low = low.max(span.end);
        cuts.push(Cut { low, high: usize::MAX, tokens });
    }
    let mut next = usize::MAX;
    for cut in cuts.iter_mut().rev() {
        cut.high = next;
        // The token before the cut.
        next = match cut.tokens.checked_sub(1) {
            Some(last) => next.min(spans[last].start),
            None => next,
        };
    }
    cuts.retain(|cut| cut.low <= cut.high);
    if let Some(last) = cuts.last_mut() {
        last.tokens = spans.len();
    }
    Ok(cuts)
}

/// Groups the tokens of two sequences, given by the bytes that they come from. A token with an empty
/// span belongs to the group after it, or to the last one.
///
/// ```
/// use bpe_core::align::groups;
///
/// let groups = groups(&[0..1, 1..4, 4..6], &[0..4, 4..5, 5..6])?;
/// assert_eq!((groups.a_splits, groups.b_splits), (vec![0, 2, 3], vec![0, 1, 3]));
/// assert_eq!(groups.spans, [0..4, 4..6]);
/// # Ok::<(), bpe_core::Error>(())
/// ```
pub fn groups(a: &[Range<usize>], b: &[Range<usize>]) -> Result<Groups> {
    poll((a.len() + b.len()) * WORK)?;
    let (a_cuts, b_cuts) = (cuts(a)?, cuts(b)?);
    let most = a_cuts.len() + b_cuts.len();
    let mut found = Groups {
        a_splits: with_capacity(most)?,
        b_splits: with_capacity(most)?,
        spans: with_capacity(most)?,
    };
    found.a_splits.push(0);
    found.b_splits.push(0);
    let (mut left, mut right) = (0, 0);
    while let (Some(one), Some(other)) = (a_cuts.get(left), b_cuts.get(right)) {
        let place = one.low.max(other.low);
        if place > 0 && place <= one.high.min(other.high) {
            found.add(a, b, one.tokens, other.tokens);
        }
        left += usize::from(one.high <= other.high);
        right += usize::from(other.high <= one.high);
    }
    if found.spans.is_empty() && !(a.is_empty() && b.is_empty()) {
        found.add(a, b, a.len(), b.len());
    }
    Ok(found)
}

impl Groups {
    /// Adds the group up to these tokens.
    fn add(&mut self, a: &[Range<usize>], b: &[Range<usize>], a_end: usize, b_end: usize) {
        let start = |splits: &[usize]| splits.last().copied().unwrap_or(0);
        let one = &a[start(&self.a_splits)..a_end];
        let other = &b[start(&self.b_splits)..b_end];
        let placed = one.iter().chain(other).filter(|span| !span.is_empty());
        let hull =
            placed.cloned().reduce(|hull, span| hull.start.min(span.start)..hull.end.max(span.end));
        self.spans.push(hull.unwrap_or(0..0));
        self.a_splits.push(a_end);
        self.b_splits.push(b_end);
    }
}

/// Returns the indices of tokens without a place in the text.
pub fn unplaced(spans: &[Range<usize>]) -> Result<Vec<usize>> {
    let empty = spans.iter().enumerate().filter(|(_, span)| span.is_empty());
    collected(empty.map(|(index, _)| index))
}

/// Returns the ids of a text, or `ids` if they are there already, with the bytes of the text that
/// each comes from.
///
/// Fails with [`Error::Invalid`] if `ids` do not decode to the text.
pub fn place<E: Engine + ?Sized>(
    engine: &E,
    request: &Request,
    text: &str,
    ids: Option<&[u32]>,
) -> Result<Placed> {
    let Some(ids) = ids else { return engine.encode_with_bytes(text, request) };
    let (bytes, starts) = engine.decode_with_starts(ids)?;
    if bytes != text.as_bytes() {
        return Err(Error::Invalid(
            "the ids do not decode to the text; give the ids of this text, without special tokens \
             around it"
                .into(),
        ));
    }
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    let spans = collected(starts.iter().zip(ends).map(|(&start, end)| start..end))?;
    Ok((collected(ids.iter().copied())?, spans))
}

/// Two sequences of ids of a text, and their groups.
#[derive(Debug)]
pub struct Aligned {
    /// The ids of the first tokenizer, and their places.
    pub a: Placed,
    /// The ids of the second tokenizer, and their places.
    pub b: Placed,
    /// The groups of both.
    pub groups: Groups,
}

impl Aligned {
    /// Groups two sequences of ids.
    pub fn new(a: Placed, b: Placed) -> Result<Self> {
        let groups = groups(&a.1, &b.1)?;
        Ok(Self { a, b, groups })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition: tries every byte.
    fn defined(a: &[Range<usize>], b: &[Range<usize>]) -> Vec<(usize, usize)> {
        let placed = |spans: &[Range<usize>]| -> Vec<(usize, Range<usize>)> {
            spans.iter().cloned().enumerate().filter(|(_, span)| !span.is_empty()).collect()
        };
        let sides = [placed(a), placed(b)];
        let size = sides.iter().flatten().map(|(_, span)| span.end).max().unwrap_or(0);
        // The number of placed tokens before a cut at `at`.
        let cut = |side: &[(usize, Range<usize>)], at: usize| {
            (0..=side.len()).find(|&count| {
                side[..count].iter().all(|(_, span)| span.end <= at)
                    && side[count..].iter().all(|(_, span)| span.start >= at)
            })
        };
        let mut ends = Vec::new();
        for at in 1..=size {
            let is_end = sides.iter().flatten().any(|(_, span)| span.end == at);
            let (Some(one), Some(other)) = (cut(&sides[0], at), cut(&sides[1], at)) else {
                continue;
            };
            if is_end {
                let tokens = |side: &[(usize, Range<usize>)], count: usize, all: usize| match count
                {
                    _ if count == side.len() => all,
                    0 => 0,
                    _ => side[count - 1].0 + 1,
                };
                ends.push((tokens(&sides[0], one, a.len()), tokens(&sides[1], other, b.len())));
            }
        }
        if ends.is_empty() && a.len() + b.len() > 0 {
            ends.push((a.len(), b.len()));
        }
        ends
    }

    fn spans() -> impl Strategy<Value = Vec<Range<usize>>> {
        prop::collection::vec((0..4_usize, 0..4_usize, 0..9_u8), 0..12).prop_map(|steps| {
            let mut at = 0_usize;
            let mut place = |(gap, length, back): (usize, usize, u8)| {
                let start = if back == 0 { at.saturating_sub(gap) } else { at + gap / 3 };
                at = at.max(start + length);
                start..start + length
            };
            steps.into_iter().map(&mut place).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn groups_are_those_of_the_definition(a in spans(), b in spans()) {
            let found = groups(&a, &b).unwrap();
            let ends: Vec<_> = found.a_splits.iter().copied().zip(found.b_splits.iter().copied()).collect();
            prop_assert_eq!(&ends[1..], defined(&a, &b));
            prop_assert_eq!(found.spans.len() + 1, ends.len());
        }
    }
}
