//! Decoders: tokens to text.

use std::borrow::Cow;

use crate::bytes::bytes_of;
use crate::error::{Error, Result};
use crate::normalize::{compile, limit};
use crate::regex::Regex;
use crate::spec;

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
    pub(crate) fn new(spec: &spec::Decoder) -> Result<Self> {
        Ok(match spec {
            spec::Decoder::ByteLevel { .. } => Self::ByteLevel,
            spec::Decoder::Replace { pattern, content } => {
                Self::Replace(compile(pattern)?, content.clone())
            }
            &spec::Decoder::Strip { content, start, stop } => Self::Strip { content, start, stop },
            spec::Decoder::Fuse => Self::Fuse,
            spec::Decoder::Sequence { decoders } => {
                Self::Sequence(decoders.iter().map(Self::new).collect::<Result<_>>()?)
            }
        })
    }

    /// The text of tokens.
    pub(crate) fn decode(&self, tokens: Vec<String>) -> Result<String> {
        let limit = limit(tokens.iter().map(String::len).sum());
        Ok(self.apply(tokens, limit)?.concat())
    }

    /// What is left of the tokens. Replacing may make up to `limit` bytes of them.
    fn apply(&self, tokens: Vec<String>, limit: usize) -> Result<Vec<String>> {
        Ok(match self {
            Self::ByteLevel => {
                let bytes: Vec<_> = tokens.iter().map(|token| raw_bytes(token)).collect();
                let bytes = bytes.concat();
                vec![String::from_utf8_lossy(&bytes).into_owned()]
            }
            Self::Replace(regex, content) => replace(&tokens, regex, content, limit)?,
            &Self::Strip { content, start, stop } => {
                tokens.iter().map(|token| strip(token, content, start, stop).to_owned()).collect()
            }
            Self::Fuse => vec![tokens.concat()],
            Self::Sequence(parts) => {
                let mut tokens = tokens;
                for part in parts {
                    tokens = part.apply(tokens, limit)?;
                }
                tokens
            }
        })
    }
}

/// The bytes that a token stands for, or its own if a character stands for none.
pub(crate) fn raw_bytes(token: &str) -> Cow<'_, [u8]> {
    match bytes_of(token) {
        Some(bytes) => Cow::Owned(bytes),
        None => Cow::Borrowed(token.as_bytes()),
    }
}

/// The tokens with `content` in place of what the pattern matches.
fn replace(tokens: &[String], regex: &Regex, content: &str, limit: usize) -> Result<Vec<String>> {
    let mut replaced = Vec::with_capacity(tokens.len());
    let mut total = 0;
    for token in tokens {
        let mut stretches = Vec::new();
        if !token.is_empty() {
            regex.each(token, |found| stretches.push(found))?;
        }
        total += stretches.len().saturating_mul(content.len()).saturating_add(token.len());
        if total > limit {
            return Err(Error::unsupported(
                "decoder",
                format!("replacing that makes more than {limit} bytes of the tokens"),
            ));
        }
        let (mut text, mut last) = (String::new(), 0);
        for found in stretches {
            text.push_str(&token[last..found.start]);
            text.push_str(content);
            last = found.end;
        }
        text.push_str(&token[last..]);
        replaced.push(text);
    }
    Ok(replaced)
}

/// The token without up to `start` characters `content` at its start and `stop` at its end.
fn strip(token: &str, content: char, start: usize, stop: usize) -> &str {
    let mut token = token;
    for _ in 0..start.min(token.len()) {
        token = token.strip_prefix(content).unwrap_or(token);
    }
    for _ in 0..stop.min(token.len()) {
        token = token.strip_suffix(content).unwrap_or(token);
    }
    token
}
