//! The vocabulary of a file and its merges, ready to run.

use std::collections::HashMap;
use std::sync::Arc;

use bpe_core::split::Piece;
use bpe_core::{Request, Sink, SpecialTokens, Splitter, Vocabulary};
use foldhash::fast::FixedState;

use crate::build::{Built, Ids, Merges, Others, build};
use crate::bytes::{bytes_of, text_of};
use crate::error::{Error, Result};
use crate::listed::{Listed, Pair};
use crate::lists::{MergeList, TokenList};

/// What a file says about its model beside the lists.
#[derive(Debug, Default)]
pub(crate) struct Header {
    pub(crate) ignore_merges: bool,
    /// As the file has it; it changes nothing where every byte is a token.
    pub(crate) unk_token: Option<String>,
    pub(crate) dropout: Option<f32>,
    pub(crate) continuing_subword_prefix: Option<String>,
    pub(crate) end_of_word_suffix: Option<String>,
    pub(crate) fuse_unk: bool,
}

/// A model that is ready to run.
#[derive(Debug)]
pub(crate) struct Model {
    core: bpe_core::Encoding,
    /// What does not depend on how text is split.
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    header: Header,
    /// The ids of the core's ids, and the way back; none where they are the same.
    ids: Option<Ids>,
    others: Others,
    size: usize,
    /// Where the core does not do what the list of the file says.
    listed: Option<Listed>,
    merges: Merges,
}

impl Model {
    pub(crate) fn new(
        header: Header,
        tokens: TokenList,
        merges: MergeList,
        splitter: Splitter,
    ) -> Result<Self> {
        let built = build(tokens, merges, header.ignore_merges)?;
        let Built { vocabulary, ids, others, size, listed, merges } = built;
        let shared = Arc::new(Shared { header, ids, others, size, listed, merges });
        Self::with(vocabulary, splitter, shared)
    }

    fn with(vocabulary: Vocabulary, splitter: Splitter, shared: Arc<Shared>) -> Result<Self> {
        let core = bpe_core::Encoding::new(vocabulary, splitter, SpecialTokens::new([])?)?;
        Ok(Self { core, shared })
    }

    /// The same model for text that is split in another way.
    pub(crate) fn with_splitter(&self, splitter: Splitter) -> Result<Self> {
        Self::with(self.core.vocabulary().clone(), splitter, self.shared.clone())
    }

    pub(crate) fn header(&self) -> &Header {
        &self.shared.header
    }

    pub(crate) fn size(&self) -> usize {
        self.shared.size
    }

    /// Whether whole texts can be handed to the core.
    pub(crate) fn is_core(&self) -> bool {
        self.shared.listed.is_none()
    }

    fn core_id(&self, id: u32) -> Option<u32> {
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
        Some(self.file_id(vocabulary.id(vocabulary.rank(&bytes_of(text)?)?)))
    }

    /// The bytes of a token; none for one that stands for no bytes.
    pub(crate) fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.core.token_bytes(self.core_id(id)?)
    }

    pub(crate) fn id_to_token(&self, id: u32) -> Option<String> {
        match self.token_bytes(id) {
            Some(bytes) => Some(text_of(bytes)),
            None => self.shared.others.by_id.get(&id).cloned(),
        }
    }

    /// Every token and its id, by ascending id.
    pub(crate) fn vocab(&self) -> Vec<(String, u32)> {
        let vocabulary = self.core.vocabulary();
        let of_core = (0..vocabulary.len() as u32)
            .map(|rank| (text_of(vocabulary.token(rank)), self.file_id(vocabulary.id(rank))));
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
                    found(&text_of(left), &text_of(right))
                });
            }
            Merges::Pairs(pairs) => pairs,
        };
        let tokens: HashMap<u32, String, FixedState> =
            self.vocab().into_iter().map(|(text, id)| (id, text)).collect();
        let token = |id: u32| tokens.get(&id).map_or("", String::as_str);
        // Of a pair that comes twice the last place counts.
        let last: HashMap<Pair, usize, FixedState> =
            pairs.iter().enumerate().map(|(place, &pair)| (pair, place)).collect();
        let places = pairs.iter().enumerate();
        places
            .filter(|(place, pair)| last[pair] == *place)
            .try_for_each(|(_, &(left, right))| found(token(left), token(right)))
    }

    /// Tokens and ids where the ids are the order of merging, and the bytes are all that counts.
    pub(crate) fn ranks(&self) -> Result<Vec<(&[u8], u32)>> {
        if self.shared.listed.is_some() {
            return Err(Error::unsupported(
                "model.merges",
                "in an Encoding a list of merges that ranks cannot say",
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

    /// Walks a text that the core splits into `sink`, which gets the ids of the core; see
    /// [`Model::finish`].
    pub(crate) fn encode<S: Sink>(&self, text: &str, sink: &mut S) -> Result<()> {
        Ok(self.core.encode(text, &Request::ORDINARY, sink)?)
    }

    /// Appends the ids of pieces of a text, none of them empty; see [`Model::finish`].
    pub(crate) fn encode_pieces(
        &self,
        text: &str,
        pieces: &[Piece],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        Ok(self.core.encode_pieces(text, pieces, ids)?)
    }

    /// Turns ids of the core into those of the file.
    pub(crate) fn finish(&self, ids: &mut [u32]) {
        if let Some(table) = &self.shared.ids {
            for id in ids {
                *id = table.id_of[*id as usize];
            }
        }
    }

    /// Appends the ids of one piece.
    pub(crate) fn encode_piece(&self, piece: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        if let Some(listed) = &self.shared.listed {
            if self.shared.header.ignore_merges
                && let Some(id) = self.token_to_id(&text_of(piece))
            {
                ids.push(id);
            } else {
                listed.merge(piece, ids);
            }
            return Ok(());
        }
        let from = ids.len();
        self.core.encode_piece(piece, ids)?;
        self.finish(&mut ids[from..]);
        Ok(())
    }
}
