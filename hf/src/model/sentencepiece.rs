//! The models of SentencePiece: Unigram, byte pair encoding, characters and words.

use std::ops::Range;
use std::sync::Arc;

use bpe_core::fingerprint::Digest;
use bpe_core::memory::push;
use bpe_core::once::OnceBox;
use bpe_core::polling::poll;
use bpe_core::pool::Pool;
use serde::{Deserialize, Serialize, Serializer};

use super::bpe::Bpe;
use super::header::Header;
use super::safe_words::Search as Words;
use super::scored::{Merging, order_of_scores};
use super::token_lists::{MergeList, TokenList};
use super::viterbi::{UNKNOWN, Viterbi, single};
use super::vocab::Vocab;
use super::{Barred, Found, Questions, Token};
use crate::bytes::{MARK, swapped};
use crate::error::{Error, Result};
use crate::json::json;
use crate::sentencepiece::UserDefined;
use crate::split::Split;

/// The release of SentencePiece whose ids a model gives. Those between give one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// Up to 0.2.1.
    #[serde(rename = "0.2.1")]
    V021,
    /// From 0.2.2 on.
    #[serde(rename = "0.2.3")]
    V023,
}

/// How pieces are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Algorithm {
    Unigram,
    #[serde(rename = "BPE")]
    Bpe,
    Word,
    Char,
}

/// The type of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
#[allow(missing_docs)]
pub enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

const KINDS: [Kind; 6] =
    [Kind::Normal, Kind::Unknown, Kind::Control, Kind::UserDefined, Kind::Unused, Kind::Byte];

impl TryFrom<u64> for Kind {
    type Error = String;

    fn try_from(number: u64) -> std::result::Result<Self, String> {
        let place = number.checked_sub(1).and_then(|place| usize::try_from(place).ok());
        let kind = place.and_then(|place| KINDS.get(place)).copied();
        kind.ok_or_else(|| format!("{number} is not the type of a piece"))
    }
}

impl From<Kind> for u64 {
    fn from(kind: Kind) -> Self {
        kind as Self + 1
    }
}

/// The fields of the model in a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Fields {
    pub(crate) algorithm: Algorithm,
    pub(crate) version: Version,
    /// Whether unknown characters become a token for each of their bytes.
    pub(crate) byte_fallback: bool,
    /// The type of each piece.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) kinds: Vec<Kind>,
}

/// The pieces, and what they say about text.
#[derive(Debug)]
pub(crate) struct Pieces {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) version: Version,
    vocab: Vocab,
    scores: Vec<f32>,
    /// The order of the scores.
    order: Vec<i32>,
    user_defined: UserDefined,
    unknown: Option<u32>,
    /// The token for each byte, with byte fallback.
    bytes: Vec<u32>,
}

/// The model, ready to run.
#[derive(Debug)]
pub(crate) struct SentencePiece {
    fields: Arc<Fields>,
    pieces: Arc<Pieces>,
    search: Search,
    pool: Pool,
    /// The digest of the model, once computed.
    digest: OnceBox<Digest>,
}

#[derive(Debug)]
enum Search {
    Unigram(Arc<Viterbi>),
    /// By the core, where it can express the pieces.
    Bpe(Option<Bpe>),
    Word,
    Char,
}

