//! Vocabularies over characters, as converted from SentencePiece: merging starts from characters,
//! and a character that is not a token becomes a token for each of its bytes, or the unknown token.
//!
//! The core merges bytes. So the lists get a token for each byte, and merges that first assemble
//! every character ([`in_bytes`]). Characters that are not tokens never reach the core: text is cut
//! around them.
//!
//! All of this takes texts with spaces and marks [swapped](crate::bytes::swap).
//!
//! Merging a whole text would be slow. The result of a merge is a token, so no merge crosses two
//! characters that are side by side in no token: text is cut there as well ([`Characters::cuts`]).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bpe_core::Vocabulary;
use bpe_core::ablation::Mechanism;
use bpe_core::memory::{filled, push, push_text, reserve_text, with_capacity};
use bpe_core::split::Piece;
use bpe_core::vocabulary::RankList;
use foldhash::fast::FixedState;

use crate::build::{Built, Header, Ids as BuiltIds, Merges, Others, byte_name};
use crate::bytes::{MARK, Spelling, is_in_utf8, swap, swapped};
use crate::error::{Error, Result};
use crate::merge_list::{Pair, Unknown};
use crate::token_lists::{MergeTexts, TokenList, TokenTexts};

/// The lists of a file, in bytes.
pub(crate) struct InBytes {
    pub(crate) tokens: TokenList,
    pub(crate) merges: Vec<Pair>,
    /// The number of merges at the start of the list that assemble characters.
    pub(crate) assembling: usize,
    /// The first id of the tokens that the file does not have. No text becomes one of them.
    pub(crate) first_hidden: u32,
    /// The number of those.
    pub(crate) hidden: usize,
    pub(crate) characters: Characters,
}

type Ids<'a> = HashMap<&'a str, u32, FixedState>;

/// A byte, a beginning of a character, or a character, as a token.
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

/// All bytes, and the characters with these ids, [swapped](swap), each after its beginnings. Those
/// that the file does not have as tokens get ids from `first_hidden` on.
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
        push(&mut units, Unit { utf8: [byte, 0, 0, 0], length: 1, id })?;
    }
    let mut beginnings: HashSet<[u8; 4], FixedState> = HashSet::default();
    for &(character, id) in characters.iter().filter(|(character, _)| !character.is_ascii()) {
        let mut whole = [0; 4];
        let length = character.encode_utf8(&mut whole).len();
        for end in 2..length {
            let mut utf8 = [0; 4];
            utf8[..end].copy_from_slice(&whole[..end]);
            if beginnings.insert(utf8) {
                push(&mut units, Unit { utf8, length: end, id: hide()? })?;
            }
        }
        push(&mut units, Unit { utf8: whole, length, id })?;
    }
    Ok(units)
}

/// Rewrites the lists of a file, whose tokens are texts, in bytes.
pub(crate) fn in_bytes(
    tokens: &TokenTexts,
    merges: &MergeTexts,
    header: &Header,
) -> Result<InBytes> {
    // If a token occurs twice, the last id counts.
    let ids: Ids<'_> = tokens.iter().collect();
    merges.check_lines()?;
    let mut single: Vec<(char, u32)> = Vec::new();
    for (text, &id) in &ids {
        if let Some(character) = only_character(text) {
            push(&mut single, (swap(character), id))?;
        }
    }
    let mut characters = Characters::new(&single, header, |name| ids.get(name).copied())?;
    let mut list = TokenList::default();
    let mut pairs: Vec<Pair> = Vec::new();
    let largest = ids.values().copied().max().unwrap_or(0);
    let first_hidden = largest.saturating_add(1);
    let mut id_of: HashMap<[u8; 4], u32, FixedState> = HashMap::default();
    for unit in units(&single, first_hidden)? {
        id_of.insert(unit.utf8, unit.id);
        if unit.id >= first_hidden {
            list.bytes.push(unit.bytes(), unit.id)?;
        }
        if let [.., last] = *unit.bytes()
            && unit.length > 1
        {
            let mut left = unit.utf8;
            left[unit.length - 1] = 0;
            push(&mut pairs, (id_of[&left], id_of[&[last, 0, 0, 0]]))?;
        }
    }
    let hidden = list.bytes.len();
    for (text, &id) in &ids {
        match *text {
            "" => push(&mut list.others, (String::new(), id))?,
            _ => list.bytes.push(swapped(text)?.as_bytes(), id)?,
        }
    }
    let assembling = pairs.len();
    let mut joined: Vec<[char; 2]> = Vec::new();
    // Text is cut around unknown characters.
    let made: HashSet<u32, FixedState> = characters.made().collect();
    for (place, parts) in merges.iter().enumerate() {
        let mut pair = [0; 2];
        for (id, part) in pair.iter_mut().zip(parts) {
            *id = *ids.get(part).ok_or_else(|| {
                let reason = format!("model.merges[{place}]: Token `{part}` out of vocabulary");
                Error::Invalid(reason)
            })?;
            if made.contains(id) {
                return Err(Error::unsupported(
                    format!("model.merges[{place}]"),
                    "a merge of a token for unknown characters or bytes",
                ));
            }
        }
        let Some(border) = border(parts) else {
            return Err(Error::unsupported(
                format!("model.merges[{place}]"),
                "a merge of an empty token",
            ));
        };
        if border.iter().all(|&character| characters.is_known(character)) {
            push(&mut joined, border)?;
        }
        push(&mut pairs, (pair[0], pair[1]))?;
    }
    characters.joined = Joined::new(joined)?;
    Ok(InBytes { tokens: list, merges: pairs, assembling, first_hidden, hidden, characters })
}

