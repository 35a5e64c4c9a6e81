//! Encodes text to ids only, passing whole stretches of text to the core.

use std::borrow::Cow;

use bpe_core::Engine;
use bpe_core::memory::{collected, push};
use bpe_core::request::Disallowed;
use bpe_core::split::Piece;

use crate::bytes::{spaced, swapped};
use crate::error::Result;
use crate::normalize::Normalizer;
use crate::offsets::joined;
use crate::spec::{Metaspace, PrependScheme};
use crate::split::Plan;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// Whether [`Tokenizer::append_ids`] works for this tokenizer.
    pub(crate) fn is_fast(&self) -> bool {
        let model = self.model();
        match self.plan() {
            Plan::Rewritten => false,
            // The normalizer may remove text from the beginning.
            Plan::Metaspace(Metaspace { prepend_scheme: PrependScheme::First, .. }) => {
                self.normalizer().is_none()
            }
            _ => model.is_core() || model.characters().is_some(),
        }
    }

    /// Appends the ids of a sequence, or of one of its words.
    pub(crate) fn append_ids(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        if self.is_plain() {
            return Ok(self.model().core().encode(text, self.request(), ids)?);
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
        if let Plan::Steps(steps) = self.plan()
            && self.model().characters().is_some()
            && !self.added().has_normalized()
            && steps.cuts_at_spaces_only()
            && let Some(is_prefixed) = normalizer.and_then(Normalizer::marks_spaces)
        {
            let text = spaced(stretch, is_prefixed && !stretch.is_empty())?;
            return self.model().append_characters(&text, ids);
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
        let from = ids.len();
        let model = self.model();
        if model.characters().is_some() {
            return self.append_characters(stretch, is_first, ids);
        }
        let is_prefixed = matches!(self.plan(), Plan::Pattern { prefix_space: true, .. });
        if model.lacks_a_byte_of(stretch.as_bytes()) || is_prefixed && model.lacks_a_byte_of(b" ") {
            return self.append_ids_of_pieces(stretch, ids);
        }
        match self.plan() {
            _ if stretch.is_empty() => {}
            Plan::Pattern { prefix_space: true, .. } if !stretch.starts_with(' ') => {
                model.encode(&joined(" ", stretch)?, ids)?;
            }
            Plan::Pattern { .. } => model.encode(stretch, ids)?,
            Plan::Steps(steps) => {
                let pieces = steps.cut(stretch)?.into_iter();
                let pieces = pieces.map(|range| Piece { start: range.start, end: range.end });
                let pieces = collected(pieces)?;
                model.encode_pieces(stretch, &pieces, ids)?;
            }
            Plan::Metaspace(_) | Plan::Rewritten => {}
        }
        model.finish(&mut ids[from..]);
        Ok(())
    }

    /// [`Tokenizer::append_stretch`] over characters.
    fn append_characters(&self, stretch: &str, is_first: bool, ids: &mut Vec<u32>) -> Result<()> {
        let mut append = |text: &str| self.model().append_characters(text, ids);
        match self.plan() {
            Plan::Metaspace(metaspace) => {
                let is_marked = stretch.starts_with(' ');
                let text = spaced(stretch, !is_marked && metaspace.prepends(stretch, is_first))?;
                if !metaspace.split && !text.is_empty() {
                    return append(&text);
                }
                metaspace.parts(&text, ' ')?.into_iter().try_for_each(|part| append(&text[part]))
            }
            Plan::Steps(steps) => {
                let parts = steps.cut(stretch)?.into_iter();
                parts.map(|part| swapped(&stretch[part])).try_for_each(|text| append(&text?))
            }
            Plan::Pattern { .. } | Plan::Rewritten => Ok(()),
        }
    }
}
