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

use bpe_core::ablation::Mechanism;
use bpe_core::memory::{filled, push, push_text, reserve_text};
use foldhash::fast::FixedState;

use crate::build::Header;
use crate::bytes::{is_in_utf8, swap, swapped};
use crate::error::{Error, Result};
use crate::merge_list::{Pair, Unknown};
use crate::token_lists::{MergeList, TokenList};

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

type Ids = HashMap<String, u32, FixedState>;

/// Rewrites the lists of a file, whose tokens are texts, in bytes.
pub(crate) fn in_bytes(tokens: &TokenList, merges: &MergeList, header: &Header) -> Result<InBytes> {
    // If a token occurs twice, the last id counts.
    let ids: Ids = tokens.texts().collect();
    merges.check_lines()?;
    let mut characters = Characters::new(&ids, header)?;
    let mut list = TokenList::default();
    let mut pairs: Vec<Pair> = Vec::new();
    let largest = ids.values().copied().max().unwrap_or(0);
    let first_hidden = largest.saturating_add(1);
    let mut hidden = first_hidden..u32::MAX;
    let mut hide = |list: &mut TokenList, bytes: &[u8]| match hidden.next() {
        Some(id) => {
            list.bytes.push(bytes, id)?;
            Ok(id)
        }
        None => Err(Error::unsupported("model.vocab", "ids near the largest possible")),
    };
    let mut id_of_byte = [0; 256];
    for byte in 0..=255u8 {
        let name = byte.is_ascii().then(|| swap(byte.into()).to_string());
        id_of_byte[usize::from(byte)] = match name.and_then(|name| ids.get(&name)) {
            Some(&id) => id,
            None => hide(&mut list, &[byte])?,
        };
    }
    let mut beginnings: HashMap<[u8; 4], u32, FixedState> = HashMap::default();
    for text in ids.keys().filter(|text| is_one_character(text)) {
        let Some(character) = text.chars().next().map(swap) else { continue };
        let mut utf8 = [0; 4];
        let length = character.encode_utf8(&mut utf8).len();
        let mut left = id_of_byte[usize::from(utf8[0])];
        for end in 2..=length {
            let pair = (left, id_of_byte[usize::from(utf8[end - 1])]);
            if end == length {
                push(&mut pairs, pair)?;
                break;
            }
            let mut beginning = [0; 4];
            beginning[..end].copy_from_slice(&utf8[..end]);
            left = match beginnings.get(&beginning) {
                Some(&id) => id,
                None => {
                    push(&mut pairs, pair)?;
                    let id = hide(&mut list, &utf8[..end])?;
                    beginnings.insert(beginning, id);
                    id
                }
            };
        }
    }
    let hidden = list.bytes.len();
    for (text, &id) in &ids {
        match text.as_str() {
            "" => push(&mut list.others, (String::new(), id))?,
            _ => list.bytes.push(swapped(text)?.as_bytes(), id)?,
        }
    }
    let assembling = pairs.len();
    // Text is cut around unknown characters.
    let made: HashSet<u32, FixedState> = characters.made().collect();
    merges.each_text(|place, parts| {
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
        let (Some(last), Some(first)) = (parts[0].chars().next_back(), parts[1].chars().next())
        else {
            return Err(Error::unsupported(
                format!("model.merges[{place}]"),
                "a merge of an empty token",
            ));
        };
        characters.join(swap(last), swap(first));
        Ok(push(&mut pairs, (pair[0], pair[1]))?)
    })?;
    Ok(InBytes { tokens: list, merges: pairs, assembling, first_hidden, hidden, characters })
}

