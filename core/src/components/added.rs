//! Added tokens: names to search for before all other steps.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::memory::ask_for;

use crate::components::added_search::Names;
use crate::components::normalize::Normalizer;
use crate::components::split::is_word;
use crate::error::{Error, Result};

/// A token added to the model's vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedToken {
    /// Text to search for.
    pub content: String,
    /// Whether the text matches only without an adjacent word character.
    pub single_word: bool,
    /// Whether the token includes the whitespace before its text.
    pub lstrip: bool,
    /// Whether the token includes the whitespace after its text.
    pub rstrip: bool,
    /// Whether the normalized form is searched for in normalized text.
    pub normalized: bool,
    /// Whether decoding can skip the token.
    pub special: bool,
}

/// Receives the parts of a text: added tokens with their ids, and the text between them.
pub(crate) type EachRun<'a> = &'a mut dyn FnMut(Range<usize>, Option<u32>) -> Result<()>;

/// Number of copies of a token's content made while adding it, and its other memory in bytes.
const COPIES: usize = 6;
const TOKEN: usize = 512;

/// The added tokens of a tokenizer. Clones share the tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddedTokens {
    ids: Arc<HashMap<String, u32>>,
    pub(crate) tokens: Arc<HashMap<u32, AddedToken>>,
    /// Names that have ever been special: decoding skips tokens by name.
    special: Arc<HashSet<String>>,
    /// Normalized forms of tokens, if they differ from the content.
    normal_forms: Arc<HashMap<u32, String>>,
    /// Whether any token includes adjacent whitespace.
    pub(crate) take_space: bool,
    raw: Searcher,
    normalized: Searcher,
    /// Pairs of characters in the names of `normalized`; `None` if tokens depend on adjacent text.
    inside: Option<Arc<Inside>>,
    /// Whether special tokens in texts are encoded as ordinary text.
    pub(crate) encode_special: bool,
}

/// Pairs of adjacent ASCII characters in names, in lowercase: for each first character, one bit per
/// second character.
#[derive(Debug)]
struct Inside([u128; 128]);

impl Inside {
    fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut pairs = [0; 128];
        for pair in names.flat_map(|name| name.as_bytes().windows(2)) {
            if let Some((before, after)) = Self::lower(pair[0], pair[1]) {
                pairs[before] |= 1 << after;
            }
        }
        Self(pairs)
    }

    fn lower(before: u8, after: u8) -> Option<(usize, u32)> {
        let is_ascii = before.is_ascii() && after.is_ascii();
        is_ascii.then(|| (before.to_ascii_lowercase().into(), after.to_ascii_lowercase().into()))
    }
}

/// Searches for raw or for normalized tokens.
#[derive(Debug, Clone, Default)]
struct Searcher(Option<Arc<Names>>);

impl Searcher {
    /// Builds a searcher. `path` returns the path in the file of the token with a given id.
    fn new(mut tokens: Vec<(&str, u32)>, path: impl Fn(u32) -> String) -> Result<Self> {
        if tokens.is_empty() {
            return Ok(Self(None));
        }
        tokens.sort_unstable();
        if tokens[0].0.is_empty() {
            let id = tokens[0].1;
            return Err(Error::unsupported(
                path(id),
                format!("a token that is empty once normalized, as that with the id {id},"),
            ));
        }
        if let Some([a, b]) = tokens.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::unsupported(
                path(b.1),
                format!(
                    "a token that is {:?} once normalized, as the one with the id {} is,",
                    b.0, a.1
                ),
            ));
        }
        let (contents, ids): (Vec<&str>, Vec<u32>) = tokens.into_iter().unzip();
        Ok(Self(Some(Arc::new(Names::new(&contents, ids)?))))
    }
}

impl AddedTokens {
    pub(crate) fn id(&self, content: &str) -> Option<u32> {
        self.ids.get(content).copied()
    }

    /// Returns the text of the token with this id, as shown by encodings and the decoder.
    pub(crate) fn text(&self, id: u32) -> Option<&str> {
        let token = self.tokens.get(&id)?;
        Some(self.normal_forms.get(&id).unwrap_or(&token.content))
    }

