//! `HfTokenizer`, the native base class of `bpe_engine.hf.Tokenizer`.

use std::sync::{Arc, PoisonError, RwLock};

use bpe_hf::Tokenizer;
use pyo3::exceptions::PyUnicodeDecodeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::OrRaise;
use crate::core_bpe::CoreBpe;
use crate::fingerprint::with_sha256;
use crate::gil;

/// The bytes of text in one share of a batch.
pub const SHARE: usize = 32 * 1024;

/// The base class of `bpe_engine.hf.Tokenizer`. Use the subclass.
#[pyclass(frozen, subclass, name = "HfTokenizer", module = "bpe_engine._core")]
pub struct HfTokenizer(RwLock<Arc<Tokenizer>>);

impl HfTokenizer {
    /// The current tokenizer. Changes replace it by a changed copy.
    pub fn current(&self) -> Arc<Tokenizer> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the tokenizer by a copy that `work` has changed.
    pub fn change<T>(&self, work: impl FnOnce(&mut Tokenizer) -> bpe_hf::Result<T>) -> PyResult<T> {
        let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Tokenizer::clone(&place);
        let result = work(&mut changed).or_raise()?;
        *place = Arc::new(changed);
        Ok(result)
    }
}

/// Runs `work`, and releases the interpreter meanwhile if `size` is large.
pub fn aside<T: Send>(py: Python<'_>, size: usize, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    const WORTH_DETACHING: usize = 4096;
    if size < WORTH_DETACHING { Ok(work()) } else { gil::detached(py, work) }
}

/// Decodes UTF-8, or raises `UnicodeDecodeError`.
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
    /// Reads the JSON of a tokenizer file, as str or UTF-8 bytes; copies another tokenizer; or wraps a
    /// `CoreBPE` with special tokens `{name: id}`.
    #[new]
    #[pyo3(signature = (json, special_tokens=None))]
    fn new(
        py: Python<'_>,
        json: &Bound<'_, PyAny>,
        special_tokens: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        if let (Ok(core), Some(special_tokens)) = (json.cast::<CoreBpe>(), special_tokens) {
            let special =
                special_tokens.iter().map(|(name, id)| Ok((name.extract()?, id.extract()?)));
            let special: Vec<(String, u32)> = special.collect::<PyResult<_>>()?;
            let tokenizer = Tokenizer::of_encoding(core.get().encoding().clone(), special);
            return Ok(Self(RwLock::new(Arc::new(tokenizer.or_raise()?))));
        }
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

    /// The encoding that the tokenizer was made from, with the added tokens; None for a file.
    fn _core_bpe(&self) -> Option<CoreBpe> {
        self.current().encoding().cloned().map(CoreBpe::of_encoding)
    }

    /// The fingerprint: a SHA-256, in hexadecimal, of all that decides the ids that `encode` gives.
    ///
    /// The model, the added tokens, the normalizer, the pre-tokenizer, the post-processor,
    /// truncation, padding and `encode_special_tokens`, as they are now. Files that say the same
    /// have the same one, however they are written, on every machine and in every version.
    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        let tokenizer = self.current();
        with_sha256(py, |sha256| tokenizer.fingerprint(sha256), super::to_python)
    }

    /// Writes the JSON of a file from which `tokenizers` reads the same tokenizer.
    ///
    /// Args:
    ///     pretty: Whether to add line breaks.
    #[pyo3(signature = (pretty=false))]
    fn to_str(&self, py: Python<'_>, pretty: bool) -> PyResult<String> {
        let tokenizer = self.current();
        py.detach(|| tokenizer.to_json(pretty)).or_raise()
    }
}
