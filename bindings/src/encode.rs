//! Methods of `CoreBPE` that encode text.

use std::borrow::Cow;

use bpe_core::memory::reserve;
use bpe_core::{Error, Request};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyString};

use crate::buffer::TokenBuffer;
use crate::buffer_pool::BufferPool;
use crate::core_bpe::CoreBpe;
use crate::errors::OrRaise;
use crate::objects::{check_signals, new_bytearray, new_list, new_span};
use crate::{buffer_pool, gil, int_cache, rows, text};

/// Ids, and the span of each as `(start, end)` in characters.
type Offsets<'py> = (Bound<'py, PyList>, Bound<'py, PyList>);

/// The number of completions that become lists between two checks for signals.
const LISTS_BETWEEN_SIGNALS: usize = 1024;

/// The ids of many texts, one after the other, and the row splits.
pub struct Ragged {
    ids: Vec<u32>,
    /// The bytes of 64-bit numbers.
    splits: Vec<u8>,
}

impl Default for Ragged {
    fn default() -> Self {
        Self { ids: Vec::new(), splits: 0i64.to_ne_bytes().to_vec() }
    }
}

impl Ragged {
    /// Appends rows of texts that have `size` bytes in all.
    pub fn append<E: rows::RowError>(
        &mut self,
        py: Python<'_>,
        rows: &rows::Rows<u32, E>,
        size: usize,
    ) -> PyResult<()> {
        if self.ids.capacity() == 0 {
            self.ids = buffer_pool::IDS.take(buffer_pool::likely_ids(size));
        }
        reserve(&mut self.splits, size_of::<i64>() * rows.ends.len()).or_raise(py)?;
        for &end in &rows.ends {
            self.splits.extend_from_slice(&((self.ids.len() + end) as i64).to_ne_bytes());
        }
        reserve(&mut self.ids, rows.items.len()).or_raise(py)?;
        self.ids.extend_from_slice(&rows.items);
        Ok(())
    }

    pub fn into_python(self, py: Python<'_>) -> PyResult<(TokenBuffer, Bound<'_, PyByteArray>)> {
        Ok((TokenBuffer::new(self.ids), new_bytearray(py, &self.splits)?))
    }
}

impl CoreBpe {
    /// Encodes a text to a list.
    pub fn list<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        request: &Request,
    ) -> PyResult<Bound<'py, PyList>> {
        let ids = self.ids(text, request, BufferPool::borrow)?;
        let list = int_cache::list(text.py(), &ids);
        buffer_pool::IDS.give(ids);
        list
    }
}

