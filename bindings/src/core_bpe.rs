//! The class `CoreBPE`: an encoding under tiktoken's name, with the methods that only an encoding
//! has.

use std::borrow::Cow;
use std::sync::Arc;

use bpe_core::memory::reserve;
use bpe_core::{Direct, Error, Normalization, Pipeline, Request, Splitter, Vocabulary};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::buffer::TokenBuffer;
use crate::buffer_pool::BufferPool;
use crate::engine::PyEngine;
use crate::errors::OrRaise;
use crate::objects::{collected, new_bytes, new_list, new_str};
use crate::{buffer_pool, builtin, gil, int_cache, ranks, request, text};

/// The number of completions that become lists between two checks for signals.
const LISTS_BETWEEN_SIGNALS: usize = 1024;

/// The native engine that `bpe_engine.Encoding` wraps: vocabulary, pattern and special tokens.
#[pyclass(frozen, extends = PyEngine, name = "CoreBPE", module = "bpe_engine._core")]
pub struct CoreBpe {
    encoding: Arc<Direct>,
}

impl CoreBpe {
    fn assemble(
        vocabulary: Vocabulary,
        special: &Bound<'_, PyDict>,
        pattern: &str,
        normalization: Option<&str>,
        image: Option<&'static [u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let normalization = match normalization {
            None => Normalization::None,
            Some("NFC") => Normalization::Nfc,
            Some(other) => {
                return Err(PyValueError::new_err(format!(
                    "normalization must be None or \"NFC\", not {other:?}"
                )));
            }
        };
        let special = ranks::check_special(&vocabulary, ranks::special_tokens(special)?)?;
        let splitter = Splitter::new(pattern).or_raise()?;
        let pipeline =
            Pipeline::of_ranks(vocabulary, splitter, special, normalization).or_raise()?;
        Ok(Self::of_pipeline(PyEngine::fixed(Arc::new(pipeline), image).configured()?))
    }

    /// Wraps a pipeline of ranks that exists.
    pub fn of_current(py: Python<'_>, pipeline: Arc<Pipeline>) -> PyResult<Bound<'_, Self>> {
        Bound::new(py, Self::of_pipeline(PyEngine::fixed(pipeline, None)))
    }

    fn of_pipeline(engine: PyEngine) -> PyClassInitializer<Self> {
        let direct = engine.current().direct().cloned();
        let encoding = direct.unwrap_or_else(|| unreachable!("a pipeline of ranks"));
        PyClassInitializer::from(engine).add_subclass(Self { encoding })
    }

    pub fn encoding(&self) -> &Arc<Direct> {
        &self.encoding
    }

    /// Encodes a text into a vector that `buffer` gets from the pool. Give it back to
    /// [`buffer_pool::IDS`] after use.
    fn ids(
        slf: &Bound<'_, Self>,
        text: &Bound<'_, PyAny>,
        request: &Request,
        buffer: fn(&BufferPool<u32>, usize) -> Vec<u32>,
    ) -> PyResult<Vec<u32>> {
        let (encoding, engine) = (&slf.get().encoding, slf.as_super().get());
        engine.run(text, |text| {
            let mut ids = buffer(&buffer_pool::IDS, buffer_pool::likely_ids(text.len()));
            encoding.encode(text, request, &mut ids)?;
            Ok(ids)
        })
    }

    /// Encodes a text to a list.
    pub fn list<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        request: &Request,
    ) -> PyResult<Bound<'py, PyList>> {
        let ids = Self::ids(slf, text, request, BufferPool::borrow)?;
        let list = int_cache::list(text.py(), &ids);
        buffer_pool::IDS.give(ids);
        list
    }
}

#[pymethods]
impl CoreBpe {
    /// Builds an encoding from ranks `{token bytes: id}`, special tokens `{name: id}` and the
    /// pattern that cuts text into pieces.
    #[new]
    #[pyo3(signature = (encoder, special_tokens_encoder, pattern, normalization=None))]
    fn new(
        encoder: &Bound<'_, PyDict>,
        special_tokens_encoder: &Bound<'_, PyDict>,
        pattern: &str,
        normalization: Option<&str>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let vocabulary = ranks::build(encoder.py(), ranks::from_dict(encoder)?)?;
        Self::assemble(vocabulary, special_tokens_encoder, pattern, normalization, None)
    }

    /// Builds an encoding from rank files, given as `[(label for messages, contents)]`.
    #[staticmethod]
    #[pyo3(signature = (files, special_tokens_encoder, pattern, normalization=None))]
    fn from_rank_files(
        py: Python<'_>,
        files: Vec<(String, PyBackedBytes)>,
        special_tokens_encoder: &Bound<'_, PyDict>,
        pattern: &str,
        normalization: Option<&str>,
    ) -> PyResult<Py<Self>> {
        let vocabulary = ranks::build(py, ranks::from_files(py, &files)?)?;
        let made =
            Self::assemble(vocabulary, special_tokens_encoder, pattern, normalization, None)?;
        Py::new(py, made)
    }

