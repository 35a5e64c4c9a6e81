//! Unigram: cuts a piece into the tokens with the highest sum of scores.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::lattice::Lattice;
use super::piece::UNKNOWN;
use super::random::Sampling;
use super::token_lists::TokenList;
use super::viterbi::{Best, each_match, path_from_end};
use super::vocab::Vocab;
use super::words::{CachedVocab, Words, missing_unknown};
use super::{Found, FoundToken, with_field};
use crate::error::{Error, Result};

/// Difference between the lowest token score and the score of unknown characters.
const PENALTY: f64 = 10.0;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Fields {
    /// Id that replaces characters outside the vocabulary.
    pub(crate) unk_id: Option<usize>,
    /// Whether unknown characters become one token per byte, if all bytes have tokens.
    pub(crate) byte_fallback: bool,
    #[serde(skip)]
    pub(crate) sampling: Sampling,
}

impl Fields {
    /// Returns a copy with a different value for one field.
    pub(crate) fn with(&self, name: &str, value: Value) -> Result<Self> {
        if Sampling::FIELDS.contains(&name) {
            let sampling = with_field(&self.sampling, name, value)?;
            return Ok(Self { sampling, ..self.clone() });
        }
        Ok(Self { sampling: self.sampling.clone(), ..with_field(self, name, value)? })
    }
}

#[derive(Debug)]
pub(crate) struct Unigram {
    fields: Fields,
    state: CachedVocab,
    scores: Arc<Vec<f64>>,
    /// Score of a character that is not a token.
    unknown_score: f64,
    unknown: Option<u32>,
    /// Token for each byte, with byte fallback.
    bytes: Vec<Option<u32>>,
}

/// Maximum lengths of pieces whose search uses an array on the stack.
const SHORT: usize = 15;
const MEDIUM: usize = 63;

impl Unigram {
    /// Builds the model from tokens and their scores. A token's index is its id.
    ///
    /// Fails if the unknown token is not in the list.
    pub(crate) fn of_list(fields: Fields, tokens: TokenList, scores: Vec<f64>) -> Result<Self> {
        Self::new(fields, Arc::new(Vocab::of_list(tokens)?), Arc::new(scores))
    }

    fn new(fields: Fields, vocab: Arc<Vocab>, scores: Arc<Vec<f64>>) -> Result<Self> {
        let unknown = match fields.unk_id {
            Some(id) if id >= scores.len() => {
                let reason = format!("model.unk_id: {id} is not below the {} tokens", scores.len());
                return Err(Error::Invalid(reason));
            }
            id => id.and_then(|id| u32::try_from(id).ok()),
        };
        let least = |least: f64, &score: &f64| if score < least { score } else { least };
        let unknown_score = scores.iter().fold(f64::INFINITY, least) - PENALTY;
        let bytes = if fields.byte_fallback { vocab.byte_tokens() } else { Vec::new() };
        Ok(Self { fields, state: CachedVocab::new(vocab), scores, unknown_score, unknown, bytes })
    }

    /// Copies the model, with empty caches.
    pub(crate) fn copied(&self) -> Result<Self> {
        self.with_fields(self.fields.clone())
    }

    pub(crate) fn with_fields(&self, fields: Fields) -> Result<Self> {
        Self::new(fields, self.state.vocab.clone(), self.scores.clone())
    }

    pub(crate) fn with_scores(&self, scores: Vec<f64>) -> Result<Self> {
        if scores.len() != self.scores.len() {
            let count = self.scores.len();
            return Err(Error::Invalid(format!(
                "model.vocab: there are {count} tokens, and {} scores",
                scores.len()
            )));
        }
        Self::new(self.fields.clone(), self.state.vocab.clone(), Arc::new(scores))
    }

    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Calls `found` with the id, the bytes and the score of each token in a text. Fails if `found`
    /// accepts a character outside the vocabulary and there is no unknown token.
    #[inline(always)]
    fn each_node(
        &self,
        text: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        mut found: impl FnMut(u32, Range<usize>, f64) -> bool,
    ) -> Result<()> {
        let mut missing = None;
        each_match(self.state.vocab.trie(), text, is_barred, |id, span| match id {
            UNKNOWN => {
                let id = self.unknown.unwrap_or(UNKNOWN);
                if found(id, span.clone(), self.unknown_score) {
                    missing.get_or_insert(span);
                }
            }
            id => drop(found(id, span, self.scores[id as usize])),
        })?;
        match missing {
            Some(span) if self.unknown.is_none() => {
                Err(missing_unknown("unk_id", "it is null", &text[span]))
            }
            _ => Ok(()),
        }
    }

    /// Finds the best last token before each position, including the end of the text.
    fn find_best(
        &self,
        text: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        best: &mut [Best<f64>],
    ) -> Result<()> {
        self.each_node(text, is_barred, |id, span, score| {
            let before = best[span.start];
            let score = score + before.score;
            let other = &mut best[span.end];
            let is_better = other.length == 0 || score > other.score;
            if is_better {
                // Consecutive unknown characters fuse.
                let is_run = before.id == id && before.length > 0 && self.unknown == Some(id);
                let length = if is_run { before.length } else { 0 } + span.len() as u32;
                *other = Best { score, length, id };
            }
            is_better
        })
    }

