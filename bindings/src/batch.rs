//! Batches for `bpe_engine.Tokenizer`: texts and pairs become rows of ids, cut and filled up as
//! `bpe_hf::post` does it, whether a tokenizer file or a vocabulary by itself finds the ids.

use bpe_core::Request;
use bpe_core::memory::reserve;
use bpe_core::offsets::Characters;
use bpe_hf::encoding::Details;
use bpe_hf::post;
use bpe_hf::runs::Runs;
use bpe_hf::spec::{Padding, PaddingStrategy, PostProcessor, Truncation};
use bpe_hf::{Encoding, Input, Sequence, Tokenizer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList};

use crate::core_bpe::CoreBpe;
use crate::errors::{OrRaise, to_python};
use crate::hf::input::GivenInput;
use crate::hf::{self, HfEncoding, HfTokenizer, OrRaise as _};
use crate::objects::{collected, list_of_spans, new_list, push};
use crate::{gil, ids, int_cache, rows};

/// How long rows may be, how their parts overlap, which of a pair is cut, and on which side.
type Cut = (usize, usize, String, String);

/// The length to fill up to (None: that of the longest row), the side, what the length is a
/// multiple of, and the id, type and name of the token to fill up with.
type Fill = (Option<usize>, String, Option<usize>, u32, u32, String);

/// Rows of ids, and what goes with each id.
#[pyclass(frozen, name = "EncodedRows", module = "bpe_engine._core")]
pub struct EncodedRows {
    rows: Vec<Encoding>,
    /// The input that each row is of.
    samples: Vec<usize>,
}

/// What a vocabulary by itself does with a batch.
struct Plain<'a> {
    encoding: &'a bpe_core::Encoding,
    request: Request,
    truncation: Option<Truncation>,
    processor: Option<PostProcessor>,
    add_special_tokens: bool,
    detailed: bool,
}

/// An error of either way.
enum BatchError {
    Core(bpe_core::Error),
    Hf(bpe_hf::Error),
}

impl From<bpe_core::Error> for BatchError {
    fn from(error: bpe_core::Error) -> Self {
        Self::Core(error)
    }
}

impl From<bpe_hf::Error> for BatchError {
    fn from(error: bpe_hf::Error) -> Self {
        Self::Hf(error)
    }
}

impl Plain<'_> {
    fn encode(&self, input: Input<'_>) -> Result<Encoding, BatchError> {
        let mut sequences = vec![self.sequence(input.first, 0)?];
        if let Some(second) = input.second {
            sequences.push(self.sequence(second, 1)?);
        }
        let (truncation, processor) = (self.truncation.as_ref(), self.processor.as_ref());
        Ok(post::post_process(sequences, truncation, processor, self.add_special_tokens)?)
    }

    fn sequence(&self, sequence: Sequence<'_>, type_id: u32) -> Result<Encoding, BatchError> {
        match sequence {
            Sequence::Text(text) => self.text(text, type_id, None),
            Sequence::Words(words) => {
                let parts = (0..).zip(words);
                let parts = parts.map(|(number, word)| self.text(word, type_id, Some(number)));
                let mut merged = Encoding::merge(parts.collect::<Result<_, _>>()?, false)?;
                if !self.detailed {
                    merged.details = None;
                }
                Ok(merged)
            }
        }
    }

    fn text(&self, text: &str, type_id: u32, word: Option<u32>) -> Result<Encoding, BatchError> {
        if !self.detailed {
            let mut ids = Vec::new();
            self.encoding.encode(text, &self.request, &mut ids)?;
            return Ok(Encoding::new(ids, type_id, None));
        }
        let aligned = self.encoding.encode_aligned(text, &self.request)?;
        let (mut starts, mut ends) = (Characters::new(text), Characters::new(text));
        let mut details = Details::default();
        for (span, &id) in aligned.spans(self.encoding).zip(&aligned.ids) {
            let span = span?;
            details.offsets.push((starts.index(span.start), ends.index(span.end)));
            details.tokens.push(token_text(self.encoding, id));
            details.words.push(word);
        }
        Ok(Encoding::new(aligned.ids, type_id, Some(details)))
    }
}

