//! The result of encoding one input: ids and their fields.

use std::ops::Range;

use crate::memory::{ask_for, reserve};

use crate::components::run_length::Runs;
use crate::components::spec::Direction;
use crate::error::{Error, Result};

/// Texts and origins of tokens. Offsets are in characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct TokenFields {
    pub tokens: Vec<String>,
    pub offsets: Vec<(usize, usize)>,
    pub words: Vec<Option<u32>>,
}

impl TokenFields {
    fn slice(&self, range: Range<usize>) -> Result<Self> {
        Ok(Self {
            tokens: copied_texts(self.tokens[range.clone()].iter())?,
            offsets: copied(&self.offsets[range.clone()])?,
            words: copied(&self.words[range])?,
        })
    }
}

/// Copies items; fails if memory runs out.
pub(crate) fn copied<T: Clone>(items: &[T]) -> Result<Vec<T>> {
    let mut copy = Vec::new();
    reserve(&mut copy, items.len())?;
    copy.extend_from_slice(items);
    Ok(copy)
}

/// Copies texts; fails if memory runs out.
fn copied_texts<'a>(
    texts: impl ExactSizeIterator<Item = &'a String> + Clone,
) -> Result<Vec<String>> {
    /// Minimum size of an allocation.
    const TEXT: usize = 32;
    let bytes = texts.clone().map(|text| size_of::<String>() + text.len().max(TEXT)).sum();
    ask_for(bytes)?;
    Ok(texts.cloned().collect())
}

/// Fields of a token, for computing its minimum memory.
type TokenRow = (u32, String, (usize, usize), Option<u32>);

/// The ids of one or two sequences, with their fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Encoding {
    pub ids: Vec<u32>,
    pub type_ids: Runs<u32>,
    pub special_tokens_mask: Runs<u8>,
    pub attention_mask: Runs<u8>,
    /// `None` if only ids were requested.
    pub token_fields: Option<Box<TokenFields>>,
    /// Parts that truncation cut off.
    pub overflowing: Vec<Encoding>,
    /// Number and token range of each sequence. Empty if the only sequence has all tokens.
    pub sequence_ranges: Vec<(usize, Range<usize>)>,
}

impl Encoding {
    /// Creates an encoding of one sequence.
    pub fn new(ids: Vec<u32>, type_id: u32, token_fields: Option<TokenFields>) -> Self {
        let length = ids.len();
        Self {
            type_ids: Runs::uniform(type_id, length),
            special_tokens_mask: Runs::uniform(0, length),
            attention_mask: Runs::uniform(1, length),
            ids,
            token_fields: token_fields.map(Box::new),
            ..Self::default()
        }
    }

