//! Models: turn pieces of text into tokens.
//!
//! A tokenizer asks its model the questions of [`Model`], and knows nothing else of it. To add a model
//! type, write a file with the answers, add a variant, and read its fields in `file`.

mod bpe;
mod bpe_encode;
mod build;
mod characters;
mod cuts;
mod file;
mod header;
mod merge_list;
mod token_lists;

use std::sync::Arc;

use bpe_core::fingerprint::{Canonical, Digest};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::split::Split;
use bpe::Bpe;
pub(crate) use file::{ModelFile, ModelReader};

/// A model that is ready to run.
#[derive(Debug)]
pub(crate) enum Model {
    /// Byte pair encoding by the lists of a file.
    Bpe(Bpe),
    /// An encoding of the core, which finds special tokens itself.
    Encoding(Bpe),
}

/// Asks the model of each kind.
macro_rules! ask {
    ($model:expr, $question:ident($($argument:expr),*)) => {
        match $model {
            Model::Bpe(model) | Model::Encoding(model) => model.$question($($argument),*),
        }
    };
}

impl Model {
    pub(crate) fn of_encoding(encoding: Arc<bpe_core::Encoding>) -> Self {
        Self::Encoding(Bpe::of_encoding(encoding))
    }

    /// The encoding that the tokenizer was made from; `None` for a file.
    pub(crate) fn encoding(&self) -> Option<&Arc<bpe_core::Encoding>> {
        match self {
            Self::Bpe(_) => None,
            Self::Encoding(bpe) => Some(bpe.core()),
        }
    }

    /// The encoding of the core that does the work, with its caches and its splitter.
    pub(crate) fn core(&self) -> &Arc<bpe_core::Encoding> {
        ask!(self, core())
    }

    /// The same model for another split of text.
    pub(crate) fn with_split(&self, split: &Split) -> Result<Self> {
        Ok(Self::Bpe(ask!(self, with_split(split))?))
    }

    /// The same lists with another value of a field, as in the JSON.
    pub(crate) fn with_field(&self, name: &str, value: Value) -> Result<Self> {
        match self {
            Self::Bpe(bpe) => Ok(Self::Bpe(bpe.with_header(bpe.header().with(name, value)?)?)),
            Self::Encoding(_) => {
                let reason = "a tokenizer made from an Encoding has no fields of a model";
                Err(Error::refused(format!("model.{name}"), reason))
            }
        }
    }

    /// Appends the ids of a stretch of text, which `split` cuts. `is_first` is true if it begins the
    /// text.
    pub(crate) fn encode_stretch(
        &self,
        text: &str,
        is_first: bool,
        split: &Split,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        ask!(self, encode_stretch(text, is_first, split, ids))
    }

    /// Appends the ids of a stretch whose spaces become marks, after one if `is_prefixed`, and that
    /// is not cut. Returns false if the model has no shorter way than these steps.
    pub(crate) fn encode_marked(
        &self,
        text: &str,
        is_prefixed: bool,
        ids: &mut Vec<u32>,
    ) -> Result<bool> {
        ask!(self, encode_marked(text, is_prefixed, ids))
    }

    /// Encodes one piece. Calls `found` with the id of each token and the bytes of the piece that it
    /// covers, until it fails.
    ///
    /// As in `tokenizers`, characters that become no token are left out: the bytes are those of the
    /// rest.
    pub(crate) fn encode_piece(
        &self,
        piece: &str,
        found: impl FnMut(u32, usize) -> Result<()>,
    ) -> Result<()> {
        ask!(self, encode_piece(piece, found))
    }

    /// The number of tokens.
    pub(crate) fn size(&self) -> usize {
        ask!(self, size())
    }

    pub(crate) fn token_to_id(&self, token: &str) -> Option<u32> {
        ask!(self, token_to_id(token))
    }

    pub(crate) fn id_to_token(&self, id: u32) -> Option<String> {
        ask!(self, id_to_token(id))
    }

    /// The bytes that a token represents, if merging makes it; `None` if tokens are texts.
    pub(crate) fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        ask!(self, token_bytes(id))
    }

    /// The largest id; `None` without tokens.
    pub(crate) fn max_id(&self) -> Option<u32> {
        ask!(self, max_id())
    }

    /// Every token and its id, by ascending id.
    pub(crate) fn vocab(&self) -> Vec<(String, u32)> {
        ask!(self, vocab())
    }

    /// The tokens and ids, if tokens merge in the order of ids; otherwise fails.
    pub(crate) fn ranks(&self) -> Result<Vec<(&[u8], u32)>> {
        ask!(self, ranks())
    }

    /// Whether text may become the token with this id.
    pub(crate) fn may_make(&self, id: u32) -> bool {
        ask!(self, may_make(id))
    }

    /// Whether encoding fails for some texts.
    pub(crate) fn may_fail(&self) -> bool {
        ask!(self, may_fail())
    }

    /// Whether the tokens of a stretch are its bytes, one after the other.
    pub(crate) fn keeps_bytes(&self, text: &str) -> bool {
        ask!(self, keeps_bytes(text))
    }

    /// Whether a text can be cut between these two characters without changing a token; `None` if
    /// no two characters decide that.
    pub(crate) fn are_apart(&self, before: char, after: char) -> Option<bool> {
        ask!(self, are_apart(before, after))
    }

    /// The SHA-256 of the canonical form, which `make` computes on the first call.
    pub(crate) fn digest(&self, make: impl FnOnce(Canonical) -> Result<Digest>) -> Result<Digest> {
        ask!(self, digest(make))
    }
}
