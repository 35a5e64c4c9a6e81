//! Vocabularies over characters, as converted from SentencePiece: merging starts from characters,
//! and a character that is not a token becomes a token for each of its bytes, or the unknown token.
//!
//! The core merges bytes. So the lists get a token for each byte, and merges that first assemble
//! every character ([`in_bytes`]). Characters that are not tokens never reach the core: text is cut
//! around them.
//!
//! Merging a whole text would be slow. The result of a merge is a token, so no merge crosses two
//! characters that are side by side in no token: text is cut there as well ([`Characters::each`]).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bpe_core::memory::{filled, push, push_text, reserve_text};
use foldhash::fast::FixedState;

use crate::build::Header;
use crate::error::{Error, Result};
use crate::merge_list::Unknown;
use crate::token_lists::{MergeList, TokenList};

/// The lists of a file, in bytes.
pub(crate) struct InBytes {
    pub(crate) tokens: TokenList,
    pub(crate) merges: MergeList,
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
    let mut assembly = MergeList::default();
    let largest = ids.values().copied().max().unwrap_or(0);
    let first_hidden = largest.saturating_add(1);
    let mut hidden = first_hidden..u32::MAX;
    let mut hide = |list: &mut TokenList, bytes: &[u8]| match hidden.next() {
        Some(id) => Ok(list.bytes.push(bytes, id)?),
        None => Err(Error::unsupported("model.vocab", "ids near the largest possible")),
    };
    for byte in 0..=255u8 {
        if !byte.is_ascii() || !characters.is_known(byte.into()) {
            hide(&mut list, &[byte])?;
        }
    }
    let mut beginnings: HashSet<&[u8], FixedState> = HashSet::default();
    for text in ids.keys().filter(|text| is_one_character(text)) {
        let bytes = text.as_bytes();
        for end in 2..=bytes.len() {
            if beginnings.insert(&bytes[..end]) {
                assembly.push_bytes(&bytes[..end - 1], &bytes[end - 1..end])?;
                if end < bytes.len() {
                    hide(&mut list, &bytes[..end])?;
                }
            }
        }
    }
    let hidden = list.bytes.len();
    for (text, &id) in &ids {
        match text.as_str() {
            "" => push(&mut list.others, (String::new(), id))?,
            _ => list.bytes.push(text.as_bytes(), id)?,
        }
    }
    let assembling = assembly.len();
    for (place, [left, right]) in merges.texts().enumerate() {
        let ids = [&left, &right].map(|part| {
            ids.get(part).copied().ok_or_else(|| {
                let reason = format!("model.merges[{place}]: Token `{part}` out of vocabulary");
                Error::Invalid(reason)
            })
        });
        for id in ids {
            characters.check_part(id?, place)?;
        }
        let (Some(last), Some(first)) = (left.chars().next_back(), right.chars().next()) else {
            return Err(Error::unsupported(
                format!("model.merges[{place}]"),
                "a merge of an empty token",
            ));
        };
        characters.joined.insert(last, first);
        assembly.push_bytes(left.as_bytes(), right.as_bytes())?;
    }
    Ok(InBytes { tokens: list, merges: assembly, assembling, first_hidden, hidden, characters })
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

/// A stretch of text that [`Characters::each`] cuts.
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
            let code = text.chars().next().map_or(0, u32::from) as usize;
            known[code / 64] |= 1 << (code % 64);
        }
        let byte = |byte: u8| ids.get(&format!("<0x{byte:02X}>")).copied();
        let bytes = (0..=255).map(|value| byte(value).filter(|_| header.byte_fallback)).collect();
        let unknown = match &header.unk_token {
            None => Unknown::Dropped,
            Some(token) => match ids.get(token) {
                Some(&id) => Unknown::Token { id, fused: header.fuse_unk },
                None => Unknown::Fails(token.clone()),
            },
        };
        Ok(Self { known, joined: Joined::default(), bytes, unknown })
    }

    /// Fails if a merge has a part that stands for an unknown character: text is cut around those.
    fn check_part(&self, id: u32, place: usize) -> Result<()> {
        if !self.may_make(id) {
            return Ok(());
        }
        Err(Error::unsupported(
            format!("model.merges[{place}]"),
            "a merge of a token for unknown characters or bytes",
        ))
    }

    /// Whether a character that is not a token may become this token.
    pub(crate) fn may_make(&self, id: u32) -> bool {
        matches!(self.unknown, Unknown::Token { id: unknown, .. } if unknown == id)
            || self.bytes.contains(&Some(id))
    }

    fn is_known(&self, character: char) -> bool {
        let code = character as usize;
        self.known[code / 64] >> (code % 64) & 1 != 0
    }

    /// The tokens for the bytes of a character, if all of them are in the vocabulary.
    fn bytes_of(&self, character: char) -> Option<impl Iterator<Item = u32>> {
        let mut utf8 = [0; 4];
        let length = character.encode_utf8(&mut utf8).len();
        let id = |byte: &u8| self.bytes[usize::from(*byte)];
        let has_all = utf8[..length].iter().all(|byte| id(byte).is_some());
        has_all.then(|| utf8.into_iter().take(length).filter_map(move |byte| id(&byte)))
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

    /// Cuts the text, which must be [without dropped characters](Self::without_dropped), where
    /// merging cannot cross.
    pub(crate) fn each(&self, text: &str, mut found: impl FnMut(Cut) -> Result<()>) -> Result<()> {
        let mut start = 0;
        let mut before: Option<char> = None;
        let mut characters = text.char_indices();
        while let Some((at, character)) = characters.next() {
            if self.is_known(character) {
                if before.is_some_and(|before| !self.joined.contains(before, character)) {
                    found(Cut::Known(start..at))?;
                    start = at;
                }
                before = Some(character);
                continue;
            }
            if start < at {
                found(Cut::Known(start..at))?;
            }
            let is_unknown = |&(_, character): &(usize, char)| !self.is_known(character);
            let mut rest = characters.clone();
            let end = loop {
                match rest.next().filter(is_unknown) {
                    Some(_) => characters = rest.clone(),
                    None => break text.len() - characters.as_str().len(),
                }
            };
            found(Cut::Unknown(at..end))?;
            (start, before) = (end, None);
        }
        if start < text.len() { found(Cut::Known(start..text.len())) } else { Ok(()) }
    }

    /// Calls `found` with the tokens of characters that are not tokens, and the length of the text
    /// of each, in the order of `tokenizers`: an unknown token comes after the bytes of characters
    /// that follow it.
    pub(crate) fn each_unknown(
        &self,
        text: &str,
        mut found: impl FnMut(u32, usize) -> Result<()>,
    ) -> Result<()> {
        let mut waiting: Option<(u32, usize)> = None;
        for character in text.chars() {
            if let Some(mut bytes) = self.bytes_of(character) {
                bytes.try_for_each(|id| found(id, 1))?;
                continue;
            }
            let length = character.len_utf8();
            waiting = match (&self.unknown, waiting) {
                (Unknown::Dropped, waiting) => waiting,
                (Unknown::Token { fused: true, .. }, Some((id, before))) => {
                    Some((id, before + length))
                }
                (&Unknown::Token { id, .. }, waiting) => {
                    if let Some((id, length)) = waiting {
                        found(id, length)?;
                    }
                    Some((id, length))
                }
                (Unknown::Fails(token), _) => {
                    return Err(Error::Invalid(format!(
                        "model.unk_token: {token:?} is not in the vocabulary, and the text contains \
                         a character that is not a token, {character:?}"
                    )));
                }
            };
        }
        waiting.map_or(Ok(()), |(id, length)| found(id, length))
    }

    /// Whether a text can be cut between these two characters without changing a token.
    pub(crate) fn are_apart(&self, before: char, after: char) -> bool {
        match (self.is_known(before), self.is_known(after), &self.unknown) {
            (_, _, Unknown::Dropped) | (false, false, _) => false,
            (true, true, _) => !self.joined.contains(before, after),
            _ => true,
        }
    }
}

