//! Encodes texts: methods of `Engine`.

use bpe_core::memory::reserve;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList};

use crate::buffer::{self, TokenBuffer};
use crate::engine::PyEngine;
use crate::errors::OrRaise;
use crate::objects::{check_signals, new_bytearray, new_list, new_span};
use crate::{buffer_pool, gil, int_cache, rows, text};

/// Ids, and the span of each as `(start, end)` in characters.
type Offsets<'py> = (Bound<'py, PyList>, Bound<'py, PyList>);

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
    fn append(&mut self, rows: &rows::Rows<u32>, size: usize) -> PyResult<()> {
        if self.ids.capacity() == 0 {
            self.ids = buffer_pool::IDS.take(buffer_pool::likely_ids(size));
        }
        reserve(&mut self.splits, size_of::<i64>() * rows.ends.len()).or_raise()?;
        for &end in &rows.ends {
            self.splits.extend_from_slice(&((self.ids.len() + end) as i64).to_ne_bytes());
        }
        reserve(&mut self.ids, rows.items.len()).or_raise()?;
        self.ids.extend_from_slice(&rows.items);
        Ok(())
    }

    fn into_python(self, py: Python<'_>) -> PyResult<(TokenBuffer, Bound<'_, PyByteArray>)> {
        Ok((TokenBuffer::new(self.ids), new_bytearray(py, &self.splits)?))
    }
}

#[pymethods]
impl PyEngine {
    #[pyo3(signature = (text, allowed_special, disallowed_special=None))]
    fn encode<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        allowed_special: &Bound<'py, PyAny>,
        disallowed_special: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let none = text.py().None().into_bound(text.py());
        let (engine, request) = self.ask(allowed_special, disallowed_special.unwrap_or(&none))?;
        let ids = self.run(text, |text| {
            let mut ids = buffer_pool::IDS.borrow(buffer_pool::likely_ids(text.len()));
            engine.encode_text(text, &request, &mut ids)?;
            Ok(ids)
        })?;
        let list = int_cache::list(text.py(), &ids);
        buffer_pool::IDS.give(ids);
        list
    }

    /// Encodes a text on up to `num_threads` threads, to an array of numpy.
    fn encode_to_numpy<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        num_threads: &Bound<'_, PyAny>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let threads = rows::threads(num_threads)?;
        let (engine, request) = self.ask(allowed_special, disallowed_special)?;
        let ids = self.run(text, |text| {
            let mut ids = buffer_pool::IDS.take(buffer_pool::likely_ids(text.len()));
            engine.encode_on_threads(text, &request, threads, &mut ids)?;
            Ok(ids)
        })?;
        buffer::array(text.py(), ids, "encode_to_numpy", "encode")
    }

    fn encode_batch<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        num_threads: &Bound<'py, PyAny>,
        allowed_special: &Bound<'py, PyAny>,
        disallowed_special: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = texts.py();
        let request = self.ask(allowed_special, disallowed_special)?;
        let mut lists = Vec::new();
        let parts = [rows::Part::objects(texts)?];
        rows::encode_parts(self, &parts, num_threads, &request, |ids, _| {
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
        let request = self.ask(allowed_special, disallowed_special)?;
        let read = rows::Part::read_all(parts)?;
        let mut ragged = Ragged::default();
        let append = |part: &_, size| ragged.append(part, size);
        rows::encode_parts(self, &read, num_threads, &request, append)?;
        ragged.into_python(parts.py())
    }

    /// Returns the ids of a text, and the span of each: in characters; in bytes of its UTF-8; or, as
    /// `align` has them, with all bytes that it comes from.
    #[pyo3(signature = (text, allowed_special, disallowed_special, unit="characters"))]
    fn encode_with_offsets<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        allowed_special: &Bound<'py, PyAny>,
        disallowed_special: &Bound<'py, PyAny>,
        unit: &str,
    ) -> PyResult<Offsets<'py>> {
        let py = text.py();
        let (engine, request) = self.ask(allowed_special, disallowed_special)?;
        let stored = text::read(text)?;
        let original = stored.utf8().or_raise()?;
        let in_bytes = unit != "characters";
        let work = || match unit {
            "characters" => engine.encode_with_spans(&original, &request),
            "bytes" => engine.encode_with_places(&original, &request),
            _ => engine.encode_with_bytes(&original, &request),
        };
        let (ids, places) = gil::run(py, stored.size(), work)?;
        let spans = new_list::<PyAny>(py, Vec::new())?;
        let mut characters = text::CharacterSpans::new(&original);
        for (index, span) in places.into_iter().enumerate() {
            check_signals(py, index)?;
            let span = if in_bytes { (span.start, span.end) } else { characters.next(span) };
            spans.append(new_span(py, span)?)?;
        }
        Ok((int_cache::list(py, &ids)?, spans))
    }
}
