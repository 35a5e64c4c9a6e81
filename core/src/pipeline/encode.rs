//! Encodes inputs: chooses the walk over each text, then truncates and post-processes.

use crate::memory::{append, reserve};

use crate::components::arrangement::{Arrangement, RowPart};
use crate::components::encoding::{Encoding, copied, kept_range};
use crate::components::post::{self, kept_lengths, truncation_of_sequences};
use crate::components::spec::{Truncation, TruncationStrategy};
use crate::error::Result;
use crate::pipeline::assembly::{Input, Pipeline, Sequence};
use crate::pipeline::early_end::EarlyEnd;

/// Buffers for texts of up to this many bytes get room for the maximum number of ids, so they never
/// grow.
const SHORT: usize = 4096;

/// An encoded input with the fields that nearly every caller needs; other fields are computed on
/// request.
#[derive(Debug)]
pub enum Encoded {
    /// The ids of a text without truncation and padding. [`Pipeline::encoding_of_ids`] creates the
    /// encoding.
    Ids {
        /// The ids, including ids added by the post-processor.
        ids: Vec<u32>,
        /// Whether all fields are the same as without a post-processor.
        is_plain: bool,
    },
    /// An encoding without token fields and overflow.
    Partial {
        /// The encoding.
        encoding: Box<Encoding>,
        /// Part that truncation cut off.
        cut_off: CutOff,
    },
    /// An encoding with all fields.
    Complete(Box<Encoding>),
}

/// The part of an input that truncation cut off.
#[derive(Debug)]
pub enum CutOff {
    /// Nothing, or text whose overflow is not wanted.
    Nothing,
    /// The sequences before truncation, from which [`Pipeline::post_process`] computes the
    /// overflow.
    Sequences(Vec<Encoding>),
    /// A part that was not encoded. [`Pipeline::encode_fully`] computes the overflow.
    Unread,
}

/// Number of ids that truncation keeps from each sequence in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLengths {
    /// Number of ids of the only or first sequence, and of the second sequence.
    pub sequences: [usize; 2],
    /// Whether there is a second sequence.
    pub is_pair: bool,
}

impl Encoded {
    /// Returns the encoding; `None` for [`Encoded::Ids`].
    pub fn encoding_mut(&mut self) -> Option<&mut Encoding> {
        match self {
            Self::Ids { .. } => None,
            Self::Partial { encoding, .. } | Self::Complete(encoding) => Some(encoding),
        }
    }
}

impl Pipeline {
    /// Encodes one input, without padding and with as few fields as possible.
    ///
    /// Reuses the memory of `ids`, whose contents are lost.
    pub fn encode(
        &self,
        input: Input<'_>,
        add_special_tokens: bool,
        mut ids: Vec<u32>,
    ) -> Result<Encoded> {
        if !self.is_fast() {
            let encoding = self.encode_fully(input, add_special_tokens, true, true)?;
            return Ok(Encoded::Complete(Box::new(encoding)));
        }
        if let Input { first: Sequence::Text(text), second: None } = input
            && self.truncation().is_none()
            && self.padding().is_none()
            && let Some(arrangement) = self.arrangement(false, add_special_tokens)
        {
            ids.clear();
            reserve(&mut ids, text.len().min(SHORT))?;
            let spare = &mut Vec::new();
            self.append_row(input, add_special_tokens, arrangement, spare, &mut ids)?;
            return Ok(Encoded::Ids { ids, is_plain: arrangement.is_plain() });
        }
        let early = self.early_end(input, add_special_tokens);
        let (sequences, is_whole) = self.encode_sequences(input, false, ids, early)?;
        let mut cut_off = CutOff::Nothing;
        if let Some(truncation) = self.truncation().filter(|it| !it.discards_overflow) {
            let total: usize = sequences.iter().map(Encoding::len).sum();
            if !is_whole {
                cut_off = CutOff::Unread;
            } else if total.saturating_add(self.added_tokens(sequences.len() > 1))
                > truncation.max_length
            {
                cut_off = CutOff::Sequences(Encoding::try_clone_all(&sequences)?);
            }
        }
        let encoding = Box::new(self.post_process(sequences, add_special_tokens, false)?);
        Ok(Encoded::Partial { encoding, cut_off })
    }