    /// Creates an encoding of special tokens, which have no text.
    pub(crate) fn special(ids: &[u32], tokens: &[String], type_id: u32, detailed: bool) -> Self {
        let token_fields = detailed.then(|| TokenFields {
            tokens: tokens.to_vec(),
            offsets: vec![(0, 0); tokens.len()],
            words: vec![None; tokens.len()],
        });
        let mut encoding = Self::new(ids.to_vec(), type_id, token_fields);
        encoding.special_tokens_mask.fill(1);
        encoding
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether the encoding has no tokens.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns the number of sequences.
    pub fn n_sequences(&self) -> usize {
        self.sequence_ranges.len().max(1)
    }

    /// Assigns all tokens to this sequence.
    pub fn set_sequence_id(&mut self, sequence: usize) {
        let all = 0..self.len();
        match self.sequence_ranges.iter_mut().find(|(number, _)| *number == sequence) {
            Some((_, range)) => *range = all,
            None => self.sequence_ranges.push((sequence, all)),
        }
    }

    /// Returns the token range of a sequence.
    pub fn sequence_range(&self, sequence: usize) -> Range<usize> {
        let found = self.sequence_ranges.iter().find(|(number, _)| *number == sequence);
        found.map_or(0..self.len(), |(_, range)| range.clone())
    }

    /// Returns the sequence of each token.
    pub fn sequence_ids(&self) -> Result<Vec<Option<usize>>> {
        let mut sequences = Vec::new();
        reserve(&mut sequences, self.len())?;
        sequences.resize(self.len(), None);
        for sequence in 0..self.n_sequences() {
            if let Some(part) = sequences.get_mut(self.sequence_range(sequence)) {
                part.fill(Some(sequence));
            }
        }
        Ok(sequences)
    }

    /// Returns the sequence of a token.
    pub fn token_to_sequence(&self, token: usize) -> Option<usize> {
        if token > self.len() {
            None
        } else if self.sequence_ranges.is_empty() {
            Some(0)
        } else {
            let found = self.sequence_ranges.iter().find(|(_, range)| range.contains(&token));
            found.map(|&(sequence, _)| sequence)
        }
    }

    /// Copies the encoding; fails if memory runs out.
    pub fn try_clone(&self) -> Result<Self> {
        /// Maximum size in bytes of the parts copied last, which have one item per run of tokens or
        /// per sequence.
        const SMALL: usize = 4096;
        let ids = copied(&self.ids)?;
        let token_fields = self.token_fields.as_ref();
        let token_fields = token_fields
            .map(|token_fields| token_fields.slice(0..token_fields.tokens.len()))
            .transpose()?;
        let overflowing = Self::try_clone_all(&self.overflowing)?;
        ask_for(SMALL)?;
        Ok(Self {
            ids,
            token_fields: token_fields.map(Box::new),
            overflowing,
            type_ids: self.type_ids.clone(),
            special_tokens_mask: self.special_tokens_mask.clone(),
            attention_mask: self.attention_mask.clone(),
            sequence_ranges: self.sequence_ranges.clone(),
        })
    }

    /// Copies encodings; fails if memory runs out.
    pub fn try_clone_all(encodings: &[Self]) -> Result<Vec<Self>> {
        let mut copies = Vec::new();
        reserve(&mut copies, encodings.len())?;
        for encoding in encodings {
            copies.push(encoding.try_clone()?);
        }
        Ok(copies)
    }

    fn slice(&self, range: Range<usize>) -> Result<Self> {
        Ok(Self {
            ids: copied(&self.ids[range.clone()])?,
            type_ids: self.type_ids.slice(range.clone()),
            special_tokens_mask: self.special_tokens_mask.slice(range.clone()),
            attention_mask: self.attention_mask.slice(range.clone()),
            token_fields: match &self.token_fields {
                Some(token_fields) => Some(Box::new(token_fields.slice(range)?)),
                None => None,
            },
            overflowing: Vec::new(),
            sequence_ranges: Vec::new(),
        })
    }

    /// Truncates to at most `max_length` tokens. With `keeps_overflow`, the rest becomes overflow:
    /// parts of at most `max_length` tokens that overlap by `stride`.
    pub fn truncate(
        &mut self,
        max_length: usize,
        stride: usize,
        direction: Direction,
        keeps_overflow: bool,
    ) -> Result<()> {
        let length = self.len();
        let kept = kept_range(length, max_length, stride, direction)?;
        if kept.len() == length {
            return Ok(());
        }
        if max_length == 0 {
            let whole = std::mem::take(self);
            self.token_fields = whole.token_fields.is_some().then(Box::default);
            if keeps_overflow {
                self.overflowing.push(whole);
            }
            return Ok(());
        }
        if !keeps_overflow {
            *self = self.slice(kept)?;
            return Ok(());
        }
        check_overflow(length.div_ceil(max_length - stride), max_length, length)?;
        let mut parts = Vec::new();
        let mut done = 0;
        loop {
            let (start, end) = (done, (done + max_length).min(length));
            let part = match direction {
                Direction::Right => start..end,
                Direction::Left => length - end..length - start,
            };
            parts.push(self.slice(part)?);
            if end == length {
                break;
            }
            done += max_length - stride;
        }
        let rest = parts.split_off(1);
        if let Some(first) = parts.pop() {
            *self = first;
        }
        self.overflowing = rest;
        Ok(())
    }

    /// Appends another encoding. The overflow of both is combined in all ways.
    pub fn merge_with(&mut self, other: Encoding, growing_offsets: bool) -> Result<()> {
        let (own, more) = (self.overflowing.len(), other.overflowing.len());
        if own > 0 && more > 0 {
            // The combinations can exceed any memory, so check their size first.
            let tokens =
                (own + 1).saturating_mul(more + 1).saturating_mul(self.len() + other.len());
            ask_for(tokens.saturating_mul(size_of::<TokenRow>()))?;
        }
        let combined = |own: &Self, right: &Self| {
            let mut merged = own.try_clone()?;
            merged.merge_with(right.try_clone()?, growing_offsets)?;
            Ok(merged)
        };
        let mut overflowing = Vec::new();
        for own in &self.overflowing {
            for right in std::iter::once(&other).chain(&other.overflowing) {
                overflowing.push(combined(own, right)?);
            }
        }
        for right in &other.overflowing {
            overflowing.push(combined(self, right)?);
        }
        let length = self.len();
        for (sequence, range) in other.sequence_ranges {
            let range = length + range.start..length + range.end;
            match self.sequence_ranges.iter_mut().find(|(number, _)| *number == sequence) {
                Some((_, own)) => *own = range,
                None => self.sequence_ranges.push((sequence, range)),
            }
        }
        reserve(&mut self.ids, other.ids.len())?;
        self.ids.extend(other.ids);
        self.type_ids.append(&other.type_ids);
        self.special_tokens_mask.append(&other.special_tokens_mask);
        self.attention_mask.append(&other.attention_mask);
        if let (Some(own), Some(more)) = (&mut self.token_fields, other.token_fields) {
            let last = own.offsets.last().map_or(0, |offsets| offsets.1);
            let grow = if growing_offsets { last } else { 0 };
            reserve(&mut own.tokens, more.tokens.len())?;
            reserve(&mut own.words, more.words.len())?;
            reserve(&mut own.offsets, more.offsets.len())?;
            own.tokens.extend(more.tokens);
            own.words.extend(more.words);
            own.offsets.extend(more.offsets.iter().map(|&(start, end)| (start + grow, end + grow)));
        }
        self.overflowing = overflowing;
        Ok(())
    }

    /// Concatenates encodings.
    pub fn merge(encodings: Vec<Encoding>, growing_offsets: bool) -> Result<Self> {
        let mut encodings = encodings.into_iter();
        // As if merged into an empty encoding, the first encoding keeps its overflow.
        let Some(mut merged) = encodings.next() else {
            return Ok(Self { token_fields: Some(Box::default()), ..Self::default() });
        };
        for encoding in encodings {
            merged.merge_with(encoding, growing_offsets)?;
        }
        Ok(merged)
    }

    /// Pads to `length` tokens, including the overflow.
    pub fn pad(
        &mut self,
        length: usize,
        id: u32,
        type_id: u32,
        token: &str,
        direction: Direction,
    ) -> Result<()> {
        for encoding in &mut self.overflowing {
            encoding.pad(length, id, type_id, token, direction)?;
        }
        let Some(missing) = length.checked_sub(self.len()).filter(|&missing| missing > 0) else {
            return Ok(());
        };
        reserve(&mut self.ids, missing)?;
        let mut padding = Vec::new();
        if let Some(token_fields) = &mut self.token_fields {
            padding = copied_texts(std::iter::repeat_n(&token.to_owned(), missing))?;
            reserve(&mut token_fields.tokens, missing)?;
            reserve(&mut token_fields.offsets, missing)?;
            reserve(&mut token_fields.words, missing)?;
        }
        fill(&mut self.ids, missing, id, direction);
        fill_runs(&mut self.type_ids, missing, type_id, direction);
        fill_runs(&mut self.special_tokens_mask, missing, 1, direction);
        fill_runs(&mut self.attention_mask, missing, 0, direction);
        if let Some(token_fields) = &mut self.token_fields {
            let at = if direction == Direction::Left { 0 } else { token_fields.tokens.len() };
            token_fields.tokens.splice(at..at, padding);
            fill(&mut token_fields.offsets, missing, (0, 0), direction);
            fill(&mut token_fields.words, missing, None, direction);
        }
        if direction == Direction::Left {
            for (_, range) in &mut self.sequence_ranges {
                *range = range.start + missing..range.end + missing;
            }
        }
        Ok(())
    }
}

/// Returns the range of `length` tokens that truncation to `max_length` keeps. Fails if the range
/// is not longer than the overlap of parts.
pub(crate) fn kept_range(
    length: usize,
    max_length: usize,
    stride: usize,
    direction: Direction,
) -> Result<Range<usize>> {
    if max_length >= length {
        return Ok(0..length);
    }
    if max_length > 0 && stride >= max_length {
        return Err(Error::Invalid(format!(
            "stride must be less than the length to truncate to, which is {max_length} \
             without the tokens that the post-processor adds; it is {stride}"
        )));
    }
    Ok(match direction {
        Direction::Right => 0..max_length,
        Direction::Left => length - max_length..length,
    })
}

/// Fails if `parts` of `max_length` tokens have far more tokens in total than the `length` tokens
/// of the text: parts that overlap almost completely, or all pairs of parts of two texts.
pub(crate) fn check_overflow(parts: usize, max_length: usize, length: usize) -> Result<()> {
    /// Number of overflow tokens that is always allowed, and number allowed per token of the texts.
    const ALWAYS: usize = 1 << 24;
    const EACH: usize = 64;
    let tokens = parts.saturating_mul(max_length);
    if tokens <= ALWAYS.max(length.saturating_mul(EACH)) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "what truncation cuts off of {length} tokens would be {parts} parts of up to {max_length}; \
         take a smaller stride, or cut one text of a pair only: \"only_first\" or \"only_second\""
    )))
}

fn fill<T: Clone>(items: &mut Vec<T>, missing: usize, item: T, direction: Direction) {
    match direction {
        Direction::Right => items.resize(items.len() + missing, item),
        Direction::Left => drop(items.splice(..0, std::iter::repeat_n(item, missing))),
    }
}

fn fill_runs<T>(items: &mut Runs<T>, missing: usize, item: T, direction: Direction)
where
    T: Copy + Default + PartialEq,
{
    match direction {
        Direction::Right => items.push(item, missing),
        Direction::Left => items.prepend(item, missing),
    }
}
