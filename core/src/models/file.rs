//! Reads and writes the `model` field of a file.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::Model;
use super::header::Header;
use super::piece;
use super::sentencepiece::SentencePiece;
use super::token_lists::{MergeList, TokenList, VocabFile, read_merges};
use super::unigram::{self, Unigram};
use super::vocab::Vocab;
use super::word_level::{self, WordLevel};
use super::word_piece::{self, WordPiece};
use super::write_bpe::write;
use crate::components::split::Split;
use crate::error::{Error, Result};

/// The model of a file, as read.
#[derive(Debug, Deserialize)]
pub(crate) struct ModelFile {
    #[serde(default, deserialize_with = "present")]
    r#type: Option<Value>,
    vocab: Option<VocabFile>,
    #[serde(default, deserialize_with = "read_merges")]
    merges: Option<MergeList>,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// Reads a field as `Some`, even if the field is null.
fn present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A model type with its fields and lists.
#[derive(Debug)]
pub(crate) enum Parts {
    Bpe(Header, TokenList, MergeList),
    WordPiece(word_piece::Fields, TokenList),
    WordLevel(word_level::Fields, TokenList),
    Unigram(unigram::Fields, TokenList, Vec<f64>),
    SentencePiece(piece::Fields, TokenList, Vec<f64>),
}

impl ModelFile {
    /// Reads the fields. Fails for a model that this crate does not support.
    pub(crate) fn parts(mut self) -> Result<Parts> {
        let kind = match &self.r#type {
            None => self.likely_type()?,
            Some(Value::String(name)) => name.clone(),
            Some(other) => return Err(unsupported(&other.to_string())),
        };
        match &*kind {
            "BPE" => {
                let header: Header = self.fields()?;
                let merges = self.merges.take().ok_or_else(|| missing("merges"))?;
                Ok(Parts::Bpe(header, map(self.vocab.take())?, merges))
            }
            "WordPiece" => Ok(Parts::WordPiece(self.fields()?, map(self.vocab.take())?)),
            "WordLevel" => Ok(Parts::WordLevel(self.fields()?, map(self.vocab.take())?)),
            "Unigram" => {
                let (tokens, scores) = list(self.vocab.take())?;
                Ok(Parts::Unigram(self.fields()?, tokens, scores))
            }
            "SentencePiece" => {
                let (tokens, scores) = list(self.vocab.take())?;
                Ok(Parts::SentencePiece(self.fields()?, tokens, scores))
            }
            other => Err(unsupported(&format!("{other:?}"))),
        }
    }

    /// Infers the type of a model that does not name one: the first type whose fields are all
    /// present, in the order of `tokenizers`.
    fn likely_type(&self) -> Result<String> {
        let is_map = matches!(self.vocab, Some(VocabFile::Map(_)));
        let kind = if is_map && self.merges.is_some() && self.fields::<Header>().is_ok() {
            "BPE"
        } else if is_map && self.fields::<word_piece::Fields>().is_ok() {
            "WordPiece"
        } else if is_map && self.fields::<word_level::Fields>().is_ok() {
            "WordLevel"
        } else if !is_map && self.vocab.is_some() && self.fields::<unigram::Fields>().is_ok() {
            "Unigram"
        } else {
            return Err(Error::refused(
                "model.type",
                "a model without a type, whose fields match no model, is not supported",
            ));
        };
        Ok(kind.to_owned())
    }

    fn fields<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_value(Value::Object(self.fields.clone()))
            .map_err(|error| Error::Invalid(format!("model: {error}")))
    }
}

impl Parts {
    pub(crate) fn build(self, split: &Split) -> Result<Model> {
        Ok(match self {
            Self::Bpe(header, tokens, merges) => Model::bpe(header, &tokens, &merges, split)?,
            Self::WordPiece(fields, tokens) => {
                Model::WordPiece(WordPiece::new(fields, Arc::new(Vocab::new(&tokens)?)))
            }
            Self::WordLevel(fields, tokens) => {
                Model::WordLevel(WordLevel::new(fields, Arc::new(Vocab::new(&tokens)?)))
            }
            Self::Unigram(fields, tokens, scores) => {
                Model::Unigram(Unigram::of_list(fields, tokens, scores)?)
            }
            Self::SentencePiece(fields, tokens, scores) => {
                Model::SentencePiece(SentencePiece::new(fields, tokens, &scores, split)?)
            }
        })
    }
}

fn map(vocab: Option<VocabFile>) -> Result<TokenList> {
    match vocab {
        Some(VocabFile::Map(tokens)) => Ok(tokens),
        Some(VocabFile::Scores(..)) => Err(Error::Invalid(
            "model.vocab: a list, where the model has a map of tokens and ids".into(),
        )),
        None => Err(missing("vocab")),
    }
}

fn list(vocab: Option<VocabFile>) -> Result<(TokenList, Vec<f64>)> {
    match vocab {
        Some(VocabFile::Scores(tokens, scores)) => Ok((tokens, scores)),
        Some(VocabFile::Map(_)) => Err(Error::Invalid(
            "model.vocab: a map, where the model has a list of tokens and scores".into(),
        )),
        None => Err(missing("vocab")),
    }
}

fn missing(field: &str) -> Error {
    Error::Invalid(format!("model: missing field `{field}`"))
}

fn unsupported(kind: &str) -> Error {
    Error::refused(
        "model.type",
        format!("{kind} is not supported, only BPE, WordPiece, WordLevel and Unigram"),
    )
}

impl Serialize for Model {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Bpe(bpe) => write(bpe, serializer),
            Self::WordBpe(bpe) => bpe.serialize(serializer),
            Self::WordPiece(model) => model.serialize(serializer),
            Self::WordLevel(model) => model.serialize(serializer),
            Self::Unigram(model) => model.serialize(serializer),
            Self::SentencePiece(model) => model.serialize(serializer),
        }
    }
}
