//! Tokenizer files: the native half of `bpe_engine.hf`.

mod components;
mod decode;
mod encode;
mod encoding;
pub mod input;
mod settings;
mod state;
mod tokenizer;
mod vocabulary;

use bpe_hf::Error;
use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::errors;

pub use components::{hf_added_tokens, hf_decode, hf_normalize, hf_pre_tokenize, hf_process};
pub use encode::encode_each;
pub use encoding::{HfEncoding, direction};
pub use settings::truncation_strategy;
pub use tokenizer::HfTokenizer;

create_exception!(
    bpe_engine._core,
    UnsupportedTokenizer,
    PyValueError,
    "A tokenizer file requires a feature that is not supported exactly. The message names it."
);

/// Converts an error to a Python exception.
pub fn to_python(error: Error) -> PyErr {
    match error {
        Error::Unsupported { .. } => UnsupportedTokenizer::new_err(error.to_string()),
        Error::Invalid(message) => PyValueError::new_err(message),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Core(error) => Python::attach(|py| errors::to_python(py, error)),
    }
}

/// Attaches [`to_python`] to a result.
pub trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for bpe_hf::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(to_python)
    }
}
