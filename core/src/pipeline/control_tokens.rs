//! Treats a tokenizer's added tokens as control tokens, which untrusted text must not produce.

use std::sync::Arc;

use crate::SpecialTokens;
use crate::once::OnceBox;
use crate::special_tokens::{Names, Selection};

use crate::components::added::AddedTokens;
use crate::error::Result;
use crate::models::Model;

/// Tokens that untrusted text must not produce.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) tokens: SpecialTokens,
    /// Ids that the model may produce from text, in ascending order.
    made: Vec<u32>,
    /// A bitmap of the low bits of these ids, so that most ids need no search.
    filter: Box<[u64; 64]>,
    /// Tokens that texts may contain while special tokens are encoded as ordinary text.
    pub(crate) ordinary: Selection,
    /// Number of names that are not tokens of the model.
    pub(crate) outside_model: usize,
    /// Names of the special tokens; created on first use.
    pub(crate) special: OnceBox<Arc<Names>>,
}

impl Control {
    pub(crate) fn new(added: &AddedTokens, model: &Model) -> Result<Self> {
        let tokens = SpecialTokens::new(added.ids().map(|(name, id)| (name.to_owned(), id)))?;
        let made = added.ids().map(|(_, id)| id).filter(|&id| model.may_make(id));
        let mut made: Vec<u32> = made.collect();
        made.sort_unstable();
        let mut filter = Box::new([0; 64]);
        for id in &made {
            filter[(id / 64 % 64) as usize] |= 1 << (id % 64);
        }
        let is_ordinary = |id| added.token(id).is_some_and(|it| !added.is_special(&it.content));
        let ordinary = added.ids().filter(|&(_, id)| is_ordinary(id));
        let ordinary = tokens.select(ordinary.map(|(name, _)| name));
        let outside = added.ids().filter(|(name, _)| model.token_to_id(name).is_none());
        let outside_model = outside.count();
        Ok(Self { tokens, made, filter, ordinary, outside_model, special: OnceBox::new() })
    }

    /// Whether the model may produce one of these tokens from text.
    pub(crate) fn is_made_by_model(&self) -> bool {
        !self.made.is_empty()
    }

    /// Whether one of these ids is a token that the model may produce from text.
    pub(crate) fn are_any_made(&self, ids: &[u32]) -> bool {
        let may_be = |id: u32| self.filter[(id / 64 % 64) as usize] >> (id % 64) & 1 != 0;
        ids.iter().any(|&id| may_be(id) && self.made.binary_search(&id).is_ok())
    }

    /// Whether `allowed` contains the token with this name.
    pub(crate) fn allows(&self, allowed: &Selection, name: &str) -> bool {
        let names = self.tokens.all().names();
        let place = names.binary_search_by(|other| other.as_str().cmp(name));
        place.is_ok_and(|place| allowed.contains(place))
    }
}
