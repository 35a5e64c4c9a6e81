//! Pipelines of ranks: special tokens, NFC or no normalization, one pattern, and byte pair encoding
//! by rank.

use std::sync::Arc;

use crate::direct::Direct;
use crate::memory::reserve;
use crate::normalize::Normalization;
use crate::offsets::CharacterSpans;
use crate::{SpecialTokens, Splitter, Vocabulary};

use crate::components::added::{AddedToken, AddedTokens, FreeIds};
use crate::components::decode::Decoder;
use crate::components::encoding::{Encoding, TokenFields};
use crate::components::spec;
use crate::components::split::Split;
use crate::error::{Error, Result};
use crate::models::Model;
use crate::pipeline::assembly::Pipeline;

impl Pipeline {
    /// Creates a pipeline of ranks. A special token must not have the id of another token.
    ///
    /// ```
    /// use bpe_core::{Normalization, Pipeline, Request, SpecialTokens, Splitter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::build((0..=255).map(|byte| (vec![byte], byte.into())).collect())?;
    /// let (splitter, special) = (Splitter::new(r"\w+|\W")?, SpecialTokens::new([])?);
    /// let pipeline = Pipeline::of_ranks(vocabulary, splitter, special, Normalization::None)?;
    /// assert_eq!(pipeline.count("abc", usize::MAX, &Request::ORDINARY)?, 3);
    /// assert_eq!(pipeline.truncate("abc", 2, &Request::ORDINARY)?, 2);
    /// # Ok::<(), bpe_core::Error>(())
    /// ```
    pub fn of_ranks(
        vocabulary: Vocabulary,
        splitter: Splitter,
        special: SpecialTokens,
        normalization: Normalization,
    ) -> Result<Self> {
        let direct = Direct::new(vocabulary, splitter, special)?.with_normalization(normalization);
        let special = direct.special_tokens().iter();
        let special: Vec<_> = special.map(|(name, id)| (name.to_owned(), id)).collect();
        Ok(Self::of_direct(Arc::new(direct), special))
    }

    /// Creates a pipeline of ranks that shares `direct`. `special` has the special tokens of
    /// `direct`; if several tokens share an id, the id decodes to the last.
    pub fn of_direct(
        direct: Arc<Direct>,
        special: impl IntoIterator<Item = (String, u32)>,
    ) -> Self {
        let mut added = AddedTokens::default();
        for (name, id) in special {
            added.insert(id, plain_token(name, true));
        }
        let model = Model::of_direct(direct.clone());
        let mut pipeline = Self::with(model, AddedTokens::default(), Split::of_ranks());
        pipeline.set_direct(direct, added);
        let decoder = spec::Decoder::ByteLevel {
            add_prefix_space: true,
            trim_offsets: true,
            use_regex: true,
        };
        pipeline.decoder = Some(Arc::new((decoder, Decoder::ByteLevel)));
        pipeline
    }

    /// Adds special tokens. Returns the number of new tokens.
    pub(crate) fn add_plain_tokens(
        &mut self,
        direct: &Direct,
        tokens: Vec<AddedToken>,
    ) -> Result<usize> {
        let largest = direct.special_tokens().iter().map(|(_, id)| id).max().unwrap_or(0);
        let mut free = FreeIds::after(direct.vocabulary().max_id().max(largest));
        let mut added = self.added().copy_for(&tokens)?;
        let mut count = 0;
        for token in tokens {
            check_flags(&token)?;
            let id = match added.id(&token.content) {
                Some(id) => id,
                None if direct.vocabulary().rank(token.content.as_bytes()).is_some() => {
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
        let mut names: Vec<(String, u32)> =
            added.ids().map(|(name, id)| (name.to_owned(), id)).collect();
        // If several names share an id, the name to which the id decodes stays first.
        names.sort_by_key(|(name, id)| direct.special_tokens().name(*id) != Some(name));
        let (vocabulary, splitter) = (direct.vocabulary().clone(), direct.splitter().clone());
        let with_all = Direct::new(vocabulary, splitter, SpecialTokens::new(names)?)?;
        let with_all = with_all.with_normalization(direct.normalization());
        self.set_direct(Arc::new(with_all), added);
        Ok(count)
    }

    pub(crate) fn encode_plain(
        &self,
        direct: &Direct,
        text: &str,
        type_id: u32,
        word: Option<u32>,
    ) -> Result<Encoding> {
        let (ids, spans) = direct.encode_with_spans(text, self.request(), true)?;
        let mut characters = CharacterSpans::new(text);
        let mut token_fields = TokenFields::default();
        for (span, &id) in spans.iter().zip(&ids) {
            let token = match direct.special_tokens().name(id) {
                Some(name) => name.to_owned(),
                None => self.model().id_to_token(id).unwrap_or_default(),
            };
            token_fields.offsets.push(characters.next(span.clone()));
            token_fields.tokens.push(token);
            token_fields.words.push(word);
        }
        Ok(Encoding::new(ids, type_id, Some(token_fields)))
    }

    pub(crate) fn decode_plain(
        &self,
        direct: &Direct,
        ids: &[u32],
        skip_special_tokens: bool,
    ) -> Result<Vec<u8>> {
        if !skip_special_tokens {
            return direct.decode_bytes(ids);
        }
        let is_skipped = |id: u32| self.added().token(id).is_some_and(|token| token.special);
        let mut kept = Vec::new();
        reserve(&mut kept, ids.len())?;
        kept.extend(ids.iter().copied().filter(|&id| !is_skipped(id)));
        direct.decode_bytes(&kept)
    }
}

/// Returns an added token without flags; the request decides whether to search for it.
fn plain_token(content: String, special: bool) -> AddedToken {
    let (single_word, lstrip, rstrip, normalized) = (false, false, false, false);
    AddedToken { content, single_word, lstrip, rstrip, normalized, special }
}

/// Fails if the token has a flag that pipelines of ranks lack.
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