#[pymethods]
impl CoreBpe {
    #[pyo3(signature = (text, allowed_special, disallowed_special=None))]
    fn encode<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        allowed_special: &Bound<'py, PyAny>,
        disallowed_special: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let none = text.py().None().into_bound(text.py());
        self.list(text, &self.request(allowed_special, disallowed_special.unwrap_or(&none))?)
    }

    fn encode_ordinary<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        self.list(text, &Request::ORDINARY)
    }

    #[pyo3(signature = (text, allowed_special, disallowed_special=None))]
    fn encode_to_tiktoken_buffer(
        &self,
        text: &Bound<'_, PyAny>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TokenBuffer> {
        let none = text.py().None().into_bound(text.py());
        let request = self.request(allowed_special, disallowed_special.unwrap_or(&none))?;
        Ok(TokenBuffer::new(self.ids(text, &request, BufferPool::take)?))
    }

    /// Encodes a text on up to `num_threads` threads.
    fn encode_to_buffer_on_threads(
        &self,
        text: &Bound<'_, PyAny>,
        num_threads: &Bound<'_, PyAny>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<TokenBuffer> {
        let threads = rows::threads(num_threads)?;
        let request = self.request(allowed_special, disallowed_special)?;
        let ids = self.run(text, |encoding, text| {
            let mut ids = buffer_pool::IDS.take(buffer_pool::likely_ids(text.len()));
            encoding.encode_on_threads(text, &request, threads, &mut ids)?;
            Ok(ids)
        })?;
        Ok(TokenBuffer::new(ids))
    }

    fn encode_batch<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        num_threads: &Bound<'py, PyAny>,
        allowed_special: &Bound<'py, PyAny>,
        disallowed_special: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = texts.py();
        let request = self.request(allowed_special, disallowed_special)?;
        let mut lists = Vec::new();
        rows::encode_each(self, texts, num_threads, &request, |ids, _| {
            int_cache::append_lists(py, ids.rows(), &mut lists)
        })?;
        new_list(py, lists)
    }

    /// Returns all ids in one buffer and the row splits as the bytes of 64-bit numbers. A part is an
    /// iterable of `str`, or a tuple with the buffers of a column.
    fn encode_ragged<'py>(
        &self,
        parts: &Bound<'py, PyList>,
        num_threads: &Bound<'py, PyAny>,
        allowed_special: &Bound<'py, PyAny>,
        disallowed_special: &Bound<'py, PyAny>,
    ) -> PyResult<(TokenBuffer, Bound<'py, PyByteArray>)> {
        let py = parts.py();
        let request = self.request(allowed_special, disallowed_special)?;
        let parts = rows::Part::read_all(parts)?;
        let mut ragged = Ragged::default();
        rows::encode_parts(self, &parts, num_threads, &request, |part, size| {
            ragged.append(py, part, size)
        })?;
        ragged.into_python(py)
    }

    #[pyo3(signature = (text, allowed_special, disallowed_special=None))]
    fn encode_with_unstable<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        allowed_special: &Bound<'py, PyAny>,
        disallowed_special: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let py = text.py();
        let none = py.None().into_bound(py);
        let request = self.request(allowed_special, disallowed_special.unwrap_or(&none))?;
        let stored = text::read(text)?;
        // A short text may have very many completions, so its size does not predict the time.
        let found = gil::detached(py, || {
            let text = stored.utf8()?;
            self.prefault_vocabulary(text.len());
            self.encoding().encode_with_unstable(&text, &request)
        });
        let (stable, completions) = found?.or_raise(py)?;
        let mut rows = completions.iter().map(Vec::as_slice).peekable();
        let mut lists = Vec::new();
        while rows.peek().is_some() {
            int_cache::append_lists(py, rows.by_ref().take(LISTS_BETWEEN_SIGNALS), &mut lists)?;
            py.check_signals()?;
        }
        Ok((int_cache::list(py, &stable)?, new_list(py, lists)?))
    }

    fn encode_with_offsets<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        allowed_special: &Bound<'py, PyAny>,
        disallowed_special: &Bound<'py, PyAny>,
    ) -> PyResult<Offsets<'py>> {
        let py = text.py();
        let request = self.request(allowed_special, disallowed_special)?;
        let stored = text::read(text)?;
        let (original, encoding) = (stored.utf8().or_raise(py)?, self.encoding());
        let aligned = gil::run(py, stored.size(), || encoding.encode_aligned(&original, &request))?;
        let spans = PyList::empty(py);
        let mut characters = text::CharacterSpans::new(&original);
        for (index, span) in aligned.spans(encoding).enumerate() {
            check_signals(py, index)?;
            spans.append(new_span(py, characters.next(span.or_raise(py)?))?)?;
        }
        Ok((int_cache::list(py, &aligned.ids)?, spans))
    }

    fn encode_single_token(&self, piece: &Bound<'_, PyAny>) -> PyResult<u32> {
        let bytes = bytes_or_text(piece)?;
        let (vocabulary, special) =
            (self.encoding().vocabulary(), self.encoding().special_tokens());
        let id = vocabulary.rank(&bytes).map(|rank| vocabulary.id(rank));
        id.or_else(|| special.id(std::str::from_utf8(&bytes).ok()?))
            .ok_or_else(|| Error::UnknownToken(bytes.to_vec()))
            .or_raise(piece.py())
    }

    fn encode_single_piece<'py>(&self, piece: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = piece.py();
        let bytes = bytes_or_text(piece)?;
        let ids = gil::run(py, bytes.len(), || {
            let mut ids = Vec::new();
            self.encoding().encode_piece(&bytes, &mut ids)?;
            Ok(ids)
        });
        int_cache::list(py, &ids?)
    }

    fn _encode_bytes<'py>(&self, bytes: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyList>> {
        let (py, bytes) = (bytes.py(), bytes.as_bytes());
        let ids = gil::run(py, bytes.len(), || self.encoding().encode_bytes(bytes))?;
        int_cache::list(py, &ids)
    }
}

/// Returns the bytes of a `bytes`, or the UTF-8 of a `str` with surrogates repaired.
fn bytes_or_text<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    if !value.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!(
            "expected str or bytes, not {}",
            value.get_type().name()?
        )));
    }
    let utf8 = text::read(value)?.utf8().or_raise(value.py())?;
    let mut bytes = Vec::new();
    reserve(&mut bytes, utf8.len()).or_raise(value.py())?;
    bytes.extend_from_slice(utf8.as_bytes());
    Ok(Cow::Owned(bytes))
}
