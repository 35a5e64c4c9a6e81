//! Encodes batches for `bpe_engine.Pipeline` and for transformers: texts and pairs become rows of ids,
//! truncated and padded.

use std::sync::Arc;

use bpe_core::Error;
use bpe_core::ablation::Mechanism;
use bpe_core::components::Encoding;
use bpe_core::components::arrangement::{Arrangement, RowPart};
use bpe_core::components::post;
use bpe_core::components::run_length::Runs;
use bpe_core::components::spec::{Direction, Padding, PaddingStrategy, Truncation};
use bpe_core::memory::{ask_for, reserve};
use bpe_core::pipeline::{Input, Pipeline, RowLengths};
use bpe_core::threads::{cores, in_order};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyList, PyTuple};

use crate::errors::{OrRaise, to_python};
use crate::hf::input::{GivenInput, Surrogates};
use crate::hf::{self, HfEncoding};
use crate::objects::{
    collected, filled_bytearray, iterate, list_of_spans, new_dict, new_int, new_list, new_tuple,
    push,
};
use crate::pipeline::PyPipeline;
use crate::{gil, ids, int_cache, request, rows, text};

/// A tokenizer and the arguments of calls, read once.
#[pyclass(frozen, name = "RowEncoder", module = "bpe_engine._core")]
pub struct RowEncoder {
    /// Tokenizer at the time when the arguments were read.
    base: Arc<Pipeline>,
    call: Arc<Call>,
}

struct Call {
    /// The tokenizer with the truncation and the special tokens of the arguments.
    tokenizer: Pipeline,
    padding: Option<Padding>,
    is_pretokenized: bool,
    add_special_tokens: bool,
    overflow: bool,
    threads: usize,
    /// Tokenizer for rows as objects, which contain their overflow; otherwise overflow becomes
    /// rows.
    objects: Option<Arc<Pipeline>>,
}

/// Inputs of a call; calling this object creates the row objects.
#[pyclass(frozen, name = "RowSource", module = "bpe_engine._core")]
pub struct RowSource {
    call: Arc<Call>,
    inputs: Py<PyAny>,
    /// The rows, if encoding again would give different rows.
    made: Option<Vec<Encoding>>,
}

/// Rows of ids, with their fields.
#[pyclass(frozen, name = "EncodedRows", module = "bpe_engine._core")]
pub struct EncodedRows(Stored);

enum Stored {
    /// Ids of all rows, without padding.
    Flat { ids: Vec<u32>, rows: Vec<FlatRow>, call: Arc<Call>, length: usize },
    /// Rows with token fields or from existing rows; with overflow, also the input of each row.
    Whole { rows: Vec<Encoding>, samples: Vec<usize> },
}

#[derive(Clone, Copy)]
struct FlatRow {
    /// End of the row's ids in the ids of all rows.
    end: usize,
    lengths: RowLengths,
}

/// Rows that one thread makes in order.
#[derive(Default)]
struct Share {
    ids: Vec<u32>,
    rows: Vec<FlatRow>,
    spare: Vec<u32>,
    failure: Option<Error>,
}

