//! Unigram: of all ways to cut a piece into tokens, takes the one with the highest sum of scores.

use std::ops::Range;
use std::sync::Arc;

use crate::polling::poll;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::lattice::Lattice;
use super::random::Sampling;
use super::token_lists::TokenList;
use super::vocab::Vocab;
use super::words::{State, Words, missing_unknown};
use super::{Found, Token, with_field};
use crate::components::trie::Trie;
use crate::error::{Error, Result};

/// How far unknown characters score below the lowest token.
const PENALTY: f64 = 10.0;

/// The fields of the model in a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Fields {
    /// Replaces characters that are not tokens.
    pub(crate) unk_id: Option<usize>,
    /// Whether unknown characters become a token for each of their bytes, if all have one.
    pub(crate) byte_fallback: bool,
    #[serde(skip)]
    pub(crate) sampling: Sampling,
}

impl Fields {
    /// Copies the fields with another value of one.
    pub(crate) fn with(&self, name: &str, value: Value) -> Result<Self> {
        if Sampling::FIELDS.contains(&name) {
            let sampling = with_field(&self.sampling, name, value)?;
            return Ok(Self { sampling, ..self.clone() });
        }
        Ok(Self { sampling: self.sampling.clone(), ..with_field(self, name, value)? })
    }
}

/// The model, ready to run.
#[derive(Debug)]
pub(crate) struct Unigram {
    fields: Fields,
    state: State,
    /// The score of each id.
    scores: Arc<Vec<f64>>,
    /// The score of a character that is not a token.
    unknown_score: f64,
    unknown: Option<u32>,
    /// The token for each byte, with byte fallback.
    bytes: Vec<Option<u32>>,
}

/// The best tokens of the text before some place.
#[derive(Debug, Clone, Copy)]
struct Best {
    score: f64,
    /// The length of the last token; 0 without tokens.
    length: u32,
    /// The last token.
    id: u32,
}

/// The longest piece that is searched on the stack.
const SHORT: usize = 63;
/// The bytes after which work is reported.
const POLLED: usize = 1 << 12;

impl Best {
    const START: Self = Self { score: 0.0, length: 0, id: 0 };

    /// Takes other tokens if they are better.
    #[inline(always)]
    fn improve(&mut self, other: Self) -> bool {
        let is_better = self.length == 0 || other.score > self.score;
        if is_better {
            *self = other;
        }
        is_better
    }
}

impl Unigram {
    /// Builds the model of tokens, whose places are their ids, and their scores.
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
        Ok(Self { fields, state: State::new(vocab), scores, unknown_score, unknown, bytes })
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

    /// Calls `found` with the id, the bytes and the score of each token in a text, from the first
    /// start and from the shortest; `is_barred` has some that are left out. Unknown characters have
    /// the unknown token, or none without one.
    #[inline(always)]
    fn each_match(
        &self,
        text: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        mut found: impl FnMut(Option<u32>, Range<usize>, f64) -> Result<()>,
    ) -> Result<()> {
        let (trie, scores) = (self.state.vocab.trie(), &self.scores[..]);
        let mut work = 0;
        for (start, character) in text.char_indices() {
            let first_end = start + character.len_utf8();
            let (mut is_known, mut result) = (false, Ok(()));
            trie.each_prefix(Trie::ROOT, &text.as_bytes()[start..], |id, length| {
                let span = start..start + length;
                work += length;
                if result.is_ok() && !is_barred(id, span.clone()) {
                    is_known |= span.end == first_end;
                    result = found(Some(id), span, scores[id as usize]);
                }
            });
            result?;
            if !is_known {
                found(self.unknown, start..first_end, self.unknown_score)?;
            }
            work += 1;
            if work > POLLED {
                poll(work)?;
                work = 0;
            }
        }
        poll(work)
    }

    /// Finds the best tokens of a text before each place, of which there is one more than bytes.
    fn find_best(
        &self,
        text: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        best: &mut [Best],
    ) -> Result<()> {
        self.each_match(text, is_barred, |id, span, score| {
            let score = score + best[span.start].score;
            let length = span.len() as u32;
            let other = Best { score, length, id: id.unwrap_or_default() };
            match best[span.end].improve(other) && id.is_none() {
                true => Err(missing_unknown("unk_id", "it is null", &text[span])),
                false => Ok(()),
            }
        })
    }

