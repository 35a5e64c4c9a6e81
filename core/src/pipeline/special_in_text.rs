//! Finds special tokens in texts and prompts, and lists the tokens that segments may name.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::fixed::{Fixed, FixedIds};
use crate::memory::push;
use crate::request::Disallowed;
use crate::special_tokens::{Names, Selection};
use crate::{Request, SpecialTokens};

use crate::components::offsets::AlignedText;
use crate::error::{Error, Result};
use crate::pipeline::assembly::Pipeline;
use crate::pipeline::independent::quiet_place;
use crate::pipeline::segments::{Originals, Prompt};
use crate::pipeline::tokens::PieceTracer;
use crate::pipeline::trusted::{Item, align_characters};

impl Pipeline {
    /// Returns the special tokens that segments may name.
    pub fn special_tokens(&self) -> Result<&SpecialTokens> {
        if let Some(direct) = self.direct() {
            return Ok(direct.special_tokens());
        }
        Ok(&self.control()?.tokens)
    }

    /// Returns a searcher for the special tokens of a tokenizer file.
    pub fn special_names(&self) -> Result<&Arc<Names>> {
        self.control()?.special.get_or_try_init(|| {
            let added = self.added_tokens_by_id();
            let special = added.into_iter().filter(|(_, token)| token.special);
            let names = Names::new(special.map(|(_, token)| token.content.clone()))?;
            Ok(Box::new(Arc::new(names)))
        })
    }

    /// Returns true if special tokens may include adjacent whitespace.
    pub fn takes_space(&self) -> bool {
        self.added().take_space
    }