/// [`in_bytes`], and what is built of it, if the list has the merges of each token together and the
/// core verifies them: without a look-up for each. Returns also the first id of the tokens that the
/// file does not have. `None` if another way must decide.
pub(crate) fn by_cuts(
    tokens: &TokenTexts,
    merges: &MergeTexts,
    header: &Header,
) -> Result<Option<(Built, Characters, u32)>> {
    let are_sorted = tokens.ids().is_sorted_by(|a, b| a < b);
    if !are_sorted || merges.is_malformed() || !Mechanism::ListedSplits.is_used() {
        return Ok(None);
    }
    let Some(products) = products(tokens, merges)? else { return Ok(None) };
    let mut single: Vec<(char, u32)> = Vec::new();
    for (text, id) in tokens.iter() {
        if let Some(character) = only_character(text) {
            push(&mut single, (swap(character), id))?;
        }
    }
    let first_hidden = tokens.ids().last().map_or(0, |largest| largest.saturating_add(1));
    let units = units(&single, first_hidden)?;
    let most = units.len() + tokens.ids().len();
    let mut list = RankList::with_capacity(most, 4 * units.len() + tokens.byte_len())?;
    let mut id_of: Vec<u32> = with_capacity(most)?;
    let mut cuts: Vec<(u32, u32)> = with_capacity(units.len() + merges.len())?;
    for unit in &units {
        let rank = list.len() as u32;
        list.push(unit.bytes(), rank)?;
        push(&mut id_of, unit.id)?;
        if unit.length > 1 {
            cuts.push((rank, unit.length as u32 - 1));
        }
    }
    let assembling = cuts.len();
    let mut joined: Vec<[char; 2]> = with_capacity(merges.len())?;
    let mut is_made = filled(false, tokens.ids().len())?;
    let mut bytes = String::new();
    let mut first = assembling;
    for (&product, parts) in products.iter().zip(merges.iter()) {
        if !is_made[product] {
            is_made[product] = true;
            bytes.clear();
            bytes.extend(tokens.get(product).chars().map(swap));
            first = cuts.len();
            list.push(bytes.as_bytes(), list.len() as u32)?;
            push(&mut id_of, tokens.ids()[product])?;
        }
        let cut: usize = parts[0].chars().map(|character| swap(character).len_utf8()).sum();
        let cut = (list.len() as u32 - 1, cut as u32);
        let Some(border) = border(parts).filter(|_| !cuts[first..].contains(&cut)) else {
            return Ok(None);
        };
        cuts.push(cut);
        joined.push(border);
    }
    let Some(vocabulary) = Vocabulary::from_cuts(list, &cuts)? else { return Ok(None) };
    let rank = |text: &str| vocabulary.rank(&Spelling::Spaced.bytes_of(text)?);
    let mut others = Others::default();
    for ((text, id), is_made) in tokens.iter().zip(is_made) {
        if !is_made && only_character(text).is_none() {
            // The last of two equal tokens counts.
            if rank(text).is_some() || !others.insert(text.to_owned(), id) {
                return Ok(None);
            }
        }
    }
    let mut characters =
        Characters::new(&single, header, |name| others.by_text.get(name).copied())?;
    let distinct = characters.known.iter().map(|word| word.count_ones() as usize).sum::<usize>();
    let mut made = header.unk_token.iter().cloned().chain((0..=255).map(byte_name));
    // The core has bytes that are not tokens of the file.
    let are_tokens = joined.iter().flatten().all(|&character| characters.is_known(character));
    if distinct != single.len() || !are_tokens || made.any(|name| rank(&name).is_some()) {
        return Ok(None);
    }
    characters.joined = Joined::new(joined)?;
    cuts.drain(..assembling);
    let built = Built {
        vocabulary,
        ids: Some(BuiltIds { core_of: id_of.iter().copied().zip(0..).collect(), id_of }),
        others,
        size: tokens.ids().len(),
        listed: None,
        is_core: true,
        merges: Merges::Cuts(cuts),
    };
    Ok(Some((built, characters, first_hidden)))
}

