//! Compares what a caller gives to a session of a chat template with what it gave before, for
//! `bpe_engine.prompt`.

use bpe_core::ablation::Mechanism;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use pyo3::{Borrowed, ffi};

use crate::labels::Depth;
use crate::objects::push;

/// Marks of values that were the same: where one has not changed since, it is not compared.
///
/// A mark has the dicts and lists in a value. CPython gives a dict a number when it is made and whenever
/// it changes, which no other dict ever has (up to version 3.11; later ones have no marks). A list is
/// marked by the addresses of its items.
#[pyclass(module = "bpe_engine._core")]
#[derive(Default)]
pub struct Marks {
    of: Vec<Mark>,
}

#[derive(Default)]
struct Mark {
    /// For each dict or list: its kind, its address, and its number or that of its items, which follow.
    numbers: Vec<u64>,
    /// Texts and numbers in lists. While they are alive, nothing else has their addresses.
    held: Vec<Py<PyAny>>,
}

const DICT: u64 = 0;
const LIST: u64 = 1;

#[pymethods]
impl Marks {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

impl Marks {
    /// Whether nothing in a value has changed since it was marked.
    fn is_unchanged(&self, place: usize, value: &Bound<'_, PyAny>) -> bool {
        let Some(Mark { numbers, .. }) = self.of.get(place) else { return false };
        if numbers.get(1) != Some(&(value.as_ptr() as u64)) {
            return false;
        }
        let mut rest = &numbers[..];
        while let [kind, at, number, after @ ..] = rest {
            let object = *at as *mut ffi::PyObject;
            // SAFETY: attached, so nothing changes meanwhile. The value is alive. Each other object is in
            // a dict or a list that was just found to hold it. The types are looked at first.
            let is_same = unsafe {
                match *kind {
                    DICT => ffi::PyDict_CheckExact(object) != 0 && version(object) == Some(*number),
                    _ => ffi::PyList_CheckExact(object) != 0 && has_items(object, *number, after),
                }
            };
            if !is_same {
                return false;
            }
            rest = if *kind == DICT { after } else { &after[*number as usize..] };
        }
        true
    }

    /// Asks for the memory that `is_unchanged` will read.
    fn prefetch(&self, place: usize) {
        let Some(Mark { numbers, .. }) = self.of.get(place) else { return };
        let mut rest = &numbers[..];
        while let [kind, at, number, after @ ..] = rest {
            prefetch(*at as usize);
            prefetch(*at as usize + size_of::<ffi::PyListObject>() - 1);
            rest = if *kind == DICT { after } else { &after[*number as usize..] };
        }
    }

    /// Marks a value, which is the same as a copy that is kept.
    fn note(&mut self, place: usize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if cfg!(Py_3_12) || !Mechanism::Marks.is_used() {
            return Ok(());
        }
        while self.of.len() <= place {
            push(&mut self.of, Mark::default())?;
        }
        self.of[place] = Mark::default();
        let mut mark = Mark::default();
        if add(value, &mut mark)? {
            mark.numbers.shrink_to_fit();
            self.of[place] = mark;
        }
        Ok(())
    }

    fn forget(&mut self, place: usize) {
        if let Some(mark) = self.of.get_mut(place) {
            *mark = Mark::default();
        }
    }
}

/// Asks for memory at an address, which may be that of nothing.
fn prefetch(_address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has it, and a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(_address as *const i8) };
    }
}

