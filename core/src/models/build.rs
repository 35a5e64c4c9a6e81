//! Builds a core vocabulary from the tokens and merges of a file.
//!
//! A file lists the pairs of tokens that merge; the priority of a pair is its index in the list.
//! The core has no such list: two parts merge if their concatenation is a token, with the priority
//! of that token. Both give the same ids if the list contains, for every token that merging
//! produces, the pair of the last merge of the token's bytes, and the tokens are in the order of
//! these pairs. Other pairs of the list then never become neighbors (see `crate::vocabulary`).
//!
//! Nearly all files have their tokens in that order. Their merges are passed to the core as the cut
//! that splits each token in two, and the core verifies them ([`by_cuts`]). For other files, the
//! core finds the pairs, which are then looked up in the list; if one is missing, merging uses the
//! list ([`General`]).

use std::borrow::Cow;
use std::collections::HashMap;

use crate::Vocabulary;
use crate::ablation::Mechanism;
use crate::audit::merge_alone;
use crate::vocabulary::RankList;
use foldhash::fast::FixedState;

use super::header::Header;
use super::pair_table::{FastMap, Listed, Pair, PairTable, Unknown};
use super::token_lists::{MergeList, TokenList};
use crate::components::bytes::{CHAR_OF, Spelling, append_bytes, bytes_of, is_in_utf8};
use crate::error::{Error, Result};

/// A vocabulary built from the lists of a file.
pub(crate) struct Built {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) ids: Option<Ids>,
    pub(crate) others: Others,
    /// Number of tokens in the file.
    pub(crate) size: usize,
    /// List of merges, if the core cannot encode every piece.
    pub(crate) listed: Option<Listed>,
    /// Whether the core gives the same ids as the list, for pieces whose bytes are all tokens.
    pub(crate) is_core: bool,
    pub(crate) merges: Merges,
}

/// Mapping between ids of the core and ids of the file.
#[derive(Debug)]
pub(crate) struct Ids {
    pub(crate) id_of: Vec<u32>,
    pub(crate) core_of: FastMap<u32, u32>,
}

/// Tokens that merging never produces, because they represent no bytes or no merge leads to them.
#[derive(Debug, Default)]
pub(crate) struct Others {
    pub(crate) by_text: HashMap<String, u32>,
    pub(crate) by_id: HashMap<u32, String>,
}

impl Others {
    /// Adds a token. Returns false if the token already has another id.
    pub(crate) fn insert(&mut self, text: String, id: u32) -> bool {
        self.by_id.insert(id, text.clone());
        self.by_text.insert(text, id).is_none()
    }
}

/// List of merges, for writing files.
#[derive(Debug)]
pub(crate) enum Merges {
    /// Rank of a core token, and the length of its first part in bytes.
    Cuts(Vec<(u32, u32)>),
    /// Pairs of ids.
    Pairs(Vec<Pair>),
}

impl Default for Merges {
    fn default() -> Self {
        Self::Pairs(Vec::new())
    }
}

/// Builds a byte-level vocabulary.
pub(crate) fn build(tokens: &TokenList, merges: &MergeList, header: &Header) -> Result<Built> {
    if let Some(built) = by_cuts(tokens, merges, header.ignore_merges)? {
        return Ok(built);
    }
    let ids: TokenIds<'_> = tokens.iter().collect();
    let pairs = pairs(&ids, merges)?;
    let (mut bytes, mut others) = (RankList::default(), Vec::new());
    for (text, id) in tokens.iter() {
        match bytes_of(text) {
            Some(token) if !token.is_empty() => bytes.push(&token, id),
            _ => others.push((text, id)),
        }
    }
    in_general(&bytes, &others, pairs, header, Spelling::Represented, 0)
}

/// Like [`build`], for a vocabulary over characters, with its tokens as bytes. The first
/// `assembling` merges and the first `hidden` tokens are not in the file.
pub(crate) fn build_in_bytes(
    tokens: &RankList,
    others: &[(&str, u32)],
    merges: Vec<Pair>,
    header: &Header,
    assembling: usize,
    hidden: usize,
) -> Result<Built> {
    let mut built = in_general(tokens, others, merges, header, Spelling::Spaced, assembling)?;
    built.size -= hidden;
    Ok(built)
}

/// Maps token texts to ids. If a token occurs twice, the last id counts.
pub(crate) type TokenIds<'a> = HashMap<&'a str, u32, FixedState>;

