//! Parses the two long lists of a `tokenizer.json`, tokens and merges, into flat arrays.

use std::fmt;

use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};

use crate::error::{Error, Result};

/// Texts in one buffer.
#[derive(Debug, Default)]
struct Texts {
    text: String,
    /// End of each text in `text`.
    ends: Vec<usize>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// Returns the text at this index. Panics if the index is out of range.
    fn get(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}

/// Tokens and their ids, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct TokenList {
    texts: Texts,
    ids: Vec<u32>,
}

impl TokenList {
    pub(crate) fn push(&mut self, text: &str, id: u32) {
        self.texts.push(text);
        self.ids.push(id);
    }

    pub(crate) fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Returns the total number of bytes in all texts.
    pub(crate) fn byte_len(&self) -> usize {
        self.texts.text.len()
    }

    /// Returns the token at this index. Panics if the index is out of range.
    pub(crate) fn get(&self, index: usize) -> &str {
        self.texts.get(index)
    }

    pub(crate) fn last(&self) -> Option<(&str, u32)> {
        Some((self.get(self.ids.len().checked_sub(1)?), *self.ids.last()?))
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.ids.iter().enumerate().map(|(index, &id)| (self.get(index), id))
    }

    pub(crate) fn are_sorted(&self) -> bool {
        self.ids.is_sorted_by(|a, b| a < b)
    }

    /// Copies the list in the order of ids.
    pub(crate) fn sorted(&self) -> Self {
        let mut order: Vec<usize> = (0..self.ids.len()).collect();
        order.sort_by_key(|&index| self.ids[index]);
        let mut sorted = Self::default();
        order.iter().for_each(|&index| sorted.push(self.get(index), self.ids[index]));
        sorted
    }
}

/// Merges as pairs of tokens, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct MergeList {
    texts: Texts,
    /// First entry that is not a pair of tokens, with its index.
    malformed: Option<(usize, String)>,
}

impl MergeList {
    pub(crate) fn push(&mut self, left: &str, right: &str) {
        self.texts.push(left);
        self.texts.push(right);
    }

    /// Appends a pair written as one line, as in `merges.txt`.
    fn push_line(&mut self, line: &str) {
        if line.starts_with("#version") {
            return;
        }
        match line.split_once(' ') {
            Some((left, right)) if !right.contains(' ') => self.push(left, right),
            _ => {
                let place = self.len();
                self.malformed.get_or_insert_with(|| (place, line.to_owned()));
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.ends.len() / 2
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = [&str; 2]> {
        (0..self.len()).map(|index| [2 * index, 2 * index + 1].map(|part| self.texts.get(part)))
    }

    /// Fails if an entry is not a pair of tokens.
    pub(crate) fn check_lines(&self) -> Result<()> {
        let Some((place, line)) = &self.malformed else { return Ok(()) };
        let reason = format!("{line:?} is not two tokens with a space between them");
        Err(Error::Invalid(format!("model.merges[{place}]: {reason}")))
    }
}

#[derive(Debug)]
pub(crate) enum VocabFile {
    /// A map of tokens to ids.
    Map(TokenList),
    /// Tokens and their scores; the id of a token is its index.
    Scores(TokenList, Vec<f64>),
}

impl<'de> Deserialize<'de> for VocabFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(VocabVisitor)
    }
}

struct VocabVisitor;

impl<'de> Visitor<'de> for VocabVisitor {
    type Value = VocabFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of tokens and ids, or a list of tokens and scores")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<VocabFile, A::Error> {
        let mut list = TokenList::default();
        let mut text = String::new();
        while map.next_key_seed(IntoBuffer(&mut text))?.is_some() {
            list.push(&text, map.next_value()?);
        }
        Ok(VocabFile::Map(list))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<VocabFile, A::Error> {
        let (mut list, mut scores) = (TokenList::default(), Vec::new());
        let mut text = String::new();
        while let Some(score) = seq.next_element_seed(Scored(&mut text))? {
            let id = u32::try_from(scores.len()).map_err(A::Error::custom)?;
            list.push(&text, id);
            scores.push(score);
        }
        Ok(VocabFile::Scores(list, scores))
    }
}

/// Reads a token into a buffer, and its score.
struct Scored<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for Scored<'_> {
    type Value = f64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<f64, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Scored<'_> {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token and its score")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<f64, A::Error> {
        if seq.next_element_seed(IntoBuffer(self.0))?.is_some()
            && let Some(score) = seq.next_element()?
            && seq.next_element::<IgnoredAny>()?.is_none()
        {
            return Ok(score);
        }
        Err(de::Error::custom("an entry must have a token and a score"))
    }
}

/// Reads the merges of a file; `None` for any value except a list.
pub(crate) fn read_merges<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<MergeList>, D::Error> {
    deserializer.deserialize_any(MergesVisitor)
}

struct MergesVisitor;

impl<'de> Visitor<'de> for MergesVisitor {
    type Value = Option<MergeList>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of merges")
    }

    fn visit_unit<E>(self) -> Result<Option<MergeList>, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<MergeList>, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<MergeList>, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Option<MergeList>, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<MergeList>, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Option<MergeList>, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<MergeList>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<MergeList>, A::Error> {
        let mut reader = MergeReader::default();
        while seq.next_element_seed(&mut reader)?.is_some() {}
        Ok(Some(reader.list))
    }
}

/// Reads merges one by one; all must be written as one string, or all as two strings.
#[derive(Default)]
struct MergeReader {
    list: MergeList,
    parts: [String; 2],
    /// Whether merges are written as one string; `None` before the first merge.
    are_lines: Option<bool>,
}

impl MergeReader {
    fn check_form<E: de::Error>(&mut self, is_line: bool) -> Result<(), E> {
        if *self.are_lines.get_or_insert(is_line) == is_line {
            return Ok(());
        }
        Err(E::custom("some merges are strings and some are lists: write all in one form"))
    }
}

impl<'de> DeserializeSeed<'de> for &mut MergeReader {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut MergeReader {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("two tokens, as \"a b\" or as [\"a\", \"b\"]")
    }

    #[inline]
    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.check_form(true)?;
        self.list.push_line(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.check_form(false)?;
        let MergeReader { list, parts: [left, right], .. } = self;
        if seq.next_element_seed(IntoBuffer(left))?.is_some()
            && seq.next_element_seed(IntoBuffer(right))?.is_some()
            && seq.next_element::<IgnoredAny>()?.is_none()
        {
            list.push(left, right);
            return Ok(());
        }
        Err(de::Error::custom("a merge must have two tokens"))
    }
}

/// Reads a text into a buffer.
struct IntoBuffer<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for IntoBuffer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IntoBuffer<'_> {
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
