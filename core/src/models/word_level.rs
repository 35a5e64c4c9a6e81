//! WordLevel: each piece is a token, or unknown.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::vocab::Vocab;
use super::words::{CachedVocab, Words, leave_out_text, missing_unknown};
use super::{Found, FoundToken};
use crate::error::Result;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Fields {
    /// Token that replaces words outside the vocabulary.
    pub(crate) unk_token: String,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
pub(crate) struct WordLevel {
    #[serde(rename = "vocab")]
    state: CachedVocab,
    #[serde(flatten)]
    fields: Fields,
    #[serde(skip)]
    unknown: Option<u32>,
}

impl WordLevel {
    pub(crate) fn new(fields: Fields, vocab: Arc<Vocab>) -> Self {
        let unknown = vocab.id(&fields.unk_token);
        Self { fields, state: CachedVocab::new(vocab), unknown }
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
}

impl Words for WordLevel {
    fn state(&self) -> &CachedVocab {
        &self.state
    }

    fn each_token(
        &self,
        piece: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        found: Found<'_>,
    ) -> Result<()> {
        let id = self.state.vocab.id(piece).filter(|&id| !is_barred(id, 0..piece.len()));
        match id.or(self.unknown) {
            Some(id) => found(FoundToken::new(id, 0..piece.len())),
            None => Err(missing_unknown("unk_token", &not_known(&self.fields.unk_token), piece)),
        }
    }

    fn why_other_bytes(&self, _: bool) -> Option<String> {
        Some(leave_out_text("WordLevel"))
    }

    fn unknown(&self) -> Option<u32> {
        self.unknown
    }
}

/// Error reason: the unknown token is not in the vocabulary.
pub(crate) fn not_known(unk_token: &str) -> String {
    format!("{unk_token:?} is not in the vocabulary")
}
