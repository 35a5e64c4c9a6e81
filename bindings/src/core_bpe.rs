//! The class `CoreBPE`: an encoding of the core for Python. Most methods are in other files,
//! grouped by topic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bpe_core::memory::prefault;
use bpe_core::{Encoding, Normalization, Request, Splitter, Vocabulary};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use crate::buffer_pool::BufferPool;
use crate::errors::OrRaise;
use crate::{buffer_pool, builtin, environment, gil, ranks, request, text};

/// The native engine that `bpe_engine.Encoding` wraps: vocabulary, pattern and special tokens.
#[pyclass(frozen, name = "CoreBPE", module = "bpe_engine._core")]
pub struct CoreBpe {
    /// Shared with tokenizers made from it.
    encoding: Arc<Encoding>,
    /// The bytes of a built-in vocabulary.
    image: Option<&'static [u8]>,
    is_prefaulted: AtomicBool,
}

const _: () = assert!(align_of::<CoreBpe>() <= 16);

impl CoreBpe {
    fn assemble(
        py: Python<'_>,
        vocabulary: Vocabulary,
        special: &Bound<'_, PyDict>,
        pattern: &str,
        normalization: Option<&str>,
    ) -> PyResult<Self> {
        let normalization = match normalization {
            None => Normalization::None,
            Some("NFC") => Normalization::Nfc,
            Some(other) => {
                return Err(PyValueError::new_err(format!(
                    "normalization must be None or \"NFC\", not {other:?}"
                )));
            }
        };
        let special = ranks::check_special(py, &vocabulary, ranks::special_tokens(special)?)?;
        let splitter = Splitter::new(pattern).or_raise(py)?;
        let encoding = Encoding::new(vocabulary, splitter, special).or_raise(py)?;
        environment::configure_caches(&encoding)?;
        Ok(Self {
            encoding: Arc::new(encoding.with_normalization(normalization)),
            image: None,
            is_prefaulted: AtomicBool::new(false),
        })
    }

    /// Wraps an existing encoding.
    pub fn of_encoding(encoding: Arc<Encoding>) -> Self {
        Self { encoding, image: None, is_prefaulted: AtomicBool::new(false) }
    }

    pub fn encoding(&self) -> &Arc<Encoding> {
        &self.encoding
    }

    /// Maps all of a built-in vocabulary if `bytes` of text will need most of it: faster than page
    /// by page.
    pub fn prefault_vocabulary(&self, bytes: usize) {
        const MUCH: usize = 1 << 18;
        if bytes >= MUCH
            && let Some(image) = self.image
            && !self.is_prefaulted.swap(true, Ordering::Relaxed)
        {
            prefault(image);
        }
    }

    /// Reads `allowed_special` and `disallowed_special`.
    pub fn request(
        &self,
        allowed: &Bound<'_, PyAny>,
        disallowed: &Bound<'_, PyAny>,
    ) -> PyResult<Request> {
        request::read(self.encoding.special_tokens(), allowed, disallowed)
    }

    /// Runs `work` on the UTF-8 of `text`, and releases the interpreter meanwhile if it is long.
    /// Every call on one text uses this.
    pub fn run<T: Send>(
        &self,
        text: &Bound<'_, PyAny>,
        work: impl FnOnce(&Encoding, &str) -> bpe_core::Result<T> + Send,
    ) -> PyResult<T> {
        let py = text.py();
        let text = text::read(text)?;
        gil::run(py, text.size(), || {
            let text = text.utf8()?;
            self.prefault_vocabulary(text.len());
            work(&self.encoding, &text)
        })
    }

    /// Encodes a text into a vector that `buffer` gets from the pool. Give it back to
    /// [`buffer_pool::IDS`] after use.
    pub fn ids(
        &self,
        text: &Bound<'_, PyAny>,
        request: &Request,
        buffer: fn(&BufferPool<u32>, usize) -> Vec<u32>,
    ) -> PyResult<Vec<u32>> {
        self.run(text, |encoding, text| {
            let mut ids = buffer(&buffer_pool::IDS, buffer_pool::likely_ids(text.len()));
            encoding.encode(text, request, &mut ids)?;
            Ok(ids)
        })
    }
}

#[pymethods]
impl CoreBpe {
    /// Builds an encoding from ranks `{token bytes: id}`, special tokens `{name: id}` and the
    /// pattern that cuts text into pieces.
    #[new]
    #[pyo3(signature = (encoder, special_tokens_encoder, pattern, normalization=None))]
    fn new(
        py: Python<'_>,
        encoder: &Bound<'_, PyDict>,
        special_tokens_encoder: &Bound<'_, PyDict>,
        pattern: &str,
        normalization: Option<&str>,
    ) -> PyResult<Self> {
        let vocabulary = ranks::build(py, ranks::from_dict(encoder)?)?;
        Self::assemble(py, vocabulary, special_tokens_encoder, pattern, normalization)
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
    ) -> PyResult<Self> {
        let vocabulary = ranks::build(py, ranks::from_files(py, &files)?)?;
        Self::assemble(py, vocabulary, special_tokens_encoder, pattern, normalization)
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
    ) -> PyResult<Self> {
        let (vocabulary, image) = builtin::builtin_vocabulary(py, vocabulary)?;
        let core = Self::assemble(py, vocabulary, special_tokens_encoder, pattern, normalization)?;
        Ok(Self { image: Some(image), ..core })
    }
}
