//! The vocabulary of a file and its merges, ready to run.

use std::collections::HashMap;
use std::sync::Arc;

use bpe_core::fingerprint::Digest;
use bpe_core::memory::push;
use bpe_core::once::OnceBox;
use bpe_core::polling::poll;
use bpe_core::split::Piece;
use bpe_core::{Request, Sink, SpecialTokens, Splitter, Vocabulary};
use foldhash::fast::FixedState;

use crate::build::{Built, Header, Ids, Merges, Others, build, build_in_bytes};
use crate::bytes::{Spelling, swapped, text_length, text_of};
use crate::characters::{Characters, Cut, by_cuts, in_bytes};
use crate::error::{Error, Result};
use crate::merge_list::{Listed, Pair};
use crate::token_lists::{MergeList, MergeTexts, TokenList, TokenTexts};

/// A model that is ready to run.
#[derive(Debug)]
pub(crate) struct Model {
    core: Arc<bpe_core::Encoding>,
    /// Everything that does not depend on the splitter.
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    header: Header,
    /// The mapping between ids of the core and of the file; `None` if they are equal.
    ids: Option<Ids>,
    others: Others,
    size: usize,
    /// The list of merges, if the core cannot encode every piece.
    listed: Option<Listed>,
    /// Whether the core merges like the list, for all pieces whose bytes are tokens.
    is_core: bool,
    merges: Merges,
    spelling: Spelling,
    /// The first id of the tokens that the file does not have.
    first_hidden: u32,
    /// The characters of the vocabulary, if it is one over characters.
    characters: Option<Characters>,
    /// [`Ids::id_of`], but for bytes the tokens that stand for those of characters that are not
    /// tokens, if all such characters become these.
    with_bytes: Option<Vec<u32>>,
    /// The SHA-256 of the canonical form, once computed.
    digest: OnceBox<Digest>,
}

impl Model {
    pub(crate) fn new(
        header: Header,
        tokens: &TokenList,
        merges: &MergeList,
        splitter: Splitter,
    ) -> Result<Self> {
        let built = build(tokens, merges, &header)?;
        Self::of_parts(header, built, splitter, u32::MAX, None)
    }

    /// A model whose merging starts from characters.
    pub(crate) fn over_characters(
        header: Header,
        tokens: &TokenTexts,
        merges: &MergeTexts,
        splitter: Splitter,
    ) -> Result<Self> {
        if let Some((built, characters, first_hidden)) = by_cuts(tokens, merges, &header)? {
            return Self::of_parts(header, built, splitter, first_hidden, Some(characters));
        }
        let lists = in_bytes(tokens, merges, &header)?;
        let (assembling, hidden) = (lists.assembling, lists.hidden);
        let built = build_in_bytes(&lists.tokens, lists.merges, &header, assembling, hidden)?;
        Self::of_parts(header, built, splitter, lists.first_hidden, Some(lists.characters))
    }

    fn of_parts(
        header: Header,
        built: Built,
        splitter: Splitter,
        first_hidden: u32,
        characters: Option<Characters>,
    ) -> Result<Self> {
        let Built { vocabulary, ids, others, size, listed, is_core, merges } = built;
        let spelling = if characters.is_some() { Spelling::Spaced } else { Spelling::Represented };
        let with_bytes = match (&characters, &ids) {
            (Some(characters), Some(ids)) if is_core => characters.all_bytes().map(|tokens| {
                let mut id_of = ids.id_of.clone();
                for (byte, token) in (0..=255u8).zip(tokens) {
                    if let Some(rank) = vocabulary.rank(&[byte])
                        && let id = &mut id_of[vocabulary.id(rank) as usize]
                        && *id >= first_hidden
                    {
                        *id = token;
                    }
                }
                id_of
            }),
            _ => None,
        };
        // Text is cut at more places before.
        let vocabulary =
            if characters.is_some() { vocabulary.without_boundaries() } else { vocabulary };
        let shared = Shared {
            header,
            ids,
            others,
            size,
            listed,
            is_core,
            merges,
            spelling,
            first_hidden,
            characters,
            with_bytes,
            digest: OnceBox::new(),
        };
        Self::with(vocabulary, splitter, Arc::new(shared))
    }

