//! Models: turn pieces of text into tokens.
//!
//! A tokenizer asks its model [`Questions`], and knows nothing else of it. To add a model type, write a
//! file with the answers, add a variant of [`Model`], and read its fields in `file`.

mod bpe;
mod bpe_encode;
mod build;
mod characters;
mod cuts;
mod file;
mod header;
mod merge_list;
mod token_lists;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bpe_core::fingerprint::Digest;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::split::Split;
use bpe::Bpe;
pub(crate) use file::ModelFile;

/// A model that is ready to run.
#[derive(Debug)]
pub(crate) enum Model {
    /// Byte pair encoding by the lists of a file.
    Bpe(Bpe),
    /// An encoding of the core, which finds special tokens itself.
    Encoding(Bpe),
}

/// Takes the id of each token of a piece and the number of bytes of the piece that it covers.
pub(crate) type Found<'a> = &'a mut dyn FnMut(u32, usize) -> Result<()>;

/// The questions that a tokenizer asks its model.
pub(crate) trait Questions: fmt::Debug + Send + Sync {
    /// The encoding of the core that does the work, with its caches and its splitter.
    fn core(&self) -> &Arc<bpe_core::Encoding>;

    /// Appends the ids of a stretch of text, which `split` cuts. `is_first` is true if it begins the
    /// text.
    fn encode_stretch(
        &self,
        text: &str,
        is_first: bool,
        split: &Split,
        ids: &mut Vec<u32>,
    ) -> Result<()>;

    /// Appends the ids of a stretch whose spaces become marks, after one if `is_prefixed`, and that
    /// is not cut. Returns false if the model has no shorter way than these steps.
    fn encode_marked(&self, text: &str, is_prefixed: bool, ids: &mut Vec<u32>) -> Result<bool>;

    /// Encodes one piece. Calls `found` with each token until it fails.
    ///
    /// As in `tokenizers`, characters that become no token are left out: tokens cover the bytes of
    /// the rest.
    fn encode_piece(&self, piece: &str, found: Found<'_>) -> Result<()>;

    /// The number of tokens.
    fn size(&self) -> usize;

    fn token_to_id(&self, token: &str) -> Option<u32>;

    fn id_to_token(&self, id: u32) -> Option<String>;

    /// The bytes that a token represents, if merging makes it; `None` if tokens are texts.
    fn token_bytes(&self, id: u32) -> Option<&[u8]>;

    /// The largest id; `None` without tokens.
    fn max_id(&self) -> Option<u32>;

    /// Every token and its id, by ascending id.
    fn vocab(&self) -> Vec<(String, u32)>;

    /// The tokens and ids, if tokens merge in the order of ids; otherwise fails.
    fn ranks(&self) -> Result<Vec<(&[u8], u32)>>;

    /// Whether text may become the token with this id.
    fn may_make(&self, id: u32) -> bool;

    /// Whether encoding fails for some texts.
    fn may_fail(&self) -> bool;

    /// Whether the tokens of a stretch are its bytes, one after the other.
    fn keeps_bytes(&self, text: &str) -> bool;

    /// Whether a text can be cut between these two characters without changing a token; `None` if
    /// no two characters decide that.
    fn are_apart(&self, before: char, after: char) -> Option<bool>;

    /// The digest of all that decides ids, which `sha256` computes on the first call.
    fn digest(&self, sha256: &mut dyn FnMut(&[u8]) -> Result<Digest>) -> Result<Digest>;
}

impl Deref for Model {
    type Target = dyn Questions;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Bpe(bpe) | Self::Encoding(bpe) => bpe,
        }
    }
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

    /// Copies the model for another split of text.
    pub(crate) fn with_split(&self, split: &Split) -> Result<Self> {
        let Self::Bpe(bpe) = self else { return Err(no_fields("pre_tokenizer")) };
        bpe.with_split(split).map(Self::Bpe)
    }

    /// Copies the model with another value of a field, given as in the JSON.
    pub(crate) fn with_field(&self, name: &str, value: Value) -> Result<Self> {
        let Self::Bpe(bpe) = self else { return Err(no_fields("model")) };
        bpe.with_header(bpe.header().with(name, value)?).map(Self::Bpe)
    }
}

/// The error for setting a part of a tokenizer that was made from an encoding.
pub(crate) fn no_fields(name: &str) -> Error {
    let reason = "a tokenizer made from an Encoding has no parts to set; write its tokenizer.json, and \
                  set them in the tokenizer of that file";
    Error::refused(name, reason)
}
