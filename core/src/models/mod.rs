//! Models turn pieces of text into tokens.
//!
//! A pipeline uses its model through [`Questions`]; shortcuts that few models have are methods of
//! [`Model`]. To add a model type, write a file with the answers, add a variant of [`Model`], and
//! read its fields in `file`.

mod bpe;
mod bpe_encode;
mod build;
mod characters;
mod cuts;
mod file;
mod header;
mod lattice;
mod pair_table;
mod piece;
mod pieces;
mod random;
mod safe_words;
mod scored;
mod scores;
mod sentencepiece;
mod sentencepiece_bpe;
mod token_lists;
mod unigram;
mod viterbi;
mod vocab;
mod word_bpe;
mod word_level;
mod word_piece;
mod words;
mod write_bpe;

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::Vocabulary;
use crate::direct::Direct;
use crate::fingerprint::Digest;
use crate::pool::Pool;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::components::bytes::bytes_of;
use crate::components::sentencepiece::Normalizer;
use crate::components::split::Split;
use crate::error::{Error, Result};
use bpe::Bpe;
pub(crate) use file::{ModelFile, Parts};
use header::Header;
pub use piece::Version;
pub(crate) use piece::{Algorithm, Fields as SentencePieceFields, PieceKind, kinds};
pub(crate) use random::Sampling;
use sentencepiece::SentencePiece;
use token_lists::MergeList;
pub(crate) use token_lists::TokenList;
use unigram::Unigram;
use word_bpe::WordBpe;
use word_level::WordLevel;
use word_piece::WordPiece;
use words::Words;
use write_bpe::Merging;

#[derive(Debug)]
pub(crate) enum Model {
    /// Byte pair encoding with the lists of a file.
    Bpe(Bpe),
    /// Byte pair encoding with merges that the core cannot express.
    WordBpe(WordBpe),
    WordPiece(WordPiece),
    WordLevel(WordLevel),
    Unigram(Unigram),
    /// A model from a SentencePiece `.model`.
    SentencePiece(SentencePiece),
}

/// A token of a piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundToken {
    pub(crate) id: u32,
    /// Bytes of the piece that the token covers.
    pub(crate) span: Range<usize>,
    /// Whether the token shows the text of the piece instead of the vocabulary's.
    pub(crate) shows_piece: bool,
}

impl FoundToken {
    /// Creates a token with the text of the vocabulary.
    pub(crate) fn new(id: u32, span: Range<usize>) -> Self {
        Self { id, span, shows_piece: false }
    }
}

/// Position of a run in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunPosition {
    /// At the start.
    First,
    /// After a special token.
    Later,
    /// Inside a run that is cached in chunks.
    Chunk,
}

/// Receives each token of a piece.
pub(crate) type Found<'a> = &'a mut dyn FnMut(FoundToken) -> Result<()>;

/// Tells whether the token with this id is excluded at these bytes of a piece.
pub(crate) type Barred<'a> = &'a dyn Fn(u32, Range<usize>) -> bool;

/// Reason why the tokens of a model without byte tokens may differ from the text in bytes.
pub(crate) const LOST: &str = "without bytes as tokens, characters outside the vocabulary are lost";

/// Questions that a tokenizer asks its model.
pub(crate) trait Questions: fmt::Debug + Send + Sync {
    /// Returns the workspaces that calls borrow, each with a cache.
    fn workspaces(&self) -> &Pool;

    /// Appends the ids of a run of text, which `split` cuts.
    fn encode_normalized(
        &self,
        text: &str,
        position: RunPosition,
        split: &Split,
        ids: &mut Vec<u32>,
    ) -> Result<()>;

    /// Encodes one piece without tokens that `barred` excludes at their position. Calls `found`
    /// with each token until it fails. Returns false, without a call, if the model cannot exclude
    /// tokens.
    ///
    /// As in `tokenizers`, characters for which BPE has no token are dropped: tokens cover only the
    /// remaining bytes.
    fn encode_piece(
        &self,
        piece: &str,
        barred: Option<Barred<'_>>,
        found: Found<'_>,
    ) -> Result<bool>;

