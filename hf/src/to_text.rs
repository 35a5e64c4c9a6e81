//! Ids to text: the walk back.

use crate::decode::{Decoder, raw_bytes};
use crate::error::Result;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// The text of ids. Ids of no token are left out, and, if asked for, special tokens.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        let skipped = |text: &str| skip_special_tokens && self.added().is_special(text);
        if let Some(Decoder::ByteLevel) = self.decoder() {
            let mut bytes = Vec::with_capacity(ids.len() * 5);
            for &id in ids {
                match self.added().text(id) {
                    Some(text) if skipped(text) => {}
                    Some(text) => bytes.extend_from_slice(&raw_bytes(text)),
                    None => self.append_model_bytes(id, skip_special_tokens, &mut bytes),
                }
            }
            return Ok(match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            });
        }
        let tokens = ids.iter().filter_map(|&id| self.id_to_token(id));
        let tokens: Vec<String> = tokens.filter(|token| !skipped(token)).collect();
        match self.decoder() {
            Some(decoder) => decoder.decode(tokens),
            None => Ok(tokens.join(" ")),
        }
    }

    fn append_model_bytes(&self, id: u32, skip_special_tokens: bool, bytes: &mut Vec<u8>) {
        if let Some(token) = self.model().token_bytes(id) {
            bytes.extend_from_slice(token);
        } else if let Some(text) = self.model().id_to_token(id)
            && !(skip_special_tokens && self.added().is_special(&text))
        {
            bytes.extend_from_slice(&raw_bytes(&text));
        }
    }
}
