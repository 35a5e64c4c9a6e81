//! Tokens and merges of a file as a vocabulary of the core.
//!
//! A file lists which pairs of tokens merge, and their priority is their place in the list. The
//! core knows no list: there, two parts merge when their bytes are a token, and the priority is
//! the token's. The two say the same when the list holds, for every token that merging makes, the
//! pair that its own bytes merge from last, and the tokens' order is that of those pairs; other
//! pairs of the list then never meet (see `bpe_core::vocabulary`, whose pairs are these).
//!
//! Nearly all files have their tokens in that order. Their merges, as places where each token is cut
//! in two, are handed to the core, which verifies them ([`by_cuts`]). Of other files the core finds
//! the pairs by itself, which are then looked up in the list; where one is missing, the list itself
//! is used ([`General`]).

use std::borrow::Cow;
use std::collections::HashMap;

use bpe_core::Vocabulary;
use bpe_core::audit::merge_alone;
use bpe_core::vocabulary::RankList;

use crate::bytes::{bytes_of, text_of};
use crate::error::{Error, Result};
use crate::listed::{FastMap, Listed, Pair};
use crate::lists::{MergeList, TokenList};

/// What the lists of a file amount to.
pub(crate) struct Built {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) ids: Option<Ids>,
    pub(crate) others: Others,
    /// How many tokens the file has.
    pub(crate) size: usize,
    pub(crate) listed: Option<Listed>,
    pub(crate) merges: Merges,
}

/// Ids of the core that are not those of the file.
#[derive(Debug)]
pub(crate) struct Ids {
    pub(crate) id_of: Vec<u32>,
    pub(crate) core_of: HashMap<u32, u32>,
}

/// Tokens that merging never makes: they stand for no bytes, or are out of its reach.
#[derive(Debug, Default)]
pub(crate) struct Others {
    pub(crate) by_text: HashMap<String, u32>,
    pub(crate) by_id: HashMap<u32, String>,
}

impl Others {
    fn insert(&mut self, text: String, id: u32) {
        self.by_id.insert(id, text.clone());
        self.by_text.insert(text, id);
    }
}

/// The list of merges, for writing.
#[derive(Debug)]
pub(crate) enum Merges {
    /// By token of the core: its rank, and how many bytes the first part has.
    Cuts(Vec<(u32, u32)>),
    /// By ids.
    Pairs(Vec<Pair>),
}

pub(crate) fn build(tokens: TokenList, merges: MergeList, ignore_merges: bool) -> Result<Built> {
    match by_cuts(&tokens, &merges, ignore_merges)? {
        Some(built) => Ok(built),
        None => in_general(&tokens, &merges, ignore_merges),
    }
}

/// The byte values that UTF-8 never has.
fn is_in_utf8(byte: u8) -> bool {
    !matches!(byte, 0xc0 | 0xc1 | 0xf5..)
}

/// None where the order of the merges is not that of the ids of what they make, where the core does
/// not find what they say right, and for everything out of the ordinary.
fn by_cuts(tokens: &TokenList, merges: &MergeList, ignore_merges: bool) -> Result<Option<Built>> {
    if !merges.others.is_empty() || merges.malformed.is_some() {
        return Ok(None);
    }
    let Some(sorted) = sorted(tokens) else { return Ok(None) };
    let Some(mut cuts) = cuts(&sorted, merges) else { return Ok(None) };
    // Whole pieces are looked up among all tokens of the core. If merges are not ignored, it must
    // not have those that no merge makes.
    let mut kept = RankList::with_capacity(sorted.len(), sorted.byte_len())?;
    let mut others = Others::default();
    let mut bytes = [false; 256];
    let mut next = 0;
    for (index, (token, id)) in (0..).zip(sorted.iter()) {
        let first = next;
        while let Some(cut) = cuts.get_mut(next).filter(|cut| cut.0 == index) {
            cut.0 = kept.len() as u32;
            next += 1;
        }
        if let [byte] = *token {
            bytes[usize::from(byte)] = true;
        }
        if token.len() == 1 || next > first || ignore_merges {
            kept.push(token, id)?;
        } else {
            others.insert(text_of(token), id);
        }
    }
    if (0..=255).any(|byte| is_in_utf8(byte) && !bytes[usize::from(byte)]) {
        return Ok(None);
    }
    for (text, id) in &tokens.others {
        others.insert(text.clone(), *id);
    }
    let Some(vocabulary) = Vocabulary::from_cuts(kept, &cuts)? else { return Ok(None) };
    Ok(Some(Built {
        vocabulary,
        ids: None,
        others,
        size: sorted.len() + tokens.others.len(),
        listed: None,
        merges: Merges::Cuts(cuts),
    }))
}

