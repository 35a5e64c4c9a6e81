//! The bytes of every id in one buffer.

pub mod rests;
pub mod trie;

use self::trie::{Sorted, TokenTrie};
use crate::error::{Error, Result};
use crate::once::OnceBox;

/// The maximum number of ids in a table, so that one huge id does not take gigabytes.
pub const MOST_IDS: usize = 1 << 24;

/// The kind of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenKind {
    /// The id has no token.
    Absent = 0,
    /// The id has a token that decoding always shows.
    Ordinary = 1,
    /// The id has a token that decoding can skip.
    Special = 2,
}

/// The bytes and the kind of every id from 0 to the largest.
#[derive(Debug)]
pub struct TokenTable {
    bytes: Vec<u8>,
    /// The end of each id's bytes, after a 0 for the start of the first id.
    ends: Vec<u32>,
    kinds: Vec<u8>,
    /// A bit for each id whose bytes are whole characters.
    characters: Vec<u64>,
    /// Id of a token to which text with its bytes never encodes.
    unspelled: Option<u32>,
    /// The tokens sorted by their bytes, created on first use.
    sorted: OnceBox<Sorted>,
}

impl TokenTable {
    /// Creates an empty table for ids up to `largest`; `None` means no ids.
    ///
    /// Fails with [`Error::Vocabulary`] for an id of [`MOST_IDS`] or more.
    pub fn with_largest_id(largest: Option<u32>) -> Result<Self> {
        let ids = largest.map_or(0, |id| id as usize + 1);
        if ids > MOST_IDS {
            return Err(Error::Vocabulary(format!(
                "the id {} is too large for a table of all ids, which has room for {MOST_IDS}; give \
                 the token a smaller id",
                ids - 1
            )));
        }
        let (bytes, ends, kinds, characters) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let sorted = OnceBox::new();
        let mut table = Self { bytes, ends, kinds, characters, unspelled: None, sorted };
        table.ends.reserve(ids + 1);
        table.kinds.reserve(ids);
        table.characters.reserve(ids.div_ceil(64));
        table.ends.push(0);
        Ok(table)
    }

    /// Adds the next id.
    pub fn push(&mut self, bytes: &[u8], kind: TokenKind) -> Result<()> {
        self.sorted = OnceBox::new();
        self.bytes.extend_from_slice(bytes);
        let end = u32::try_from(self.bytes.len()).map_err(|_| {
            Error::Vocabulary("the tokens have more than 4294967295 bytes together".into())
        })?;
        self.ends.push(end);
        let id = self.kinds.len();
        if id.is_multiple_of(64) {
            self.characters.push(0);
        }
        let is_text = !bytes.is_empty() && std::str::from_utf8(bytes).is_ok();
        self.characters[id / 64] |= u64::from(is_text) << (id % 64);
        self.kinds.push(kind as u8);
        Ok(())
    }

    /// Returns the number of ids: one more than the largest.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Returns true if the table has no ids.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Returns the bytes of an id; empty if the id is absent.
    #[inline]
    pub fn get(&self, id: u32) -> &[u8] {
        match self.ends.get(id as usize..).and_then(<[u32]>::first_chunk::<2>) {
            Some(&[start, end]) => &self.bytes[start as usize..end as usize],
            None => &[],
        }
    }

    /// Returns true if the bytes of an id are whole characters: nonempty UTF-8.
    #[inline]
    pub fn is_text(&self, id: u32) -> bool {
        let bits = self.characters.get(id as usize / 64).copied().unwrap_or(0);
        bits >> (id % 64) & 1 == 1
    }

    /// Returns the kind of an id; [`TokenKind::Absent`] beyond the end.
    #[inline]
    pub fn kind(&self, id: u32) -> TokenKind {
        match self.kinds.get(id as usize) {
            Some(1) => TokenKind::Ordinary,
            Some(2) => TokenKind::Special,
            _ => TokenKind::Absent,
        }
    }

    /// Marks an id to which text never encodes: the token for unknown text.
    pub fn set_unspelled(&mut self, id: u32) {
        self.unspelled = Some(id);
        self.sorted = OnceBox::new();
    }

    /// Returns true if text with the bytes of an id may encode to the id: an ordinary token with
    /// bytes that is not the token for unknown text.
    pub fn is_spelling(&self, id: u32) -> bool {
        self.kind(id) == TokenKind::Ordinary
            && self.unspelled != Some(id)
            && !self.get(id).is_empty()
    }

    /// Returns the tokens in the order of their bytes. Sorts them only once.
    pub fn trie(&self) -> Result<TokenTrie<'_>> {
        let sorted = self.sorted.get_or_try_init(|| Sorted::new(self).map(Box::new))?;
        Ok(TokenTrie::of(self, sorted))
    }

    /// Returns the concatenated bytes of all ids.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the start of each id in [`TokenTable::bytes`], and the end of the last id.
    pub fn offsets(&self) -> &[u32] {
        &self.ends
    }

    /// Returns the kind of each id, as the number of its variant.
    pub fn kinds(&self) -> &[u8] {
        &self.kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_characters_are_not_text() {
        let mut table = TokenTable::with_largest_id(Some(64)).unwrap();
        for _ in 0..32 {
            table.push(b"\xC3", TokenKind::Ordinary).unwrap();
            table.push("é".as_bytes(), TokenKind::Ordinary).unwrap();
        }
        table.push(b"a", TokenKind::Special).unwrap();
        assert!((0..64).all(|id| table.is_text(id) == (id % 2 == 1)));
        assert!(table.is_text(64) && !table.is_text(65) && !table.is_text(u32::MAX));
    }
}