#[pymethods]
impl RowEncoder {
    /// Reads the arguments of calls. With `overflow`, the parts that truncation cuts off also
    /// become rows.
    #[new]
    #[pyo3(signature = (tokenizer, *, is_pretokenized, add_special_tokens, truncation, padding, overflow,
        num_threads, allowed_special, disallowed_special))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        tokenizer: &Bound<'_, PyPipeline>,
        is_pretokenized: bool,
        add_special_tokens: bool,
        truncation: Option<&Bound<'_, PyAny>>,
        padding: Option<&Bound<'_, PyAny>>,
        overflow: bool,
        num_threads: &Bound<'_, PyAny>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let threads = rows::threads(num_threads)?;
        let base = PyPipeline::tokenizer(tokenizer)?;
        let mut tokenizer = Pipeline::clone(&base);
        let truncation = truncation.map(|given| read_truncation(given, overflow)).transpose()?;
        tokenizer.set_truncation(truncation).or_raise()?;
        let request = match tokenizer.direct() {
            Some(core) => {
                request::read(core.special_tokens(), allowed_special, disallowed_special)?
            }
            None => request::read_for_file(&base, allowed_special, disallowed_special)?,
        };
        tokenizer.set_request(request);
        let call = Call {
            tokenizer,
            padding: padding.map(read_padding).transpose()?,
            is_pretokenized,
            add_special_tokens,
            overflow,
            threads,
            objects: None,
        };
        Ok(Self { base, call: Arc::new(call) })
    }

    /// Encodes with the truncation and padding of the tokenizer, without overflow.
    /// `encode_special_tokens` is an argument, since other threads may change the tokenizer's
    /// setting meanwhile.
    #[staticmethod]
    fn of_settings(
        tokenizer: &Bound<'_, PyPipeline>,
        add_special_tokens: bool,
        encode_special_tokens: bool,
    ) -> PyResult<Self> {
        let base = PyPipeline::tokenizer(tokenizer)?;
        let mut whole = base.clone();
        if base.encodes_special_tokens() != encode_special_tokens {
            Arc::make_mut(&mut whole).set_encode_special_tokens(encode_special_tokens);
        }
        let mut tokenizer = Pipeline::clone(&whole);
        let truncation = base.truncation().cloned();
        let truncation = truncation.map(|it| Truncation { discards_overflow: true, ..it });
        tokenizer.set_truncation(truncation).or_raise()?;
        let call = Call {
            tokenizer,
            padding: base.padding().cloned(),
            is_pretokenized: false,
            add_special_tokens,
            overflow: false,
            threads: usize::MAX,
            objects: Some(whole),
        };
        Ok(Self { base, call: Arc::new(call) })
    }

    /// Whether the tokenizer is unchanged since the arguments were read.
    fn is_current(&self, tokenizer: &Bound<'_, PyPipeline>) -> PyResult<bool> {
        Ok(Arc::ptr_eq(&PyPipeline::tokenizer(tokenizer)?, &self.base))
    }

    /// Encodes inputs to rows. With `detailed`, rows have offsets.
    fn encode(&self, inputs: &Bound<'_, PyAny>, detailed: bool) -> PyResult<EncodedRows> {
        let given = self.call.read(inputs, detailed)?;
        self.call.clone().encode(inputs.py(), &given, detailed)
    }

    /// Encodes inputs directly to the results of a call: the fields, as in `EncodedRows.fields`,
    /// the function that creates row objects, the number of rows, and the maximum number of ids in
    /// a row.
    fn answer<'py>(
        &self,
        inputs: &Bound<'py, PyAny>,
        detailed: bool,
        names: &Bound<'py, PyTuple>,
        is_batch: bool,
        as_matrix: bool,
    ) -> PyResult<(Bound<'py, PyDict>, RowSource, usize, usize)> {
        let is_random = self.call.tokenizer.is_random();
        let rows = self.encode(inputs, detailed || is_random)?;
        let fields = rows.fields(inputs.py(), names, is_batch, as_matrix)?;
        let (count, longest) = (rows.count(), rows.longest());
        let made = match rows.0 {
            Stored::Whole { rows, .. } if is_random => Some(rows),
            _ => None,
        };
        let source = RowSource { call: self.call.clone(), inputs: inputs.clone().unbind(), made };
        Ok((fields, source, count, longest))
    }
}

#[pymethods]
impl RowSource {
    fn __call__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let Call { add_special_tokens, threads, objects, .. } = &*self.call;
        if let Some(rows) = &self.made {
            return hf::list_of_encodings(py, rows.iter().cloned().map(HfEncoding::complete));
        }
        let given = self.call.read(self.inputs.bind(py), true)?;
        if let Some(tokenizer) = objects {
            return hf::encode_all(py, tokenizer, given, *add_special_tokens, *threads);
        }
        let (rows, _) = self.call.whole(py, &given, true)?;
        hf::list_of_encodings(py, rows.into_iter().map(HfEncoding::complete))
    }
}

