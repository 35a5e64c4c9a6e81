//! Treats a tokenizer's added tokens as control tokens, which untrusted text must not produce.

use bpe_core::SpecialTokens;
use bpe_core::special_tokens::Selection;

use crate::added::AddedTokens;
use crate::error::Result;
use crate::model::Model;

/// The tokens that untrusted text must not produce.
#[derive(Debug)]
pub(crate) struct Control {
    /// All added tokens.
    pub(crate) tokens: SpecialTokens,
    /// Whether the model may make one of them from text.
    pub(crate) is_made_by_model: bool,
}

impl Control {
    pub(crate) fn new(added: &AddedTokens, model: &Model) -> Result<Self> {
        let tokens = SpecialTokens::new(added.ids().map(|(name, id)| (name.to_owned(), id)))?;
        let is_made_by_model = added.ids().any(|(_, id)| model.may_make(id));
        Ok(Self { tokens, is_made_by_model })
    }

    /// Whether `allowed` contains the token with this name.
    pub(crate) fn allows(&self, allowed: &Selection, name: &str) -> bool {
        let names = self.tokens.all().names();
        let place = names.binary_search_by(|other| other.as_str().cmp(name));
        place.is_ok_and(|place| allowed.contains(place))
    }
}
