//! Reads and writes whole files.

use bpe_core::Splitter;
use bpe_core::memory::append;
use memchr::memmem;
use serde::ser::{Serialize, SerializeSeq, SerializeStruct, Serializer};
use serde_json::Value;

use crate::added::{AddedTokenWithId, AddedTokens};
use crate::build::Header;
use crate::error::{Error, Result, ask_for};
use crate::model::Model;
use crate::spec::{
    Component, Decoder, Normalizer, Padding, PostProcessor, PreTokenizer, Truncation,
};
use crate::token_lists::{Listed, Merges, Tokens, Vocab};
use crate::tokenizer::{Split, Tokenizer};

#[derive(Debug, serde::Deserialize)]
#[serde(bound = "T: Tokens, M: Merges")]
struct ModelFile<T, M> {
    r#type: Option<String>,
    dropout: Option<f32>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    fuse_unk: Option<bool>,
    byte_fallback: Option<bool>,
    ignore_merges: Option<bool>,
    #[serde(default)]
    vocab: Vocab<T>,
    merges: Option<Listed<M>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, bound = "T: Tokens, M: Merges")]
struct File<T, M> {
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
    model: ModelFile<T, M>,
}

impl<T: Tokens, M: Merges> ModelFile<T, M> {
    fn check(&self) -> Result<()> {
        let unsupported = |field: &str, feature: String| {
            Err(Error::unsupported(format!("model.{field}"), feature))
        };
        match self.r#type.as_deref() {
            None | Some("BPE") => {}
            Some(other) => return unsupported("type", format!("{other:?}")),
        }
        match self.dropout {
            Some(dropout) if dropout != 0.0 => {
                return unsupported("dropout", format!("a dropout of {dropout}"));
            }
            _ => {}
        }
        let affixes = [
            ("continuing_subword_prefix", &self.continuing_subword_prefix),
            ("end_of_word_suffix", &self.end_of_word_suffix),
        ];
        for (field, affix) in affixes {
            if let Some(affix) = affix.as_deref().filter(|affix| !affix.is_empty()) {
                return unsupported(field, format!("{affix:?}"));
            }
        }
        if self.vocab.0.is_none() || self.merges.is_none() {
            return unsupported("type", "a model other than BPE".into());
        }
        Ok(())
    }

    /// The header and both lists. The file must have passed [`ModelFile::check`].
    fn into_parts(self) -> (Header, T, M) {
        let header = Header {
            ignore_merges: self.ignore_merges.unwrap_or(false),
            unk_token: self.unk_token,
            dropout: self.dropout,
            continuing_subword_prefix: self.continuing_subword_prefix,
            end_of_word_suffix: self.end_of_word_suffix,
            fuse_unk: self.fuse_unk.unwrap_or(false),
            byte_fallback: self.byte_fallback.unwrap_or(false),
        };
        let merges = self.merges.map_or_else(M::default, |merges| merges.0);
        (header, self.vocab.0.unwrap_or_default(), merges)
    }
}

fn read<C: Component>(value: Option<&Value>, path: &str) -> Result<Option<C>> {
    value.map(|value| C::read(value, path)).transpose()
}

impl Tokenizer {
    /// Reads the JSON of a file.
    ///
    /// Fails with [`Error::Unsupported`] if the file requires a feature that cannot be exact.
    pub fn from_json(json: &str) -> Result<Self> {
        let byte_level = || read_file(json, true, Model::new);
        let over_characters = || read_file(json, false, Model::over_characters);
        // A guess, nearly always right. If it is wrong, the file is read again.
        let read = if memmem::find(json.as_bytes(), b"\"ByteLevel\"").is_some() {
            byte_level()?.map_or_else(over_characters, |read| Ok(Some(read)))?
        } else {
            over_characters()?.map_or_else(byte_level, |read| Ok(Some(read)))?
        };
        read.ok_or_else(|| Error::Invalid("pre_tokenizer: neither kind".into()))
    }

