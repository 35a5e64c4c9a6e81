//! A second engine, which shows that abilities do not depend on [`bpe_core::Encoding`].
//!
//! Tokens are up to three letters of a word, and any other character. `_` is a letter; one is put
//! before each text. The token `<s>` takes the spaces before it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bpe_core::engine::{EncodeRun, Originals};
use bpe_core::fingerprint::Digest;
use bpe_core::pool::Pool;
use bpe_core::segments::{Fixed, FixedIds, Prompt};
use bpe_core::special_tokens::Selection;
use bpe_core::stream_pool::StreamTables;
use bpe_core::token_table::TokenTable;
use bpe_core::{Engine, Error, Normalization, Request, Result, SpecialTokens};

const NAME: &str = "<s>";
const SPECIAL: u32 = u32::MAX;
/// Added to the bytes of letters, which make a number above all characters.
const LETTERS: u32 = 1 << 24;

pub struct Syllables(SpecialTokens, Pool);

impl Syllables {
    pub fn new() -> Self {
        Self(SpecialTokens::new([(NAME.to_owned(), SPECIAL)]).unwrap(), Pool::default())
    }

    /// Appends the tokens of a run, with the bytes of the run that each comes from.
    fn tokens(run: &str, is_first: bool) -> Vec<(u32, Range<usize>)> {
        let text = if is_first { format!("_{run}") } else { run.to_owned() };
        let added = text.len() - run.len();
        let mut tokens: Vec<(String, usize)> = Vec::new();
        for (at, character) in text.char_indices() {
            let is_joined = |(last, _): &&mut (String, usize)| {
                is_letter(character) && last.len() < 3 && last.chars().all(is_letter)
            };
            match tokens.last_mut().filter(is_joined) {
                Some((last, _)) => last.push(character),
                None => tokens.push((character.into(), at)),
            }
        }
        let place = |at: usize| at.saturating_sub(added);
        // The letter that is put before the text comes from its first character.
        let first = run.chars().next().map_or(0, char::len_utf8);
        let span = |at: usize, length: usize| match place(at + length) {
            0 => 0..first,
            end => place(at)..end,
        };
        tokens.into_iter().map(|(token, at)| (id_of(&token), span(at, token.len()))).collect()
    }
}

fn is_letter(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}

fn id_of(token: &str) -> u32 {
    match token.chars().next() {
        Some(first) if !is_letter(first) => first.into(),
        _ => token.bytes().fold(0, |id, byte| id << 8 | u32::from(byte)) + LETTERS,
    }
}

fn find(text: &str, mut found: impl FnMut(Range<usize>)) {
    for (at, _) in text.match_indices(NAME) {
        found(text[..at].trim_end_matches(' ').len()..at + NAME.len());
    }
}

fn fixed(place: Range<usize>) -> Fixed {
    Fixed { start: place.start, end: place.end, ids: FixedIds::Special(SPECIAL) }
}

fn unused<T>() -> Result<T> {
    Err(Error::Invalid("not part of the test".into()))
}

impl Engine for Syllables {
    fn special_tokens(&self) -> Result<&SpecialTokens> {
        Ok(&self.0)
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }

    fn has_token(&self, _: u32) -> bool {
        true
    }

    fn workspaces(&self) -> &Pool {
        &self.1
    }

    fn token_table(&self) -> Result<&Arc<TokenTable>> {
        unused()
    }

    fn stream_tables(&self) -> Result<StreamTables> {
        unused()
    }

    fn fingerprint(&self, _: &mut dyn FnMut(&[u8]) -> Result<Digest>) -> Result<Digest> {
        unused()
    }