impl Call {
    fn read(&self, inputs: &Bound<'_, PyAny>, detailed: bool) -> PyResult<Vec<GivenInput>> {
        let surrogates = match self.tokenizer.direct() {
            _ if self.objects.is_some() => Surrogates::Refused,
            None => Surrogates::Refused,
            Some(_) if detailed => Surrogates::WithoutOffsets,
            Some(_) => Surrogates::Repaired,
        };
        GivenInput::read_all(inputs.py(), text::items(inputs)?, self.is_pretokenized, surrogates)
    }

    fn encode(
        self: Arc<Self>,
        py: Python<'_>,
        given: &[GivenInput],
        detailed: bool,
    ) -> PyResult<EncodedRows> {
        let arranged = |input: &GivenInput| self.arrangement(input.second.is_some()).is_some();
        if detailed || !Mechanism::Rows.is_used() || !given.iter().all(arranged) {
            let (rows, samples) = self.whole(py, given, detailed)?;
            return Ok(EncodedRows(Stored::Whole { rows, samples }));
        }
        let (mut ids, mut rows) = (Vec::new(), Vec::new());
        reserve(&mut rows, given.len()).or_raise()?;
        self.flat(py, given, |share| {
            let start = ids.len();
            reserve(&mut ids, share.ids.len()).or_raise()?;
            ids.extend_from_slice(&share.ids);
            rows.extend(share.rows.iter().map(|row| FlatRow { end: start + row.end, ..*row }));
            share.failure.clone().map_or(Ok(()), |error| Err(to_python(error)))
        })?;
        let length = self.padding.as_ref().map_or(0, |padding| {
            let starts = std::iter::once(0).chain(rows.iter().map(|row| row.end));
            let longest = starts.zip(&rows).map(|(start, row)| row.end - start).max();
            post::padded_length(longest.unwrap_or(0), padding)
        });
        Ok(EncodedRows(Stored::Flat { ids, rows, call: self, length }))
    }

    /// Returns the arrangement of rows that need only ids.
    fn arrangement(&self, is_pair: bool) -> Option<&Arrangement> {
        self.tokenizer.row_arrangement(is_pair, self.add_special_tokens)
    }

    /// Encodes inputs by an arrangement. `take` receives the rows, share by share.
    fn flat(
        &self,
        py: Python<'_>,
        given: &[GivenInput],
        take: impl FnMut(&Share) -> PyResult<()>,
    ) -> PyResult<()> {
        let read = GivenInput::all_utf8(py, given)?;
        let inputs = collected(read.iter().map(|read| Ok(read.input())))?;
        let total: usize = inputs.iter().map(|input| input.size()).sum();
        let shares = rows::shares(inputs.iter().map(|input| input.size()), hf::SHARE)?;
        let arrangements = [self.arrangement(false), self.arrangement(true)];
        let append = |input: Input<'_>, share: &mut Share| {
            reserve(&mut share.rows, 1)?;
            let Some(arrangement) = arrangements[usize::from(input.second.is_some())] else {
                return Ok(());
            };
            let Share { ids, rows, spare, .. } = share;
            let add = self.add_special_tokens;
            let lengths = self.tokenizer.append_row(input, add, arrangement, spare, ids)?;
            rows.push(FlatRow { end: ids.len(), lengths });
            Ok(())
        };
        let work = |number: usize, share: &mut Share| {
            share.ids.clear();
            share.rows.clear();
            let inputs = &inputs[shares[number].clone()];
            share.failure = inputs.iter().try_for_each(|&input| append(input, share)).err();
        };
        let threads = self.threads.min(cores()).min(total / hf::SHARE + 1);
        in_order(shares.len(), threads, work, |job| gil::run_job(py, total, job), take)
    }

    /// Encodes inputs to padded rows with all fields, token fields only if `detailed`.
    fn whole(
        &self,
        py: Python<'_>,
        given: &[GivenInput],
        detailed: bool,
    ) -> PyResult<(Vec<Encoding>, Vec<usize>)> {
        let add = self.add_special_tokens;
        // Random rows also serve as the objects, so they keep their overflow.
        let objects = self.objects.as_deref().filter(|tokenizer| tokenizer.is_random());
        let (tokenizer, overflow) = match objects {
            Some(tokenizer) => (tokenizer, true),
            None => (&self.tokenizer, self.overflow),
        };
        let encode = |input: Input<'_>| tokenizer.encode_fully(input, add, detailed, overflow);
        let encodings = hf::encode_each(py, given, self.threads, encode)?;
        let (mut rows, samples) = with_overflow(encodings, self.overflow)?;
        if let Some(padding) = &self.padding {
            fill(py, &mut rows, padding)?;
        }
        Ok((rows, samples))
    }
}

