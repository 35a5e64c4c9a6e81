//! Configures caches: methods of `Pipeline`.

use bpe_core::Error;
use bpe_core::cache::CacheSize;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::{OrRaise, describe};
use crate::pipeline::PyPipeline;

#[pymethods]
impl PyPipeline {
    /// Empties the caches of pieces. Results do not change.
    fn clear_cache(slf: &Bound<'_, Self>) -> PyResult<()> {
        let pipeline = Self::current(slf)?;
        slf.py().detach(|| pipeline.workspaces().clear());
        Ok(())
    }

    /// Turns the caches of pieces on or off, and empties them.
    ///
    /// Caches are on unless the environment variable ``BPE_ENGINE_CACHE`` is ``off`` when the
    /// tokenizer is made. Cached text takes less time, so a user could learn by timing whether
    /// another user sent the same words. Turn the caches off if that matters: results do not
    /// change, and the memory is freed.
    ///
    /// >>> import bpe_engine
    /// >>> gpt2 = bpe_engine.get_encoding("gpt2")
    /// >>> gpt2.set_caching(False)
    /// >>> gpt2.is_caching, gpt2.encode("hello world")
    /// (False, [31373, 995])
    /// >>> gpt2.set_caching(True)
    fn set_caching(slf: &Bound<'_, Self>, caching: &Bound<'_, PyAny>) -> PyResult<()> {
        let caching = truth("caching", caching)?;
        let pipeline = Self::current(slf)?;
        slf.py().detach(|| pipeline.workspaces().set_caching(caching));
        Ok(())
    }

    /// True if pieces of text are cached; see `set_caching`.
    #[getter]
    fn is_caching(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Ok(Self::current(slf)?.workspaces().is_caching())
    }

    /// Sets the size of each cache of pieces, and empties the caches.
    ///
    /// Each concurrent call uses a separate cache, up to 16. The default of 8 MiB fits the cache of
    /// a processor; for texts of several MB with many different words (Chinese, many languages)
    /// that are encoded more than once, 64 MiB is faster. Results are the same with any size.
    /// The environment variable ``BPE_ENGINE_CACHE_SIZE`` sets the size when a tokenizer is made: a
    /// number of bytes, ``KiB``, ``MiB`` or ``GiB``, as in ``64 MiB``.
    ///
    /// Args:
    ///     size: Bytes, from 65,536 (64 KiB) to 1,073,741,824 (1 GiB); rounded down to a power
    ///         of two.
    ///
    /// Raises:
    ///     ValueError: The size is too small or too large. To turn caches off, use `set_caching`.
    ///
    /// >>> import bpe_engine
    /// >>> gpt2 = bpe_engine.get_encoding("gpt2")
    /// >>> gpt2.set_cache_size(64 * 2**20)
    /// >>> gpt2.cache_size
    /// 67108864
    /// >>> gpt2.set_cache_size(8 * 2**20)
    fn set_cache_size(slf: &Bound<'_, Self>, size: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let bytes = size.call_method0("__index__").map_err(|_| {
            PyTypeError::new_err(format!(
                "size must be a number of bytes, as in 64 * 2**20 for 64 MiB, not {}",
                describe(size)
            ))
        })?;
        let size = match bytes.extract() {
            Ok(bytes) => CacheSize::new(bytes),
            Err(_) => Err(Error::CacheSize(bytes.str()?.to_string())),
        };
        let size = size.or_raise()?;
        let pipeline = Self::current(slf)?;
        py.detach(|| pipeline.workspaces().set_cache_size(size));
        Ok(())
    }

    /// The size of one cache in bytes, a power of two; see `set_cache_size`.
    #[getter]
    fn cache_size(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Ok(Self::current(slf)?.workspaces().cache_size().bytes())
    }
}

/// Reads True or False, including numpy's.
fn truth(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = value.get_type().name()?;
    if kind == "bool" || kind == "bool_" {
        return value.is_truthy();
    }
    Err(PyTypeError::new_err(format!("{name} must be True or False, not {}", describe(value))))
}
