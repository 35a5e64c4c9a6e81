//! A list of tokens and ids, as in a file or a dict, from which a vocabulary is built.

use super::MAX_TOKENS;
use crate::error::{Error, Result};
use crate::polling::poll;

/// Tokens and their ids, in any order. The bytes of all tokens are in one buffer, so that a list
/// takes few allocations.
#[derive(Debug, Clone, Default)]
pub struct RankList {
    pub(super) bytes: Vec<u8>,
    /// End of each token in `bytes`.
    pub(super) ends: Vec<usize>,
    pub(super) ids: Vec<u32>,
}

impl RankList {
    /// Creates an empty list with room for `tokens` tokens of `bytes` bytes in total.
    pub fn with_capacity(tokens: usize, bytes: usize) -> RankList {
        Self {
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(tokens),
            ids: Vec::with_capacity(tokens),
        }
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns the total number of bytes in all tokens.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if the list has no tokens.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Appends a token.
    pub fn push(&mut self, token: &[u8], id: u32) {
        self.bytes.reserve(token.len());
        self.bytes.extend_from_slice(token);
        self.end_token(id);
    }

    /// Appends a token whose bytes `write` appends to the buffer. Appends nothing if `write` fails.
    pub(crate) fn push_with<E: From<Error>>(
        &mut self,
        id: u32,
        write: impl FnOnce(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let before = self.bytes.len();
        if let Err(error) = write(&mut self.bytes) {
            self.bytes.truncate(before);
            return Err(error);
        }
        self.end_token(id);
        Ok(())
    }

    fn end_token(&mut self, id: u32) {
        self.ends.reserve(1);
        self.ids.reserve(1);
        self.ends.push(self.bytes.len());
        self.ids.push(id);
    }

    /// Appends the tokens of another list.
    pub fn append(&mut self, other: &Self) {
        let before = self.bytes.len();
        self.bytes.reserve(other.bytes.len());
        self.ends.reserve(other.len());
        self.ids.reserve(other.len());
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| before + end));
        self.ids.extend_from_slice(&other.ids);
    }

    /// Returns the ids of the tokens, in the same order.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Returns the tokens and their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u32)> {
        (0..self.len()).map(|index| (self.token(index), self.ids[index]))
    }

    /// Returns the token at this index. Panics if the index is out of range.
    pub fn token(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    /// Sorts the tokens by id.
    ///
    /// Refuses two tokens that share an id, and more than [`MAX_TOKENS`] tokens.
    pub fn sorted_by_id(self) -> Result<Self> {
        if self.len() > MAX_TOKENS {
            return Err(Error::Vocabulary(format!(
                "{} tokens are more than the {MAX_TOKENS} that a vocabulary may have",
                self.len()
            )));
        }
        if self.ids.is_sorted_by(|a, b| a < b) {
            return Ok(self);
        }
        let by_id = self.ids.iter().zip(0..).map(|(&id, index)| u64::from(id) << 32 | index);
        let mut order: Vec<u64> = by_id.collect();
        order.sort_unstable();
        let mut sorted = Self::with_capacity(self.len(), self.bytes.len());
        for &entry in &order {
            let (id, index) = ((entry >> 32) as u32, entry as u32 as usize);
            let token = self.token(index);
            if sorted.ids.last() == Some(&id) {
                return Err(Error::Vocabulary(format!(
                    "the tokens {} and {} share the rank {id}; give each its own",
                    shown(sorted.token(sorted.len() - 1)),
                    shown(token),
                )));
            }
            poll(token.len() + 1)?;
            sorted.push(token, id);
        }
        Ok(sorted)
    }
}

impl<B: AsRef<[u8]>> TryFrom<Vec<(B, u32)>> for RankList {
    type Error = Error;

    fn try_from(tokens: Vec<(B, u32)>) -> Result<Self> {
        let bytes = tokens.iter().map(|(token, _)| token.as_ref().len()).sum();
        let mut list = Self::with_capacity(tokens.len(), bytes);
        tokens.iter().for_each(|(token, id)| list.push(token.as_ref(), *id));
        Ok(list)
    }
}

/// Formats a token for messages: a bytes literal of its first bytes.
pub(crate) fn shown(token: &[u8]) -> String {
    const LONGEST: usize = 60;
    match token.get(..LONGEST) {
        Some(start) if token.len() > LONGEST => {
            format!("b\"{}\"... ({} bytes)", start.escape_ascii(), token.len())
        }
        _ => format!("b\"{}\"", token.escape_ascii()),
    }
}
