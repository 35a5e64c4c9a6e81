//! The fingerprint of a tokenizer: a SHA-256 over a canonical form of all that decides its ids.

use bpe_core::fingerprint::{Canonical, Digest};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result, ask_for};
use crate::io::TOKEN;
use crate::model::Model;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// Returns the fingerprint. `sha256` hashes canonical forms; that of the model is hashed once.
    ///
    /// The form is JSON with sorted keys. Left out is what no id depends on: the decoder,
    /// `trim_offsets`, the unknown token of a vocabulary with all bytes, defaults, and the nesting of
    /// sequences. A tokenizer made from an encoding, without anything else, has the fingerprint of
    /// that encoding.
    pub fn fingerprint(
        &self,
        mut sha256: impl FnMut(&[u8]) -> bpe_core::Result<Digest>,
    ) -> Result<Digest> {
        let mut fields = self.settings()?;
        if let Some(encoding) = self.encoding() {
            let digest = encoding.fingerprint(&mut sha256)?;
            if fields.is_empty() {
                return Ok(digest);
            }
            fields.insert("encoding".into(), hex(digest));
        } else {
            let form = || Ok(sha256(self.model().canonical_form()?.as_bytes())?);
            fields.insert("model".into(), hex(self.model().digest(form)?));
        }
        Ok(sha256(format!("bpe_engine tokenizer 1\n{}", Value::Object(fields)).as_bytes())?)
    }

    /// Everything but the model, where it is not the default.
    fn settings(&self) -> Result<Map<String, Value>> {
        let mut fields = Map::new();
        if !self.is_plain() {
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

/// Appends the steps of a component, without what only moves offsets.
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

impl Model {
    /// The form: 1 if whole pieces are looked up before merging; over characters, their name and 1
    /// if bytes stand for those that are not tokens; the name of the unknown token,
    /// and 1 if it is fused, or 2 more if bytes have a fallback, where a byte of UTF-8 is not a token;
    /// the number of tokens, and the id
    /// and text of each, by id; the texts of the pairs of each merge, in order.
    fn canonical_form(&self) -> Result<Canonical> {
        let header = self.header();
        ask_for(self.size().saturating_mul(TOKEN))?;
        let tokens = self.vocab();
        let size = tokens.iter().map(|(text, _)| text.len() + 48).sum::<usize>();
        let mut form = Canonical::new("bpe_engine model 1", size)?;
        form.number(header.ignore_merges.into());
        if self.characters().is_some() {
            form.string(b"characters");
            form.number(header.byte_fallback.into());
        }
        let unknown = header.unk_token.as_deref().filter(|_| !self.has_all_bytes());
        form.string(unknown.unwrap_or_default().as_bytes());
        let is_fused = unknown.is_some() && header.fuse_unk;
        let lacks_bytes = !self.has_all_bytes() && self.characters().is_none();
        form.number(u64::from(is_fused) + 2 * u64::from(header.byte_fallback && lacks_bytes));
        form.number(tokens.len() as u64);
        for (text, id) in tokens {
            form.number(id.into());
            form.string(text.as_bytes());
        }
        self.each_merge(|left, right| {
            form.string(left.as_bytes());
            form.string(right.as_bytes());
            Ok::<_, Error>(())
        })?;
        Ok(form)
    }
}
