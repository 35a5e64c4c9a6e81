//! The class that `bpe_engine.hf.Tokenizer` inherits.

use std::sync::{Arc, PoisonError, RwLock};

use bpe_hf::Tokenizer;
use pyo3::exceptions::PyUnicodeDecodeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::OrRaise;
use crate::gil;

/// How much text a share of a batch has.
pub const SHARE: usize = 32 * 1024;

/// What `bpe_engine.hf.Tokenizer` inherits. Use that one.
#[pyclass(frozen, subclass, name = "HfTokenizer", module = "bpe_engine._core")]
pub struct HfTokenizer(RwLock<Arc<Tokenizer>>);

impl HfTokenizer {
    /// The tokenizer as it is now. Whoever changes it makes another one.
    pub fn current(&self) -> Arc<Tokenizer> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn change<T>(&self, work: impl FnOnce(&mut Tokenizer) -> bpe_hf::Result<T>) -> PyResult<T> {
        let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Tokenizer::clone(&place);
        let result = work(&mut changed).or_raise()?;
        *place = Arc::new(changed);
        Ok(result)
    }
}

/// Runs `work`, without holding the interpreter if `size` says that it takes a while.
pub fn aside<T: Send>(py: Python<'_>, size: usize, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    const WORTH_DETACHING: usize = 4096;
    if size < WORTH_DETACHING { Ok(work()) } else { gil::detached(py, work) }
}

/// The text that bytes are in UTF-8.
fn utf8<'a>(bytes: &'a Bound<'_, PyBytes>) -> PyResult<&'a str> {
    std::str::from_utf8(bytes.as_bytes()).map_err(|error| {
        match PyUnicodeDecodeError::new_utf8(bytes.py(), bytes.as_bytes(), error) {
            Ok(error) => PyErr::from_value(error.into_any()),
            Err(error) => error,
        }
    })
}

#[pymethods]
impl HfTokenizer {
    /// Reads the JSON of a tokenizer file, as text or in UTF-8, or begins as another tokenizer is
    /// now.
    #[new]
    fn new(py: Python<'_>, json: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(other) = json.cast::<Self>() {
            return Ok(Self(RwLock::new(other.get().current())));
        }
        let json: &str = match json.cast::<PyBytes>() {
            Ok(bytes) => utf8(bytes)?,
            Err(_) => json.extract()?,
        };
        let tokenizer = py.detach(|| Tokenizer::from_json(json)).or_raise()?;
        Ok(Self(RwLock::new(Arc::new(tokenizer))))
    }

    /// The JSON of a file that `tokenizers` reads as this tokenizer.
    ///
    /// Args:
    ///     pretty: With line breaks.
    #[pyo3(signature = (pretty=false))]
    fn to_str(&self, py: Python<'_>, pretty: bool) -> PyResult<String> {
        let tokenizer = self.current();
        py.detach(|| tokenizer.to_json(pretty)).or_raise()
    }
}
