//! Reads Mistral's `tekken.json`, as a pipeline of ranks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::normalize::Normalization;
use crate::pipeline::assembly::Pipeline;
use crate::vocabulary::RankList;
use crate::{SpecialTokens, Splitter, Vocabulary};

#[derive(Deserialize)]
struct File {
    config: Config,
    vocab: Vec<Token>,
    special_tokens: Option<Vec<Special>>,
}

#[derive(Deserialize)]
struct Config {
    pattern: String,
    default_vocab_size: u32,
    default_num_special_tokens: u32,
}

#[derive(Deserialize)]
struct Token {
    rank: u32,
    token_bytes: String,
}

#[derive(Deserialize)]
struct Special {
    rank: u32,
    token_str: String,
}

impl Pipeline {
    /// Reads the JSON of a file. Special tokens have the first ids; all other tokens follow.
    /// `special` has names and ids for files that do not list them.
    pub fn from_tekken(json: &str, special: Vec<(String, u32)>) -> Result<Self> {
        let malformed = |reason: String| Error::Invalid(format!("not a tekken.json: {reason}"));
        let file: File =
            serde_json::from_str(json).map_err(|error| malformed(error.to_string()))?;
        let Config { pattern, default_vocab_size: size, default_num_special_tokens: first } =
            file.config;
        let count = size.checked_sub(first).ok_or_else(|| {
            malformed(format!("default_vocab_size, {size}, is below the special tokens, {first}"))
        })?;
        let mut tokens: Vec<(usize, Token)> = file.vocab.into_iter().enumerate().collect();
        tokens.sort_by_key(|(_, token)| token.rank);
        let mut ranks = RankList::default();
        for (place, token) in tokens.into_iter().take(count as usize) {
            let field = |reason: &str| malformed(format!("vocab[{place}].{reason}"));
            let bytes = STANDARD
                .decode(&token.token_bytes)
                .map_err(|error| field(&format!("token_bytes: bad base64 ({error})")))?;
            if bytes.is_empty() {
                return Err(field("token_bytes: a token without bytes"));
            }
            let id = token.rank.checked_add(first).ok_or_else(|| field("rank: it is too large"))?;
            ranks.push(&bytes, id);
        }
        let listed = file.special_tokens.unwrap_or_default();
        let mut all: Vec<_> = listed.into_iter().map(|it| (it.token_str, it.rank)).collect();
        all.retain(|(name, _)| special.iter().all(|(other, _)| other != name));
        all.extend(special);
        let vocabulary = Vocabulary::from_ranks(ranks).map_err(|it| malformed(it.to_string()))?;
        let (splitter, special) = (Splitter::new(&pattern)?, SpecialTokens::new(all)?);
        Self::of_ranks(vocabulary, splitter, special, Normalization::None)
    }
}
