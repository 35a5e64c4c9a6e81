//! Byte pair encoding: the tokens and merges of a file, ready to run.
//!
//! The core merges bytes. In a byte-level vocabulary, the characters of a piece represent bytes,
//! and runs of text go to the core unchanged. In any other vocabulary, merging starts from
//! characters, and the core gets text with spaces and marks
//! [swapped](crate::components::bytes::swap).

use std::collections::HashMap;
use std::sync::Arc;

use crate::fingerprint::{Canonical, Digest};
use crate::once::OnceBox;
use crate::pool::Pool;
use crate::{SpecialTokens, Splitter, Vocabulary};
use foldhash::fast::FixedState;

use super::build::{Built, Ids, Merges, Others, build, build_in_bytes};
use super::characters::{Characters, InBytes, by_cuts, in_bytes};
use super::header::Header;
use super::pair_table::{Listed, Pair};
use super::token_lists::{MergeList, TokenList};
use super::word_bpe::WordBpe;
use super::write_bpe::Merging;
use super::{Barred, Found, FoundToken, LOST, Questions, RunPosition};
use crate::components::bytes::{Spelling, spaced, try_bytes_of};
use crate::components::split::Split;
use crate::error::{Error, Result};

/// Receives the id of each token of a piece and the number of bytes that the token covers.
pub(super) type Covering<'a> = &'a mut dyn FnMut(u32, usize) -> Result<()>;

#[derive(Debug)]
pub(crate) struct Bpe {
    pub(super) core: Arc<crate::Direct>,
    /// Data that does not depend on the splitter.
    pub(super) table: Arc<Table>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) header: Header,
    /// Mapping between the ids of the core and the ids of the file; `None` if they are the same.
    pub(super) ids: Option<Ids>,
    others: Others,
    size: usize,
    /// List of merges, if the core cannot encode every piece.
    pub(super) listed: Option<Listed>,
    /// Whether the core gives the same ids as the list, for pieces whose bytes are all tokens.
    pub(super) is_core: bool,
    merges: Merges,
    /// Characters that merging starts from; `None` if merging starts from the bytes that characters
    /// represent.
    characters: Option<Characters>,
    /// Like [`Ids::id_of`], but with the byte tokens that replace unknown characters, if every
    /// unknown character becomes byte tokens.
    pub(super) with_bytes: Option<Vec<u32>>,
    /// First id of the tokens that the file lacks; `None` if there are none.
    first_hidden: Option<u32>,
    /// SHA-256 of the canonical form, once computed.
    digest: OnceBox<Digest>,
    /// A model of the same lists over characters, for pieces with characters that do not represent
    /// bytes.
    pub(super) over_characters: OnceBox<WordBpe>,
}

impl Bpe {
    /// Builds the model from the lists of a file. Merging starts from the bytes that characters
    /// represent if `is_byte_level`, otherwise from characters.
    pub(crate) fn new(
        header: Header,
        tokens: &TokenList,
        merges: &MergeList,
        is_byte_level: bool,
        splitter: Splitter,
    ) -> Result<Self> {
        if is_byte_level {
            let built = build(tokens, merges, &header)?;
            return Self::of_parts(header, built, splitter, None);
        }
        if let Some((built, characters, first_hidden)) = by_cuts(tokens, merges, &header)? {
            return Self::of_parts(header, built, splitter, Some((characters, first_hidden)));
        }
        let InBytes { tokens, others, merges, assembling, first_hidden, hidden, characters } =
            in_bytes(tokens, merges, &header)?;
        let built = build_in_bytes(&tokens, &others, merges, &header, assembling, hidden)?;
        Self::of_parts(header, built, splitter, Some((characters, first_hidden)))
    }

    fn of_parts(
        header: Header,
        built: Built,
        splitter: Splitter,
        characters: Option<(Characters, u32)>,
    ) -> Result<Self> {
        let Built { vocabulary, ids, others, size, listed, is_core, merges } = built;
        let (characters, first_hidden) = characters.unzip();
        let with_bytes = match (&characters, &ids, first_hidden) {
            (Some(characters), Some(ids), Some(first_hidden)) if is_core => {
                with_bytes(&vocabulary, &ids.id_of, characters, first_hidden)
            }
            _ => None,
        };
        // In vocabularies over characters, text is first cut at further positions.
        let vocabulary =
            if characters.is_some() { vocabulary.without_boundaries() } else { vocabulary };
        let table = Table {
            header,
            ids,
            others,
            size,
            listed,
            is_core,
            merges,
            characters,
            with_bytes,
            first_hidden,
            ..Table::default()
        };
        Self::with(vocabulary, splitter, Arc::new(table))
    }

