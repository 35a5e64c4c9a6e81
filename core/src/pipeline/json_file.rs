//! Reads and writes whole tokenizer files.

use serde::Deserialize;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::Value;

use crate::components::added::{AddedTokenWithId, AddedTokens};
use crate::components::json::ask_for_tokens;
use crate::components::json::text_of;
use crate::components::spec::{Component, Padding, Truncation};
use crate::components::split::Split;
use crate::error::{Error, Result};
use crate::models::ModelFile;
use crate::pipeline::assembly::Pipeline;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "current")]
    version: String,
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
    model: ModelFile,
}

/// The version that nearly all files state.
const VERSION: &str = "1.0";

fn current() -> String {
    VERSION.into()
}

/// Reads a file whose model has no type as if it had no merges: `tokenizers` tries the next type if
/// the model cannot be BPE.
fn without_merges(json: &str) -> Option<File> {
    let mut file: Value = serde_json::from_str(json).ok()?;
    let model = file.get_mut("model")?.as_object_mut()?;
    if model.contains_key("type") {
        return None;
    }
    model.remove("merges")?;
    serde_json::from_value(file).ok()
}

fn read<C: Component>(value: Option<&Value>, path: &str) -> Result<Option<C>> {
    value.map(|value| C::read(value, path)).transpose()
}

impl Pipeline {
    /// Reads a tokenizer from the JSON of a file.
    ///
    /// Fails with [`Error::Unsupported`] if the file requires a feature that cannot be reproduced
    /// exactly.
    pub fn from_json(json: &str) -> Result<Self> {
        let file = serde_json::from_str(json)
            .map_err(|error| Error::Invalid(format!("not a tokenizer file: {error}")));
        match file.and_then(Self::of_file) {
            Err(error @ Error::Invalid(_)) => match without_merges(json) {
                Some(file) => Self::of_file(file).map_err(|_| error),
                None => Err(error),
            },
            made => made,
        }
    }

    fn of_file(file: File) -> Result<Self> {
        if file.version != VERSION {
            let version = file.version;
            return Err(Error::Invalid(format!("version: Unknown tokenizer version '{version}'")));
        }
        let model = file.model.parts()?;
        let normalizer = read(file.normalizer.as_ref(), "normalizer")?;
        let split = Split::new(read(file.pre_tokenizer.as_ref(), "pre_tokenizer")?)?;
        let processor = read(file.post_processor.as_ref(), "post_processor")?;
        let decoder = read(file.decoder.as_ref(), "decoder")?;
        let model = model.build(&split)?;
        let mut tokenizer = Self::with(model, AddedTokens::default(), split);
        // As in SentencePiece, text does not become control pieces.
        tokenizer.set_encode_special_tokens(tokenizer.model().is_sentencepiece());
        tokenizer.set_normalizer(normalizer)?;
        tokenizer.set_post_processor(processor)?;
        tokenizer.set_decoder(decoder)?;
        // As in `tokenizers`, a file may have a truncation that cannot be set.
        tokenizer.truncation = file.truncation;
        tokenizer.set_padding(file.padding);
        tokenizer.add_tokens(file.added_tokens.into_iter().map(|added| added.token).collect())?;
        Ok(tokenizer)
    }

    /// Writes JSON from which `tokenizers` reads the same tokenizer.
    pub fn to_json(&self, pretty: bool) -> Result<String> {
        ask_for_tokens(self.vocab_size(true)?)?;
        text_of(self, pretty)
    }

    /// Writes the JSON of the model, as in a file.
    pub fn model_json(&self, pretty: bool) -> Result<String> {
        ask_for_tokens(self.vocab_size(false)?)?;
        text_of(self.model(), pretty)
    }
}

impl Serialize for Pipeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let added: Vec<AddedTokenWithId> = self
            .added_tokens_by_id()
            .into_iter()
            .map(|(id, token)| AddedTokenWithId { id, token: token.clone() })
            .collect();
        let mut file = serializer.serialize_struct("Pipeline", 9)?;
        file.serialize_field("version", VERSION)?;
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
