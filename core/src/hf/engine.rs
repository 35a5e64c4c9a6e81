//! A tokenizer file as an engine of the core: all abilities that are written over [`Engine`] work with
//! it.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::ops::Range;
use std::sync::Arc;

use crate::char_boundary::ceil;
use crate::engine::shown::ByteRuns;
use crate::engine::{EncodeRun, Originals, narrow};
use crate::fingerprint::Digest;
use crate::memory::append;
use crate::offsets::{TokenEnd, ends_of};
use crate::polling::poll;
use crate::pool::Pool;
use crate::quiet::quiet_place;
use crate::request::Disallowed;
use crate::segments::{Fixed, FixedIds, Prompt};
use crate::special_tokens::Selection;
use crate::stream_pool::StreamTables;
use crate::token_table::TokenTable;
use crate::{Engine, Normalization, Request, SpecialTokens};
use unicode_normalization_alignments::char::canonical_combining_class;

use crate::hf::added::Stretches;
use crate::hf::bytes::byte_of;
use crate::hf::control_tokens::Control;
use crate::hf::decode::Decoder;
use crate::hf::details::Pieces;
use crate::hf::error::{Error, Result};
use crate::hf::model::LOST;
use crate::hf::normalize::Normalizer;
use crate::hf::offsets::Aligned;
use crate::hf::prompt::Item;
use crate::hf::spec::PrependScheme;
use crate::hf::split::Plan;
use crate::hf::tokenizer::Tokenizer;

/// The most ids at the beginning of which a decoder leaves out everything.
const LEFT_OUT: usize = 256;

impl Tokenizer {
    /// Why the bytes of tokens may differ from the normalized text.
    fn why_other_bytes(&self) -> Option<String> {
        let is_byte_level = matches!(self.decoder(), Some(Decoder::ByteLevel));
        let makes_bytes = is_byte_level || self.byte_runs().is_some();
        let is_random = self.model().sampling().is_some();
        let at_random = is_random.then(|| "tokens are chosen at random".into());
        let of_model = || self.model().why_other_bytes(is_byte_level);
        at_random.or_else(of_model).or_else(|| (!makes_bytes).then(|| LOST.into()))
    }
}

/// A text is encoded as [`Tokenizer::encode`] does without special tokens, truncation and padding.
///
/// A request allows all special tokens or none: other added tokens are always searched for. It need
/// differ from [`Tokenizer::set_request`], which costs a copy of the added tokens.
/// A tokenizer made from an encoding has the abilities of that one: [`Tokenizer::encoding`].
impl Engine for Tokenizer {
    fn special_tokens(&self) -> Result<&SpecialTokens> {
        Ok(&self.control()?.tokens)
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }

    fn has_token(&self, id: u32) -> bool {
        self.id_to_token(id).is_some()
    }

    fn workspaces(&self) -> &Pool {
        self.model().workspaces()
    }

    fn token_table(&self) -> Result<&Arc<TokenTable>> {
        self.token_table()
    }

    fn stream_tables(&self) -> Result<StreamTables> {
        let (after, first) = self.stream_tables()?;
        let skips_unknown = self.skips_unknown_ids();
        Ok(StreamTables { after: after.clone(), first: first.cloned(), skips_unknown })
    }

    fn fingerprint(&self, sha256: &mut dyn FnMut(&[u8]) -> Result<Digest>) -> Result<Digest> {
        self.fingerprint(sha256)
    }

