//! How long tokens may be that begin, or end, with some bytes.

use std::ops::Range;

use crate::error::Result;
use crate::memory::filled;
use crate::polling::poll;
use crate::vocabulary::Vocabulary;

/// The lengths of the longest tokens by their first bytes, and by their last ones.
#[derive(Debug)]
pub(crate) struct LongestTokens {
    beginning_with: Lengths,
    ending_with: Lengths,
}

impl LongestTokens {
    /// Looks at all tokens of `vocabulary`.
    pub(crate) fn new(vocabulary: &Vocabulary) -> Result<Self> {
        let (mut beginning_with, mut ending_with) = (Lengths::new()?, Lengths::new()?);
        for rank in 0..vocabulary.len() as u32 {
            let token = vocabulary.token(rank);
            poll(token.len())?;
            beginning_with.add(&forward(token));
            ending_with.add(&backward(token));
        }
        Ok(Self { beginning_with, ending_with })
    }

    /// The end of the longest beginning of `bytes` that `count` tokens may cover, whatever tokens. It may
    /// be behind them, if they are `open`.
    ///
    /// Asks `known`, in ascending order, how many tokens there are up to places that no token
    /// crosses.
    pub(crate) fn furthest_end(
        &self,
        bytes: &[u8],
        open: Open,
        count: usize,
        known: impl FnMut(usize) -> Option<usize>,
    ) -> usize {
        self.beginning_with.furthest(&forward(bytes), open, count, known)
    }

    /// The start of the longest end of `bytes` that `count` tokens may cover, whatever tokens.
    ///
    /// Asks `known`, in descending order, how many tokens there are from places on that no token
    /// crosses.
    pub(crate) fn furthest_start(
        &self,
        bytes: &[u8],
        open: Open,
        count: usize,
        mut known: impl FnMut(usize) -> Option<usize>,
    ) -> usize {
        let known = |covered| known(bytes.len() - covered);
        bytes.len() - self.ending_with.furthest(&backward(bytes), open, count, known)
    }

    /// The length of the longest token that begins as these bytes do; a bound, as all of this.
    pub(crate) fn longest_beginning(&self, bytes: &[u8]) -> usize {
        self.beginning_with.longest(&forward(bytes), 0)
    }

    /// The length of the longest token that ends as these bytes do.
    pub(crate) fn longest_ending(&self, bytes: &[u8]) -> usize {
        self.ending_with.longest(&backward(bytes), 0)
    }
}

/// What else than some bytes tokens may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    Nothing,
    /// More bytes behind.
    Behind,
    /// The last of them any other bytes from some place on, which then is covered.
    Anywhere,
}

/// Bytes in one direction or the other.
struct Bytes<At> {
    count: usize,
    at: At,
}

fn forward(bytes: &[u8]) -> Bytes<impl Fn(usize) -> u8> {
    Bytes { count: bytes.len(), at: |index| bytes[index] }
}

fn backward(bytes: &[u8]) -> Bytes<impl Fn(usize) -> u8> {
    Bytes { count: bytes.len(), at: |index| bytes[bytes.len() - 1 - index] }
}

/// By how many bytes tokens are told apart, and by how far they go on as those bytes over and over: a
/// run of one character ends where it ends, whatever longer runs are tokens.
const UNIT: usize = 4;

impl<At: Fn(usize) -> u8> Bytes<At> {
    fn byte(&self, position: usize) -> u64 {
        (self.at)(position).into()
    }

    /// The `count` bytes from `start` on, no more than [`UNIT`]. There must be so many.
    fn number(&self, start: usize, count: usize) -> u64 {
        (start..start + count).fold(0, |number, position| number << 8 | self.byte(position))
    }

    /// The [`UNIT`] bytes from `start` on.
    fn unit(&self, start: usize) -> u64 {
        self.number(start, UNIT)
    }

    /// After how many bytes the unit at `start` is repeated: three are a character of many scripts.
    fn period(&self, start: usize) -> usize {
        if self.byte(start) == self.byte(start + 3) { 3 } else { UNIT }
    }

    /// The end of the stretch that is the unit at `start` over and over, or `most` if it goes on there.
    fn stretch_end(&self, start: usize, most: usize) -> usize {
        let (period, mut end) = (self.period(start), start + UNIT);
        while end < most.min(self.count) && self.byte(end) == self.byte(end - period) {
            end += 1;
        }
        end
    }

