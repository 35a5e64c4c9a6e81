//! Ids to text.

use std::borrow::Cow;

use crate::bytes::bytes_of;
use crate::error::Result;
use crate::normalize::compile_replaced;
use crate::regex::Regex;
use crate::spec;
use crate::tokenizer::Tokenizer;

/// A decoder that is ready to run.
#[derive(Debug, Clone)]
pub(crate) enum Decoder {
    ByteLevel,
    Replace(Regex, String),
    Strip { content: char, start: usize, stop: usize },
    Fuse,
    Sequence(Vec<Decoder>),
}

impl Decoder {
    pub(crate) fn new(spec: &spec::Decoder, path: &str) -> Result<Self> {
        Ok(match spec {
            spec::Decoder::ByteLevel { .. } => Self::ByteLevel,
            spec::Decoder::Replace { pattern, content } => {
                Self::Replace(compile_replaced(pattern, path)?, content.clone())
            }
            &spec::Decoder::Strip { content, start, stop } => Self::Strip { content, start, stop },
            spec::Decoder::Fuse => Self::Fuse,
            spec::Decoder::Sequence { decoders } => {
                let parts = decoders.iter().enumerate();
                let part = |(index, part)| Self::new(part, &format!("{path}.decoders[{index}]"));
                Self::Sequence(parts.map(part).collect::<Result<_>>()?)
            }
        })
    }

    /// The text of tokens.
    pub(crate) fn decode(&self, tokens: Vec<String>) -> Result<String> {
        Ok(self.apply(tokens)?.concat())
    }

    fn apply(&self, tokens: Vec<String>) -> Result<Vec<String>> {
        Ok(match self {
            Self::ByteLevel => {
                let bytes: Vec<_> = tokens.iter().map(|token| raw_bytes(token)).collect();
                let bytes = bytes.concat();
                vec![String::from_utf8_lossy(&bytes).into_owned()]
            }
            Self::Replace(regex, content) => tokens
                .iter()
                .map(|token| {
                    let (mut text, mut last) = (String::new(), 0);
                    if !token.is_empty() {
                        regex.each(token, |found| {
                            text.push_str(&token[last..found.start]);
                            text.push_str(content);
                            last = found.end;
                        })?;
                    }
                    text.push_str(&token[last..]);
                    Ok(text)
                })
                .collect::<Result<_>>()?,
            &Self::Strip { content, start, stop } => {
                tokens.iter().map(|token| strip(token, content, start, stop).to_owned()).collect()
            }
            Self::Fuse => vec![tokens.concat()],
            Self::Sequence(parts) => {
                let mut tokens = tokens;
                for part in parts {
                    tokens = part.apply(tokens)?;
                }
                tokens
            }
        })
    }
}

/// The bytes that a token stands for, or its own if a character stands for none.
fn raw_bytes(token: &str) -> Cow<'_, [u8]> {
    match bytes_of(token) {
        Some(bytes) => Cow::Owned(bytes),
        None => Cow::Borrowed(token.as_bytes()),
    }
}

/// The token without up to `start` characters `content` at its start and `stop` at its end.
fn strip(token: &str, content: char, start: usize, stop: usize) -> &str {
    let mut token = token;
    for _ in 0..start {
        token = token.strip_prefix(content).unwrap_or(token);
    }
    for _ in 0..stop {
        token = token.strip_suffix(content).unwrap_or(token);
    }
    token
}

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