/// A token as byte-level vocabularies write it; a special token as its name.
fn token_text(encoding: &bpe_core::Encoding, id: u32) -> String {
    match encoding.special_tokens().name(id) {
        Some(name) => name.to_owned(),
        None => bpe_hf::text_of(encoding.token_bytes(id).unwrap_or_default()),
    }
}

/// The rows of a batch.
///
/// `source` is a `CoreBPE`, for which the arguments from `post_processor` on count, or an
/// `HfTokenizer`, for which `encode_special_tokens` does. With `detailed`, offsets and tokens can
/// be had. With `overflow`, what truncation cuts off becomes rows, too.
#[pyfunction]
#[pyo3(signature = (source, inputs, *, is_pretokenized, add_special_tokens, truncation, padding,
    detailed, overflow, num_threads, encode_special_tokens=false, post_processor=None,
    allowed_special=None, disallowed_special=None))]
#[allow(clippy::too_many_arguments)]
pub fn encode_rows(
    source: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyAny>,
    is_pretokenized: bool,
    add_special_tokens: bool,
    truncation: Option<Cut>,
    padding: Option<Fill>,
    detailed: bool,
    overflow: bool,
    num_threads: &Bound<'_, PyAny>,
    encode_special_tokens: bool,
    post_processor: Option<&str>,
    allowed_special: Option<&Bound<'_, PyAny>>,
    disallowed_special: Option<&Bound<'_, PyAny>>,
) -> PyResult<EncodedRows> {
    let py = source.py();
    let threads = rows::threads(num_threads)?;
    let inputs = inputs.try_iter()?.map(|item| GivenInput::read(&item?, is_pretokenized));
    let inputs = collected(py, inputs)?;
    let truncation = truncation.map(|cut| read_cut(cut, overflow)).transpose()?;
    let encodings = if let Ok(core) = source.cast::<CoreBpe>() {
        let core = core.get();
        let plain = Plain {
            encoding: core.encoding(),
            request: crate::request::read_optional(
                core.encoding().special_tokens(),
                allowed_special,
                disallowed_special,
            )?,
            truncation,
            processor: post_processor
                .map(|json| hf::component(json, "post_processor"))
                .transpose()?,
            add_special_tokens,
            detailed,
        };
        if let Some(truncation) = &plain.truncation {
            let added =
                plain.processor.as_ref().map_or(0, |processor| processor.added_tokens(false));
            truncation.check(added).or_raise()?;
        }
        hf::encode_each(
            py,
            &inputs,
            threads,
            |input| plain.encode(input),
            |error| match error {
                BatchError::Core(error) => to_python(py, error),
                BatchError::Hf(error) => hf::to_python(error),
            },
        )?
    } else if let Ok(tokenizer) = source.cast::<HfTokenizer>() {
        let mut tokenizer = Tokenizer::clone(&tokenizer.get().current());
        tokenizer.set_truncation(truncation).or_raise()?;
        if tokenizer.encodes_special_tokens() != encode_special_tokens {
            tokenizer.set_encode_special_tokens(encode_special_tokens);
        }
        let encode =
            |input: Input<'_>| tokenizer.encode_unpadded(input, add_special_tokens, detailed);
        hf::encode_each(py, &inputs, threads, encode, hf::to_python)?
    } else {
        return Err(PyTypeError::new_err("the source must be a CoreBPE or an HfTokenizer"));
    };
    let mut rows = EncodedRows::new(py, encodings, overflow)?;
    if let Some(fill) = padding {
        rows.fill(py, read_fill(fill)?)?;
    }
    Ok(rows)
}

/// Rows of ids that were made before, cut and filled up. The other fields are of one length with the
/// ids, row by row; where there is none, it is what `encode_rows` gives ids of text.
#[pyfunction]
#[pyo3(signature = (input_ids, *, token_type_ids, attention_mask, special_tokens_mask, truncation,
    padding))]