/// Truncates and pads existing rows of ids. The other fields must have the same lengths as the ids,
/// row by row; missing fields get the values for plain text.
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
    for ids in iterate(input_ids)? {
        push(&mut encodings, Encoding::new(ids::read_iterable(&ids?)?, 0, None))?;
    }
    let set = |encodings: &mut [Encoding], name: &str, values: Option<&Bound<'_, PyAny>>| {
        let Some(values) = values else { return Ok(()) };
        for (row, values) in iterate(values)?.enumerate() {
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
    if let Some(padding) = padding {
        fill(py, &mut encodings, &read_padding(padding)?)?;
    }
    Ok(EncodedRows(Stored::Whole { rows: encodings, samples: Vec::new() }))
}

fn flags(name: &str, values: &[u32]) -> PyResult<Runs<u8>> {
    let flag = |&value: &u32| {
        u8::try_from(value).map_err(|_| {
            PyValueError::new_err(format!("{name} contains {value}; it must be 0 or 1"))
        })
    };
    values.iter().map(flag).collect()
}

/// Reads truncation settings from a Python `RowTruncation`.
fn read_truncation(given: &Bound<'_, PyAny>, keeps_overflow: bool) -> PyResult<Truncation> {
    Ok(Truncation {
        direction: hf::direction(&given.getattr("direction")?.extract::<String>()?)?,
        max_length: given.getattr("max_length")?.extract()?,
        strategy: hf::truncation_strategy(&given.getattr("strategy")?.extract::<String>()?)?,
        stride: given.getattr("stride")?.extract()?,
        discards_overflow: !keeps_overflow,
    })
}

/// Reads padding settings from a Python `RowPadding`.
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

/// Makes one row per encoding and, with `overflow`, one row per part cut off. Also returns the
/// input of each row.
fn with_overflow(
    encodings: Vec<Encoding>,
    overflow: bool,
) -> PyResult<(Vec<Encoding>, Vec<usize>)> {
    if !overflow {
        return Ok((encodings, Vec::new()));
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
    Ok((rows, samples))
}

fn fill(py: Python<'_>, rows: &mut [Encoding], padding: &Padding) -> PyResult<()> {
    let longest = rows.iter().map(Encoding::len).max().unwrap_or(0);
    let length = post::padded_length(longest, padding);
    let missing = rows.iter().map(|row| length.saturating_sub(row.len()));
    let missing = missing.fold(0, usize::saturating_add);
    // Callers can request any length, so memory is checked first.
    const BYTES: usize = 2 * size_of::<u32>() + 2;
    ask_for(missing.saturating_mul(BYTES)).or_raise()?;
    gil::run(py, missing, || post::pad(rows, padding))?;
    Ok(())
}

/// A field with one number per id.
#[derive(Clone, Copy)]
enum Field {
    Ids,
    Types,
    Attention,
    Special,
}

impl Field {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "input_ids" => Self::Ids,
            "token_type_ids" => Self::Types,
            "attention_mask" => Self::Attention,
            "special_tokens_mask" => Self::Special,
            _ => return None,
        })
    }
}