    fn with(
        vocabulary: impl Into<Arc<Vocabulary>>,
        splitter: Splitter,
        table: Arc<Table>,
    ) -> Result<Self> {
        let core = crate::Direct::new(vocabulary, splitter, SpecialTokens::new([])?)?;
        Ok(Self { core: Arc::new(core), table })
    }

    /// Wraps the vocabulary of a direct stage.
    pub(crate) fn of_direct(core: Arc<crate::Direct>) -> Self {
        let table = Table { size: core.vocabulary().len(), is_core: true, ..Table::default() };
        Self { core, table: Arc::new(table) }
    }

    /// Copies the model for a different split of text; `None` if the model must be rebuilt.
    pub(crate) fn with_split(&self, split: &Split) -> Result<Option<Self>> {
        if split.is_byte_level() != self.is_byte_level() {
            return Ok(None);
        }
        Self::with(self.vocabulary().clone(), split.splitter()?, self.table.clone()).map(Some)
    }

    fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.core.vocabulary()
    }

    fn is_byte_level(&self) -> bool {
        self.table.characters.is_none()
    }

    pub(super) fn characters(&self) -> Option<&Characters> {
        self.table.characters.as_ref()
    }

    fn spelling(&self) -> Spelling {
        if self.is_byte_level() { Spelling::Represented } else { Spelling::Spaced }
    }

    /// Whether any piece of `text` needs the list of merges.
    pub(super) fn needs_list(&self, text: &[u8]) -> bool {
        let listed = self.table.listed.as_ref();
        listed.is_some_and(|listed| !self.table.is_core || listed.lacks_a_byte_of(text))
    }

    /// Whether each byte that occurs in UTF-8 is a token.
    fn has_all_bytes(&self) -> bool {
        self.is_byte_level() && self.table.listed.as_ref().is_none_or(Listed::has_all_bytes)
    }

    fn is_hidden(&self, id: u32) -> bool {
        self.table.first_hidden.is_some_and(|first| id >= first)
    }

    pub(super) fn file_id(&self, core: u32) -> u32 {
        self.table.ids.as_ref().map_or(core, |ids| ids.id_of[core as usize])
    }

    /// Returns the core's bytes of a token, if merging produces the token.
    fn merged(&self, id: u32) -> Option<&[u8]> {
        if self.is_hidden(id) {
            return None;
        }
        let core = match &self.table.ids {
            None => id,
            Some(ids) => *ids.core_of.get(&id)?,
        };
        self.vocabulary().rank_of_id(core)?;
        self.core.token_bytes(core)
    }

    /// Encodes one piece. Calls `found` with each token id and its number of bytes.
    pub(super) fn each_token(&self, piece: &str, found: Covering<'_>) -> Result<()> {
        if let Some(characters) = self.characters() {
            return self.encode_characters(characters, piece, found);
        }
        match try_bytes_of(piece)? {
            Some(bytes) => self.encode_bytes(&bytes, found),
            None => {
                let make = || {
                    let (tokens, merges) = self.to_lists()?;
                    WordBpe::new(self.header().clone(), &tokens, &merges).map(Box::new)
                };
                let over_characters = self.table.over_characters.get_or_try_init(make)?;
                let found = &mut |token: FoundToken| found(token.id, token.span.len());
                over_characters.encode_piece(piece, None, found).map(drop)
            }
        }
    }

    /// Returns the canonical form for fingerprints: 1 if whole pieces are looked up before merging;
    /// over characters, their name and 1 if bytes replace characters that are not tokens; the name
    /// of the unknown token, and 1 if it is fused, plus 2 if bytes have a fallback, where a byte of
    /// UTF-8 is not a token; the number of tokens, and the id and text of each, by id; the texts of
    /// the pairs of each merge, in order.
    fn canonical_form(&self) -> Result<Canonical> {
        let header = &self.table.header;
        let tokens = self.vocab();
        let size = tokens.iter().map(|(text, _)| text.len() + 48).sum::<usize>();
        let mut form = Canonical::new("bpe_engine model 1", size);
        form.number(header.ignore_merges.into());
        if !self.is_byte_level() {
            form.string(b"characters");
            form.number(header.byte_fallback.into());
        }
        let unknown = header.unk_token.as_deref().filter(|_| !self.has_all_bytes());
        form.string(unknown.unwrap_or_default().as_bytes());
        let is_fused = unknown.is_some() && header.fuse_unk;
        let lacks_bytes = !self.has_all_bytes() && self.is_byte_level();
        form.number(u64::from(is_fused) + 2 * u64::from(header.byte_fallback && lacks_bytes));
        form.number(tokens.len() as u64);
        for (text, id) in tokens {
            form.number(id.into());
            form.string(text.as_bytes());
        }
        self.each_merge(|left, right| {
            form.string(left.as_bytes());
            form.string(right.as_bytes());
            Ok::<_, Error>(())
        })?;
        Ok(form)
    }
}

