//! Python objects of which a call makes many. PyO3's own constructors panic where there is no
//! memory; these give a `MemoryError`.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

/// A `bytes` with these bytes.
pub fn new_bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let length = ffi::Py_ssize_t::try_from(bytes.len())?;
    // SAFETY: attached; pointer and length are those of a live slice. The call returns a new
    // reference to a `bytes`, or null with an exception set.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), length);
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// A `str` with this text.
pub fn new_str<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    let length = ffi::Py_ssize_t::try_from(text.len())?;
    // SAFETY: attached; pointer and length are those of live UTF-8. The call returns a new
    // reference to a `str`, or null with an exception set.
    unsafe {
        let object = ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), length);
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// A tuple `(start, end)`.
pub fn new_span<'py>(py: Python<'py>, span: (usize, usize)) -> PyResult<Bound<'py, PyTuple>> {
    // SAFETY: attached; each call returns a new reference, or null with an exception set. The
    // tuple is new and nobody else has seen it; it takes over the reference to each item.
    unsafe {
        let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(2))?;
        for (place, position) in [(0, span.0), (1, span.1)] {
            let int = Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromSize_t(position))?;
            ffi::PyTuple_SET_ITEM(tuple.as_ptr(), place, int.into_ptr());
        }
        Ok(tuple.cast_into_unchecked())
    }
}

/// A list of tuples `(start, end)`.
pub fn list_of_spans<'py>(
    py: Python<'py>,
    spans: impl Iterator<Item = (usize, usize)>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for span in spans {
        list.append(new_span(py, span)?)?;
    }
    Ok(list)
}