    fn with(vocabulary: Vocabulary, splitter: Splitter, shared: Arc<Shared>) -> Result<Self> {
        let core = bpe_core::Encoding::new(vocabulary, splitter, SpecialTokens::new([])?)?;
        Ok(Self { core: Arc::new(core), shared })
    }

    /// Wraps an encoding of the core.
    pub(crate) fn of_encoding(core: Arc<bpe_core::Encoding>) -> Self {
        let shared = Shared {
            header: Header::default(),
            ids: None,
            others: Others::default(),
            size: core.vocabulary().len(),
            listed: None,
            is_core: true,
            merges: Merges::Pairs(Vec::new()),
            spelling: Spelling::Represented,
            first_hidden: u32::MAX,
            characters: None,
            with_bytes: None,
            digest: OnceBox::new(),
        };
        Self { core, shared: Arc::new(shared) }
    }

    pub(crate) fn core(&self) -> &Arc<bpe_core::Encoding> {
        &self.core
    }

    /// Copies the model, with another splitter.
    pub(crate) fn with_splitter(&self, splitter: Splitter) -> Result<Self> {
        Self::with(self.core.vocabulary().clone(), splitter, self.shared.clone())
    }

    pub(crate) fn header(&self) -> &Header {
        &self.shared.header
    }

    pub(crate) fn size(&self) -> usize {
        self.shared.size
    }

    /// The characters of the vocabulary, if it is one over characters.
    pub(crate) fn characters(&self) -> Option<&Characters> {
        self.shared.characters.as_ref()
    }

    /// Whether the core can encode texts, except those that [`Model::lacks_a_byte_of`].
    pub(crate) fn is_core(&self) -> bool {
        self.shared.is_core
    }

    /// Whether `text` has a byte that is not a token.
    pub(crate) fn lacks_a_byte_of(&self, text: &[u8]) -> bool {
        self.shared.listed.as_ref().is_some_and(|listed| listed.lacks_a_byte_of(text))
    }

    /// Whether each byte that UTF-8 has is a token.
    pub(crate) fn has_all_bytes(&self) -> bool {
        let is_whole = self.shared.listed.as_ref().is_none_or(Listed::has_all_bytes);
        is_whole && self.characters().is_none()
    }

    /// The SHA-256 of the canonical form, which `make` computes on the first call.
    pub(crate) fn digest(&self, make: impl FnOnce() -> Result<Digest>) -> Result<Digest> {
        self.shared.digest.get_or_try_init(|| make().map(Box::new)).copied()
    }

    /// Whether text may become the token with this id, as bytes that are no tokens can.
    pub(crate) fn may_make(&self, id: u32) -> bool {
        let is_other = self.shared.others.by_id.contains_key(&id);
        let is_whole = self.shared.header.ignore_merges && self.characters().is_some();
        self.token_bytes(id).is_some()
            || is_other && (self.shared.listed.is_some() || is_whole)
            || self.characters().is_some_and(|characters| characters.may_make(id))
    }

    fn core_id(&self, id: u32) -> Option<u32> {
        if id >= self.shared.first_hidden {
            return None;
        }
        let core = match &self.shared.ids {
            None => id,
            Some(ids) => *ids.core_of.get(&id)?,
        };
        self.core.vocabulary().rank_of_id(core).map(|_| core)
    }

    fn file_id(&self, core: u32) -> u32 {
        self.shared.ids.as_ref().map_or(core, |ids| ids.id_of[core as usize])
    }

    pub(crate) fn token_to_id(&self, text: &str) -> Option<u32> {
        if let Some(&id) = self.shared.others.by_text.get(text) {
            return Some(id);
        }
        let vocabulary = self.core.vocabulary();
        let rank = vocabulary.rank(&self.shared.spelling.bytes_of(text)?)?;
        let id = self.file_id(vocabulary.id(rank));
        (id < self.shared.first_hidden).then_some(id)
    }

