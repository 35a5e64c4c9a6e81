//! Methods of `Pipeline` under the names of `tokenizers`: the file as JSON.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::OrRaise;
use crate::objects::new_str;
use crate::pipeline::PyPipeline;

/// The bytes of text in one share of a batch.
pub const SHARE: usize = 32 * 1024;

#[pymethods]
impl PyPipeline {
    /// Writes the JSON of a file from which `tokenizers` reads the same tokenizer.
    ///
    /// Args:
    ///     pretty: Whether to add line breaks.
    #[pyo3(signature = (pretty=false))]
    fn _hf_to_str<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
        pretty: bool,
    ) -> PyResult<Bound<'py, PyString>> {
        let tokenizer = Self::tokenizer(slf)?;
        new_str(py, &py.detach(|| tokenizer.to_json(pretty)).or_raise()?)
    }
}