fn append_runs<T: Copy + Default + PartialEq + Into<u32>>(numbers: &mut Vec<u32>, runs: &Runs<T>) {
    runs.runs().for_each(|(number, times)| append_run(numbers, number.into(), times));
}

fn append_run(numbers: &mut Vec<u32>, number: u32, times: usize) {
    numbers.resize(numbers.len() + times, number);
}

impl EncodedRows {
    fn count(&self) -> usize {
        match &self.0 {
            Stored::Flat { rows, .. } => rows.len(),
            Stored::Whole { rows, .. } => rows.len(),
        }
    }

    fn row_lengths(&self) -> impl Iterator<Item = usize> {
        (0..self.count()).map(|row| match &self.0 {
            Stored::Flat { rows, length, .. } => flat_range(rows, row).len().max(*length),
            Stored::Whole { rows, .. } => rows[row].len(),
        })
    }

    fn append(&self, row: usize, field: Field, numbers: &mut Vec<u32>) {
        match &self.0 {
            Stored::Whole { rows, .. } => {
                let row = &rows[row];
                match field {
                    Field::Ids => numbers.extend_from_slice(&row.ids),
                    Field::Types => append_runs(numbers, &row.type_ids),
                    Field::Attention => append_runs(numbers, &row.attention_mask),
                    Field::Special => append_runs(numbers, &row.special_tokens_mask),
                }
            }
            Stored::Flat { ids, rows, call, length } => {
                let range = flat_range(rows, row);
                let missing = length.saturating_sub(range.len());
                let padding = call.padding.as_ref().filter(|_| missing > 0);
                let is_left = padding.is_some_and(|it| it.direction == Direction::Left);
                let pad = |numbers: &mut _, padding: &Padding| {
                    let number = match field {
                        Field::Ids => padding.pad_id,
                        Field::Types => padding.pad_type_id,
                        Field::Attention => 0,
                        Field::Special => 1,
                    };
                    append_run(numbers, number, missing);
                };
                if let Some(padding) = padding.filter(|_| is_left) {
                    pad(numbers, padding);
                }
                match field {
                    Field::Ids => numbers.extend_from_slice(&ids[range]),
                    Field::Attention => append_run(numbers, 1, range.len()),
                    Field::Types | Field::Special => {
                        let RowLengths { sequences, is_pair } = rows[row].lengths;
                        let arrangement = call.arrangement(is_pair);
                        for part in arrangement.map(Arrangement::parts).unwrap_or_default() {
                            let (type_id, is_special, times) = match part {
                                RowPart::Special { ids, type_id } => (*type_id, 1, ids.len()),
                                RowPart::Sequence { number, type_id } => {
                                    (*type_id, 0, sequences[*number])
                                }
                            };
                            let is_type = matches!(field, Field::Types);
                            append_run(numbers, if is_type { type_id } else { is_special }, times);
                        }
                    }
                }
                if let Some(padding) = padding.filter(|_| !is_left) {
                    pad(numbers, padding);
                }
            }
        }
    }

