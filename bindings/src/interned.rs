//! Interned Python strings for keys and comparisons.

/// Returns the interned `str` of a literal, created on first use. (PyO3's macro detaches while it
/// holds a lock; a fork meanwhile leaves the lock taken in the child.)
macro_rules! interned {
    ($py:expr, $text:literal) => {{
        static TEXT: bpe_core::once::OnceBox<pyo3::Py<pyo3::types::PyString>> =
            bpe_core::once::OnceBox::new();
        let py = $py;
        TEXT.get_or_init(|| Box::new(pyo3::types::PyString::intern(py, $text).unbind())).bind(py)
    }};
}

pub(crate) use interned;
