//! Models that encode each piece of text independently: runs are cut into pieces, which are looked
//! up in the cache.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::fingerprint::Digest;
use crate::lookup::Resolve;
use crate::once::OnceBox;
use crate::polling::poll;
use crate::pool::Pool;
use crate::split::Piece;
use memchr::memchr_iter;
use serde::{Serialize, Serializer};

use super::random::Sampling;
use super::vocab::Vocab;
use super::{Barred, Found, Questions, RunPosition};
use crate::components::bytes::CHAR_OF;
use crate::components::json::json;
use crate::components::spec::Metaspace;
use crate::components::split::{Plan, Split};
use crate::error::{Error, Result};

/// A model that encodes each piece independently.
pub(crate) trait Words: fmt::Debug + Send + Sync + Serialize {
    fn state(&self) -> &CachedVocab;

    /// Appends the ids of a nonempty piece.
    fn append_word(&self, piece: &str, ids: &mut Vec<u32>) -> Result<()> {
        self.each_token(piece, |_, _| false, &mut |token| {
            ids.push(token.id);
            Ok(())
        })
    }

    /// Like [`Questions::encode_piece`], without tokens that `is_barred` excludes at their
    /// position.
    fn each_token(
        &self,
        piece: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        found: Found<'_>,
    ) -> Result<()>;

    /// Whether the model can exclude tokens.
    fn can_bar(&self) -> bool {
        true
    }

    /// Token for unknown text.
    fn unknown(&self) -> Option<u32>;

    /// See [`Questions::may_fail`].
    fn may_fail(&self) -> bool {
        self.unknown().is_none()
    }

    /// See [`Questions::why_other_bytes`].
    fn why_other_bytes(&self, is_byte_level: bool) -> Option<String>;

    /// Sampling settings; `None` if encoding is deterministic.
    fn sampling(&self) -> Option<&Sampling> {
        None
    }
}

/// Vocabulary of a model, with its caches.
#[derive(Debug)]
pub(crate) struct CachedVocab {
    pub(crate) vocab: Arc<Vocab>,
    pool: Pool,
    /// Digest of the model, once computed.
    digest: OnceBox<Digest>,
}

/// Writes the vocabulary.
impl Serialize for CachedVocab {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.vocab.serialize(serializer)
    }
}

impl CachedVocab {
    pub(crate) fn new(vocab: Arc<Vocab>) -> Self {
        Self { vocab, pool: Pool::default(), digest: OnceBox::new() }
    }
}

/// Finds the ids of uncached pieces of a text.
struct Uncached<'a, M>(&'a M, &'a str);

impl<M: Words> Resolve for Uncached<'_, M> {
    fn resolve(&self, _: &[u8], Piece { start, end }: Piece, ids: &mut Vec<u32>) -> Result<()> {
        poll(end - start)?;
        self.0.append_word(&self.1[start..end], ids)
    }
}

impl<M: Words> Questions for M {
    fn workspaces(&self) -> &Pool {
        &self.state().pool
    }

    fn encode_normalized(
        &self,
        text: &str,
        position: RunPosition,
        split: &Split,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let pool = (position != RunPosition::Chunk).then_some(&self.state().pool);
        encode_normalized(self, pool, text, position == RunPosition::First, split, ids)
    }

    fn encode_piece(
        &self,
        piece: &str,
        barred: Option<Barred<'_>>,
        found: Found<'_>,
    ) -> Result<bool> {
        match barred {
            Some(_) if !self.can_bar() => return Ok(false),
            Some(is_barred) => self.each_token(piece, is_barred, found)?,
            None => self.each_token(piece, |_, _| false, found)?,
        }
        Ok(true)
    }

    fn size(&self) -> usize {
        self.state().vocab.size()
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.state().vocab.id(token)
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        self.state().vocab.token(id).map(str::to_owned)
    }

    fn max_id(&self) -> Option<u32> {
        self.state().vocab.max_id()
    }

    fn vocab(&self) -> Vec<(String, u32)> {
        self.state().vocab.entries()
    }

    /// Returns false for the unknown token, which any unknown text may become.
    fn may_make(&self, id: u32) -> bool {
        self.unknown() != Some(id) && self.state().vocab.token(id).is_some()
    }

    fn may_fail(&self) -> bool {
        Words::may_fail(self)
    }

    fn why_other_bytes(&self, is_byte_level: bool) -> Option<String> {
        Words::why_other_bytes(self, is_byte_level)
    }

    fn digest(&self, sha256: &mut dyn FnMut(&[u8]) -> Result<Digest>) -> Result<Digest> {
        let digest = || {
            let form = json(self, b"bpe_engine model 2\n".to_vec())?;
            let form = match Words::sampling(self) {
                Some(sampling) => json(sampling, form)?,
                None => form,
            };
            sha256(&form).map(Box::new)
        };
        self.state().digest.get_or_try_init(digest).copied()
    }
}

