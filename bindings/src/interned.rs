//! Strings that calls look up and compare with.

/// The interned `str` of a literal, made when it is first needed. (PyO3's macro makes it behind a lock
/// and lets the interpreter go meanwhile; a process that forks then leaves that locked in its child.)
macro_rules! interned {
    ($py:expr, $text:literal) => {{
        static TEXT: bpe_core::once::LockFreeOnce<pyo3::Py<pyo3::types::PyString>> =
            bpe_core::once::LockFreeOnce::new();
        let py = $py;
        TEXT.get_or_init(|| pyo3::types::PyString::intern(py, $text).unbind()).bind(py)
    }};
}

pub(crate) use interned;
