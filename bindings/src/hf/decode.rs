//! Methods of `Tokenizer` that decode ids.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use super::input::items;
use crate::objects::{collected, new_bytes, new_list, new_str, push};
use crate::pipeline::{PyPipeline, PyTokenizer};
use crate::{gil, ids, rows};

#[pymethods]
impl PyTokenizer {
    /// Decodes ids to text. Skips unknown ids.
    ///
    /// Args:
    ///     ids: The ids.
    ///     skip_special_tokens: Whether to skip special tokens.
    #[pyo3(signature = (ids, skip_special_tokens=true))]
    fn decode<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
        ids: &Bound<'_, PyAny>,
        skip_special_tokens: bool,
    ) -> PyResult<Bound<'py, PyString>> {
        let ids = ids::read(ids)?;
        let tokenizer = Self::tokenizer(slf)?;
        let text = gil::run(py, ids.len(), || tokenizer.decode(&ids, skip_special_tokens))?;
        new_str(py, &text)
    }

    /// Decodes a batch of sequences of ids.
    #[pyo3(signature = (sequences, skip_special_tokens=true, *, num_threads=None))]
    fn decode_batch<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
        sequences: &Bound<'_, PyAny>,
        skip_special_tokens: bool,
        num_threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let sequences = items(sequences)?.map(|ids| ids::read(&ids?));
        let sequences = collected(sequences)?;
        let tokenizer = Self::tokenizer(slf)?;
        let threads = num_threads.map_or(Ok(usize::MAX), rows::threads)?;
        let rows = collected(sequences.iter().map(|ids| Ok(ids.as_slice())))?;
        let decode = |ids: &[u32], bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(tokenizer.decode(ids, skip_special_tokens)?.as_bytes());
            Ok(())
        };
        let mut texts = Vec::new();
        let take = |text: &[u8]| push(&mut texts, PyString::from_bytes(py, text)?);
        rows::decode_rows(py, &rows, threads, decode, take)?;
        new_list(py, texts)
    }
}

#[pymethods]
impl PyPipeline {
    /// Decodes ids to bytes; only for the decoder ``ByteLevel``.
    fn _decode_bytes<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        skip_special_tokens: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let ids = ids::read(ids)?;
        let tokenizer = Self::tokenizer(slf)?;
        let bytes = gil::run(py, ids.len(), || tokenizer.decode_bytes(&ids, skip_special_tokens))?;
        new_bytes(py, &bytes)
    }
}