/// Adds the mark of a value. Returns false for one that has none.
fn add(value: &Bound<'_, PyAny>, mark: &mut Mark) -> PyResult<bool> {
    let at = value.as_ptr() as u64;
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        let _depth = Depth::enter(value.py())?;
        // SAFETY: attached; it is a dict.
        let Some(version) = (unsafe { version(value.as_ptr()) }) else { return Ok(false) };
        for number in [DICT, at, version] {
            push(&mut mark.numbers, number)?;
        }
        for (key, item) in dict {
            if !key.is_exact_instance_of::<PyString>() || !add(&item, mark)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        let _depth = Depth::enter(value.py())?;
        for number in [LIST, at, list.len() as u64] {
            push(&mut mark.numbers, number)?;
        }
        for item in list {
            push(&mut mark.numbers, item.as_ptr() as u64)?;
        }
        for item in list {
            if !add(&item, mark)? {
                return Ok(false);
            }
            if !item.is_exact_instance_of::<PyDict>() && !item.is_exact_instance_of::<PyList>() {
                push(&mut mark.held, item.unbind())?;
            }
        }
        return Ok(true);
    }
    // It never changes.
    Ok(value.is_none()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>())
}

/// Returns the number of what a dict holds now.
///
/// # Safety
/// Attached; the object is a dict.
#[cfg(not(Py_3_12))]
unsafe fn version(dict: *mut ffi::PyObject) -> Option<u64> {
    // SAFETY: the caller vouches for it.
    Some(unsafe { (*dict.cast::<ffi::PyDictObject>()).ma_version_tag })
}

#[cfg(Py_3_12)]
unsafe fn version(_dict: *mut ffi::PyObject) -> Option<u64> {
    None
}

/// Whether a list has so many items, and they are at these addresses.
///
/// # Safety
/// Attached; the object is a list.
unsafe fn has_items(list: *mut ffi::PyObject, count: u64, items: &[u64]) -> bool {
    // SAFETY: the caller vouches for it, and each place is within the list.
    unsafe {
        let length = ffi::PyList_GET_SIZE(list);
        length as u64 == count
            && (0..length)
                .zip(items)
                .all(|(place, item)| ffi::PyList_GET_ITEM(list, place) as u64 == *item)
    }
}

/// Compares the values of a list with those kept of an earlier one. Returns the places where they
/// differ, or only the first one.
///
/// The kept values are copies that nobody changes. Two values are equal if they have the same type, a
/// built-in one or `segment`, and the same content in the same order. `marks` are those of the kept
/// values. Calls no code of the caller.
#[pyfunction]
pub fn differing<'py>(
    values: &Bound<'py, PyList>,
    kept: &Bound<'py, PyList>,
    marks: &Bound<'py, Marks>,
    segment: &Bound<'py, PyType>,
    is_first: bool,
) -> PyResult<Vec<usize>> {
    /// The values whose memory is asked for before.
    const AHEAD: usize = 8;
    let (mut places, mut marks) = (Vec::new(), marks.borrow_mut());
    for (place, value) in values.iter().enumerate() {
        marks.prefetch(place + AHEAD);
        if place < kept.len() {
            if marks.is_unchanged(place, &value) {
                continue;
            }
            let kept = kept.get_item(place)?;
            if is_same(value.as_borrowed(), kept.as_borrowed(), segment)? {
                marks.note(place, &value)?;
                continue;
            }
        }
        marks.forget(place);
        push(&mut places, place)?;
        if is_first {
            break;
        }
    }
    Ok(places)
}

/// Whether other threads may change a caller's list or dict while it is read. Then a copy is read.
const IS_SHARED: bool = cfg!(Py_GIL_DISABLED);