/// The place of the token that each merge makes. `None` if the merges of a token are not together,
/// or the tokens in an order that takes too long.
fn products(tokens: &TokenTexts, merges: &MergeTexts) -> Result<Option<Vec<usize>>> {
    let count = tokens.ids().len();
    let mut products = with_capacity(merges.len())?;
    let mut is_made = filled(false, count)?;
    let mut steps = 4 * count;
    let mut place = 0;
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
                    return Ok(None);
                }
                steps -= 1;
                place = (place + 1) % count;
                if is_product(place) {
                    break;
                }
            }
            if is_made[place] {
                return Ok(None);
            }
            is_made[place] = true;
        }
        products.push(place);
    }
    Ok(Some(products))
}

/// The characters where two tokens meet, [swapped](swap); `None` if one is empty.
fn border(parts: [&str; 2]) -> Option<[char; 2]> {
    Some([swap(parts[0].chars().next_back()?), swap(parts[1].chars().next()?)])
}

/// The character of a text of one.
fn only_character(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// The characters of a vocabulary.
#[derive(Debug)]
pub(crate) struct Characters {
    /// A bit for each code point: whether the character is a token.
    known: Vec<u64>,
    joined: Joined,
    /// The tokens that stand for the bytes of other characters.
    bytes: Vec<Option<u32>>,
    unknown: Unknown,
}

/// A part of a text between two cuts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Characters that are tokens, and that may merge.
    Known(Range<usize>),
    /// Characters that are not tokens.
    Unknown(Range<usize>),
}

impl Characters {
    /// `single` has the tokens of one character, [swapped](swap); `id` looks up others by name.
    fn new(
        single: &[(char, u32)],
        header: &Header,
        id: impl Fn(&str) -> Option<u32>,
    ) -> Result<Self> {
        let mut known = filled(0, (char::MAX as usize).div_ceil(64))?;
        for &(character, _) in single {
            let code = character as usize;
            known[code / 64] |= 1 << (code % 64);
        }
        let bytes = header.fallback(&id);
        let unknown = match &header.unk_token {
            None => Unknown::Dropped,
            Some(token) => match id(token) {
                Some(id) => Unknown::Token { id, fused: header.fuse_unk },
                None => Unknown::Fails(token.clone()),
            },
        };
        Ok(Self { known, joined: Joined::new(Vec::new())?, bytes, unknown })
    }

    /// The tokens that characters that are not tokens may become.
    fn made(&self) -> impl Iterator<Item = u32> {
        let has_all =
            (0..=255).zip(&self.bytes).all(|(byte, id)| !is_in_utf8(byte) || id.is_some());
        let unknown = match self.unknown {
            Unknown::Token { id, .. } if !has_all => Some(id),
            _ => None,
        };
        self.bytes.iter().copied().flatten().chain(unknown)
    }

    /// Whether a character that is not a token may become this token.
    pub(crate) fn may_make(&self, id: u32) -> bool {
        self.made().any(|made| made == id)
    }

    fn is_known(&self, character: char) -> bool {
        let code = character as usize;
        self.known[code / 64] >> (code % 64) & 1 != 0
    }

    fn are_known(&self, ascii: &[u8]) -> bool {
        ascii.iter().all(|&byte| self.is_known(byte.into()))
    }

    /// The tokens for the bytes of a character, if all of them are in the vocabulary.
    fn bytes_of(&self, character: char) -> Option<impl Iterator<Item = u32>> {
        let mut utf8 = [0; 4];
        let length = swap(character).encode_utf8(&mut utf8).len();
        let id = |byte: &u8| self.bytes[usize::from(*byte)];
        let has_all = utf8[..length].iter().all(|byte| id(byte).is_some());
        has_all.then(|| utf8.into_iter().take(length).filter_map(move |byte| id(&byte)))
    }