/// Pairs of characters that are side by side in a token. It may contain others, which only makes
/// pieces longer.
#[derive(Debug)]
struct Joined {
    /// Pairs of the most frequent characters: [`frequent`].
    frequent: Box<[u64; FREQUENT * FREQUENT / 64]>,
    /// A bit for each hash of another pair.
    others: Vec<u64>,
}

/// The number of frequent characters: ASCII, the mark of spaces, and room for a power of two.
const FREQUENT: usize = 256;
/// Bits of the hash of a pair.
const BITS: u32 = 22;

impl Default for Joined {
    fn default() -> Self {
        let frequent = Box::new([0; FREQUENT * FREQUENT / 64]);
        Self { frequent, others: vec![0; 1 << (BITS - 6)] }
    }
}

/// The number of a frequent character.
#[inline(always)]
fn frequent(character: char) -> Option<usize> {
    match character {
        '\0'..='\x7f' => Some(character as usize),
        '\u{2581}' => Some(128),
        _ => None,
    }
}

impl Joined {
    /// The word of a pair, and the bit in it.
    #[inline(always)]
    fn place(before: char, after: char) -> (bool, usize, u32) {
        if let (Some(before), Some(after)) = (frequent(before), frequent(after)) {
            let place = before * FREQUENT + after;
            return (true, place / 64, (place % 64) as u32);
        }
        let pair = u64::from(before as u32) << 32 | u64::from(after as u32);
        let hash = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS);
        (false, (hash >> 6) as usize, hash as u32 & 63)
    }

    fn insert(&mut self, before: char, after: char) {
        let (is_frequent, word, bit) = Self::place(before, after);
        let words = if is_frequent { &mut self.frequent[..] } else { &mut self.others[..] };
        words[word] |= 1 << bit;
    }

    #[inline(always)]
    fn contains(&self, before: char, after: char) -> bool {
        let (is_frequent, word, bit) = Self::place(before, after);
        let words = if is_frequent { &self.frequent[..] } else { &self.others[..] };
        words[word] >> bit & 1 != 0
    }
}
