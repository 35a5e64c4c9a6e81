//! WordPiece: takes the longest token at the start of the word, then repeatedly the longest
//! prefixed token at the start of the rest. If no token matches the rest, the whole word is
//! unknown.

use std::ops::Range;
use std::sync::Arc;

use crate::polling::poll;
use serde::{Deserialize, Serialize};

use super::vocab::Vocab;
use super::word_level::not_known;
use super::words::{CachedVocab, Words, leave_out_text, missing_unknown};
use super::{Found, FoundToken};
use crate::components::trie::{Node, Trie};
use crate::error::Result;

/// Fields of the model in a file, in order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Fields {
    /// Token that replaces words that cannot be split into tokens.
    pub(crate) unk_token: String,
    /// Prefix of tokens that continue a word.
    pub(crate) continuing_subword_prefix: String,
    /// Words with more characters are unknown.
    pub(crate) max_input_chars_per_word: usize,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
pub(crate) struct WordPiece {
    #[serde(flatten)]
    fields: Fields,
    #[serde(rename = "vocab")]
    state: CachedVocab,
    #[serde(skip)]
    unknown: Option<u32>,
    /// Trie node of the prefix; `None` if no token begins with the prefix.
    #[serde(skip)]
    rest: Option<Node>,
}

impl WordPiece {
    pub(crate) fn new(fields: Fields, vocab: Arc<Vocab>) -> Self {
        let unknown = vocab.id(&fields.unk_token);
        let rest = vocab.trie().walk(Trie::ROOT, fields.continuing_subword_prefix.as_bytes());
        Self { fields, state: CachedVocab::new(vocab), unknown, rest }
    }

    /// Copies the model, with empty caches.
    pub(crate) fn copied(&self) -> Self {
        Self::new(self.fields.clone(), self.state.vocab.clone())
    }

    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    pub(crate) fn vocab(&self) -> &Arc<Vocab> {
        &self.state.vocab
    }

    /// Calls `found` with the id and the bytes of each token of a word. Returns false if the word
    /// is unknown, possibly after calling `found`.
    fn each_part(
        &self,
        word: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        mut found: impl FnMut(u32, Range<usize>) -> Result<()>,
    ) -> Result<bool> {
        let most = self.fields.max_input_chars_per_word;
        if word.len() > most && word.chars().count() > most {
            return Ok(false);
        }
        let (mut node, mut start) = (Some(Trie::ROOT), 0);
        while start < word.len() {
            let (Some(first), mut longest) = (node, None) else { return Ok(false) };
            self.state.vocab.trie().each_prefix(first, &word.as_bytes()[start..], |id, length| {
                if !is_barred(id, start..start + length) {
                    longest = Some((id, start + length));
                }
            });
            let Some((id, end)) = longest else { return Ok(false) };
            poll(end - start)?;
            found(id, start..end)?;
            (node, start) = (self.rest, end);
        }
        Ok(true)
    }

    /// Returns the token for an unknown word.
    fn known_unknown(&self, word: &str) -> Result<u32> {
        let missing = || missing_unknown("unk_token", &not_known(&self.fields.unk_token), word);
        self.unknown.ok_or_else(missing)
    }
}

impl Words for WordPiece {
    fn state(&self) -> &CachedVocab {
        &self.state
    }

    fn append_word(&self, piece: &str, ids: &mut Vec<u32>) -> Result<()> {
        let before = ids.len();
        if self.each_part(
            piece,
            |_, _| false,
            |id, _| {
                ids.push(id);
                Ok(())
            },
        )? {
            return Ok(());
        }
        ids.truncate(before);
        ids.push(self.known_unknown(piece)?);
        Ok(())
    }

    fn each_token(
        &self,
        piece: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        found: Found<'_>,
    ) -> Result<()> {
        let mut tokens = Vec::new();
        let take = |id, span| {
            tokens.push(FoundToken::new(id, span));
            Ok(())
        };
        match self.each_part(piece, is_barred, take)? {
            true => tokens.into_iter().try_for_each(found),
            false => found(FoundToken::new(self.known_unknown(piece)?, 0..piece.len())),
        }
    }

    fn why_other_bytes(&self, _: bool) -> Option<String> {
        Some(leave_out_text("WordPiece"))
    }

    fn unknown(&self) -> Option<u32> {
        self.unknown
    }
}