/// Looks up the ids of each merge's two tokens.
pub(crate) fn pairs(ids: &TokenIds<'_>, merges: &MergeList) -> Result<Vec<Pair>> {
    merges.check_lines()?;
    let mut pairs = Vec::with_capacity(merges.len());
    let mut product = String::new();
    for (place, parts) in merges.iter().enumerate() {
        let invalid = |reason: String| Error::Invalid(format!("model.merges[{place}]{reason}"));
        let id = |part: &str| {
            let reason = || invalid(format!(": Token `{part}` out of vocabulary"));
            ids.get(part).copied().ok_or_else(reason)
        };
        pairs.push((id(parts[0])?, id(parts[1])?));
        product.clear();
        parts.iter().for_each(|part| product.push_str(part));
        if !ids.contains_key(&*product) {
            return Err(invalid(format!(
                " makes {product:?}, which is not a token of the vocabulary"
            )));
        }
    }
    Ok(pairs)
}

/// Fast path: merges in the order of ids, which the core can verify. On `None`, use [`in_general`].
fn by_cuts(tokens: &TokenList, merges: &MergeList, ignore_merges: bool) -> Result<Option<Built>> {
    if merges.check_lines().is_err() || !Mechanism::ListedSplits.is_used() {
        return Ok(None);
    }
    let sorted = if tokens.are_sorted() { None } else { Some(tokens.sorted()) };
    let tokens = sorted.as_ref().unwrap_or(tokens);
    // Two tokens may share an id.
    if !tokens.are_sorted() {
        return Ok(None);
    }
    let Some(products) = products(tokens, merges).filter(|places| places.is_sorted()) else {
        return Ok(None);
    };
    // The core looks up whole pieces among all its tokens. Unless merges are ignored, the core must
    // not have tokens that no merge produces.
    let mut kept = RankList::with_capacity(tokens.ids().len(), tokens.byte_len());
    let mut others = Others::default();
    let mut cuts: Vec<(u32, u32)> = Vec::with_capacity(merges.len());
    let mut merged = products.into_iter().zip(merges.iter()).peekable();
    let (mut is_byte, mut bytes) = ([false; 256], Vec::new());
    for (place, (text, id)) in tokens.iter().enumerate() {
        let first = cuts.len();
        while let Some((_, [left, _])) = merged.next_if(|&(product, _)| product == place) {
            // Each character represents one byte.
            cuts.push((kept.len() as u32, left.chars().count() as u32));
        }
        let is_made = cuts.len() > first;
        bytes.clear();
        let is_text = !append_bytes(text, &mut bytes)? || bytes.is_empty();
        if let [byte] = bytes[..] {
            is_byte[usize::from(byte)] = true;
        }
        if !is_text && (bytes.len() == 1 || is_made || ignore_merges) {
            kept.push(&bytes, id);
        } else if is_made || !others.insert(text.to_owned(), id) {
            return Ok(None);
        }
    }
    if (0..=255).any(|byte| is_in_utf8(byte) && !is_byte[usize::from(byte)]) {
        return Ok(None);
    }
    let Some(vocabulary) = Vocabulary::from_cuts(kept, &cuts)? else { return Ok(None) };
    Ok(Some(Built {
        vocabulary,
        ids: None,
        others,
        size: tokens.ids().len(),
        listed: None,
        is_core: true,
        merges: Merges::Cuts(cuts),
    }))
}

/// Returns the index of the token that each merge produces. `None` if the merges of a token are not
/// adjacent, if a pair occurs twice, or if finding the order of the tokens takes too long.
pub(crate) fn products(tokens: &TokenList, merges: &MergeList) -> Option<Vec<usize>> {
    let count = tokens.ids().len();
    let mut products = Vec::with_capacity(merges.len());
    let mut is_made = vec![false; count];
    let mut steps = 4 * count;
    // Index of the last product, and the lengths of the first parts in its merges.
    let (mut place, mut cuts) = (0, Vec::new());
    for [left, right] in merges.iter() {
        let is_product = |place: usize| {
            let token = tokens.get(place);
            token.len() == left.len() + right.len()
                && token.starts_with(left)
                && token.ends_with(right)
        };
        if products.is_empty() || !is_product(place) {
            loop {
                if steps == 0 {
                    return None;
                }
                steps -= 1;
                place = (place + 1) % count;
                if is_product(place) {
                    break;
                }
            }
            if is_made[place] {
                return None;
            }
            is_made[place] = true;
            cuts.clear();
        }
        if cuts.contains(&left.len()) {
            return None;
        }
        cuts.push(left.len());
        products.push(place);
    }
    Some(products)
}

