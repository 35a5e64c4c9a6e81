//! Breaks ties: the order of pairs with the same count.

use std::rc::Rc;

/// Rule for pairs with the same count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ties {
    /// The pair that comes first in the distinct pieces, in descending order of count, equal ones
    /// in byte order, each from left to right.
    First,
    /// The pair whose left token has the lower id; on ties, whose right token has. The rule of
    /// Hugging Face's trainers in `tokenizers`.
    #[default]
    LowestIds,
    /// The pair whose left token has the lower bytes; on ties, whose right token has.
    Bytes,
}

/// Sort key of a pair among pairs with the same count; the least comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TieKey {
    /// The first position.
    First(u32),
    /// Both numbers.
    LowestIds(u32, u32),
    /// The bytes of both.
    Bytes(Rc<[u8]>, Rc<[u8]>),
}
