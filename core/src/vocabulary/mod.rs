//! A vocabulary: the bytes and the id of each token, and the tables that merging reads.
//!
//! Inside the engine a token is its *rank*: its index in the order of merge priority, 0 to `len() -
//! 1` without gaps. Outside the engine a token is its *id*, the number in the rank file. Ids ascend
//! with ranks, may have gaps, and may be very large.
//!
//! Every table is a flat array, so that a vocabulary can be created once, when the package is
//! built, and then read in place (see [`image`]).

mod boundaries;
mod decode;
pub mod image;
mod listed;
mod order;
mod pairs;
mod perfect_hash;
mod rank_list;
mod splits;
mod tokens;

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::once::OnceBox;
pub(crate) use crate::rule::NONE;
pub(crate) use boundaries::{Boundaries, three_byte_char};
pub(crate) use pairs::{Neighbors, PairProbe, Pairs};
pub use rank_list::RankList;
pub(crate) use rank_list::shown;
pub(crate) use tokens::{
    Key, SHORT, TokenProbe, Tokens, is_key_of_other, key, key_of_other, key_of_run, length_of,
};

/// Number of bits in a rank, and in the number of a single byte that is not a token.
pub(crate) const RANK_BITS: u32 = 21;
const RANK_MASK: u32 = (1 << RANK_BITS) - 1;

/// Maximum number of tokens in a vocabulary: the rest of the range is for missing bytes.
pub const MAX_TOKENS: usize = (1 << RANK_BITS) - 512;

/// Largest possible id.
pub const MAX_ID: u32 = NONE - 1;

/// A flat array, either allocated or inside an image.
pub(crate) type Section<T> = Cow<'static, [T]>;

/// The mergeable tokens of an encoding.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    tokens: Tokens,
    pairs: Pairs,
    /// The pairs of an image with their slots, filled at the first merge: this takes milliseconds.
    filled: OnceBox<Pairs>,
    boundaries: Boundaries,
    ordered: bool,
    all_reachable: bool,
}

