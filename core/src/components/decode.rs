//! Decoders turn tokens into text.

use crate::memory::reserve_text;
use crate::polling::poll;

use crate::components::bytes::{append_bytes, byte_of};
use crate::components::normalize::compile;
use crate::components::offsets::{self, WORK, joined, limit};
use crate::components::regex::Regex;
use crate::components::sentencepiece;
use crate::components::spec;
use crate::error::{Error, Result};

/// How decoding shows a run of byte tokens that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRuns {
    /// Each byte outside characters becomes U+FFFD.
    Bytes,
    /// Each byte of the run becomes U+FFFD.
    Whole,
}

/// A decoder, ready to run.
#[derive(Debug, Clone)]
pub(crate) enum Decoder {
    ByteLevel,
    Replace(Regex, String),
    Strip {
        content: char,
        start: usize,
        stop: usize,
    },
    Fuse,
    ByteFallback,
    /// Character that replaces spaces, and whether the first token loses it.
    Metaspace(char, bool),
    WordPiece(WordPiece),
    /// Suffix of a word's last token.
    Bpe(String),
    Ctc(Ctc),
    Sequence(Vec<Decoder>),
    SentencePiece(sentencepiece::Decoder),
}

/// Puts a space before each token without the prefix, except the first.
#[derive(Debug, Clone)]
pub(crate) struct WordPiece {
    prefix: String,
    cleanup: bool,
}

/// Merges repeated tokens and removes the padding.
#[derive(Debug, Clone)]
pub(crate) struct Ctc {
    pad_token: String,
    word_delimiter_token: String,
    cleanup: bool,
}

/// Replacements of `cleanup`, in order.
const CLEANED: [(&str, &str); 11] = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
];

impl Decoder {
    pub(crate) fn new(spec: &spec::Decoder) -> Result<Self> {
        Ok(match spec {
            spec::Decoder::ByteLevel { .. } => Self::ByteLevel,
            spec::Decoder::Replace { pattern, content } => {
                Self::Replace(compile(pattern)?, content.clone())
            }
            &spec::Decoder::Strip { content, start, stop } => Self::Strip { content, start, stop },
            spec::Decoder::Fuse => Self::Fuse,
            spec::Decoder::ByteFallback => Self::ByteFallback,
            spec::Decoder::Metaspace(metaspace) => Self::Metaspace(
                metaspace.replacement,
                metaspace.prepend_scheme != spec::PrependScheme::Never,
            ),
            spec::Decoder::WordPiece { prefix, cleanup } => {
                Self::WordPiece(WordPiece { prefix: prefix.clone(), cleanup: *cleanup })
            }
            spec::Decoder::BPEDecoder { suffix } => Self::Bpe(suffix.clone()),
            spec::Decoder::CTC { pad_token, word_delimiter_token, cleanup } => Self::Ctc(Ctc {
                pad_token: pad_token.clone(),
                word_delimiter_token: word_delimiter_token.clone(),
                cleanup: *cleanup,
            }),
            spec::Decoder::Sequence { decoders } => {
                Self::Sequence(decoders.iter().map(Self::new).collect::<Result<_>>()?)
            }
            spec::Decoder::SentencePiece(spec) => {
                Self::SentencePiece(sentencepiece::Decoder::new(spec))
            }
        })
    }

    pub(crate) fn decode(&self, tokens: Vec<String>) -> Result<String> {
        let limit = limit(tokens.iter().map(String::len).sum());
        joined_with(&self.apply(tokens, limit)?, "")
    }