/// Answers [`Questions::why_other_bytes`] for a model whose tokens may omit text.
pub(crate) fn leave_out_text(kind: &str) -> String {
    format!("the tokens of a {kind} model are words or parts of words, without what is between")
}

/// Returns the error for unknown text in a model without an unknown token.
pub(crate) fn missing_unknown(field: &str, unknown: &str, text: &str) -> Error {
    const SHOWN: usize = 40;
    let shown: String = text.chars().take(SHOWN).collect();
    Error::Invalid(format!(
        "model.{field}: {unknown}, and the text contains {shown:?}, which is unknown"
    ))
}

/// Implements [`Questions::encode_normalized`], with or without the cache of a pool.
fn encode_normalized<M: Words>(
    model: &M,
    pool: Option<&Pool>,
    text: &str,
    is_first: bool,
    split: &Split,
    ids: &mut Vec<u32>,
) -> Result<()> {
    match split.plan() {
        Plan::Steps(steps) => {
            let mut parts = steps.cut(text)?;
            match split.is_byte_level() {
                true => {
                    let text = represented(text, &mut parts);
                    encode_parts(model, pool, &text, parts, ids)
                }
                false => encode_parts(model, pool, text, parts, ids),
            }
        }
        Plan::Metaspace(metaspace) => {
            let mark = metaspace.replacement;
            let is_marked = text.starts_with([' ', mark]);
            let (is_prefixed, new) =
                (!is_marked && metaspace.prepends(text, is_first), &mut String::new());
            encode_marked(model, pool, metaspace, marked(text, mark, is_prefixed, new), ids)
        }
        Plan::Marked(steps, metaspace) => {
            let new = &mut String::new();
            steps.cut(text)?.into_iter().try_for_each(|range| {
                let (mark, piece) = (metaspace.replacement, &text[range]);
                let text = marked(piece, mark, metaspace.prepends(piece, false), new);
                encode_marked(model, pool, metaspace, text, ids)
            })
        }
        _ => {
            let encode = |piece: &str| encode_word(model, pool, piece, ids);
            split.each_piece(text, encode)
        }
    }
}

/// Appends the ids of a text whose spaces become marks.
fn encode_marked<M: Words>(
    model: &M,
    pool: Option<&Pool>,
    metaspace: &Metaspace,
    text: &str,
    ids: &mut Vec<u32>,
) -> Result<()> {
    let mark = metaspace.replacement;
    match pool {
        Some(_) => encode_parts(model, pool, text, metaspace.parts(text, mark)?, ids),
        None => metaspace.each_part(text, mark, |part| encode_word(model, None, &text[part], ids)),
    }
}

/// Appends the ids of one piece.
fn encode_word<M: Words>(
    model: &M,
    pool: Option<&Pool>,
    piece: &str,
    ids: &mut Vec<u32>,
) -> Result<()> {
    let whole = Piece { start: 0, end: piece.len() };
    match pool {
        Some(_) if piece.is_empty() => Ok(()),
        Some(pool) => pool.encode_pieces(&Uncached(model, piece), piece, &[whole], ids),
        None => Uncached(model, piece).resolve(piece.as_bytes(), whole, ids),
    }
}

fn encode_parts<M: Words>(
    model: &M,
    pool: Option<&Pool>,
    text: &str,
    parts: Vec<Range<usize>>,
    ids: &mut Vec<u32>,
) -> Result<()> {
    let Some(pool) = pool else {
        let mut parts = parts.into_iter();
        return parts.try_for_each(|part| encode_word(model, None, &text[part], ids));
    };
    let pieces = parts.into_iter().map(|part| Piece { start: part.start, end: part.end });
    pool.encode_pieces(&Uncached(model, text), text, &pieces.collect::<Vec<_>>(), ids)
}

/// Replaces the bytes of parts of a text with the characters that represent them; updates the
/// parts.
fn represented<'a>(text: &'a str, parts: &mut [Range<usize>]) -> Cow<'a, str> {
    if parts.iter().all(|part| text.as_bytes()[part.clone()].iter().all(u8::is_ascii_graphic)) {
        return Cow::Borrowed(text);
    }
    let mut new = String::new();
    new.reserve(2 * text.len());
    for part in parts {
        let start = new.len();
        new.extend(text.as_bytes()[part.clone()].iter().map(|&byte| CHAR_OF[usize::from(byte)]));
        *part = start..new.len();
    }
    Cow::Owned(new)
}

/// Returns a text with marks in place of spaces, and a mark in front if `is_prefixed`: the text
/// itself, or the new contents of `new`.
fn marked<'a>(text: &'a str, mark: char, is_prefixed: bool, new: &'a mut String) -> &'a str {
    let spaces = memchr_iter(b' ', text.as_bytes()).count();
    if spaces == 0 && !is_prefixed {
        return text;
    }
    new.clear();
    new.reserve(text.len() + (spaces + 1) * mark.len_utf8());
    new.extend(is_prefixed.then_some(mark));
    for (index, part) in text.split(' ').enumerate() {
        new.extend((index > 0).then_some(mark));
        new.push_str(part);
    }
    new
}
