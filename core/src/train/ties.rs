//! Which of several pairs with the same count is merged first.

use std::rc::Rc;

/// The rule for pairs of the same count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ties {
    /// The pair met first by who walks the distinct pieces from the most frequent to the least,
    /// equal ones in the order of their bytes, each from left to right.
    First,
    /// The pair whose left token has the lower id; of several, whose right token has. The trainer
    /// of Hugging Face's `tokenizers` has this rule.
    #[default]
    LowestIds,
    /// The pair whose left token has the lower bytes; of several, whose right token has.
    Bytes,
}

/// Where a pair stands among those with the same count; the least comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TieKey {
    /// The first position.
    First(u32),
    /// Both numbers.
    LowestIds(u32, u32),
    /// The bytes of both.
    Bytes(Rc<[u8]>, Rc<[u8]>),
}
