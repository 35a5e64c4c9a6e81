//! Sorts the tokens of a vocabulary by their bytes.

use crate::vocabulary::Vocabulary;

/// Tokens sorted by their bytes: tokens with a common prefix are adjacent.
#[derive(Debug)]
pub struct SortedTokens {
    /// Ranks in the order of their tokens.
    order: Vec<u32>,
    longest: usize,
}

impl SortedTokens {
    /// Sorts the tokens of `vocabulary`.
    pub fn new(vocabulary: &Vocabulary) -> SortedTokens {
        let mut order: Vec<u32> = (0..vocabulary.len() as u32).collect::<Vec<_>>();
        order.sort_unstable_by_key(|&rank| vocabulary.token(rank));
        let longest = order.iter().map(|&rank| vocabulary.token(rank).len()).max().unwrap_or(0);
        Self { order, longest }
    }

    /// Returns the length of the longest token in bytes.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Returns the tokens, as ranks, that start with `prefix`.
    pub fn starting_with(&self, vocabulary: &Vocabulary, prefix: &[u8]) -> &[u32] {
        let token = |&rank: &u32| vocabulary.token(rank);
        let from = self.order.partition_point(|rank| token(rank) < prefix);
        let length = self.order[from..].partition_point(|rank| token(rank).starts_with(prefix));
        &self.order[from..from + length]
    }
}
