//! Creates small Python objects. PyO3's constructors panic when memory runs out; these functions
//! raise `MemoryError`.

use std::convert::Infallible;

use bpe_core::memory::{self, reserve};
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyIterator, PyList, PyString, PyTuple, PyType};

/// An optional argument. Unlike `Option`, distinguishes a missing argument from `None`.
pub enum Argument<'a, 'py> {
    Absent,
    Given(Borrowed<'a, 'py, PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Argument<'a, 'py> {
    type Error = Infallible;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Self::Given(value))
    }
}

impl<'py> Argument<'_, 'py> {
    pub fn get(&self) -> Option<&Bound<'py, PyAny>> {
        match self {
            Self::Absent => None,
            Self::Given(value) => Some(value),
        }
    }

    /// Returns the argument, or `none` if the argument is `None`.
    pub fn or<'a>(&'a self, none: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PyAny>> {
        self.get().map(|value| if value.is_none() { none } else { value })
    }
}

/// Iterates over an argument. A column of pyarrow, pandas or polars is checked first: reading an item
/// of a damaged column can end the process.
pub fn iterate<'py>(items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    check_column(items)?;
    items.try_iter()
}

/// Returns the items of an argument; checks columns as `iterate` does.
pub fn listed<'a, 'py, T>(items: &'a Bound<'py, PyAny>) -> PyResult<Vec<T>>
where
    Vec<T>: FromPyObject<'a, 'py, Error = PyErr>,
{
    check_column(items)?;
    items.extract()
}

fn check_column(items: &Bound<'_, PyAny>) -> PyResult<()> {
    let module = items.get_type().module()?;
    if matches!(module.to_str()?.split('.').next(), Some("pyarrow" | "pandas" | "polars")) {
        let values = items.py().import("bpe_engine.common.values")?;
        values.call_method1("check_column", (items,))?;
    }
    Ok(())
}

/// Handles signals at intervals in a loop that creates objects; `index` is the number of the
/// object.
#[inline]
pub fn check_signals(py: Python<'_>, index: usize) -> PyResult<()> {
    const EVERY: usize = 1 << 14;
    if index % EVERY == EVERY - 1 { py.check_signals() } else { Ok(()) }
}

/// Returns `MemoryError` for a failed allocation.
fn allocated(reserved: bpe_core::Result<()>) -> PyResult<()> {
    reserved.map_err(|error| PyMemoryError::new_err(error.to_string()))
}

/// Fails if there is no memory for `count` objects of `each` bytes in a list. Call this function
/// before a conversion that panics without memory.
pub fn ask_for(count: usize, each: usize) -> PyResult<()> {
    allocated(memory::ask_for(count.saturating_mul(each + size_of::<usize>())))
}

/// Size in bytes of a small tuple of numbers.
pub const ROW: usize = 256;

/// Returns a `bytes` with these bytes.
pub fn new_bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let length = ffi::Py_ssize_t::try_from(bytes.len())?;
    // SAFETY: attached; pointer and length are from a live slice. The call returns a new reference
    // to a `bytes`, or null with an exception set.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), length);
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// Returns a `str` with this text.
pub fn new_str<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    PyString::from_bytes(py, text.as_bytes())
}

/// Returns a `bytearray` with these bytes.
pub fn new_bytearray<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyByteArray>> {
    filled_bytearray(py, bytes.len(), |room| {
        room.copy_from_slice(bytes);
        Ok(())
    })
}

/// Returns a `bytearray` of this length in bytes, filled by `fill`. Grows the array: an array
/// created with its length would be freed with uninitialized fields when memory is short.
pub fn filled_bytearray(
    py: Python<'_>,
    length: usize,
    fill: impl FnOnce(&mut [u8]) -> PyResult<()>,
) -> PyResult<Bound<'_, PyByteArray>> {
    let more_than_any = |_| PyMemoryError::new_err("no memory for that many bytes");
    ffi::Py_ssize_t::try_from(length).map_err(more_than_any)?;
    // SAFETY: attached; the call returns a new reference to a `bytearray`, or null with an
    // exception set. No other code sees the array while it grows and while `fill` writes to it.
    unsafe {
        let object = ffi::PyByteArray_FromStringAndSize(std::ptr::null(), 0);
        let array = Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyByteArray>();
        array.resize(length)?;
        fill(array.as_bytes_mut())?;
        Ok(array)
    }
}

/// Returns an `int`.
pub fn new_int(py: Python<'_>, number: usize) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached; the call returns a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromSize_t(number)) }
}

/// Returns a number, or None.
pub fn new_optional_int(py: Python<'_>, number: Option<usize>) -> PyResult<Bound<'_, PyAny>> {
    number.map_or_else(|| Ok(py.None().into_bound(py)), |number| new_int(py, number))
}

/// Returns an empty dict.
pub fn new_dict(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // SAFETY: attached; the call returns a new dict, or null with an exception set.
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, ffi::PyDict_New())?.cast_into_unchecked()) }
}