    /// Iterates over the tokens as `(content, id)`.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (&str, u32)> {
        self.ids.iter().map(|(content, &id)| (content.as_str(), id))
    }

    /// Returns the tokens and their ids, by ascending id.
    pub(crate) fn by_id(&self) -> Vec<(u32, &AddedToken)> {
        let mut tokens: Vec<_> = self.tokens.iter().map(|(&id, token)| (id, token)).collect();
        tokens.sort_unstable_by_key(|&(id, _)| id);
        tokens
    }

    pub(crate) fn is_special(&self, text: &str) -> bool {
        self.special.contains(text)
    }

    /// Copies these tokens, for adding `tokens` to the copy, after checking that all fit into
    /// memory.
    pub(crate) fn copy_for(&self, tokens: &[AddedToken]) -> Result<Self> {
        let all = self.tokens.values().chain(tokens);
        ask_for(all.map(|token| token.content.len() * COPIES + TOKEN).sum())?;
        Ok(self.clone())
    }

    /// Adds tokens. Tokens of the model keep their ids; other tokens get the next free ids. Returns
    /// the number of new or changed tokens.
    pub(crate) fn add(
        &mut self,
        tokens: Vec<AddedToken>,
        model_size: u32,
        model_id: impl Fn(&str) -> Option<u32>,
        normalizer: Option<&Normalizer>,
    ) -> Result<usize> {
        let mut free = match self.tokens.keys().max() {
            Some(&max) if max >= model_size || model_size == 0 => FreeIds::after(max),
            _ => FreeIds(Some(model_size)),
        };
        let mut added = 0;
        for token in tokens {
            if token.content.is_empty() {
                continue;
            }
            let known = self.id(&token.content);
            if known.is_some_and(|id| self.tokens.get(&id) == Some(&token)) {
                continue;
            }
            let id = match known.or_else(|| model_id(&token.content)) {
                Some(id) => id,
                None => free.take(&token.content)?,
            };
            self.normalize(id, &token, normalizer)?;
            if token.special {
                Arc::make_mut(&mut self.special).insert(token.content.clone());
            }
            self.insert(id, token);
            added += 1;
        }
        if added > 0 {
            self.rebuild()?;
        }
        Ok(added)
    }

    /// Adds a token with this id, but does not search texts for the token.
    pub(crate) fn insert(&mut self, id: u32, token: AddedToken) {
        Arc::make_mut(&mut self.ids).insert(token.content.clone(), id);
        Arc::make_mut(&mut self.tokens).insert(id, token);
    }

    /// Recomputes the normalized forms under a new normalizer.
    pub(crate) fn set_normalizer(&mut self, normalizer: Option<&Normalizer>) -> Result<()> {
        self.normal_forms = Arc::default();
        for (&id, token) in &*self.tokens.clone() {
            self.normalize(id, token, normalizer)?;
        }
        self.rebuild()
    }

    fn normalize(
        &mut self,
        id: u32,
        token: &AddedToken,
        normalizer: Option<&Normalizer>,
    ) -> Result<()> {
        if let (true, Some(normalizer)) = (token.normalized, normalizer) {
            let form = normalizer.apply(token.content.as_str().into())?;
            if form != token.content {
                Arc::make_mut(&mut self.normal_forms).insert(id, form.into_owned());
            }
        }
        Ok(())
    }

    fn rebuild(&mut self) -> Result<()> {
        let kind = |normalized: bool| -> Vec<(&str, u32)> {
            let of_kind =
                self.tokens.iter().filter(move |(_, token)| token.normalized == normalized);
            of_kind
                .map(|(&id, token)| match self.normal_forms.get(&id) {
                    Some(form) if normalized => (form.as_str(), id),
                    _ => (token.content.as_str(), id),
                })
                .collect()
        };
        // Files list the tokens in order of id.
        let path = |id: u32| {
            let place = self.tokens.keys().filter(|&&other| other < id).count();
            format!("added_tokens[{place}]")
        };
        let (raw, normalized) =
            (Searcher::new(kind(false), path)?, Searcher::new(kind(true), path)?);
        let mut of_text = self.tokens.values().filter(|token| token.normalized);
        let depends = of_text.any(|token| token.lstrip || token.rstrip || token.single_word);
        let inside = || Arc::new(Inside::new(kind(true).into_iter().map(|(name, _)| name)));
        self.inside = (!depends).then(inside);
        self.take_space = self.tokens.values().any(|token| token.lstrip || token.rstrip);
        (self.raw, self.normalized) = (raw, normalized);
        Ok(())
    }

    /// Calls `found` with the parts of a text before normalization.
    pub(crate) fn each_raw(
        &self,
        text: &str,
        mut found: impl FnMut(Range<usize>, Option<u32>) -> Result<()>,
    ) -> Result<()> {
        self.each(&self.raw, text, self.everywhere(text), &mut found)
    }

    /// Calls `found` with the parts of a normalized text.
    pub(crate) fn each_normalized(&self, text: &str, found: EachRun<'_>) -> Result<()> {
        self.each(&self.normalized, text, self.everywhere(text), found)
    }

    /// Like [`AddedTokens::each_normalized`], but finds tokens only in `parts` of the text, and
    /// only tokens that the condition of the part accepts.
    pub(crate) fn each_normalized_in<P: Fn(&AddedToken) -> bool>(
        &self,
        text: &str,
        parts: impl Iterator<Item = (Range<usize>, P)>,
        found: EachRun<'_>,
    ) -> Result<()> {
        self.each(&self.normalized, text, parts, found)
    }

    fn everywhere(
        &self,
        text: &str,
    ) -> impl Iterator<Item = (Range<usize>, impl Fn(&AddedToken) -> bool)> {
        std::iter::once((0..text.len(), |token: &AddedToken| self.permits(token)))
    }

    /// Calls `found` with each added token in parts of a text, and with the text between them.
    fn each<P: Fn(&AddedToken) -> bool>(
        &self,
        searcher: &Searcher,
        text: &str,
        parts: impl Iterator<Item = (Range<usize>, P)>,
        found: EachRun<'_>,
    ) -> Result<()> {
        let (mut done, mut state) = (0, Found::default());
        for (part, permits) in parts {
            self.find(searcher, text, part, &mut state, permits, |range, id| {
                if done < range.start {
                    found(done..range.start, None)?;
                }
                done = range.end;
                found(range, Some(id))
            })?;
        }
        if done != text.len() {
            found(done..text.len(), None)?;
        }
        Ok(())
    }

    /// Calls `found` with the tokens in `part` of a text, normalized or not, that `permits`
    /// accepts. The whitespace of a token may lie outside the part.
    pub(crate) fn find_in(
        &self,
        is_normalized: bool,
        text: &str,
        part: Range<usize>,
        state: &mut Found,
        permits: impl Fn(&AddedToken) -> bool,
        found: impl FnMut(Range<usize>, u32) -> Result<()>,
    ) -> Result<()> {
        let searcher = if is_normalized { &self.normalized } else { &self.raw };
        self.find(searcher, text, part, state, permits, found)
    }

    fn find(
        &self,
        searcher: &Searcher,
        text: &str,
        part: Range<usize>,
        state: &mut Found,
        permits: impl Fn(&AddedToken) -> bool,
        mut found: impl FnMut(Range<usize>, u32) -> Result<()>,
    ) -> Result<()> {
        let Some(names) = &searcher.0 else { return Ok(()) };
        names.each(&text[part.clone()], |id, name| {
            let (start, end) = (name.start, name.end);
            let Some(token) = self.tokens.get(&id) else { return Ok(end) };
            let name = part.start + start..part.start + end;
            let is_inside = token.single_word
                && [text[..name.start].chars().next_back(), text[name.end..].chars().next()]
                    .into_iter()
                    .flatten()
                    .any(is_word);
            if is_inside {
                return Ok(end);
            }
            if !permits(token) {
                // As in `tokenizers`, a token encoded as text hides all names inside its own name.
                // A token that a segment does not allow hides only its first byte, as in encodings.
                return Ok(if self.permits(token) { start + 1 } else { end });
            }
            let range = state.with_space(token, text, name);
            // An empty range is whitespace that belongs to the previous token.
            if !range.is_empty() {
                found(range, id)?;
            }
            Ok(end)
        })
    }

    /// Whether any tokens are searched for in normalized text.
    pub(crate) fn has_normalized(&self) -> bool {
        self.normalized.0.is_some()
    }

    /// Returns ASCII punctuation marks, one from the normalized form of each of these tokens, and
    /// whether every token has a mark before its last character. `None` if a token has no mark,
    /// contains whitespace, or depends on adjacent text.
    pub(crate) fn marks(&self) -> Option<(Vec<u8>, bool)> {
        self.inside.as_ref()?;
        let (mut marks, mut are_inside) = (Vec::new(), true);
        for (id, token) in self.tokens.iter().filter(|(_, token)| token.normalized) {
            let name = self.normal_forms.get(id).unwrap_or(&token.content);
            if name.contains(char::is_whitespace) {
                return None;
            }
            let (last, rest) = name.as_bytes().split_last()?;
            let inside = rest.iter().filter(|byte| byte.is_ascii_punctuation()).min();
            are_inside &= inside.is_some();
            marks.push(*inside.or_else(|| last.is_ascii_punctuation().then_some(last))?);
        }
        marks.sort_unstable();
        marks.dedup();
        Some((marks, are_inside))
    }

    /// Whether a text can be cut between two ASCII characters without changing which of these
    /// tokens are found, if normalization at most lowercases ASCII characters.
    pub(crate) fn are_apart(&self, before: u8, after: u8) -> bool {
        let pair = Inside::lower(before, after);
        let is_apart = |pairs: &Inside, (before, after)| pairs.0[before] >> after & 1 == 0;
        self.inside.as_deref().zip(pair).is_some_and(|(pairs, pair)| is_apart(pairs, pair))
    }

    pub(crate) fn token(&self, id: u32) -> Option<&AddedToken> {
        self.tokens.get(&id)
    }

    /// Returns false for special tokens if they are encoded as ordinary text.
    pub(crate) fn permits(&self, token: &AddedToken) -> bool {
        !(self.encode_special && self.is_special(&token.content))
    }
}

