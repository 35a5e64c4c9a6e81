//! Errors of the core as Python exceptions, of the types that tiktoken raises.

use bpe_core::Error;
use pyo3::exceptions::{PyKeyError, PyKeyboardInterrupt, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// `KeyError` for a token or an id that does not exist, `MemoryError` and `KeyboardInterrupt` for
/// what their names say, `ValueError` for everything else.
pub fn to_python(py: Python<'_>, error: Error) -> PyErr {
    match error {
        Error::UnknownToken(bytes) => PyKeyError::new_err(PyBytes::new(py, &bytes).unbind()),
        Error::UnknownId(_) => PyKeyError::new_err(error.to_string()),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// Attaches [`to_python`] to a result of the core.
pub trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for bpe_core::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| to_python(py, error))
    }
}