impl Merging for Bpe {
    fn header(&self) -> &Header {
        &self.table.header
    }

    fn each_merge<E>(
        &self,
        mut found: impl FnMut(&str, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let pairs = match &self.table.merges {
            Merges::Cuts(cuts) => {
                return cuts.iter().try_for_each(|&(rank, cut)| {
                    let (left, right) = self.vocabulary().token(rank).split_at(cut as usize);
                    let spelling = self.spelling();
                    found(&spelling.text_of(left), &spelling.text_of(right))
                });
            }
            Merges::Pairs(pairs) => pairs,
        };
        let tokens: HashMap<u32, String, FixedState> =
            self.vocab().into_iter().map(|(text, id)| (id, text)).collect();
        let token = |id: u32| tokens.get(&id).map_or("", String::as_str);
        // If a pair occurs twice, the last occurrence counts.
        let last: HashMap<Pair, usize, FixedState> =
            pairs.iter().enumerate().map(|(place, &pair)| (pair, place)).collect();
        let places = pairs.iter().enumerate();
        places
            .filter(|(place, pair)| last[pair] == *place)
            .try_for_each(|(_, &(left, right))| found(token(left), token(right)))
    }
}

impl Bpe {
    /// Returns the splitter, which cuts text if the plan is a pattern.
    pub(crate) fn splitter(&self) -> &Splitter {
        self.core.splitter()
    }

    /// See [`Model::encode_marked`](super::Model::encode_marked).
    pub(crate) fn encode_marked(
        &self,
        text: &str,
        is_prefixed: bool,
        ids: &mut Vec<u32>,
    ) -> Result<bool> {
        if self.characters().is_none() {
            return Ok(false);
        }
        self.append_swapped(&spaced(text, is_prefixed)?, ids)?;
        Ok(true)
    }

    /// Returns the bytes of a token that is merged from bytes.
    pub(crate) fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.merged(id).filter(|_| self.is_byte_level())
    }

    /// See [`Model::ranks`](super::Model::ranks).
    pub(crate) fn ranks(&self) -> Result<&Arc<Vocabulary>> {
        let table = &*self.table;
        let (path, feature) = if !table.is_core {
            ("model.merges", "a list of merges that ranks cannot say")
        } else if !self.is_byte_level() {
            ("pre_tokenizer", "a vocabulary over characters")
        } else if table.listed.is_some() {
            ("model.vocab", "a vocabulary without a token for each byte")
        } else if table.ids.is_some() {
            ("model.vocab", "ids in another order than the merges")
        } else {
            return Ok(self.vocabulary());
        };
        Err(Error::refused(path, format!("{feature} cannot be part of an Encoding")))
    }

    /// See [`Model::unspelled`](super::Model::unspelled).
    pub(crate) fn unspelled(&self) -> Option<u32> {
        let unknown = self.table.header.unk_token.as_deref();
        unknown.and_then(|token| self.token_to_id(token)).filter(|&id| !self.may_make(id))
    }

    /// Returns true if the tokens of a run have exactly the run's bytes.
    pub(crate) fn keeps_bytes(&self, text: &str) -> bool {
        self.is_byte_level() && !self.needs_list(text.as_bytes())
    }

    /// See [`Model::are_apart`](super::Model::are_apart).
    pub(crate) fn are_apart(&self, before: char, after: char) -> Option<bool> {
        let characters = self.characters().filter(|_| !self.table.header.ignore_merges)?;
        Some(characters.are_apart(before, after))
    }
}