    fn control_form<'a>(&self, text: &'a str) -> Result<(Cow<'a, str>, Originals<'a>)> {
        let (form, origins) = self.control_form(text)?;
        Ok((form.into(), Box::new(move |span| origins[span.start].0..origins[span.end - 1].1)))
    }

    fn encode_text(&self, text: &str, request: &Request, ids: &mut Vec<u32>) -> Result<()> {
        Engine::check(self, text, request)?;
        let tokenizer = self.under(&request.allowed)?;
        if !tokenizer.keeps_out_made()? {
            return tokenizer.append_text(text, ids);
        }
        let prompt = Prompt::of_text(&*tokenizer, text, &tokenizer.selection()?)?;
        prompt.encode(&*tokenizer, true, ids)
    }

    /// All that a normalizer rewrites together, whatever offsets leave out.
    fn encode_with_bytes(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        Engine::check(self, text, request)?;
        let (ids, mut spans) = self.under(&request.allowed)?.ids_and_spans(text)?;
        narrow(self, text, &ids, &mut spans)?;
        Ok((ids, spans))
    }

    /// All that a normalizer rewrites together; in a model of SentencePiece, the spans of its proto.
    fn encode_with_spans(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        Engine::check(self, text, request)?;
        let tokenizer = self.under(&request.allowed)?;
        if !self.model().is_sentencepiece() || tokenizer.keeps_out_of(text)? {
            return tokenizer.ids_and_spans(text);
        }
        let (mut ids, mut spans) = (Vec::new(), Vec::new());
        let mut pieces = Pieces(|piece: &Aligned, added: Option<u32>| {
            tokenizer.each_span(piece, added, |id, (start, end)| {
                ids.push(id);
                spans.push(start..end);
                Ok(())
            })
        });
        tokenizer.walk(text, &mut pieces)?;
        Ok((ids, spans))
    }

    /// A model of SentencePiece has the spans of its own proto.
    fn encode_with_places(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        match self.model().is_sentencepiece() {
            true => self.encode_with_spans(text, request),
            false => self.encode_with_bytes(text, request),
        }
    }

    fn token_ends(
        &self,
        text: &str,
        allowed: &Selection,
        _: Range<usize>,
    ) -> Result<(Vec<TokenEnd>, usize)> {
        let (ids, mut spans) = self.under(allowed)?.ids_and_spans(text)?;
        self.place_bytes(text, &ids, &mut spans)?;
        Ok((ends_of(&spans), ids.len()))
    }

    fn find_special(&self, text: &str) -> Result<Vec<(&str, Range<usize>)>> {
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

    fn find_in_segment(&self, _: &str, _: &Selection) -> Result<Vec<(Range<usize>, u32)>> {
        Ok(Vec::new())
    }

    fn find_in_prompt(&self, prompt: &mut Prompt) -> Result<()> {
        let control = self.control()?;
        let mut items: Vec<(Item<'_>, usize)> = Vec::new();
        for (fixed, segment) in prompt.fixed() {
            items.push((Item::Fixed(fixed), segment));
        }
        for (part, allowed, segment) in prompt.trusted() {
            items.push((Item::Part(part, allowed), segment));
        }
        items.sort_by_key(|&(_, segment)| segment);
        let tokens = self.locate(prompt.text(), &items, |token, allowed| {
            *allowed == Selection::All || control.allows(allowed, &token.content)
        })?;
        prompt.set_fixed(tokens)
    }

    fn find_in_text(
        &self,
        text: &str,
        allowed: &Selection,
        known: usize,
        earlier: &[Fixed],
    ) -> Result<(usize, Vec<Fixed>)> {
        let start = quiet_place(self, text, known, |_| true)?;
        let kept = earlier.partition_point(|fixed| fixed.start < start);
        Ok((kept, self.under(allowed)?.locate_in_text(text, start)?))
    }

    fn find_settled(
        &self,
        text: &str,
        allowed: &Selection,
        fixed: &mut Vec<Fixed>,
    ) -> Result<usize> {
        let mut open = self.control()?.tokens.all().open_from(text);
        *fixed = self.under(allowed)?.locate_in_text(text, 0)?;
        // A token that follows may take the whitespace before it.
        let kept = if self.added().take_space() { text[..open].trim_end().len() } else { open };
        let settled = fixed.iter().take_while(|fixed| {
            let FixedIds::Special(id) = fixed.ids else { return true };
            let Some(token) = self.added().token(id) else { return false };
            // Whitespace or a letter that follows may change such a token, and tokens that are
            // searched for last give way to others. So does a name after its own whitespace.
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

    fn encode_run(&self, run: &str, is_first: bool, ids: &mut Vec<u32>) -> Result<()> {
        if self.is_fast() {
            let from = ids.len();
            let search = |run: &Cow<'_, str>, found: Stretches<'_>| match self.normalizer() {
                // Without a normalizer, tokens are located already.
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

    fn encode_runs(
        &self,
        prompt: &Prompt,
        work: &mut dyn FnMut(EncodeRun<'_>) -> Result<()>,
    ) -> Result<()> {
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

    fn encode_run_with_spans(
        &self,
        prompt: &Prompt,
        run: Range<usize>,
        ids: &mut Vec<u32>,
        spans: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        let is_first = prompt.is_first(&run);
        self.encode_traced(prompt, run, is_first, ids, spans)
    }

    fn keeps_text(&self, run: &str) -> Result<bool> {
        let is_plain = matches!(self.split().plan(), Plan::Pattern { prefix_space: false, .. })
            && self.model().keeps_bytes(run);
        match self.normalizer() {
            _ if !is_plain => Ok(false),
            None => Ok(true),
            Some(_) if self.added().has_normalized() => Ok(false),
            Some(normalizer) => Ok(normalizer.apply(run.into())? == run),
        }
    }

    fn text_size(&self, id: u32) -> usize {
        self.model().token_bytes(id).map_or(0, <[u8]>::len)
    }

    fn safe_cut(&self, run: &str, near: usize) -> Option<usize> {
        if self.prepends(false) { None } else { self.beginning_cut(run, near) }
    }

    fn beginning_cut(&self, run: &str, mut near: usize) -> Option<usize> {
        if let Some(chunks) = self.chunks() {
            return chunks.end(run, near);
        }
        let is_pattern = matches!(self.split().plan(), Plan::Pattern { .. });
        let Some(splitter) = self.model().splitter().filter(|_| is_pattern) else {
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
            let cut = splitter.safe_cut(run, near)?;
            if self.normalizer().is_none() || is_kept(bytes[cut - 1], bytes[cut]) {
                return Some(cut);
            }
            near = cut + 1;
        }
    }

    fn ignores_segments(&self) -> bool {
        let is_found_in_run = self.normalizer().is_some() && self.added().has_normalized();
        let is_made = self.control().map_or(true, Control::is_made_by_model);
        !is_found_in_run && !is_made
    }

    fn is_local(&self) -> bool {
        matches!(self.split().plan(), Plan::Pattern { .. }) && self.normalizer().is_none()
    }

    fn prepends(&self, is_first: bool) -> bool {
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

    fn takes_space(&self) -> bool {
        self.added().take_space()
    }

    fn append_token(&self, id: u32, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.extend_from_slice(self.token_table()?.get(id));
        Ok(())
    }

    fn token_form(&self) -> Result<Normalization> {
        if let Some(why) = self.why_other_bytes() {
            let reason = format!("the bytes of tokens are not those of the text: {why}");
            return Err(Error::refused("heal", reason));
        }
        self.normalizer().map_or(Ok(Normalization::None), Normalizer::token_form)
    }

    fn check_end(&self, last: Option<u32>, is_inside: bool) -> Result<()> {
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

    fn mark_class(&self, character: char) -> u8 {
        canonical_combining_class(character)
    }

    fn left_out(&self, ids: &[u32], bytes: &[u8]) -> Result<usize> {
        if let Some(Decoder::ByteLevel) = self.decoder() {
            return Ok(0);
        }
        let is_byte =
            |id: &u32| self.id_to_token(*id).is_some_and(|token| byte_of(&token).is_some());
        let (mut read, mut without_text) = (Vec::new(), 0);
        // Decoding leaves out ids without a token.
        let mut known = ids.iter().enumerate().filter(|(_, id)| self.id_to_token(**id).is_some());
        let mut next = known.next();
        while let Some((place, id)) = next {
            next = known.next();
            Engine::append_token(self, *id, &mut read)?;
            // Bytes that stand side by side are decoded together.
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
                // They are shown as U+FFFD, and nothing of them is left out.
                Err(_) => Ok(without_text),
                Ok(_) => {
                    Err(Error::refused("decoder", "it changes more than the beginning of a text"))
                }
            };
        }
        Ok(bytes.len())
    }

    fn byte_runs(&self) -> Option<ByteRuns> {
        self.decoder().and_then(Decoder::byte_runs)
    }

    fn is_byte(&self, id: u32) -> Result<bool> {
        if self.token_table()?.get(id).len() != 1 {
            return Ok(false);
        }
        let decoded = self.decoder().zip(self.id_to_token(id));
        let decoded = decoded.map(|(decoder, token)| decoder.bytes_after_others(&token));
        Ok(decoded.transpose()?.flatten().is_some_and(|(_, is_byte)| is_byte))
    }

    fn append_bytes(&self, ids: &[u32], bytes: &mut Vec<u8>) -> Result<()> {
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
}

impl Tokenizer {
    /// Whether a normalizer treats each ASCII character independently of the text around it.
    fn keeps_ascii(normalizer: &Normalizer) -> bool {
        match normalizer {
            Normalizer::Form(_) | Normalizer::Lowercase => true,
            Normalizer::Sequence(parts) => parts.iter().all(Self::keeps_ascii),
            _ => false,
        }
    }

    /// The tokenizer with another request.
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

    /// Whether added tokens are kept out, and the model may make some.
    pub(crate) fn keeps_out_made(&self) -> Result<bool> {
        Ok(self.keeps_out_control() && self.control()?.is_made_by_model())
    }

    /// [`Tokenizer::keeps_out_made`], where a text becomes such tokens or may become them.
    fn keeps_out_of(&self, text: &str) -> Result<bool> {
        if !self.keeps_out_made()? || self.model().sampling().is_some() {
            return self.keeps_out_made();
        }
        let mut ids = Vec::new();
        self.append_text(text, &mut ids)?;
        Ok(self.control()?.are_any_made(&ids))
    }

    /// The added tokens that texts may contain.
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

    /// The ids of a text, and for each the bytes that it comes from: all that a normalizer rewrites
    /// together.
    fn ids_and_spans(&self, text: &str) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let prompt = Prompt::of_text(self, text, &self.selection()?)?;
        let (mut ids, mut spans) = (Vec::new(), Vec::new());
        prompt.encode_with_spans(self, &mut ids, &mut spans)?;
        Ok((ids, spans))
    }

    /// Gives tokens of bytes the places of their characters, where a model makes them of several
    /// characters together.
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

    /// [`Engine::beginning_cut`] where the model knows the characters that it keeps apart.
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
            // All whitespace next to an added token may belong to it.
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