    /// The bytes of a token that merging makes; over characters, those of its [swapped] text.
    pub(crate) fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.core.token_bytes(self.core_id(id)?)
    }

    pub(crate) fn id_to_token(&self, id: u32) -> Option<String> {
        match self.token_bytes(id) {
            Some(bytes) => Some(self.shared.spelling.text_of(bytes)),
            None => self.shared.others.by_id.get(&id).cloned(),
        }
    }

    /// The largest id; `None` without tokens.
    pub(crate) fn max_id(&self) -> Option<u32> {
        let vocabulary = self.core.vocabulary();
        let ranks = 0..vocabulary.len() as u32;
        let of_core = ranks.map(|rank| self.file_id(vocabulary.id(rank)));
        let of_core = of_core.filter(|&id| id < self.shared.first_hidden);
        of_core.chain(self.shared.others.by_id.keys().copied()).max()
    }

    /// Every token and its id, by ascending id.
    pub(crate) fn vocab(&self) -> Vec<(String, u32)> {
        let vocabulary = self.core.vocabulary();
        let of_core = (0..vocabulary.len() as u32)
            .map(|rank| (vocabulary.token(rank), self.file_id(vocabulary.id(rank))))
            .filter(|&(_, id)| id < self.shared.first_hidden)
            .map(|(bytes, id)| (self.shared.spelling.text_of(bytes), id));
        let others = self.shared.others.by_text.iter().map(|(text, &id)| (text.clone(), id));
        let mut tokens: Vec<_> = of_core.chain(others).collect();
        tokens.sort_unstable_by_key(|&(_, id)| id);
        tokens
    }

    /// Calls `found` with every merge, in order, until it fails.
    pub(crate) fn each_merge<E>(
        &self,
        mut found: impl FnMut(&str, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let pairs = match &self.shared.merges {
            Merges::Cuts(cuts) => {
                return cuts.iter().try_for_each(|&(rank, cut)| {
                    let (left, right) = self.core.vocabulary().token(rank).split_at(cut as usize);
                    let spelling = self.shared.spelling;
                    found(&spelling.text_of(left), &spelling.text_of(right))
                });
            }
            Merges::Pairs(pairs) => pairs,
        };
        let tokens: HashMap<u32, String, FixedState> =
            self.vocab().into_iter().map(|(text, id)| (id, text)).collect();
        let token = |id: u32| tokens.get(&id).map_or("", String::as_str);
        // If a pair occurs twice, the last place counts.
        let last: HashMap<Pair, usize, FixedState> =
            pairs.iter().enumerate().map(|(place, &pair)| (pair, place)).collect();
        let places = pairs.iter().enumerate();
        places
            .filter(|(place, pair)| last[pair] == *place)
            .try_for_each(|(_, &(left, right))| found(token(left), token(right)))
    }

    /// The tokens and ids, if tokens merge in the order of ids; otherwise fails.
    pub(crate) fn ranks(&self) -> Result<Vec<(&[u8], u32)>> {
        if !self.shared.is_core {
            return Err(Error::unsupported(
                "model.merges",
                "in an Encoding a list of merges that ranks cannot say",
            ));
        }
        if self.characters().is_some() {
            return Err(Error::unsupported(
                "pre_tokenizer",
                "in an Encoding a vocabulary over characters",
            ));
        }
        if self.shared.listed.is_some() {
            return Err(Error::unsupported(
                "model.vocab",
                "in an Encoding a vocabulary without a token for each byte",
            ));
        }
        if self.shared.ids.is_some() {
            return Err(Error::unsupported(
                "model.vocab",
                "in an Encoding another order of ids than that of the merges",
            ));
        }
        let vocabulary = self.core.vocabulary();
        let ranks = 0..vocabulary.len() as u32;
        Ok(ranks.map(|rank| (vocabulary.token(rank), vocabulary.id(rank))).collect())
    }

    /// Writes the ids of a text to `sink`, as ids of the core; see [`Model::finish`].
    pub(crate) fn encode<S: Sink>(&self, text: &str, sink: &mut S) -> Result<()> {
        Ok(self.core.encode(text, &Request::ORDINARY, sink)?)
    }

    /// Appends the ids of pieces that are not empty, as ids of the core; see [`Model::finish`].
    pub(crate) fn encode_pieces(
        &self,
        text: &str,
        pieces: &[Piece],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        Ok(self.core.encode_pieces(text, pieces, ids)?)
    }

    /// Converts ids of the core to ids of the file.
    pub(crate) fn finish(&self, ids: &mut [u32]) {
        let Shared { with_bytes, ids: table, .. } = &*self.shared;
        if let Some(id_of) = with_bytes.as_ref().or(table.as_ref().map(|table| &table.id_of)) {
            for id in ids {
                *id = id_of[*id as usize];
            }
        }
    }

    /// The token that a whole piece over characters, which is [swapped], becomes without merging.
    fn whole(&self, piece: &str) -> Result<Option<u32>> {
        if !self.shared.header.ignore_merges {
            return Ok(None);
        }
        Ok(self.token_to_id(&swapped(piece)?))
    }

    /// Encodes one piece over characters. Calls `found` with the id of each token and the length of
    /// its text, until it fails.
    pub(crate) fn encode_text(
        &self,
        piece: &str,
        mut found: impl FnMut(u32, usize) -> Result<()>,
    ) -> Result<()> {
        let swapped = swapped(piece)?;
        match self.whole(&swapped)? {
            Some(id) => found(id, piece.len()),
            None => self.encode_characters(&swapped, found),
        }
    }

    /// Encodes one piece. Calls `found` with the id of each token and the length of its text in a
    /// byte-level vocabulary, until it fails.
    pub(crate) fn encode_piece(
        &self,
        piece: &[u8],
        mut found: impl FnMut(u32, usize) -> Result<()>,
    ) -> Result<()> {
        if let Some(listed) = &self.shared.listed
            && (!self.shared.is_core || listed.lacks_a_byte_of(piece))
        {
            if self.shared.header.ignore_merges {
                let text = text_of(piece);
                if let Some(id) = self.token_to_id(&text) {
                    return found(id, text.len());
                }
            }
            return listed.merge(piece, found);
        }
        let mut ids = Vec::new();
        self.core.encode_piece(piece, &mut ids)?;
        for &id in &ids {
            let bytes = self.core.token_bytes(id).unwrap_or_default();
            found(self.file_id(id), text_length(bytes))?;
        }
        Ok(())
    }

    /// Appends the ids of a piece over characters, which is [swapped], as ids of the file.
    pub(crate) fn append_characters(&self, piece: &str, ids: &mut Vec<u32>) -> Result<()> {
        if let Some(id) = self.whole(piece)? {
            return Ok(push(ids, id)?);
        }
        let Some(characters) = self.characters() else { return Ok(()) };
        let kept = characters.without_dropped(piece)?;
        let text = kept.as_deref().unwrap_or(piece);
        if !self.shared.is_core {
            return characters.each_part(text, |part| match part {
                Cut::Known(range) => self.append_known(&text[range], ids),
                Cut::Unknown(range) => {
                    characters.each_unknown(&text[range], |id, _| Ok(push(ids, id)?))
                }
            });
        }
        let mut cuts = characters.cuts(text, self.shared.with_bytes.is_some());
        loop {
            let from = ids.len();
            self.core.encode_cut(text, |batch| Ok(cuts.fill(batch)), ids)?;
            self.finish(&mut ids[from..]);
            let Some(range) = cuts.unknown() else { return Ok(()) };
            poll(range.len())?;
            characters.each_unknown(&text[range], |id, _| Ok(push(ids, id)?))?;
        }
    }

    /// Appends the ids of a piece of characters that are tokens, which is not empty.
    fn append_known(&self, piece: &str, ids: &mut Vec<u32>) -> Result<()> {
        let from = ids.len();
        match &self.shared.listed {
            Some(listed) if !self.shared.is_core => {
                listed.merge(piece.as_bytes(), |id, _| Ok(push(ids, id)?))
            }
            _ => {
                poll(piece.len())?;
                self.core.encode_piece(piece.as_bytes(), ids)?;
                self.finish(&mut ids[from..]);
                Ok(())
            }
        }
    }

    /// [`Model::encode_text`] of a piece that is [swapped] and no token.
    fn encode_characters(
        &self,
        piece: &str,
        mut found: impl FnMut(u32, usize) -> Result<()>,
    ) -> Result<()> {
        let Some(characters) = self.characters() else { return Ok(()) };
        let kept = characters.without_dropped(piece)?;
        let text = kept.as_deref().unwrap_or(piece);
        let mut ids = Vec::new();
        characters.each_part(text, |part| match part {
            Cut::Known(range) => {
                ids.clear();
                self.append_known(&text[range], &mut ids)?;
                let length = |id| self.id_to_token(id).map_or(0, |text| text.len());
                ids.iter().try_for_each(|&id| found(id, length(id)))
            }
            Cut::Unknown(range) => characters.each_unknown(&text[range], &mut found),
        })
    }
}
