//! Methods of `CoreBPE` that describe its vocabulary.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::core_bpe::CoreBpe;
use crate::fingerprint::with_sha256;
use crate::{errors, ranks};

#[pymethods]
impl CoreBpe {
    /// Returns the bytes of all tokens but the special ones, sorted.
    fn token_byte_values<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let vocabulary = self.encoding().vocabulary();
        let mut tokens: Vec<_> =
            (0..vocabulary.len() as u32).map(|rank| vocabulary.token(rank)).collect();
        tokens.sort_unstable();
        tokens.into_iter().map(|token| PyBytes::new(py, token)).collect()
    }

    /// Returns the ranks as `{token bytes: id}`.
    fn mergeable_ranks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        ranks::to_dict(py, self.encoding().vocabulary())
    }

    /// Returns the fingerprint of the encoding, in hexadecimal.
    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        let work = |sha256: &mut dyn FnMut(&[u8]) -> _| self.encoding().fingerprint(sha256);
        with_sha256(py, work, |error| errors::to_python(py, error))
    }

    /// Returns the largest id, special tokens aside.
    #[getter]
    fn max_rank(&self) -> u32 {
        self.encoding().vocabulary().max_id()
    }

    /// Returns the number of tokens, special tokens aside.
    #[getter]
    fn rank_count(&self) -> usize {
        self.encoding().vocabulary().len()
    }
}
