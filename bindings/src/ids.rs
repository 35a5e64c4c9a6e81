//! Reads token ids from Python objects. All ids from Python go through this file.

use bpe_core::memory::{prefetch, reserve};
use bpe_core::once::OnceBox;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};

use crate::buffer_pool;
use crate::errors::OrRaise;
use crate::objects::iterate;

/// Reads ids from a list, a tuple, a one-dimensional array of integers, or another sequence of
/// integers, including numpy's.
///
/// Raises `TypeError` for other objects, and `OverflowError` for a number outside the range of ids.
pub fn read(ids: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    if let Some(ids) = read_known(ids)? {
        return Ok(ids);
    }
    // SAFETY: attached, and `ids` is a live object; the check runs none of its code.
    let is_sequence = unsafe { ffi::PySequence_Check(ids.as_ptr()) } == 1;
    if !is_sequence || ids.is_instance_of::<PyDict>() || ids.is_instance_of::<PyString>() {
        let kind = kind(ids);
        let hint =
            if iterate(ids).is_ok() && kind != "str" { "; pass list(...) of it" } else { "" };
        return Err(PyTypeError::new_err(format!(
            "tokens must be a list, an array or another sequence of int, not {kind}{hint}"
        )));
    }
    each(ids)
}

/// Like [`read`], but accepts any iterable.
pub fn read_iterable(ids: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    match read_known(ids)? {
        Some(ids) => Ok(ids),
        None => each(ids),
    }
}

/// Reads one id.
pub fn read_one(id: &Bound<'_, PyAny>) -> PyResult<u32> {
    if id.is_instance_of::<PyInt>() {
        return id.extract::<u32>().map_err(|_| out_of_range(id));
    }
    // SAFETY: attached, and `id` is a live object. `PyNumber_Index` returns a new reference to
    // an `int`, or null with an exception set.
    let number = unsafe { Bound::from_owned_ptr_or_err(id.py(), ffi::PyNumber_Index(id.as_ptr())) };
    match number {
        // Up to numpy 2.2, numpy's `bool` converts to 0 or 1 with only a warning.
        Ok(number) if number.extract::<u32>().is_ok_and(|number| number < 2) && is_bool(id) => {
            Err(PyTypeError::new_err("a token id must be an int, not bool"))
        }
        Ok(number) => number.extract::<u32>().map_err(|_| out_of_range(&number)),
        Err(error) if error.is_instance_of::<PyTypeError>(id.py()) => {
            Err(PyTypeError::new_err(format!("a token id must be an int, not {}", kind(id))))
        }
        Err(error) => Err(error),
    }
}

/// Returns true for numpy's `bool`, named `bool_` before version 2.
fn is_bool(id: &Bound<'_, PyAny>) -> bool {
    let name = id.get_type().fully_qualified_name();
    name.is_ok_and(|name| name == "numpy.bool" || name == "numpy.bool_")
}

fn out_of_range(id: &Bound<'_, PyAny>) -> PyErr {
    // Python refuses to format numbers of more than 4,300 digits.
    let shown = id.str().map_or_else(|_| "with thousands of digits".into(), |id| id.to_string());
    PyOverflowError::new_err(format!(
        "the token id {shown} is out of range: ids are 0 to 4294967295"
    ))
}

fn kind(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map(|name| name.to_string()).unwrap_or_default()
}

fn each(ids: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    collect(0, iterate(ids)?)
}

/// Collects the ids from `items`, which has at least `count` items.
fn collect<'py>(
    count: usize,
    items: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<Vec<u32>> {
    let mut ids = Vec::new();
    reserve(&mut ids, count).or_raise()?;
    for item in items {
        let id = read_one(&item?)?;
        reserve(&mut ids, 1).or_raise()?;
        ids.push(id);
    }
    Ok(ids)
}

