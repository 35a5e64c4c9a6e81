//! Merges pieces by the list of a file: for merges that ranks cannot express, and for pieces with
//! bytes that are not tokens.

use std::collections::HashMap;

use crate::memory::reserve;
use crate::polling::poll;
use crate::rule::{HeapMerger, Merges, NONE};
use foldhash::fast::FixedState;

use super::header::Header;
use crate::components::bytes::{CHAR_OF, is_in_utf8, text_length};
use crate::error::{Error, Result};

pub(crate) type FastMap<K, V> = HashMap<K, V, FixedState>;

/// Two tokens, by id.
pub(crate) type Pair = (u32, u32);

/// Cost of a merge, in bytes of text: see [`poll`].
const WORK: usize = 32;

/// Treatment of bytes that are not tokens.
#[derive(Debug, Clone)]
pub(crate) enum Unknown {
    /// Drops the byte; the bytes around it can merge.
    Dropped,
    /// Replaces the byte with a token; if `fused`, one token replaces consecutive bytes.
    Token { id: u32, fused: bool },
    /// Fails, because the unknown token, of this name, is not in the vocabulary.
    Fails(String),
}

/// An incomplete unknown token, and the length of its text.
pub(crate) type Waiting = Option<(u32, usize)>;

impl Unknown {
    /// Returns the treatment that a header requires. `id` looks up a token by name.
    pub(crate) fn new(header: &Header, id: impl Fn(&str) -> Option<u32>) -> Self {
        match &header.unk_token {
            None => Self::Dropped,
            Some(token) => match id(token) {
                Some(id) => Self::Token { id, fused: header.fuse_unk },
                None => Self::Fails(token.clone()),
            },
        }
    }

    /// Takes text of this length that is not a token; errors use `name`. Returns an unknown token
    /// if it is complete. A token in `waiting` stays there until a known token or the end of the
    /// text follows, because, as in `tokenizers`, byte tokens of the text after it come first.
    pub(crate) fn meet(
        &self,
        waiting: &mut Waiting,
        length: usize,
        name: impl FnOnce() -> String,
    ) -> Result<Waiting> {
        match (self, waiting) {
            (Self::Dropped, _) => Ok(None),
            (Self::Token { fused: true, .. }, Some((_, before))) => {
                *before += length;
                Ok(None)
            }
            (&Self::Token { id, .. }, waiting) => Ok(waiting.replace((id, length))),
            (Self::Fails(token), _) => Err(Error::Invalid(format!(
                "model.unk_token: {token:?} is not in the vocabulary, and the text contains a {}",
                name()
            ))),
        }
    }
}

/// List of merges, by ids.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Id of each byte that is a token.
    pub(crate) bytes: Vec<Option<u32>>,
    /// For each other byte, the tokens for the UTF-8 of the character that represents it; empty if
    /// the vocabulary lacks one of these tokens.
    pub(crate) fallback: Vec<Vec<u32>>,
    pub(crate) unknown: Unknown,
    pub(crate) merges: PairTable,
}

impl Listed {
    /// Whether `text` contains a byte that is not a token.
    pub(crate) fn lacks_a_byte_of(&self, text: &[u8]) -> bool {
        text.iter().any(|&byte| self.bytes[usize::from(byte)].is_none())
    }

    /// Whether each byte that occurs in UTF-8 is a token.
    pub(crate) fn has_all_bytes(&self) -> bool {
        (0..=255).all(|byte| !is_in_utf8(byte) || self.bytes[usize::from(byte)].is_some())
    }

    /// Returns the ids of single bytes, each with the length of its text in a byte-level
    /// vocabulary.
    fn parts(&self, piece: &[u8]) -> Result<Vec<(u32, usize)>> {
        let mut parts: Vec<(u32, usize)> = Vec::new();
        reserve(&mut parts, text_length(piece))?;
        let mut waiting = None;
        for &byte in piece {
            let index = usize::from(byte);
            let length = CHAR_OF[index].len_utf8();
            if let Some(id) = self.bytes[index] {
                parts.extend(waiting.take().into_iter().chain([(id, length)]));
            } else if !self.fallback[index].is_empty() {
                parts.extend(self.fallback[index].iter().map(|&id| (id, 1)));
            } else {
                let name = || format!("byte that is not a token, 0x{byte:02x}");
                parts.extend(self.unknown.meet(&mut waiting, length, name)?);
            }
        }
        parts.extend(waiting);
        Ok(parts)
    }

