//! Byte pair encoding by the list of merges, character by character: for words with affixes, for
//! dropout, and for merges that the core cannot express.

use std::ops::Range;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::header::Header;
use super::pair_table::{PairTable, Unknown, Waiting};
use super::random::{self, Sampling};
use super::token_lists::{MergeList, TokenList};
use super::vocab::Vocab;
use super::words::{CachedVocab, Words};
use super::write_bpe::{Merging, write};
use super::{Found, FoundToken};
use crate::error::{Error, Result};

#[derive(Debug)]
pub(crate) struct WordBpe {
    header: Header,
    state: CachedVocab,
    merges: Arc<PairTable>,
    unknown: Unknown,
    /// Token for each byte, with byte fallback.
    bytes: Vec<Option<u32>>,
}

impl WordBpe {
    /// Whether the fields of a file require this model.
    pub(crate) fn is_needed(header: &Header) -> bool {
        header.dropout() > 0.0
            || header.merged_prefix() > 0
            || !(header.prefix().is_empty() && header.suffix().is_empty())
    }

    pub(crate) fn new(header: Header, tokens: &TokenList, merges: &MergeList) -> Result<Self> {
        let vocab = Vocab::new(tokens)?;
        let merges = Arc::new(pair_table(&vocab, merges, header.merged_prefix())?);
        let unknown = Unknown::new(&header, |token| vocab.id(token));
        let bytes = if header.byte_fallback { vocab.byte_tokens() } else { Vec::new() };
        let state = CachedVocab::new(Arc::new(vocab));
        Ok(Self { header, state, merges, unknown, bytes })
    }

    /// Copies the model with an empty cache.
    pub(crate) fn copied(&self) -> Self {
        Self {
            header: self.header.clone(),
            state: CachedVocab::new(self.state.vocab.clone()),
            merges: self.merges.clone(),
            unknown: self.unknown.clone(),
            bytes: self.bytes.clone(),
        }
    }

    /// Returns the characters of a word as tokens, each with the number of bytes it covers.
    fn singles(&self, word: &str) -> Result<Vec<(u32, usize)>> {
        let (mut singles, mut waiting) = (Vec::with_capacity(word.len()), None);
        for (start, character) in word.char_indices() {
            let length = character.len_utf8();
            let (is_first, is_last) = (start == 0, start + length == word.len());
            let token = single(&self.header, character, is_first, is_last);
            self.append_single(&token, length, &mut waiting, &mut singles)?;
        }
        singles.extend(waiting);
        Ok(singles)
    }

    /// Appends the token of a character, or its replacement.
    fn append_single(
        &self,
        token: &str,
        length: usize,
        waiting: &mut Waiting,
        singles: &mut Vec<(u32, usize)>,
    ) -> Result<()> {
        if let Some(id) = self.state.vocab.id(token) {
            singles.extend(waiting.take());
            singles.push((id, length));
            return Ok(());
        }
        let byte = |byte: u8| self.bytes.get(usize::from(byte)).copied().flatten();
        if token.bytes().all(|it| byte(it).is_some()) {
            singles.extend(token.bytes().filter_map(byte).map(|id| (id, 1)));
            return Ok(());
        }
        let name = || format!("character that is not a token, {token:?}");
        singles.extend(self.unknown.meet(waiting, length, name)?);
        Ok(())
    }
}

/// Returns the text of the token for a character at a position of a word.
fn single(header: &Header, character: char, is_first: bool, is_last: bool) -> String {
    let prefix = if is_first { "" } else { header.prefix() };
    let suffix = if is_last { header.suffix() } else { "" };
    [prefix, character.encode_utf8(&mut [0; 4]), suffix].concat()
}

/// Looks up the ids of the listed pairs and of the tokens into which they merge.
fn pair_table(vocab: &Vocab, merges: &MergeList, prefix: usize) -> Result<PairTable> {
    merges.check_lines()?;
    let mut table = PairTable::with_capacity(merges.len())?;
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
        product.push_str(left);
        product.push_str(rest);
        table.add((id(left)?, id(right)?), place as u32, id(&product)?);
    }
    Ok(table)
}

impl Merging for WordBpe {
    fn header(&self) -> &Header {
        &self.header
    }

    fn each_merge<E>(
        &self,
        mut found: impl FnMut(&str, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut pairs: Vec<_> = self.merges.iter().map(|(pair, place)| (place, pair)).collect();
        pairs.sort_unstable();
        let token = |id: u32| self.state.vocab.token(id).unwrap_or_default();
        pairs.into_iter().try_for_each(|(_, (left, right))| found(token(left), token(right)))
    }
}

impl Words for WordBpe {
    fn state(&self) -> &CachedVocab {
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
            return found(FoundToken::new(id, 0..piece.len()));
        }
        let mut start = 0;
        let covers = |id, length| {
            let span = start..start + length;
            start = span.end;
            found(FoundToken::new(id, span))
        };
        let is_skipped = || dropout > 0.0 && random::next_f32() < dropout;
        self.merges.merge(&self.singles(piece)?, is_skipped, covers)
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

impl Serialize for WordBpe {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        write(self, serializer)
    }
}