    /// Returns the arrangement for [`Pipeline::append_row`]; `None` if rows need
    /// [`Pipeline::encode_fully`].
    pub fn row_arrangement(&self, is_pair: bool, add_special_tokens: bool) -> Option<&Arrangement> {
        let drops = |truncation: &Truncation| truncation.discards_overflow;
        let is_fast = self.is_fast() && self.truncation().is_none_or(drops);
        self.arrangement(is_pair, add_special_tokens).filter(|_| is_fast)
    }

    /// Appends the truncated ids of one input in an arrangement, without padding. Reuses the memory
    /// of `spare`, whose contents are lost.
    pub fn append_row(
        &self,
        input: Input<'_>,
        add_special_tokens: bool,
        arrangement: &Arrangement,
        spare: &mut Vec<u32>,
        row: &mut Vec<u32>,
    ) -> Result<RowLengths> {
        let is_pair = input.second.is_some();
        if let Input { first: Sequence::Text(text), second: None } = input
            && self.truncation().is_none()
        {
            let mut length = 0;
            for part in arrangement.parts() {
                match part {
                    RowPart::Special { ids, .. } => row.extend_from_slice(ids),
                    RowPart::Sequence { .. } => {
                        let start = row.len();
                        self.append_ids(text, row)?;
                        length = row.len() - start;
                    }
                }
            }
            return Ok(RowLengths { sequences: [length, 0], is_pair });
        }
        let early = self.early_end(input, add_special_tokens);
        let ids = std::mem::take(spare);
        let (mut sequences, _) = self.encode_sequences(input, false, ids, early)?;
        let mut lengths = [0; 2];
        for (length, sequence) in lengths.iter_mut().zip(&sequences) {
            *length = sequence.len();
        }
        let mut ranges = lengths.map(|length| 0..length);
        let processor = self.post_processor_spec();
        let cut = |it| truncation_of_sequences(it, processor, is_pair, add_special_tokens);
        if let Some(truncation) = self.truncation().and_then(cut) {
            let kept = kept_lengths(&lengths[..sequences.len()], &truncation)?;
            for ((range, length), kept) in ranges.iter_mut().zip(lengths).zip(kept) {
                *range = kept_range(length, kept, truncation.stride, truncation.direction)?;
            }
        }
        for part in arrangement.parts() {
            match part {
                RowPart::Special { ids, .. } => row.extend_from_slice(ids),
                RowPart::Sequence { number, .. } => {
                    let range = ranges.get(*number).cloned().unwrap_or_default();
                    let ids = sequences.get(*number).and_then(|it| it.ids.get(range));
                    append(row, ids.unwrap_or_default())?;
                }
            }
        }
        *spare = sequences.swap_remove(0).ids;
        Ok(RowLengths { sequences: ranges.map(|range| range.len()), is_pair })
    }

    /// Appends the ids of a text, without truncation, padding or post-processing.
    pub fn append_text(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        if self.is_fast() {
            return self.append_ids(text, ids);
        }
        let encoding = self.encode_detailed(text, 0, None)?;
        reserve(ids, encoding.ids.len())?;
        ids.extend_from_slice(&encoding.ids);
        Ok(())
    }

    /// Encodes one input without padding: with tokens, offsets and words if `detailed` is set or
    /// finding the ids requires them, and with overflow if `overflow` is set and the truncation
    /// keeps it.
    pub fn encode_fully(
        &self,
        input: Input<'_>,
        add_special_tokens: bool,
        detailed: bool,
        overflow: bool,
    ) -> Result<Encoding> {
        let keeps_overflow = overflow && self.truncation().is_some_and(|it| !it.discards_overflow);
        let early = if keeps_overflow { None } else { self.early_end(input, add_special_tokens) };
        let detailed = detailed || !self.is_fast();
        let (sequences, _) = self.encode_sequences(input, detailed, Vec::new(), early)?;
        self.post_process(sequences, add_special_tokens, overflow)
    }