/// Reads lists, tuples and buffers without the slower iterator protocol; `None` for other objects.
fn read_known(ids: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u32>>> {
    if let Ok(list) = ids.cast::<PyList>() {
        if let Some(found) = read_ints(list)? {
            return Ok(Some(found));
        }
        return collect(list.len(), list.iter().map(Ok)).map(Some);
    }
    if let Ok(tuple) = ids.cast::<PyTuple>() {
        return collect(tuple.len(), tuple.iter().map(Ok)).map(Some);
    }
    // SAFETY: attached, and `ids` is a live object; the check runs none of its code.
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

/// Reads a list of `int`s in the range of ids. `None` for other lists, and on a free-threaded
/// interpreter, where another thread may change the list.
fn read_ints(list: &Bound<'_, PyList>) -> PyResult<Option<Vec<u32>>> {
    if cfg!(Py_GIL_DISABLED) {
        return Ok(None);
    }
    let known = one_digit_is_known(list.py());
    let mut ids = buffer_pool::IDS.take(list.len());
    reserve(&mut ids, list.len()).or_raise()?;
    for index in 0..list.len() {
        if index + AHEAD < list.len() {
            // SAFETY: as below; an item of a list that Python code can see is never null.
            prefetch(unsafe { &*item(list, index + AHEAD) });
        }
        // SAFETY: attached, and the GIL is held throughout the loop, which runs no Python code:
        // every item is an exact `int` when its value is taken. So the list does not change,
        // `index` is below its length, and the borrowed item stays alive.
        let value = unsafe {
            let item = item(list, index);
            if ffi::PyLong_CheckExact(item) == 0 {
                return Ok(None);
            }
            int_value(item, known)
        };
        let Some(value) = value else { return Ok(None) };
        ids.push(value);
    }
    Ok(Some(ids))
}

/// Number of items to prefetch ahead: `int`s are scattered in memory.
const AHEAD: usize = 48;

/// Returns the item at `index`, borrowed.
///
/// # Safety
/// The GIL is held and `index` is below the length of the list.
#[inline(always)]
unsafe fn item(list: &Bound<'_, PyList>, index: usize) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise.
    unsafe { ffi::PyList_GET_ITEM(list.as_ptr(), index as ffi::Py_ssize_t) }
}

/// Returns the value of an exact `int` if it is in the range of ids; `known` is
/// [`one_digit_is_known`].
///
/// # Safety
/// The GIL is held and `int` points to an exact `int`.
#[inline(always)]
unsafe fn int_value(int: *mut ffi::PyObject, known: bool) -> Option<u32> {
    if known {
        // SAFETY: every `int` starts with these fields, as `one_digit_is_known` has tested.
        let fields = unsafe { &*int.cast::<OneDigit>() };
        if fields.tag & !IMMORTAL == ONE_POSITIVE {
            return Some(fields.digit);
        }
    }
    let mut overflow = 0;
    // SAFETY: the caller's promise.
    match unsafe { ffi::PyLong_AsLongLongAndOverflow(int, &mut overflow) } {
        value if overflow == 0 => u32::try_from(value).ok(),
        _ => None,
    }
}

/// The first fields of an `int` object. Reading the fields in place is much faster than a call.
#[repr(C)]
struct OneDigit {
    object: ffi::PyObject,
    /// Up to Python 3.11, the number of digits, negative for negative numbers. Later, that number
    /// times 8, plus a bit for immortal objects and two bits for the sign (0 is positive).
    tag: usize,
    /// The first digit, which every `int` has: 30 bits (15 in unusual builds).
    digit: u32,
}

/// The tag of a positive number of one digit, without the bit `IMMORTAL`.
const ONE_POSITIVE: usize = if cfg!(Py_3_12) { 1 << 3 } else { 1 };
const IMMORTAL: usize = if cfg!(Py_3_12) { 1 << 2 } else { 0 };

/// Tests once whether this interpreter lays out an `int` as [`OneDigit`].
fn one_digit_is_known(py: Python<'_>) -> bool {
    static KNOWN: OnceBox<bool> = OnceBox::new();
    if cfg!(any(PyPy, GraalPy, Py_GIL_DISABLED, not(target_pointer_width = "64"))) {
        return false;
    }
    let try_values = || {
        let known = [1u32, 0x7FFF, 0x8000, 0x1234_5678, (1 << 30) - 1].into_iter().all(|value| {
            let int = PyInt::new(py, value);
            // SAFETY: a 64-bit interpreter allocates in steps of 8 bytes or more, so an object
            // with a header, a size and a digit has 4 bytes for the digit.
            let fields = unsafe { &*int.as_ptr().cast::<OneDigit>() };
            fields.tag & !IMMORTAL == ONE_POSITIVE && fields.digit == value
        });
        Box::new(known)
    };
    *KNOWN.get_or_init(try_values)
}

/// Reads a one-dimensional array with elements of type `T`; `None` for another element type.
fn read_buffer<T: Element + Default + TryInto<u32> + std::fmt::Display>(
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
    let (py, count) = (ids.py(), buffer.item_count());
    let mut found = buffer_pool::IDS.take(count);
    reserve(&mut found, count).or_raise()?;
    found.resize(count, 0);
    if let Some(elements) = buffer.as_slice_ptr().filter(|_| count > 0) {
        let first = elements.cast::<T>();
        for (index, id) in found.iter_mut().enumerate() {
            // SAFETY: the exporter keeps `count` elements of this type, whose every bit
            // pattern is a number, in place while `buffer` lives, and `index` is below `count`.
            *id = read(unsafe { first.add(index).read_unaligned() })?;
        }
        return Ok(Some(found));
    }
    // Avoids `to_vec`, which aborts when memory runs out.
    let mut elements = Vec::new();
    reserve(&mut elements, count).or_raise()?;
    elements.resize(count, T::default());
    buffer.copy_to_slice(py, &mut elements)?;
    for (id, element) in found.iter_mut().zip(elements) {
        *id = read(element)?;
    }
    Ok(Some(found))
}

/// Returns true if elements of this `struct` format are in this machine's byte order.
fn is_native(format: &[u8]) -> bool {
    match format.first() {
        Some(b'>' | b'!') => cfg!(target_endian = "big"),
        Some(b'<') => cfg!(target_endian = "little"),
        _ => true,
    }
}
