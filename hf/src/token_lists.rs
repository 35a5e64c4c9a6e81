//! Parses the tokens and merges of a `tokenizer.json`, its two long lists, into flat arrays.
//!
//! The arrays hold the bytes that the characters represent. The few texts that do not represent
//! bytes are kept as text.

use std::fmt;

use bpe_core::memory::push;
use bpe_core::vocabulary::RankList;
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};

use crate::bytes::{append_bytes, append_text, text_of};
use crate::error::Error;

/// Tokens and their ids, in the order of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenList {
    /// Tokens that represent bytes.
    pub(crate) bytes: RankList,
    /// Other tokens, including an empty one.
    pub(crate) others: Vec<(String, u32)>,
}

impl TokenList {
    /// All tokens as texts, with their ids.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (String, u32)> {
        let others = self.others.iter().cloned();
        self.bytes.iter().map(|(bytes, id)| (text_of(bytes), id)).chain(others)
    }
}

/// Merges, as pairs of tokens, in the order of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergeList {
    /// The bytes of all pairs, concatenated.
    bytes: Vec<u8>,
    /// The start and end in `bytes` of the second part of each pair.
    ends: Vec<[usize; 2]>,
    /// Pairs with a part that does not represent bytes, by index; they are empty in `bytes`.
    pub(crate) others: Vec<(usize, [String; 2])>,
    /// The first entry that is not two tokens, with its index.
    pub(crate) malformed: Option<(usize, String)>,
}

impl MergeList {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Iterates over the bytes of both parts of each pair; empty for [`MergeList::others`].
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = [&[u8]; 2]> {
        let mut start = 0;
        self.ends.iter().map(move |&[middle, end]| {
            let parts = [&self.bytes[start..middle], &self.bytes[middle..end]];
            start = end;
            parts
        })
    }

    /// Calls `found` with the place of each pair and both parts as texts, until it fails.
    pub(crate) fn each_text(
        &self,
        mut found: impl FnMut(usize, [&str; 2]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut others = self.others.iter().peekable();
        let mut buffers = [String::new(), String::new()];
        for (place, parts) in self.iter().enumerate() {
            if let Some((_, [left, right])) = others.next_if(|other| other.0 == place) {
                found(place, [left, right])?;
                continue;
            }
            for (buffer, part) in buffers.iter_mut().zip(parts) {
                buffer.clear();
                append_text(part, buffer);
            }
            found(place, [&buffers[0], &buffers[1]])?;
        }
        Ok(())
    }

    /// Fails if an entry is not two tokens.
    pub(crate) fn check_lines(&self) -> Result<(), Error> {
        match &self.malformed {
            None => Ok(()),
            Some((place, line)) => Err(not_two_tokens(*place, line)),
        }
    }

    /// Appends a pair.
    pub(crate) fn push(&mut self, left: &str, right: &str) -> Result<(), Error> {
        let start = self.bytes.len();
        if append_part(left, &mut self.bytes)? {
            let middle = self.bytes.len();
            if append_part(right, &mut self.bytes)? {
                return Ok(push(&mut self.ends, [middle, self.bytes.len()])?);
            }
        }
        self.bytes.truncate(start);
        push(&mut self.others, (self.ends.len(), [left.to_owned(), right.to_owned()]))?;
        Ok(push(&mut self.ends, [start; 2])?)
    }

    /// Appends a pair written as one line, as in `merges.txt`.
    pub(crate) fn push_line(&mut self, line: &str) -> Result<(), Error> {
        if line.starts_with("#version") {
            return Ok(());
        }
        match line.split_once(' ') {
            Some((left, right)) if !right.contains(' ') => self.push(left, right),
            _ => {
                let place = self.ends.len();
                self.malformed.get_or_insert_with(|| (place, line.to_owned()));
                Ok(())
            }
        }
    }
}

pub(crate) fn not_two_tokens(place: usize, line: &str) -> Error {
    Error::Invalid(format!(
        "model.merges[{place}]: {line:?} is not two tokens with a space between them"
    ))
}

/// Appends the bytes that a text represents. Returns false if it does not represent bytes.
fn append_part(text: &str, bytes: &mut Vec<u8>) -> Result<bool, Error> {
    Ok(!text.is_empty() && append_bytes(text, bytes)?)
}

/// The vocabulary of a file; `None` if it is a list, as in models other than BPE.
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

/// Reads the bytes of a token into a buffer. Returns the text if it does not represent bytes.
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
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        self.0.clear();
        let is_bytes = append_part(text, self.0).map_err(E::custom)?;
        Ok((!is_bytes).then(|| text.to_owned()))
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

/// Reads one merge, written as one string or as two. The buffers hold two.
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
    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.0.push_line(text).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self(list, [left, right]) = self;
        if seq.next_element_seed(Part(left))?.is_some()
            && seq.next_element_seed(Part(right))?.is_some()
            && seq.next_element::<IgnoredAny>()?.is_none()
        {
            return list.push(left, right).map_err(A::Error::custom);
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