fn is_one_character(text: &str) -> bool {
    text.chars().nth(1).is_none() && !text.is_empty()
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
    fn new(ids: &Ids, header: &Header) -> Result<Self> {
        let mut known = filled(0, (char::MAX as usize).div_ceil(64))?;
        for text in ids.keys().filter(|text| is_one_character(text)) {
            let code = text.chars().next().map_or(0, |first| u32::from(swap(first))) as usize;
            known[code / 64] |= 1 << (code % 64);
        }
        let bytes = header.fallback(|name| ids.get(name).copied());
        let unknown = match &header.unk_token {
            None => Unknown::Dropped,
            Some(token) => match ids.get(token) {
                Some(&id) => Unknown::Token { id, fused: header.fuse_unk },
                None => Unknown::Fails(token.clone()),
            },
        };
        Ok(Self { known, joined: Joined::default(), bytes, unknown })
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

    /// Notes that two characters are side by side in a token; text is cut around those that are
    /// not tokens.
    fn join(&mut self, before: char, after: char) {
        if self.is_known(before) && self.is_known(after) {
            self.joined.insert(before, after);
        }
    }

    fn is_known(&self, character: char) -> bool {
        let code = character as usize;
        self.known[code / 64] >> (code % 64) & 1 != 0
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
    pub(crate) fn cuts<'a>(&'a self, text: &'a str) -> Cuts<'a> {
        Cuts { characters: self, text, start: 0, read: 0, ends: [0; ENDS], next: 0, count: 0 }
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
    /// The start of the next part.
    start: usize,
    /// The end of what was read. Places to cut before it are from `next` to `count` in `ends`.
    read: usize,
    ends: [usize; ENDS],
    next: usize,
    count: usize,
}

/// Places to cut that are found before they are used: without a branch for each, which no processor
/// would predict.
const ENDS: usize = 128;
/// The characters that are read at once.
const BLOCK: usize = 32;

impl Iterator for Cuts<'_> {
    type Item = Cut;

    #[inline(always)]
    fn next(&mut self) -> Option<Cut> {
        let start = self.start;
        let is_known = |at: usize| {
            let rest = &self.text.as_bytes()[at..];
            match rest.first() {
                Some(&byte) if byte.is_ascii() => self.characters.is_known(byte.into()),
                _ => self.text[at..].chars().next().is_some_and(|it| self.characters.is_known(it)),
            }
        };
        if start == self.text.len() {
            return None;
        }
        if is_known(start) {
            self.start = self.end();
            return Some(Cut::Known(start..self.start));
        }
        loop {
            self.start = self.end();
            let rest = &self.text[self.start..];
            if rest.chars().next().is_none_or(|first| self.characters.is_known(first)) {
                return Some(Cut::Unknown(start..self.start));
            }
        }
    }
}

impl Cuts<'_> {
    /// The end of the part after the last one.
    #[inline(always)]
    fn end(&mut self) -> usize {
        while self.next == self.count {
            if self.read == self.text.len() {
                return self.read;
            }
            self.read();
        }
        self.next += 1;
        self.ends[self.next - 1]
    }

    /// Reads as much text as there is room for places to cut.
    #[inline(never)]
    fn read(&mut self) {
        let (characters, text) = (self.characters, self.text);
        let joined = &characters.joined;
        (self.next, self.count) = (0, 0);
        let Some(mut before) = text[..self.read].chars().next_back() else {
            // Nothing is cut before the first character.
            self.read = text.chars().next().map_or(0, char::len_utf8);
            return;
        };
        while self.read < text.len() && self.count + BLOCK <= ENDS {
            let start = self.read;
            if let Some(block) = text.as_bytes()[start..].first_chunk::<BLOCK>()
                && before.is_ascii()
                && block.is_ascii()
                && Mechanism::Cuts.is_used()
            {
                let mut before_byte = before as u8;
                for (place, &byte) in block.iter().enumerate() {
                    self.ends[self.count] = start + place;
                    self.count += usize::from(joined.is_apart(before_byte, byte));
                    before_byte = byte;
                }
                before = before_byte.into();
                self.read += BLOCK;
                continue;
            }
            let mut is_before_known = characters.is_known(before);
            for (at, character) in text[start..].char_indices().take(BLOCK) {
                // A hash that two pairs share must not join characters that are not tokens.
                let is_known = characters.is_known(character);
                let is_joined = joined.contains(before, character) & is_before_known & is_known;
                self.ends[self.count] = start + at;
                self.count += usize::from(!is_joined);
                (before, is_before_known) = (character, is_known);
                self.read = start + at + character.len_utf8();
            }
        }
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
}

/// Bits of the hash of a pair.
const BITS: u32 = 22;

impl Default for Joined {
    fn default() -> Self {
        Self { apart: Box::new([[1; 128]; 128]), others: vec![0; 1 << (BITS - 6)] }
    }
}

impl Joined {
    /// The word of a pair that is not ASCII, and the bit in it.
    #[inline(always)]
    fn place(before: char, after: char) -> (usize, u32) {
        let pair = u64::from(before as u32) << 32 | u64::from(after as u32);
        let hash = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS);
        ((hash >> 6) as usize, hash as u32 & 63)
    }

    fn insert(&mut self, before: char, after: char) {
        if before.is_ascii() && after.is_ascii() {
            self.apart[before as usize][after as usize] = 0;
        } else {
            let (word, bit) = Self::place(before, after);
            self.others[word] |= 1 << bit;
        }
    }

    #[inline(always)]
    fn contains(&self, before: char, after: char) -> bool {
        if !Mechanism::Cuts.is_used() {
            return true;
        }
        if before.is_ascii() && after.is_ascii() {
            return !self.is_apart(before as u8, after as u8);
        }
        let (word, bit) = Self::place(before, after);
        self.others[word] >> bit & 1 != 0
    }

    /// [`Joined::contains`] is false for two ASCII characters.
    #[inline(always)]
    fn is_apart(&self, before: u8, after: u8) -> bool {
        self.apart[usize::from(before & 127)][usize::from(after & 127)] != 0
    }
}
