//! SentencePiece models: Unigram, byte pair encoding, characters and words.

use std::ops::Range;
use std::sync::Arc;

use crate::fingerprint::Digest;
use crate::once::OnceBox;
use crate::polling::poll;
use crate::pool::Pool;
use serde::{Serialize, Serializer};

use super::piece::{Algorithm, Fields, PieceKind, UNKNOWN, Version};
use super::pieces::SentencePieces;
use super::safe_words::Search as LookUp;
use super::scored::Merging;
use super::scores::single;
use super::sentencepiece_bpe::Core;
use super::token_lists::TokenList;
use super::viterbi::Viterbi;
use super::{Barred, Found, FoundToken, LOST, Questions, RunPosition};
use crate::components::bytes::MARK;
use crate::components::json::json;
use crate::components::offsets::limit;
use crate::components::sentencepiece::{Normalizer, Words};
use crate::components::split::{Split, each_marked};
use crate::error::{Error, Result};

/// Receives the id and the bytes of each piece of a text.
type Placed<'a> = &'a mut dyn FnMut(u32, Range<usize>) -> Result<()>;

#[derive(Debug)]
pub(crate) struct SentencePiece {
    fields: Arc<Fields>,
    pieces: Arc<SentencePieces>,
    search: Search,
    pool: Pool,
    /// Digest of the model, once computed.
    digest: OnceBox<Digest>,
}

#[derive(Debug)]
enum Search {
    Unigram(Arc<Viterbi>),
    /// Byte pair encoding; `Some` if the core can express the pieces.
    Bpe(Option<Core>),
    Word,
    Char,
}

impl SentencePiece {
    /// Builds the model from pieces, whose indices are their ids, and their scores.
    ///
    /// Fails for pieces that SentencePiece refuses.
    pub(crate) fn new(
        fields: Fields,
        list: TokenList,
        scores: &[f64],
        split: &Split,
    ) -> Result<Self> {
        check_split(split)?;
        let pieces = SentencePieces::new(&fields, list, single(scores))?;
        let search = match fields.algorithm {
            Algorithm::Unigram => {
                let SentencePieces { vocab, scores, kinds, version, .. } = &pieces;
                Search::Unigram(Arc::new(Viterbi::new(vocab.list(), scores, kinds, *version)?))
            }
            Algorithm::Bpe => Search::Bpe(Core::new(&pieces, fields.byte_fallback, split)?),
            Algorithm::Word => Search::Word,
            Algorithm::Char => Search::Char,
        };
        let (fields, pieces) = (Arc::new(fields), Arc::new(pieces));
        Ok(Self { fields, pieces, search, pool: Pool::default(), digest: OnceBox::new() })
    }

    /// Copies the model for a different split of text, with empty caches.
    pub(crate) fn with_split(&self, split: &Split) -> Result<Self> {
        check_split(split)?;
        let search = match &self.search {
            Search::Unigram(viterbi) => Search::Unigram(viterbi.clone()),
            Search::Bpe(Some(core)) => Search::Bpe(core.with_split(split)?),
            Search::Bpe(None) => Search::Bpe(None),
            Search::Word => Search::Word,
            Search::Char => Search::Char,
        };
        let (fields, pieces) = (self.fields.clone(), self.pieces.clone());
        Ok(Self { fields, pieces, search, pool: Pool::default(), digest: OnceBox::new() })
    }

    /// Returns the fields without the types of the pieces.
    pub(crate) fn settings(&self) -> Fields {
        let Fields { algorithm, version, byte_fallback, .. } = *self.fields;
        Fields { algorithm, version, byte_fallback, kinds: Vec::new() }
    }