    /// Returns a field as one list per row.
    fn lists<'py>(&self, py: Python<'py>, field: Field) -> PyResult<Vec<Bound<'py, PyList>>> {
        let mut lists = Vec::new();
        reserve(&mut lists, self.count()).or_raise()?;
        self.each_row(field, |numbers| {
            int_cache::append_lists(py, std::iter::once(numbers), &mut lists)
        })?;
        Ok(lists)
    }

    /// Passes a field of each row to `take`.
    fn each_row(&self, field: Field, mut take: impl FnMut(&[u32]) -> PyResult<()>) -> PyResult<()> {
        let mut numbers = Vec::new();
        for (row, length) in self.row_lengths().enumerate() {
            numbers.clear();
            reserve(&mut numbers, length).or_raise()?;
            self.append(row, field, &mut numbers);
            take(&numbers)?;
        }
        Ok(())
    }

    /// Returns a field as the bytes of 64-bit numbers, row by row, padded to this length.
    fn matrix<'py>(
        &self,
        py: Python<'py>,
        field: Field,
        length: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let size = length.saturating_mul(size_of::<i64>()).saturating_mul(self.count());
        filled_bytearray(py, size, |bytes| {
            let mut places = bytes.as_chunks_mut::<8>().0.iter_mut();
            self.each_row(field, |numbers| {
                for (&number, place) in numbers.iter().zip(places.by_ref()) {
                    *place = i64::from(number).to_ne_bytes();
                }
                Ok(())
            })
        })
    }

    /// Returns the start and end of each token in its text, in characters; for detailed rows.
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyList>>> {
        let Stored::Whole { rows, .. } = &self.0 else { return Ok(Vec::new()) };
        collected(rows.iter().map(|row| {
            let offsets = row
                .token_fields
                .iter()
                .flat_map(|token_fields| token_fields.offsets.iter().copied());
            list_of_spans(py, offsets)
        }))
    }
}

fn flat_range(rows: &[FlatRow], row: usize) -> std::ops::Range<usize> {
    let start = if row == 0 { 0 } else { rows[row - 1].end };
    start..rows[row].end
}

#[pymethods]
impl EncodedRows {
    fn __len__(&self) -> usize {
        self.count()
    }

    /// Returns the maximum number of ids in a row.
    fn longest(&self) -> usize {
        self.row_lengths().max().unwrap_or(0)
    }

    /// Returns a dict of fields.
    ///
    /// Args:
    ///     names: Names of the fields.
    ///     is_batch: Whether a field is a list of rows rather than the only row.
    ///     as_matrix: Whether a field with one number per id is a tuple: the bytes of 64-bit
    ///         numbers, and the length of all rows. If lengths differ, the field is a list of rows.
    #[pyo3(signature = (names, is_batch, as_matrix=false))]
    fn fields<'py>(
        &self,
        py: Python<'py>,
        names: &Bound<'py, PyTuple>,
        is_batch: bool,
        as_matrix: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let fields = new_dict(py)?;
        let mut lengths = self.row_lengths();
        let first = lengths.next().unwrap_or(0);
        let length = (as_matrix && lengths.all(|length| length == first)).then_some(first);
        for name in names {
            let text = name.extract::<std::borrow::Cow<'_, str>>()?;
            let value = match (Field::named(&text), length) {
                (Some(field), Some(length)) => {
                    let bytes = self.matrix(py, field, length)?.into_any();
                    new_tuple(py, [bytes, new_int(py, length)?])?.into_any()
                }
                (Some(field), None) => per_row(py, self.lists(py, field)?, is_batch)?,
                (None, _) => match &*text {
                    "offset_mapping" => per_row(py, self.offsets(py)?, is_batch)?,
                    "length" => {
                        let lengths = collected(self.row_lengths().map(Ok))?;
                        int_cache::positions(py, &lengths)?.into_any()
                    }
                    "overflow_to_sample_mapping" => match &self.0 {
                        Stored::Whole { samples, .. } => int_cache::positions(py, samples)?,
                        Stored::Flat { rows, .. } => {
                            int_cache::positions(py, &collected((0..rows.len()).map(Ok))?)?
                        }
                    }
                    .into_any(),
                    _ => {
                        return Err(PyValueError::new_err(format!("rows have no field {text:?}")));
                    }
                },
            };
            fields.set_item(name, value)?;
        }
        Ok(fields)
    }
}

/// Returns a list of these lists, or the only list.
fn per_row<'py>(
    py: Python<'py>,
    mut lists: Vec<Bound<'py, PyList>>,
    is_batch: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if !is_batch && let Some(only) = lists.pop() {
        return Ok(only.into_any());
    }
    Ok(new_list(py, lists)?.into_any())
}
