//! Fingerprints in hexadecimal, with the SHA-256 of Python's `hashlib`: a method of `Engine`.

use bpe_core::fingerprint::Digest;
use bpe_core::{Error, Result};
use pyo3::prelude::*;

use crate::engine::PyEngine;
use crate::errors::to_python;
use crate::objects::new_bytes;

#[pymethods]
impl PyEngine {
    /// Returns the fingerprint: the SHA-256 of all that decides the ids, in hexadecimal.
    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        hexadecimal(py, |sha256| self.current().fingerprint(sha256))
    }
}

/// Runs `work` with a function that hashes, and returns its result in hexadecimal.
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
