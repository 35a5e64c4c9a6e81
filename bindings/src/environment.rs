//! Configures caches from environment variables.

use std::env;

use bpe_core::cache::CacheSize;
use bpe_core::pool::Pool;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Configures the caches of a new pipeline from the environment.
pub fn configure_caches(caches: &Pool) -> PyResult<()> {
    if let Some(size) = cache_size()? {
        caches.set_cache_size(size);
    }
    if let Some(caching) = caching()? {
        caches.set_caching(caching);
    }
    Ok(())
}

/// Returns the value of `BPE_ENGINE_CACHE_SIZE`, if it is set.
fn cache_size() -> PyResult<Option<CacheSize>> {
    const NAME: &str = "BPE_ENGINE_CACHE_SIZE";
    let Some(value) = env::var_os(NAME).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let Some(Ok(size)) = value.to_str().map(str::parse) else {
        return Err(PyValueError::new_err(format!(
            "the environment variable {NAME} must be bytes, or KiB, MiB or GiB as in \"64 MiB\", \
             from 64 KiB to 1 GiB, not {value:?}"
        )));
    };
    Ok(Some(size))
}

/// Returns the value of `BPE_ENGINE_CACHE`, if it is set.
fn caching() -> PyResult<Option<bool>> {
    const NAME: &str = "BPE_ENGINE_CACHE";
    match env::var_os(NAME) {
        None => Ok(None),
        Some(value) if value == "on" || value.is_empty() => Ok(Some(true)),
        Some(value) if value == "off" => Ok(Some(false)),
        Some(value) => Err(PyValueError::new_err(format!(
            "the environment variable {NAME} must be \"on\" or \"off\", not {value:?}"
        ))),
    }
}