    /// Appends the ids of the best path through a piece; `best` has one more item than the piece
    /// has bytes.
    #[inline(always)]
    fn append_best(&self, piece: &str, best: &mut [Best<f64>], ids: &mut Vec<u32>) -> Result<()> {
        self.find_best(piece, |_, _| false, best)?;
        let from = ids.len();
        for (id, span) in path_from_end(best) {
            if self.unknown != Some(id) {
                ids.push(id);
                continue;
            }
            let (first, text) = (ids.len(), &piece[span.clone()]);
            self.each_unknown(id, text, span, |_, _| false, &mut |token| {
                ids.push(token.id);
                Ok(())
            })?;
            ids[first..].reverse();
        }
        ids[from..].reverse();
        Ok(())
    }

    /// Returns the tokens of a text and the bytes of each.
    fn path(
        &self,
        text: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
    ) -> Result<Vec<(u32, Range<usize>)>> {
        if let Some((alpha, count)) = self.fields.sampling.choice() {
            let mut lattice = Lattice::new(text.len());
            self.each_node(text, is_barred, |id, span, score| {
                lattice.add(id, span, score);
                true
            })?;
            return if count > 0 {
                lattice.sample_best(count, alpha)
            } else {
                lattice.sample(alpha)
            };
        }
        let mut best = vec![Best::default(); text.len() + 1];
        self.find_best(text, is_barred, &mut best)?;
        let mut path: Vec<_> = path_from_end(&best).collect();
        path.reverse();
        Ok(path)
    }

    /// Calls `found` with the tokens of a path through a piece.
    fn each_of_path(
        &self,
        piece: &str,
        path: &[(u32, Range<usize>)],
        is_barred: &impl Fn(u32, Range<usize>) -> bool,
        found: Found<'_>,
    ) -> Result<()> {
        // The path of a lattice has single unknown characters, which fuse here.
        let are_unknown = |a: u32, b: u32| a == b && self.unknown == Some(a);
        for part in path.chunk_by(|a, b| are_unknown(a.0, b.0)) {
            let (id, span) = (part[0].0, part[0].1.start..part[part.len() - 1].1.end);
            match self.unknown == Some(id) {
                true => {
                    self.each_unknown(id, &piece[span.clone()], span, is_barred, &mut *found)?;
                }
                false => found(FoundToken::new(id, span))?,
            }
        }
        Ok(())
    }

    /// Calls `found` with the tokens for unknown text, unless the whole text is a token.
    fn each_unknown(
        &self,
        id: u32,
        text: &str,
        span: Range<usize>,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        found: Found<'_>,
    ) -> Result<()> {
        let is_kept = |id: &u32| !is_barred(*id, span.clone());
        if let Some(id) = self.state.vocab.id(text).filter(is_kept) {
            return found(FoundToken::new(id, span));
        }
        let byte = |byte: u8| self.bytes.get(usize::from(byte)).copied().flatten().filter(is_kept);
        if text.bytes().all(|it| byte(it).is_some()) {
            let mut ids = text.bytes().filter_map(byte);
            return ids.try_for_each(|id| found(FoundToken::new(id, span.clone())));
        }
        found(FoundToken { id, span, shows_piece: true })
    }
}

impl Words for Unigram {
    fn state(&self) -> &CachedVocab {
        &self.state
    }

    fn append_word(&self, piece: &str, ids: &mut Vec<u32>) -> Result<()> {
        if Words::sampling(self).is_some() {
            return self.each_token(piece, |_, _| false, &mut |token| {
                ids.push(token.id);
                Ok(())
            });
        }
        let length = piece.len();
        // Filling a larger array takes longer than searching a short piece.
        if length <= SHORT {
            let best = &mut [Best::default(); SHORT + 1];
            self.append_best(piece, &mut best[..=length], ids)
        } else if length <= MEDIUM {
            let best = &mut [Best::default(); MEDIUM + 1];
            self.append_best(piece, &mut best[..=length], ids)
        } else {
            self.append_best(piece, &mut vec![Best::default(); length + 1], ids)
        }
    }

    fn each_token(
        &self,
        piece: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        found: Found<'_>,
    ) -> Result<()> {
        let path = self.path(piece, &is_barred)?;
        self.each_of_path(piece, &path, &is_barred, found)
    }

    fn why_other_bytes(&self, is_byte_level: bool) -> Option<String> {
        self.state.vocab.why_bytes_are_lost(is_byte_level, &self.bytes)
    }

    fn sampling(&self) -> Option<&Sampling> {
        self.fields.sampling.choice().map(|_| &self.fields.sampling)
    }

    fn unknown(&self) -> Option<u32> {
        self.unknown
    }
}

#[derive(Serialize)]
struct Written<'a> {
    r#type: &'static str,
    unk_id: Option<usize>,
    #[serde(serialize_with = "write_scores")]
    vocab: &'a Unigram,
    byte_fallback: bool,
}

impl Serialize for Unigram {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let Fields { unk_id, byte_fallback, .. } = self.fields;
        Written { r#type: "Unigram", unk_id, vocab: self, byte_fallback }.serialize(serializer)
    }
}

fn write_scores<S: Serializer>(
    model: &Unigram,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let tokens = model.state.vocab.iter().map(|(text, _)| text);
    serializer.collect_seq(tokens.zip(&*model.scores))
}
