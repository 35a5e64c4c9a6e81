//! Encodes batches for `bpe_engine.Tokenizer`: texts and pairs become rows of ids, truncated and
//! padded.

use bpe_core::memory::{ask_for, reserve};
use bpe_hf::post;
use bpe_hf::run_length::Runs;
use bpe_hf::spec::{Padding, PaddingStrategy, Truncation};
use bpe_hf::{Encoding, Input, Tokenizer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList};

use crate::errors::OrRaise;
use crate::hf::input::{GivenInput, Surrogates};
use crate::hf::{self, HfEncoding, HfTokenizer};
use crate::objects::{collected, filled_bytearray, list_of_spans, new_list, push};
use crate::{gil, ids, int_cache, request, rows};

/// Rows of ids, and the fields that go with them.
#[pyclass(frozen, name = "EncodedRows", module = "bpe_engine._core")]
pub struct EncodedRows {
    rows: Vec<Encoding>,
    /// The input of each row.
    samples: Vec<usize>,
}

/// Encodes a batch to rows. With `detailed`, rows have offsets and tokens. With `overflow`, the
/// parts that truncation cuts off become rows, too.
#[pyfunction]
#[pyo3(signature = (tokenizer, inputs, *, is_pretokenized, add_special_tokens, truncation, padding,
    detailed, overflow, num_threads, allowed_special, disallowed_special))]
#[allow(clippy::too_many_arguments)]
pub fn encode_rows(
    tokenizer: &Bound<'_, HfTokenizer>,
    inputs: &Bound<'_, PyAny>,
    is_pretokenized: bool,
    add_special_tokens: bool,
    truncation: Option<&Bound<'_, PyAny>>,
    padding: Option<&Bound<'_, PyAny>>,
    detailed: bool,
    overflow: bool,
    num_threads: &Bound<'_, PyAny>,
    allowed_special: &Bound<'_, PyAny>,
    disallowed_special: &Bound<'_, PyAny>,
) -> PyResult<EncodedRows> {
    let py = tokenizer.py();
    let threads = rows::threads(num_threads)?;
    let mut tokenizer = Tokenizer::clone(&tokenizer.get().current());
    let surrogates = match tokenizer.encoding() {
        None => Surrogates::Refused,
        Some(_) if detailed => Surrogates::WithoutOffsets,
        Some(_) => Surrogates::Repaired,
    };
    let read =
        |item: PyResult<Bound<'_, PyAny>>| GivenInput::read(&item?, is_pretokenized, surrogates);
    let inputs = collected(inputs.try_iter()?.map(read))?;
    let truncation = truncation.map(|given| read_truncation(given, overflow)).transpose()?;
    tokenizer.set_truncation(truncation).or_raise()?;
    let request = match tokenizer.encoding() {
        Some(core) => request::read(core.special_tokens(), allowed_special, disallowed_special)?,
        None => request::read_for_file(&tokenizer, allowed_special, disallowed_special)?,
    };
    tokenizer.set_request(request);
    let encode =
        |input: Input<'_>| tokenizer.encode_fully(input, add_special_tokens, detailed, overflow);
    let encodings = hf::encode_each(py, &inputs, threads, encode)?;
    let mut rows = EncodedRows::new(encodings, overflow)?;
    if let Some(padding) = padding {
        rows.fill(py, read_padding(padding)?)?;
    }
    Ok(rows)
}

/// Truncates and pads existing rows of ids. The other fields must have the lengths of the ids, row
/// by row; missing fields are those that `encode_rows` gives to text.
#[pyfunction]
#[pyo3(signature = (input_ids, *, token_type_ids, attention_mask, special_tokens_mask, truncation,
    padding))]