    /// Appends the ids of the best tokens of a piece.
    fn append_best(&self, piece: &str, best: &[Best], ids: &mut Vec<u32>) -> Result<()> {
        let (from, mut end) = (ids.len(), piece.len());
        while end > 0 {
            let id = best[end].id;
            let mut start = end - best[end].length as usize;
            if self.unknown != Some(id) {
                ids.push(id);
            } else {
                // Consecutive unknown characters fuse.
                while start > 0 && best[start].id == id {
                    start -= best[start].length as usize;
                }
                let first = ids.len();
                let text = &piece[start..end];
                let none = |_: u32, _: Range<usize>| false;
                self.each_unknown(id, text, start..end, none, &mut |token| {
                    ids.push(token.id);
                    Ok(())
                })?;
                ids[first..].reverse();
            }
            end = start;
        }
        ids[from..].reverse();
        Ok(())
    }

    /// The tokens of a text and their bytes in it.
    fn path(
        &self,
        text: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
    ) -> Result<Vec<(u32, Range<usize>)>> {
        if let Some((alpha, count)) = self.fields.sampling.choice() {
            let mut lattice = Lattice::new(text.len());
            self.each_match(text, is_barred, |id, span, score| {
                let missing = || missing_unknown("unk_id", "it is null", &text[span.clone()]);
                lattice.add(id.ok_or_else(missing)?, span.clone(), score);
                Ok(())
            })?;
            return if count > 0 {
                lattice.sample_best(count, alpha)
            } else {
                lattice.sample(alpha)
            };
        }
        let mut best = vec![Best::START; text.len() + 1];
        self.find_best(text, is_barred, &mut best)?;
        Ok(path_of(&best))
    }

    /// Calls `found` with the tokens of a path through a piece.
    fn each_of_path(
        &self,
        piece: &str,
        path: &[(u32, Range<usize>)],
        is_barred: &impl Fn(u32, Range<usize>) -> bool,
        found: Found<'_>,
    ) -> Result<()> {
        // Consecutive unknown characters fuse.
        let are_unknown = |a: u32, b: u32| a == b && self.unknown == Some(a);
        for part in path.chunk_by(|a, b| are_unknown(a.0, b.0)) {
            let (id, span) = (part[0].0, part[0].1.start..part[part.len() - 1].1.end);
            match self.unknown == Some(id) {
                true => {
                    self.each_unknown(id, &piece[span.clone()], span, is_barred, &mut *found)?;
                }
                false => found(Token::new(id, span))?,
            }
        }
        Ok(())
    }

    /// Calls `found` with the tokens for unknown text, which may be a token as a whole.
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
            return found(Token::new(id, span));
        }
        let byte = |byte: u8| self.bytes.get(usize::from(byte)).copied().flatten().filter(is_kept);
        if text.bytes().all(|it| byte(it).is_some()) {
            let mut ids = text.bytes().filter_map(byte);
            return ids.try_for_each(|id| found(Token::new(id, span.clone())));
        }
        found(Token { id, span, shows_piece: true })
    }
}

/// The tokens before the last place and their bytes, in order.
fn path_of(best: &[Best]) -> Vec<(u32, Range<usize>)> {
    let (mut path, mut end) = (Vec::new(), best.len() - 1);
    while end > 0 {
        let Best { length, id, .. } = best[end];
        let start = end - length as usize;
        path.push((id, start..end));
        end = start;
    }
    path.reverse();
    path
}

impl Words for Unigram {
    fn state(&self) -> &State {
        &self.state
    }

    fn append_word(&self, piece: &str, ids: &mut Vec<u32>) -> Result<()> {
        if Words::sampling(self).is_some() {
            return self.each_token(piece, |_, _| false, &mut |token| {
                ids.push(token.id);
                Ok(())
            });
        }
        let (mut short, mut long);
        let best = if piece.len() <= SHORT {
            short = [Best::START; SHORT + 1];
            &mut short[..=piece.len()]
        } else {
            long = vec![Best::START; piece.len() + 1];
            &mut long[..]
        };
        self.find_best(piece, |_, _| false, best)?;
        self.append_best(piece, best, ids)
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

/// The model in a file.
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