/// Returns a list of `str`.
pub fn new_strs<'py, 'a>(
    py: Python<'py>,
    texts: impl Iterator<Item = &'a String>,
) -> PyResult<Bound<'py, PyList>> {
    new_list(py, collected(texts.map(|text| new_str(py, text)))?)
}

/// Returns a tuple of these objects.
pub fn new_tuple<'py, const N: usize>(
    py: Python<'py>,
    items: [Bound<'py, PyAny>; N],
) -> PyResult<Bound<'py, PyTuple>> {
    let length = ffi::Py_ssize_t::try_from(N)?;
    // SAFETY: attached. The call returns a new tuple of null items, or null with an exception set.
    // No other code has seen the tuple, each index is within it, and it takes over each reference.
    unsafe {
        let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(length))?;
        for (place, item) in (0..length).zip(items) {
            ffi::PyTuple_SET_ITEM(tuple.as_ptr(), place, item.into_ptr());
        }
        Ok(tuple.cast_into_unchecked())
    }
}

/// Removes an immutable object from the cycle collector, which otherwise visits every tracked
/// object again and again.
///
/// # Safety
/// The object is new, and can never be part of a cycle: it contains only strings, numbers, None,
/// and tuples and sets of these.
pub unsafe fn untrack(object: &Bound<'_, PyAny>) {
    // SAFETY: attached; the collector knows the type, and the caller vouches for the rest. Types
    // untrack their objects with the same call, which does nothing for an untracked object.
    unsafe {
        if ffi::PyObject_IS_GC(object.as_ptr()) != 0 {
            ffi::PyObject_GC_UnTrack(object.as_ptr().cast());
        }
    }
}

/// Creates an instance of `kind`, a subclass of `tuple`, with these items: strings, numbers, None,
/// and tuples and sets of these.
pub fn new_tuple_of<'py, const N: usize>(
    kind: &Bound<'py, PyType>,
    items: [Bound<'py, PyAny>; N],
) -> PyResult<Bound<'py, PyAny>> {
    let py = kind.py();
    // SAFETY: attached. `tuple.__new__` does the same for a subclass: its `tp_alloc`, which every
    // type has, returns a new tuple of N null items, or null with an exception set. No other code
    // has seen the tuple, and it takes over the reference to each item.
    unsafe {
        let alloc = (*kind.as_type_ptr()).tp_alloc.unwrap_or(ffi::PyType_GenericAlloc);
        let tuple = alloc(kind.as_type_ptr(), N as ffi::Py_ssize_t);
        let tuple = Bound::from_owned_ptr_or_err(py, tuple)?;
        for (place, item) in (0..).zip(items) {
            ffi::PyTuple_SET_ITEM(tuple.as_ptr(), place, item.into_ptr());
        }
        untrack(&tuple);
        Ok(tuple)
    }
}

/// Returns a tuple `(start, end)`.
pub fn new_span<'py>(py: Python<'py>, span: (usize, usize)) -> PyResult<Bound<'py, PyTuple>> {
    new_tuple(py, [new_int(py, span.0)?, new_int(py, span.1)?])
}

/// Returns a tuple `(name, start, end)`.
pub fn new_named_span<'py>(
    py: Python<'py>,
    name: &str,
    span: (usize, usize),
) -> PyResult<Bound<'py, PyTuple>> {
    new_tuple(py, [new_str(py, name)?.into_any(), new_int(py, span.0)?, new_int(py, span.1)?])
}

/// Appends a value to a list that grows with the input.
pub fn push<T>(values: &mut Vec<T>, value: T) -> PyResult<()> {
    allocated(reserve(values, 1))?;
    values.push(value);
    Ok(())
}

/// Collects the values of an iterator, or returns its first error.
pub fn collected<T>(mut values: impl Iterator<Item = PyResult<T>>) -> PyResult<Vec<T>> {
    let mut list = Vec::new();
    allocated(reserve(&mut list, values.size_hint().0))?;
    values.try_for_each(|value| push(&mut list, value?))?;
    Ok(list)
}

/// Returns a list of these objects.
pub fn new_list<'py, T>(
    py: Python<'py>,
    items: Vec<Bound<'py, T>>,
) -> PyResult<Bound<'py, PyList>> {
    let length = ffi::Py_ssize_t::try_from(items.len())?;
    // SAFETY: attached. The call returns a new list of null items, or null with an exception set.
    // No other code has seen the list, each index is within it, and it takes over each reference.
    unsafe {
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(length))?;
        for (place, item) in (0..length).zip(items) {
            ffi::PyList_SET_ITEM(list.as_ptr(), place, item.into_ptr());
        }
        Ok(list.cast_into_unchecked())
    }
}

/// Returns a list of tuples `(start, end)`.
pub fn list_of_spans<'py>(
    py: Python<'py>,
    spans: impl Iterator<Item = (usize, usize)>,
) -> PyResult<Bound<'py, PyList>> {
    let list = new_list::<PyAny>(py, Vec::new())?;
    for (index, span) in spans.enumerate() {
        check_signals(py, index)?;
        list.append(new_span(py, span)?)?;
    }
    Ok(list)
}