/// Whether a caller's value is the same as a copy of an earlier one. Runs no code of Python, so that
/// nothing changes either of them meanwhile, or only what was copied. An object that is in both never
/// changes: lists and dicts were copied. So that object is not even read, which would wait for memory.
fn is_same<'py>(
    value: Borrowed<'_, 'py, PyAny>,
    kept: Borrowed<'_, 'py, PyAny>,
    segment: &Bound<'py, PyType>,
) -> PyResult<bool> {
    if value.is(kept) {
        return Ok(true);
    }
    if value.get_type_ptr() != kept.get_type_ptr() {
        return Ok(false);
    }
    if value.is_exact_instance_of::<PyString>() {
        // SAFETY: attached; both are instances of `str`, which the call compares, and nothing else.
        return Ok(unsafe { ffi::PyUnicode_Compare(value.as_ptr(), kept.as_ptr()) == 0 });
    }
    if value.is_exact_instance_of::<PyDict>() {
        let _depth = Depth::enter(value.py())?;
        return match value.cast::<PyDict>() {
            Ok(dict) if IS_SHARED => {
                are_same_dicts(dict.copy()?.as_any().as_borrowed(), kept, segment)
            }
            _ => are_same_dicts(value, kept, segment),
        };
    }
    if value.is_exact_instance_of::<PyList>() {
        let _depth = Depth::enter(value.py())?;
        return match value.cast::<PyList>() {
            Ok(list) if IS_SHARED => {
                are_same_lists(list.get_slice(0, list.len()).as_any().as_borrowed(), kept, segment)
            }
            _ => are_same_lists(value, kept, segment),
        };
    }
    if value.is_exact_instance_of::<PyInt>() {
        return value.eq(kept);
    }
    if let (Ok(value), Ok(kept)) = (value.cast_exact::<PyFloat>(), kept.cast_exact::<PyFloat>()) {
        return Ok(value.value().to_bits() == kept.value().to_bits());
    }
    let (Ok(items), Ok(kept_items)) = (value.cast::<PyTuple>(), kept.cast::<PyTuple>()) else {
        return Ok(false);
    };
    let is_segment = value.get_type_ptr() == segment.as_type_ptr();
    if !is_segment && (!value.is_exact_instance_of::<PyTuple>() || items.len() != kept_items.len())
    {
        return Ok(false);
    }
    let _depth = Depth::enter(value.py())?;
    // Only these items of a segment are read.
    const READ: usize = 5;
    let most = if is_segment { READ } else { usize::MAX };
    for (value, kept) in items.iter_borrowed().zip(kept_items.iter_borrowed()).take(most) {
        if !is_same(value, kept, segment)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether two dicts have the same keys and values in the same order.
fn are_same_dicts<'py>(
    value: Borrowed<'_, 'py, PyAny>,
    kept: Borrowed<'_, 'py, PyAny>,
    segment: &Bound<'py, PyType>,
) -> PyResult<bool> {
    let py = value.py();
    let (mut place, mut kept_place) = (0, 0);
    let [mut key, mut item, mut kept_key, mut kept_item] = [std::ptr::null_mut(); 4];
    // SAFETY: attached, and both are dicts. Nothing changes them, and their keys and values live as
    // long as they do. `PyDict_Next` sets the pointers where it returns 1.
    unsafe {
        if ffi::PyDict_Size(value.as_ptr()) != ffi::PyDict_Size(kept.as_ptr()) {
            return Ok(false);
        }
        while ffi::PyDict_Next(value.as_ptr(), &mut place, &mut key, &mut item) != 0
            && ffi::PyDict_Next(kept.as_ptr(), &mut kept_place, &mut kept_key, &mut kept_item) != 0
        {
            for (one, two) in [(key, kept_key), (item, kept_item)] {
                let one = Borrowed::from_ptr(py, one);
                let two = Borrowed::from_ptr(py, two);
                if !is_same(one, two, segment)? {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// Whether two lists have the same items.
fn are_same_lists<'py>(
    value: Borrowed<'_, 'py, PyAny>,
    kept: Borrowed<'_, 'py, PyAny>,
    segment: &Bound<'py, PyType>,
) -> PyResult<bool> {
    let py = value.py();
    // SAFETY: attached, and both are lists. Nothing changes them, each place is within both, and their
    // items live as long as they do.
    unsafe {
        let length = ffi::PyList_GET_SIZE(value.as_ptr());
        if length != ffi::PyList_GET_SIZE(kept.as_ptr()) {
            return Ok(false);
        }
        for place in 0..length {
            let one = Borrowed::from_ptr(py, ffi::PyList_GET_ITEM(value.as_ptr(), place));
            let two = Borrowed::from_ptr(py, ffi::PyList_GET_ITEM(kept.as_ptr(), place));
            if !is_same(one, two, segment)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