    /// Returns a text in the form used to compare control strings, and the mapping back.
    pub fn control_form<'a>(&self, text: &'a str) -> Result<(Cow<'a, str>, Originals<'a>)> {
        if let Some(direct) = self.direct() {
            let (normal, alignment) = direct.normalization().align(text)?;
            return Ok((normal, Box::new(move |span| alignment.original(span))));
        }
        let mut form = AlignedText::original(text, 0..text.len())?;
        if let Some(normalizer) = self.normalizer() {
            align_characters(normalizer, &mut form)?;
        }
        let AlignedText { text, origins, .. } = form;
        Ok((text.into(), Box::new(move |span| origins[span.start].0..origins[span.end - 1].1)))
    }

    /// Fails with [`Error::DisallowedSpecial`] if a text contains a disallowed name.
    pub fn check(&self, text: &str, request: &Request) -> Result<()> {
        match request.disallowed {
            Disallowed::None => Ok(()),
            _ => request.check(self.special_tokens()?, &self.normalization().apply(text)?),
        }
    }

    /// Returns the special tokens in a text: the name and the byte range of each.
    pub fn find_special(&self, text: &str) -> Result<Vec<(&str, Range<usize>)>> {
        if let Some(direct) = self.direct() {
            return direct.find_special(text);
        }
        let tokenizer = self.under(&Selection::All)?;
        let mut found = Vec::new();
        let mut note = |id, span| match self.added().token(id) {
            Some(token) => {
                found.push((token.content.as_str(), span));
                Ok(())
            }
            None => Ok(()),
        };
        if self.normalizer().is_none() || !self.added().has_normalized() {
            for fixed in tokenizer.locate_in_text(text, 0)? {
                fixed.ids.as_slice().iter().try_for_each(|&id| note(id, fixed.start..fixed.end))?;
            }
            return Ok(found);
        }
        let mut pieces = PieceTracer(|piece: &AlignedText, added: Option<u32>| {
            let (start, end) = piece.origin(0..piece.text.len());
            added.map_or(Ok(()), |id| note(id, start..end))
        });
        tokenizer.walk(text, &mut pieces)?;
        Ok(found)
    }

    /// Finds the special tokens of one segment that do not depend on adjacent segments.
    pub fn find_in_segment(
        &self,
        text: &str,
        allowed: &Selection,
    ) -> Result<Vec<(Range<usize>, u32)>> {
        if let Some(direct) = self.direct() {
            return direct.find_in_segment(text, allowed);
        }
        Ok(Vec::new())
    }

    /// Finds the remaining special tokens of a prompt, once all segments are known.
    pub fn find_in_prompt(&self, prompt: &mut Prompt) -> Result<()> {
        if self.direct().is_some() {
            return Ok(());
        }
        let control = self.control()?;
        let mut items: Vec<(Item<'_>, usize)> = Vec::new();
        for (fixed, segment) in prompt.fixed() {
            push(&mut items, (Item::Fixed(fixed), segment))?;
        }
        for (part, allowed, segment) in prompt.trusted() {
            push(&mut items, (Item::Part(part, allowed), segment))?;
        }
        items.sort_by_key(|&(_, segment)| segment);
        let tokens = self.locate(prompt.text(), &items, |token, allowed| {
            *allowed == Selection::All || control.allows(allowed, &token.content)
        })?;
        prompt.set_fixed(tokens)
    }

    /// Finds the special tokens of a normalized text. `earlier` has the tokens of a text with the
    /// same first `known` bytes. Returns how many leading tokens of `earlier` are valid, and all
    /// tokens after them.
    pub fn find_in_text(
        &self,
        text: &str,
        allowed: &Selection,
        known: usize,
        earlier: &[Fixed],
    ) -> Result<(usize, Vec<Fixed>)> {
        if let Some(direct) = self.direct() {
            return direct.find_in_text(text, allowed, known, earlier);
        }
        let start = quiet_place(self, text, known, |_| true)?;
        let kept = earlier.partition_point(|fixed| fixed.start < start);
        Ok((kept, self.under(allowed)?.locate_in_text(text, start)?))
    }

    /// Appends the special tokens of a normalized text that are the same for every continuation.
    /// Returns the first byte from which more text may form another special token.
    pub fn find_settled(
        &self,
        text: &str,
        allowed: &Selection,
        fixed: &mut Vec<Fixed>,
    ) -> Result<usize> {
        if let Some(direct) = self.direct() {
            return direct.find_settled(text, allowed, fixed);
        }
        let mut open = self.control()?.tokens.all().open_from(text);
        *fixed = self.under(allowed)?.locate_in_text(text, 0)?;
        // A later token may include the whitespace before its text.
        let kept = if self.added().take_space { text[..open].trim_end().len() } else { open };
        let settled = fixed.iter().take_while(|fixed| {
            let FixedIds::Special(id) = fixed.ids else { return true };
            let Some(token) = self.added().token(id) else { return false };
            // Later whitespace or letters may change such a token. Tokens that are searched for
            // last, and a name after its own whitespace, may give way to other tokens.
            fixed.start < open
                && (fixed.end <= open || !token.lstrip)
                && (fixed.end < text.len() || !(token.single_word || token.rstrip))
                && (fixed.end <= kept || !token.normalized)
        });
        let settled = settled.count();
        if let Some(first) = fixed.get(settled) {
            open = open.min(first.start);
        }
        fixed.truncate(settled);
        Ok(open)
    }

    /// Returns the added tokens that texts may contain.
    pub(super) fn selection(&self) -> Result<&Selection> {
        match self.encodes_special_tokens() {
            true => Ok(&self.control()?.ordinary),
            false => Ok(&Selection::All),
        }
    }

    /// Returns the tokenizer with a different request.
    pub(super) fn under(&self, allowed: &Selection) -> Result<Cow<'_, Self>> {
        if matches!(allowed, Selection::Some(_)) {
            return Err(Error::Invalid(
                "a tokenizer.json looks for all of its special tokens or for none: allow all or none"
                    .into(),
            ));
        }
        let is_ordinary = *allowed == Selection::None;
        let checks = !matches!(self.request().disallowed, Disallowed::None);
        if self.encodes_special_tokens() == is_ordinary && !checks {
            return Ok(Cow::Borrowed(self));
        }
        let mut copy = self.clone();
        copy.set_request(Request::allowing(allowed.clone()));
        Ok(Cow::Owned(copy))
    }

    /// Whether added tokens that the model may produce are kept out.
    pub(crate) fn keeps_out_made(&self) -> Result<bool> {
        Ok(self.keeps_out_control() && self.control()?.is_made_by_model())
    }

    /// Whether [`Pipeline::keeps_out_made`] holds and this text may become such tokens.
    pub(super) fn keeps_out_of(&self, text: &str) -> Result<bool> {
        if !self.keeps_out_made()? || self.model().sampling().is_some() {
            return self.keeps_out_made();
        }
        let mut ids = Vec::new();
        self.append_text(text, &mut ids)?;
        Ok(self.control()?.are_any_made(&ids))
    }
}