impl Questions for Bpe {
    fn workspaces(&self) -> &Pool {
        self.core.workspaces()
    }

    fn encode_normalized(
        &self,
        text: &str,
        position: RunPosition,
        split: &Split,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if self.characters().is_some() {
            return self.append_characters(text, position == RunPosition::First, split, ids);
        }
        self.append_bytes(text, split, ids)
    }

    fn encode_piece(
        &self,
        piece: &str,
        barred: Option<Barred<'_>>,
        found: Found<'_>,
    ) -> Result<bool> {
        if barred.is_some() {
            return Ok(false);
        }
        let mut start = 0;
        self.each_token(piece, &mut |id, length| {
            let span = start..start + length;
            start = span.end;
            found(FoundToken::new(id, span))
        })?;
        Ok(true)
    }

    fn size(&self) -> usize {
        self.table.size
    }

    fn token_to_id(&self, text: &str) -> Option<u32> {
        if let Some(&id) = self.table.others.by_text.get(text) {
            return Some(id);
        }
        let rank = self.vocabulary().rank(&self.spelling().bytes_of(text)?)?;
        let id = self.file_id(self.vocabulary().id(rank));
        (!self.is_hidden(id)).then_some(id)
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        match self.merged(id) {
            Some(bytes) => Some(self.spelling().text_of(bytes)),
            None => self.table.others.by_id.get(&id).cloned(),
        }
    }

    fn max_id(&self) -> Option<u32> {
        let ranks = 0..self.vocabulary().len() as u32;
        let of_core = ranks.map(|rank| self.file_id(self.vocabulary().id(rank)));
        let of_core = of_core.filter(|&id| !self.is_hidden(id));
        of_core.chain(self.table.others.by_id.keys().copied()).max()
    }

    fn vocab(&self) -> Vec<(String, u32)> {
        let (vocabulary, spelling) = (self.vocabulary(), self.spelling());
        let of_core = (0..vocabulary.len() as u32)
            .map(|rank| (vocabulary.token(rank), self.file_id(vocabulary.id(rank))))
            .filter(|&(_, id)| !self.is_hidden(id))
            .map(|(bytes, id)| (spelling.text_of(bytes), id));
        let others = self.table.others.by_text.iter().map(|(text, &id)| (text.clone(), id));
        let mut tokens: Vec<_> = of_core.chain(others).collect();
        tokens.sort_unstable_by_key(|&(_, id)| id);
        tokens
    }

    fn may_make(&self, id: u32) -> bool {
        let Table { header, others, listed, .. } = &*self.table;
        let is_other = others.by_id.contains_key(&id);
        let is_whole = header.ignore_merges && !self.is_byte_level();
        self.merged(id).is_some()
            || is_other && (listed.is_some() || is_whole)
            || self.characters().is_some_and(|characters| characters.may_make(id))
    }

    fn may_fail(&self) -> bool {
        let unknown = self.table.header.unk_token.as_deref().filter(|_| !self.has_all_bytes());
        unknown.is_some_and(|token| self.token_to_id(token).is_none())
    }

    fn why_other_bytes(&self, is_byte_level: bool) -> Option<String> {
        let has_bytes = match self.characters() {
            None => is_byte_level && self.has_all_bytes(),
            Some(characters) => !is_byte_level && characters.all_bytes().is_some(),
        };
        (!has_bytes).then(|| LOST.into())
    }

    fn digest(&self, sha256: &mut dyn FnMut(&[u8]) -> Result<Digest>) -> Result<Digest> {
        let digest = || sha256(self.canonical_form()?.as_bytes()).map(Box::new);
        self.table.digest.get_or_try_init(digest).copied()
    }
}

/// Returns `id_of` with the byte tokens that replace unknown characters; `None` if a byte has none.
fn with_bytes(
    vocabulary: &Vocabulary,
    id_of: &[u32],
    characters: &Characters,
    first_hidden: u32,
) -> Option<Vec<u32>> {
    let mut id_of = id_of.to_vec();
    for (byte, token) in (0..=255u8).zip(characters.all_bytes()?) {
        if let Some(rank) = vocabulary.rank(&[byte])
            && let id = &mut id_of[vocabulary.id(rank) as usize]
            && *id >= first_hidden
        {
            *id = token;
        }
    }
    Some(id_of)
}
