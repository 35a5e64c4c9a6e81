//! The calls that a server needs of a tokenizer, one for each act, in plain types.
//!
//! The rest of the crate has every field of every result; a program that implements a tokenizer
//! trait of its own needs no more than this.

use std::path::Path;
use std::sync::Arc;

use bpe_core::memory::push;
use bpe_core::segments::Prompt;
use bpe_core::special_tokens::Selection;
use bpe_core::{Engine, SpecialTokens, Splitter, Vocabulary, rank_file};

use crate::encode::Encoded;
use crate::error::{Error, Result};
use crate::tokenizer::{Input, Sequence, Tokenizer};

/// A part of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'a> {
    /// Text from outside: no part of it becomes a special token.
    Untrusted(&'a str),
    /// Text in which the names of special tokens become those.
    Trusted(&'a str),
    /// The name of one special token.
    Special(&'a str),
}

/// The characters of the text that a token covers: `(start, end)`.
pub type Offsets = (usize, usize);

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// Fails with [`Error::Invalid`] when the file cannot be read, and as
    /// [`Tokenizer::from_json`] does.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let json = std::fs::read_to_string(path)
            .map_err(|error| Error::Invalid(format!("{}: {error}", path.display())))?;
        Self::from_json(&json)
    }

    /// Makes a tokenizer of the contents of a `.tiktoken` file, a pattern and special tokens.
    ///
    /// ```
    /// let ranks = "YQ== 0\nYg== 1\nYWI= 2\n"; // a, b, ab
    /// let tokenizer = bpe_hf::Tokenizer::from_ranks(ranks.as_bytes(), r"\w+", [("<end>".into(), 3)])?;
    /// assert_eq!(tokenizer.encode_text("ab<end>", false)?, [2, 3]);
    /// assert_eq!(tokenizer.decode(&[2, 3], true)?, "ab");
    /// # Ok::<(), bpe_hf::Error>(())
    /// ```
    pub fn from_ranks(
        ranks: &[u8],
        pattern: &str,
        special: impl IntoIterator<Item = (String, u32)>,
    ) -> Result<Self> {
        let special: Vec<_> = special.into_iter().collect();
        let encoding = bpe_core::Encoding::new(
            Vocabulary::from_ranks(rank_file::parse(ranks)?)?,
            Splitter::new(pattern)?,
            SpecialTokens::new(special.clone())?,
        )?;
        Self::of_encoding(Arc::new(encoding), special)
    }

    /// Encodes one text. Names of special tokens in it become those. With `add_special_tokens`, the
    /// post-processor adds its tokens.
    pub fn encode_text(&self, text: &str, add_special_tokens: bool) -> Result<Vec<u32>> {
        Ok(match self.encode(one(text), add_special_tokens, Vec::new())? {
            Encoded::Ids { ids, .. } => ids,
            Encoded::Partial { encoding, .. } | Encoded::Complete(encoding) => encoding.ids,
        })
    }

    /// Encodes one text to ids, and for each the characters `(start, end)` of the text that it
    /// covers. Both are 0 for a token that the post-processor adds.
    pub fn encode_with_offsets(
        &self,
        text: &str,
        add_special_tokens: bool,
    ) -> Result<(Vec<u32>, Vec<Offsets>)> {
        let encoding = self.encode_fully(one(text), add_special_tokens, true, false)?;
        let offsets = encoding.details.map(|details| details.offsets).unwrap_or_default();
        Ok((encoding.ids, offsets))
    }

    /// Encodes one text from outside: no part of it becomes a special token.
    pub fn encode_ordinary(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_segments(&[Segment::Untrusted(text)])
    }

    /// Encodes the segments of a prompt. Text continues across segments, and no border between two
    /// of them makes a special token. The post-processor adds nothing.
    pub fn encode_segments(&self, segments: &[Segment<'_>]) -> Result<Vec<u32>> {
        let mut prompt = Prompt::with_room(segments.len())?;
        for segment in segments {
            match *segment {
                Segment::Untrusted(text) => prompt.push_text(self, text, &Selection::None)?,
                Segment::Trusted(text) => prompt.push_text(self, text, &Selection::All)?,
                Segment::Special(name) => {
                    let id = self.special_tokens()?.id(name).ok_or_else(|| {
                        Error::Invalid(format!("{name:?} is not a special token of this tokenizer"))
                    })?;
                    prompt.push_special(name, id)?;
                }
            }
        }
        prompt.finish(self)?;
        let mut ids = Vec::new();
        prompt.encode(self, true, &mut ids)?;
        Ok(ids)
    }

    /// True if `id` is a special token.
    pub fn is_special(&self, id: u32) -> bool {
        self.added().token(id).is_some_and(|token| token.special)
    }

    /// Returns a stream that decodes ids after those of `prompt`, whose text it does not return.
    pub fn decode_stream(
        &self,
        prompt: &[u32],
        skip_special_tokens: bool,
    ) -> Result<DecodeStream<'_>> {
        let mut stream = DecodeStream {
            tokenizer: self,
            skip_special_tokens,
            ids: Vec::new(),
            prefix: String::new(),
            returned: 0,
        };
        for &id in prompt {
            push(&mut stream.ids, id)?;
        }
        stream.forget()?;
        Ok(stream)
    }
}

/// One text without a pair.
fn one(text: &str) -> Input<'_> {
    Input { first: Sequence::Text(text), second: None }
}

/// Decodes ids as they arrive; see [`Tokenizer::decode_stream`].
#[derive(Debug, Clone)]
pub struct DecodeStream<'a> {
    tokenizer: &'a Tokenizer,
    skip_special_tokens: bool,
    /// The ids whose text the next one may depend on.
    ids: Vec<u32>,
    /// The text of the first `returned` of `ids`, which was returned.
    prefix: String,
    returned: usize,
}

impl DecodeStream<'_> {
    /// Takes the next id, and returns the text that is certain now: no character that a later id
    /// may complete.
    ///
    /// The texts of all steps are the text of all ids. `None` if nothing is certain yet.
    pub fn step(&mut self, id: u32) -> Result<Option<String>> {
        push(&mut self.ids, id)?;
        let text = self.tokenizer.decode(&self.ids, self.skip_special_tokens)?;
        if text.len() <= self.prefix.len() || text.ends_with(char::REPLACEMENT_CHARACTER) {
            return Ok(None);
        }
        let Some(new) = text.strip_prefix(&self.prefix).map(str::to_owned) else {
            return Err(Error::Invalid(format!(
                "the id {id} changes text that was returned: {:?} became {text:?}; begin a new stream",
                self.prefix
            )));
        };
        // What decoders do to a token may depend on those before it: the ids of this step stay.
        let added = self.ids.len() - self.returned;
        self.ids.drain(..self.returned);
        self.prefix = self.tokenizer.decode(&self.ids, self.skip_special_tokens)?;
        self.returned = added;
        Ok(Some(new))
    }

    /// Takes the ids so far as returned.
    fn forget(&mut self) -> Result<()> {
        let text = self.tokenizer.decode(&self.ids, self.skip_special_tokens)?;
        if !text.ends_with(char::REPLACEMENT_CHARACTER) {
            (self.prefix, self.returned) = (text, self.ids.len());
        }
        Ok(())
    }
}