    /// Stands for a stretch.
    fn key(&self, start: usize, end: usize) -> u64 {
        mix(self.unit(start), (end - start) as u64)
    }

    /// Stands for all of a token.
    fn short_key(&self, start: usize, count: usize) -> u64 {
        mix(!self.number(start, count), count as u64)
    }
}

const UNIT_BITS: u32 = 17;
const RUN_BITS: u32 = 12;
const STRETCH_BITS: u32 = 20;

/// Stands for this length of a run and all above.
const LONG_RUN: usize = u128::BITS as usize - 1;

/// The lengths of tokens by their first bytes, hashed: tokens that share a slot make the bound higher,
/// and never too low.
#[derive(Debug)]
struct Lengths {
    /// Of those of a unit or more the longest, by the first unit. Here and below, the largest number
    /// stands for any length.
    units: Vec<u8>,
    /// Of those of one stretch, more than a unit, by the unit: a bit for each length up to
    /// [`LONG_RUN`].
    runs: Vec<u128>,
    /// Of those of more than a stretch the longest, by that and the byte behind it; by that and the unit
    /// of the second one, if nothing follows; and by two stretches and the byte behind them. And those
    /// of a unit or less, by all of their bytes.
    stretches: Vec<u8>,
}

impl Lengths {
    fn new() -> Result<Self> {
        Ok(Self {
            units: filled(0, 1 << UNIT_BITS)?,
            runs: filled(0, 1 << RUN_BITS)?,
            stretches: filled(0, 1 << STRETCH_BITS)?,
        })
    }

    /// Takes a token into account.
    fn add(&mut self, token: &Bytes<impl Fn(usize) -> u8>) {
        if token.count <= UNIT {
            self.add_stretches(token.short_key(0, token.count), token.count);
        }
        if token.count < UNIT {
            return;
        }
        let longest = &mut self.units[slot(token.unit(0), UNIT_BITS)];
        *longest = in_byte(token.count).max(*longest);
        let first = token.stretch_end(0, token.count);
        if token.count == UNIT {
            return;
        }
        if first == token.count {
            self.runs[slot(token.unit(0), RUN_BITS)] |= 1 << token.count.min(LONG_RUN);
            return;
        }
        let key = token.key(0, first);
        self.add_stretches(mix(key, token.byte(first)), token.count);
        if token.count - first < UNIT {
            return;
        }
        let second = token.stretch_end(first, token.count);
        if second == token.count {
            self.add_stretches(mix(key, token.unit(first)), token.count);
        } else {
            let key = mix(key, token.key(first, second));
            self.add_stretches(mix(key, token.byte(second)), token.count);
        }
    }

    fn add_stretches(&mut self, key: u64, length: usize) {
        let longest = &mut self.stretches[slot(key, STRETCH_BITS)];
        *longest = in_byte(length).max(*longest);
    }

    /// The length of the longest token with this key.
    fn longest_with(&self, key: u64) -> usize {
        from_byte(self.stretches[slot(key, STRETCH_BITS)])
    }

    /// How many of `bytes` as many as `count` tokens may cover. `known` may tell the tokens up to a place
    /// that no token crosses.
    fn furthest(
        &self,
        bytes: &Bytes<impl Fn(usize) -> u8>,
        open: Open,
        count: usize,
        mut known: impl FnMut(usize) -> Option<usize>,
    ) -> usize {
        let (mut next, mut furthest, mut tokens) = (0, 0, 0);
        // The ends of the last stretches with a period of three and of four.
        let mut ends = [0; UNIT + 1];
        while tokens < count {
            let covered = furthest;
            if open == Open::Anywhere && tokens + 1 == count {
                let longest = |start| self.longest(bytes, start).saturating_add(start);
                let furthest = (0..=covered.min(bytes.count)).map(longest).max();
                return furthest.unwrap_or(0).min(bytes.count);
            }
            while next <= covered {
                if furthest >= bytes.count || bytes.count - next < UNIT {
                    return bytes.count;
                }
                if next == furthest && next > 0 {
                    tokens = known(next).unwrap_or(tokens);
                    if tokens >= count {
                        return furthest;
                    }
                }
                let end = &mut ends[bytes.period(next)];
                if *end < next + UNIT {
                    *end = bytes.stretch_end(next, bytes.count);
                }
                furthest = self.reached(bytes, next..*end, open, furthest);
                next += 1;
            }
            tokens += 1;
        }
        furthest.min(bytes.count)
    }

