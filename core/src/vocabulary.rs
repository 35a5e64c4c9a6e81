//! Bytes of a token <-> its id.
//!
//! Inside the engine a token is its *rank*: its place in the order of merge priority, 0 to
//! `len() - 1` without gaps. Outside it is its *id*, the number in the rank file; ids ascend
//! with ranks, may have gaps, and may be far above the rest.

use std::collections::HashMap;

use crate::error::{Error, Result};

/// The mergeable tokens of an encoding.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    tokens: Vec<Vec<u8>>,
    ids: Vec<u32>,
    ranks: HashMap<Vec<u8>, u32>,
}

impl Vocabulary {
    /// A vocabulary of `(token bytes, id)`, in any order.
    ///
    /// Refuses empty tokens, a token or an id that is given twice, and no tokens at all.
    pub fn build(mut tokens: Vec<(Vec<u8>, u32)>) -> Result<Self> {
        if tokens.is_empty() {
            return Err(Error::Vocabulary("a vocabulary needs at least one token".into()));
        }
        tokens.sort_unstable_by_key(|&(_, id)| id);
        let mut ranks = HashMap::with_capacity(tokens.len());
        for (rank, (bytes, id)) in tokens.iter().enumerate() {
            if bytes.is_empty() {
                return Err(Error::Vocabulary(format!("the token with rank {id} is empty")));
            }
            if rank > 0 && tokens[rank - 1].1 == *id {
                return Err(Error::Vocabulary(format!(
                    "the tokens b\"{}\" and b\"{}\" share the rank {id}",
                    tokens[rank - 1].0.escape_ascii(),
                    bytes.escape_ascii()
                )));
            }
            if let Some(other) = ranks.insert(bytes.clone(), rank as u32) {
                return Err(Error::Vocabulary(format!(
                    "the token b\"{}\" has two ranks, {} and {id}",
                    bytes.escape_ascii(),
                    tokens[other as usize].1
                )));
            }
        }
        let (tokens, ids) = tokens.into_iter().unzip();
        Ok(Self { tokens, ids, ranks })
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Never: a vocabulary holds at least one token.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The bytes of the token with this rank. Panics if `rank >= len()`.
    pub fn token(&self, rank: u32) -> &[u8] {
        &self.tokens[rank as usize]
    }

    /// The id of the token with this rank. Panics if `rank >= len()`.
    pub fn id(&self, rank: u32) -> u32 {
        self.ids[rank as usize]
    }

    /// The rank of an id.
    pub fn rank_of_id(&self, id: u32) -> Option<u32> {
        match self.ids.get(id as usize) {
            Some(&same) if same == id => Some(id),
            _ => self.ids.binary_search(&id).ok().map(|rank| rank as u32),
        }
    }

    /// The rank of the token with exactly these bytes.
    pub fn rank(&self, bytes: &[u8]) -> Option<u32> {
        self.ranks.get(bytes).copied()
    }

    /// The largest id.
    pub fn max_id(&self) -> u32 {
        *self.ids.last().expect("a vocabulary holds at least one token")
    }
}
