//! The vocabulary of a file and its merges.
//!
//! A file lists which pairs of tokens merge, and their priority is their place in the list. The
//! core knows no list: there, two parts merge when their bytes are a token, and the priority is
//! the token's. The two say the same when the list holds, for every token that merging makes, the
//! pair that its own bytes merge from last, and the tokens' order is that of those pairs; other
//! pairs of the list then never meet (see `bpe_core::vocabulary`, whose pairs are these). That is
//! checked for every file; where it fails, the list itself is used.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use bpe_core::audit::merge_alone;
use bpe_core::split::Piece;
use bpe_core::{Request, Sink, SpecialTokens, Splitter, Vocabulary};
use foldhash::fast::FixedState;

use crate::bytes::{bytes_of, text_of};
use crate::error::{Error, Result};

type FastMap<K, V> = HashMap<K, V, FixedState>;

/// Two tokens, by id.
pub(crate) type Pair = (u32, u32);

/// What the file says about its model.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelSpec {
    /// Tokens and ids, by ascending id; no token and no id twice.
    pub(crate) vocab: Vec<(String, u32)>,
    /// Pairs of tokens, by ids, the first merges first.
    pub(crate) merges: Vec<Pair>,
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
    /// The ids of the core's ids, and the way back; none where they are the same.
    ids: Option<Ids>,
    /// Tokens that stand for no bytes: merging never makes them.
    others: HashMap<String, u32>,
    others_by_id: HashMap<u32, String>,
    size: usize,
    /// Where the core does not do what the list of the file says.
    listed: Option<Listed>,
    merges: Vec<Pair>,
    pub(crate) header: ModelSpec,
}

#[derive(Debug)]
struct Ids {
    id_of: Vec<u32>,
    core_of: HashMap<u32, u32>,
}

/// Merging by the list itself.
#[derive(Debug)]
struct Listed {
    bytes: Vec<u32>,
    /// What a pair becomes, and when.
    pairs: FastMap<Pair, (u32, u32)>,
    ignore_merges: bool,
}

/// The byte values that UTF-8 never has.
fn is_in_utf8(byte: u8) -> bool {
    !matches!(byte, 0xc0 | 0xc1 | 0xf5..)
}

impl Model {
    pub(crate) fn new(mut spec: ModelSpec, splitter: Splitter) -> Result<Self> {
        let vocab = std::mem::take(&mut spec.vocab);
        let merges = std::mem::take(&mut spec.merges);
        let size = vocab.len();
        let mut others = HashMap::new();
        let mut tokens: FastMap<u32, Vec<u8>> = FastMap::default();
        for (text, id) in vocab {
            match bytes_of(&text) {
                Some(bytes) if !bytes.is_empty() => drop(tokens.insert(id, bytes)),
                _ => drop(others.insert(text, id)),
            }
        }
        let built = Builder { tokens: &tokens, merges: &merges, ignore: spec.ignore_merges };
        let (vocabulary, ids, listed) = built.build()?;
        let others_by_id = others.iter().map(|(text, &id)| (id, text.clone())).collect();
        let core = bpe_core::Encoding::new(vocabulary, splitter, SpecialTokens::new([])?)?;
        let mut model =
            Self { core, ids, others, others_by_id, size, listed, merges, header: spec };
        // What merging must not see is looked up like the others.
        for (id, bytes) in tokens {
            if model.core_id(id).is_none() {
                let text = text_of(&bytes);
                model.others.insert(text.clone(), id);
                model.others_by_id.insert(id, text);
            }
        }
        Ok(model)
    }

    pub(crate) fn merges(&self) -> &[Pair] {
        &self.merges
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Whether whole texts can be handed to the core.
    pub(crate) fn is_core(&self) -> bool {
        self.listed.is_none()
    }

    fn core_id(&self, id: u32) -> Option<u32> {
        let core = match &self.ids {
            None => id,
            Some(ids) => *ids.core_of.get(&id)?,
        };
        self.core.vocabulary().rank_of_id(core).map(|_| core)
    }

    pub(crate) fn token_to_id(&self, text: &str) -> Option<u32> {
        if let Some(&id) = self.others.get(text) {
            return Some(id);
        }
        let vocabulary = self.core.vocabulary();
        let core = vocabulary.id(vocabulary.rank(&bytes_of(text)?)?);
        Some(self.ids.as_ref().map_or(core, |ids| ids.id_of[core as usize]))
    }

    /// The bytes of a token; none for one that stands for no bytes.
    pub(crate) fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.core.token_bytes(self.core_id(id)?)
    }