    /// Builds an encoding from a vocabulary inside the module.
    #[staticmethod]
    #[pyo3(signature = (vocabulary, special_tokens_encoder, pattern, normalization=None))]
    fn builtin(
        py: Python<'_>,
        vocabulary: &str,
        special_tokens_encoder: &Bound<'_, PyDict>,
        pattern: &str,
        normalization: Option<&str>,
    ) -> PyResult<Py<Self>> {
        let (vocabulary, image) = builtin::builtin_vocabulary(vocabulary)?;
        let made = Self::assemble(
            vocabulary,
            special_tokens_encoder,
            pattern,
            normalization,
            Some(image),
        )?;
        Py::new(py, made)
    }

    fn encode_ordinary<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        Self::list(slf, text, &Request::ORDINARY)
    }

    #[pyo3(signature = (text, allowed_special, disallowed_special=None))]
    fn encode_to_tiktoken_buffer(
        slf: &Bound<'_, Self>,
        text: &Bound<'_, PyAny>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TokenBuffer> {
        let none = text.py().None().into_bound(text.py());
        let (special, disallowed) =
            (slf.get().encoding.special_tokens(), disallowed_special.unwrap_or(&none));
        let request = request::read(special, allowed_special, disallowed)?;
        Ok(TokenBuffer::new(Self::ids(slf, text, &request, BufferPool::take)?))
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
        let disallowed = disallowed_special.unwrap_or(&none);
        let request = request::read(self.encoding.special_tokens(), allowed_special, disallowed)?;
        let stored = text::read(text)?;
        // A short text may have very many completions, so its size does not predict the time.
        let found = gil::detached(py, || {
            let text = stored.utf8()?;
            self.encoding.encode_with_unstable(&text, &request)
        });
        let (stable, completions) = found?.or_raise()?;
        let mut rows = completions.iter().map(Vec::as_slice).peekable();
        let mut lists = Vec::new();
        while rows.peek().is_some() {
            int_cache::append_lists(py, rows.by_ref().take(LISTS_BETWEEN_SIGNALS), &mut lists)?;
            py.check_signals()?;
        }
        Ok((int_cache::list(py, &stable)?, new_list(py, lists)?))
    }

    fn encode_single_token(&self, piece: &Bound<'_, PyAny>) -> PyResult<u32> {
        let bytes = bytes_or_text(piece)?;
        let (vocabulary, special) = (self.encoding.vocabulary(), self.encoding.special_tokens());
        let id = vocabulary.rank(&bytes).map(|rank| vocabulary.id(rank));
        id.or_else(|| special.id(std::str::from_utf8(&bytes).ok()?))
            .ok_or_else(|| Error::UnknownToken(bytes.to_vec()))
            .or_raise()
    }

    fn encode_single_piece<'py>(&self, piece: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = piece.py();
        let bytes = bytes_or_text(piece)?;
        let ids = gil::run(py, bytes.len(), || {
            let mut ids = Vec::new();
            self.encoding.encode_piece(&bytes, &mut ids)?;
            Ok(ids)
        });
        int_cache::list(py, &ids?)
    }

    fn _encode_bytes<'py>(&self, bytes: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyList>> {
        let (py, bytes) = (bytes.py(), bytes.as_bytes());
        let ids = gil::run(py, bytes.len(), || self.encoding.encode_bytes(bytes))?;
        int_cache::list(py, &ids)
    }

    fn split<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let encoding = &slf.get().encoding;
        let request =
            request::read(encoding.special_tokens(), allowed_special, disallowed_special)?;
        let list = new_list::<PyAny>(text.py(), Vec::new())?;
        let (pieces, mut failure) = (list.clone().unbind(), None);
        let result = slf.as_super().get().run(text, |text| {
            encoding.split(text, &request, |text, batch| {
                // A batch of pieces becomes Python objects before the next batch is split.
                let append = |py: Python<'_>| {
                    let list = pieces.bind(py);
                    let mut texts = batch.iter().map(|piece| &text[piece.start..piece.end]);
                    texts.try_for_each(|text| list.append(new_str(py, text)?))
                };
                Python::attach(append).map_err(|error| {
                    failure = Some(error);
                    bpe_core::Error::Interrupted
                })
            })
        });
        failure.map_or(result, Err)?;
        Ok(list)
    }

    /// Returns the bytes of all tokens but the special ones, sorted.
    fn token_byte_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let vocabulary = self.encoding.vocabulary();
        let ranks = 0..vocabulary.len() as u32;
        let mut tokens = collected(ranks.map(|rank| Ok(vocabulary.token(rank))))?;
        tokens.sort_unstable();
        new_list(py, collected(tokens.into_iter().map(|token| new_bytes(py, token)))?)
    }

    /// Returns the ranks as `{token bytes: id}`.
    fn mergeable_ranks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        ranks::to_dict(py, self.encoding.vocabulary())
    }

    /// Returns the largest id, special tokens aside.
    #[getter]
    fn max_rank(&self) -> u32 {
        self.encoding.vocabulary().max_id()
    }

    /// Returns the number of tokens, special tokens aside.
    #[getter]
    fn rank_count(&self) -> usize {
        self.encoding.vocabulary().len()
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
    let utf8 = text::read(value)?.utf8().or_raise()?;
    let mut bytes = Vec::new();
    reserve(&mut bytes, utf8.len()).or_raise()?;
    bytes.extend_from_slice(utf8.as_bytes());
    Ok(Cow::Owned(bytes))
}