/// Slow path, for any lists. `others` are token texts that represent no bytes. The first
/// `assembling` merges are not in the file.
fn in_general(
    tokens: &RankList,
    others: &[(&str, u32)],
    mut pairs: Vec<Pair>,
    header: &Header,
    spelling: Spelling,
    assembling: usize,
) -> Result<Built> {
    // If a token occurs twice, the last id counts.
    let mut by_bytes: FastMap<&[u8], u32> = FastMap::default();
    by_bytes.reserve(tokens.len());
    by_bytes.extend(tokens.iter());
    let by_text: HashMap<&str, u32> = others.iter().copied().collect();
    check_ids(&by_bytes, &by_text, spelling)?;

    let bytes_of_id: FastMap<u32, &[u8]> =
        by_bytes.iter().map(|(&bytes, &id)| (id, bytes)).collect();
    let unknown = Unknown::new(header, |token| match bytes_of(token) {
        Some(bytes) if !bytes.is_empty() => by_bytes.get(&bytes[..]).copied(),
        _ => by_text.get(token).copied(),
    });
    let tokens_of_bytes = header.fallback(|name| by_bytes.get(name.as_bytes()).copied());
    let fallback = CHAR_OF.map(|character| {
        let bytes = character.to_string().into_bytes().into_iter();
        let ids: Option<Vec<u32>> = bytes.map(|byte| tokens_of_bytes[usize::from(byte)]).collect();
        ids.unwrap_or_default()
    });
    // Over characters, pieces are parts of the texts that are looked up.
    let ignore = header.ignore_merges && spelling == Spelling::Represented;
    let general = General { by_bytes, tokens: bytes_of_id, merges: &pairs, ignore };
    let Parts { vocabulary, ids, listed, is_core } = general.build(unknown, fallback.into())?;
    let mut others = Others::default();
    for (&text, &id) in &by_text {
        others.insert(text.to_owned(), id);
    }
    // Tokens that merging must not use are still looked up.
    for (&id, bytes) in &general.tokens {
        let core = ids.as_ref().map_or(Some(id), |ids: &Ids| ids.core_of.get(&id).copied());
        if core.and_then(|core| vocabulary.rank_of_id(core)).is_none() {
            others.insert(spelling.text_of(bytes), id);
        }
    }
    let size = general.tokens.len() + by_text.len();
    pairs.drain(..assembling);
    Ok(Built { vocabulary, ids, others, size, listed, is_core, merges: Merges::Pairs(pairs) })
}

/// Fails if two tokens share an id.
fn check_ids(
    by_bytes: &FastMap<&[u8], u32>,
    by_text: &HashMap<&str, u32>,
    spelling: Spelling,
) -> Result<()> {
    let mut ids: Vec<u32> = by_bytes.values().chain(by_text.values()).copied().collect();
    ids.sort_unstable();
    if ids.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    let of_bytes = by_bytes.iter().map(|(&bytes, &id)| (id, Cow::Owned(spelling.text_of(bytes))));
    let of_texts = by_text.iter().map(|(&text, &id)| (id, Cow::Borrowed(text)));
    let mut all: Vec<(u32, Cow<'_, str>)> = of_bytes.chain(of_texts).collect();
    all.sort_unstable();
    match all.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some([a, b]) => Err(Error::unsupported(
            "model.vocab",
            format!("one id, {}, for two tokens, {:?} and {:?},", a.0, a.1, b.1),
        )),
        _ => Ok(()),
    }
}

/// The lists of a file, without assumptions about their order.
struct General<'a> {
    by_bytes: FastMap<&'a [u8], u32>,
    tokens: FastMap<u32, &'a [u8]>,
    merges: &'a [Pair],
    ignore: bool,
}

/// The fields of [`Built`] that depend on how to merge by the lists.
struct Parts {
    vocabulary: Vocabulary,
    ids: Option<Ids>,
    listed: Option<Listed>,
    is_core: bool,
}