    /// The tokens for the bytes of characters that are not tokens, if each byte has one.
    pub(crate) fn all_bytes(&self) -> Option<Vec<u32>> {
        self.bytes.iter().copied().collect()
    }

    fn is_dropped(&self, character: char) -> bool {
        matches!(self.unknown, Unknown::Dropped)
            && !self.is_known(character)
            && self.bytes_of(character).is_none()
    }

    /// The text without characters that become no token; `None` if it has none of them. The
    /// characters around them merge.
    pub(crate) fn without_dropped(&self, text: &str) -> Result<Option<String>> {
        if !matches!(self.unknown, Unknown::Dropped)
            || !text.chars().any(|character| self.is_dropped(character))
        {
            return Ok(None);
        }
        let mut kept = String::new();
        reserve_text(&mut kept, text.len())?;
        for part in text.split(|character| self.is_dropped(character)) {
            push_text(&mut kept, part)?;
        }
        Ok(Some(kept))
    }

    /// Cuts a text, which must be [without dropped characters](Self::without_dropped), where merging
    /// cannot cross.
    ///
    /// With `in_bytes`, each byte of a character that is not a token is a piece, except for spaces
    /// and marks, which have changed places.
    pub(crate) fn cuts<'a>(&'a self, text: &'a str, in_bytes: bool) -> Cuts<'a> {
        Cuts { characters: self, text, in_bytes, start: 0, read: 0 }
    }

    /// Calls `found` with the parts of a text, like [`Characters::cuts`], until it fails.
    pub(crate) fn each_part(
        &self,
        text: &str,
        mut found: impl FnMut(Cut) -> Result<()>,
    ) -> Result<()> {
        let mut cuts = self.cuts(text, false);
        let mut pieces = [Piece::default(); 2 * BLOCK];
        loop {
            let count = cuts.fill(&mut pieces);
            pieces[..count]
                .iter()
                .try_for_each(|piece| found(Cut::Known(piece.start..piece.end)))?;
            if count == 0 {
                let Some(range) = cuts.unknown() else { return Ok(()) };
                found(Cut::Unknown(range))?;
            }
        }
    }

    /// Calls `found` with the tokens of characters that are not tokens, and the length of the text
    /// of each, in the order of [`Unknown::meet`].
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

    /// Whether a text, not [swapped](swap), can be cut between these two characters without changing
    /// a token.
    pub(crate) fn are_apart(&self, before: char, after: char) -> bool {
        let (before, after) = (swap(before), swap(after));
        match (self.is_known(before), self.is_known(after), &self.unknown) {
            (_, _, Unknown::Dropped) | (false, false, _) => false,
            (true, true, _) => !self.joined.contains(before, after),
            _ => true,
        }
    }
}

/// The parts of a text, from [`Characters::cuts`].
pub(crate) struct Cuts<'a> {
    characters: &'a Characters,
    text: &'a str,
    in_bytes: bool,
    /// The start of the next piece.
    start: usize,
    /// The end of what was read: characters of the next piece.
    read: usize,
}

/// The characters that are read at once.
const BLOCK: usize = 32;