/// The free ids: this id and all larger ids. `None` if all ids are taken.
pub(crate) struct FreeIds(Option<u32>);

impl FreeIds {
    pub(crate) fn after(largest: u32) -> Self {
        Self(largest.checked_add(1))
    }

    /// Takes the next free id for the token with this name.
    pub(crate) fn take(&mut self, name: &str) -> Result<u32> {
        let id = self.0.ok_or_else(|| {
            Error::Invalid(format!(
                "no id is free for {name:?}: the largest, {}, is taken",
                u32::MAX
            ))
        })?;
        self.0 = id.checked_add(1);
        Ok(id)
    }
}

/// Progress of a search for added tokens.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// End of the last token.
    done: usize,
    /// Whitespace after the last token with `rstrip`.
    spaces: Range<usize>,
}

impl Found {
    pub(crate) fn skip_to(&mut self, position: usize) {
        self.done = self.done.max(position);
    }

    /// Returns the range of a token, including the whitespace that belongs to it.
    pub(crate) fn with_space(
        &mut self,
        token: &AddedToken,
        text: &str,
        name: Range<usize>,
    ) -> Range<usize> {
        let Range { mut start, mut end } = name;
        if token.lstrip {
            let free = text.get(self.done..start).unwrap_or("");
            start = self.done + free.trim_end().len();
        }
        if token.rstrip {
            if !self.spaces.contains(&end) {
                self.spaces = end..text.len() - text[end..].trim_start().len();
            }
            end = end.max(self.spaces.end);
        }
        if start < end {
            self.done = end;
        }
        start..end
    }
}

/// An added token, with its id in the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AddedTokenWithId {
    pub(crate) id: u32,
    #[serde(flatten)]
    pub(crate) token: AddedToken,
}
