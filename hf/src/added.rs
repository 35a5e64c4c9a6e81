//! Added tokens: names that are looked for before anything else is done with a text.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bpe_core::once::LockFreeOnce;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::names::Names;
use crate::normalize::Normalizer;

/// A token beside those of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedToken {
    /// What is looked for.
    pub content: String,
    /// Whether it is found only where no other word character stands beside it.
    pub single_word: bool,
    /// Whether whitespace before it belongs to it.
    pub lstrip: bool,
    /// Whether whitespace after it belongs to it.
    pub rstrip: bool,
    /// Whether its normalized form is looked for in the normalized text.
    pub normalized: bool,
    /// Whether decoding can leave it out.
    pub special: bool,
}

/// The added tokens of a tokenizer.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddedTokens {
    ids: HashMap<String, u32>,
    tokens: HashMap<u32, AddedToken>,
    /// Names that ever were special; decoding goes by the name.
    special: Vec<String>,
    /// The normalized form of tokens, where it is another than their content.
    normal_forms: HashMap<u32, String>,
    raw: Searcher,
    normalized: Searcher,
    /// Whether special tokens in the text are ordinary text.
    pub(crate) encode_special: bool,
}

/// Looks for the tokens of one kind.
#[derive(Debug, Clone, Default)]
struct Searcher(Option<Arc<Names>>);

impl Searcher {
    /// `path` says where the file has the token with an id.
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
        if let Some([a, b]) = tokens.array_windows().find(|[a, b]| a.0 == b.0) {
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

    /// What the token with this id is in the tokens of a text, and to the decoder.
    pub(crate) fn text(&self, id: u32) -> Option<&str> {
        let token = self.tokens.get(&id)?;
        Some(self.normal_forms.get(&id).unwrap_or(&token.content))
    }

    /// `(content, id)` of each.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (&str, u32)> {
        self.ids.iter().map(|(content, &id)| (content.as_str(), id))
    }

    /// Each with its id, by ascending id.
    pub(crate) fn by_id(&self) -> Vec<(u32, &AddedToken)> {
        let mut tokens: Vec<_> = self.tokens.iter().map(|(&id, token)| (id, token)).collect();
        tokens.sort_unstable_by_key(|&(id, _)| id);
        tokens
    }

    pub(crate) fn is_special(&self, text: &str) -> bool {
        self.special.binary_search_by(|name| name.as_str().cmp(text)).is_ok()
    }

    /// Adds tokens. One that the model has keeps its id, others get the next free ones. Returns how
    /// many are new, or other than before.
    pub(crate) fn add(
        &mut self,
        tokens: impl IntoIterator<Item = AddedToken>,
        model_size: u32,
        model_id: impl Fn(&str) -> Option<u32>,
        normalizer: Option<&Normalizer>,
    ) -> Result<usize> {
        let mut next_id = match self.tokens.keys().max() {
            Some(&max) if max >= model_size || model_size == 0 => max.saturating_add(1),
            _ => model_size,
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
            let id = known.or_else(|| model_id(&token.content)).unwrap_or_else(|| {
                next_id += 1;
                next_id - 1
            });
            self.normalize(id, &token, normalizer)?;
            self.ids.insert(token.content.clone(), id);
            if token.special
                && let Err(place) = self.special.binary_search(&token.content)
            {
                self.special.insert(place, token.content.clone());
            }
            self.tokens.insert(id, token);
            added += 1;
        }
        self.rebuild()?;
        Ok(added)
    }

    /// Looks for normalized tokens as another normalizer makes them.
    pub(crate) fn set_normalizer(&mut self, normalizer: Option<&Normalizer>) -> Result<()> {
        self.normal_forms.clear();
        for (id, token) in self.tokens.clone() {
            self.normalize(id, &token, normalizer)?;
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
                self.normal_forms.insert(id, form.into_owned());
            }
        }
        Ok(())
    }

    fn rebuild(&mut self) -> Result<()> {
        let kind = |normalized: bool| {
            let of_kind =
                self.tokens.iter().filter(move |(_, token)| token.normalized == normalized);
            of_kind
                .map(|(&id, token)| match self.normal_forms.get(&id) {
                    Some(form) if normalized => (form.as_str(), id),
                    _ => (token.content.as_str(), id),
                })
                .collect()
        };
        // Files list them by id.
        let path = |id: u32| {
            let place = self.tokens.keys().filter(|&&other| other < id).count();
            format!("added_tokens[{place}]")
        };
        let (raw, normalized) =
            (Searcher::new(kind(false), path)?, Searcher::new(kind(true), path)?);
        (self.raw, self.normalized) = (raw, normalized);
        Ok(())
    }

    /// Calls `found` with the stretches of a text as it was given.
    pub(crate) fn each_raw(
        &self,
        text: &str,
        found: impl FnMut(Range<usize>, Option<u32>) -> Result<()>,
    ) -> Result<()> {
        self.each(&self.raw, text, found)
    }

    /// Calls `found` with the stretches of a normalized text.
    pub(crate) fn each_normalized(
        &self,
        text: &str,
        found: impl FnMut(Range<usize>, Option<u32>) -> Result<()>,
    ) -> Result<()> {
        self.each(&self.normalized, text, found)
    }

    /// A stretch of a text is an added token, or what stands between two.
    fn each(
        &self,
        searcher: &Searcher,
        text: &str,
        mut stretch: impl FnMut(Range<usize>, Option<u32>) -> Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        // Where the whitespace ends that was last found to belong to a token.
        let mut spaces = 0..0;
        if let Some(names) = &searcher.0 {
            names.each(text, |id, found| {
                let Some(token) = self.tokens.get(&id) else { return Ok(()) };
                if !self.counts(token, text, &found) {
                    return Ok(());
                }
                let Range { mut start, mut end } = found;
                if token.lstrip {
                    let free = text.get(done..start).unwrap_or("");
                    start = done + free.trim_end().len();
                }
                if token.rstrip {
                    if !spaces.contains(&end) {
                        spaces = end..text.len() - text[end..].trim_start().len();
                    }
                    end = end.max(spaces.end);
                }
                // An empty one is whitespace that belongs to the token before.
                if start >= end {
                    return Ok(());
                }
                if done < start {
                    stretch(done..start, None)?;
                }
                done = end;
                stretch(start..end, Some(id))
            })?;
        }
        if done != text.len() {
            stretch(done..text.len(), None)?;
        }
        Ok(())
    }

    /// Whether a token that was found in a text counts there.
    fn counts(&self, token: &AddedToken, text: &str, found: &Range<usize>) -> bool {
        if self.encode_special && self.is_special(&token.content) {
            return false;
        }
        !(token.single_word && touches_word(&text[..found.start], &text[found.end..]))
    }
}

/// Whether a word character stands at the border.
fn touches_word(before: &str, after: &str) -> bool {
    static WORD: LockFreeOnce<regex::Regex> = LockFreeOnce::new();
    let word = WORD.get_or_init(|| regex::Regex::new(r"^\w").expect("the pattern is well-formed"));
    let last = before.char_indices().next_back().map_or(0, |(at, _)| at);
    word.is_match(&before[last..]) || word.is_match(after)
}

/// Added tokens with the ids that a file gives them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AddedTokenWithId {
    pub(crate) id: u32,
    #[serde(flatten)]
    pub(crate) token: AddedToken,
}