    /// Writes the JSON of a file from which `tokenizers` reads the same tokenizer.
    pub fn to_json(&self, pretty: bool) -> Result<String> {
        // Tokens take many small allocations, so checks for the sum first.
        ask_for(self.vocab_size(true).saturating_mul(TOKEN))?;
        let mut json = Written(Vec::new());
        let written = match pretty {
            true => serde_json::to_writer_pretty(&mut json, self),
            false => serde_json::to_writer(&mut json, self),
        };
        match written {
            Ok(()) => String::from_utf8(json.0).map_err(|error| Error::Invalid(error.to_string())),
            Err(error) if error.is_io() => Err(Error::OutOfMemory { bytes: json.0.len() }),
            Err(error) => Err(Error::Invalid(error.to_string())),
        }
    }
}

/// Bytes of memory for a token while it is written.
pub(crate) const TOKEN: usize = 512;

/// JSON that grows only as far as there is memory.
struct Written(Vec<u8>);

impl std::io::Write for Written {
    fn write(&mut self, json: &[u8]) -> std::io::Result<usize> {
        append(&mut self.0, json).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        Ok(json.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Reads a file whose pre-tokenizer is byte-level, or not; `None` if it is the other.
fn read_file<T: Tokens, M: Merges>(
    json: &str,
    is_byte_level: bool,
    make: impl FnOnce(Header, &T, &M, Splitter) -> Result<Model>,
) -> Result<Option<Tokenizer>> {
    let file: File<T, M> = serde_json::from_str(json)
        .map_err(|error| Error::Invalid(format!("not a tokenizer file: {error}")))?;
    if let Some(version) = file.version.as_deref().filter(|&version| version != "1.0") {
        return Err(Error::Invalid(format!("version: Unknown tokenizer version '{version}'")));
    }
    file.model.check()?;
    let normalizer = read::<Normalizer>(file.normalizer.as_ref(), "normalizer")?;
    let pre_tokenizer = read::<PreTokenizer>(file.pre_tokenizer.as_ref(), "pre_tokenizer")?;
    let processor = read::<PostProcessor>(file.post_processor.as_ref(), "post_processor")?;
    let decoder = read::<Decoder>(file.decoder.as_ref(), "decoder")?;
    let (split, splitter) = Split::new(pre_tokenizer)?;
    if split.steps.is_byte_level() != is_byte_level {
        return Ok(None);
    }
    let (header, tokens, merges) = file.model.into_parts();
    let model = make(header, &tokens, &merges, splitter)?;
    let mut tokenizer = Tokenizer::with(model, AddedTokens::default(), split, false);
    tokenizer.set_normalizer(normalizer)?;
    tokenizer.set_post_processor(processor)?;
    tokenizer.set_decoder(decoder)?;
    tokenizer.restore_truncation(file.truncation);
    tokenizer.set_padding(file.padding);
    tokenizer.add_tokens(file.added_tokens.into_iter().map(|added| added.token).collect())?;
    Ok(Some(tokenizer))
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
        file.serialize_field("model", &WrittenModel(self.model()))?;
        file.end()
    }
}

struct WrittenModel<'a>(&'a Model);

impl Serialize for WrittenModel<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let header = self.0.header();
        let mut model = serializer.serialize_struct("BPE", 10)?;
        model.serialize_field("type", "BPE")?;
        model.serialize_field("dropout", &header.dropout)?;
        model.serialize_field("unk_token", &header.unk_token)?;
        model.serialize_field("continuing_subword_prefix", &header.continuing_subword_prefix)?;
        model.serialize_field("end_of_word_suffix", &header.end_of_word_suffix)?;
        model.serialize_field("fuse_unk", &header.fuse_unk)?;
        model.serialize_field("byte_fallback", &header.byte_fallback)?;
        model.serialize_field("ignore_merges", &header.ignore_merges)?;
        model.serialize_field("vocab", &WrittenVocab(self.0))?;
        model.serialize_field("merges", &WrittenMerges(self.0))?;
        model.end()
    }
}

struct WrittenVocab<'a>(&'a Model);

impl Serialize for WrittenVocab<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.vocab())
    }
}

struct WrittenMerges<'a>(&'a Model);

impl Serialize for WrittenMerges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut merges = serializer.serialize_seq(None)?;
        self.0.each_merge(|left, right| merges.serialize_element(&(left, right)))?;
        merges.end()
    }
}
