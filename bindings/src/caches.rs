//! The caches of an encoding.

use bpe_core::Error;
use bpe_core::cache::CacheSize;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::core_bpe::CoreBpe;
use crate::errors::OrRaise;

#[pymethods]
impl CoreBpe {
    /// Forgets the pieces of texts that were encoded.
    fn clear_cache(&self, py: Python<'_>) {
        py.detach(|| self.encoding().workspaces().clear());
    }

    /// Turns the cache on or off; off forgets what is in there.
    fn set_caching(&self, py: Python<'_>, caching: bool) {
        py.detach(|| self.encoding().workspaces().set_caching(caching));
    }

    /// Whether the pieces of texts are remembered.
    #[getter]
    fn is_caching(&self) -> bool {
        self.encoding().workspaces().is_caching()
    }

    /// Sets the memory of each cache, in bytes, and forgets what is in there.
    fn set_cache_size(&self, py: Python<'_>, bytes: &Bound<'_, PyInt>) -> PyResult<()> {
        let size = match bytes.extract() {
            Ok(bytes) => CacheSize::new(bytes),
            Err(_) => Err(Error::CacheSize(bytes.str()?.to_string())),
        };
        let size = size.or_raise(py)?;
        py.detach(|| self.encoding().workspaces().set_cache_size(size));
        Ok(())
    }

    /// The memory of each cache, in bytes.
    #[getter]
    fn cache_size(&self) -> usize {
        self.encoding().workspaces().cache_size().bytes()
    }
}
