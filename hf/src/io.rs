//! Reads and writes whole files.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::{Map, Value};

use crate::added::{AddedTokenWithId, AddedTokens};
use crate::error::{Error, Result};
use crate::model::{ModelFile, ModelReader};
use crate::spec::{Component, Padding, PreTokenizer, Truncation};
use crate::split::Split;
use crate::tokenizer::Tokenizer;

/// A file without its model.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Rest {
    version: Option<String>,
    #[serde(default)]
    truncation: Option<Truncation>,
    #[serde(default)]
    padding: Option<Padding>,
    #[serde(default)]
    added_tokens: Vec<AddedTokenWithId>,
    #[serde(default)]
    normalizer: Option<Value>,
    #[serde(default)]
    pre_tokenizer: Option<Value>,
    #[serde(default)]
    post_processor: Option<Value>,
    #[serde(default)]
    decoder: Option<Value>,
}

/// The fields of a file. Its pre-tokenizer, which is usually before the model, says how to read the
/// lists of the model.
struct File {
    rest: Map<String, Value>,
    model: ModelFile,
}

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(FileVisitor)
    }
}

struct FileVisitor;

impl<'de> Visitor<'de> for FileVisitor {
    type Value = File;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the components of a tokenizer")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<File, A::Error> {
        let (mut rest, mut model) = (Map::new(), None);
        while let Some(name) = map.next_key::<String>()? {
            if name != "model" {
                insert(&mut rest, name, map.next_value()?)?;
                continue;
            }
            let pre_tokenizer = read::<PreTokenizer>(rest.get("pre_tokenizer"), "").ok().flatten();
            let is_byte_level = pre_tokenizer.is_some_and(|spec| spec.represents_bytes(false));
            model = Some(map.next_value_seed(ModelReader { is_byte_level })?);
        }
        let model = model.ok_or_else(|| de::Error::missing_field("model"))?;
        Ok(File { rest, model })
    }
}

/// Inserts a field that must be new.
pub(crate) fn insert<E: de::Error>(
    fields: &mut Map<String, Value>,
    name: String,
    value: Value,
) -> std::result::Result<(), E> {
    if fields.contains_key(&name) {
        return Err(E::custom(format!("duplicate field `{name}`")));
    }
    fields.insert(name, value);
    Ok(())
}

fn read<C: Component>(value: Option<&Value>, path: &str) -> Result<Option<C>> {
    value.filter(|value| !value.is_null()).map(|value| C::read(value, path)).transpose()
}

impl Tokenizer {
    /// Reads the JSON of a file.
    ///
    /// Fails with [`Error::Unsupported`] if the file requires a feature that cannot be exact.
    pub fn from_json(json: &str) -> Result<Self> {
        let malformed = |error| Error::Invalid(format!("not a tokenizer file: {error}"));
        let File { rest, model } = serde_json::from_str(json).map_err(malformed)?;
        let rest: Rest = serde_json::from_value(Value::Object(rest)).map_err(malformed)?;
        if let Some(version) = rest.version.as_deref().filter(|&version| version != "1.0") {
            return Err(Error::Invalid(format!("version: Unknown tokenizer version '{version}'")));
        }
        let header = model.header()?;
        let normalizer = read(rest.normalizer.as_ref(), "normalizer")?;
        let split = Split::new(read(rest.pre_tokenizer.as_ref(), "pre_tokenizer")?)?;
        let processor = read(rest.post_processor.as_ref(), "post_processor")?;
        let decoder = read(rest.decoder.as_ref(), "decoder")?;
        let model = model.build(header, &split)?;
        let mut tokenizer = Self::with(model, AddedTokens::default(), split);
        tokenizer.set_normalizer(normalizer)?;
        tokenizer.set_post_processor(processor)?;
        tokenizer.set_decoder(decoder)?;
        tokenizer.restore_truncation(rest.truncation);
        tokenizer.set_padding(rest.padding);
        tokenizer.add_tokens(rest.added_tokens.into_iter().map(|added| added.token).collect())?;
        Ok(tokenizer)
    }

    /// Writes the JSON of a file from which `tokenizers` reads the same tokenizer.
    pub fn to_json(&self, pretty: bool) -> Result<String> {
        let written =
            if pretty { serde_json::to_string_pretty(self) } else { serde_json::to_string(self) };
        written.map_err(|error| Error::Invalid(error.to_string()))
    }
}

impl Serialize for Tokenizer {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let added: Vec<AddedTokenWithId> = self
            .added_tokens_by_id()
            .into_iter()
            .map(|(id, token)| AddedTokenWithId { id, token: token.clone() })
            .collect();
        let mut file = serializer.serialize_struct("Tokenizer", 9)?;
        file.serialize_field("version", "1.0")?;
        file.serialize_field("truncation", &self.truncation())?;
        file.serialize_field("padding", &self.padding())?;
        file.serialize_field("added_tokens", &added)?;
        file.serialize_field("normalizer", &self.normalizer_spec())?;
        file.serialize_field("pre_tokenizer", &self.pre_tokenizer_spec())?;
        file.serialize_field("post_processor", &self.post_processor_spec())?;
        file.serialize_field("decoder", &self.decoder_spec())?;
        file.serialize_field("model", self.model())?;
        file.end()
    }
}
