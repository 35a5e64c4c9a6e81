//! Fingerprints in hexadecimal, with the SHA-256 of Python's `hashlib`.

use bpe_core::Error;
use bpe_core::fingerprint::Digest;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Runs `work` with a function that hashes, and returns its result in hexadecimal. `raise` makes the
/// exception of an error.
pub fn with_sha256<E>(
    py: Python<'_>,
    work: impl FnOnce(&mut dyn FnMut(&[u8]) -> bpe_core::Result<Digest>) -> Result<Digest, E>,
    raise: impl FnOnce(E) -> PyErr,
) -> PyResult<String> {
    let mut failure = None;
    let digest = work(&mut |form| {
        sha256(py, form).map_err(|error| {
            failure = Some(error);
            Error::Interrupted
        })
    });
    let digest = digest.map_err(|error| failure.unwrap_or_else(|| raise(error)))?;
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn sha256(py: Python<'_>, form: &[u8]) -> PyResult<Digest> {
    let hash = py.import("hashlib")?.call_method1("sha256", (PyBytes::new(py, form),))?;
    hash.call_method0("digest")?.extract()
}
