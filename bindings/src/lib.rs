//! `bpe_engine._core`: the engine for Python. PyO3 only; every decision is in the core.

mod learn;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    learn::register(module)?;
    Ok(())
}