impl Pieces {
    fn new(fields: &Fields, list: TokenList, scores: Vec<f32>) -> Result<Self> {
        let Fields { version, byte_fallback, ref kinds, .. } = *fields;
        let invalid = |reason: &str| Error::Invalid(format!("model.vocab: {reason}"));
        if kinds.len() != list.ids().len() || scores.len() != kinds.len() {
            return Err(invalid("each piece needs a score and a type"));
        }
        if scores.iter().any(|score| !score.is_finite()) {
            return Err(invalid("a score is not a finite number"));
        }
        let vocab = Vocab::of_list(list)?;
        for (text, id) in vocab.iter() {
            let problem = match text {
                "" => "is empty",
                _ if text.contains('\0') => "has the character U+0000",
                _ if vocab.id(text) != Some(id) => "is there twice",
                _ => continue,
            };
            return Err(invalid(&format!("the piece {text:?} {problem}")));
        }
        let of_kind = |kind: Kind| {
            let rows = vocab.iter().zip(kinds);
            rows.filter(move |(_, other)| **other == kind).map(|(row, _)| row)
        };
        let unknown = of_kind(Kind::Unknown).next().map(|(_, id)| id);
        if of_kind(Kind::Unknown).count() > 1 || unknown.is_none() && !byte_fallback {
            return Err(invalid("there must be one unknown piece"));
        }
        if !byte_fallback && of_kind(Kind::Byte).next().is_some() {
            return Err(invalid("byte pieces are there without byte_fallback"));
        }
        let ids = if byte_fallback { vocab.byte_tokens()? } else { Vec::new() };
        let is_byte = |id: &u32| kinds[*id as usize] == Kind::Byte;
        let bytes: Option<Vec<u32>> = ids.into_iter().map(|id| id.filter(is_byte)).collect();
        let bytes = bytes.ok_or_else(|| invalid("byte_fallback needs a piece for each byte"))?;
        let user_defined = UserDefined::new(of_kind(Kind::UserDefined));
        let order = order_of_scores(&scores, version)?;
        let kinds = kinds.clone();
        Ok(Self { kinds, version, vocab, scores, order, user_defined, unknown, bytes })
    }

    pub(crate) fn order_of(&self, id: u32) -> i32 {
        self.order[id as usize]
    }

    /// The length of the first piece of a text from `start` on that is not cut further, and whether
    /// it is user-defined.
    pub(crate) fn first(
        &self,
        text: &str,
        start: usize,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
    ) -> (usize, bool) {
        let is_kept = |id, length| !is_barred(id, start..start + length);
        match self.user_defined.longest_of(&text[start..], is_kept) {
            Some((length, _)) => (length, true),
            None => (text[start..].chars().next().map_or(1, char::len_utf8), false),
        }
    }

    fn kind(&self, id: u32) -> Kind {
        self.kinds[id as usize]
    }

    /// The id of a piece that merging may make.
    pub(crate) fn mergeable(&self, piece: &str) -> Option<u32> {
        let is_normal = |kind| matches!(kind, Kind::Normal | Kind::UserDefined | Kind::Unused);
        self.vocab.id(piece).filter(|&id| is_normal(self.kind(id)))
    }

    /// The id of a piece of text; [`UNKNOWN`] without one. Up to version 0.2.1, it may be a piece
    /// that is not for text.
    pub(crate) fn final_id(&self, piece: &str) -> Result<u32> {
        if let Some(id) = self.mergeable(piece) {
            return Ok(id);
        }
        let other = self.vocab.id(piece).filter(|_| self.version == Version::V021);
        match other.map(|id| (id, self.kind(id))) {
            Some((_, Kind::Control)) => Err(Error::Invalid(format!(
                "the text has the control piece {piece:?}, which SentencePiece 0.2.1 fails on"
            ))),
            Some((id, Kind::Byte)) => Ok(id),
            _ => Ok(UNKNOWN),
        }
    }

    /// The id of a character or a word.
    fn whole_id(&self, piece: &str) -> Result<u32> {
        let id = self.final_id(piece)?;
        let is_unused = id != UNKNOWN && self.kind(id) == Kind::Unused;
        Ok(if is_unused && self.version == Version::V023 { UNKNOWN } else { id })
    }

