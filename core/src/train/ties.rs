//! Breaks ties: the order of pairs with the same count.

use std::rc::Rc;

/// The rule for pairs of the same count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ties {
    /// The pair that is first in the distinct pieces, from the most frequent to the least, equal ones
    /// in byte order, each from left to right.
    First,
    /// The pair whose left token has the lower id; of several, whose right token has. The trainer
    /// of Hugging Face's `tokenizers` has this rule.
    #[default]
    LowestIds,
    /// The pair whose left token has the lower bytes; of several, whose right token has.
    Bytes,
}

/// The place of a pair among those with the same count; the least comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TieKey {
    /// The first position.
    First(u32),
    /// Both numbers.
    LowestIds(u32, u32),
    /// The bytes of both.
    Bytes(Rc<[u8]>, Rc<[u8]>),
}