impl General<'_> {
    fn build(&self, unknown: Unknown, fallback: Vec<Vec<u32>>) -> Result<Parts> {
        let bytes: Vec<Option<u32>> =
            (0..=255).map(|byte| self.by_bytes.get(&[byte][..]).copied()).collect();
        let has_all =
            (0..=255u8).all(|byte| !is_in_utf8(byte) || bytes[usize::from(byte)].is_some());
        let mut table = PairTable::with_capacity(self.merges.len())?;
        let mut products = Vec::with_capacity(self.merges.len());
        let mut buffer = Vec::new();
        for (place, &(left, right)) in (0..).zip(self.merges) {
            let (Some(a), Some(b)) = (self.tokens.get(&left), self.tokens.get(&right)) else {
                // Merging starts from bytes, so tokens that represent no bytes never merge.
                if let Unknown::Token { id, .. } = unknown
                    && !has_all
                    && (left == id || right == id)
                {
                    // Unlike other such tokens, the unknown token could merge.
                    return Err(Error::unsupported(
                        format!("model.merges[{place}]"),
                        "a merge of the token for unknown bytes",
                    ));
                }
                continue;
            };
            buffer.clear();
            buffer.extend_from_slice(a);
            buffer.extend_from_slice(b);
            let Some(&product) = self.by_bytes.get(&buffer[..]) else { continue };
            table.add((left, right), place, product);
            products.push(product);
        }
        if let Some((vocabulary, ids)) = self.as_ranks(&bytes, &products, &table)? {
            let listed = (!has_all).then_some(Listed { bytes, fallback, unknown, merges: table });
            return Ok(Parts { vocabulary, ids, listed, is_core: true });
        }
        let all = self.tokens.iter().map(|(&id, bytes)| (bytes.to_vec(), id)).collect();
        let vocabulary = Vocabulary::build(all)?;
        let listed = Some(Listed { bytes, fallback, unknown, merges: table });
        Ok(Parts { vocabulary, ids: None, listed, is_core: false })
    }

    /// Returns a vocabulary whose ranks give the same ids as the list; `None` if no ranks do.
    ///
    /// The vocabulary encodes pieces whose bytes are tokens, and has no tokens with other bytes.
    fn as_ranks(
        &self,
        bytes: &[Option<u32>],
        products: &[u32],
        table: &PairTable,
    ) -> Result<Option<(Vocabulary, Option<Ids>)>> {
        let mut order: Vec<u32> = bytes.iter().copied().flatten().collect();
        let has_bytes =
            |id: &u32| self.tokens[id].iter().all(|&byte| bytes[usize::from(byte)].is_some());
        let mut placed: FastMap<u32, ()> = order.iter().map(|&id| (id, ())).collect();
        let first_byte_tokens = order.len();
        let products = products.iter().filter(|id| has_bytes(id));
        order.extend(products.filter(|&&id| placed.insert(id, ()).is_none()));
        if self.ignore {
            // Whole pieces are looked up among all tokens.
            let rest = self.tokens.keys().copied().filter(|id| !placed.contains_key(id));
            let mut rest: Vec<u32> = rest.filter(has_bytes).collect();
            rest.sort_unstable();
            order.extend(rest);
        }
        if order.is_empty() {
            return Ok(None);
        }
        // The positions of single bytes in the order do not matter.
        let by_id = order[first_byte_tokens..].is_sorted();
        let core_id = |place: u32, id: u32| if by_id { id } else { place };
        let build = |order: &[u32]| {
            let tokens = (0..).zip(order);
            Vocabulary::build(
                tokens
                    .map(|(place, &id)| (self.tokens[&id].to_vec(), core_id(place, id)))
                    .collect(),
            )
        };
        let mut vocabulary = build(&order)?;
        let mut dropped = Vec::new();
        if !self.ignore && !vocabulary.all_reachable() {
            // The list never produces these tokens, but looking up a whole piece would find them.
            let is_kept = |&id: &u32| {
                let rank = vocabulary.rank(self.tokens[&id]);
                rank.is_some_and(|rank| vocabulary.is_reachable(rank))
            };
            let (kept, lost) = order.iter().partition(|id| is_kept(id));
            (order, dropped) = (kept, lost);
            vocabulary = build(&order)?;
        }
        let id_of_core: FastMap<u32, u32> =
            (0..).zip(&order).map(|(place, &id)| (core_id(place, id), id)).collect();
        if !self.gives_same_ids(&vocabulary, &id_of_core, table, &dropped) {
            return Ok(None);
        }
        let ids = (!by_id).then(|| Ids {
            core_of: (0..).zip(&order).map(|(place, &id)| (id, place)).collect(),
            id_of: order,
        });
        Ok(Some((vocabulary, ids)))
    }

    /// Returns true if the list has the pairs of the vocabulary, in the same order, and the other
    /// pairs of the list can never become neighbors.
    fn gives_same_ids(
        &self,
        vocabulary: &Vocabulary,
        id_of_core: &FastMap<u32, u32>,
        table: &PairTable,
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
            let listed = table.get((id(left), id(right)));
            match listed {
                Some((place, product)) if product == id(rank) && last < Some(place) => {
                    last = Some(place);
                }
                _ => return false,
            }
        }
        dropped.iter().all(|lost| {
            // The last merge of the bytes of this token must not be in the list.
            let parts = merge_alone(vocabulary, self.tokens[lost]).unwrap_or_default();
            let is_listed =
                |left, right| table.get((id_of_core[left], id_of_core[right])).is_some();
            !matches!(&parts[..], [left, right] if is_listed(left, right))
        })
    }
}