    /// Returns the number of tokens.
    fn size(&self) -> usize;

    fn token_to_id(&self, token: &str) -> Option<u32>;

    fn id_to_token(&self, id: u32) -> Option<String>;

    /// Returns the largest id; `None` without tokens.
    fn max_id(&self) -> Option<u32>;

    /// Returns every token and its id, by ascending id.
    fn vocab(&self) -> Vec<(String, u32)>;

    /// Whether text may encode to the token with this id.
    fn may_make(&self, id: u32) -> bool;

    /// Whether encoding fails for some texts.
    fn may_fail(&self) -> bool;

    /// Returns why the bytes of tokens may differ from the text; `None` if they never differ under
    /// a byte-level decoder (`is_byte_level`) or a byte fallback decoder.
    fn why_other_bytes(&self, is_byte_level: bool) -> Option<String>;

    /// Returns the digest of all data that decides ids; `sha256` computes the digest on the first
    /// call.
    fn digest(&self, sha256: &mut dyn FnMut(&[u8]) -> Result<Digest>) -> Result<Digest>;
}

impl Deref for Model {
    type Target = dyn Questions;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Bpe(bpe) => bpe,
            Self::WordBpe(bpe) => bpe,
            Self::WordPiece(model) => model,
            Self::WordLevel(model) => model,
            Self::Unigram(model) => model,
            Self::SentencePiece(model) => model,
        }
    }
}

impl Model {
    /// Creates a model with the tokens and ids of a direct stage.
    pub(crate) fn of_direct(direct: Arc<Direct>) -> Self {
        Self::Bpe(Bpe::of_direct(direct))
    }

    /// Whether the model encodes each piece independently and deterministically.
    pub(crate) fn takes_words(&self) -> bool {
        match self {
            Self::Bpe(_) | Self::SentencePiece(_) => false,
            _ => self.sampling().is_none(),
        }
    }

    /// Whether the cache may have unnormalized text as keys.
    pub(crate) fn looks_up_runs(&self) -> bool {
        match self {
            Self::SentencePiece(model) => model.looks_up_runs(),
            _ => self.takes_words(),
        }
    }

    /// Appends the ids of a nonempty piece, if the model [takes words](Self::takes_words).
    pub(crate) fn append_word(&self, word: &str, ids: &mut Vec<u32>) -> Result<()> {
        match self {
            Self::Bpe(_) | Self::SentencePiece(_) => Ok(()),
            Self::WordBpe(bpe) => bpe.append_word(word, ids),
            Self::WordPiece(model) => model.append_word(word, ids),
            Self::WordLevel(model) => model.append_word(word, ids),
            Self::Unigram(model) => model.append_word(word, ids),
        }
    }

    /// Appends the ids of a run with a SentencePiece normalizer. Returns false if the model lacks a
    /// shortcut for these steps.
    pub(crate) fn encode_run(
        &self,
        run: &str,
        normalizer: &Normalizer,
        ids: &mut Vec<u32>,
    ) -> Result<bool> {
        match self {
            Self::SentencePiece(model) => model.encode_run(run, normalizer, ids),
            _ => Ok(false),
        }
    }

    /// Appends the ids of an uncut run whose spaces become marks, with a mark in front if
    /// `is_prefixed`. Returns false if the model lacks a shortcut for these steps.
    pub(crate) fn encode_marked(
        &self,
        text: &str,
        is_prefixed: bool,
        ids: &mut Vec<u32>,
    ) -> Result<bool> {
        match self {
            Self::Bpe(bpe) => bpe.encode_marked(text, is_prefixed, ids),
            Self::SentencePiece(model) => model.encode_marked(text, is_prefixed, ids),
            _ => Ok(false),
        }
    }

