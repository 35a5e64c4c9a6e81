//! Decoders: tokens to text.

use std::borrow::Cow;

use crate::bytes::bytes_of;
use crate::error::Result;
use crate::normalize::compile;
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
pub(crate) fn raw_bytes(token: &str) -> Cow<'_, [u8]> {
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
