//! Vocabularies over characters, as converted from SentencePiece: merging starts from characters,
//! and a character that is not a token becomes a token for each of its bytes, or the unknown token.
//!
//! The core merges bytes. So the lists get a token for each byte, and merges that first assemble
//! every character ([`in_bytes`]). Characters that are not tokens never reach the core: text is cut
//! around them.
//!
//! All functions take texts with spaces and marks [swapped](crate::components::bytes::swap).
//!
//! Merging a whole text would be slow. The result of a merge is a token, so no merge crosses two
//! characters that are adjacent in no token: text is also cut between such characters ([`Cutter`]).

use std::collections::{HashMap, HashSet};

use crate::Vocabulary;
use crate::ablation::Mechanism;
use crate::vocabulary::RankList;
use foldhash::fast::FixedState;

use super::build::{Built, Ids, Merges, Others, TokenIds, pairs, products};
use super::cuts::Cutter;
use super::header::{Header, byte_name};
use super::pair_table::{Pair, Unknown};
use super::token_lists::{MergeList, TokenList};
use crate::components::bytes::{Spelling, is_in_utf8, swap, swapped};
use crate::error::{Error, Result};

/// The lists of a file, with tokens as bytes.
pub(crate) struct InBytes<'a> {
    pub(crate) tokens: RankList,
    /// Token texts that represent no bytes: the empty token.
    pub(crate) others: Vec<(&'a str, u32)>,
    pub(crate) merges: Vec<Pair>,
    /// Number of merges at the start of the list that assemble characters.
    pub(crate) assembling: usize,
    /// First id of the tokens that are not in the file. Text never encodes to these tokens.
    pub(crate) first_hidden: u32,
    /// Number of tokens that the file lacks.
    pub(crate) hidden: usize,
    pub(crate) characters: Characters,
}

/// A token that is a byte, a prefix of a character, or a character.
struct Unit {
    utf8: [u8; 4],
    length: usize,
    id: u32,
}

impl Unit {
    fn bytes(&self) -> &[u8] {
        &self.utf8[..self.length]
    }
}

/// Returns all bytes, and the characters with these ids, [swapped](swap), each after its prefixes.
/// Tokens that are not in the file get ids from `first_hidden`.
fn units(characters: &[(char, u32)], first_hidden: u32) -> Result<Vec<Unit>> {
    let mut hidden = first_hidden..u32::MAX;
    let mut hide = || {
        let error = || Error::unsupported("model.vocab", "ids near the largest possible");
        hidden.next().ok_or_else(error)
    };
    let mut units = Vec::new();
    let mut ids = [None; 128];
    for &(character, id) in characters.iter().filter(|(character, _)| character.is_ascii()) {
        ids[character as usize] = Some(id);
    }
    for byte in 0..=255u8 {
        let id = match ids.get(usize::from(byte)).copied().flatten() {
            Some(id) => id,
            None => hide()?,
        };
        units.push(Unit { utf8: [byte, 0, 0, 0], length: 1, id });
    }
    let mut beginnings: HashSet<[u8; 4], FixedState> = HashSet::default();
    for &(character, id) in characters.iter().filter(|(character, _)| !character.is_ascii()) {
        let mut whole = [0; 4];
        let length = character.encode_utf8(&mut whole).len();
        for end in 2..length {
            let mut utf8 = [0; 4];
            utf8[..end].copy_from_slice(&whole[..end]);
            if beginnings.insert(utf8) {
                units.push(Unit { utf8, length: end, id: hide()? });
            }
        }
        units.push(Unit { utf8: whole, length, id });
    }
    Ok(units)
}

/// Converts the tokens in the lists of a file from text to bytes.
pub(crate) fn in_bytes<'a>(
    list: &'a TokenList,
    merges: &MergeList,
    header: &Header,
) -> Result<InBytes<'a>> {
    let ids: TokenIds<'_> = list.iter().collect();
    let pairs_of_file = pairs(&ids, merges)?;
    let mut single: Vec<(char, u32)> = Vec::new();
    for (text, &id) in &ids {
        if let Some(character) = only_character(text) {
            single.push((swap(character), id));
        }
    }
    let mut characters = Characters::new(&single, header, |name| ids.get(name).copied());
    let mut tokens = RankList::default();
    let mut merges_in_bytes: Vec<Pair> = Vec::new();
    let largest = ids.values().copied().max().unwrap_or(0);
    let first_hidden = largest.saturating_add(1);
    let mut id_of: HashMap<[u8; 4], u32, FixedState> = HashMap::default();
    for unit in units(&single, first_hidden)? {
        id_of.insert(unit.utf8, unit.id);
        if unit.id >= first_hidden {
            tokens.push(unit.bytes(), unit.id);
        }
        if let [.., last] = *unit.bytes()
            && unit.length > 1
        {
            let mut left = unit.utf8;
            left[unit.length - 1] = 0;
            merges_in_bytes.push((id_of[&left], id_of[&[last, 0, 0, 0]]));
        }
    }
    let hidden = tokens.len();
    let mut others = Vec::new();
    for (&text, &id) in &ids {
        match text {
            "" => others.push((text, id)),
            _ => tokens.push(swapped(text)?.as_bytes(), id),
        }
    }
    let assembling = merges_in_bytes.len();
    let joined = joined(merges, &pairs_of_file, &characters)?;
    characters.cutter.join(joined);
    merges_in_bytes.extend(pairs_of_file);
    let merges = merges_in_bytes;
    Ok(InBytes { tokens, others, merges, assembling, first_hidden, hidden, characters })
}

