//! Parses the tokens and merges of a `tokenizer.json`, its two long lists, into flat arrays.
//!
//! For a byte-level model the arrays hold the bytes that the characters represent
//! ([`TokenList`], [`MergeList`]). The few texts that do not represent bytes are kept as text.

use std::fmt;
use std::marker::PhantomData;

use bpe_core::memory::{push, push_text};
use bpe_core::vocabulary::RankList;
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};

use crate::bytes::append_bytes;
use crate::error::Error;

/// Texts, one after the other.
#[derive(Debug, Default)]
struct Texts {
    text: String,
    /// The end of each in `text`.
    ends: Vec<usize>,
}

impl Texts {
    fn push(&mut self, text: &str) -> Result<(), Error> {
        push_text(&mut self.text, text)?;
        Ok(push(&mut self.ends, self.text.len())?)
    }

    /// The text at this index. Panics past the end.
    fn get(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}

/// The texts of tokens and their ids, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct TokenTexts {
    texts: Texts,
    ids: Vec<u32>,
}

impl TokenTexts {
    pub(crate) fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The number of bytes of all texts together.
    pub(crate) fn byte_len(&self) -> usize {
        self.texts.text.len()
    }

    /// The token at this index. Panics past the end.
    pub(crate) fn get(&self, index: usize) -> &str {
        self.texts.get(index)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.ids.iter().enumerate().map(|(index, &id)| (self.get(index), id))
    }
}

impl Tokens for TokenTexts {
    fn push(&mut self, text: &str, id: u32) -> Result<(), Error> {
        self.texts.push(text)?;
        Ok(push(&mut self.ids, id)?)
    }
}

/// The texts of merges, as pairs of tokens, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct MergeTexts {
    /// Both parts of each pair.
    texts: Texts,
    /// The first entry that is not two tokens, with its index.
    malformed: Option<(usize, String)>,
}

impl MergeTexts {
    pub(crate) fn len(&self) -> usize {
        self.texts.ends.len() / 2
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = [&str; 2]> {
        (0..self.len()).map(|index| [2 * index, 2 * index + 1].map(|part| self.texts.get(part)))
    }

    pub(crate) fn is_malformed(&self) -> bool {
        self.malformed.is_some()
    }

    /// Fails if an entry is not two tokens.
    pub(crate) fn check_lines(&self) -> Result<(), Error> {
        match &self.malformed {
            None => Ok(()),
            Some((place, line)) => Err(not_two_tokens(*place, line)),
        }
    }
}

impl Merges for MergeTexts {
    fn push(&mut self, left: &str, right: &str) -> Result<(), Error> {
        self.texts.push(left)?;
        self.texts.push(right)
    }

    fn push_malformed(&mut self, line: &str) {
        let place = self.len();
        self.malformed.get_or_insert_with(|| (place, line.to_owned()));
    }
}

/// Tokens and their ids, in the order of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenList {
    /// Tokens that represent bytes.
    pub(crate) bytes: RankList,
    /// Other tokens, including an empty one.
    pub(crate) others: Vec<(String, u32)>,
    /// The bytes of the last one.
    buffer: Vec<u8>,
}

