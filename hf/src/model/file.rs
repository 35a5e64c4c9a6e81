//! Reads and writes the field `model` of a file.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::{Map, Value};

use super::Model;
use super::bpe::Bpe;
use super::header::Header;
use super::token_lists::{Listed, Lists, Merges, Tokens, Vocab};
use crate::error::{Error, Result};
use crate::io::insert;
use crate::split::Split;

/// The model of a file, as it is read.
pub(crate) struct ModelFile {
    /// All fields but the lists.
    fields: Map<String, Value>,
    /// `None` for other lists than those of BPE.
    lists: Option<Lists>,
}

impl ModelFile {
    /// The fields. Fails for a model that this crate cannot run.
    pub(crate) fn header(&self) -> Result<Header> {
        let kind = match self.fields.get("type") {
            None | Some(Value::Null) => "BPE",
            Some(kind) => kind.as_str().unwrap_or_default(),
        };
        if kind != "BPE" || self.lists.is_none() {
            let kind =
                if kind == "BPE" { "a model other than BPE".into() } else { format!("{kind:?}") };
            let reason = "is not supported, only BPE";
            return Err(Error::refused("model.type", format!("{kind} {reason}")));
        }
        let header = serde_json::from_value(Value::Object(self.fields.clone()));
        let header: Header = header.map_err(|error| Error::Invalid(format!("model: {error}")))?;
        header.check()?;
        Ok(header)
    }

    /// Builds the model. `header` is from [`ModelFile::header`].
    pub(crate) fn build(self, header: Header, split: &Split) -> Result<Model> {
        let lists = self.lists.unwrap_or_else(|| Lists::Texts(<_>::default(), <_>::default()));
        let lists = if split.is_byte_level() { lists.in_bytes()? } else { lists };
        Ok(Model::Bpe(Bpe::new(header, lists, split.splitter()?)?))
    }
}

/// Reads a model, and its lists in the form for pieces whose characters represent bytes, or for any.
#[derive(Clone, Copy)]
pub(crate) struct ModelReader {
    pub(crate) is_byte_level: bool,
}

impl<'de> DeserializeSeed<'de> for ModelReader {
    type Value = ModelFile;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ModelFile, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ModelReader {
    type Value = ModelFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a model")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ModelFile, A::Error> {
        Ok(if self.is_byte_level {
            let (fields, lists) = read(map)?;
            ModelFile { fields, lists: lists.map(|(tokens, merges)| Lists::Bytes(tokens, merges)) }
        } else {
            let (fields, lists) = read(map)?;
            ModelFile { fields, lists: lists.map(|(tokens, merges)| Lists::Texts(tokens, merges)) }
        })
    }
}

/// The fields, and both lists.
type Read<T, M> = (Map<String, Value>, Option<(T, M)>);

fn read<'de, T: Tokens, M: Merges, A: MapAccess<'de>>(mut map: A) -> Result<Read<T, M>, A::Error> {
    let (mut fields, mut tokens, mut merges) = (Map::new(), Vocab(None), None);
    while let Some(name) = map.next_key::<String>()? {
        match &*name {
            "vocab" => tokens = map.next_value()?,
            "merges" => merges = map.next_value::<Option<Listed<M>>>()?,
            _ => insert(&mut fields, name, map.next_value()?)?,
        }
    }
    Ok((fields, tokens.0.zip(merges.map(|merges| merges.0))))
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
