//! The two long lists of a file, tokens and merges, read into flat arrays.
//!
//! What is read are the bytes that the characters stand for. Texts that stand for no bytes are few,
//! and stay texts.

use std::fmt;

use bpe_core::vocabulary::RankList;
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};

use crate::bytes::append_bytes;

/// Tokens and their ids, in the order of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenList {
    /// Tokens that stand for bytes.
    pub(crate) bytes: RankList,
    /// The other ones, the empty one among them.
    pub(crate) others: Vec<(String, u32)>,
}

/// The pairs of tokens that merge, in the order of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergeList {
    /// The bytes of all pairs, one after the other.
    bytes: Vec<u8>,
    /// Where in `bytes` the second part of each pair starts, and where it ends.
    ends: Vec<[usize; 2]>,
    /// Pairs with a part that stands for no bytes, each by its place; it has no bytes in `bytes`.
    pub(crate) others: Vec<(usize, [String; 2])>,
    /// The first entry that is not two tokens, and its place.
    pub(crate) malformed: Option<(usize, String)>,
}

impl MergeList {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of the two parts of each pair, in order; those of [`MergeList::others`] are empty.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = [&[u8]; 2]> {
        let mut start = 0;
        self.ends.iter().map(move |&[middle, end]| {
            let parts = [&self.bytes[start..middle], &self.bytes[middle..end]];
            start = end;
            parts
        })
    }

    /// Appends a pair.
    pub(crate) fn push(&mut self, left: &str, right: &str) {
        let start = self.bytes.len();
        if append_part(left, &mut self.bytes) {
            let middle = self.bytes.len();
            if append_part(right, &mut self.bytes) {
                self.ends.push([middle, self.bytes.len()]);
                return;
            }
        }
        self.bytes.truncate(start);
        self.others.push((self.ends.len(), [left.to_owned(), right.to_owned()]));
        self.ends.push([start; 2]);
    }

    /// Appends a pair that is spelled as one text, as in `merges.txt`.
    pub(crate) fn push_line(&mut self, line: &str) {
        if line.starts_with("#version") {
            return;
        }
        match line.split_once(' ') {
            Some((left, right)) if !right.contains(' ') => self.push(left, right),
            _ => {
                let place = self.ends.len();
                self.malformed.get_or_insert_with(|| (place, line.to_owned()));
            }
        }
    }
}

/// Appends the bytes that a text stands for, if it stands for some.
fn append_part(text: &str, bytes: &mut Vec<u8>) -> bool {
    !text.is_empty() && append_bytes(text, bytes)
}

/// None where the tokens are a list, as in other models.
#[derive(Debug, Default)]
pub(crate) struct Vocab(pub(crate) Option<TokenList>);

impl<'de> Deserialize<'de> for Vocab {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(VocabVisitor)
    }
}

struct VocabVisitor;

impl<'de> Visitor<'de> for VocabVisitor {
    type Value = Vocab;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of tokens and ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab, A::Error> {
        let mut list = TokenList::default();
        let mut bytes = Vec::new();
        while let Some(other) = map.next_key_seed(TokenText(&mut bytes))? {
            let id = map.next_value()?;
            match other {
                Some(text) => list.others.push((text, id)),
                None => list.bytes.push(&bytes, id).map_err(A::Error::custom)?,
            }
        }
        Ok(Vocab(Some(list)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vocab, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Vocab(None))
    }
}

/// Reads a token into a buffer; gives the text if it stands for no bytes.
struct TokenText<'a>(&'a mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for TokenText<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for TokenText<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token")
    }

    #[inline]
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        self.0.clear();
        Ok((!append_part(text, self.0)).then(|| text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for MergeList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(MergesVisitor)
    }
}

struct MergesVisitor;

impl<'de> Visitor<'de> for MergesVisitor {
    type Value = MergeList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of merges")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<MergeList, A::Error> {
        let mut list = MergeList::default();
        let mut parts = [String::new(), String::new()];
        while seq.next_element_seed(Merge(&mut list, &mut parts))?.is_some() {}
        Ok(list)
    }
}

/// Reads one merge, spelled as one text or as two, for which there are buffers.
struct Merge<'a>(&'a mut MergeList, &'a mut [String; 2]);

impl<'de> DeserializeSeed<'de> for Merge<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Merge<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("two tokens, as \"a b\" or as [\"a\", \"b\"]")
    }

    #[inline]
    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.push_line(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self(list, [left, right]) = self;
        if seq.next_element_seed(Part(left))?.is_some()
            && seq.next_element_seed(Part(right))?.is_some()
            && seq.next_element::<IgnoredAny>()?.is_none()
        {
            list.push(left, right);
            return Ok(());
        }
        Err(de::Error::custom("a merge must have two tokens"))
    }
}

/// Reads a text into a buffer.
struct Part<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Part<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token")
    }

    #[inline]
    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.clear();
        self.0.push_str(text);
        Ok(())
    }
}