pub fn arrange_rows(
    py: Python<'_>,
    input_ids: &Bound<'_, PyAny>,
    token_type_ids: Option<&Bound<'_, PyAny>>,
    attention_mask: Option<&Bound<'_, PyAny>>,
    special_tokens_mask: Option<&Bound<'_, PyAny>>,
    truncation: Option<&Bound<'_, PyAny>>,
    padding: Option<&Bound<'_, PyAny>>,
) -> PyResult<EncodedRows> {
    let mut encodings = Vec::new();
    for ids in input_ids.try_iter()? {
        push(&mut encodings, Encoding::new(ids::read_iterable(&ids?)?, 0, None))?;
    }
    let set = |encodings: &mut [Encoding], name: &str, values: Option<&Bound<'_, PyAny>>| {
        let Some(values) = values else { return Ok(()) };
        for (row, values) in values.try_iter()?.enumerate() {
            let values = ids::read_iterable(&values?)?;
            let encoding = encodings.get_mut(row).filter(|row| row.len() == values.len());
            let Some(encoding) = encoding else {
                return Err(PyValueError::new_err(format!(
                    "row {row} of {name} is not as long as the row of input_ids"
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
    if let Some(cut) = truncation.map(|given| read_truncation(given, false)).transpose()? {
        for encoding in &mut encodings {
            encoding.truncate(cut.max_length, cut.stride, cut.direction, false).or_raise()?;
        }
    }
    let mut rows = EncodedRows::new(encodings, false)?;
    if let Some(padding) = padding {
        rows.fill(py, read_padding(padding)?)?;
    }
    Ok(rows)
}

fn flags(name: &str, values: &[u32]) -> PyResult<Runs<u8>> {
    let flag = |&value: &u32| {
        u8::try_from(value).map_err(|_| {
            PyValueError::new_err(format!("{name} contains {value}; it must be 0 or 1"))
        })
    };
    values.iter().map(flag).collect()
}

/// Reads a truncation from an object with the attributes of one.
fn read_truncation(given: &Bound<'_, PyAny>, keeps_overflow: bool) -> PyResult<Truncation> {
    Ok(Truncation {
        direction: hf::direction(&given.getattr("direction")?.extract::<String>()?)?,
        max_length: given.getattr("max_length")?.extract()?,
        strategy: hf::truncation_strategy(&given.getattr("strategy")?.extract::<String>()?)?,
        stride: given.getattr("stride")?.extract()?,
        discards_overflow: !keeps_overflow,
    })
}

/// Reads a padding from an object with the attributes of one.
fn read_padding(given: &Bound<'_, PyAny>) -> PyResult<Padding> {
    let length: Option<usize> = given.getattr("length")?.extract()?;
    Ok(Padding {
        strategy: length.map_or(PaddingStrategy::BatchLongest, PaddingStrategy::Fixed),
        direction: hf::direction(&given.getattr("direction")?.extract::<String>()?)?,
        pad_to_multiple_of: given.getattr("pad_to_multiple_of")?.extract()?,
        pad_id: given.getattr("pad_id")?.extract()?,
        pad_type_id: given.getattr("pad_type_id")?.extract()?,
        pad_token: given.getattr("pad_token")?.extract()?,
    })
}

impl EncodedRows {
    /// Makes one row per encoding and, with `overflow`, one per part that was cut off.
    fn new(encodings: Vec<Encoding>, overflow: bool) -> PyResult<Self> {
        if !overflow {
            return Ok(Self { rows: encodings, samples: Vec::new() });
        }
        let (mut rows, mut samples) = (Vec::new(), Vec::new());
        let count = encodings.iter().map(|encoding| 1 + encoding.overflowing.len()).sum();
        reserve(&mut rows, count).or_raise()?;
        reserve(&mut samples, count).or_raise()?;
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
        // Any length can be requested, so checks for the memory first.
        const BYTES: usize = 2 * size_of::<u32>() + 2;
        ask_for(missing.saturating_mul(BYTES)).or_raise()?;
        gil::run(py, missing, || post::pad(&mut self.rows, &padding))?;
        Ok(())
    }

    /// Returns a function to get the field with this name.
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

    /// Writes the numbers with 64 bits each.
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

/// Writes runs of values.
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

    /// The number of ids of each row.
    fn lengths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let lengths = collected(self.rows.iter().map(|row| Ok(row.len())))?;
        int_cache::positions(py, &lengths)
    }

    /// The input of each row, if overflow was requested.
    fn samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        int_cache::positions(py, &self.samples)
    }

    /// A field, as a list per row.
    fn lists<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let field = self.field(name)?;
        let (mut numbers, mut lists) = (Vec::new(), Vec::new());
        reserve(&mut lists, self.rows.len()).or_raise()?;
        for row in &self.rows {
            numbers.clear();
            reserve(&mut numbers, row.len()).or_raise()?;
            field(row).append_to(&mut numbers);
            int_cache::append_lists(py, std::iter::once(&numbers[..]), &mut lists)?;
        }
        new_list(py, lists)
    }

    /// A field as the bytes of 64-bit numbers, and the length of all rows. None if lengths differ.
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
        let bytes = filled_bytearray(py, width * self.rows.len(), |bytes| {
            if width > 0 {
                for (row, room) in self.rows.iter().zip(bytes.chunks_exact_mut(width)) {
                    field(row).write_to(room);
                }
            }
        })?;
        Ok(Some((bytes, length)))
    }

    /// The start and end of each token in its text, in characters; for detailed rows.
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let lists = new_list::<PyAny>(py, Vec::new())?;
        for row in &self.rows {
            let offsets = row.details.iter().flat_map(|details| details.offsets.iter().copied());
            lists.append(list_of_spans(py, offsets)?)?;
        }
        Ok(lists)
    }

    /// The rows as objects; for detailed rows.
    fn encodings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = Encoding::try_clone_all(&self.rows).or_raise()?;
        hf::list_of_encodings(py, rows.into_iter().map(HfEncoding::complete))
    }
}
