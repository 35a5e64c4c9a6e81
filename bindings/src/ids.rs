//! Token ids out of Python objects. Every path that takes ids comes through this file.

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};

/// The ids in a list, a tuple, a one-dimensional array of integers, or any other sequence of
/// whole numbers (numpy's are).
///
/// `TypeError` if it is no such sequence, `OverflowError` if a number cannot be an id.
pub fn read(ids: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    if let Some(ids) = read_known(ids)? {
        return Ok(ids);
    }
    // SAFETY: attached, and `ids` is a live object; the check runs no code of it.
    let is_sequence = unsafe { ffi::PySequence_Check(ids.as_ptr()) } == 1;
    if !is_sequence || ids.is_instance_of::<PyDict>() || ids.is_instance_of::<PyString>() {
        let kind = kind(ids);
        let hint =
            if ids.try_iter().is_ok() && kind != "str" { "; pass list(...) of it" } else { "" };
        return Err(PyTypeError::new_err(format!(
            "tokens must be a list, an array or another sequence of int, not {kind}{hint}"
        )));
    }
    each(ids)
}

/// Like [`read`], and takes anything that can be iterated over.
pub fn read_iterable(ids: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    match read_known(ids)? {
        Some(ids) => Ok(ids),
        None => each(ids),
    }
}

/// One id.
pub fn read_one(id: &Bound<'_, PyAny>) -> PyResult<u32> {
    if id.is_instance_of::<PyInt>() {
        return id.extract::<u32>().map_err(|_| out_of_range(id));
    }
    // SAFETY: attached, and `id` is a live object. `PyNumber_Index` returns a new reference to
    // an `int`, or null with an exception set.
    let number = unsafe { Bound::from_owned_ptr_or_err(id.py(), ffi::PyNumber_Index(id.as_ptr())) };
    match number {
        Ok(number) => number.extract::<u32>().map_err(|_| out_of_range(&number)),
        Err(error) if error.is_instance_of::<PyTypeError>(id.py()) => {
            Err(PyTypeError::new_err(format!("a token id must be an int, not {}", kind(id))))
        }
        Err(error) => Err(error),
    }
}

fn out_of_range(id: &Bound<'_, PyAny>) -> PyErr {
    PyOverflowError::new_err(format!("the token id {id} is out of range: ids are 0 to 4294967295"))
}

fn kind(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map(|name| name.to_string()).unwrap_or_default()
}

fn each(ids: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    ids.try_iter()?.map(|id| read_one(&id?)).collect()
}

/// The ids of what can be read faster than item by item through the general protocol.
fn read_known(ids: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u32>>> {
    if let Ok(list) = ids.cast::<PyList>() {
        if let Some(found) = read_ints(list) {
            return Ok(Some(found));
        }
        return list.iter().map(|id| read_one(&id)).collect::<PyResult<_>>().map(Some);
    }
    if let Ok(tuple) = ids.cast::<PyTuple>() {
        return tuple.iter().map(|id| read_one(&id)).collect::<PyResult<_>>().map(Some);
    }
    // SAFETY: attached, and `ids` is a live object; the check runs no code of it.
    if unsafe { ffi::PyObject_CheckBuffer(ids.as_ptr()) } == 0 {
        return Ok(None);
    }
    macro_rules! try_elements {
        ($($element:ty),*) => {
            $(if let Some(found) = read_buffer::<$element>(ids)? {
                return Ok(Some(found));
            })*
        };
    }
    try_elements!(u32, i64, i32, u64, u16, i16, u8, i8);
    Ok(None)
}

/// The ids of a list that holds nothing but `int`s that are ids; `None` for any other, and on a
/// free-threaded interpreter, where another thread may change the list meanwhile.
fn read_ints(list: &Bound<'_, PyList>) -> Option<Vec<u32>> {
    if cfg!(Py_GIL_DISABLED) {
        return None;
    }
    let mut ids = Vec::with_capacity(list.len());
    for index in 0..list.len() {
        // SAFETY: attached, and holding the GIL from before the length is read until the end:
        // nothing in this loop runs Python code, since every item is an exact `int` when its
        // value is taken. So the list does not change, `index` is below its length, and the
        // borrowed item stays alive while it is looked at.
        let value = unsafe {
            let item = ffi::PyList_GET_ITEM(list.as_ptr(), index as ffi::Py_ssize_t);
            if ffi::PyLong_CheckExact(item) == 0 {
                return None;
            }
            let mut overflow = 0;
            match ffi::PyLong_AsLongLongAndOverflow(item, &mut overflow) {
                value if overflow == 0 => value,
                _ => return None,
            }
        };
        ids.push(u32::try_from(value).ok()?);
    }
    Some(ids)
}

/// The ids of a one-dimensional array whose elements are `T`; `None` for any other.
fn read_buffer<T: Element + TryInto<u32> + std::fmt::Display>(
    ids: &Bound<'_, PyAny>,
) -> PyResult<Option<Vec<u32>>> {
    let Ok(buffer) = PyBuffer::<T>::get(ids) else { return Ok(None) };
    if !is_native(buffer.format().to_bytes()) {
        return Ok(None);
    }
    if buffer.dimensions() != 1 {
        return Err(PyTypeError::new_err(format!(
            "an array of tokens must have one dimension, not {}",
            buffer.dimensions()
        )));
    }
    let read = |id: T| {
        id.try_into().map_err(|_| {
            PyOverflowError::new_err(format!(
                "the token id {id} is out of range: ids are 0 to 4294967295"
            ))
        })
    };
    buffer.to_vec(ids.py())?.into_iter().map(read).collect::<PyResult<_>>().map(Some)
}

/// Whether elements of this `struct` format have their bytes in this machine's order.
fn is_native(format: &[u8]) -> bool {
    match format.first() {
        Some(b'>' | b'!') => cfg!(target_endian = "big"),
        Some(b'<') => cfg!(target_endian = "little"),
        _ => true,
    }
}
