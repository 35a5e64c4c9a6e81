//! Inputs to encodings.

use std::borrow::Cow;

use bpe_core::memory::reserve;

use crate::encoding::{Encoding, copied};
use crate::error::Result;
use crate::post;
use crate::tokenizer::{Input, Sequence, Tokenizer};

/// Texts of up to this many bytes are encoded without the ids being moved.
const SHORT: usize = 4096;

/// An input, encoded as far as nearly every caller needs it.
#[derive(Debug)]
pub enum Encoded {
    /// The ids of a text that neither truncation nor padding nor the post-processor changes:
    /// [`Tokenizer::plain`] makes the encoding of them.
    Plain(Vec<u32>),
    /// An encoding, and the sequences that its overflow can be made of.
    Whole(Box<Encoding>, Vec<Encoding>),
}

impl Encoded {
    fn whole_mut(&mut self) -> Option<&mut Encoding> {
        match self {
            Self::Plain(_) => None,
            Self::Whole(encoding, _) => Some(encoding),
        }
    }
}

impl Tokenizer {
    /// Encodes one input without details and without overflow, and without padding. The ids are
    /// written into `ids`, whatever it holds, where that can be.
    pub fn encode(
        &self,
        input: Input<'_>,
        add_special_tokens: bool,
        mut ids: Vec<u32>,
    ) -> Result<Encoded> {
        if let Input { first: Sequence::Text(text), second: None } = input
            && self.is_plain(add_special_tokens)
        {
            self.replace_ids(text, &mut ids)?;
            return Ok(Encoded::Plain(ids));
        }
        let (encoding, whole) = self.encode_lazily(input, add_special_tokens, false, ids)?;
        Ok(Encoded::Whole(Box::new(encoding), whole))
    }

    /// Whether the encoding of a text is that of [`Tokenizer::plain`].
    fn is_plain(&self, add_special_tokens: bool) -> bool {
        let processor = self.post_processor_spec();
        self.truncation().is_none()
            && self.padding().is_none()
            && processor.is_none_or(|processor| processor.keeps_text(add_special_tokens))
            && self.is_fast()
    }

    /// The encoding of ids that are [`Encoded::Plain`].
    pub fn plain(&self, ids: &[u32]) -> Result<Encoding> {
        let mut encoding = Encoding::new(copied(ids)?, 0, None);
        if self.post_processor_spec().is_some() {
            encoding.set_sequence_id(0);
        }
        Ok(encoding)
    }

    /// Fills up what [`Tokenizer::encode`] made as one batch, if that is asked for. Returns the
    /// length.
    pub fn pad_encoded(&self, encoded: &mut [Encoded]) -> Result<usize> {
        let Some(padding) = self.padding() else { return Ok(0) };
        let mut encodings: Vec<&mut Encoding> = Vec::new();
        reserve(&mut encodings, encoded.len())?;
        encodings.extend(encoded.iter_mut().filter_map(Encoded::whole_mut));
        post::pad(&mut encodings, padding)
    }

    /// Encodes one input, without padding. Without details where only ids are asked for and no step
    /// needs more.
    pub fn encode_unpadded(
        &self,
        input: Input<'_>,
        add_special_tokens: bool,
        detailed: bool,
    ) -> Result<Encoding> {
        let mut sequences = vec![self.encode_sequence(input.first, 0, detailed, Vec::new())?];
        if let Some(second) = input.second {
            sequences.push(self.encode_sequence(second, 1, detailed, Vec::new())?);
        }
        self.post_process(sequences, add_special_tokens)
    }

    /// The same for callers that may never ask for overflow. It is made only with details that were
    /// not asked for; beside an encoding without details comes what [`Tokenizer::post_process`] can
    /// make it of, nothing where there is none. `ids` is as for [`Tokenizer::encode`].
    pub fn encode_lazily(
        &self,
        input: Input<'_>,
        add_special_tokens: bool,
        detailed: bool,
        ids: Vec<u32>,
    ) -> Result<(Encoding, Vec<Encoding>)> {
        let first = self.encode_sequence(input.first, 0, detailed, ids)?;
        let (truncation, processor) = (self.truncation(), self.post_processor_spec());
        let mut sequences = vec![first];
        if let Some(second) = input.second {
            sequences.push(self.encode_sequence(second, 1, detailed, Vec::new())?);
        }
        let has_details = sequences.iter().any(|sequence| sequence.details.is_some());
        let mut truncation = truncation.map(Cow::Borrowed);
        let mut whole = Vec::new();
        if let Some(truncation) = &mut truncation
            && !truncation.discards_overflow
            && has_details == detailed
        {
            let added = self.added_tokens(sequences.len() > 1);
            let total: usize = sequences.iter().map(Encoding::len).sum();
            if !detailed && total.saturating_add(added) > truncation.max_length {
                whole = Encoding::try_clone_all(&sequences)?;
            }
            truncation.to_mut().discards_overflow = true;
        }
        let encoding =
            post::post_process(sequences, truncation.as_deref(), processor, add_special_tokens)?;
        Ok((encoding, whole))
    }

    fn encode_sequence(
        &self,
        sequence: Sequence<'_>,
        type_id: u32,
        detailed: bool,
        ids: Vec<u32>,
    ) -> Result<Encoding> {
        match sequence {
            Sequence::Text(text) => self.encode_text(text, type_id, None, detailed, ids),
            Sequence::Words(words) => {
                let mut parts = Vec::new();
                reserve(&mut parts, words.len())?;
                for (number, word) in (0..).zip(words) {
                    parts.push(self.encode_text(
                        word,
                        type_id,
                        Some(number),
                        detailed,
                        Vec::new(),
                    )?);
                }
                let mut merged = Encoding::merge(parts, false)?;
                if !detailed && self.is_fast() {
                    merged.details = None;
                }
                Ok(merged)
            }
        }
    }

    fn encode_text(
        &self,
        text: &str,
        type_id: u32,
        word: Option<u32>,
        detailed: bool,
        mut ids: Vec<u32>,
    ) -> Result<Encoding> {
        if detailed || !self.is_fast() {
            return self.encode_detailed(text, type_id, word);
        }
        self.replace_ids(text, &mut ids)?;
        Ok(Encoding::new(ids, type_id, None))
    }

    /// The ids of a text in place of what `ids` holds.
    fn replace_ids(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        ids.clear();
        // Short texts have room for the most ids that they can have.
        reserve(ids, text.len().min(SHORT))?;
        self.append_ids(text, ids)
    }
}