    /// Byte pair encoding by the core; `None` if it would not be the same.
    fn core(&self, byte_fallback: bool, split: &Split) -> Result<Option<Bpe>> {
        let Some(unknown) = self.unknown.and_then(|id| self.vocab.token(id)) else {
            return Ok(None);
        };
        if self.kinds.contains(&Kind::Unused) || unknown.chars().nth(1).is_none() {
            return Ok(None);
        }
        let mut tokens = TokenList::default();
        let mut long: Vec<(&str, u32)> = Vec::new();
        let is_normal =
            |text: &str| self.vocab.id(text).is_some_and(|id| self.kind(id) == Kind::Normal);
        for (text, id) in self.vocab.iter() {
            match self.kind(id) {
                Kind::Unknown | Kind::Byte => tokens.push(text, id)?,
                Kind::Normal => {
                    let mut utf8 = [0; 4];
                    let mut characters = text.chars();
                    let missing = characters.find(|c| !is_normal(c.encode_utf8(&mut utf8)));
                    match missing.map(|c| self.vocab.id(c.encode_utf8(&mut utf8))) {
                        // Text is cut around it.
                        Some(Some(id)) if self.kind(id) == Kind::UserDefined => continue,
                        Some(_) => return Ok(None),
                        None => tokens.push(text, id)?,
                    }
                    if text.chars().nth(1).is_some() {
                        push(&mut long, (text, id))?;
                    }
                }
                _ => {}
            }
        }
        long.sort_by_key(|&(_, id)| std::cmp::Reverse(self.order_of(id)));
        if long.windows(2).any(|pair| self.order_of(pair[0].1) == self.order_of(pair[1].1)) {
            return Ok(None);
        }
        let mut merges = MergeList::default();
        for (text, _) in long {
            poll(text.len())?;
            for (cut, _) in text.char_indices().skip(1) {
                let (left, right) = text.split_at(cut);
                if is_normal(left) && is_normal(right) {
                    merges.push(left, right)?;
                }
            }
        }
        let header = Header::of_characters(unknown.to_owned(), byte_fallback);
        match Bpe::new(header, &tokens, &merges, false, split.splitter()?) {
            Ok(bpe) => Ok(Some(bpe).filter(Bpe::merges_by_ranks)),
            Err(Error::Unsupported { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl SentencePiece {
    /// Builds the model of pieces, whose places are their ids, and their scores.
    ///
    /// Fails for pieces that SentencePiece refuses.
    pub(crate) fn new(
        fields: Fields,
        list: TokenList,
        scores: &[f64],
        split: &Split,
    ) -> Result<Self> {
        check_split(split)?;
        let pieces = Pieces::new(&fields, list, single(scores)?)?;
        let search = match fields.algorithm {
            Algorithm::Unigram => {
                let Pieces { vocab, scores, kinds, version, .. } = &pieces;
                Search::Unigram(Arc::new(Viterbi::new(vocab.list(), scores, kinds, *version)?))
            }
            Algorithm::Bpe => Search::Bpe(pieces.core(fields.byte_fallback, split)?),
            Algorithm::Word => Search::Word,
            Algorithm::Char => Search::Char,
        };
        let (fields, pieces) = (Arc::new(fields), Arc::new(pieces));
        Ok(Self { fields, pieces, search, pool: Pool::default(), digest: OnceBox::new() })
    }

    /// Copies the model, with caches of its own, for another split of text.
    pub(crate) fn with_split(&self, split: &Split) -> Result<Self> {
        check_split(split)?;
        let search = match &self.search {
            Search::Unigram(viterbi) => Search::Unigram(viterbi.clone()),
            Search::Bpe(Some(bpe)) => Search::Bpe(bpe.with_split(split)?),
            Search::Bpe(None) => Search::Bpe(None),
            Search::Word => Search::Word,
            Search::Char => Search::Char,
        };
        let (fields, pieces) = (self.fields.clone(), self.pieces.clone());
        Ok(Self { fields, pieces, search, pool: Pool::default(), digest: OnceBox::new() })
    }

    /// The fields without the types of the pieces.
    pub(crate) fn settings(&self) -> Fields {
        let Fields { algorithm, version, byte_fallback, .. } = *self.fields;
        Fields { algorithm, version, byte_fallback, kinds: Vec::new() }
    }

    /// Calls `found` with each piece of a text: [`UNKNOWN`] if it is not one.
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
            Search::Word => each_word(text, |word| {
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

    /// Calls `found` with each token of a text.
    fn each_token(
        &self,
        text: &str,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
        found: Found<'_>,
    ) -> Result<()> {
        let Pieces { bytes, unknown, .. } = &*self.pieces;
        let mut run: Option<Range<usize>> = None;
        let unknown = |span| Token { id: unknown.unwrap_or_default(), span, shows_piece: true };
        self.each_piece(text, is_barred, |id, span| {
            if id != UNKNOWN {
                run.take().map_or(Ok(()), |run| found(unknown(run)))?;
                return found(Token::new(id, span));
            }
            if bytes.is_empty() {
                run = Some(run.take().map_or(span.start, |run| run.start)..span.end);
                return Ok(());
            }
            // All of the character is that of its last byte.
            let last = span.len() - 1;
            text.as_bytes()[span.clone()].iter().enumerate().try_for_each(|(at, &byte)| {
                let end = if at == last { span.end } else { span.start };
                found(Token::new(bytes[usize::from(byte)], span.start..end))
            })
        })?;
        run.map_or(Ok(()), |run| found(unknown(run)))
    }

    /// Makes one unknown token of each run of unknown characters among the ids from `from` on.
    fn fuse_unknown(&self, from: usize, ids: &mut Vec<u32>) {
        if !ids[from..].contains(&UNKNOWN) {
            return;
        }
        let mut kept = from;
        for at in from..ids.len() {
            let id = ids[at];
            if id != UNKNOWN || at == from || ids[at - 1] != UNKNOWN {
                // What is written is behind what is read.
                ids[kept] = id;
                kept += 1;
            }
        }
        ids.truncate(kept);
        let unknown = self.pieces.unknown.unwrap_or_default();
        ids[from..].iter_mut().filter(|id| **id == UNKNOWN).for_each(|id| *id = unknown);
    }

    /// Appends the ids of a text between user-defined pieces, which the core finds.
    fn append_by_core(&self, bpe: &Bpe, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        let user_defined = &self.pieces.user_defined;
        let (mut start, mut at) = (0, 0);
        while !user_defined.is_empty() && at < text.len() {
            let begins = |&byte: &u8| user_defined.begins_with(byte);
            let Some(next) = text.as_bytes()[at..].iter().position(begins) else { break };
            poll(next)?;
            at += next;
            // Pieces begin between characters.
            match text.get(at..).and_then(|rest| user_defined.longest(rest)) {
                Some((length, id)) => {
                    bpe.append_swapped(&swapped(&text[start..at])?, ids)?;
                    push(ids, id)?;
                    at += length;
                    start = at;
                }
                None => at += 1,
            }
        }
        bpe.append_swapped(&swapped(&text[start..])?, ids)
    }
}

/// Fails if text would be cut before the model sees it.
fn check_split(split: &Split) -> Result<()> {
    match split.spec() {
        None => Ok(()),
        Some(_) => Err(Error::refused(
            "pre_tokenizer",
            "a SentencePiece model takes whole texts, and cannot have a pre-tokenizer",
        )),
    }
}

/// Calls `found` with the words of a text, which begin with marks.
fn each_word(text: &str, mut found: impl FnMut(Range<usize>) -> Result<()>) -> Result<()> {
    let mut start = 0;
    for (at, _) in text.match_indices(MARK).filter(|&(at, _)| at > 0) {
        found(start..at)?;
        start = at;
    }
    if start < text.len() { found(start..text.len()) } else { Ok(()) }
}

impl Questions for SentencePiece {
    fn workspaces(&self) -> &Pool {
        match &self.search {
            Search::Bpe(Some(bpe)) => bpe.workspaces(),
            _ => &self.pool,
        }
    }

    fn encode_stretch(&self, text: &str, _: bool, _: &Split, ids: &mut Vec<u32>) -> Result<()> {
        match &self.search {
            Search::Bpe(Some(bpe)) => self.append_by_core(bpe, text, ids),
            Search::Unigram(viterbi) => {
                let from = ids.len();
                Words::append(viterbi, &self.pieces.bytes, &self.pool, text, ids)?;
                self.fuse_unknown(from, ids);
                Ok(())
            }
            _ => self.each_token(text, |_, _| false, &mut |token| push(ids, token.id)),
        }
    }

    fn encode_marked(&self, text: &str, is_prefixed: bool, ids: &mut Vec<u32>) -> Result<bool> {
        match &self.search {
            Search::Bpe(Some(bpe)) if self.pieces.user_defined.is_empty() => {
                bpe.encode_marked(text, is_prefixed, ids)
            }
            _ => Ok(false),
        }
    }

    fn encode_piece(&self, piece: &str, found: Found<'_>) -> Result<()> {
        self.each_token(piece, |_, _| false, found)
    }

    fn encode_piece_without(
        &self,
        piece: &str,
        is_barred: Barred<'_>,
        found: Found<'_>,
    ) -> Result<bool> {
        let (mut tokens, mut is_kept_out) = (Vec::new(), true);
        self.each_token(piece, is_barred, &mut |token| {
            is_kept_out &= !is_barred(token.id, token.span.clone());
            push(&mut tokens, token)
        })?;
        if is_kept_out {
            tokens.into_iter().try_for_each(found)?;
        }
        Ok(is_kept_out)
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
        self.pieces.vocab.max_id()
    }

    fn vocab(&self) -> Vec<(String, u32)> {
        self.pieces.vocab.entries()
    }

    fn may_make(&self, id: u32) -> bool {
        let kind = self.pieces.kinds.get(id as usize);
        kind.is_some_and(|kind| !matches!(kind, Kind::Control | Kind::Unknown))
    }

    fn may_fail(&self) -> bool {
        let Pieces { version, kinds, .. } = &*self.pieces;
        let takes_any = matches!(self.search, Search::Unigram(_)) || *version == Version::V023;
        let has_short = |(text, kind): (&str, &Kind)| {
            *kind == Kind::Control
                && (matches!(self.search, Search::Word) || text.chars().nth(1).is_none())
        };
        let texts = self.pieces.vocab.iter().map(|(text, _)| text);
        !takes_any && texts.zip(kinds).any(has_short)
    }

    fn are_apart(&self, before: char, after: char) -> Option<bool> {
        match &self.search {
            Search::Bpe(Some(bpe)) if self.pieces.user_defined.is_empty() => {
                bpe.are_apart(before, after)
            }
            _ => None,
        }
    }

    /// The version counts only where ids depend on it.
    fn digest(&self, sha256: &mut dyn FnMut(&[u8]) -> Result<Digest>) -> Result<Digest> {
        let digest = || {
            let depends = self.fields.algorithm == Algorithm::Unigram
                || self.pieces.kinds.contains(&Kind::Unused)
                || self.may_fail();
            let version = if depends { self.fields.version } else { Version::V023 };
            let form = b"bpe_engine model 3\n".to_vec();
            let form = json(&Written::new(self, version), form)?;
            sha256(&form).map(Box::new)
        };
        self.digest.get_or_try_init(digest).copied()
    }
}

/// The model in a file.
#[derive(Serialize)]
struct Written<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    fields: Fields,
    #[serde(serialize_with = "write_pieces")]
    vocab: &'a Pieces,
}

impl<'a> Written<'a> {
    fn new(model: &'a SentencePiece, version: Version) -> Self {
        let fields = Fields { version, ..Fields::clone(&model.fields) };
        Self { r#type: "SentencePiece", fields, vocab: &model.pieces }
    }
}

fn write_pieces<S: Serializer>(
    pieces: &Pieces,
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

/// The types of pieces, from their numbers in a file.
pub(crate) fn kinds(numbers: impl Iterator<Item = u64>) -> Result<Vec<Kind>> {
    let mut kinds = Vec::new();
    for number in numbers {
        push(&mut kinds, Kind::try_from(number).map_err(Error::Invalid)?)?;
    }
    Ok(kinds)
}
