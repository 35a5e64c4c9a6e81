//! Makes a tokenizer from an `Encoding` of the core, which it shares, without a file.
//!
//! It has the ids of the encoding. Special tokens are added tokens; more can be added.

use std::sync::Arc;

use crate::memory::reserve;
use crate::offsets::Characters;
use crate::token_table::Kind;
use crate::{Engine, SpecialTokens};

use crate::hf::added::{AddedToken, AddedTokens, FreeIds};
use crate::hf::decode::Decoder;
use crate::hf::encoding::{Details, Encoding};
use crate::hf::error::{Error, Result};
use crate::hf::model::Model;
use crate::hf::spec;
use crate::hf::split::Split;
use crate::hf::tokenizer::Tokenizer;

impl Tokenizer {
    /// A tokenizer with the ids of `encoding`. `special` has its special tokens; if several have
    /// one id, the id decodes to the last.
    pub fn of_encoding(
        encoding: Arc<crate::Encoding>,
        special: impl IntoIterator<Item = (String, u32)>,
    ) -> Tokenizer {
        let mut added = AddedTokens::default();
        for (name, id) in special {
            added.insert(id, plain_token(name, true));
        }
        let model = Model::of_encoding(encoding);
        let mut tokenizer = Self::with(model, added, Split::of_encoding());
        let decoder = spec::Decoder::ByteLevel {
            add_prefix_space: true,
            trim_offsets: true,
            use_regex: true,
        };
        tokenizer.restore_decoder(decoder, Decoder::ByteLevel);
        tokenizer
    }

    /// The encoding that the tokenizer was made from.
    fn core(&self) -> Result<&Arc<crate::Encoding>> {
        self.encoding().ok_or_else(|| Error::Invalid("the tokenizer has no encoding".into()))
    }

    pub(crate) fn add_plain_tokens(&mut self, tokens: Vec<AddedToken>) -> Result<usize> {
        let core = self.core()?;
        let largest = core.special_tokens().iter().map(|(_, id)| id).max().unwrap_or(0);
        let mut free = FreeIds::after(core.vocabulary().max_id().max(largest));
        let mut added = AddedTokens::clone(self.added());
        let mut count = 0;
        for token in tokens {
            check_flags(&token)?;
            let id = match added.id(&token.content) {
                Some(id) => id,
                None if core.vocabulary().rank(token.content.as_bytes()).is_some() => {
                    return Err(Error::Invalid(format!(
                        "{:?} is a token of the vocabulary already, so it cannot be added",
                        token.content
                    )));
                }
                None => {
                    count += 1;
                    free.take(&token.content)?
                }
            };
            added.insert(id, plain_token(token.content, token.special));
        }
        let model = if count == 0 {
            Model::of_encoding(core.clone())
        } else {
            let mut names: Vec<(String, u32)> =
                added.ids().map(|(name, id)| (name.to_owned(), id)).collect();
            // If two names have one id, keeps the first one first.
            names.sort_by_key(|(name, id)| core.special_tokens().name(*id) != Some(name));
            let (vocabulary, splitter) = (core.vocabulary().clone(), core.splitter().clone());
            let special = SpecialTokens::new(names)?;
            let encoding = crate::Encoding::new(vocabulary, splitter, special)?;
            Model::of_encoding(Arc::new(encoding.with_normalization(core.normalization())))
        };
        self.set_model(model, added);
        Ok(count)
    }

    /// Encodes a text with details.
    pub(crate) fn encode_plain(
        &self,
        text: &str,
        type_id: u32,
        word: Option<u32>,
    ) -> Result<Encoding> {
        let core = self.core()?;
        let (ids, spans) = core.encode_with_spans(text, self.request())?;
        let (mut starts, mut ends) = (Characters::new(text), Characters::new(text));
        let mut details = Details::default();
        for (span, &id) in spans.iter().zip(&ids) {
            let token = match core.special_tokens().name(id) {
                Some(name) => name.to_owned(),
                None => self.model().id_to_token(id).unwrap_or_default(),
            };
            details.offsets.push((starts.index(span.start), ends.index(span.end)));
            details.tokens.push(token);
            details.words.push(word);
        }
        Ok(Encoding::new(ids, type_id, Some(details)))
    }

    /// Appends the bytes of an id, and returns its kind.
    pub(crate) fn append_plain_token(&self, id: u32, bytes: &mut Vec<u8>) -> Result<Kind> {
        let Some(token) = self.core()?.token_bytes(id) else { return Ok(Kind::Absent) };
        bytes.extend_from_slice(token);
        let is_special = self.added().token(id).is_some_and(|token| token.special);
        Ok(if is_special { Kind::Special } else { Kind::Ordinary })
    }

    pub(crate) fn decode_plain(&self, ids: &[u32], skip_special_tokens: bool) -> Result<Vec<u8>> {
        let core = self.core()?;
        if !skip_special_tokens {
            return core.decode_bytes(ids);
        }
        let is_skipped = |id: u32| self.added().token(id).is_some_and(|token| token.special);
        let mut kept = Vec::new();
        reserve(&mut kept, ids.len())?;
        kept.extend(ids.iter().copied().filter(|&id| !is_skipped(id)));
        core.decode_bytes(&kept)
    }
}

/// An added token without flags; the request decides whether it is searched for.
fn plain_token(content: String, special: bool) -> AddedToken {
    let (single_word, lstrip, rstrip, normalized) = (false, false, false, false);
    AddedToken { content, single_word, lstrip, rstrip, normalized, special }
}

/// Fails if a flag of the token is unsupported by encodings.
fn check_flags(token: &AddedToken) -> Result<()> {
    let flags =
        [("single_word", token.single_word), ("lstrip", token.lstrip), ("rstrip", token.rstrip)];
    match flags.iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((flag, _)) => Err(Error::Invalid(format!(
            "the token {:?} asks for {flag}, which only a tokenizer.json can do",
            token.content
        ))),
    }
}
