//! The vocabulary.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::core_bpe::CoreBpe;
use crate::ranks;

#[pymethods]
impl CoreBpe {
    /// The bytes of every token that is no special token, sorted.
    fn token_byte_values<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let vocabulary = self.encoding().vocabulary();
        let mut tokens: Vec<_> =
            (0..vocabulary.len() as u32).map(|rank| vocabulary.token(rank)).collect();
        tokens.sort_unstable();
        tokens.into_iter().map(|token| PyBytes::new(py, token)).collect()
    }

    /// The ranks as `{token bytes: id}`.
    fn mergeable_ranks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        ranks::to_dict(py, self.encoding().vocabulary())
    }

    /// The largest id of a token that is no special token.
    #[getter]
    fn max_rank(&self) -> u32 {
        self.encoding().vocabulary().max_id()
    }

    /// How many tokens there are beside the special tokens.
    #[getter]
    fn rank_count(&self) -> usize {
        self.encoding().vocabulary().len()
    }
}
