//! The fields of a file's model, except the two lists.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};

/// The fields, in the order of a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Header {
    pub(crate) dropout: Option<f32>,
    /// Replaces bytes that are not tokens.
    pub(crate) unk_token: Option<String>,
    pub(crate) continuing_subword_prefix: Option<String>,
    pub(crate) end_of_word_suffix: Option<String>,
    #[serde(deserialize_with = "or_false")]
    pub(crate) fuse_unk: bool,
    /// Whether a character that is not a token becomes a token for each of its bytes.
    #[serde(deserialize_with = "or_false")]
    pub(crate) byte_fallback: bool,
    #[serde(deserialize_with = "or_false")]
    pub(crate) ignore_merges: bool,
}

fn or_false<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<bool, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(false))
}

impl Header {
    /// Fails if a field asks for what cannot be done exactly.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(dropout) = self.dropout.filter(|&dropout| dropout != 0.0) {
            return refuse("dropout", format!("a dropout of {dropout}"));
        }
        let affixes = [
            ("continuing_subword_prefix", self.continuing_subword_prefix.as_deref()),
            ("end_of_word_suffix", self.end_of_word_suffix.as_deref()),
        ];
        for (field, affix) in affixes {
            if let Some(affix) = affix.filter(|affix| !affix.is_empty()) {
                return refuse(field, format!("{affix:?}"));
            }
        }
        Ok(())
    }

    /// Copies the header with another value of a field.
    ///
    /// Fails if no field has this name, or the value has another type.
    pub(crate) fn with(&self, field: &str, value: Value) -> Result<Self> {
        let invalid = |reason: String| Error::Invalid(format!("model.{field}: {reason}"));
        let mut fields = serde_json::to_value(self).map_err(|error| invalid(error.to_string()))?;
        match fields.get_mut(field) {
            Some(place) => *place = value,
            None => return Err(invalid("a BPE model has no such field".into())),
        }
        let header: Self =
            serde_json::from_value(fields).map_err(|error| invalid(error.to_string()))?;
        header.check()?;
        Ok(header)
    }

    /// The token for each byte of text that is not a token, by its name in the vocabulary; none
    /// without byte fallback.
    pub(crate) fn fallback(&self, id: impl Fn(&str) -> Option<u32>) -> Vec<Option<u32>> {
        let id = |byte| id(&byte_name(byte)).filter(|_| self.byte_fallback);
        (0..=255u8).map(id).collect()
    }
}

fn refuse(field: &str, feature: String) -> Result<()> {
    let reason = format!("{feature} is not supported; set it to null");
    Err(Error::refused(format!("model.{field}"), reason))
}

/// The name of the token for a byte of text that is not a token.
pub(crate) fn byte_name(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}