/// The tokens that stand for bytes by ascending id; none where an id comes twice among all tokens,
/// or one of the others.
fn sorted(tokens: &TokenList) -> Option<Cow<'_, RankList>> {
    let list = &tokens.bytes;
    let sorted = if list.ids().is_sorted_by(|a, b| a < b) {
        Cow::Borrowed(list)
    } else {
        Cow::Owned(list.clone().sorted_by_id().ok()?)
    };
    let mut texts: Vec<&str> = tokens.others.iter().map(|(text, _)| text.as_str()).collect();
    let mut ids: Vec<u32> = tokens.others.iter().map(|&(_, id)| id).collect();
    texts.sort_unstable();
    ids.sort_unstable();
    let is_new = |id: &u32| sorted.ids().binary_search(id).is_err();
    let are_distinct = texts.is_sorted_by(|a, b| a < b)
        && ids.is_sorted_by(|a, b| a < b)
        && ids.iter().all(is_new);
    are_distinct.then_some(sorted)
}

/// For each merge the place of the token that it makes, and how many bytes the first part has. None
/// where the places do not ascend, or a pair comes twice.
fn cuts(tokens: &RankList, merges: &MergeList) -> Option<Vec<(u32, u32)>> {
    let mut cuts: Vec<(u32, u32)> = Vec::with_capacity(merges.len());
    // Where those of the current token begin.
    let mut first = 0;
    let mut place = 0;
    for [left, right] in merges.iter() {
        let is_made = |place: usize| {
            let token = tokens.token(place);
            token.len() == left.len() + right.len()
                && token.starts_with(left)
                && token.ends_with(right)
        };
        let cut = left.len() as u32;
        if cuts.is_empty() || !is_made(place) {
            place += usize::from(!cuts.is_empty());
            while place < tokens.len() && !is_made(place) {
                place += 1;
            }
            if place == tokens.len() {
                return None;
            }
            first = cuts.len();
        } else if cuts[first..].iter().any(|other| other.1 == cut) {
            return None;
        }
        cuts.push((place as u32, cut));
    }
    Some(cuts)
}

/// Any lists.
fn in_general(tokens: &TokenList, merges: &MergeList, ignore_merges: bool) -> Result<Built> {
    // Of a token that comes twice the last id counts.
    let mut by_bytes: FastMap<&[u8], u32> = FastMap::default();
    by_bytes.reserve(tokens.bytes.len());
    by_bytes.extend(tokens.bytes.iter());
    let by_text: HashMap<&str, u32> =
        tokens.others.iter().map(|(text, id)| (text.as_str(), *id)).collect();
    let pairs = pairs(&by_bytes, &by_text, merges)?;
    check_ids(&by_bytes, &by_text)?;

    let bytes_of_id: FastMap<u32, &[u8]> =
        by_bytes.iter().map(|(&bytes, &id)| (id, bytes)).collect();
    let general = General { by_bytes, tokens: bytes_of_id, merges: &pairs, ignore: ignore_merges };
    let (vocabulary, ids, listed) = general.build()?;
    let mut others = Others::default();
    by_text.iter().for_each(|(&text, &id)| others.insert(text.to_owned(), id));
    // What merging must not see is looked up like the others.
    for (&id, bytes) in &general.tokens {
        let core = ids.as_ref().map_or(Some(id), |ids: &Ids| ids.core_of.get(&id).copied());
        if core.and_then(|core| vocabulary.rank_of_id(core)).is_none() {
            others.insert(text_of(bytes), id);
        }
    }
    let size = general.tokens.len() + by_text.len();
    Ok(Built { vocabulary, ids, others, size, listed, merges: Merges::Pairs(pairs) })
}