impl Tokens for TokenList {
    fn push(&mut self, text: &str, id: u32) -> Result<(), Error> {
        self.buffer.clear();
        if append_part(text, &mut self.buffer)? {
            Ok(self.bytes.push(&self.buffer, id)?)
        } else {
            Ok(push(&mut self.others, (text.to_owned(), id))?)
        }
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
    /// [`MergeTexts::malformed`].
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
}

impl Merges for MergeList {
    fn push(&mut self, left: &str, right: &str) -> Result<(), Error> {
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

    fn push_malformed(&mut self, line: &str) {
        let place = self.ends.len();
        self.malformed.get_or_insert_with(|| (place, line.to_owned()));
    }
}

/// Both lists, in the form that merging takes.
pub(crate) enum Lists {
    /// For merging that starts from bytes.
    Bytes(TokenList, MergeList),
    /// For merging that starts from characters.
    Texts(TokenTexts, MergeTexts),
}

impl Lists {
    /// Converts texts to the bytes that they represent.
    pub(crate) fn in_bytes(self) -> Result<Self, Error> {
        let Self::Texts(tokens, merges) = self else { return Ok(self) };
        let (mut list, mut pairs) = (TokenList::default(), MergeList::default());
        tokens.iter().try_for_each(|(text, id)| list.push(text, id))?;
        merges.iter().try_for_each(|[left, right]| pairs.push(left, right))?;
        pairs.malformed = merges.malformed;
        Ok(Self::Bytes(list, pairs))
    }
}

/// Tokens that a file lists one by one.
pub(crate) trait Tokens: Default {
    /// Appends a token.
    fn push(&mut self, text: &str, id: u32) -> Result<(), Error>;
}

/// Merges that a file lists one by one.
pub(crate) trait Merges: Default {
    /// Appends a pair.
    fn push(&mut self, left: &str, right: &str) -> Result<(), Error>;

    /// Notes an entry that is not two tokens.
    fn push_malformed(&mut self, line: &str);

    /// Appends a pair written as one line, as in `merges.txt`.
    fn push_line(&mut self, line: &str) -> Result<(), Error> {
        if line.starts_with("#version") {
            return Ok(());
        }
        match line.split_once(' ') {
            Some((left, right)) if !right.contains(' ') => self.push(left, right),
            _ => {
                self.push_malformed(line);
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
#[derive(Debug)]
pub(crate) struct Vocab<T>(pub(crate) Option<T>);

impl<T> Default for Vocab<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Tokens> Deserialize<'de> for Vocab<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(VocabVisitor(PhantomData))
    }
}

struct VocabVisitor<T>(PhantomData<T>);

impl<'de, T: Tokens> Visitor<'de> for VocabVisitor<T> {
    type Value = Vocab<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of tokens and ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab<T>, A::Error> {
        let mut list = T::default();
        let mut text = String::new();
        while map.next_key_seed(Part(&mut text))?.is_some() {
            list.push(&text, map.next_value()?).map_err(A::Error::custom)?;
        }
        Ok(Vocab(Some(list)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vocab<T>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Vocab(None))
    }
}

/// The merges of a file.
#[derive(Debug)]
pub(crate) struct Listed<M>(pub(crate) M);

impl<'de, M: Merges> Deserialize<'de> for Listed<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(MergesVisitor(PhantomData))
    }
}

struct MergesVisitor<M>(PhantomData<M>);

impl<'de, M: Merges> Visitor<'de> for MergesVisitor<M> {
    type Value = Listed<M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of merges")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Listed<M>, A::Error> {
        let mut reader = MergeReader::<M>::default();
        while seq.next_element_seed(&mut reader)?.is_some() {}
        Ok(Listed(reader.list))
    }
}

/// Reads merges one by one, all written as one string or all as two.
#[derive(Default)]
struct MergeReader<M> {
    list: M,
    /// Buffers.
    parts: [String; 2],
    /// Whether they are written as one string; `None` before the first.
    are_lines: Option<bool>,
}

impl<M> MergeReader<M> {
    fn check_form<E: de::Error>(&mut self, is_line: bool) -> Result<(), E> {
        if *self.are_lines.get_or_insert(is_line) == is_line {
            return Ok(());
        }
        Err(E::custom("some merges are strings and some are lists: write all in one form"))
    }
}

impl<'de, M: Merges> DeserializeSeed<'de> for &mut MergeReader<M> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, M: Merges> Visitor<'de> for &mut MergeReader<M> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("two tokens, as \"a b\" or as [\"a\", \"b\"]")
    }

    #[inline]
    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.check_form(true)?;
        self.list.push_line(text).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.check_form(false)?;
        let MergeReader { list, parts: [left, right], .. } = self;
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
