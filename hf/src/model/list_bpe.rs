//! Byte pair encoding by the list of merges, character by character: for words with affixes, for
//! dropout, and for merges that the core cannot express.

use std::ops::Range;
use std::sync::Arc;

use bpe_core::memory::{push, push_text, with_capacity};
use serde::{Serialize, Serializer};

use super::header::Header;
use super::merge_list::{FastMap, Pair, Unknown, Waiting, merge_parts};
use super::random::{self, Sampling};
use super::token_lists::{MergeList, TokenList};
use super::vocab::Vocab;
use super::words::{State, Words};
use super::written::{Merging, write};
use super::{Found, Token};
use crate::error::{Error, Result};

/// A vocabulary and its merges.
#[derive(Debug)]
pub(crate) struct ListBpe {
    header: Header,
    state: State,
    pairs: Arc<Pairs>,
    unknown: Unknown,
    /// The token for each byte, with byte fallback.
    bytes: Vec<Option<u32>>,
}

/// For each pair, its place in the list and the id of the token that it becomes.
type Pairs = FastMap<Pair, (u32, u32)>;

impl ListBpe {
    /// Whether this model is needed for the fields of a file.
    pub(crate) fn is_needed(header: &Header) -> bool {
        header.dropout() > 0.0
            || header.merged_prefix() > 0
            || !(header.prefix().is_empty() && header.suffix().is_empty())
    }

    pub(crate) fn new(header: Header, tokens: &TokenList, merges: &MergeList) -> Result<Self> {
        let vocab = Vocab::new(tokens)?;
        let pairs = pairs(&vocab, merges, header.merged_prefix())?;
        Self::of_lists(header, Arc::new(vocab), Arc::new(pairs))
    }

    fn of_lists(header: Header, vocab: Arc<Vocab>, pairs: Arc<Pairs>) -> Result<Self> {
        let unknown = Unknown::new(&header, |token| vocab.id(token));
        let bytes = if header.byte_fallback { vocab.byte_tokens()? } else { Vec::new() };
        Ok(Self { header, state: State::new(vocab), pairs, unknown, bytes })
    }

    /// The characters of a word as tokens, each with the bytes of the word that it covers.
    fn singles(&self, word: &str) -> Result<Vec<(u32, usize)>> {
        let (mut singles, mut waiting) = (with_capacity(word.len())?, None);
        let mut token = String::new();
        for (start, character) in word.char_indices() {
            let length = character.len_utf8();
            token.clear();
            push_text(&mut token, if start > 0 { self.header.prefix() } else { "" })?;
            push_text(&mut token, &word[start..start + length])?;
            if start + length == word.len() {
                push_text(&mut token, self.header.suffix())?;
            }
            self.append_single(&token, length, &mut waiting, &mut singles)?;
        }
        waiting.into_iter().try_for_each(|unknown| push(&mut singles, unknown))?;
        Ok(singles)
    }

    /// Appends the token of a character, or what replaces it.
    fn append_single(
        &self,
        token: &str,
        length: usize,
        waiting: &mut Waiting,
        singles: &mut Vec<(u32, usize)>,
    ) -> Result<()> {
        if let Some(id) = self.state.vocab.id(token) {
            waiting.take().into_iter().try_for_each(|unknown| push(singles, unknown))?;
            return push(singles, (id, length));
        }
        let byte = |byte: u8| self.bytes.get(usize::from(byte)).copied().flatten();
        if token.bytes().all(|it| byte(it).is_some()) {
            return token.bytes().filter_map(byte).try_for_each(|id| push(singles, (id, 1)));
        }
        let name = || format!("character that is not a token, {token:?}");
        let complete = self.unknown.meet(waiting, length, name)?;
        complete.into_iter().try_for_each(|unknown| push(singles, unknown))
    }
}

/// Looks up the pairs of the list, and the tokens that they become.
fn pairs(vocab: &Vocab, merges: &MergeList, prefix: usize) -> Result<Pairs> {
    merges.check_lines()?;
    let mut pairs = Pairs::default();
    let bytes = merges.len() * size_of::<(Pair, (u32, u32))>();
    pairs.try_reserve(merges.len()).map_err(|_| Error::OutOfMemory { bytes })?;
    let mut product = String::new();
    for (place, [left, right]) in merges.iter().enumerate() {
        let invalid = |reason: String| Error::Invalid(format!("model.merges[{place}]: {reason}"));
        let id = |token: &str| {
            vocab.id(token).ok_or_else(|| invalid(format!("Token `{token}` out of vocabulary")))
        };
        let Some(rest) = right.get(prefix..) else {
            return Err(invalid(format!("{right:?} is shorter than the prefix")));
        };
        product.clear();
        push_text(&mut product, left)?;
        push_text(&mut product, rest)?;
        pairs.insert((id(left)?, id(right)?), (place as u32, id(&product)?));
    }
    Ok(pairs)
}

impl Merging for ListBpe {
    fn header(&self) -> &Header {
        &self.header
    }

    fn each_merge<E>(
        &self,
        mut found: impl FnMut(&str, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let pairs = self.pairs.iter();
        let mut pairs: Vec<_> = pairs.map(|(pair, merge)| (merge.0, pair)).collect();
        pairs.sort_unstable();
        let token = |id: u32| self.state.vocab.token(id).unwrap_or_default();
        pairs.into_iter().try_for_each(|(_, &(left, right))| found(token(left), token(right)))
    }
}

impl Words for ListBpe {
    fn state(&self) -> &State {
        &self.state
    }

    fn each_token(
        &self,
        piece: &str,
        _: impl Fn(u32, Range<usize>) -> bool,
        found: Found<'_>,
    ) -> Result<()> {
        let dropout = self.header.dropout();
        if self.header.ignore_merges
            && dropout == 0.0
            && let Some(id) = self.state.vocab.id(piece)
        {
            return found(Token::new(id, 0..piece.len()));
        }
        let mut start = 0;
        let is_dropped = || dropout > 0.0 && random::next_f32() < dropout;
        merge_parts(self.singles(piece)?, &self.pairs, is_dropped, |id, length| {
            let span = start..start + length;
            start = span.end;
            found(Token::new(id, span))
        })
    }

    fn can_bar(&self) -> bool {
        false
    }

    fn unknown(&self) -> Option<u32> {
        match self.unknown {
            Unknown::Token { id, .. } => Some(id),
            _ => None,
        }
    }

    fn may_fail(&self) -> bool {
        matches!(self.unknown, Unknown::Fails(_))
    }

    fn why_other_bytes(&self, is_byte_level: bool) -> Option<String> {
        let marked = self
            .header
            .marks_words()
            .map(|(name, mark)| format!("its tokens have a mark of words, the {name} '{mark}'"));
        marked.or_else(|| self.state.vocab.why_bytes_are_lost(is_byte_level, &self.bytes))
    }

    fn sampling(&self) -> Option<&Sampling> {
        let dropout = self.header.dropout();
        (dropout > 0.0 && dropout < 1.0).then_some(&self.header.sampling)
    }
}

impl Serialize for ListBpe {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        write(self, serializer)
    }
}
