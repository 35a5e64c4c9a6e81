//! `HfTokenizer`, the native base class of `bpe_engine.hf.Tokenizer`.

use std::sync::Arc;

use bpe_core::pipeline::{Pipeline, Version};
use pyo3::exceptions::{PyUnicodeDecodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::core_bpe::CoreBpe;
use crate::engine::PyEngine;
use crate::errors::OrRaise;
use crate::fingerprint;
use crate::objects::new_str;

/// The bytes of text in one share of a batch.
pub const SHARE: usize = 32 * 1024;

/// The base class of `bpe_engine.hf.Tokenizer`. Use the subclass.
#[pyclass(frozen, subclass, name = "HfTokenizer", module = "bpe_engine._core")]
pub struct HfTokenizer(Py<PyEngine>);

impl HfTokenizer {
    /// Returns the tokenizer as it is now. Changes replace it by a changed copy.
    pub fn current(&self) -> Arc<Pipeline> {
        self.0.get().current().share()
    }

    /// Replaces the tokenizer by a copy that `work` has changed.
    pub fn change<T>(
        &self,
        work: impl FnOnce(&mut Pipeline) -> bpe_core::Result<T>,
    ) -> PyResult<T> {
        Ok(self.0.get().change(work)?.unwrap_or_else(|| unreachable!("made of a tokenizer")))
    }
}

/// Decodes UTF-8, or raises `UnicodeDecodeError`.
fn utf8<'a>(bytes: &'a Bound<'_, PyBytes>) -> PyResult<&'a str> {
    let contents = bytes.as_bytes();
    // A file of 128,000 tokens in a fifteenth of the time; only the other tells what is wrong.
    simdutf8::basic::from_utf8(contents).or_else(|_| std::str::from_utf8(contents)).map_err(
        |error| match PyUnicodeDecodeError::new_utf8(bytes.py(), bytes.as_bytes(), error) {
            Ok(error) => PyErr::from_value(error.into_any()),
            Err(error) => error,
        },
    )
}

fn version_of(version: &str) -> PyResult<Version> {
    match version {
        "0.2.1" => Ok(Version::V021),
        "0.2.3" => Ok(Version::V023),
        other => Err(PyValueError::new_err(format!(
            "version {other:?}: give \"0.2.1\" for the ids of SentencePiece up to this version, or \
             \"0.2.3\" for those from 0.2.2 on"
        ))),
    }
}

#[pymethods]
impl HfTokenizer {
    /// Reads the JSON of a tokenizer file, as str or UTF-8 bytes; copies another tokenizer; wraps a
    /// `CoreBPE` with special tokens `{name: id}`; or reads the bytes of a model of SentencePiece, whose
    /// version is given.
    #[new]
    #[pyo3(signature = (json, special_tokens=None, sentencepiece=None))]
    fn new(
        py: Python<'_>,
        json: &Bound<'_, PyAny>,
        special_tokens: Option<&Bound<'_, PyDict>>,
        sentencepiece: Option<&str>,
    ) -> PyResult<Self> {
        if let Some(version) = sentencepiece {
            let (bytes, version) = (json.cast::<PyBytes>()?.as_bytes(), version_of(version)?);
            let tokenizer = py.detach(|| Pipeline::from_sentencepiece(bytes, version));
            let engine = PyEngine::changing(Arc::new(tokenizer.or_raise()?)).configured()?;
            return Ok(Self(Py::new(py, engine)?));
        }
        if let (Ok(core), Some(special_tokens)) = (json.cast::<CoreBpe>(), special_tokens) {
            let special =
                special_tokens.iter().map(|(name, id)| Ok((name.extract()?, id.extract()?)));
            let special: Vec<(String, u32)> = special.collect::<PyResult<_>>()?;
            let tokenizer = Pipeline::of_direct(core.get().encoding().clone(), special);
            let engine = PyEngine::changing(Arc::new(tokenizer));
            return Ok(Self(Py::new(py, engine)?));
        }
        if let Ok(other) = json.cast::<Self>() {
            return Ok(Self(Py::new(py, PyEngine::changing(other.get().current()))?));
        }
        let json: &str = match json.cast::<PyBytes>() {
            Ok(bytes) => utf8(bytes)?,
            Err(_) => json.extract()?,
        };
        let tokenizer = py.detach(|| Pipeline::from_json(json)).or_raise()?;
        let engine = PyEngine::changing(Arc::new(tokenizer)).configured()?;
        Ok(Self(Py::new(py, engine)?))
    }

    /// The engine, which has the abilities that all tokenizers share.
    #[getter]
    fn _native_engine(&self, py: Python<'_>) -> Py<PyEngine> {
        self.0.clone_ref(py)
    }

    /// The encoding that the tokenizer was made from, with the added tokens; None for a file.
    fn _core_bpe<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, CoreBpe>>> {
        let current = self.current();
        let is_of_ranks = current.direct().is_some();
        is_of_ranks.then(|| CoreBpe::of_current(py, current)).transpose()
    }

    /// The fingerprint: a SHA-256, in hexadecimal, of all that decides the ids that `encode` gives.
    ///
    /// The model, the added tokens, the normalizer, the pre-tokenizer, the post-processor,
    /// truncation, padding and `encode_special_tokens`, as they are now. Files that say the same
    /// have the same one, however they are written, on every machine and in every version.
    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        // That of the tokenizer, also if it was made from an encoding.
        fingerprint::hexadecimal(py, |sha256| self.current().fingerprint(sha256))
    }

    /// Writes the JSON of a file from which `tokenizers` reads the same tokenizer.
    ///
    /// Args:
    ///     pretty: Whether to add line breaks.
    #[pyo3(signature = (pretty=false))]
    fn to_str<'py>(&self, py: Python<'py>, pretty: bool) -> PyResult<Bound<'py, PyString>> {
        let tokenizer = self.current();
        new_str(py, &py.detach(|| tokenizer.to_json(pretty)).or_raise()?)
    }
}