pub fn arrange_rows(
    py: Python<'_>,
    input_ids: &Bound<'_, PyAny>,
    token_type_ids: Option<&Bound<'_, PyAny>>,
    attention_mask: Option<&Bound<'_, PyAny>>,
    special_tokens_mask: Option<&Bound<'_, PyAny>>,
    truncation: Option<Cut>,
    padding: Option<Fill>,
) -> PyResult<EncodedRows> {
    let mut encodings = Vec::new();
    for ids in input_ids.try_iter()? {
        push(py, &mut encodings, Encoding::new(ids::read_iterable(&ids?)?, 0, None))?;
    }
    let set = |encodings: &mut [Encoding], name: &str, values: Option<&Bound<'_, PyAny>>| {
        let Some(values) = values else { return Ok(()) };
        for (row, values) in values.try_iter()?.enumerate() {
            let values = ids::read_iterable(&values?)?;
            let encoding = encodings.get_mut(row).filter(|row| row.len() == values.len());
            let Some(encoding) = encoding else {
                return Err(PyValueError::new_err(format!(
                    "row {row} of {name} is not as long as that of input_ids"
                )));
            };
            match name {
                "token_type_ids" => encoding.type_ids = values.into_iter().collect(),
                "attention_mask" => encoding.attention_mask = flags(name, &values)?,
                _ => encoding.special_tokens_mask = flags(name, &values)?,
            }
        }
        Ok(())
    };
    set(&mut encodings, "token_type_ids", token_type_ids)?;
    set(&mut encodings, "attention_mask", attention_mask)?;
    set(&mut encodings, "special_tokens_mask", special_tokens_mask)?;
    if let Some(cut) = truncation.map(|cut| read_cut(cut, false)).transpose()? {
        for encoding in &mut encodings {
            encoding.truncate(cut.max_length, cut.stride, cut.direction, false).or_raise()?;
        }
    }
    let mut rows = EncodedRows::new(py, encodings, false)?;
    if let Some(fill) = padding {
        rows.fill(py, read_fill(fill)?)?;
    }
    Ok(rows)
}

fn flags(name: &str, values: &[u32]) -> PyResult<Runs<u8>> {
    let flag = |&value: &u32| {
        u8::try_from(value)
            .map_err(|_| PyValueError::new_err(format!("{name} holds {value}; it has 0 and 1")))
    };
    values.iter().map(flag).collect()
}

fn read_cut(cut: Cut, keeps_overflow: bool) -> PyResult<Truncation> {
    let (max_length, stride, strategy, direction) = cut;
    let (direction, strategy) = (hf::direction(&direction)?, hf::truncation_strategy(&strategy)?);
    let discards_overflow = !keeps_overflow;
    Ok(Truncation { direction, max_length, strategy, stride, discards_overflow })
}

fn read_fill(fill: Fill) -> PyResult<Padding> {
    let (length, direction, pad_to_multiple_of, pad_id, pad_type_id, pad_token) = fill;
    Ok(Padding {
        strategy: length.map_or(PaddingStrategy::BatchLongest, PaddingStrategy::Fixed),
        direction: hf::direction(&direction)?,
        pad_to_multiple_of,
        pad_id,
        pad_type_id,
        pad_token,
    })
}

impl EncodedRows {
    /// One row for each encoding, and with `overflow` one for each part that was cut off.
    fn new(py: Python<'_>, encodings: Vec<Encoding>, overflow: bool) -> PyResult<Self> {
        if !overflow {
            return Ok(Self { rows: encodings, samples: Vec::new() });
        }
        let (mut rows, mut samples) = (Vec::new(), Vec::new());
        let count = encodings.iter().map(|encoding| 1 + encoding.overflowing.len()).sum();
        reserve(&mut rows, count).or_raise(py)?;
        reserve(&mut samples, count).or_raise(py)?;
        for (sample, mut encoding) in encodings.into_iter().enumerate() {
            let parts = std::mem::take(&mut encoding.overflowing);
            rows.push(encoding);
            rows.extend(parts);
            samples.resize(rows.len(), sample);
        }
        Ok(Self { rows, samples })
    }

    fn fill(&mut self, py: Python<'_>, padding: Padding) -> PyResult<()> {
        let length = post::padded_length(&self.rows, &padding);
        let missing: usize = self
            .rows
            .iter()
            .map(|row| length.saturating_sub(row.len()))
            .fold(0, usize::saturating_add);
        // A length is a number that costs nothing to write down: whether there is memory for it
        // is asked for first.
        const BYTES: usize = 2 * size_of::<u32>() + 2;
        reserve(&mut Vec::<u8>::new(), missing.saturating_mul(BYTES)).or_raise(py)?;
        gil::run(py, missing, || Ok(post::pad(&mut self.rows, &padding)))?
            .map_err(hf::to_python)?;
        Ok(())
    }

