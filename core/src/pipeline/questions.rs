//! Questions that abilities ask a pipeline, and the abilities as methods.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::ops::Range;

use crate::char_boundary::{ceil, floor};
use crate::fixed::{Fixed, FixedIds};
use crate::memory::{append, push, with_capacity};
use crate::offsets::{TokenEnd, ends_of};
use crate::polling::poll;
use crate::pool::Pool;
use crate::request::Disallowed;
use crate::special_tokens::Selection;
use crate::{Normalization, Request, SpecialTokens};
use unicode_normalization_alignments::char::canonical_combining_class;

use crate::components::added::Stretches;
use crate::components::bytes::byte_of;
use crate::components::decode::{ByteRuns, Decoder};
use crate::components::normalize::Normalizer;
use crate::components::offsets::Aligned;
use crate::components::spec::PrependScheme;
use crate::components::split::Plan;
use crate::error::{Error, Result};
use crate::models::LOST;
use crate::pipeline::assembly::Pipeline;
use crate::pipeline::control_tokens::Control;
use crate::pipeline::independent::quiet_place;
use crate::pipeline::segments::{EncodeRun, Originals, Prompt};
use crate::pipeline::stable::beginning;
use crate::pipeline::tokens::Pieces;
use crate::pipeline::trusted::{Item, align_characters};

/// Maximum number of leading ids of which a decoder may drop the whole text.
const LEFT_OUT: usize = 256;

impl Pipeline {
    /// Returns why the bytes of tokens may differ from the normalized text.
    fn why_other_bytes(&self) -> Option<String> {
        let is_byte_level = matches!(self.decoder(), Some(Decoder::ByteLevel));
        let makes_bytes = is_byte_level || self.byte_runs().is_some();
        let is_random = self.model().sampling().is_some();
        let at_random = is_random.then(|| "tokens are chosen at random".into());
        let of_model = || self.model().why_other_bytes(is_byte_level);
        at_random.or_else(of_model).or_else(|| (!makes_bytes).then(|| LOST.into()))
    }

    /// Returns whether the token of a space spells a space. Without the token '\u{2581}', a space
    /// may become the bytes of that character.
    fn spells_spaces(&self) -> Result<bool> {
        if self.byte_runs().is_none() || self.model().token_to_id("\u{2581}").is_some() {
            return Ok(true);
        }
        let (mut ids, mut bytes) = (Vec::new(), Vec::new());
        self.encode_run("a ", false, &mut ids)?;
        ids.iter().try_for_each(|&id| self.append_token(id, &mut bytes))?;
        Ok(bytes.ends_with(b" "))
    }
}

/// Questions that abilities ask.
///
/// A text is encoded as by [`Pipeline::encode`] without special tokens, truncation and padding. The
/// text between two special tokens is a run; each run is encoded independently.
///
/// A pipeline of a file takes a request that allows all special tokens or none: other added tokens
/// are always searched for. A request other than the pipeline's costs a copy of the added tokens.
impl Pipeline {
    /// Returns the special tokens that segments may name.
    pub fn special_tokens(&self) -> Result<&SpecialTokens> {
        if let Some(direct) = self.direct() {
            return Ok(direct.special_tokens());
        }
        Ok(&self.control()?.tokens)
    }

    /// Returns the normalization before the search for special tokens. Normalization after the
    /// search is part of encoding a run.
    pub fn normalization(&self) -> Normalization {
        if let Some(direct) = self.direct() {
            return direct.normalization();
        }
        Normalization::None
    }

    /// Returns true if `id` is the id of a token.
    pub fn has_token(&self, id: u32) -> bool {
        if let Some(direct) = self.direct() {
            return direct.token_bytes(id).is_some();
        }
        self.id_to_token(id).is_some()
    }

    /// Returns the workspaces that calls borrow, with their caches: to clear or disable them.
    pub fn workspaces(&self) -> &Pool {
        if let Some(direct) = self.direct() {
            return direct.workspaces();
        }
        self.model().workspaces()
    }

