//! Methods that decode ids.

use bpe_core::abilities::lossy::{self, ByteRuns};
use bpe_core::memory::reserve;
use bpe_core::offsets::lossy_characters;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::errors::{OrRaise, describe};
use crate::interned::interned;
use crate::objects::{Argument, check_signals, collected, iterate, new_bytes, new_list, push};
use crate::pipeline::{PyEncoding, PyPipeline};
use crate::strings::decode_utf8;
use crate::{buffer_pool, gil, ids, int_cache, rows};

/// Reads the argument `errors`, if given.
fn error_handler<'a, 'py>(
    py: Python<'py>,
    errors: Option<&'a Bound<'py, PyAny>>,
) -> PyResult<&'a Bound<'py, PyString>>
where
    'py: 'a,
{
    let Some(errors) = errors else { return Ok(interned!(py, "replace")) };
    errors.cast().map_err(|_| {
        let given = describe(errors);
        PyTypeError::new_err(format!("errors must be a str such as \"replace\", not {given}"))
    })
}

impl PyPipeline {
    /// Passes the bytes of ids to `make` and returns the result.
    fn decoded<T>(
        slf: &Bound<'_, Self>,
        tokens: &Bound<'_, PyAny>,
        make: impl FnOnce(&[u8]) -> PyResult<T>,
    ) -> PyResult<T> {
        let ids = ids::read(tokens)?;
        let mut bytes = buffer_pool::TEXT.borrow(buffer_pool::likely_bytes(ids.len()));
        let pipeline = Self::current(slf)?;
        gil::run(tokens.py(), ids.len(), || pipeline.append_bytes(&ids, &mut bytes))?;
        buffer_pool::IDS.give(ids);
        let made = make(&bytes);
        buffer_pool::TEXT.give(bytes);
        made
    }

    /// Decodes rows of ids to texts, or to bytes if `errors` is None.
    fn decoded_rows<'py>(
        slf: &Bound<'py, Self>,
        rows: &[&[u32]],
        errors: Option<&Bound<'py, PyString>>,
        num_threads: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, mut decoded) = (slf.py(), Vec::new());
        let (pipeline, threads) = (Self::current(slf)?, rows::threads(num_threads)?);
        let decode = |ids: &[u32], bytes: &mut Vec<u8>| pipeline.append_bytes(ids, bytes);
        rows::decode_rows(py, rows, threads, decode, |bytes| {
            let row = match errors {
                Some(errors) => decode_utf8(py, bytes, errors)?,
                None => new_bytes(py, bytes)?.into_any(),
            };
            push(&mut decoded, row)
        })?;
        new_list(py, decoded)
    }
}

#[pymethods]
impl PyEncoding {
    /// Decodes ids to text.
    ///
    /// Args:
    ///     tokens: A list, tuple, numpy array or other sequence of ids.
    ///     errors: How to treat bytes that are not UTF-8, as in ``bytes.decode``. By default they
    ///         become U+FFFD, which loses information.
    ///
    /// Raises:
    ///     KeyError: An id has no token.
    ///     OverflowError: A number is outside the range of ids.
    ///     UnicodeDecodeError: The bytes are not UTF-8, and `errors` is ``"strict"``.
    ///
    /// >>> import bpe_engine
    /// >>> bpe_engine.get_encoding("gpt2").decode([31373, 995])
    /// 'hello world'
    #[pyo3(signature = (tokens, errors=Argument::Absent), text_signature = "($self, tokens, errors='replace')")]
    fn decode<'py>(
        slf: &Bound<'py, Self>,
        tokens: &Bound<'py, PyAny>,
        errors: Argument<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = tokens.py();
        let errors = error_handler(py, errors.get())?;
        PyPipeline::decoded(slf.as_super(), tokens, |bytes| decode_utf8(py, bytes, errors))
    }

    /// Returns the bytes of one token, special or not.
    ///
    /// Raises:
    ///     KeyError: The id has no token.
    ///
    /// >>> import bpe_engine
    /// >>> bpe_engine.get_encoding("gpt2").decode_single_token_bytes(31373)
    /// b'hello'
    fn decode_single_token_bytes<'py>(
        slf: &Bound<'py, Self>,
        token: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        PyPipeline::current(slf.as_super())?
            .append_token(ids::read_one(token)?, &mut bytes)
            .or_raise()?;
        new_bytes(token.py(), &bytes)
    }
}

