//! Fingerprints in hexadecimal, with the SHA-256 of Python's `hashlib`: a property of `Pipeline`.

use bpe_core::fingerprint::Digest;
use bpe_core::{Error, Result};
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::objects::new_bytes;
use crate::pipeline::PyPipeline;

#[pymethods]
impl PyPipeline {
    /// SHA-256, in hexadecimal, of everything that decides the ids.
    ///
    /// For an encoding: the pattern, ranks, special tokens and normalization. For a tokenizer file:
    /// the model, the added tokens, the normalizer, the pre-tokenizer, the post-processor,
    /// truncation, padding and `encode_special_tokens`, with their current values. The name is not
    /// included. Tokenizers that agree in all of these have the same fingerprint, on every machine,
    /// in every version and for any form of their files.
    ///
    /// >>> import bpe_engine
    /// >>> gpt2, r50k = bpe_engine.get_encoding("gpt2"), bpe_engine.get_encoding("r50k_base")
    /// >>> gpt2.fingerprint == r50k.fingerprint, gpt2
    /// (True, <Encoding 'gpt2' bc98d100a6f5>)
    #[getter]
    fn fingerprint(slf: &Bound<'_, Self>) -> PyResult<String> {
        let pipeline = Self::current(slf)?;
        hexadecimal(slf.py(), |sha256| pipeline.fingerprint(sha256))
    }
}

/// Runs `work` with a SHA-256 function and returns the result in hexadecimal.
pub fn hexadecimal(
    py: Python<'_>,
    work: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<Digest>) -> Result<Digest>,
) -> PyResult<String> {
    let mut failure = None;
    let digest = work(&mut |form| {
        sha256(py, form).map_err(|error| {
            failure = Some(error);
            Error::Interrupted
        })
    });
    let digest = digest.map_err(|error| failure.unwrap_or_else(|| to_python(error)))?;
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn sha256(py: Python<'_>, form: &[u8]) -> PyResult<Digest> {
    let hash = py.import("hashlib")?.call_method1("sha256", (new_bytes(py, form)?,))?;
    hash.call_method0("digest")?.extract()
}
