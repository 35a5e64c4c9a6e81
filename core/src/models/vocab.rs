//! Maps the tokens of a model to ids and back.

use std::fmt;

use serde::ser::Serializer;

use super::LOST;
use super::token_lists::TokenList;
use crate::components::bytes::{is_in_utf8, text_of};
use crate::components::trie::Trie;
use crate::error::{Error, Result};

pub(crate) struct Vocab {
    /// The tokens by ascending id.
    tokens: TokenList,
    trie: Trie,
    /// Whether any text has several ids, of which the last is used.
    repeats: bool,
}

impl fmt::Debug for Vocab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocab").field("size", &self.size()).finish_non_exhaustive()
    }
}

impl Vocab {
    /// Builds the vocabulary from a map. Of repeated tokens, only the last counts.
    ///
    /// Fails if two tokens share an id.
    pub(crate) fn new(tokens: &TokenList) -> Result<Self> {
        let trie = Trie::new(tokens.iter())?;
        // A token repeated with the same id is found at its first index and skipped at later
        // indices.
        let is_last = |&index: &usize| trie.find(tokens.get(index)) == Some(tokens.ids()[index]);
        let mut kept: Vec<usize> = (0..tokens.ids().len()).filter(is_last).collect();
        kept.sort_by_key(|&index| tokens.ids()[index]);
        let mut sorted = TokenList::default();
        for index in kept {
            let (text, id) = (tokens.get(index), tokens.ids()[index]);
            match sorted.last() {
                Some((last, same)) if same == id && last == text => continue,
                Some((last, same)) if same == id => return Err(shared(last, text, id)),
                _ => sorted.push(text, id),
            }
        }
        Ok(Self { tokens: sorted, trie, repeats: false })
    }

    /// Builds the vocabulary from a list, whose indices are the ids. Tokens may repeat.
    pub(crate) fn of_list(tokens: TokenList) -> Result<Self> {
        let trie = Trie::new(tokens.iter())?;
        let repeats = tokens.iter().any(|(text, id)| trie.find(text) != Some(id));
        Ok(Self { tokens, trie, repeats })
    }

    pub(crate) fn list(&self) -> &TokenList {
        &self.tokens
    }

    pub(crate) fn trie(&self) -> &Trie {
        &self.trie
    }

    pub(crate) fn size(&self) -> usize {
        self.tokens.ids().len()
    }

    pub(crate) fn id(&self, token: &str) -> Option<u32> {
        self.trie.find(token)
    }

    pub(crate) fn token(&self, id: u32) -> Option<&str> {
        let ids = self.tokens.ids();
        let index = match ids.get(id as usize) {
            Some(&same) if same == id => id as usize,
            _ => ids.binary_search(&id).ok()?,
        };
        Some(self.tokens.get(index))
    }

    pub(crate) fn max_id(&self) -> Option<u32> {
        self.tokens.ids().last().copied()
    }

    /// Returns every token and its id, by ascending id; for a repeated token, only the last id.
    pub(crate) fn entries(&self) -> Vec<(String, u32)> {
        let kept =
            self.tokens.iter().filter(|&(text, id)| !self.repeats || self.id(text) == Some(id));
        kept.map(|(text, id)| (text.to_owned(), id)).collect()
    }

    /// Iterates over every token and its id, by ascending id.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.tokens.iter()
    }

    /// Returns [`LOST`] unless each byte has a token, in the vocabulary or in `fallback`.
    pub(crate) fn why_bytes_are_lost(
        &self,
        is_byte_level: bool,
        fallback: &[Option<u32>],
    ) -> Option<String> {
        let has_bytes = match is_byte_level {
            true => (0..=255).all(|byte| !is_in_utf8(byte) || self.id(&text_of(&[byte])).is_some()),
            false => !fallback.is_empty() && fallback.iter().all(Option::is_some),
        };
        (!has_bytes).then(|| LOST.into())
    }

    /// Looks up the token for each byte by name; `None` for a byte without a token.
    pub(crate) fn byte_tokens(&self) -> Vec<Option<u32>> {
        let mut ids = Vec::with_capacity(256);
        (0..=255).for_each(|byte| ids.push(self.id(&super::header::byte_name(byte))));
        ids
    }
}

/// Writes the tokens as a map.
impl serde::Serialize for Vocab {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

fn shared(first: &str, second: &str, id: u32) -> Error {
    let reason =
        format!("two tokens of one id, as {first:?} and {second:?} of {id}, are not supported");
    Error::refused("model.vocab", reason)
}