    /// The length of the longest token that begins as the bytes from `start` on do.
    fn longest(&self, bytes: &Bytes<impl Fn(usize) -> u8>, start: usize) -> usize {
        if bytes.count - start < UNIT {
            return usize::MAX;
        }
        from_byte(self.units[slot(bytes.unit(start), UNIT_BITS)]).max(UNIT - 1)
    }

    /// Where a token that begins with this stretch of the bytes, or with a part of it and no more, ends
    /// at most; `furthest` if that is further.
    fn reached(
        &self,
        bytes: &Bytes<impl Fn(usize) -> u8>,
        Range { start, end: first }: Range<usize>,
        open: Open,
        furthest: usize,
    ) -> usize {
        let unit = bytes.unit(start);
        let run = match longest_up_to(self.runs[slot(unit, RUN_BITS)], first - start) {
            LONG_RUN => from_byte(self.units[slot(unit, UNIT_BITS)]).min(first - start),
            run => run,
        };
        let mut furthest = furthest.max(start + run.max(1));
        for length in (furthest + 1 - start..=UNIT).rev() {
            if self.longest_with(bytes.short_key(start, length)) > 0 {
                furthest = start + length;
                break;
            }
        }
        if first == bytes.count {
            return if open == Open::Behind { usize::MAX } else { furthest };
        }
        let key = bytes.key(start, first);
        let longest = start.saturating_add(self.longest_with(mix(key, bytes.byte(first))));
        if longest <= furthest.max(first) {
            return furthest;
        }
        let second = if bytes.count - first < UNIT {
            bytes.count
        } else {
            bytes.stretch_end(first, longest)
        };
        if second == bytes.count && open == Open::Behind {
            return longest;
        }
        let mut reached = second.min(first + UNIT - 1);
        if bytes.count - first >= UNIT {
            let with_unit = start.saturating_add(self.longest_with(mix(key, bytes.unit(first))));
            reached = reached.max(with_unit.min(second));
            if second < longest.min(bytes.count) {
                let key = mix(key, bytes.key(first, second));
                let behind = self.longest_with(mix(key, bytes.byte(second)));
                reached = reached.max(start.saturating_add(behind));
            }
        }
        furthest.max(reached.min(longest))
    }
}

/// A length in a byte, where the largest number stands for any length.
fn in_byte(length: usize) -> u8 {
    u8::try_from(length).unwrap_or(u8::MAX)
}

fn from_byte(length: u8) -> usize {
    if length == u8::MAX { usize::MAX } else { length.into() }
}

/// The largest of these lengths up to `most`.
fn longest_up_to(lengths: u128, most: usize) -> usize {
    let unused = LONG_RUN - most.min(LONG_RUN);
    (lengths << unused >> unused).checked_ilog2().map_or(0, |longest| longest as usize)
}