    /// Merges a piece. Calls `found` with each token id and the length of its text, until `found`
    /// fails.
    pub(crate) fn merge(
        &self,
        piece: &[u8],
        found: impl FnMut(u32, usize) -> Result<()>,
    ) -> Result<()> {
        self.merges.merge(&self.parts(piece)?, || false, found)
    }
}

#[derive(Debug, Default)]
pub(crate) struct PairTable {
    /// For each pair, its index in the list and the id of the merged token.
    pairs: FastMap<Pair, (u32, u32)>,
    /// Token that each merge makes, by index in the list; [`NONE`] for skipped indices.
    products: Vec<u32>,
}

impl PairTable {
    /// Creates an empty table with room for `count` merges.
    pub(crate) fn with_capacity(count: usize) -> Result<Self> {
        let mut pairs = FastMap::default();
        let bytes = count * size_of::<(Pair, (u32, u32))>();
        pairs.try_reserve(count).map_err(|_| Error::OutOfMemory { bytes })?;
        Ok(Self { pairs, products: Vec::with_capacity(count) })
    }

    /// Adds a merge by its index in the list. Indices must ascend.
    pub(crate) fn add(&mut self, pair: Pair, place: u32, product: u32) {
        self.pairs.insert(pair, (place, product));
        self.products.resize(place as usize, NONE);
        self.products.push(product);
    }

    /// Returns the index of a pair in the list, and the token it merges into.
    #[inline(always)]
    pub(crate) fn get(&self, pair: Pair) -> Option<(u32, u32)> {
        self.pairs.get(&pair).copied()
    }

    /// Returns all pairs with their indices in the list, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Pair, u32)> {
        self.pairs.iter().map(|(&pair, &(place, _))| (pair, place))
    }

    /// Merges parts, given as ids and the lengths of their texts: always the pair that comes first
    /// in the list, and the leftmost of equal pairs, until no pair is left. A pair for which
    /// `is_skipped` is true waits until another pair has merged. Calls `found` with the id of each
    /// token and the length of its text, until `found` fails.
    pub(crate) fn merge(
        &self,
        singles: &[(u32, usize)],
        is_skipped: impl FnMut() -> bool,
        mut found: impl FnMut(u32, usize) -> Result<()>,
    ) -> Result<()> {
        let mut merging = Merging { table: self, parts: singles.to_vec(), is_skipped };
        for at in HeapMerger::default().merge(&mut merging, singles.len())? {
            let (id, length) = merging.parts[at];
            found(id, length)?;
        }
        Ok(())
    }
}

/// Parts being merged: each is an id and the length of its text.
struct Merging<'a, S> {
    table: &'a PairTable,
    parts: Vec<(u32, usize)>,
    is_skipped: S,
}

impl<S: FnMut() -> bool> Merges for Merging<'_, S> {
    fn rank(&mut self, left: usize, right: usize) -> Result<u32> {
        let pair = (self.parts[left].0, self.parts[right].0);
        Ok(self.table.get(pair).map_or(NONE, |merge| merge.0))
    }

    fn join(&mut self, left: usize, right: usize, place: u32) -> Result<()> {
        let length = self.parts[left].1 + self.parts[right].1;
        self.parts[left] = (self.table.products[place as usize], length);
        poll(WORK)
    }

    /// As in `tokenizers`, a candidate is also current if its neighbors are now another pair that
    /// produces the same token.
    fn is_current(&self, place: u32, now: u32) -> bool {
        let products = &self.table.products;
        products[place as usize] == products[now as usize]
    }

    fn skips(&mut self) -> bool {
        (self.is_skipped)()
    }
}
