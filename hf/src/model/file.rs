//! Reads and writes the field `model` of a file.

use serde::Deserialize;
use serde::ser::{Serialize, SerializeSeq, Serializer};

use super::bpe::Bpe;
use super::header::Header;
use super::token_lists::{MergeList, TokenList, read_vocab};
use super::{Model, Questions};
use crate::error::{Error, Result};
use crate::split::Split;

/// The model of a file, as it is read.
#[derive(Debug, Deserialize)]
pub(crate) struct ModelFile {
    r#type: Option<String>,
    #[serde(flatten)]
    header: Header,
    /// `None` for the lists of other models than BPE.
    #[serde(default, deserialize_with = "read_vocab")]
    vocab: Option<TokenList>,
    merges: Option<MergeList>,
}

impl ModelFile {
    /// Fails for a model that this crate cannot run.
    pub(crate) fn check(&self) -> Result<()> {
        let refused =
            |kind| Error::refused("model.type", format!("{kind} is not supported, only BPE"));
        match self.r#type.as_deref() {
            None | Some("BPE") if self.vocab.is_some() && self.merges.is_some() => {
                self.header.check()
            }
            None | Some("BPE") => Err(refused("a model with other lists".to_owned())),
            Some(other) => Err(refused(format!("{other:?}"))),
        }
    }

    /// Builds the model, which must have passed [`ModelFile::check`].
    pub(crate) fn build(self, split: &Split) -> Result<Model> {
        let (tokens, merges) = (self.vocab.unwrap_or_default(), self.merges.unwrap_or_default());
        let splitter = split.splitter()?;
        let bpe = Bpe::new(self.header, &tokens, &merges, split.is_byte_level(), splitter)?;
        Ok(Model::Bpe(bpe))
    }
}

impl Serialize for Model {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Bpe(bpe) | Self::Encoding(bpe) => bpe.serialize(serializer),
        }
    }
}

/// [`Bpe`] in a file.
#[derive(serde::Serialize)]
struct Written<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    header: &'a Header,
    #[serde(serialize_with = "write_vocab")]
    vocab: &'a Bpe,
    #[serde(serialize_with = "write_merges")]
    merges: &'a Bpe,
}

impl Serialize for Bpe {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let header = self.header();
        Written { r#type: "BPE", header, vocab: self, merges: self }.serialize(serializer)
    }
}

fn write_vocab<S: Serializer>(bpe: &Bpe, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_map(bpe.vocab())
}

fn write_merges<S: Serializer>(bpe: &Bpe, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    let mut merges = serializer.serialize_seq(None)?;
    bpe.each_merge(|left, right| merges.serialize_element(&(left, right)))?;
    merges.end()
}