fn mix(key: u64, value: u64) -> u64 {
    (key.rotate_left(25) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn slot(key: u64, bits: u32) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - bits)) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::test_support::config(400))]

        /// No tokens cover more than is said that they may.
        #[test]
        fn tokens_cover_no_more(
            words in prop::collection::hash_set("[abc]{2,12}|(ab){2,9}|a{2,140}b{0,20}c{0,5}", 1..20),
            picked in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
            before in "[abc]{0,6}",
            behind in "[abc]{0,6}",
            cut in any::<prop::sample::Index>(),
        ) {
            let words: Vec<String> = words.into_iter().collect();
            let tokens = ["a", "b", "c"].into_iter().chain(words.iter().map(String::as_str));
            let tokens = tokens.zip(0..).map(|(token, id)| (token.as_bytes().to_vec(), id));
            let longest = LongestTokens::new(&Vocabulary::build(tokens.collect()).unwrap()).unwrap();
            let picked: Vec<&String> = picked.iter().map(|index| index.get(&words)).collect();
            let (covered, count) = (picked.iter().copied().cloned().collect::<String>(), picked.len());
            let end = |text: &str, open| longest.furthest_end(text.as_bytes(), open, count, |_| None);
            let text = covered.clone() + &behind;
            prop_assert!(end(&text, Open::Nothing) >= covered.len());
            let text = before.clone() + &covered;
            let start = longest.furthest_start(text.as_bytes(), Open::Nothing, count, |_| None);
            prop_assert!(start <= before.len());
            // What goes on behind them, and what ends in other bytes than its last token from there on.
            let known = &covered[..cut.index(covered.len())];
            prop_assert_eq!(end(known, Open::Behind), known.len());
            let last = covered.len() - picked[count - 1].len();
            let other = format!("{}{}", &covered[..known.len().max(last)], "d".repeat(300));
            prop_assert!(end(&other, Open::Anywhere) >= known.len().max(last));
        }
    }

    /// Where no token crosses a place, the tokens up to there are those that are known.
    #[test]
    fn places_that_no_token_crosses_are_asked_for() {
        let tokens = ["-", "--", "---", "----", "--------", "/", "////", "////////", "/-"];
        let tokens = tokens.iter().zip(0..).map(|(token, id)| (token.as_bytes().to_vec(), id));
        let longest = LongestTokens::new(&Vocabulary::build(tokens.collect()).unwrap()).unwrap();
        let text = "-".repeat(9) + &"/".repeat(16) + &"-".repeat(40);
        let furthest = |count, before: Option<usize>| {
            let known = |place| before.filter(|_| place == 9);
            longest.furthest_end(text.as_bytes(), Open::Nothing, count, known)
        };
        assert_eq!([1, 2, 3].map(|count| furthest(count, None)), [8, 9, 17]);
        assert_eq!([1, 2, 3, 4].map(|count| furthest(count, Some(3))), [8, 9, 9, 17]);
        let known = |place| (place == 9).then_some(5);
        let start = longest.furthest_start(&text.as_bytes()[..25], Open::Nothing, 5, known);
        assert_eq!(start, 9);
    }

    /// Tokens of four bytes, those that are told apart, and of as many behind the first stretch.
    #[test]
    fn tokens_of_a_unit_count() {
        let tokens = ["a", "b", "aa", "aaaa", "aaaabbbb"].iter().zip(0..);
        let tokens = tokens.map(|(token, id)| (token.as_bytes().to_vec(), id)).collect();
        let longest = LongestTokens::new(&Vocabulary::build(tokens).unwrap()).unwrap();
        let end = |text: &[u8], open| longest.furthest_end(text, open, 1, |_| None);
        assert!(end(b"aaaabbbbcc", Open::Nothing) >= 8);
        assert!(end(b"aaaabbbbbbbbbbbbb", Open::Nothing) >= 8);
        let tokens = ["a", "b", "aa", "aaaa"].iter().zip(0..);
        let tokens = tokens.map(|(token, id)| (token.as_bytes().to_vec(), id)).collect();
        let longest = LongestTokens::new(&Vocabulary::build(tokens).unwrap()).unwrap();
        assert_eq!(longest.longest_beginning(&[b'a'; 9]), 4);
        assert_eq!(longest.longest_ending(&[b'a'; 9]), 4);
    }

    #[test]
    fn runs_are_covered_by_their_longest_tokens() {
        let tokens = ["a", "b", "aa", "aaaa", "aaaaaaaa"].iter().zip(0..);
        let tokens = tokens.map(|(token, id)| (token.as_bytes().to_vec(), id)).collect();
        let longest = LongestTokens::new(&Vocabulary::build(tokens).unwrap()).unwrap();
        for count in 0..9 {
            assert_eq!(
                longest.furthest_end(&[b'a'; 100], Open::Nothing, count, |_| None),
                8 * count
            );
            assert_eq!(
                longest.furthest_start(&[b'a'; 100], Open::Nothing, count, |_| None),
                100 - 8 * count
            );
            assert_eq!(longest.furthest_end(&[b'b'; 100], Open::Nothing, count, |_| None), count);
        }
        assert_eq!(longest.furthest_end(b"aaa", Open::Nothing, 1, |_| None), 3);
        assert_eq!(longest.furthest_start(b"aaa", Open::Nothing, usize::MAX, |_| None), 0);
    }
}