#[pymethods]
impl PyPipeline {
    /// Decodes ids to bytes.
    ///
    /// A tokenizer file decodes to the bytes of its text with all special tokens. Bytes that are
    /// not UTF-8 are unchanged; the decoder may still remove a first space.
    ///
    /// Raises:
    ///     KeyError: An id has no token.
    ///     OverflowError: A number is outside the range of ids.
    ///
    /// >>> import bpe_engine
    /// >>> bpe_engine.get_encoding("gpt2").decode_bytes([31373, 995])
    /// b'hello world'
    fn decode_bytes<'py>(
        slf: &Bound<'py, Self>,
        tokens: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let py = tokens.py();
        Self::decoded(slf, tokens, |bytes| new_bytes(py, bytes))
    }

    /// Returns the bytes of each token.
    ///
    /// >>> import bpe_engine
    /// >>> bpe_engine.get_encoding("gpt2").decode_tokens_bytes([31373, 995])
    /// [b'hello', b' world']
    fn decode_tokens_bytes<'py>(
        slf: &Bound<'py, Self>,
        tokens: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = tokens.py();
        // Appends one by one, because creating a list of known length panics when memory runs out.
        let list = new_list::<PyAny>(py, Vec::new())?;
        let (pipeline, mut bytes) = (Self::current(slf)?, Vec::new());
        for (index, id) in ids::read_iterable(tokens)?.into_iter().enumerate() {
            check_signals(py, index)?;
            bytes.clear();
            pipeline.append_token(id, &mut bytes).or_raise()?;
            list.append(new_bytes(py, &bytes)?)?;
        }
        Ok(list)
    }

    /// Decodes ids to text and returns the character index at which each token starts.
    ///
    /// A token that starts inside a character has the index of that character. Bytes that are
    /// not UTF-8 become U+FFFD, as in `decode`.
    ///
    /// Raises:
    ///     KeyError: An id has no token.
    ///
    /// >>> import bpe_engine
    /// >>> bpe_engine.get_encoding("gpt2").decode_with_offsets([31373, 995])
    /// ('hello world', [0, 5])
    fn decode_with_offsets<'py>(
        slf: &Bound<'py, Self>,
        tokens: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyList>)> {
        let py = tokens.py();
        let ids = ids::read_iterable(tokens)?;
        let pipeline = Self::current(slf)?;
        let (bytes, offsets) = gil::run(py, ids.len(), || {
            let (bytes, starts) = lossy::decode(&pipeline, &ids, true)?;
            let offsets = lossy_characters(&bytes, &starts);
            Ok((bytes, offsets))
        })?;
        let text = decode_utf8(py, &bytes, interned!(py, "replace"))?;
        Ok((text, int_cache::positions(py, &offsets)?))
    }

    /// Returns the bytes of ids, and the start of each id's bytes.
    fn _decode_with_starts<'py>(
        slf: &Bound<'py, Self>,
        tokens: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyList>)> {
        let py = tokens.py();
        let ids = ids::read_iterable(tokens)?;
        let pipeline = Self::current(slf)?;
        let (bytes, starts) = gil::run(py, ids.len(), || pipeline.decode_with_starts(&ids))?;
        Ok((new_bytes(py, &bytes)?, int_cache::positions(py, &starts)?))
    }

    /// How runs of byte tokens decode to text; None if all tokens are decoded together.
    #[getter]
    fn _byte_runs(slf: &Bound<'_, Self>) -> PyResult<Option<&'static str>> {
        Ok(Self::current(slf)?.byte_runs().map(|runs| match runs {
            ByteRuns::Bytes => "bytes",
            ByteRuns::Whole => "whole",
        }))
    }

    /// Returns the number of leading ids whose text no later id changes.
    fn _settled(slf: &Bound<'_, Self>, tokens: &Bound<'_, PyAny>) -> PyResult<usize> {
        let ids = ids::read_iterable(tokens)?;
        let pipeline = Self::current(slf)?;
        gil::run(tokens.py(), ids.len(), || lossy::settled(&pipeline, &ids))
    }

    /// Returns the text of `tokens[start:]` as UTF-8. Set `is_first` if `tokens` begin the text.
    fn _decode_lossy<'py>(
        slf: &Bound<'py, Self>,
        tokens: &Bound<'py, PyAny>,
        is_first: bool,
        start: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let py = tokens.py();
        let ids = ids::read_iterable(tokens)?;
        let pipeline = Self::current(slf)?;
        let decode = || lossy::decode_from(&pipeline, &ids, is_first, start);
        new_bytes(py, &gil::run(py, ids.len(), decode)?)
    }

    /// Decodes each sequence of ids to text, or to bytes if `errors` is None.
    fn _decode_batch<'py>(
        slf: &Bound<'py, Self>,
        batch: &Bound<'py, PyAny>,
        errors: Option<&Bound<'py, PyString>>,
        num_threads: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let read = |ids: PyResult<Bound<'_, PyAny>>| {
            // Copying a long sequence takes time, so check for signals first.
            batch.py().check_signals()?;
            ids::read(&ids?)
        };
        let batch = collected(iterate(batch)?.map(read))?;
        let rows = collected(batch.iter().map(|ids| Ok(ids.as_slice())))?;
        Self::decoded_rows(slf, &rows, errors, num_threads)
    }

    /// Decodes consecutive rows of ids to texts, or to bytes if `errors` is None.
    fn _decode_ragged<'py>(
        slf: &Bound<'py, Self>,
        values: &Bound<'py, PyAny>,
        row_splits: &Bound<'py, PyAny>,
        errors: Option<&Bound<'py, PyString>>,
        num_threads: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = values.py();
        let ids = ids::read(values)?;
        let buffer = PyBuffer::<i64>::get(row_splits)?;
        let (mut splits, mut rows) = (Vec::new(), Vec::new());
        reserve(&mut splits, buffer.item_count()).or_raise()?;
        reserve(&mut rows, buffer.item_count()).or_raise()?;
        splits.resize(buffer.item_count(), 0);
        buffer.copy_to_slice(py, &mut splits)?;
        for ends in splits.windows(2) {
            let (start, end) = (usize::try_from(ends[0]).ok(), usize::try_from(ends[1]).ok());
            let row = start.zip(end).and_then(|(start, end)| ids.get(start..end));
            rows.push(row.ok_or_else(|| {
                PyValueError::new_err(format!(
                    "row_splits[{}] and the next one are not a span of the {} values",
                    rows.len(),
                    ids.len()
                ))
            })?);
        }
        Self::decoded_rows(slf, &rows, errors, num_threads)
    }
}