    /// The numbers of a row that go by this name.
    fn field(&self, name: &str) -> PyResult<fn(&Encoding) -> Numbers<'_>> {
        match name {
            "input_ids" => Ok(|row| Numbers::Ids(&row.ids)),
            "token_type_ids" => Ok(|row| Numbers::Types(&row.type_ids)),
            "attention_mask" => Ok(|row| Numbers::Flags(&row.attention_mask)),
            "special_tokens_mask" => Ok(|row| Numbers::Flags(&row.special_tokens_mask)),
            _ => Err(PyValueError::new_err(format!("rows have no field {name:?}"))),
        }
    }
}

enum Numbers<'a> {
    Ids(&'a [u32]),
    Types(&'a Runs<u32>),
    Flags(&'a Runs<u8>),
}

impl Numbers<'_> {
    fn append_to(&self, numbers: &mut Vec<u32>) {
        match self {
            Self::Ids(ids) => numbers.extend_from_slice(ids),
            Self::Types(types) => numbers.extend(types.iter()),
            Self::Flags(flags) => numbers.extend(flags.iter().map(u32::from)),
        }
    }

    /// Writes 64-bit numbers.
    fn write_to(&self, room: &mut [u8]) {
        let (places, _) = room.as_chunks_mut::<8>();
        match self {
            Self::Ids(ids) => {
                for (place, &id) in places.iter_mut().zip(*ids) {
                    *place = i64::from(id).to_ne_bytes();
                }
            }
            Self::Types(types) => fill(places, types.runs().map(|(kind, n)| (kind.into(), n))),
            Self::Flags(flags) => fill(places, flags.runs().map(|(flag, n)| (flag.into(), n))),
        }
    }
}

/// Writes runs of a value.
fn fill(mut places: &mut [[u8; 8]], runs: impl Iterator<Item = (i64, usize)>) {
    for (value, length) in runs {
        let Some((first, rest)) = places.split_at_mut_checked(length) else { return };
        first.fill(value.to_ne_bytes());
        places = rest;
    }
}

#[pymethods]
impl EncodedRows {
    fn __len__(&self) -> usize {
        self.rows.len()
    }

    /// How many ids each row has.
    fn lengths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let lengths = collected(py, self.rows.iter().map(|row| Ok(row.len())))?;
        int_cache::positions(py, &lengths)
    }

    /// The input that each row is of, if overflow was asked for.
    fn samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        int_cache::positions(py, &self.samples)
    }

    /// A field as lists.
    fn lists<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let field = self.field(name)?;
        let (mut numbers, mut lists) = (Vec::new(), Vec::new());
        reserve(&mut lists, self.rows.len()).or_raise(py)?;
        for row in &self.rows {
            numbers.clear();
            reserve(&mut numbers, row.len()).or_raise(py)?;
            field(row).append_to(&mut numbers);
            int_cache::append_lists(py, std::iter::once(&numbers[..]), &mut lists)?;
        }
        new_list(py, lists)
    }

    /// A field as the bytes of 64-bit numbers, and the length that all rows have. None if they are
    /// of different lengths.
    fn matrix<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Option<(Bound<'py, PyByteArray>, usize)>> {
        let field = self.field(name)?;
        let length = self.rows.first().map_or(0, Encoding::len);
        if self.rows.iter().any(|row| row.len() != length) {
            return Ok(None);
        }
        let width = length * size_of::<i64>();
        let bytes = PyByteArray::new_with(py, width * self.rows.len(), |bytes| {
            if width > 0 {
                for (row, room) in self.rows.iter().zip(bytes.chunks_exact_mut(width)) {
                    field(row).write_to(room);
                }
            }
            Ok(())
        })?;
        Ok(Some((bytes, length)))
    }

    /// Where in its text each token stands, in characters; of detailed rows.
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let lists = PyList::empty(py);
        for row in &self.rows {
            let offsets = row.details.iter().flat_map(|details| details.offsets.iter().copied());
            lists.append(list_of_spans(py, offsets)?)?;
        }
        Ok(lists)
    }

    /// The rows as objects; of detailed rows.
    fn encodings(&self) -> Vec<HfEncoding> {
        self.rows.iter().cloned().map(HfEncoding::detailed).collect()
    }
}