    /// Creates the encoding of [`Encoded::Ids`].
    pub fn encoding_of_ids(&self, ids: &[u32], add_special_tokens: bool) -> Result<Encoding> {
        let arrangement = self.arrangement(false, add_special_tokens);
        let (before, after) = arrangement.map(Arrangement::around).unwrap_or_default();
        let text = ids.get(before..ids.len().saturating_sub(after)).unwrap_or_default();
        self.post_process(vec![Encoding::new(copied(text)?, 0, None)], add_special_tokens, false)
    }

    /// Pads the encodings of a batch, if padding is set. Returns the padded length.
    pub fn pad<'a>(&self, batch: impl Iterator<Item = &'a mut Encoding>) -> Result<usize> {
        let Some(padding) = self.padding() else { return Ok(0) };
        post::pad(&mut batch.collect::<Vec<_>>(), padding)
    }

    /// Encodes the sequences of an input, with `early` only as far as truncation needs them. Also
    /// returns whether each sequence is whole.
    pub(crate) fn encode_sequences(
        &self,
        input: Input<'_>,
        detailed: bool,
        ids: Vec<u32>,
        early: Option<EarlyEnd>,
    ) -> Result<(Vec<Encoding>, bool)> {
        let most = early.map_or(usize::MAX, |early| early.tokens_to_exceed(0));
        let Some(second) = input.second else {
            let (only, is_whole) = self.encode_sequence(input.first, 0, detailed, ids, most)?;
            return Ok((vec![only], is_whole));
        };
        let first = |ids, most| self.encode_sequence(input.first, 0, detailed, ids, most);
        let second = |most| self.encode_sequence(second, 1, detailed, Vec::new(), most);
        // First encode the sequence that is never truncated: it determines the room for the other.
        let (first, second) = match early {
            Some(early) if early.strategy == TruncationStrategy::OnlyFirst => {
                let second = second(most)?;
                (first(ids, early.tokens_to_exceed(second.0.len()))?, second)
            }
            Some(early) if early.strategy == TruncationStrategy::OnlySecond => {
                let first = first(ids, most)?;
                let most = early.tokens_to_exceed(first.0.len());
                (first, second(most)?)
            }
            _ => (first(ids, most)?, second(most)?),
        };
        let is_whole = first.1 && second.1;
        let sequences = vec![first.0, second.0];
        if let Some(early) = early
            && !is_whole
            && early.depends_on_lengths(&sequences)
        {
            return self.encode_sequences(input, detailed, Vec::new(), None);
        }
        Ok((sequences, is_whole))
    }

    /// Encodes a sequence, or a prefix of it with at least `most` tokens. Also returns whether the
    /// whole sequence was encoded.
    fn encode_sequence(
        &self,
        sequence: Sequence<'_>,
        type_id: u32,
        detailed: bool,
        mut ids: Vec<u32>,
        most: usize,
    ) -> Result<(Encoding, bool)> {
        match sequence {
            Sequence::Text(whole) => {
                let beginning = self.beginning(whole, most, &mut ids)?;
                let text = beginning.unwrap_or(whole);
                let encoding = if detailed {
                    self.encode_detailed(text, type_id, None)?
                } else {
                    if beginning.is_none() {
                        ids.clear();
                        reserve(&mut ids, text.len().min(SHORT))?;
                        self.append_ids(text, &mut ids)?;
                    }
                    Encoding::new(ids, type_id, None)
                };
                Ok((encoding, beginning.is_none()))
            }
            Sequence::Words(words) => {
                let (mut parts, mut read, mut tokens) = (Vec::new(), 0, 0);
                ids.clear();
                for (number, word) in (0..).zip(words) {
                    if tokens >= most {
                        break;
                    }
                    if detailed {
                        let part = self.encode_detailed(word, type_id, Some(number))?;
                        tokens += part.len();
                        parts.push(part);
                    } else {
                        self.append_ids(word, &mut ids)?;
                        tokens = ids.len();
                    }
                    read += 1;
                }
                let is_whole = read == words.len();
                if detailed {
                    return Ok((Encoding::merge(parts, false)?, is_whole));
                }
                Ok((Encoding::new(ids, type_id, None), is_whole))
            }
        }
    }
}