impl Cuts<'_> {
    /// Writes the next pieces, and returns their number: 0 at the end, and before characters that
    /// are not tokens, which [`Cuts::unknown`] takes. There must be room for twice [`BLOCK`].
    ///
    /// Every place is written, and kept if the text is cut there: a branch for each would be one
    /// that no processor predicts.
    #[inline(never)]
    pub(crate) fn fill(&mut self, pieces: &mut [Piece]) -> usize {
        let Self { characters, text, in_bytes, .. } = *self;
        let joined = &characters.joined;
        // A byte of ASCII that is not a token is apart from others.
        let any_byte = in_bytes && characters.is_known(' ');
        let are_pieces = |block: &[u8]| any_byte || characters.are_known(block);
        let (mut start, mut at, mut count) = (self.start, self.read, 0);
        // Without a piece to end, any character will do.
        let mut before = text[start..at].chars().next_back().unwrap_or('\0');
        while at < text.len() && count + 2 * BLOCK <= pieces.len() {
            if let Some(block) = text.as_bytes()[at..].first_chunk::<BLOCK>()
                && before.is_ascii()
                && block.is_ascii()
                && are_pieces(block)
                && Mechanism::Cuts.is_used()
            {
                let mut before_byte = before as u8;
                for (place, &byte) in block.iter().enumerate() {
                    let end = at + place;
                    let is_apart = (start < end) & joined.is_apart(before_byte, byte);
                    pieces[count] = Piece { start, end };
                    count += usize::from(is_apart);
                    start = if is_apart { end } else { start };
                    before_byte = byte;
                }
                before = before_byte.into();
                at += BLOCK;
                continue;
            }
            for character in text[at..].chars().take(BLOCK) {
                if !characters.is_known(character) {
                    pieces[count] = Piece { start, end: at };
                    count += usize::from(start < at);
                    start = at;
                    if !in_bytes || matches!(character, ' ' | MARK) {
                        (self.start, self.read) = (at, at);
                        return count;
                    }
                    for _ in 0..character.len_utf8() {
                        pieces[count] = Piece { start, end: start + 1 };
                        count += 1;
                        start += 1;
                    }
                    at = start;
                    // There may be no room for more.
                    break;
                }
                let is_apart = (start < at) & !joined.contains(before, character);
                pieces[count] = Piece { start, end: at };
                count += usize::from(is_apart);
                start = if is_apart { at } else { start };
                before = character;
                at += character.len_utf8();
            }
        }
        if at == text.len() && start < at {
            pieces[count] = Piece { start, end: at };
            count += 1;
            start = at;
        }
        (self.start, self.read) = (start, at);
        count
    }

    /// The characters at the place where [`Cuts::fill`] stopped that are not tokens.
    pub(crate) fn unknown(&mut self) -> Option<Range<usize>> {
        let (start, rest) = (self.start, &self.text[self.start..]);
        let is_known = |character| self.characters.is_known(character);
        self.start += rest.find(is_known).unwrap_or(rest.len());
        self.read = self.start;
        (start < self.start).then_some(start..self.start)
    }
}

/// Pairs of characters that are side by side in a token. It may contain others that are not ASCII,
/// which only makes pieces longer.
#[derive(Debug)]
struct Joined {
    /// For each two ASCII characters, 1 if they are not.
    apart: Box<[[u8; 128]; 128]>,
    /// A bit for each hash of another pair.
    others: Vec<u64>,
    /// 64 minus the bits of a hash.
    shift: u32,
}

/// Bits of the table for each pair: what remains of text that is cut nowhere else.
const SPARSE: usize = 64;

impl Joined {
    /// Makes the table of pairs that may repeat.
    fn new(mut pairs: Vec<[char; 2]>) -> Result<Self> {
        let mut apart = Box::new([[1; 128]; 128]);
        let is_ascii = |pair: &[char; 2]| pair.iter().all(char::is_ascii);
        pairs.iter().filter(|pair| is_ascii(pair)).for_each(|pair| {
            apart[pair[0] as usize][pair[1] as usize] = 0;
        });
        pairs.retain(|pair| !is_ascii(pair));
        pairs.sort_unstable();
        pairs.dedup();
        let bits = (pairs.len() * SPARSE).next_power_of_two().ilog2().clamp(6, 32);
        let mut joined =
            Self { apart, others: filled(0, 1 << (bits - 6))?, shift: u64::BITS - bits };
        for [before, after] in pairs {
            let (word, bit) = joined.place(before, after);
            joined.others[word] |= 1 << bit;
        }
        Ok(joined)
    }

    /// The word of a pair that is not ASCII, and the bit in it.
    #[inline(always)]
    fn place(&self, before: char, after: char) -> (usize, u32) {
        let pair = u64::from(before as u32) << 32 | u64::from(after as u32);
        let hash = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        ((hash >> 6) as usize, hash as u32 & 63)
    }

    #[inline(always)]
    fn contains(&self, before: char, after: char) -> bool {
        if !Mechanism::Cuts.is_used() {
            return true;
        }
        if before.is_ascii() && after.is_ascii() {
            return !self.is_apart(before as u8, after as u8);
        }
        let (word, bit) = self.place(before, after);
        self.others[word] >> bit & 1 != 0
    }

    /// [`Joined::contains`] is false for two ASCII characters.
    #[inline(always)]
    fn is_apart(&self, before: u8, after: u8) -> bool {
        self.apart[usize::from(before & 127)][usize::from(after & 127)] != 0
    }
}
