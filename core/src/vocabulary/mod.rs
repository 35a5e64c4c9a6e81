//! Bytes of a token <-> its id, and the tables that merging reads.
//!
//! Inside the engine a token is its *rank*: its place in the order of merge priority, 0 to
//! `len() - 1` without gaps. Outside it is its *id*, the number in the rank file; ids ascend
//! with ranks, may have gaps, and may be far above the rest.
//!
//! Every table is a flat array, so that a vocabulary can be made once, when the package is
//! built, and read in place ever after (see [`image`]).

mod boundaries;
mod decode;
pub mod image;
mod pairs;
mod perfect_hash;
mod tokens;
mod trie;

use std::borrow::Cow;

use crate::error::{Error, Result};
pub(crate) use boundaries::{Boundaries, three_byte_char};
pub(crate) use pairs::{Neighbours, Pairs, Sought};
pub(crate) use tokens::{
    Key, SHORT, TokenProbe, Tokens, is_key_of_other, key, key_of_other, key_of_run, length_of,
};
pub(crate) use trie::Trie;

/// No rank.
pub(crate) const NONE: u32 = u32::MAX;

/// Ranks, and the stand-ins for single bytes that are no token, fit in this many bits.
pub(crate) const RANK_BITS: u32 = 21;
const RANK_MASK: u32 = (1 << RANK_BITS) - 1;

/// How many tokens a vocabulary may have: the rest of the range stands for missing bytes.
pub const MAX_TOKENS: usize = (1 << RANK_BITS) - 512;

/// The largest id that a token may have.
pub const MAX_ID: u32 = NONE - 1;

/// A flat array that is made here or lies in an image.
pub(crate) type Section<T> = Cow<'static, [T]>;

/// The mergeable tokens of an encoding.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    tokens: Tokens,
    pairs: Pairs,
    /// Only when merging is ordered; see [`Vocabulary::is_ordered`].
    trie: Option<Trie>,
    boundaries: Boundaries,
    ordered: bool,
}

impl Vocabulary {
    /// A vocabulary of `(token bytes, id)`, in any order.
    ///
    /// Refuses no tokens at all, empty tokens, a token or an id that is given twice, and more
    /// than [`MAX_TOKENS`] tokens. Single bytes may be missing, ids may have gaps, and tokens
    /// that merging cannot reach are kept: they stand for pieces that equal them.
    ///
    /// ```
    /// use bpe_core::Vocabulary;
    ///
    /// let vocabulary = Vocabulary::build(vec![(b"a".to_vec(), 0), (b"aa".to_vec(), 7)])?;
    /// assert_eq!(vocabulary.rank(b"aa"), Some(1));
    /// assert_eq!(vocabulary.id(1), 7);
    /// # Ok::<(), bpe_core::Error>(())
    /// ```
    pub fn build(tokens: Vec<(Vec<u8>, u32)>) -> Result<Self> {
        let tokens = sorted(tokens)?;
        let mut tokens = Tokens::build(tokens)?;
        let pairs = Pairs::build(&tokens)?;
        for rank in 0..tokens.len() as u32 {
            if tokens.bytes(rank).len() > 1 && pairs.split(rank).is_none() {
                tokens.set_unreachable(rank);
            }
        }
        let ordered = pairs.is_ordered(&tokens);
        let trie = if ordered { Trie::build(&tokens) } else { None };
        let boundaries = Boundaries::build(&tokens);
        Ok(Self { tokens, pairs, trie, boundaries, ordered })
    }

    /// How many tokens there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Never: a vocabulary holds at least one token.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The bytes of the token with this rank. Panics if `rank >= len()`.
    #[inline]
    pub fn token(&self, rank: u32) -> &[u8] {
        self.tokens.bytes(rank)
    }

    /// The id of the token with this rank. Panics if `rank >= len()`.
    #[inline]
    pub fn id(&self, rank: u32) -> u32 {
        self.tokens.id(rank)
    }

