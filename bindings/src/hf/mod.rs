//! Tokenizer files: the native half of `bpe_engine.hf`.

mod encoding;
pub mod input;
mod tokenizer;

use bpe_hf::Error;
use bpe_hf::spec::Component;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub use encoding::{HfEncoding, direction};
pub use tokenizer::{HfTokenizer, encode_each, truncation_strategy};

create_exception!(
    bpe_engine._core,
    UnsupportedTokenizer,
    PyValueError,
    "A tokenizer file asks for something that cannot be done exactly. The message names it."
);

pub fn to_python(error: Error) -> PyErr {
    match error {
        Error::Unsupported { .. } => UnsupportedTokenizer::new_err(error.to_string()),
        Error::Invalid(message) => PyValueError::new_err(message),
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

/// A component out of JSON.
pub fn component<C: Component>(json: &str, path: &str) -> PyResult<C> {
    let value = serde_json::from_str(json)
        .map_err(|error| PyValueError::new_err(format!("{path}: {error}")))?;
    C::read(&value, path).or_raise()
}

/// The text that the normalizer given as JSON makes of a text.
#[pyfunction]
pub fn hf_normalize(json: &str, text: &str) -> PyResult<String> {
    bpe_hf::normalize(&component(json, "normalizer")?, text).or_raise()
}

/// The pieces that the pre-tokenizer given as JSON makes of a text, with their places in it.
#[pyfunction]
pub fn hf_pre_tokenize(json: &str, text: &str) -> PyResult<Vec<(String, (usize, usize))>> {
    bpe_hf::pre_tokenize(&component(json, "pre_tokenizer")?, text).or_raise()
}

/// The text that the decoder given as JSON makes of tokens.
#[pyfunction]
pub fn hf_decode(json: &str, tokens: Vec<String>) -> PyResult<String> {
    bpe_hf::decode(&component(json, "decoder")?, tokens).or_raise()
}