/// Returns, for each merge, the last character of its first token and the first character of its
/// second token. Fails for merges that never apply, because text is cut around unknown characters.
fn joined(merges: &MergeList, pairs: &[Pair], characters: &Characters) -> Result<Vec<[char; 2]>> {
    let mut joined: Vec<[char; 2]> = Vec::new();
    let made: HashSet<u32, FixedState> = characters.made().collect();
    for ((place, parts), &(left, right)) in merges.iter().enumerate().zip(pairs) {
        let refused = |what| Error::unsupported(format!("model.merges[{place}]"), what);
        if made.contains(&left) || made.contains(&right) {
            return Err(refused("a merge of a token for unknown characters or bytes"));
        }
        let boundary = boundary(parts).ok_or_else(|| refused("a merge of an empty token"))?;
        if boundary.iter().all(|&character| characters.cutter.is_known(character)) {
            joined.push(boundary);
        }
    }
    Ok(joined)
}

/// Returns [`in_bytes`] and the built vocabulary, without a look-up per merge, if the merges of
/// each token are adjacent in the list and the core verifies them. Also returns the first id of the
/// tokens that are not in the file. `None` if only a slower build can decide.
pub(crate) fn by_cuts(
    tokens: &TokenList,
    merges: &MergeList,
    header: &Header,
) -> Result<Option<(Built, Characters, u32)>> {
    if !tokens.are_sorted() || merges.check_lines().is_err() || !Mechanism::ListedSplits.is_used() {
        return Ok(None);
    }
    let Some(products) = products(tokens, merges) else { return Ok(None) };
    let mut single: Vec<(char, u32)> = Vec::new();
    for (text, id) in tokens.iter() {
        if let Some(character) = only_character(text) {
            single.push((swap(character), id));
        }
    }
    let first_hidden = tokens.ids().last().map_or(0, |largest| largest.saturating_add(1));
    let units = units(&single, first_hidden)?;
    let most = units.len() + tokens.ids().len();
    let mut list = RankList::with_capacity(most, 4 * units.len() + tokens.byte_len());
    let mut id_of: Vec<u32> = Vec::with_capacity(most);
    let mut cuts: Vec<(u32, u32)> = Vec::with_capacity(units.len() + merges.len());
    for unit in &units {
        let rank = list.len() as u32;
        list.push(unit.bytes(), rank);
        id_of.push(unit.id);
        if unit.length > 1 {
            cuts.push((rank, unit.length as u32 - 1));
        }
    }
    let assembling = cuts.len();
    let mut joined: Vec<[char; 2]> = Vec::with_capacity(merges.len());
    let mut is_made = vec![false; tokens.ids().len()];
    let mut bytes = String::new();
    for (&product, parts) in products.iter().zip(merges.iter()) {
        if !is_made[product] {
            is_made[product] = true;
            bytes.clear();
            bytes.extend(tokens.get(product).chars().map(swap));
            list.push(bytes.as_bytes(), list.len() as u32);
            id_of.push(tokens.ids()[product]);
        }
        let cut: usize = parts[0].chars().map(|character| swap(character).len_utf8()).sum();
        let cut = (list.len() as u32 - 1, cut as u32);
        let Some(boundary) = boundary(parts) else { return Ok(None) };
        cuts.push(cut);
        joined.push(boundary);
    }
    let Some(vocabulary) = Vocabulary::from_cuts(list, &cuts)? else { return Ok(None) };
    let rank = |text: &str| vocabulary.rank(&Spelling::Spaced.bytes_of(text)?);
    let mut others = Others::default();
    for ((text, id), is_made) in tokens.iter().zip(is_made) {
        if !is_made && only_character(text).is_none() {
            // Of two equal tokens, the last counts.
            if rank(text).is_some() || !others.insert(text.to_owned(), id) {
                return Ok(None);
            }
        }
    }
    let mut characters = Characters::new(&single, header, |name| others.by_text.get(name).copied());
    let mut made = header.unk_token.iter().cloned().chain((0..=255).map(byte_name));
    // The core has tokens for bytes that the file lacks.
    let are_tokens =
        joined.iter().flatten().all(|&character| characters.cutter.is_known(character));
    if characters.cutter.count() != single.len()
        || !are_tokens
        || made.any(|name| rank(&name).is_some())
    {
        return Ok(None);
    }
    characters.cutter.join(joined);
    cuts.drain(..assembling);
    let built = Built {
        vocabulary,
        ids: Some(Ids { core_of: id_of.iter().copied().zip(0..).collect(), id_of }),
        others,
        size: tokens.ids().len(),
        listed: None,
        is_core: true,
        merges: Merges::Cuts(cuts),
    };
    Ok(Some((built, characters, first_hidden)))
}

