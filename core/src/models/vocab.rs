//! The tokens of a model and their ids, found both ways.

use std::fmt;

use serde::ser::Serializer;

use super::LOST;
use super::token_lists::TokenList;
use crate::components::bytes::{is_in_utf8, text_of};
use crate::components::trie::Trie;
use crate::error::{Error, Result};

/// Tokens and their ids.
pub(crate) struct Vocab {
    /// By ascending id.
    tokens: TokenList,
    trie: Trie,
    /// Whether a text has several ids, of which it becomes the last.
    repeats: bool,
}

impl fmt::Debug for Vocab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocab").field("size", &self.size()).finish_non_exhaustive()
    }
}

impl Vocab {
    /// Makes the vocabulary of a map. Of tokens that repeat, only the last one counts.
    ///
    /// Fails if two tokens have one id.
    pub(crate) fn new(tokens: &TokenList) -> Result<Self> {
        let trie = Trie::new(tokens.iter())?;
        let mut kept: Vec<usize> = Vec::with_capacity(tokens.ids().len());
        kept.extend((0..tokens.ids().len()).filter(|&index| {
            // A token that repeats with one id is found at its first place and skipped at others.
            trie.find(tokens.get(index)) == Some(tokens.ids()[index])
        }));
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

    /// Makes the vocabulary of a list, whose places are the ids. Tokens may repeat.
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

    /// Every token and its id, by ascending id; only the last of those that repeat.
    pub(crate) fn entries(&self) -> Vec<(String, u32)> {
        let kept =
            self.tokens.iter().filter(|&(text, id)| !self.repeats || self.id(text) == Some(id));
        kept.map(|(text, id)| (text.to_owned(), id)).collect()
    }

    /// Every token and its id, by ascending id.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.tokens.iter()
    }

    /// Whether each byte that UTF-8 has is a token, by the character that represents it.
    pub(crate) fn represents_all_bytes(&self) -> bool {
        (0..=255).all(|byte| !is_in_utf8(byte) || self.id(&text_of(&[byte])).is_some())
    }

    /// [`LOST`] without a token for each byte, of which `fallback` has those by name.
    pub(crate) fn why_bytes_are_lost(
        &self,
        is_byte_level: bool,
        fallback: &[Option<u32>],
    ) -> Option<String> {
        let has_bytes = match is_byte_level {
            true => self.represents_all_bytes(),
            false => !fallback.is_empty() && fallback.iter().all(Option::is_some),
        };
        (!has_bytes).then(|| LOST.into())
    }

    /// The tokens for bytes, by their names; `None` for a byte without one.
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
