//! Steps after the model: truncation, post-processors, padding.

use std::borrow::BorrowMut;
use std::collections::BTreeMap;

use crate::components::bytes::CHAR_OF;
use crate::components::encoding::{Encoding, check_overflow};
use crate::components::spec::{
    Padding, PaddingStrategy, PostProcessor, SequenceId, TemplatePiece, TemplateToken, Truncation,
    TruncationStrategy,
};
use crate::error::{Error, Result};

impl PostProcessor {
    /// Fails if a template name does not have exactly one token per id. `path` is the path in the
    /// file.
    ///
    /// As in `tokenizers`, a template with an undeclared name or a missing sequence fails when it
    /// is filled.
    pub fn check(&self, path: &str) -> Result<()> {
        match self {
            Self::Sequence { processors } => {
                let mut parts = processors.iter().enumerate();
                parts.try_for_each(|(index, part)| {
                    part.check(&format!("{path}.processors[{index}]"))
                })
            }
            Self::TemplateProcessing { special_tokens, .. } => {
                if let Some((name, token)) =
                    special_tokens.iter().find(|(_, token)| token.ids.len() != token.tokens.len())
                {
                    return Err(Error::unsupported(
                        format!("{path}.special_tokens[{name:?}]"),
                        format!("{} ids with {} tokens", token.ids.len(), token.tokens.len()),
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of tokens added to one sequence, or to a pair.
    pub fn added_tokens(&self, is_pair: bool) -> usize {
        match self {
            Self::ByteLevel { .. } => 0,
            Self::TemplateProcessing { single, pair, special_tokens } => {
                let template = if is_pair { pair } else { single };
                let added = |piece: &TemplatePiece| match piece {
                    TemplatePiece::Sequence { .. } => 0,
                    TemplatePiece::SpecialToken { id, .. } => {
                        special_tokens.get(id).map_or(0, |token| token.ids.len())
                    }
                };
                template.iter().map(added).sum()
            }
            Self::RobertaProcessing { .. } if is_pair => 4,
            Self::BertProcessing { .. } if is_pair => 3,
            Self::RobertaProcessing { .. } | Self::BertProcessing { .. } => 2,
            Self::Sequence { processors } => {
                processors.iter().map(|processor| processor.added_tokens(is_pair)).sum()
            }
        }
    }

    /// Combines one or two sequences into one encoding.
    fn process(&self, mut sequences: Vec<Encoding>, add_special_tokens: bool) -> Result<Encoding> {
        for (number, encoding) in sequences.iter_mut().enumerate() {
            encoding.set_sequence_id(number);
            for part in &mut encoding.overflowing {
                part.set_sequence_id(number);
            }
            encoding.type_ids.fill(number as u32);
        }
        Encoding::merge(self.apply(sequences, add_special_tokens)?, false)
    }

    fn apply(
        &self,
        mut sequences: Vec<Encoding>,
        add_special_tokens: bool,
    ) -> Result<Vec<Encoding>> {
        Ok(match self {
            &Self::ByteLevel { add_prefix_space, trim_offsets, .. } => {
                if trim_offsets {
                    trim_all(&mut sequences, add_prefix_space);
                }
                for (number, encoding) in sequences.iter_mut().enumerate() {
                    encoding.set_sequence_id(number);
                }
                sequences
            }
            Self::TemplateProcessing { single, pair, .. } => {
                let template = if sequences.len() == 1 { single } else { pair };
                self.fill_template(template, sequences, add_special_tokens)?
            }
            Self::RobertaProcessing { sep, cls, trim_offsets, add_prefix_space } => {
                if *trim_offsets {
                    trim_all(&mut sequences, *add_prefix_space);
                }
                for encoding in &mut sequences {
                    encoding.type_ids.fill(0);
                }
                if !add_special_tokens {
                    return Ok(sequences);
                }
                let enclose = |(number, encoding): (usize, Encoding)| {
                    let first = if number == 0 { cls } else { sep };
                    enclosed(encoding, Some(first), sep, number.min(1), Some(0))
                };
                sequences.into_iter().enumerate().map(enclose).collect::<Result<_>>()?
            }
            Self::BertProcessing { .. } if !add_special_tokens => sequences,
            Self::BertProcessing { sep, cls } => {
                let enclose = |(number, encoding): (usize, Encoding)| {
                    let first = (number == 0).then_some(cls);
                    enclosed(encoding, first, sep, number.min(1), None)
                };
                sequences.into_iter().enumerate().map(enclose).collect::<Result<_>>()?
            }
            Self::Sequence { processors } => {
                for part in processors {
                    sequences = part.apply(sequences, add_special_tokens)?;
                }
                sequences
            }
        })
    }

    fn fill_template(
        &self,
        template: &[TemplatePiece],
        mut sequences: Vec<Encoding>,
        add_special_tokens: bool,
    ) -> Result<Vec<Encoding>> {
        let Self::TemplateProcessing { special_tokens, .. } = self else { return Ok(sequences) };
        let detailed = sequences.iter().all(|encoding| encoding.token_fields.is_some());
        let mut filled = Vec::with_capacity(template.len());
        let is_sequence = |piece: &TemplatePiece, wanted: SequenceId| matches!(piece, TemplatePiece::Sequence { id, .. } if *id == wanted);
        for (place, piece) in template.iter().enumerate() {
            match piece {
                TemplatePiece::Sequence { id, type_id } => {
                    let number = usize::from(*id == SequenceId::B);
                    let Some(encoding) = sequences.get_mut(number) else {
                        return Err(Error::Invalid(
                            "post_processor: the template for one sequence uses a second one"
                                .into(),
                        ));
                    };
                    encoding.type_ids.fill(*type_id);
                    encoding.set_sequence_id(number);
                    let is_last = !template[place + 1..].iter().any(|p| is_sequence(p, *id));
                    filled.push(match is_last {
                        true => std::mem::take(encoding),
                        false => encoding.try_clone()?,
                    });
                }
                TemplatePiece::SpecialToken { id, type_id } if add_special_tokens => {
                    let TemplateToken { ids, tokens, .. } = named(special_tokens, id)?;
                    filled.push(Encoding::special(ids, tokens, *type_id, detailed));
                }
                TemplatePiece::SpecialToken { .. } => {}
            }
        }
        Ok(filled)
    }
}

fn named<'a>(tokens: &'a BTreeMap<String, TemplateToken>, name: &str) -> Result<&'a TemplateToken> {
    tokens.get(name).ok_or_else(|| {
        Error::Invalid(format!(
            "post_processor: the template names {name:?}, which its special_tokens lack"
        ))
    })
}

/// Adds a token after a sequence and its overflow, and a token before if `first` is given. If an
/// earlier template made more than two sequences, all sequences after the first count as the
/// second.
fn enclosed(
    mut encoding: Encoding,
    first: Option<&(String, u32)>,
    last: &(String, u32),
    number: usize,
    type_id: Option<u32>,
) -> Result<Encoding> {
    let overflowing = std::mem::take(&mut encoding.overflowing);
    let detailed = encoding.token_fields.is_some();
    let special = |(token, id): &(String, u32)| {
        let type_id = type_id.unwrap_or(number as u32);
        Encoding::special(&[*id], std::slice::from_ref(token), type_id, detailed)
    };
    let length = encoding.len();
    let from = usize::from(first.is_some());
    if let Some(type_id) = type_id {
        encoding.type_ids.fill(type_id);
    }
    encoding.special_tokens_mask.fill(0);
    encoding.attention_mask.fill(1);
    encoding.sequence_ranges.clear();
    let parts = first.map(special).into_iter().chain([encoding, special(last)]);
    let mut whole = Encoding::merge(parts.collect(), false)?;
    whole.sequence_ranges = vec![(number, from..from + length)];
    let part = |mut encoding: Encoding| {
        // Drops overflow of overflow, which occurs only in encodings post-processed earlier.
        encoding.overflowing.clear();
        enclosed(encoding, first, last, number, type_id)
    };
    whole.overflowing = overflowing.into_iter().map(part).collect::<Result<_>>()?;
    Ok(whole)
}

fn trim_all(encodings: &mut [Encoding], add_prefix_space: bool) {
    for encoding in encodings {
        trim(encoding, add_prefix_space);
        for part in &mut encoding.overflowing {
            trim(part, add_prefix_space);
        }
    }
}

/// Excludes whitespace at the ends of tokens from their offsets.
fn trim(encoding: &mut Encoding, add_prefix_space: bool) {
    let Some(token_fields) = &mut encoding.token_fields else { return };
    let is_space = |c: &char| *c == CHAR_OF[usize::from(b' ')] || c.is_whitespace();
    for (index, (token, offsets)) in
        token_fields.tokens.iter().zip(&mut token_fields.offsets).enumerate()
    {
        let mut leading = token.chars().take_while(is_space).count();
        let trailing = token.chars().rev().take_while(is_space).count();
        if leading > 0 {
            // A single space at the start of the text was added by `add_prefix_space`.
            let is_first = index == 0 || offsets.0 == 0;
            if is_first && add_prefix_space && leading == 1 {
                leading = 0;
            }
            offsets.0 = (offsets.0 + leading).min(offsets.1);
        }
        if trailing > 0 && offsets.1 >= trailing {
            offsets.1 = (offsets.1 - trailing).max(offsets.0);
        }
    }
}

fn truncate(sequences: &mut [Encoding], params: &Truncation) -> Result<()> {
    let lengths: Vec<usize> = sequences.iter().map(Encoding::len).collect();
    let kept = kept_lengths(&lengths, params)?;
    for (encoding, length) in sequences.iter_mut().zip(kept) {
        encoding.truncate(length, params.stride, params.direction, !params.discards_overflow)?;
    }
    let total: usize = lengths.iter().sum();
    match sequences {
        [first, second]
            if params.strategy == TruncationStrategy::LongestFirst
                && (1..total).contains(&params.max_length) =>
        {
            // Overflow combines each part of one text with each part of the other text.
            let parts = (first.overflowing.len() + 1).saturating_mul(second.overflowing.len() + 1);
            check_overflow(parts, params.max_length, total)
        }
        _ => Ok(()),
    }
}

/// Returns the lengths to which truncation cuts one or two sequences of these lengths; at least the
/// current length for sequences that stay whole.
pub(crate) fn kept_lengths(lengths: &[usize], params: &Truncation) -> Result<[usize; 2]> {
    let max_length = params.max_length;
    let total: usize = lengths.iter().sum();
    if max_length == 0 {
        return Ok([0, 0]);
    }
    let all = [lengths.first(), lengths.get(1)].map(|length| length.copied().unwrap_or(0));
    let Some(excess) = total.checked_sub(max_length).filter(|&excess| excess > 0) else {
        return Ok(all);
    };
    match (params.strategy, lengths) {
        (TruncationStrategy::LongestFirst, [only]) => Ok([only - excess, 0]),
        (TruncationStrategy::LongestFirst, &[first, second]) => {
            let shorter = first.min(second);
            let mut kept = if shorter > max_length {
                [shorter, shorter]
            } else {
                [shorter, shorter.max(max_length - shorter)]
            };
            if kept[0] + kept[1] > max_length {
                kept = [max_length / 2, max_length / 2 + max_length % 2];
            }
            if first > second {
                kept.reverse();
            }
            Ok(kept)
        }
        (TruncationStrategy::OnlyFirst, [target, ..])
        | (TruncationStrategy::OnlySecond, [_, target]) => match target.checked_sub(excess) {
            Some(length @ 1..) => Ok(match params.strategy {
                TruncationStrategy::OnlySecond => [all[0], length],
                _ => [length, all[1]],
            }),
            _ => Err(Error::Invalid(
                "Truncation error: Sequence to truncate too short to respect the provided max_length"
                    .into(),
            )),
        },
        _ => Err(Error::Invalid("Truncation error: Second sequence not provided".into())),
    }
}

/// Returns the truncation to apply before special tokens are added; `None` if, as in `tokenizers`,
/// sequences stay whole because even the added tokens do not fit.
pub(crate) fn truncation_of_sequences(
    truncation: &Truncation,
    processor: Option<&PostProcessor>,
    is_pair: bool,
    add_special_tokens: bool,
) -> Option<Truncation> {
    let added = processor.filter(|_| add_special_tokens).map_or(0, |it| it.added_tokens(is_pair));
    let max_length = truncation.max_length.checked_sub(added)?;
    Some(Truncation { max_length, ..truncation.clone() })
}

impl Truncation {
    /// Fails if parts with `added` tokens each cannot overlap by `stride`.
    pub fn check(&self, added: usize) -> Result<()> {
        match self.max_length.checked_sub(added) {
            Some(effective) if effective < self.stride => Err(Error::Invalid(format!(
                "tokenizer stride set to {}, which is greater than or equal to its effective max \
                 length of {effective} (= {} original max length - {added} added special tokens), ",
                self.stride, self.max_length
            ))),
            _ => Ok(()),
        }
    }
}

/// Truncates and post-processes one sequence, or a pair.
pub fn post_process(
    mut sequences: Vec<Encoding>,
    truncation: Option<&Truncation>,
    processor: Option<&PostProcessor>,
    add_special_tokens: bool,
) -> Result<Encoding> {
    let is_pair = sequences.len() > 1;
    let cut = |it| truncation_of_sequences(it, processor, is_pair, add_special_tokens);
    if let Some(truncation) = truncation.and_then(cut) {
        truncate(&mut sequences, &truncation)?;
    }
    match processor {
        Some(processor) => processor.process(sequences, add_special_tokens),
        None if sequences.len() == 1 => Ok(sequences.remove(0)),
        None => {
            for (number, encoding) in sequences.iter_mut().enumerate() {
                encoding.set_sequence_id(number);
            }
            Encoding::merge(sequences, false)
        }
    }
}

/// Pads the encodings of a batch. Returns the padded length.
pub fn pad<E: BorrowMut<Encoding>>(encodings: &mut [E], padding: &Padding) -> Result<usize> {
    let longest = encodings.iter().map(|encoding| encoding.borrow().len()).max();
    let length = padded_length(longest.unwrap_or(0), padding);
    for encoding in encodings {
        pad_to(encoding.borrow_mut(), length, padding)?;
    }
    Ok(length)
}

/// Pads one encoding to the length of its batch.
pub(crate) fn pad_to(encoding: &mut Encoding, length: usize, padding: &Padding) -> Result<()> {
    let Padding { pad_id, pad_type_id, pad_token, direction, .. } = padding;
    encoding.pad(length, *pad_id, *pad_type_id, pad_token, *direction)
}

/// Returns the padded length of a batch's rows, given the length of the longest row.
pub fn padded_length(longest: usize, padding: &Padding) -> usize {
    let length = match padding.strategy {
        PaddingStrategy::Fixed(length) => length,
        PaddingStrategy::BatchLongest => longest,
    };
    match padding.pad_to_multiple_of {
        // If the length overflows, use a length for which allocation fails.
        Some(multiple @ 1..) => length.checked_next_multiple_of(multiple).unwrap_or(usize::MAX),
        _ => length,
    }
}
