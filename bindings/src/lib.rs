//! `bpe_engine._core`: the engine for Python. PyO3 only; every decision is in the core.

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _core(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
