//! How long tokens may be that begin, or end, with some bytes.

use crate::error::Result;
use crate::memory::filled;
use crate::polling::poll;
use crate::vocabulary::Vocabulary;

/// The length of the longest token by its first bytes, and by its last ones, hashed: tokens that share
/// a slot make the bound higher, and never too low.
#[derive(Debug)]
pub(crate) struct LongestTokens {
    beginning_with: Vec<u8>,
    ending_with: Vec<u8>,
}

/// By how many bytes tokens are told apart.
const BYTES: usize = 4;
const SLOT_BITS: u32 = 17;

impl LongestTokens {
    /// Looks at all tokens of `vocabulary`.
    pub(crate) fn new(vocabulary: &Vocabulary) -> Result<Self> {
        let mut beginning_with = filled(BYTES as u8 - 1, 1 << SLOT_BITS)?;
        let mut ending_with = filled(BYTES as u8 - 1, 1 << SLOT_BITS)?;
        for rank in 0..vocabulary.len() as u32 {
            let token = vocabulary.token(rank);
            poll(1)?;
            if let (Some(first), Some(last)) = (token.first_chunk(), token.last_chunk()) {
                // (The largest number stands for any length.)
                let length = u8::try_from(token.len()).unwrap_or(u8::MAX);
                for longest in [&mut beginning_with[slot(first)], &mut ending_with[slot(last)]] {
                    *longest = length.max(*longest);
                }
            }
        }
        Ok(Self { beginning_with, ending_with })
    }

    /// The end of the longest beginning of `bytes` that `count` tokens may cover, whatever tokens.
    pub(crate) fn furthest_end(&self, bytes: &[u8], count: usize) -> usize {
        let reached = |start: usize| match bytes[start..].first_chunk() {
            Some(first) => start.saturating_add(length(self.beginning_with[slot(first)])),
            None => bytes.len(),
        };
        furthest(bytes.len(), count, reached)
    }

    /// The start of the longest end of `bytes` that `count` tokens may cover, whatever tokens.
    pub(crate) fn furthest_start(&self, bytes: &[u8], count: usize) -> usize {
        let reached = |covered: usize| match bytes[..bytes.len() - covered].last_chunk() {
            Some(last) => covered.saturating_add(length(self.ending_with[slot(last)])),
            None => bytes.len(),
        };
        bytes.len() - furthest(bytes.len(), count, reached)
    }
}

/// How many of `all` bytes `count` tokens may cover, where a token behind `n` bytes ends at
/// `reached(n)` at most.
fn furthest(all: usize, count: usize, reached: impl Fn(usize) -> usize) -> usize {
    let (mut next, mut furthest) = (0, 0);
    for _ in 0..count {
        let covered = furthest;
        while next <= covered {
            if furthest >= all {
                return all;
            }
            furthest = furthest.max(reached(next));
            next += 1;
        }
    }
    furthest.min(all)
}

fn slot(bytes: &[u8; BYTES]) -> usize {
    (u32::from_le_bytes(*bytes).wrapping_mul(0x9e37_79b1) >> (u32::BITS - SLOT_BITS)) as usize
}

fn length(longest: u8) -> usize {
    if longest == u8::MAX { usize::MAX } else { longest.into() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::test_support::config(200))]

        /// No tokens cover more than is said that they may.
        #[test]
        fn tokens_cover_no_more(
            words in prop::collection::hash_set("[abc]{2,12}", 1..20),
            picked in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
            before in "[abc]{0,6}",
            behind in "[abc]{0,6}",
        ) {
            let words: Vec<String> = words.into_iter().collect();
            let tokens = ["a", "b", "c"].into_iter().chain(words.iter().map(String::as_str));
            let tokens = tokens.zip(0..).map(|(token, id)| (token.as_bytes().to_vec(), id));
            let longest = LongestTokens::new(&Vocabulary::build(tokens.collect()).unwrap()).unwrap();
            let covered: String = picked.iter().map(|index| index.get(&words).as_str()).collect();
            let text = covered.clone() + &behind;
            prop_assert!(longest.furthest_end(text.as_bytes(), picked.len()) >= covered.len());
            let text = before.clone() + &covered;
            prop_assert!(longest.furthest_start(text.as_bytes(), picked.len()) <= before.len());
        }
    }

    #[test]
    fn runs_are_covered_by_their_longest_tokens() {
        let tokens = ["a", "b", "aa", "aaaa", "aaaaaaaa"].iter().zip(0..);
        let tokens = tokens.map(|(token, id)| (token.as_bytes().to_vec(), id)).collect();
        let longest = LongestTokens::new(&Vocabulary::build(tokens).unwrap()).unwrap();
        for count in 0..9 {
            assert_eq!(longest.furthest_end(&[b'a'; 100], count), 8 * count);
            assert_eq!(longest.furthest_start(&[b'a'; 100], count), 100 - 8 * count);
            assert_eq!(longest.furthest_end(&[b'b'; 100], count), 3 * count);
        }
        assert_eq!(longest.furthest_end(b"aaa", 1), 3);
        assert_eq!(longest.furthest_start(b"aaa", usize::MAX), 0);
    }
}