    /// Returns the bytes that a token adds after other tokens (shown as U+FFFD until they form
    /// UTF-8), and whether the token is one byte. `None` if other tokens change the bytes.
    pub(crate) fn bytes_after_others(&self, token: &str) -> Result<Option<(Vec<u8>, bool)>> {
        if let Self::SentencePiece(decoder) = self {
            return Ok(Some(decoder.bytes_after_others(token)));
        }
        let parts = match self {
            Self::Sequence(parts) => parts,
            part => std::slice::from_ref(part),
        };
        let limit = limit(token.len());
        let mut tokens = vec![String::new(), joined(token, "")?];
        let (mut byte, mut is_split, mut is_fused) = (None, false, false);
        for part in parts {
            match part {
                Self::Fuse => is_fused = true,
                // This decoder changes only the start of the text.
                Self::Strip { stop: 0, .. } if is_fused => {}
                Self::ByteFallback if !is_split && !is_fused => {
                    (byte, is_split) = (byte_of(&tokens[1]), true);
                }
                Self::Replace(..)
                | Self::Strip { .. }
                | Self::Metaspace(..)
                | Self::WordPiece(_)
                    if !is_split && !is_fused =>
                {
                    tokens = part.apply(tokens, limit)?;
                }
                _ => return Ok(None),
            }
        }
        let text = || tokens.pop().map(|text| (text.into_bytes(), false));
        Ok(byte.map(|byte| (vec![byte], true)).or_else(text))
    }

    /// Whether the text of a token depends only on whether the token is the first.
    pub(crate) fn keeps_tokens(&self) -> bool {
        match self {
            Self::Replace(..) | Self::Strip { .. } | Self::Metaspace(..) | Self::WordPiece(_) => {
                true
            }
            Self::Sequence(parts) => parts.iter().all(Self::keeps_tokens),
            _ => false,
        }
    }

    /// Returns how the decoder shows byte tokens; `None` if it does not convert them to bytes.
    pub(crate) fn byte_runs(&self) -> Option<ByteRuns> {
        match self {
            Self::ByteFallback => Some(ByteRuns::Whole),
            Self::SentencePiece(_) => Some(ByteRuns::Bytes),
            Self::Sequence(parts) => parts.iter().find_map(Self::byte_runs),
            _ => None,
        }
    }

