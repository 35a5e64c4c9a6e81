//! Prompts and conversations: an added token comes from a trusted segment, never from other text.
//!
//! Tokens that are searched for before normalization are fixed places; the text between them is
//! encoded on its own. Tokens that are searched for in normalized text are fixed places too if
//! the tokenizer has no normalizer; otherwise they are found in each run, by the origins of its
//! characters.

use std::cell::LazyCell;
use std::ops::Range;

use bpe_core::char_boundary::ceil;
use bpe_core::memory::{push, reserve};
use bpe_core::polling::poll;
use bpe_core::segments::{Engine, Fixed, FixedIds, Prompt};
use bpe_core::special_tokens::Selection;
use bpe_core::{Normalization, SpecialTokens};

use crate::added::{AddedToken, Found};
use crate::characters::Characters;
use crate::encode_detailed::MEMORY;
use crate::error::{Error, Result};
use crate::normalize::Normalizer;
use crate::offsets::{Aligned, WORK};
use crate::spec::PrependScheme;
use crate::split::Plan;
use crate::tokenizer::Tokenizer;

/// A part of a text to search, or a place that is fixed already.
enum Item<'a> {
    Part(Range<usize>, &'a Selection),
    Fixed(&'a Fixed),
}

/// A token and its segment.
type Token = (Fixed, usize);

impl Tokenizer {
    /// Finds the added tokens that do not depend on normalization.
    fn locate(
        &self,
        text: &str,
        items: &[(Item<'_>, usize)],
        permits: impl Fn(&AddedToken, &Selection) -> bool,
    ) -> Result<Vec<Token>> {
        let mut tokens: Vec<Token> = Vec::new();
        let mut state = Found::default();
        let given = items.iter().enumerate().filter_map(|(index, (item, _))| match item {
            Item::Fixed(Fixed { start, ids: FixedIds::Given(_), .. }) => Some((index, *start)),
            _ => None,
        });
        let mut given = given.peekable();
        for (index, (item, segment)) in items.iter().enumerate() {
            match item {
                Item::Part(part, allowed) => {
                    while given.next_if(|&(before, _)| before < index).is_some() {}
                    // Whitespace on the other side of given ids belongs to no token.
                    let end = given.peek().map_or(text.len(), |&(_, start)| start);
                    let text = &text[..end];
                    let permits = |token: &AddedToken| permits(token, allowed);
                    self.added().find_raw(
                        text,
                        part.clone(),
                        &mut state,
                        permits,
                        |range, id| Ok(push(&mut tokens, (special(range, id), *segment))?),
                    )?;
                }
                Item::Fixed(fixed) => {
                    let mut fixed = Fixed::clone(fixed);
                    if let FixedIds::Special(id) = fixed.ids
                        && let Some(token) = self.added().token(id)
                    {
                        let range = state.with_space(token, text, fixed.start..fixed.end);
                        (fixed.start, fixed.end) = (range.start, range.end);
                    }
                    state.skip_to(fixed.end);
                    push(&mut tokens, (fixed, *segment))?;
                }
            }
        }
        if self.normalizer().is_none() && self.added().has_normalized() {
            self.locate_between(text, items, permits, &mut tokens)?;
        }
        Ok(tokens)
    }

    /// Finds the tokens that are searched for in normalized text, if nothing is normalized.
    fn locate_between(
        &self,
        text: &str,
        items: &[(Item<'_>, usize)],
        permits: impl Fn(&AddedToken, &Selection) -> bool,
        tokens: &mut Vec<Token>,
    ) -> Result<()> {
        let mut found = Vec::new();
        let mut parts = items.iter().peekable();
        let mut start = 0;
        for index in 0..=tokens.len() {
            let (end, next) = match tokens.get(index) {
                Some((fixed, _)) => (fixed.start, fixed.end),
                None => (text.len(), text.len()),
            };
            let stretch = text.get(start..end).unwrap_or("");
            let mut state = Found::default();
            while let Some((item, segment)) = parts.peek() {
                let first = match item {
                    Item::Part(part, _) => part.start,
                    Item::Fixed(fixed) => fixed.start,
                };
                if first >= end && index < tokens.len() {
                    break;
                }
                if let Item::Part(part, allowed) = item {
                    let within = part.start.max(start)..part.end.min(end);
                    if !within.is_empty() {
                        let within = within.start - start..within.end - start;
                        let permits = |token: &AddedToken| permits(token, allowed);
                        let found = |range: Range<usize>, id| {
                            let range = start + range.start..start + range.end;
                            Ok(push(&mut found, (special(range, id), *segment))?)
                        };
                        self.added()
                            .find_normalized(stretch, within, &mut state, permits, found)?;
                    }
                    if part.end > end {
                        break;
                    }
                }
                parts.next();
            }
            start = next;
        }
        reserve(tokens, found.len())?;
        tokens.append(&mut found);
        tokens.sort_by_key(|(fixed, _)| (fixed.start, fixed.end));
        Ok(())
    }

    /// Finds the added tokens of a text, with `AddedTokens::permits` as the only condition.
    fn locate_in_text(&self, text: &str) -> Result<Vec<Fixed>> {
        let items = [(Item::Part(0..text.len(), &Selection::All), 0)];
        let tokens = self.locate(text, &items, |token, _| self.added().permits(token))?;
        Ok(tokens.into_iter().map(|(fixed, _)| fixed).collect())
    }

    /// The form of a text for comparing control strings, and the range in the text of each byte of
    /// it: normalized, except by parts that add or remove text.
    pub fn control_form(&self, text: &str) -> Result<(String, Vec<(usize, usize)>)> {
        let mut form = Aligned::original(text)?;
        if let Some(normalizer) = self.normalizer() {
            align_characters(normalizer, &mut form)?;
        }
        Ok((form.text, form.origins))
    }

    /// Whether a normalizer treats each ASCII character independently of the text around it.
    fn keeps_ascii(normalizer: &Normalizer) -> bool {
        match normalizer {
            Normalizer::Form(_) | Normalizer::Lowercase => true,
            Normalizer::Sequence(parts) => parts.iter().all(Self::keeps_ascii),
            _ => false,
        }
    }

    /// The parts of a normalized run that come from one trusted segment, and what it allows.
    fn trusted_parts<'a>(
        text: &'a Aligned,
        run: Range<usize>,
        prompt: &'a Prompt,
    ) -> impl Iterator<Item = (Range<usize>, &'a Selection)> {
        let (origins, base) = (&text.origins, run.start);
        prompt.trusted_near(run).filter_map(move |(segment, allowed, _)| {
            let start = origins.partition_point(|origin| base + origin.0 < segment.start);
            let end = origins.partition_point(|origin| base + origin.1 <= segment.end);
            (start < end).then_some((start..end, allowed))
        })
    }

    /// Fails if the model made an added token from text that is not within one segment that allows
    /// it.
    fn check_made(&self, prompt: &Prompt, id: u32, span: &Range<usize>) -> Result<()> {
        let Some(token) = self.added().token(id) else { return Ok(()) };
        let text = &prompt.text()[span.clone()];
        let name = text.trim();
        let name = if name.is_empty() { text } else { name };
        let control = self.control()?;
        let is_trusted = prompt.trusted_near(span.clone()).any(|(segment, allowed, _)| {
            segment.start <= span.start
                && span.end <= segment.end
                && (*allowed == Selection::All || control.allows(allowed, name))
        });
        if is_trusted {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "the model makes the added token {:?} from ordinary text, so it cannot be kept out of \
             untrusted text; remove it from the text first",
            token.content
        )))
    }

    /// Whether text is put before each run, wherever it is.
    fn prepends(&self) -> bool {
        self.normalizer().is_some_and(Normalizer::prepends)
            || match self.plan() {
                Plan::Pattern { prefix_space, .. } => *prefix_space,
                Plan::Metaspace(metaspace) => metaspace.prepend_scheme == PrependScheme::Always,
                _ => false,
            }
    }

    /// [`Engine::beginning_cut`] over characters.
    fn cut_apart(&self, characters: &Characters, run: &str, near: usize) -> Option<usize> {
        let metaspace = match self.plan() {
            Plan::Metaspace(metaspace) => Some(metaspace),
            _ => None,
        };
        let is_whole = self.model().header().ignore_merges
            || self.normalizer().is_some() && self.added().has_normalized();
        if is_whole {
            return None;
        }
        let take_space = LazyCell::new(|| self.added().take_space());
        let is_apart = |before: char, after: char| {
            // All of the whitespace beside an added token may belong to it.
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
                None => self.pre_tokenizer().ignores([before, after]),
            };
            Some(is_kept && characters.are_apart(before, after))
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

    /// [`Engine::encode_run_with_spans`] for a run that may come from a longer text.
    fn encode_traced(
        &self,
        prompt: &Prompt,
        run: Range<usize>,
        is_first: bool,
        ids: &mut Vec<u32>,
        spans: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        // Details take many small allocations, so checks for the sum first.
        reserve(&mut Vec::<u8>::new(), run.len().saturating_mul(MEMORY))?;
        let mut text = Aligned::original_with_whole_origins(&prompt.text()[run.clone()])?;
        let (mut pieces, mut done) = (Vec::new(), 0);
        if let Some(normalizer) = self.normalizer() {
            normalizer.align(&mut text)?;
            let (control, mut state) = (self.control()?, Found::default());
            for (part, allowed) in Self::trusted_parts(&text, run.clone(), prompt) {
                let permits = |token: &AddedToken| {
                    *allowed == Selection::All || control.allows(allowed, &token.content)
                };
                self.added().find_normalized(
                    &text.text,
                    part,
                    &mut state,
                    permits,
                    |range, id| {
                        if done < range.start {
                            self.push_pieces(
                                text.slice(done..range.start)?,
                                None,
                                is_first,
                                &mut pieces,
                            )?;
                        }
                        done = range.end;
                        self.push_pieces(text.slice(range)?, Some(id), is_first, &mut pieces)
                    },
                )?;
            }
        }
        if done < text.text.len() {
            self.push_pieces(text.slice(done..text.text.len())?, None, is_first, &mut pieces)?;
        }
        pieces.retain(|(piece, _)| !piece.text.is_empty());
        let is_made_by_model = self.control()?.is_made_by_model;
        for piece in &pieces {
            for (id, _, (start, end)) in self.tokens(piece)? {
                poll(WORK)?;
                let span = run.start + start..run.start + end;
                if is_made_by_model && piece.1.is_none() {
                    self.check_made(prompt, id, &span)?;
                }
                push(ids, id)?;
                push(spans, span)?;
            }
        }
        Ok(())
    }
}

/// Applies only the parts of a normalizer that replace characters by others.
fn align_characters(normalizer: &Normalizer, text: &mut Aligned) -> Result<()> {
    match normalizer {
        Normalizer::Form(_) | Normalizer::Lowercase => normalizer.align(text),
        Normalizer::Sequence(parts) => {
            parts.iter().try_for_each(|part| align_characters(part, text))
        }
        _ => Ok(()),
    }
}

fn special(range: Range<usize>, id: u32) -> Fixed {
    Fixed { start: range.start, end: range.end, ids: FixedIds::Special(id) }
}

impl Engine for Tokenizer {
    type Error = Error;

    fn special_tokens(&self) -> Result<&SpecialTokens> {
        Ok(&self.control()?.tokens)
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }

    fn has_token(&self, id: u32) -> bool {
        self.id_to_token(id).is_some()
    }

    fn find_in_segment(&self, _: &str, _: &Selection) -> Result<Vec<(Range<usize>, u32)>> {
        Ok(Vec::new())
    }

    fn find_in_prompt(&self, prompt: &mut Prompt) -> Result<()> {
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
        prompt.set_fixed(tokens);
        Ok(())
    }

    fn find_in_text(
        &self,
        text: &str,
        _: &Selection,
        _: usize,
        fixed: &mut Vec<Fixed>,
    ) -> Result<()> {
        *fixed = self.locate_in_text(text)?;
        Ok(())
    }

    fn find_settled(&self, text: &str, _: &Selection, fixed: &mut Vec<Fixed>) -> Result<usize> {
        let mut open = self.control()?.tokens.all().open_from(text);
        *fixed = self.locate_in_text(text)?;
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
        if !self.is_fast() {
            let mut piece = Prompt::default();
            piece.push_text(self, run, &Selection::All)?;
            return self.encode_traced(&piece, 0..run.len(), is_first, ids, &mut Vec::new());
        }
        if self.normalizer().is_none() {
            return self.append_stretch(run, is_first, ids);
        }
        self.append_normalized(run, is_first, ids)
    }

    fn encode_runs(
        &self,
        prompt: &Prompt,
        work: impl FnOnce(&mut dyn FnMut(Range<usize>, &mut Vec<u32>) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        if self.ignores_segments() {
            return work(&mut |run, ids| {
                let is_first = prompt.is_first(&run);
                self.encode_run(&prompt.text()[run], is_first, ids)
            });
        }
        let mut spans = Vec::new();
        work(&mut |run, ids| {
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
        let model = self.model();
        let is_plain = model.is_core()
            && matches!(self.plan(), Plan::Pattern { prefix_space: false, .. })
            && !model.lacks_a_byte_of(run.as_bytes());
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
        if self.prepends() { None } else { self.beginning_cut(run, near) }
    }

    fn beginning_cut(&self, run: &str, mut near: usize) -> Option<usize> {
        if let Some(characters) = self.model().characters() {
            return self.cut_apart(characters, run, near);
        }
        let is_pattern = matches!(self.plan(), Plan::Pattern { .. });
        let is_kept = self.normalizer().is_none_or(|normalizer| {
            Self::keeps_ascii(normalizer) && !self.added().has_normalized()
        });
        if !is_pattern || !is_kept {
            return None;
        }
        let bytes = run.as_bytes();
        loop {
            let cut = self.model().core().splitter().safe_cut(run, near)?;
            let is_ascii = bytes[cut - 1].is_ascii() && bytes[cut].is_ascii();
            if self.normalizer().is_none() || is_ascii {
                return Some(cut);
            }
            near = cut + 1;
        }
    }

    fn ignores_segments(&self) -> bool {
        let is_found_in_run = self.normalizer().is_some() && self.added().has_normalized();
        let is_made = self.control().map_or(true, |control| control.is_made_by_model);
        !is_found_in_run && !is_made
    }
}
