//! Encodes text to ids only, passing whole stretches of text to the core.

use std::borrow::Cow;

use bpe_core::Engine;
use bpe_core::memory::push;
use bpe_core::request::Disallowed;

use crate::error::Result;
use crate::normalize::Normalizer;
use crate::spec::{Metaspace, PrependScheme};
use crate::split::Plan;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// Whether [`Tokenizer::append_ids`] works for this tokenizer.
    pub(crate) fn is_fast(&self) -> bool {
        match self.split().plan() {
            Plan::Rewritten => false,
            // The normalizer may remove text from the beginning.
            Plan::Metaspace(Metaspace { prepend_scheme: PrependScheme::First, .. }) => {
                self.normalizer().is_none()
            }
            _ => true,
        }
    }

    /// Appends the ids of a sequence, or of one of its words.
    pub(crate) fn append_ids(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        if let Some(encoding) = self.encoding() {
            return Ok(encoding.encode(text, self.request(), ids)?);
        }
        self.check(text)?;
        self.added().each_raw(text, |range, id| {
            if let Some(id) = id {
                return Ok(push(ids, id)?);
            }
            self.append_normalized(&text[range.clone()], range.start == 0, ids)
        })
    }

    /// Appends the ids of a stretch without added tokens that are searched for before
    /// normalization. `is_first` is true if it begins the text.
    pub(crate) fn append_normalized(
        &self,
        stretch: &str,
        is_first: bool,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let normalizer = self.normalizer();
        if let Plan::Steps(steps) = self.split().plan()
            && !self.added().has_normalized()
            && steps.cuts_at_spaces_only()
            && let Some(is_prefixed) = normalizer.and_then(Normalizer::marks_spaces)
            && self.model().encode_marked(stretch, is_prefixed && !stretch.is_empty(), ids)?
        {
            return Ok(());
        }
        let stretch = match normalizer {
            None => Cow::Borrowed(stretch),
            Some(normalizer) => normalizer.apply(Cow::Borrowed(stretch))?,
        };
        self.added().each_normalized(&stretch, |range, id| match id {
            Some(id) => Ok(push(ids, id)?),
            None => self.append_stretch(&stretch[range.clone()], is_first && range.start == 0, ids),
        })
    }

    /// Fails if a text contains the name of a disallowed token.
    pub(crate) fn check(&self, text: &str) -> Result<()> {
        match self.request().disallowed {
            Disallowed::None => Ok(()),
            _ => Ok(self.request().check(self.special_tokens()?, text)?),
        }
    }

    /// Appends the ids of a stretch without added tokens, `is_first` is
    /// true if it begins the text.
    pub(crate) fn append_stretch(
        &self,
        stretch: &str,
        is_first: bool,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        self.model().encode_stretch(stretch, is_first, self.split(), ids)
    }
}