    /// Applies the decoder to tokens. Fails if replacing produces more than `limit` bytes.
    fn apply(&self, tokens: Vec<String>, limit: usize) -> Result<Vec<String>> {
        Ok(match self {
            Self::ByteLevel => {
                let mut bytes = Vec::new();
                tokens.iter().try_for_each(|token| append_raw_bytes(token, &mut bytes))?;
                vec![lossy_text(bytes)?]
            }
            Self::Replace(regex, content) => replace(&tokens, regex, content, limit)?,
            &Self::Strip { content, start, stop } => {
                let mut stripped = Vec::with_capacity(tokens.len());
                for token in &tokens {
                    stripped.push(joined(strip(token, content, start, stop), "")?);
                }
                stripped
            }
            Self::Fuse => vec![joined_with(&tokens, "")?],
            Self::SentencePiece(decoder) => vec![decoder.decode(&tokens)?],
            Self::ByteFallback => join_bytes(tokens)?,
            &Self::Metaspace(replacement, is_prepended) => {
                let mut spaced = Vec::with_capacity(tokens.len());
                for (index, token) in tokens.iter().enumerate() {
                    let is_kept = |&c: &char| index > 0 || !is_prepended || c != replacement;
                    let spaces = |c: char| if c == replacement { ' ' } else { c };
                    let mut text = String::new();
                    reserve_text(&mut text, token.len())?;
                    text.extend(token.chars().filter(is_kept).map(spaces));
                    spaced.push(text);
                }
                spaced
            }
            Self::WordPiece(word_piece) => word_piece.apply(tokens)?,
            Self::Bpe(suffix) => {
                let last = tokens.len().saturating_sub(1);
                let spaced = |(index, token): (usize, String)| {
                    Ok(text_replaced(token, suffix, if index == last { "" } else { " " }))
                };
                each(tokens.into_iter().enumerate(), spaced)?
            }
            Self::Ctc(ctc) => ctc.apply(tokens)?,
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

impl WordPiece {
    fn apply(&self, tokens: Vec<String>) -> Result<Vec<String>> {
        each(tokens.into_iter().enumerate(), |(index, token)| {
            let token = match token.strip_prefix(&self.prefix) {
                _ if index == 0 => token,
                Some(rest) => joined(rest, "")?,
                None => joined(" ", &token)?,
            };
            Ok(if self.cleanup { cleaned(token) } else { token })
        })
    }
}

impl Ctc {
    fn apply(&self, mut tokens: Vec<String>) -> Result<Vec<String>> {
        tokens.dedup();
        let mut tokens = each(tokens.into_iter(), |token| {
            let token = text_replaced(token, &self.pad_token, "");
            if !self.cleanup {
                return Ok(token);
            }
            Ok(text_replaced(cleaned(token), &self.word_delimiter_token, " "))
        })?;
        tokens.retain(|token| !token.is_empty());
        Ok(tokens)
    }
}

/// Applies `change` to each token and collects the results.
fn each<T>(
    tokens: impl ExactSizeIterator<Item = T>,
    mut change: impl FnMut(T) -> Result<String>,
) -> Result<Vec<String>> {
    let mut changed = Vec::with_capacity(tokens.len());
    for token in tokens {
        poll(WORK)?;
        changed.push(change(token)?);
    }
    Ok(changed)
}

/// Removes spaces before punctuation and contractions from one token.
fn cleaned(token: String) -> String {
    CLEANED.into_iter().fold(token, |token, (from, to)| text_replaced(token, from, to))
}

/// Replaces `from` in a token; an empty `from` matches before and after every character.
fn text_replaced(token: String, from: &str, to: &str) -> String {
    if !token.contains(from) {
        return token;
    }
    let mut text = String::new();
    for (index, part) in token.split(from).enumerate() {
        if index > 0 {
            text.push_str(to);
        }
        text.push_str(part);
    }
    text
}

/// Replaces adjacent byte tokens, such as `<0xE2>`, with the text of their bytes, or with U+FFFD
/// for each byte if they are not UTF-8.
fn join_bytes(tokens: Vec<String>) -> Result<Vec<String>> {
    let mut joined = Vec::with_capacity(tokens.len());
    let mut bytes: Vec<u8> = Vec::with_capacity(tokens.len());
    let flush = |bytes: &mut Vec<u8>, joined: &mut Vec<String>| -> Result<()> {
        match std::str::from_utf8(bytes) {
            Ok("") => {}
            Ok(text) => joined.push(offsets::joined(text, "")?),
            Err(_) => {
                for _ in 0..bytes.len() {
                    joined.push("\u{fffd}".into());
                }
            }
        }
        bytes.clear();
        Ok(())
    };
    for token in tokens {
        match byte_of(&token) {
            Some(byte) => bytes.push(byte),
            None => {
                flush(&mut bytes, &mut joined)?;
                joined.push(token);
            }
        }
    }
    flush(&mut bytes, &mut joined)?;
    Ok(joined)
}

/// Appends the bytes that a token represents, or its UTF-8 if a character represents none.
pub(crate) fn append_raw_bytes(token: &str, bytes: &mut Vec<u8>) -> Result<()> {
    if !append_bytes(token, bytes)? {
        bytes.extend_from_slice(token.as_bytes());
    }
    Ok(())
}

/// Decodes UTF-8, with U+FFFD for invalid bytes.
pub(crate) fn lossy_text(bytes: Vec<u8>) -> Result<String> {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error.into_bytes(),
    };
    let mut text = String::new();
    reserve_text(&mut text, bytes.len())?;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Ok(text)
}

pub(crate) fn joined_with(tokens: &[String], separator: &str) -> Result<String> {
    let length: usize = tokens.iter().map(|token| token.len() + separator.len()).sum();
    let mut text = String::new();
    reserve_text(&mut text, length)?;
    for (index, token) in tokens.iter().enumerate() {
        if index > 0 {
            text.push_str(separator);
        }
        text.push_str(token);
    }
    Ok(text)
}

/// Replaces the matches of a pattern in each token with `content`.
fn replace(tokens: &[String], regex: &Regex, content: &str, limit: usize) -> Result<Vec<String>> {
    let mut replaced = Vec::with_capacity(tokens.len());
    let mut total = 0;
    for token in tokens {
        let mut ranges = Vec::new();
        if !token.is_empty() {
            regex.each(token, |found| {
                ranges.push(found);
                Ok(())
            })?;
        }
        total += ranges.len().saturating_mul(content.len()).saturating_add(token.len());
        if total > limit {
            return Err(Error::unsupported(
                "decoder",
                format!("replacing that makes more than {limit} bytes of the tokens"),
            ));
        }
        replaced.push(offsets::replaced(token, &ranges, content)?);
    }
    Ok(replaced)
}

/// Removes `content` from a token, up to `start` times at the start and `stop` times at the end.
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