    /// The rank of an id.
    #[inline]
    pub fn rank_of_id(&self, id: u32) -> Option<u32> {
        self.tokens.rank_of_id(id)
    }

    /// The rank of the token with exactly these bytes.
    #[inline]
    pub fn rank(&self, bytes: &[u8]) -> Option<u32> {
        self.tokens.find(bytes)
    }

    /// The largest id.
    pub fn max_id(&self) -> u32 {
        self.id(self.len() as u32 - 1)
    }

    /// The two parts that merging joins last to make this token: `None` for a single byte and
    /// for a token that merging cannot reach. A part that is no rank is a byte without a token.
    pub fn split(&self, rank: u32) -> Option<(u32, u32)> {
        self.pairs.split(rank)
    }

    /// Whether merging the bytes of this token ends in this token.
    pub fn is_reachable(&self, rank: u32) -> bool {
        self.tokens.is_reachable(rank)
    }

    /// Whether every token is reachable.
    pub fn all_reachable(&self) -> bool {
        self.tokens.all_reachable()
    }

    /// Whether every token ranks after the two that it is merged from, as learning makes them.
    /// The fast ways of merging rest on it.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Whether parts can be given out as they are: ids are ranks, and every byte is a token.
    #[inline(always)]
    fn every_rank_is_an_id(&self) -> bool {
        self.tokens.ids_are_ranks() && self.pairs.every_byte_is_a_token()
    }

    /// Turns parts into ids, unless one is a byte that is no token.
    #[inline(always)]
    pub(crate) fn turn_into_ids(&self, parts: &mut [u32]) -> Result<()> {
        if !self.every_rank_is_an_id() {
            for part in parts {
                *part = match (*part as usize).checked_sub(self.len()) {
                    None => self.id(*part),
                    Some(byte) => return Err(Error::MissingByte { byte: byte as u8 }),
                };
            }
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    #[inline(always)]
    pub(crate) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    #[inline(always)]
    pub(crate) fn trie(&self) -> Option<&Trie> {
        self.trie.as_ref()
    }

    #[inline(always)]
    pub(crate) fn boundaries(&self) -> &Boundaries {
        &self.boundaries
    }
}

/// The tokens by ascending id, each checked.
fn sorted(mut tokens: Vec<(Vec<u8>, u32)>) -> Result<Vec<(Vec<u8>, u32)>> {
    if tokens.is_empty() {
        return Err(Error::Vocabulary("a vocabulary needs at least one token".into()));
    }
    if tokens.len() > MAX_TOKENS {
        return Err(Error::Vocabulary(format!(
            "{} tokens are more than the {MAX_TOKENS} that a vocabulary may have",
            tokens.len()
        )));
    }
    if let Some((_, id)) = tokens.iter().find(|(bytes, _)| bytes.is_empty()) {
        return Err(Error::Vocabulary(format!("the token with rank {id} is empty; remove it")));
    }
    if let Some((bytes, id)) = tokens.iter().find(|&&(_, id)| id > MAX_ID) {
        return Err(Error::Vocabulary(format!(
            "the rank {id} of the token b\"{}\" is too large; the largest is {MAX_ID}",
            bytes.escape_ascii()
        )));
    }
    tokens.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    if let Some([a, b]) = tokens.array_windows().find(|[a, b]| a.0 == b.0) {
        return Err(Error::Vocabulary(format!(
            "the token b\"{}\" has two ranks, {} and {}; keep one of them",
            a.0.escape_ascii(),
            a.1.min(b.1),
            a.1.max(b.1)
        )));
    }
    tokens.sort_unstable_by_key(|&(_, id)| id);
    if let Some([a, b]) = tokens.array_windows().find(|[a, b]| a.1 == b.1) {
        return Err(Error::Vocabulary(format!(
            "the tokens b\"{}\" and b\"{}\" share the rank {}; give each its own",
            a.0.escape_ascii(),
            b.0.escape_ascii(),
            a.1
        )));
    }
    Ok(tokens)
}
