//! The fingerprint of a tokenizer: the SHA-256 digest of everything that decides ids, in canonical
//! form.

use crate::fingerprint::Digest;
use serde_json::{Map, Value, json};

use crate::components::json::ask_for_tokens;
use crate::error::{Error, Result};
use crate::pipeline::assembly::Pipeline;

impl Pipeline {
    /// Returns the fingerprint. `sha256` hashes canonical forms, and only once.
    ///
    /// The form is JSON with sorted keys. Settings on which no id depends are omitted: the decoder,
    /// `trim_offsets`, the unknown token of a vocabulary with all bytes, defaults, and the nesting
    /// of sequences. A tokenizer made from an encoding, without further components, has the
    /// fingerprint of that encoding.
    pub fn fingerprint(
        &self,
        mut sha256: impl FnMut(&[u8]) -> crate::Result<Digest>,
    ) -> Result<Digest> {
        let new = || {
            let mut fields = self.settings()?;
            if let Some(direct) = self.direct() {
                let digest = direct.fingerprint(&mut sha256)?;
                if fields.is_empty() {
                    return Ok(Box::new(digest));
                }
                fields.insert("encoding".into(), hex(digest));
            } else {
                ask_for_tokens(self.vocab_size(true)?)?;
                let digest = self.model().digest(&mut sha256)?;
                fields.insert("model".into(), hex(digest));
            }
            let form = format!("bpe_engine tokenizer 1\n{}", Value::Object(fields));
            sha256(form.as_bytes()).map(Box::new)
        };
        self.fingerprint.get_or_try_init(new).copied()
    }

    /// Returns all settings except the model and defaults.
    fn settings(&self) -> Result<Map<String, Value>> {
        let mut fields = Map::new();
        if self.direct().is_none() {
            let added: Vec<Value> = self
                .added_tokens_by_id()
                .into_iter()
                .map(|(id, token)| json!([id, token]))
                .collect();
            if !added.is_empty() {
                fields.insert("added_tokens".into(), added.into());
            }
        }
        if self.encodes_special_tokens() {
            fields.insert("encode_special_tokens".into(), true.into());
        }
        if self.keeps_out_made()? {
            fields.insert("keeps_out_control".into(), true.into());
        }
        let components = [
            ("normalizer", "normalizers", to_value(self.normalizer_spec())?),
            ("pre_tokenizer", "pretokenizers", to_value(self.pre_tokenizer_spec())?),
            ("post_processor", "processors", to_value(self.post_processor_spec())?),
        ];
        for (name, parts, value) in components {
            let mut steps = Vec::new();
            flatten(value, name, parts, &mut steps);
            if !steps.is_empty() {
                fields.insert(name.into(), steps.into());
            }
        }
        let settings =
            [("truncation", to_value(self.truncation())?), ("padding", to_value(self.padding())?)];
        for (name, value) in settings {
            if !value.is_null() {
                fields.insert(name.into(), value);
            }
        }
        Ok(fields)
    }
}

fn to_value(value: impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(|error| Error::Invalid(error.to_string()))
}

fn hex(digest: Digest) -> Value {
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

/// Appends the steps of a component, omitting steps that only affect offsets.
fn flatten(value: Value, name: &str, parts: &str, steps: &mut Vec<Value>) {
    let Value::Object(mut fields) = value else { return };
    if let Some(Value::Array(inner)) = fields.remove(parts) {
        inner.into_iter().for_each(|part| flatten(part, name, parts, steps));
        return;
    }
    fields.remove("trim_offsets");
    if name == "post_processor" {
        fields.remove("add_prefix_space");
        if fields["type"] == "ByteLevel" {
            return;
        }
    }
    steps.push(fields.into());
}
