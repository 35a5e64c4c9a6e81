//! Joins strings whose characters have flags, and measures values, for `bpe_engine.prompt`.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use crate::interned::interned;
use crate::labels::{Address, Depth, length, new_traced};
use crate::objects::{new_list, new_tuple, push};

/// Bytes that an item takes in a list, roughly.
pub const ITEM: usize = 8;

/// Joins a tuple of strings to one of the type `traced`, or to a `str` if none has flags. Returns it
/// and what it costs: its characters, and the items of its flags.
#[pyfunction]
pub fn join_traced<'py>(
    parts: &Bound<'py, PyTuple>,
    traced: &Bound<'py, PyType>,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    let py = parts.py();
    // SAFETY: attached; both objects are live. The call returns a new reference to a `str`, or null
    // with an exception set.
    let text = unsafe {
        let joined = ffi::PyUnicode_Join(interned!(py, "").as_ptr(), parts.as_ptr());
        Bound::from_owned_ptr_or_err(py, joined)?
    };
    let (mut runs, mut has_flags, mut only) = (Vec::new(), false, None);
    for part in parts.iter_borrowed() {
        let flags = flags_of(&part, traced)?;
        has_flags |= flags.is_some();
        match flags {
            Some(flags) if flags.is_exact_instance_of::<PyTuple>() => {
                for run in flags.cast::<PyTuple>()?.iter_borrowed() {
                    push(&mut runs, run.to_owned())?;
                }
            }
            flags => {
                let flags = flags.unwrap_or(0_u64.into_pyobject(py)?.into_any());
                let length = length(&part)?.into_pyobject(py)?.into_any();
                only = Some(flags.clone());
                push(&mut runs, new_tuple(py, [length, flags])?.into_any())?;
            }
        }
    }
    let cost = length(&text)?.saturating_add(ITEM.saturating_mul(runs.len()));
    if !has_flags {
        return Ok((text, cost));
    }
    let flags = match only {
        Some(only) if runs.len() == 1 => only,
        _ => new_list(py, runs)?.to_tuple().into_any(),
    };
    Ok((new_traced(traced, &text, &flags)?, cost))
}

/// Returns what it costs to join a tuple of strings.
#[pyfunction]
pub fn cost_of_joining(parts: &Bound<'_, PyTuple>, traced: &Bound<'_, PyType>) -> PyResult<usize> {
    let mut cost = 0_usize;
    for part in parts.iter_borrowed() {
        let runs = match flags_of(&part, traced)? {
            Some(flags) => flags.cast::<PyTuple>().map_or(1, |runs| runs.len()),
            None => 1,
        };
        cost = cost.saturating_add(length(&part)?).saturating_add(ITEM.saturating_mul(runs));
    }
    Ok(cost)
}

/// Returns the flags of a string; `None` for a plain `str`.
fn flags_of<'py>(
    text: &Bound<'py, PyAny>,
    traced: &Bound<'py, PyType>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = text.py();
    if text.is_exact_instance_of::<PyString>() {
        return Ok(None);
    }
    if text.get_type_ptr() == traced.as_type_ptr() {
        return text.getattr(interned!(py, "_flags")).map(Some);
    }
    let runs = text.getattr_opt(interned!(py, "_runs"))?;
    Ok(Some(runs.unwrap_or(0_u64.into_pyobject(py)?.into_any())))
}

/// Returns the size of a value for whatever walks over it; `None` if it holds others than strings,
/// numbers, None, lists, tuples and dicts. Everything counts as often as it occurs.
#[pyfunction]
pub fn size_of_plain(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    Sizes { known: HashMap::default() }.size(value)
}

struct Sizes {
    /// The sizes of lists, tuples and dicts by their addresses.
    known: HashMap<usize, usize, BuildHasherDefault<Address>>,
}

impl Sizes {
    fn size(&mut self, value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        if value.is_instance_of::<PyString>() {
            return Ok(Some(ITEM.saturating_add(length(value)?)));
        }
        if value.is_none() || value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
            return Ok(Some(ITEM));
        }
        let at = value.as_ptr() as usize;
        if let Some(&size) = self.known.get(&at) {
            return Ok(Some(size));
        }
        let _depth = Depth::enter(value.py())?;
        self.note(at, ITEM)?; // Where it holds itself.
        let mut size = ITEM;
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            for (key, item) in dict {
                let (Some(key), Some(item)) = (self.size(&key)?, self.size(&item)?) else {
                    return Ok(None);
                };
                size = size.saturating_add(key).saturating_add(item);
            }
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            for item in list {
                let Some(item) = self.size(&item)? else { return Ok(None) };
                size = size.saturating_add(item);
            }
        } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            for item in tuple.iter_borrowed() {
                let Some(item) = self.size(&item)? else { return Ok(None) };
                size = size.saturating_add(item);
            }
        } else {
            return Ok(None);
        }
        self.note(at, size)?;
        Ok(Some(size))
    }

    fn note(&mut self, at: usize, size: usize) -> PyResult<()> {
        let no_room = |_| PyMemoryError::new_err("no room to measure a value");
        self.known.try_reserve(1).map_err(no_room)?;
        self.known.insert(at, size);
        Ok(())
    }
}