    /// Calls `found` with each piece of a text, or [`UNKNOWN`].
    fn each_piece(
        &self,
        text: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        mut found: impl FnMut(u32, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let pieces = &*self.pieces;
        match &self.search {
            Search::Unigram(viterbi) => viterbi.each_token(text, is_barred, found),
            Search::Bpe(_) => Merging::each_token(pieces, text, is_barred, found),
            Search::Word => each_marked(text, MARK, |word| {
                poll(word.len())?;
                found(pieces.whole_id(&text[word.clone()])?, word)
            }),
            Search::Char => {
                let mut start = 0;
                while start < text.len() {
                    let end = start + pieces.first(text, start, &is_barred).0;
                    poll(end - start)?;
                    found(pieces.whole_id(&text[start..end])?, start..end)?;
                    start = end;
                }
                Ok(())
            }
        }
    }

    /// Calls `found` with each token of a text whose pieces `each` finds.
    fn each_token(
        &self,
        text: &str,
        each: impl FnOnce(Placed<'_>) -> Result<()>,
        found: Found<'_>,
    ) -> Result<()> {
        let SentencePieces { bytes, unknown, .. } = &*self.pieces;
        let mut run: Option<Range<usize>> = None;
        let unknown =
            |span| FoundToken { id: unknown.unwrap_or_default(), span, shows_piece: true };
        each(&mut |id, span| {
            if id != UNKNOWN {
                run.take().map_or(Ok(()), |run| found(unknown(run)))?;
                return found(FoundToken::new(id, span));
            }
            if bytes.is_empty() {
                run = Some(run.take().map_or(span.start, |run| run.start)..span.end);
                return Ok(());
            }
            // The token of the last byte covers the whole character.
            let last = span.len() - 1;
            text.as_bytes()[span.clone()].iter().enumerate().try_for_each(|(at, &byte)| {
                let end = if at == last { span.end } else { span.start };
                found(FoundToken::new(bytes[usize::from(byte)], span.start..end))
            })
        })?;
        run.map_or(Ok(()), |run| found(unknown(run)))
    }

    /// Appends the ids of a text by looking up its words; without `words`, the text is already
    /// normalized. Returns false if words cannot be looked up.
    fn append_words(
        &self,
        text: &str,
        words: Option<(&Normalizer, &Words)>,
        ids: &mut Vec<u32>,
    ) -> Result<bool> {
        let Search::Unigram(viterbi) = &self.search else { return Ok(false) };
        let from = ids.len();
        let is_done = LookUp::append(viterbi, &self.pieces, &self.pool, text, words, ids)?;
        self.fuse_unknown(from, ids);
        Ok(is_done)
    }

    /// Fuses each run of unknown ids from index `from` into one unknown token.
    fn fuse_unknown(&self, from: usize, ids: &mut Vec<u32>) {
        if !ids[from..].contains(&UNKNOWN) {
            return;
        }
        let mut kept = from;
        for at in from..ids.len() {
            let id = ids[at];
            if id != UNKNOWN || at == from || ids[at - 1] != UNKNOWN {
                // The write position never overtakes the read position.
                ids[kept] = id;
                kept += 1;
            }
        }
        ids.truncate(kept);
        let unknown = self.pieces.unknown.unwrap_or_default();
        ids[from..].iter_mut().filter(|id| **id == UNKNOWN).for_each(|id| *id = unknown);
    }
}

/// Fails if the split would cut text before the model sees it.
fn check_split(split: &Split) -> Result<()> {
    match split.spec() {
        None => Ok(()),
        Some(_) => Err(Error::refused(
            "pre_tokenizer",
            "a SentencePiece model takes whole texts, and cannot have a pre-tokenizer",
        )),
    }
}

impl SentencePiece {
    /// See [`Model::encode_run`](super::Model::encode_run).
    pub(crate) fn encode_run(
        &self,
        run: &str,
        normalizer: &Normalizer,
        ids: &mut Vec<u32>,
    ) -> Result<bool> {
        match &self.search {
            Search::Bpe(Some(core)) if normalizer.marks_spaces().is_none() => {
                let Some(text) = normalizer.swapped(run)? else { return Ok(false) };
                core.append_swapped(&self.pieces, &text, ids)?;
                Ok(true)
            }
            Search::Unigram(viterbi) if viterbi.cuts.before_mark => {
                let Some(words) = normalizer.words()? else { return Ok(false) };
                if let Some(text) = normalizer.bounded(words, run)?
                    && self.append_words(&text, Some((normalizer, words)), ids)?
                {
                    return Ok(true);
                }
                // The cache has unnormalized words as keys.
                let text = normalizer.apply(run, limit(run.len()))?;
                self.append_piece(&text, ids)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// See [`Model::looks_up_runs`](super::Model::looks_up_runs).
    pub(crate) fn looks_up_runs(&self) -> bool {
        matches!(self.search, Search::Unigram(_))
    }

    /// See [`Model::encode_marked`](super::Model::encode_marked).
    pub(crate) fn encode_marked(
        &self,
        text: &str,
        is_prefixed: bool,
        ids: &mut Vec<u32>,
    ) -> Result<bool> {
        match &self.search {
            Search::Bpe(Some(core)) if self.pieces.user_defined.is_empty() => {
                core.append_marked(&self.pieces, text, is_prefixed, ids)
            }
            _ => Ok(false),
        }
    }

    /// See [`Model::unspelled`](super::Model::unspelled).
    pub(crate) fn unspelled(&self) -> Option<u32> {
        self.pieces.unknown
    }

    /// See [`Model::are_apart`](super::Model::are_apart).
    pub(crate) fn are_apart(&self, before: char, after: char) -> Option<bool> {
        match &self.search {
            Search::Bpe(Some(core)) if self.pieces.user_defined.is_empty() => {
                core.are_apart(before, after)
            }
            _ => None,
        }
    }

    /// Appends the ids of a text, without shortcuts.
    fn append_piece(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        let take = &mut |token: FoundToken| {
            ids.push(token.id);
            Ok(())
        };
        self.encode_piece(text, None, take).map(drop)
    }
}

impl Questions for SentencePiece {
    fn workspaces(&self) -> &Pool {
        match &self.search {
            Search::Bpe(Some(core)) => core.workspaces(),
            _ => &self.pool,
        }
    }

    fn encode_normalized(
        &self,
        text: &str,
        _: RunPosition,
        _: &Split,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let is_done = match &self.search {
            Search::Bpe(Some(core)) => {
                core.append(&self.pieces, text, ids)?;
                true
            }
            Search::Unigram(_) => self.append_words(text, None, ids)?,
            _ => false,
        };
        if is_done {
            return Ok(());
        }
        self.append_piece(text, ids)
    }

    fn encode_piece(
        &self,
        piece: &str,
        barred: Option<Barred<'_>>,
        found: Found<'_>,
    ) -> Result<bool> {
        let each = |found: Placed<'_>| match (&self.search, barred) {
            (Search::Bpe(Some(core)), None) => core.each_piece(&self.pieces, piece, found),
            (_, None) => self.each_piece(piece, |_, _| false, found),
            (_, Some(is_barred)) => self.each_piece(piece, is_barred, found),
        };
        self.each_token(piece, each, found)?;
        Ok(true)
    }

    fn size(&self) -> usize {
        self.pieces.vocab.size()
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.pieces.vocab.id(token)
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        self.pieces.vocab.token(id).map(str::to_owned)
    }

    fn max_id(&self) -> Option<u32> {
        u32::try_from(self.size()).ok()?.checked_sub(1)
    }

    fn vocab(&self) -> Vec<(String, u32)> {
        self.pieces.vocab.entries()
    }

    fn may_make(&self, id: u32) -> bool {
        let kind = self.pieces.kinds.get(id as usize);
        kind.is_some_and(|kind| !matches!(kind, PieceKind::Control | PieceKind::Unknown))
    }

    fn may_fail(&self) -> bool {
        let SentencePieces { version, kinds, .. } = &*self.pieces;
        match self.search {
            Search::Unigram(_) => false,
            Search::Word => *version == Version::V021 && kinds.contains(&PieceKind::Control),
            Search::Bpe(_) | Search::Char => self.pieces.fails_on_characters(),
        }
    }

    fn why_other_bytes(&self, _: bool) -> Option<String> {
        if self.fields.algorithm == Algorithm::Word {
            return Some("a token is a whole word, and more letters make another one".into());
        }
        (!self.fields.byte_fallback).then(|| LOST.into())
    }

    /// Includes the version only if ids depend on it.
    fn digest(&self, sha256: &mut dyn FnMut(&[u8]) -> Result<Digest>) -> Result<Digest> {
        let digest = || {
            let depends = self.fields.algorithm == Algorithm::Unigram
                || self.pieces.kinds.contains(&PieceKind::Unused)
                || self.may_fail();
            let version = if depends { self.fields.version } else { Version::V023 };
            let form = b"bpe_engine model 3\n".to_vec();
            let form = json(&Written::new(self, version), form)?;
            sha256(&form).map(Box::new)
        };
        self.digest.get_or_try_init(digest).copied()
    }
}

#[derive(Serialize)]
struct Written<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    fields: Fields,
    #[serde(serialize_with = "write_pieces")]
    vocab: &'a SentencePieces,
}

impl<'a> Written<'a> {
    fn new(model: &'a SentencePiece, version: Version) -> Self {
        let fields = Fields { version, ..Fields::clone(&model.fields) };
        Self { r#type: "SentencePiece", fields, vocab: &model.pieces }
    }
}

fn write_pieces<S: Serializer>(
    pieces: &SentencePieces,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let texts = pieces.vocab.iter().map(|(text, _)| text);
    serializer.collect_seq(texts.zip(pieces.scores.iter().map(|&score| f64::from(score))))
}

impl Serialize for SentencePiece {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        Written::new(self, self.fields.version).serialize(serializer)
    }
}