impl Vocabulary {
    /// Builds a vocabulary of `(token bytes, id)`, in any order.
    ///
    /// Refuses an empty list, repeated tokens or ids, and more than [`MAX_TOKENS`] tokens. Single
    /// bytes may be missing, ids may have gaps, and tokens that merging cannot reach are kept for
    /// pieces that equal them. An empty token is also kept, but text never encodes to it.
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
        Self::from_ranks(tokens.try_into()?)
    }

    /// Builds a vocabulary from a list, with fewer allocations; can be interrupted.
    ///
    /// Takes time linear in the bytes of the tokens, except for sorting.
    pub fn from_ranks(list: RankList) -> Result<Self> {
        check(&list)?;
        let list = list.sorted_by_id()?;
        let (tokens, order) = Tokens::build(list)?;
        let bytes = splits::byte_parts(&tokens);
        let splits =
            splits::splits(&tokens, &bytes, &order.prefixes(|rank| tokens.bytes(rank).len()))?;
        drop(order);
        Self::of_parts(tokens, bytes, splits)
    }

    /// Builds a vocabulary from ranks and a list of merges: `cuts` lists, by ascending rank,
    /// possible lengths in bytes of the first part of a token; a token may have several.
    ///
    /// Verifies the splits, which is faster than searching for them. `None` if
    /// [`Vocabulary::from_ranks`] would build a different vocabulary: if the split of a reachable
    /// token is not listed, if a token with cuts is unreachable or ranks before its parts, or if
    /// two tokens are equal.
    pub fn from_cuts(list: RankList, cuts: &[(u32, u32)]) -> Result<Option<Self>> {
        check(&list)?;
        let list = list.sorted_by_id()?;
        let Some(tokens) = Tokens::build_unsorted(list)? else { return Ok(None) };
        let bytes = splits::byte_parts(&tokens);
        let Some(splits) = listed::listed_splits(&tokens, &bytes, cuts)? else { return Ok(None) };
        Self::of_parts(tokens, bytes, splits).map(Some)
    }

    /// Builds a vocabulary from its tokens, the parts of single bytes, and the split of each token
    /// by rank.
    fn of_parts(mut tokens: Tokens, bytes: Vec<u32>, splits: Vec<[u32; 2]>) -> Result<Self> {
        for (rank, &[left, _]) in (0..).zip(&splits) {
            if left == NONE && tokens.bytes(rank).len() != 1 {
                tokens.set_unreachable(rank);
            }
        }
        let pairs = Pairs::build(&tokens, bytes, splits)?;
        let ordered = pairs.is_ordered(&tokens);
        let boundaries = Boundaries::build(&tokens)?;
        let all_reachable = tokens.all_reachable();
        Ok(Self { tokens, pairs, filled: OnceBox::new(), boundaries, ordered, all_reachable })
    }

    /// Drops the boundaries, for pieces that are already cut between characters.
    pub fn without_boundaries(self) -> Self {
        Self { boundaries: Boundaries::none(), ..self }
    }

    /// Returns the number of tokens.
    #[inline]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns false: a vocabulary has at least one token.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns the bytes of the token with this rank. Panics if `rank >= len()`.
    #[inline]
    pub fn token(&self, rank: u32) -> &[u8] {
        self.tokens.bytes(rank)
    }

    /// Returns the id of the token with this rank. Panics if `rank >= len()`.
    #[inline]
    pub fn id(&self, rank: u32) -> u32 {
        self.tokens.id(rank)
    }

    /// Returns the rank of the token with this id.
    #[inline]
    pub fn rank_of_id(&self, id: u32) -> Option<u32> {
        self.tokens.rank_of_id(id)
    }

    /// Returns the rank of the token with exactly these bytes.
    #[inline]
    pub fn rank(&self, bytes: &[u8]) -> Option<u32> {
        self.tokens.find(bytes)
    }

    /// Returns the largest id.
    pub fn max_id(&self) -> u32 {
        self.id(self.len() as u32 - 1)
    }

    /// Returns the two parts of the last merge that forms this token: `None` for a single byte and
    /// for an unreachable token. A part that is not a rank is a byte without a token.
    pub fn split(&self, rank: u32) -> Option<(u32, u32)> {
        self.pairs.split(rank)
    }

    /// Returns true if merging the bytes of this token gives the token. False for an empty token.
    pub fn is_reachable(&self, rank: u32) -> bool {
        self.tokens.is_reachable(rank)
    }

    /// Returns true if every token except an empty token is reachable.
    pub fn all_reachable(&self) -> bool {
        self.all_reachable
    }

    /// Returns true if every token ranks after the two tokens it is merged from, as in learned
    /// vocabularies. The fast merge algorithms rely on this order.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Replaces parts with ids; fails for a byte that is not a token.
    #[inline(always)]
    pub(crate) fn turn_into_ids(&self, parts: &mut [u32]) -> Result<()> {
        let parts_are_ids = self.tokens.ids_are_ranks() && self.pairs.every_byte;
        if !parts_are_ids {
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
    pub(crate) fn pairs(&self) -> Result<&Pairs> {
        if self.pairs.are_filled() {
            return Ok(&self.pairs);
        }
        self.filled.get_or_try_init(|| self.pairs.filled().map(Box::new))
    }

    #[inline(always)]
    pub(crate) fn boundaries(&self) -> &Boundaries {
        &self.boundaries
    }
}

/// Refuses an empty list, and ids that are too large.
fn check(list: &RankList) -> Result<()> {
    if list.is_empty() {
        return Err(Error::Vocabulary("a vocabulary needs at least one token".into()));
    }
    if let Some((token, id)) = list.iter().find(|&(_, id)| id > MAX_ID) {
        return Err(Error::Vocabulary(format!(
            "the rank {id} of the token {} is too large; the largest is {MAX_ID}",
            shown(token)
        )));
    }
    Ok(())
}