    pub(crate) fn id_to_token(&self, id: u32) -> Option<String> {
        match self.token_bytes(id) {
            Some(bytes) => Some(text_of(bytes)),
            None => self.others_by_id.get(&id).cloned(),
        }
    }

    /// Every token and its id, by ascending id.
    pub(crate) fn vocab(&self) -> Vec<(String, u32)> {
        let vocabulary = self.core.vocabulary();
        let id = |core: u32| self.ids.as_ref().map_or(core, |ids| ids.id_of[core as usize]);
        let of_core = (0..vocabulary.len() as u32)
            .map(|rank| (text_of(vocabulary.token(rank)), id(vocabulary.id(rank))));
        let others = self.others.iter().map(|(text, &id)| (text.clone(), id));
        let mut tokens: Vec<_> = of_core.chain(others).collect();
        tokens.sort_unstable_by_key(|&(_, id)| id);
        tokens
    }

    /// Tokens and ids where the ids are the order of merging, and the bytes are all that counts.
    pub(crate) fn ranks(&self) -> Result<Vec<(&[u8], u32)>> {
        if self.listed.is_some() {
            return Err(Error::unsupported(
                "model.merges",
                "in an Encoding a list of merges that ranks cannot say",
            ));
        }
        if self.ids.is_some() {
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
        if let Some(table) = &self.ids {
            for id in ids {
                *id = table.id_of[*id as usize];
            }
        }
    }

    /// Appends the ids of one piece.
    pub(crate) fn encode_piece(&self, piece: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        if let Some(listed) = &self.listed {
            if listed.ignore_merges
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

struct Builder<'a> {
    tokens: &'a FastMap<u32, Vec<u8>>,
    merges: &'a [Pair],
    ignore: bool,
}

type Built = (Vocabulary, Option<Ids>, Option<Listed>);

impl Builder<'_> {
    fn build(&self) -> Result<Built> {
        let mut by_bytes: FastMap<&[u8], u32> = FastMap::default();
        by_bytes.reserve(self.tokens.len());
        by_bytes.extend(self.tokens.iter().map(|(&id, bytes)| (&**bytes, id)));
        let bytes: Vec<Option<u32>> =
            (0..=255).map(|byte| by_bytes.get(&[byte][..]).copied()).collect();
        if let Some(byte) = (0..=255u8).find(|&b| is_in_utf8(b) && bytes[usize::from(b)].is_none())
        {
            return Err(Error::unsupported(
                "model.vocab",
                format!("a vocabulary without a token for the byte 0x{byte:02x}"),
            ));
        }
        let mut pairs: FastMap<Pair, (u32, u32)> = FastMap::default();
        pairs.reserve(self.merges.len());
        let mut products = Vec::with_capacity(self.merges.len());
        let mut buffer = Vec::new();
        for (place, &(left, right)) in (0..).zip(self.merges) {
            let (Some(a), Some(b)) = (self.tokens.get(&left), self.tokens.get(&right)) else {
                // Merging starts from bytes, and never makes a part that stands for none.
                continue;
            };
            buffer.clear();
            buffer.extend_from_slice(a);
            buffer.extend_from_slice(b);
            let Some(&product) = by_bytes.get(&buffer[..]) else {
                return Err(Error::Invalid(format!(
                    "model.merges[{place}] makes {:?}, which is no token of the vocabulary",
                    text_of(&buffer)
                )));
            };
            pairs.insert((left, right), (place, product));
            products.push(product);
        }
        if let Some((vocabulary, ids)) = self.as_ranks(&bytes, &products, &pairs)? {
            return Ok((vocabulary, ids, None));
        }
        let all = self.tokens.iter().map(|(&id, bytes)| (bytes.clone(), id)).collect();
        let bytes = bytes.iter().map(|id| id.unwrap_or(u32::MAX)).collect();
        let listed = Listed { bytes, pairs, ignore_merges: self.ignore };
        Ok((Vocabulary::build(all)?, None, Some(listed)))
    }

    /// The vocabulary whose ranks say what the list says; none where there is none.
    fn as_ranks(
        &self,
        bytes: &[Option<u32>],
        products: &[u32],
        pairs: &FastMap<Pair, (u32, u32)>,
    ) -> Result<Option<(Vocabulary, Option<Ids>)>> {
        let mut order: Vec<u32> = bytes.iter().copied().flatten().collect();
        let mut placed: FastMap<u32, ()> = order.iter().map(|&id| (id, ())).collect();
        let first_byte_tokens = order.len();
        order.extend(products.iter().filter(|&&id| placed.insert(id, ()).is_none()));
        if self.ignore {
            // Whole pieces are looked up among all tokens.
            let mut rest: Vec<u32> =
                self.tokens.keys().copied().filter(|id| !placed.contains_key(id)).collect();
            rest.sort_unstable();
            order.extend(rest);
        }
        // Where single bytes come in the order changes nothing.
        let by_id = order[first_byte_tokens..].is_sorted();
        let core_id = |place: u32, id: u32| if by_id { id } else { place };
        let build = |order: &[u32]| {
            let tokens = (0..).zip(order);
            Vocabulary::build(
                tokens.map(|(place, &id)| (self.tokens[&id].clone(), core_id(place, id))).collect(),
            )
        };
        let mut vocabulary = build(&order)?;
        let mut dropped = Vec::new();
        if !self.ignore && !vocabulary.all_reachable() {
            // The list never makes these; as a whole piece they would still be found.
            let is_kept = |&id: &u32| {
                let rank = vocabulary.rank(&self.tokens[&id]);
                rank.is_some_and(|rank| vocabulary.is_reachable(rank))
            };
            let (kept, lost) = order.iter().partition(|id| is_kept(id));
            (order, dropped) = (kept, lost);
            vocabulary = build(&order)?;
        }
        let id_of_core: FastMap<u32, u32> =
            (0..).zip(&order).map(|(place, &id)| (core_id(place, id), id)).collect();
        if !self.says_the_same(&vocabulary, &id_of_core, pairs, &dropped) {
            return Ok(None);
        }
        let ids = (!by_id).then(|| Ids {
            core_of: (0..).zip(&order).map(|(place, &id)| (id, place)).collect(),
            id_of: order,
        });
        Ok(Some((vocabulary, ids)))
    }

    /// Whether the pairs of the vocabulary are in the list, in the same order, and no other pair of
    /// the list can ever meet.
    fn says_the_same(
        &self,
        vocabulary: &Vocabulary,
        id_of_core: &FastMap<u32, u32>,
        pairs: &FastMap<Pair, (u32, u32)>,
        dropped: &[u32],
    ) -> bool {
        let id = |rank: u32| id_of_core[&vocabulary.id(rank)];
        let is_token = |part: u32| (part as usize) < vocabulary.len();
        let mut last = None;
        for rank in 0..vocabulary.len() as u32 {
            if vocabulary.token(rank).len() == 1 {
                continue;
            }
            let Some((left, right)) = vocabulary.split(rank) else {
                if self.ignore {
                    continue;
                }
                return false;
            };
            if !is_token(left) || !is_token(right) {
                return false;
            }
            let listed = pairs.get(&(id(left), id(right)));
            match listed {
                Some(&(place, product)) if product == id(rank) && last < Some(place) => {
                    last = Some(place);
                }
                _ => return false,
            }
        }
        dropped.iter().all(|lost| {
            // The last step of what the list would make of it must not be one of the list.
            let parts = merge_alone(vocabulary, &self.tokens[lost]).unwrap_or_default();
            let is_listed =
                |left, right| pairs.contains_key(&(id_of_core[left], id_of_core[right]));
            !matches!(&parts[..], [left, right] if is_listed(left, right))
        })
    }
}

impl Listed {
    /// Appends the ids of one piece: the pair that comes first in the list merges, the leftmost of
    /// equals, until none is left.
    fn merge(&self, piece: &[u8], ids: &mut Vec<u32>) {
        let end = piece.len();
        let mut parts: Vec<u32> = piece.iter().map(|&b| self.bytes[usize::from(b)]).collect();
        // Part i starts at byte i; 0 marks one that was merged into the part before it.
        let mut next: Vec<usize> = (1..=end).collect();
        let mut previous: Vec<usize> = (0..end).map(|at| at.wrapping_sub(1)).collect();
        let merge = |parts: &[u32], next: &[usize], left: usize| {
            let right = *parts.get(next[left])?;
            self.pairs.get(&(parts[left], right)).copied()
        };
        let mut queue: BinaryHeap<Reverse<(u32, usize)>> = (0..end)
            .filter_map(|left| Some(Reverse((merge(&parts, &next, left)?.0, left))))
            .collect();
        while let Some(Reverse((place, left))) = queue.pop() {
            let Some((now, product)) = merge(&parts, &next, left).filter(|_| next[left] != 0)
            else {
                continue;
            };
            if now != place {
                continue;
            }
            let right = next[left];
            parts[left] = product;
            next[left] = next[right];
            next[right] = 0;
            if next[left] < end {
                previous[next[left]] = left;
            }
            for left in [previous[left], left] {
                if left < end
                    && let Some((place, _)) = merge(&parts, &next, left)
                {
                    queue.push(Reverse((place, left)));
                }
            }
        }
        let mut at = 0;
        while at < end {
            ids.push(parts[at]);
            at = next[at];
        }
    }
}