/// Returns the adjacent characters at the ends of two tokens, [swapped](swap); `None` if one token
/// is empty.
fn boundary(parts: [&str; 2]) -> Option<[char; 2]> {
    Some([swap(parts[0].chars().next_back()?), swap(parts[1].chars().next()?)])
}

fn only_character(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// The characters of a vocabulary, and the treatment of all other characters.
#[derive(Debug)]
pub(crate) struct Characters {
    cutter: Cutter,
    /// Byte tokens for characters outside the vocabulary.
    bytes: Vec<Option<u32>>,
    unknown: Unknown,
}

impl Characters {
    /// Creates the table; `single` has the one-character tokens, [swapped](swap), and `id` looks up
    /// other tokens by name.
    fn new(single: &[(char, u32)], header: &Header, id: impl Fn(&str) -> Option<u32>) -> Self {
        let cutter = Cutter::new(single.iter().map(|&(character, _)| character));
        Self { cutter, bytes: header.fallback(&id), unknown: Unknown::new(header, &id) }
    }

    /// Returns the tokens to which characters outside the vocabulary may encode.
    fn made(&self) -> impl Iterator<Item = u32> {
        let has_all =
            (0..=255).zip(&self.bytes).all(|(byte, id)| !is_in_utf8(byte) || id.is_some());
        let unknown = match self.unknown {
            Unknown::Token { id, .. } if !has_all => Some(id),
            _ => None,
        };
        self.bytes.iter().copied().flatten().chain(unknown)
    }

    /// Whether a character outside the vocabulary may become this token.
    pub(crate) fn may_make(&self, id: u32) -> bool {
        self.made().any(|made| made == id)
    }

    /// Returns the byte tokens of a character, if the vocabulary has all of them.
    fn bytes_of(&self, character: char) -> Option<impl Iterator<Item = u32>> {
        let mut utf8 = [0; 4];
        let length = swap(character).encode_utf8(&mut utf8).len();
        let id = |byte: &u8| self.bytes[usize::from(*byte)];
        let has_all = utf8[..length].iter().all(|byte| id(byte).is_some());
        has_all.then(|| utf8.into_iter().take(length).filter_map(move |byte| id(&byte)))
    }

    /// Returns the tokens for the bytes of characters outside the vocabulary, if each byte has a
    /// token.
    pub(crate) fn all_bytes(&self) -> Option<Vec<u32>> {
        self.bytes.iter().copied().collect()
    }

    fn is_dropped(&self, character: char) -> bool {
        matches!(self.unknown, Unknown::Dropped)
            && !self.cutter.is_known(character)
            && self.bytes_of(character).is_none()
    }

    /// Returns the text without characters that are dropped; `None` if there are no such
    /// characters. The characters around a dropped character can merge.
    pub(crate) fn without_dropped(&self, text: &str) -> Option<String> {
        if !matches!(self.unknown, Unknown::Dropped)
            || !text.chars().any(|character| self.is_dropped(character))
        {
            return None;
        }
        let mut kept = String::new();
        kept.reserve(text.len());
        for part in text.split(|character| self.is_dropped(character)) {
            kept.push_str(part);
        }
        Some(kept)
    }

    /// Returns the cutter, for texts [without dropped characters](Self::without_dropped).
    pub(crate) fn cutter(&self) -> &Cutter {
        &self.cutter
    }

    /// Calls `found` with the tokens of characters outside the vocabulary, and the length of each
    /// token's text, in the order of [`Unknown::meet`].
    pub(crate) fn each_unknown(
        &self,
        text: &str,
        mut found: impl FnMut(u32, usize) -> Result<()>,
    ) -> Result<()> {
        let mut waiting = None;
        for character in text.chars() {
            if let Some(mut bytes) = self.bytes_of(character) {
                bytes.try_for_each(|id| found(id, 1))?;
                continue;
            }
            let character = swap(character);
            let name = || format!("character that is not a token, {character:?}");
            if let Some((id, length)) =
                self.unknown.meet(&mut waiting, character.len_utf8(), name)?
            {
                found(id, length)?;
            }
        }
        waiting.map_or(Ok(()), |(id, length)| found(id, length))
    }

    /// Whether a text in its original form, not [swapped](swap), can be cut between these two
    /// characters without changing a token.
    pub(crate) fn are_apart(&self, before: char, after: char) -> bool {
        let (before, after) = (swap(before), swap(after));
        !matches!(self.unknown, Unknown::Dropped) && self.cutter.are_apart(before, after)
    }
}