    /// Returns the form of a text in which control strings are compared, with the mapping back.
    pub fn control_form<'a>(&self, text: &'a str) -> Result<(Cow<'a, str>, Originals<'a>)> {
        if let Some(direct) = self.direct() {
            let (normal, alignment) = direct.normalization().align(text)?;
            return Ok((normal, Box::new(move |span| alignment.original(span))));
        }
        let mut form = Aligned::original(text, 0..text.len())?;
        if let Some(normalizer) = self.normalizer() {
            align_characters(normalizer, &mut form)?;
        }
        let Aligned { text, origins, .. } = form;
        Ok((text.into(), Box::new(move |span| origins[span.start].0..origins[span.end - 1].1)))
    }

    /// Appends the ids of a text.
    ///
    /// Fails with [`Error::DisallowedSpecial`] if the text contains a disallowed name.
    pub fn encode_text(&self, text: &str, request: &Request, ids: &mut Vec<u32>) -> Result<()> {
        if let Some(direct) = self.direct() {
            return direct.encode(text, request, ids);
        }
        self.check(text, request)?;
        let tokenizer = self.under(&request.allowed)?;
        if !tokenizer.keeps_out_made()? {
            return tokenizer.append_text(text, ids);
        }
        let prompt = Prompt::of_text(&tokenizer, text, &tokenizer.selection()?)?;
        prompt.encode(&tokenizer, true, ids)
    }

    /// Like [`Pipeline::encode_with_spans`], but a token gets only the bytes of a character that it
    /// spells, if they are bytes of the text.
    pub fn encode_with_bytes(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let (ids, mut spans) = match self.direct() {
            Some(direct) if direct.keeps_text(text)? => return direct.encode_kept(text, request),
            Some(direct) => direct.encode_with_spans(text, request)?,
            None => {
                self.check(text, request)?;
                self.under(&request.allowed)?.ids_and_spans(text)?
            }
        };
        self.narrow(text, &ids, &mut spans)?;
        Ok((ids, spans))
    }

    /// Returns the ids of a text and, for each id, the bytes of the text it comes from, widened to
    /// whole characters: tokens that share a character overlap.
    ///
    /// Fails like [`Pipeline::encode_text`].
    pub fn encode_with_spans(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        if let Some(direct) = self.direct() {
            return direct.encode_with_spans(text, request);
        }
        self.check(text, request)?;
        let tokenizer = self.under(&request.allowed)?;
        if !self.model().is_sentencepiece() || tokenizer.keeps_out_of(text)? {
            return tokenizer.ids_and_spans(text);
        }
        let (mut ids, mut spans) = (Vec::new(), Vec::new());
        let mut pieces = Pieces(|piece: &Aligned, added: Option<u32>| {
            tokenizer.each_span(piece, added, |id, (start, end)| {
                push(&mut ids, id)?;
                push(&mut spans, start..end)
            })
        });
        tokenizer.walk(text, &mut pieces)?;
        Ok((ids, spans))
    }

    /// Returns the ids of a text and, for each id, its bytes as defined by the tokenizer's format:
    /// as in [`Pipeline::encode_with_bytes`] unless the format differs.
    pub fn encode_with_places(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        match self.model().is_sentencepiece() {
            true => self.encode_with_spans(text, request),
            false => self.encode_with_bytes(text, request),
        }
    }

    /// Returns the ends of tokens of a text, and the number of tokens. Tokens with numbers outside
    /// `wanted` may be missing, and tokens after its end need not be counted.
    pub fn token_ends(
        &self,
        text: &str,
        allowed: &Selection,
        wanted: Range<usize>,
    ) -> Result<(Vec<TokenEnd>, usize)> {
        if let Some(direct) = self.direct() {
            return direct.token_ends(text, allowed, wanted);
        }
        let (ids, mut spans) = self.under(allowed)?.ids_and_spans(text)?;
        self.place_bytes(text, &ids, &mut spans)?;
        Ok((ends_of(&spans), ids.len()))
    }

    /// Returns the names of the special tokens in a text, and their bytes in the text.
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
        let mut pieces = Pieces(|piece: &Aligned, added: Option<u32>| {
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

    /// Finds the remaining special tokens of a prompt once all its segments are known.
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
    /// same first `known` bytes. Returns how many of `earlier` also come first here, and all tokens
    /// that follow them.
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
        // A later token may take the whitespace before it.
        let kept = if self.added().take_space() { text[..open].trim_end().len() } else { open };
        let settled = fixed.iter().take_while(|fixed| {
            let FixedIds::Special(id) = fixed.ids else { return true };
            let Some(token) = self.added().token(id) else { return false };
            // Later whitespace or a later letter may change such a token, and tokens that are
            // searched for last give way to others, as does a name after its own whitespace.
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

    /// Appends the ids of a run of normalized text, or of a part of a run between safe cuts.
    /// `is_first` is true if no text precedes the run.
    pub fn encode_run(&self, run: &str, is_first: bool, ids: &mut Vec<u32>) -> Result<()> {
        if let Some(direct) = self.direct() {
            return direct.encode_normal(run, &Selection::None, ids);
        }
        if self.is_fast() {
            let from = ids.len();
            let search = |run: &Cow<'_, str>, found: Stretches<'_>| match self.normalizer() {
                // Without a normalizer, tokens are already located.
                None => found(0..run.len(), None),
                Some(_) => self.added().each_normalized(run, found),
            };
            self.walk_run(run.into(), is_first, search, ids)?;
            if !self.keeps_out_made()? || !self.control()?.are_any_made(&ids[from..]) {
                return Ok(());
            }
            ids.truncate(from);
        }
        let piece = Prompt::of_text(self, run, &self.selection()?)?;
        self.encode_traced(&piece, 0..run.len(), is_first, ids, &mut Vec::new())
    }

    /// Calls `work` with a function that appends the ids of a run of `prompt`.
    pub fn encode_runs(
        &self,
        prompt: &Prompt,
        work: &mut dyn FnMut(EncodeRun<'_>) -> Result<()>,
    ) -> Result<()> {
        if let Some(direct) = self.direct() {
            let form = direct.normalization();
            return direct.encode_stretches(|encode| {
                work(&mut |run, ids| encode(&form.apply(&prompt.text()[run])?, ids))
            });
        }
        if self.ignores_segments() {
            return work(&mut |run, ids| {
                let is_first = prompt.is_first(&run);
                self.encode_run(&prompt.text()[run], is_first, ids)
            });
        }
        let control = self.control()?;
        let is_found_in_run = self.normalizer().is_some() && self.added().has_normalized();
        let is_fast = self.is_fast() && !is_found_in_run;
        let mut spans = Vec::new();
        work(&mut |run, ids| {
            let from = ids.len();
            if is_fast {
                self.encode_run(&prompt.text()[run.clone()], prompt.is_first(&run), ids)?;
                if !control.are_any_made(&ids[from..]) {
                    return Ok(());
                }
                ids.truncate(from);
            }
            spans.clear();
            self.encode_run_with_spans(prompt, run, ids, &mut spans)
        })
    }

    /// Appends the ids of a run of `prompt` and, for each id, the bytes of the prompt it comes
    /// from.
    pub fn encode_run_with_spans(
        &self,
        prompt: &Prompt,
        run: Range<usize>,
        ids: &mut Vec<u32>,
        spans: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        if let Some(direct) = self.direct() {
            return direct.encode_run_with_spans(
                &prompt.text()[run.clone()],
                run.start,
                ids,
                spans,
            );
        }
        let is_first = prompt.is_first(&run);
        self.encode_traced(prompt, run, is_first, ids, spans)
    }

    /// Returns true if the concatenated texts of a run's ids are the run.
    pub fn keeps_text(&self, run: &str) -> Result<bool> {
        if let Some(direct) = self.direct() {
            return direct.keeps_text(run);
        }
        let is_plain = matches!(self.split().plan(), Plan::Pattern { prefix_space: false, .. })
            && self.model().bpe_by_ranks().is_some_and(|bpe| bpe.keeps_bytes(run));
        match self.normalizer() {
            _ if !is_plain => Ok(false),
            None => Ok(true),
            Some(_) if self.added().has_normalized() => Ok(false),
            Some(normalizer) => Ok(normalizer.apply(run.into())? == run),
        }
    }

    /// Returns the length of the text of an id, for ids of a run that keeps its text.
    pub fn text_size(&self, id: u32) -> usize {
        if let Some(direct) = self.direct() {
            return direct.text_size(id);
        }
        self.model().bpe_by_ranks().and_then(|bpe| bpe.token_bytes(id)).map_or(0, <[u8]>::len)
    }

    /// Returns the first position at or after byte `near` at which a run can be cut without
    /// changing an id. Whether a position is safe depends only on the characters on both sides.
    pub fn safe_cut(&self, run: &str, near: usize) -> Option<usize> {
        if self.prepends(false) { None } else { self.beginning_cut(run, near) }
    }

    /// Like [`Pipeline::safe_cut`], except that the rest, encoded alone, may have other ids.
    pub fn beginning_cut(&self, run: &str, mut near: usize) -> Option<usize> {
        if let Some(direct) = self.direct() {
            return direct.splitter().safe_cut(run, near);
        }
        if let Some(chunks) = self.chunks() {
            return chunks.end(run, near);
        }
        let is_pattern = matches!(self.split().plan(), Plan::Pattern { .. });
        let Some(bpe) = self.model().bpe_by_ranks().filter(|_| is_pattern) else {
            return self.cut_apart(run, near);
        };
        if self.normalizer().is_some_and(|normalizer| !Self::keeps_ascii(normalizer)) {
            return None;
        }
        let has_normalized = self.added().has_normalized();
        let is_kept = |before: u8, after: u8| {
            let is_ascii = before.is_ascii() && after.is_ascii();
            is_ascii && (!has_normalized || self.added().are_apart(before, after))
        };
        let bytes = run.as_bytes();
        loop {
            let cut = bpe.splitter().safe_cut(run, near)?;
            if self.normalizer().is_none() || is_kept(bytes[cut - 1], bytes[cut]) {
                return Some(cut);
            }
            near = cut + 1;
        }
    }

    /// Returns true if the ids of a run depend on its text alone, not on its segments.
    pub fn ignores_segments(&self) -> bool {
        if self.direct().is_some() {
            return true;
        }
        let is_found_in_run = self.normalizer().is_some() && self.added().has_normalized();
        let is_made = self.control().map_or(true, Control::is_made_by_model);
        !is_found_in_run && !is_made
    }

    /// Returns true if tokens depend on only a few hundred bytes around them, even in text without
    /// a safe cut.
    pub fn is_local(&self) -> bool {
        if let Some(direct) = self.direct() {
            return direct.splitter().is_family();
        }
        matches!(self.split().plan(), Plan::Pattern { .. }) && self.normalizer().is_none()
    }

    /// Returns true if encoding prepends text to a run. `is_first` is true if no text precedes the
    /// run.
    pub fn prepends(&self, is_first: bool) -> bool {
        self.normalizer().is_some_and(Normalizer::prepends)
            || match self.split().plan() {
                Plan::Pattern { prefix_space, .. } => *prefix_space,
                Plan::Metaspace(metaspace) => match metaspace.prepend_scheme {
                    PrependScheme::Always => true,
                    PrependScheme::First => is_first,
                    PrependScheme::Never => false,
                },
                _ => false,
            }
    }

    /// Returns true if special tokens may take adjacent whitespace.
    pub fn takes_space(&self) -> bool {
        self.added().take_space()
    }

    /// Appends the bytes that an id adds after other ids.
    pub fn append_token(&self, id: u32, bytes: &mut Vec<u8>) -> Result<()> {
        let token = match self.direct() {
            Some(direct) => direct.token_bytes(id).ok_or(Error::UnknownId(id.into()))?,
            None => self.token_table()?.get(id),
        };
        bytes.extend_from_slice(token);
        Ok(())
    }

    /// Returns the form in which the tokens of a text have its bytes, possibly after a space, so
    /// that later text changes no byte before the last character.
    ///
    /// Fails if tokens may have other bytes, or if later text may change more.
    pub fn token_form(&self) -> Result<Normalization> {
        if let Some(direct) = self.direct() {
            return Ok(direct.normalization());
        }
        if let Some(why) = self.why_other_bytes() {
            let reason = format!("the bytes of tokens are not those of the text: {why}");
            return Err(Error::refused("heal", reason));
        }
        if !self.spells_spaces()? {
            let reason =
                "a space becomes the bytes of its mark '\u{2581}', which is no token by itself";
            return Err(Error::refused("heal", reason));
        }
        self.normalizer().map_or(Ok(Normalization::None), Normalizer::token_form)
    }

    /// Fails if the tokens of a prompt may spell other bytes than its text.
    pub(crate) fn check_text(&self, text: &str) -> Result<()> {
        let has_name = || text.contains("<0x") || text.ends_with('<') || text.ends_with("<0");
        if self.byte_runs().is_some() && self.model().finds_byte_names() && has_name() {
            let reason = "the prompt has the name of a byte, such as '<0x7E>', or its beginning, and this \
                          file takes it for the byte; end the prompt before it";
            return Err(Error::refused("heal", reason));
        }
        Ok(())
    }

    /// Fails if later text may change the end of a prompt: its last token, the special token
    /// `last`, or, with `is_inside`, the character that the prompt ends inside.
    pub fn check_end(&self, last: Option<u32>, is_inside: bool) -> Result<()> {
        let token = last.and_then(|id| self.added().token(id)).filter(|token| token.single_word);
        if let Some(content) = token.map(|token| &token.content) {
            let reason = format!(
                "the added token '{content}' at the end of the prompt is text if a letter follows; put a \
                 space after it"
            );
            return Err(Error::refused("heal", reason));
        }
        if is_inside && self.split().may_change_characters() {
            let reason = "the pre-tokenizer may leave out or rewrite the character that the prompt ends \
                          inside; end the prompt before it";
            return Err(Error::refused("heal", reason));
        }
        Ok(())
    }

    /// Returns the combining class of a character in the tables of [`Pipeline::token_form`],
    /// possibly of another Unicode version.
    pub fn mark_class(&self, character: char) -> u8 {
        match self.direct() {
            Some(_) => unicode_normalization::char::canonical_combining_class(character),
            None => canonical_combining_class(character),
        }
    }

    /// Returns how many of the leading `bytes`, made of the tokens of `ids`, decoding drops.
    pub fn left_out(&self, ids: &[u32], bytes: &[u8]) -> Result<usize> {
        if let Some(Decoder::ByteLevel) = self.decoder() {
            return Ok(0);
        }
        let is_byte =
            |id: &u32| self.id_to_token(*id).is_some_and(|token| byte_of(&token).is_some());
        let (mut read, mut without_text) = (Vec::new(), 0);
        // Decoding drops ids without a token.
        let mut known = ids.iter().enumerate().filter(|(_, id)| self.id_to_token(**id).is_some());
        let mut next = known.next();
        while let Some((place, id)) = next {
            next = known.next();
            self.append_token(*id, &mut read)?;
            // Adjacent bytes are decoded together.
            if is_byte(id) && next.is_some_and(|(_, id)| is_byte(id)) {
                continue;
            }
            let text = self.decode(&ids[..=place], false)?;
            if text.is_empty() && place < LEFT_OUT {
                without_text = read.len();
                continue;
            }
            return match std::str::from_utf8(&read) {
                Ok(all) if all.ends_with(&text) => Ok(all.len() - text.len()),
                // Invalid bytes are shown as U+FFFD, and no part of them is dropped.
                Err(_) => Ok(without_text),
                Ok(_) => {
                    Err(Error::refused("decoder", "it changes more than the beginning of a text"))
                }
            };
        }
        Ok(bytes.len())
    }

    /// Returns how decoding shows tokens of single bytes, which are decoded in runs; `None` if the
    /// bytes of all tokens are decoded together, with U+FFFD for each incomplete character.
    pub fn byte_runs(&self) -> Option<ByteRuns> {
        self.decoder().and_then(Decoder::byte_runs)
    }

    /// Returns true if an id is part of a [byte run](Pipeline::byte_runs).
    pub fn is_byte(&self, id: u32) -> Result<bool> {
        if self.token_table()?.get(id).len() != 1 {
            return Ok(false);
        }
        let decoded = self.decoder().zip(self.id_to_token(id));
        let decoded = decoded.map(|(decoder, token)| decoder.bytes_after_others(&token));
        Ok(decoded.transpose()?.flatten().is_some_and(|(_, is_byte)| is_byte))
    }

    /// Appends the decoded bytes of `ids`.
    pub fn append_bytes(&self, ids: &[u32], bytes: &mut Vec<u8>) -> Result<()> {
        if let Some(direct) = self.direct() {
            return direct.append_bytes(ids, bytes);
        }
        match self.decoder() {
            Some(Decoder::ByteLevel) => {
                append(bytes, &self.decode_bytes(ids, false)?)?;
                Ok(())
            }
            decoder if decoder.is_none_or(Decoder::keeps_tokens) => {
                append(bytes, self.decode(ids, false)?.as_bytes())?;
                Ok(())
            }
            _ => {
                append(bytes, &self.decode_with_starts(ids)?.0)?;
                Ok(())
            }
        }
    }

    /// Fails with [`Error::DisallowedSpecial`] if a text contains a disallowed name.
    pub fn check(&self, text: &str, request: &Request) -> Result<()> {
        match request.disallowed {
            Disallowed::None => Ok(()),
            _ => request.check(self.special_tokens()?, &self.normalization().apply(text)?),
        }
    }

    /// Returns the number of tokens of a text, or any number above `limit` if there are more than
    /// `limit`; little text is read beyond the limit.
    pub fn count(&self, text: &str, limit: usize, request: &Request) -> Result<usize> {
        if let Some(direct) = self.direct() {
            return direct.count(text, limit, request);
        }
        self.check(text, request)?;
        let (request, mut ids) = (Request::allowing(request.allowed.clone()), Vec::new());
        if limit == usize::MAX || beginning(self, text, limit + 1, &request, &mut ids)?.is_none() {
            ids.clear();
            self.encode_text(text, &request, &mut ids)?;
        }
        Ok(ids.len())
    }

    /// Decodes `ids` to bytes, and returns where the bytes of each id start.
    pub fn decode_with_starts(&self, ids: &[u32]) -> Result<(Vec<u8>, Vec<usize>)> {
        let (mut bytes, mut starts) = (Vec::new(), with_capacity(ids.len())?);
        for &id in ids {
            poll(1)?;
            starts.push(bytes.len());
            self.append_token(id, &mut bytes)?;
        }
        let first = self.left_out(ids, &bytes)?;
        if first > 0 {
            bytes.drain(..first);
            starts.iter_mut().for_each(|start| *start = start.saturating_sub(first));
        }
        Ok((bytes, starts))
    }
}

impl Pipeline {
    /// Narrows spans of whole characters to the bytes of their tokens, if these are bytes of the
    /// text.
    fn narrow(&self, text: &str, ids: &[u32], spans: &mut [Range<usize>]) -> Result<()> {
        if text.is_ascii() || self.token_table().is_err() {
            return Ok(());
        }
        let (mut last, mut token) = (0, Vec::new());
        for (&id, span) in ids.iter().zip(spans) {
            token.clear();
            self.append_token(id, &mut token)?;
            let start = if span.contains(&last) { last } else { span.start };
            let end = start + token.len();
            let is_same = floor(text, start) == span.start
                && end <= text.len()
                && ceil(text, end) == span.end
                && text.as_bytes()[start..end] == token;
            if is_same {
                *span = start..end;
            }
            last = span.end;
        }
        Ok(())
    }

    /// Whether a normalizer treats each ASCII character independently of the context.
    fn keeps_ascii(normalizer: &Normalizer) -> bool {
        match normalizer {
            Normalizer::Form(_) | Normalizer::Lowercase => true,
            Normalizer::Sequence(parts) => parts.iter().all(Self::keeps_ascii),
            _ => false,
        }
    }

    /// Returns the tokenizer with another request.
    fn under(&self, allowed: &Selection) -> Result<Cow<'_, Self>> {
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

    /// Whether added tokens are kept out and the model may make some.
    pub(crate) fn keeps_out_made(&self) -> Result<bool> {
        Ok(self.keeps_out_control() && self.control()?.is_made_by_model())
    }

    /// Whether [`Pipeline::keeps_out_made`] holds and a text may become such tokens.
    fn keeps_out_of(&self, text: &str) -> Result<bool> {
        if !self.keeps_out_made()? || self.model().sampling().is_some() {
            return self.keeps_out_made();
        }
        let mut ids = Vec::new();
        self.append_text(text, &mut ids)?;
        Ok(self.control()?.are_any_made(&ids))
    }

    /// Returns the added tokens that texts may contain.
    fn selection(&self) -> Result<Selection> {
        if !self.encodes_special_tokens() {
            return Ok(Selection::All);
        }
        let ids = self.added().ids();
        let permitted = ids.filter(|&(_, id)| {
            self.added().token(id).is_some_and(|token| self.added().permits(token))
        });
        Ok(self.control()?.tokens.select(permitted.map(|(name, _)| name)))
    }

    /// Returns the ids of a text and, for each id, the bytes it comes from: all bytes that a
    /// normalizer rewrites together.
    fn ids_and_spans(&self, text: &str) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let prompt = Prompt::of_text(self, text, &self.selection()?)?;
        let (mut ids, mut spans) = (Vec::new(), Vec::new());
        prompt.encode_with_spans(self, &mut ids, &mut spans)?;
        Ok((ids, spans))
    }

    /// Assigns byte tokens to their characters if a model makes them of several characters
    /// together.
    fn place_bytes(&self, text: &str, ids: &[u32], spans: &mut [Range<usize>]) -> Result<()> {
        let is_byte = |id, byte| self.id_to_token(id).and_then(|it| byte_of(&it)) == Some(byte);
        let mut start = 0;
        while let Some(span) = spans.get(start).cloned() {
            let count = spans[start..].iter().take_while(|other| **other == span).count();
            poll(count)?;
            let mut run = ids[start..].iter().zip(&text.as_bytes()[span.clone()]);
            if count > 1
                && count == span.len()
                && run.all(|(&id, &byte)| is_byte(id, byte))
                && let Some(characters) = text.get(span.clone())
            {
                let mut next = start;
                for (at, character) in characters.char_indices() {
                    let (at, size) = (span.start + at, character.len_utf8());
                    spans[next..next + size].fill(at..at + size);
                    next += size;
                }
            }
            start += count;
        }
        Ok(())
    }

    /// [`Pipeline::beginning_cut`] for a model that knows which characters it keeps apart.
    fn cut_apart(&self, run: &str, near: usize) -> Option<usize> {
        let metaspace = match self.split().plan() {
            Plan::Metaspace(metaspace) => Some(metaspace),
            _ => None,
        };
        if self.normalizer().is_some() && self.added().has_normalized() {
            return None;
        }
        let take_space = LazyCell::new(|| self.added().take_space());
        let is_apart = |before: char, after: char| {
            // All whitespace next to an added token may belong to the token.
            if before.is_whitespace() && after.is_whitespace() && *take_space {
                return Some(false);
            }
            let (mut before, mut after) = match self.normalizer() {
                Some(normalizer) => normalizer.border(before, after)?,
                None => (before, after),
            };
            let is_kept = match metaspace {
                Some(metaspace) => {
                    let mark = |c: char| if c == ' ' { metaspace.replacement } else { c };
                    (before, after) = (mark(before), mark(after));
                    true
                }
                None => self.split().steps().ignores([before, after]),
            };
            let is_apart = self.model().are_apart(before, after)? && is_kept;
            Some(is_apart || self.split().cuts(before, after))
        };
        let start = ceil(run, near.max(1));
        let mut before = run[..start].chars().next_back()?;
        for (at, after) in run[start..].char_indices() {
            if is_apart(before, after)? {
                return Some(start + at);
            }
            before = after;
        }
        None
    }
}
