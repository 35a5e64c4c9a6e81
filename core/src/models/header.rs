//! The fields of a model in a file, except its two lists.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::random::Sampling;
use super::with_field;
use crate::error::{Error, Result};

/// The fields, in the order of the file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Header {
    pub(crate) dropout: Option<f32>,
    /// Token that replaces bytes that are not tokens.
    pub(crate) unk_token: Option<String>,
    pub(crate) continuing_subword_prefix: Option<String>,
    pub(crate) end_of_word_suffix: Option<String>,
    #[serde(deserialize_with = "or_false")]
    pub(crate) fuse_unk: bool,
    /// Whether a character that is not a token becomes one token per byte.
    #[serde(deserialize_with = "or_false")]
    pub(crate) byte_fallback: bool,
    #[serde(deserialize_with = "or_false")]
    pub(crate) ignore_merges: bool,
    #[serde(skip)]
    pub(crate) sampling: Sampling,
    /// Length of the prefix with which the merges were read, if it differs from the field.
    #[serde(skip)]
    merged_prefix: Option<usize>,
}

fn or_false<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<bool, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(false))
}

impl Header {
    /// Returns the fields for a vocabulary over characters, in which consecutive unknown characters
    /// fuse into one token.
    pub(crate) fn of_characters(unknown: String, byte_fallback: bool) -> Self {
        let unk_token = Some(unknown);
        Self { unk_token, fuse_unk: true, byte_fallback, ..Self::default() }
    }

    /// Returns a copy with a different value for one field.
    pub(crate) fn with(&self, name: &str, value: Value) -> Result<Self> {
        if name == "seed" {
            let sampling = with_field(&self.sampling, name, value)?;
            return Ok(Self { sampling, ..self.clone() });
        }
        let (sampling, merged_prefix) = (self.sampling.clone(), Some(self.merged_prefix()));
        Ok(Self { sampling, merged_prefix, ..with_field(self, name, value)? })
    }

    /// Returns the type and the fields, including fields that files lack.
    pub(crate) fn fields(&self) -> Result<Value> {
        super::fields("BPE", self, Some(&self.sampling))
    }

    /// Fails if a field has a value that no model accepts.
    pub(crate) fn check(&self) -> Result<()> {
        match self.dropout {
            Some(rate) if !(0.0..=1.0).contains(&rate) => {
                Err(Error::Invalid(format!("model.dropout: {rate} is not between 0 and 1")))
            }
            _ => Ok(()),
        }
    }

    /// Probability of skipping a merge.
    pub(crate) fn dropout(&self) -> f32 {
        self.dropout.unwrap_or(0.0)
    }

    /// Prefix of the tokens of characters that do not begin a word.
    pub(crate) fn prefix(&self) -> &str {
        self.continuing_subword_prefix.as_deref().unwrap_or_default()
    }

    /// Length of the prefix that a merge drops from its second token.
    pub(crate) fn merged_prefix(&self) -> usize {
        self.merged_prefix.unwrap_or(self.prefix().len())
    }

    /// Suffix of the token for a word's last character.
    pub(crate) fn suffix(&self) -> &str {
        self.end_of_word_suffix.as_deref().unwrap_or_default()
    }

    /// Returns the affix that marks tokens inside or at the end of a word, with the name of its
    /// field.
    pub(crate) fn marks_words(&self) -> Option<(&'static str, &str)> {
        let marks =
            [("continuing_subword_prefix", self.prefix()), ("end_of_word_suffix", self.suffix())];
        marks.into_iter().find(|(_, mark)| !mark.is_empty())
    }

    /// Returns the token that replaces each unknown byte, looked up by name; `None` for all bytes
    /// without byte fallback.
    pub(crate) fn fallback(&self, id: impl Fn(&str) -> Option<u32>) -> Vec<Option<u32>> {
        let id = |byte| id(&byte_name(byte)).filter(|_| self.byte_fallback);
        (0..=255u8).map(id).collect()
    }
}

/// Returns the name of the token that replaces an unknown byte.
pub(crate) fn byte_name(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}
