//! Inputs to encodings, without padding.

use std::borrow::Cow;

use crate::encoding::Encoding;
use crate::error::Result;
use crate::post;
use crate::tokenizer::{Input, Sequence, Tokenizer};

/// Texts of up to this many bytes are encoded without the ids being moved.
const SHORT: usize = 4096;

impl Tokenizer {
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
    /// make it of, nothing where there is none. The ids are written into `ids`, whatever it holds,
    /// where that can be.
    pub fn encode_lazily(
        &self,
        input: Input<'_>,
        add_special_tokens: bool,
        detailed: bool,
        ids: Vec<u32>,
    ) -> Result<(Encoding, Vec<Encoding>)> {
        let first = self.encode_sequence(input.first, 0, detailed, ids)?;
        let (truncation, processor) = (self.truncation(), self.post_processor_spec());
        if input.second.is_none() && truncation.is_none() && processor.is_none() {
            return Ok((first, Vec::new()));
        }
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
                whole = sequences.clone();
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
                let words = (0..).zip(words);
                let encode = |(number, word): (u32, &String)| {
                    self.encode_text(word, type_id, Some(number), detailed, Vec::new())
                };
                let mut merged = Encoding::merge(words.map(encode).collect::<Result<_>>()?, false)?;
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
        ids.clear();
        // Short texts have room for the most ids that they can have.
        ids.reserve(text.len().min(SHORT));
        self.append_ids(text, &mut ids)?;
        Ok(Encoding::new(ids, type_id, None))
    }
}
