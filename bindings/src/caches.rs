//! Configures caches: methods of `Engine`.

use bpe_core::Error;
use bpe_core::cache::CacheSize;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::engine::PyEngine;
use crate::errors::OrRaise;

#[pymethods]
impl PyEngine {
    /// Empties the caches.
    fn clear_cache(&self, py: Python<'_>) {
        let engine = self.current();
        py.detach(|| engine.workspaces().clear());
    }

    /// Turns the caches on or off; off frees their memory.
    fn set_caching(&self, py: Python<'_>, caching: bool) {
        let engine = self.current();
        py.detach(|| engine.workspaces().set_caching(caching));
    }

    /// Returns true if pieces are cached.
    #[getter]
    fn is_caching(&self) -> bool {
        self.current().workspaces().is_caching()
    }

    /// Sets the size of each cache in bytes, and empties the caches.
    fn set_cache_size(&self, py: Python<'_>, bytes: &Bound<'_, PyInt>) -> PyResult<()> {
        let size = match bytes.extract() {
            Ok(bytes) => CacheSize::new(bytes),
            Err(_) => Err(Error::CacheSize(bytes.str()?.to_string())),
        };
        let size = size.or_raise()?;
        let engine = self.current();
        py.detach(|| engine.workspaces().set_cache_size(size));
        Ok(())
    }

    /// Returns the size of each cache in bytes.
    #[getter]
    fn cache_size(&self) -> usize {
        self.current().workspaces().cache_size().bytes()
    }
}