    /// Returns the byte pair encoding by ranks; `None` for every other model.
    pub(crate) fn bpe_by_ranks(&self) -> Option<&Bpe> {
        match self {
            Self::Bpe(bpe) => Some(bpe),
            _ => None,
        }
    }

    /// Returns the vocabulary if tokens merge in the order of ids; otherwise fails.
    pub(crate) fn ranks(&self) -> Result<&Arc<Vocabulary>> {
        let reason = "a model that does not merge cannot be part of an Encoding";
        self.bpe_by_ranks().ok_or_else(|| Error::refused("model.type", reason))?.ranks()
    }

    /// Whether text such as `<0x7E>` can become the byte token of that name.
    pub(crate) fn finds_byte_names(&self) -> bool {
        let as_whole = |header: &Header| header.byte_fallback && header.ignore_merges;
        match self {
            Self::Bpe(bpe) => as_whole(bpe.header()),
            Self::WordBpe(bpe) => as_whole(bpe.header()),
            Self::Unigram(model) => model.fields().byte_fallback,
            _ => false,
        }
    }

    /// Returns the token for unknown text, if its own spelling never encodes to it.
    pub(crate) fn unspelled(&self) -> Option<u32> {
        match self {
            Self::Bpe(bpe) => bpe.unspelled(),
            Self::SentencePiece(model) => model.unspelled(),
            _ => None,
        }
    }

    /// Whether a piece can be cut between these two characters without changing a token; `None` if
    /// two characters are not enough to decide.
    pub(crate) fn are_apart(&self, before: char, after: char) -> Option<bool> {
        match self {
            Self::Bpe(bpe) => bpe.are_apart(before, after),
            Self::SentencePiece(model) => model.are_apart(before, after),
            _ => self.sampling().is_none().then_some(false),
        }
    }

    /// Sampling settings; `None` if encoding is deterministic.
    pub(crate) fn sampling(&self) -> Option<&Sampling> {
        match self {
            Self::WordBpe(bpe) => bpe.sampling(),
            Self::Unigram(model) => model.sampling(),
            _ => None,
        }
    }

    /// Whether the model comes from a SentencePiece `.model`.
    pub(crate) fn is_sentencepiece(&self) -> bool {
        matches!(self, Self::SentencePiece(_))
    }

    /// Copies the model with an empty cache, for text that is normalized differently.
    pub(crate) fn with_empty_cache(&self, split: &Split) -> Result<Self> {
        match self {
            Self::WordBpe(bpe) => Ok(Self::WordBpe(bpe.copied())),
            _ => self.with_split(split),
        }
    }

    /// Copies the model for a different split of text.
    pub(crate) fn with_split(&self, split: &Split) -> Result<Self> {
        Ok(match self {
            Self::Bpe(bpe) => match bpe.with_split(split)? {
                Some(bpe) => Self::Bpe(bpe),
                None => Self::bpe_again(bpe, bpe.header().clone(), split)?,
            },
            Self::WordBpe(bpe) => Self::bpe_again(bpe, bpe.header().clone(), split)?,
            Self::WordPiece(model) => Self::WordPiece(model.copied()),
            Self::WordLevel(model) => Self::WordLevel(model.copied()),
            Self::Unigram(model) => Self::Unigram(model.copied()?),
            Self::SentencePiece(model) => Self::SentencePiece(model.with_split(split)?),
        })
    }

    /// Copies the model with a different value for one field, given as in the JSON.
    pub(crate) fn with_field(&self, name: &str, value: Value, split: &Split) -> Result<Self> {
        Ok(match self {
            Self::Bpe(bpe) => Self::bpe_again(bpe, bpe.header().with(name, value)?, split)?,
            Self::WordBpe(bpe) => Self::bpe_again(bpe, bpe.header().with(name, value)?, split)?,
            Self::WordPiece(model) => {
                let fields = with_field(model.fields(), name, value)?;
                Self::WordPiece(WordPiece::new(fields, model.vocab().clone()))
            }
            Self::WordLevel(model) => {
                let fields = with_field(model.fields(), name, value)?;
                Self::WordLevel(WordLevel::new(fields, model.vocab().clone()))
            }
            Self::Unigram(model) => {
                Self::Unigram(model.with_fields(model.fields().with(name, value)?)?)
            }
            Self::SentencePiece(_) => {
                let reason = "the file of a SentencePiece model sets its fields";
                return Err(Error::refused(format!("model.{name}"), reason));
            }
        })
    }

