//! Prompts and conversations: only trusted segments produce added tokens.
//!
//! Tokens that are searched for before normalization are fixed positions; the text between them is
//! encoded independently. Tokens that are searched for in normalized text are also fixed positions
//! if the tokenizer has no normalizer; otherwise they are found in each run, by the origins of its
//! characters.

use std::ops::Range;

use crate::fixed::{Fixed, FixedIds};
use crate::memory::{push, reserve};
use crate::special_tokens::Selection;

use crate::components::added::{AddedToken, EachRun, Found};
use crate::components::normalize::Normalizer;
use crate::components::offsets::AlignedText;
use crate::components::spec::PreTokenizer;
use crate::error::{Error, Result};
use crate::pipeline::assembly::Pipeline;
use crate::pipeline::segments::Prompt;
use crate::pipeline::tokens::{PieceTracer, reserve_details};

/// A part of a text to search, or a fixed position.
pub(crate) enum Item<'a> {
    Part(Range<usize>, &'a Selection),
    Fixed(&'a Fixed),
}

/// A token and its segment.
pub(crate) type PlacedToken = (Fixed, usize);

impl Pipeline {
    /// Finds the added tokens that do not depend on normalization.
    pub(crate) fn locate(
        &self,
        text: &str,
        items: &[(Item<'_>, usize)],
        permits: impl Fn(&AddedToken, &Selection) -> bool,
    ) -> Result<Vec<PlacedToken>> {
        let mut tokens: Vec<PlacedToken> = Vec::new();
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
                    // Whitespace beyond given ids never belongs to a token.
                    let end = given.peek().map_or(text.len(), |&(_, start)| start);
                    let text = &text[..end];
                    let permits = |token: &AddedToken| permits(token, allowed);
                    self.added().find_in(
                        false,
                        text,
                        part.clone(),
                        &mut state,
                        permits,
                        |range, id| push(&mut tokens, (special(range, id), *segment)),
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

    /// Finds tokens that are searched for in normalized text; the tokenizer has no normalizer.
    fn locate_between(
        &self,
        text: &str,
        items: &[(Item<'_>, usize)],
        permits: impl Fn(&AddedToken, &Selection) -> bool,
        tokens: &mut Vec<PlacedToken>,
    ) -> Result<()> {
        let mut found = Vec::new();
        let mut parts = items.iter().peekable();
        let mut start = 0;
        for index in 0..=tokens.len() {
            let (end, next) = match tokens.get(index) {
                Some((fixed, _)) => (fixed.start, fixed.end),
                None => (text.len(), text.len()),
            };
            let run = text.get(start..end).unwrap_or("");
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
                            found.push((special(range, id), *segment));
                            Ok(())
                        };
                        self.added().find_in(true, run, within, &mut state, permits, found)?;
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

    /// Finds the added tokens of a text from a quiet position on, subject only to
    /// `AddedTokens::permits`.
    pub(crate) fn locate_in_text(&self, text: &str, start: usize) -> Result<Vec<Fixed>> {
        let items = [(Item::Part(start..text.len(), &Selection::All), 0)];
        let tokens = self.locate(text, &items, |token, _| self.added().permits(token))?;
        Ok(tokens.into_iter().map(|(fixed, _)| fixed).collect())
    }

    /// Returns the parts of a normalized run that come from one trusted segment, with the tokens it
    /// allows.
    fn trusted_parts<'a>(
        text: &'a AlignedText,
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

    /// Whether the model may produce this token at a span of the text: an added token only within
    /// one segment that allows it.
    fn may_keep(&self, prompt: &Prompt, id: u32, span: &Range<usize>) -> Result<bool> {
        if self.added().token(id).is_none() || !self.model().may_make(id) {
            return Ok(true);
        }
        let text = &prompt.text()[span.clone()];
        let name = text.trim();
        let name = if name.is_empty() { text } else { name };
        let control = self.control()?;
        Ok(prompt.trusted_near(span.clone()).any(|(segment, allowed, _)| {
            segment.start <= span.start
                && span.end <= segment.end
                && (*allowed == Selection::All || control.allows(allowed, name))
        }))
    }

    /// Returns the error for an added token that the model produces from ordinary text.
    fn made_of_text(&self, id: u32) -> Error {
        let content = self.added().text(id).unwrap_or_default();
        Error::Invalid(format!(
            "the model makes the added token {content:?} from ordinary text, so it cannot be kept out \
             of untrusted text; remove it from the text first"
        ))
    }

    /// Calls `found` with the tokens of a piece of text that begins at `base`. Avoids added tokens
    /// that untrusted text would become, if the model has alternatives.
    fn each_kept(
        &self,
        prompt: &Prompt,
        base: usize,
        piece: &AlignedText,
        mut found: impl FnMut(u32, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let place = |(start, end): (usize, usize)| base + start..base + end;
        let (mut made, mut barred) = (Vec::new(), None);
        self.each_span(piece, None, |id, origin| {
            if !self.may_keep(prompt, id, &place(origin))? {
                barred = barred.or(Some(id));
            }
            made.push((id, place(origin)));
            Ok(())
        })?;
        if let Some(first) = barred {
            made.clear();
            let is_barred = |id: u32, span: Range<usize>| {
                !self.may_keep(prompt, id, &place(piece.origin(span))).unwrap_or(false)
            };
            let mut is_kept_out = true;
            let can_bar =
                self.model().encode_piece(&piece.text, Some(&is_barred), &mut |token| {
                    is_kept_out &= !is_barred(token.id, token.span.clone());
                    made.push((token.id, place(piece.origin(token.span))));
                    Ok(())
                })?;
            if !can_bar || !is_kept_out {
                return Err(self.made_of_text(first));
            }
        }
        made.into_iter().try_for_each(|(id, span)| found(id, span))
    }

    /// Whether a normalized text begins at offset 0 in `tokenizers`, if the pre-tokenizer treats
    /// the start of a text differently; otherwise true.
    fn begins_text(&self, text: &AlignedText) -> Result<bool> {
        let asks = self.split().spec().is_some_and(PreTokenizer::marks_beginning);
        let Some(normalizer) = self.normalizer().filter(|_| asks) else { return Ok(true) };
        let mut text = text.clone();
        normalizer.align(&mut text)?;
        Ok(text.origins.first().is_none_or(|origin| origin.0 == 0))
    }

    /// Like [`Pipeline::encode_run_with_spans`], for a run that may be part of a longer text.
    pub(crate) fn encode_traced(
        &self,
        prompt: &Prompt,
        run: Range<usize>,
        is_first: bool,
        ids: &mut Vec<u32>,
        spans: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        let (text, base) = (&prompt.text()[run.clone()], run.start);
        reserve_details(text)?;
        self.begin(text);
        let control = self.control()?;
        let search = |text: &AlignedText, found: EachRun<'_>| {
            // Without a normalizer, these tokens are already located.
            let parts = Self::trusted_parts(text, run.clone(), prompt);
            let parts = parts.filter(|_| self.normalizer().is_some());
            let parts = parts.map(|(part, allowed)| {
                let permits = |token: &AddedToken| {
                    *allowed == Selection::All || control.allows(allowed, &token.content)
                };
                (part, permits)
            });
            self.added().each_normalized_in(&text.text, parts, found)
        };
        let mut pieces = PieceTracer(|piece: &AlignedText, added: Option<u32>| {
            let mut take = |id, span| {
                push(ids, id)?;
                push(spans, span)
            };
            let keeps_out = !prompt.is_one_text() || self.keeps_out_control();
            if keeps_out && control.is_made_by_model() && added.is_none() {
                return self.each_kept(prompt, base, piece, take);
            }
            self.each_span(piece, added, |id, (start, end)| take(id, base + start..base + end))
        });
        let text = AlignedText::original(text, 0..text.len())?;
        let is_first = is_first && self.begins_text(&text)?;
        self.walk_run(AlignedText { is_whole: true, ..text }, is_first, search, &mut pieces)
    }
}

/// Applies only the parts of a normalizer that replace characters.
pub(crate) fn align_characters(normalizer: &Normalizer, text: &mut AlignedText) -> Result<()> {
    match normalizer {
        Normalizer::Replace(..)
        | Normalizer::Prepend(_)
        | Normalizer::Strip { .. }
        | Normalizer::SentencePiece(_) => Ok(()),
        Normalizer::Sequence(parts) => {
            parts.iter().try_for_each(|part| align_characters(part, text))
        }
        _ => normalizer.align(text),
    }
}

fn special(range: Range<usize>, id: u32) -> Fixed {
    Fixed { start: range.start, end: range.end, ids: FixedIds::Special(id) }
}