    fn control_form<'a>(&self, text: &'a str) -> Result<(Cow<'a, str>, Originals<'a>)> {
        Ok((text.into(), Box::new(|span| span)))
    }

    fn encode_text(&self, text: &str, request: &Request, ids: &mut Vec<u32>) -> Result<()> {
        self.check(text, request)?;
        let (_, places) = self.find_in_text(text, &request.allowed, 0, &[])?;
        let mut start = 0;
        for place in places {
            self.encode_run(&text[start..place.start], start == 0, ids)?;
            ids.push(SPECIAL);
            start = place.end;
        }
        self.encode_run(&text[start..], start == 0, ids)
    }

    fn find_special(&self, text: &str) -> Result<Vec<(&str, Range<usize>)>> {
        let mut names = Vec::new();
        find(text, |place| names.push((NAME, place)));
        Ok(names)
    }

    fn find_in_segment(&self, _: &str, _: &Selection) -> Result<Vec<(Range<usize>, u32)>> {
        Ok(Vec::new())
    }

    fn find_in_prompt(&self, prompt: &mut Prompt) -> Result<()> {
        let mut places: Vec<_> = prompt.fixed().map(|(fixed, at)| (fixed.clone(), at)).collect();
        for (part, _, at) in prompt.trusted() {
            let base = part.start;
            find(&prompt.text()[part], |name| {
                places.push((fixed(base + name.start..base + name.end), at));
            });
        }
        places.sort_by_key(|(fixed, _)| fixed.start);
        prompt.set_fixed(places)
    }

    fn find_in_text(
        &self,
        text: &str,
        allowed: &Selection,
        _: usize,
        _: &[Fixed],
    ) -> Result<(usize, Vec<Fixed>)> {
        let mut places = Vec::new();
        if *allowed != Selection::None {
            find(text, |place| places.push(fixed(place)));
        }
        Ok((0, places))
    }

    fn find_settled(
        &self,
        text: &str,
        allowed: &Selection,
        places: &mut Vec<Fixed>,
    ) -> Result<usize> {
        let open = text[..self.0.all().open_from(text)].trim_end_matches(' ').len();
        *places = self.find_in_text(text, allowed, 0, &[])?.1;
        places.retain(|fixed| fixed.end <= open);
        Ok(open)
    }

    fn encode_run(&self, run: &str, is_first: bool, ids: &mut Vec<u32>) -> Result<()> {
        if !run.is_empty() {
            ids.extend(Self::tokens(run, is_first).into_iter().map(|(id, _)| id));
        }
        Ok(())
    }

    fn encode_runs(
        &self,
        prompt: &Prompt,
        work: &mut dyn FnMut(EncodeRun<'_>) -> Result<()>,
    ) -> Result<()> {
        work(&mut |run, ids| {
            let is_first = prompt.is_first(&run);
            self.encode_run(&prompt.text()[run], is_first, ids)
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
        for (id, span) in Self::tokens(&prompt.text()[run.clone()], is_first) {
            ids.push(id);
            spans.push(run.start + span.start..run.start + span.end);
        }
        Ok(())
    }

    fn ignores_segments(&self) -> bool {
        true
    }

    fn keeps_text(&self, _: &str) -> Result<bool> {
        Ok(false)
    }

    fn text_size(&self, _: u32) -> usize {
        0
    }

    fn safe_cut(&self, run: &str, near: usize) -> Option<usize> {
        let mut characters = run.char_indices().peekable();
        while let Some((_, before)) = characters.next() {
            let &(at, after) = characters.peek()?;
            if at >= near && !(is_letter(before) && is_letter(after)) {
                return Some(at);
            }
        }
        None
    }

    fn is_local(&self) -> bool {
        false
    }

    fn prepends(&self, is_first: bool) -> bool {
        is_first
    }

    fn takes_space(&self) -> bool {
        true
    }

    fn append_token(&self, id: u32, bytes: &mut Vec<u8>) -> Result<()> {
        match id.checked_sub(LETTERS) {
            _ if id == SPECIAL => bytes.extend(NAME.bytes()),
            Some(letters) => {
                bytes.extend(letters.to_be_bytes().into_iter().skip_while(|&byte| byte == 0));
            }
            None => {
                let character = char::from_u32(id).ok_or(Error::UnknownId(id.into()))?;
                bytes.extend(character.to_string().bytes());
            }
        }
        Ok(())
    }

    fn left_out(&self, _: &[u32], bytes: &[u8]) -> Result<usize> {
        Ok(usize::from(bytes.first() == Some(&b'_')))
    }
}