/// The pairs by ids.
fn pairs(
    by_bytes: &FastMap<&[u8], u32>,
    by_text: &HashMap<&str, u32>,
    merges: &MergeList,
) -> Result<Vec<Pair>> {
    let unknown = |place: usize, token: &str| {
        Error::Invalid(format!("model.merges[{place}]: Token `{token}` out of vocabulary"))
    };
    let malformed = merges.malformed.as_ref().map(|(place, line)| (*place, line));
    let mut pairs = Vec::with_capacity(merges.len());
    let mut others = merges.others.iter().peekable();
    for (place, parts) in merges.iter().enumerate() {
        if let Some((place, line)) = malformed.filter(|malformed| malformed.0 == place) {
            return Err(not_two_tokens(place, line));
        }
        let [left, right] = if let Some((_, texts)) = others.next_if(|other| other.0 == place) {
            let id = |text: &String| match bytes_of(text) {
                Some(bytes) if !bytes.is_empty() => by_bytes.get(&bytes[..]).copied(),
                _ => by_text.get(text.as_str()).copied(),
            };
            texts.each_ref().map(|text| id(text).ok_or_else(|| unknown(place, text)))
        } else {
            parts.map(|part| {
                by_bytes.get(part).copied().ok_or_else(|| unknown(place, &text_of(part)))
            })
        };
        pairs.push((left?, right?));
    }
    match malformed {
        Some((place, line)) => Err(not_two_tokens(place, line)),
        None => Ok(pairs),
    }
}

fn not_two_tokens(place: usize, line: &str) -> Error {
    Error::Invalid(format!(
        "model.merges[{place}]: {line:?} is not two tokens with a space between them"
    ))
}

/// Refuses two tokens with one id.
fn check_ids(by_bytes: &FastMap<&[u8], u32>, by_text: &HashMap<&str, u32>) -> Result<()> {
    let of_bytes = by_bytes.iter().map(|(&bytes, &id)| (id, Cow::Owned(text_of(bytes))));
    let of_texts = by_text.iter().map(|(&text, &id)| (id, Cow::Borrowed(text)));
    let mut all: Vec<(u32, Cow<'_, str>)> = of_bytes.chain(of_texts).collect();
    all.sort_unstable();
    match all.array_windows().find(|[a, b]| a.0 == b.0) {
        Some([a, b]) => Err(Error::unsupported(
            "model.vocab",
            format!("one id, {}, for two tokens, {:?} and {:?},", a.0, a.1, b.1),
        )),
        None => Ok(()),
    }
}

/// Lists of which nothing is taken for granted.
struct General<'a> {
    by_bytes: FastMap<&'a [u8], u32>,
    tokens: FastMap<u32, &'a [u8]>,
    merges: &'a [Pair],
    ignore: bool,
}

type Parts = (Vocabulary, Option<Ids>, Option<Listed>);

impl General<'_> {
    fn build(&self) -> Result<Parts> {
        let bytes: Vec<Option<u32>> =
            (0..=255).map(|byte| self.by_bytes.get(&[byte][..]).copied()).collect();
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
            let Some(&product) = self.by_bytes.get(&buffer[..]) else {
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
        let all = self.tokens.iter().map(|(&id, bytes)| (bytes.to_vec(), id)).collect();
        let bytes = bytes.iter().map(|id| id.unwrap_or(u32::MAX)).collect();
        Ok((Vocabulary::build(all)?, None, Some(Listed { bytes, pairs })))
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
                tokens
                    .map(|(place, &id)| (self.tokens[&id].to_vec(), core_id(place, id)))
                    .collect(),
            )
        };
        let mut vocabulary = build(&order)?;
        let mut dropped = Vec::new();
        if !self.ignore && !vocabulary.all_reachable() {
            // The list never makes these; as a whole piece they would still be found.
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
            let parts = merge_alone(vocabulary, self.tokens[lost]).unwrap_or_default();
            let is_listed =
                |left, right| pairs.contains_key(&(id_of_core[left], id_of_core[right]));
            !matches!(&parts[..], [left, right] if is_listed(left, right))
        })
    }
}