    /// Copies a Unigram model with new scores.
    pub(crate) fn with_scores(&self, scores: Vec<f64>) -> Result<Self> {
        match self {
            Self::Unigram(model) => model.with_scores(scores).map(Self::Unigram),
            _ => Err(Error::Invalid("model.type: only Unigram has scores".into())),
        }
    }

    /// Returns the type and the fields without lists, including fields that files lack.
    pub(crate) fn fields(&self) -> Result<Value> {
        match self {
            Self::Bpe(bpe) => bpe.header().fields(),
            Self::WordBpe(bpe) => bpe.header().fields(),
            Self::WordPiece(model) => fields("WordPiece", model.fields(), None),
            Self::WordLevel(model) => fields("WordLevel", model.fields(), None),
            Self::Unigram(model) => {
                fields("Unigram", model.fields(), Some(&model.fields().sampling))
            }
            Self::SentencePiece(model) => {
                let mut all = fields("SentencePiece", &model.settings(), None)?;
                all["unk_id"] = model.unspelled().into();
                Ok(all)
            }
        }
    }

    /// Builds a BPE model, which uses the core if the core can express the lists.
    pub(crate) fn bpe(
        header: Header,
        tokens: &TokenList,
        merges: &MergeList,
        split: &Split,
    ) -> Result<Self> {
        header.check()?;
        // The core needs single bytes or characters as tokens.
        let is_part = |text: &str| match split.is_byte_level() {
            true => bytes_of(text).is_some_and(|bytes| !bytes.is_empty()),
            false => !text.is_empty(),
        };
        if !WordBpe::is_needed(&header) && tokens.iter().any(|(text, _)| is_part(text)) {
            let (header, splitter) = (header.clone(), split.splitter()?);
            match Bpe::new(header, tokens, merges, split.is_byte_level(), splitter) {
                Err(Error::Unsupported { .. }) => {}
                bpe => return Ok(Self::Bpe(bpe?)),
            }
        }
        Ok(Self::WordBpe(WordBpe::new(header, tokens, merges)?))
    }

    /// Rebuilds a BPE model with a different header or split.
    fn bpe_again(bpe: &impl Merging, header: Header, split: &Split) -> Result<Self> {
        let (tokens, merges) = bpe.to_lists()?;
        Self::bpe(header, &tokens, &merges, split)
    }
}

/// Returns the fields of a model as JSON, with its type.
fn fields(kind: &str, fields: &impl Serialize, sampling: Option<&Sampling>) -> Result<Value> {
    let value = |error: serde_json::Error| Error::Invalid(error.to_string());
    let mut all = serde_json::to_value(fields).map_err(value)?;
    all["type"] = kind.into();
    if let Value::Object(more) = serde_json::to_value(sampling).map_err(value)? {
        more.into_iter().for_each(|(name, value)| all[name] = value);
    }
    Ok(all)
}

/// Copies the fields of a model, with a different value for one field, given as in the JSON.
///
/// Fails if there is no field of this name, or if the value has a different type.
fn with_field<T: Serialize + DeserializeOwned>(fields: &T, name: &str, value: Value) -> Result<T> {
    let invalid = |reason: String| Error::Invalid(format!("model.{name}: {reason}"));
    let mut json = serde_json::to_value(fields).map_err(|error| invalid(error.to_string()))?;
    match json.get_mut(name) {
        Some(place) => *place = value,
        None => return Err(invalid("the model has no such field".into())),
    }
    serde_json::from_value(json).map_err(|error| invalid(error.to_string()))
}
