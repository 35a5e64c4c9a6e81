//! The classes `TokenTrie` and `Healed`, which find the tokens compatible with the next bytes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bpe_core::Error;
use bpe_core::heal::{Healed, heal, heal_prompt};
use bpe_core::token_table::TokenTable;
use bpe_core::token_table::rests::Rests;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::errors::OrRaise;
use crate::objects::{collected, iterate, new_bytes, new_list};
use crate::pipeline::PyPipeline;
use crate::request::Gives;
use crate::{gil, ids, int_cache, prompt, text};

/// The tokens of a tokenizer, sorted by their bytes.
#[pyclass(frozen, name = "TokenTrie", module = "bpe_engine._core")]
pub struct PyTokenTrie(Arc<TokenTable>);

#[pymethods]
impl PyTokenTrie {
    #[new]
    fn new(source: &Bound<'_, PyPipeline>) -> PyResult<Self> {
        let table = PyPipeline::current(source)?.token_table().or_raise()?.clone();
        gil::run(source.py(), table.bytes().len(), || table.trie().map(drop))?;
        Ok(Self(table))
    }

    /// Returns the number of 32-bit words in a mask.
    fn words(&self) -> PyResult<usize> {
        Ok(self.0.trie().or_raise()?.words())
    }

    fn next_bytes<'py>(&self, py: Python<'py>, prefix: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let trie = self.0.trie().or_raise()?;
        new_bytes(py, &trie.next_bytes(prefix))
    }

    fn tokens_with<'py>(&self, py: Python<'py>, prefix: &[u8]) -> PyResult<Bound<'py, PyList>> {
        int_cache::list(py, self.0.trie().or_raise()?.starting_with(prefix))
    }

    fn fill_mask(&self, rest: &[u8], out: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut mask = Mask::read(out)?;
        self.0.trie().or_raise()?.fill_mask(rest, &mut mask.words).or_raise()?;
        mask.write(out.py())
    }
}

/// A mask in the caller's buffer.
struct Mask {
    buffer: PyBuffer<i32>,
    words: Vec<u32>,
}

impl Mask {
    fn read(out: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::<i32>::get(out)?;
        if buffer.readonly() || !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("the mask must be writable and contiguous"));
        }
        let swapped = if cfg!(target_endian = "little") { b">!".as_slice() } else { b"<" };
        let order = buffer.format().to_bytes().first().copied();
        if order.is_some_and(|order| swapped.contains(&order)) {
            return Err(PyBufferError::new_err(
                "the mask has the bytes of its numbers in another order than this machine; give an \
                 array of the type np.int32",
            ));
        }
        let words = vec![0; buffer.item_count()];
        Ok(Self { buffer, words })
    }

    fn write(self, py: Python<'_>) -> PyResult<()> {
        let words: Vec<i32> = self.words.into_iter().map(u32::cast_signed).collect();
        self.buffer.copy_from_slice(py, &words)
    }
}

/// A prompt that the next tokens complete.
///
/// Only attached threads hold the lock, so it is never held during a fork.
#[pyclass(frozen, name = "Healed", module = "bpe_engine._core")]
pub struct PyHealed {
    table: Arc<TokenTable>,
    state: Mutex<Healed>,
}

#[pymethods]
impl PyHealed {
    /// Heals a `str`, `bytes` or segments.
    #[new]
    fn new(
        source: &Bound<'_, PyPipeline>,
        given: &Bound<'_, PyAny>,
        allowed_special: Option<&Bound<'_, PyAny>>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (pipeline, request) =
            PyPipeline::ask(source, allowed_special, disallowed_special, Gives::Counts)?;
        let py = given.py();
        let state = if given.is_instance_of::<PyString>() {
            let text = text::read(given)?;
            gil::run(py, text.size(), || heal(&pipeline, &text.utf8()?, &[], &request))?
        } else if let Ok(bytes) = given.cast::<PyBytes>() {
            let (text, part) = cut(bytes.as_bytes()).or_raise()?;
            gil::run(py, text.len(), || heal(&pipeline, text, part, &request))?
        } else {
            let prompt = prompt::read(&pipeline, given, true)?;
            gil::run(py, prompt.size(), || heal_prompt(&pipeline, prompt))?
        };
        Ok(Self { table: pipeline.token_table().or_raise()?.clone(), state: Mutex::new(state) })
    }

    /// Creates a prompt without ids from the bytes that the next tokens must begin with.
    #[staticmethod]
    fn of_rests(source: &Bound<'_, PyPipeline>, rests: &Bound<'_, PyAny>) -> PyResult<Self> {
        let rests = collected(iterate(rests)?.map(|rest| Ok(rest?.cast_into::<PyBytes>()?)))?;
        let rests = Rests::of(rests.iter().map(|rest| rest.as_bytes()));
        let state = Healed { ids: Vec::new(), rests };
        let table = PyPipeline::current(source)?.token_table().or_raise()?.clone();
        Ok(Self { table, state: Mutex::new(state) })
    }

    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        int_cache::list(py, &self.lock(py).ids)
    }

    fn rest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        new_bytes(py, self.lock(py).rests.first())
    }

    fn rests<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rests = self.lock(py).rests.lists();
        new_list(py, collected(rests.iter().map(|rest| new_bytes(py, rest)))?)
    }

    fn is_done(&self, py: Python<'_>) -> bool {
        self.lock(py).rests.is_done()
    }

    fn words(&self) -> PyResult<usize> {
        Ok(self.table.trie().or_raise()?.words())
    }

    /// Returns the number of ids in the table.
    fn ids_in_table(&self) -> usize {
        self.table.len()
    }

    fn fill_mask(&self, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut mask = Mask::read(out)?;
        self.lock(out.py()).fill_mask(&self.table, &mut mask.words).or_raise()?;
        mask.write(out.py())
    }

    fn advance(&self, id: &Bound<'_, PyAny>) -> PyResult<()> {
        let read = ids::read_one(id)?;
        self.lock(id.py()).advance(&self.table, read).or_raise()
    }

    fn fork(&self, py: Python<'_>) -> Self {
        let state = self.lock(py).clone();
        Self { table: self.table.clone(), state: Mutex::new(state) }
    }
}

impl PyHealed {
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Healed> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cuts an incomplete character off the end of a text.
fn cut(bytes: &[u8]) -> bpe_core::Result<(&str, &[u8])> {
    let end = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    let text = std::str::from_utf8(&bytes[..end]).map_err(|error| {
        Error::Invalid(format!("byte {} of the prompt is not UTF-8", error.valid_up_to()))
    })?;
    Ok((text, &bytes[end..]))
}
