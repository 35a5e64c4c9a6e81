//! Calls string and dict methods that chat templates often call, for `bpe_engine.prompt`.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use bpe_core::ablation::Mechanism;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::interned::interned;
use crate::labels::{Address, Depth, Labels};
use crate::objects::push;
use crate::taint::{ITEM, Text, length};

/// Approximate size in bytes of a short string with its origin.
const STRING: usize = 64;
/// Cost above which a call is counted before it runs.
const QUICK: usize = 1 << 16;

/// Calls ``value.name(*args)``, counted by `limits`: natively for a plain `str`, a `str` whose
/// characters share flags, and a dict; by the template language for all other values.
#[pyfunction]
pub fn call_method<'py>(
    labels: &Bound<'py, Labels>,
    limits: &Bound<'py, PyAny>,
    context: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    if Mechanism::NativeMethods.is_used()
        && let Some((result, cost)) = quick(labels, value, name, args)?
    {
        count(limits, cost)?;
        return Ok(result);
    }
    let (getattr, call) = labels.borrow().calls(py);
    let method = getattr.call1((value, name))?;
    let mut all = Vec::new();
    for item in [context.clone(), method].into_iter().chain(args.iter()) {
        push(&mut all, item)?;
    }
    call.call1(PyTuple::new(py, all)?)
}

/// Subtracts a cost from `limits`, like `use`.
fn count(limits: &Bound<'_, PyAny>, cost: usize) -> PyResult<()> {
    let py = limits.py();
    let room = limits.getattr(interned!(py, "room"))?.sub(cost)?;
    limits.setattr(interned!(py, "room"), &room)?;
    if room.lt(limits.getattr(interned!(py, "next_look"))?)? {
        limits.call_method1(interned!(py, "check"), (cost,))?;
    }
    Ok(())
}

/// Returns the result and the cost of a quick call; `None` for other calls.
fn quick<'py>(
    labels: &Bound<'py, Labels>,
    value: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Option<(Bound<'py, PyAny>, usize)>> {
    let py = value.py();
    let name = name.to_str()?;
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        return of_dict(labels, dict, name, args);
    }
    let traced = labels.borrow().traced(py);
    let Some(text) = Text::new(value, &traced)? else { return Ok(None) };
    let argument = match args.len() {
        0 => None,
        1 => Some(args.get_borrowed_item(0)?),
        _ => return Ok(None),
    };
    let argument = argument.as_deref();
    if argument.is_some_and(|it| Text::new(it, &traced).is_ok_and(|text| text.is_none())) {
        return Ok(None);
    }
    let given = STRING + argument.map_or(Ok(0), |it| length(it).map(|length| ITEM + length))?;
    let searched = given.saturating_add(text.length.saturating_mul(given) / STRING);
    let sides = match name {
        "strip" => Some((true, true)),
        "lstrip" => Some((true, false)),
        "rstrip" => Some((false, true)),
        _ => None,
    };
    let cost = if sides.is_some() { searched } else { given }.saturating_add(text.length);
    if cost > QUICK {
        return Ok(None);
    }
    if let Some(sides) = sides {
        return Ok(Some((text.stripped(argument, sides)?, cost)));
    }
    let Some(argument) = argument else { return Ok(None) };
    Ok(match name {
        "startswith" => Some((text.matches(argument, -1)?, cost)),
        "endswith" => Some((text.matches(argument, 1)?, cost)),
        "split" if length(argument)? > 0 => {
            let parts = text.split(argument)?;
            let made = if text.flags.is_some() { 2 * STRING } else { STRING };
            let cost = cost.saturating_add(made.saturating_mul(parts.len()));
            Some((parts.into_any(), cost))
        }
        _ => None,
    })
}

/// Returns the result and the cost of a dict method call; `None` for other calls.
fn of_dict<'py>(
    labels: &Bound<'py, Labels>,
    dict: &Bound<'py, PyDict>,
    name: &str,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Option<(Bound<'py, PyAny>, usize)>> {
    let py = dict.py();
    let cost = STRING.saturating_add(ITEM.saturating_mul(dict.len()));
    if name == "items" && args.is_empty() && cost <= QUICK {
        let opened = labels.borrow_mut().opened(dict.as_any())?;
        return Ok(Some((opened.call_method0(interned!(py, "items"))?, cost)));
    }
    if name != "get" || args.is_empty() || args.len() > 2 {
        return Ok(None);
    }
    let key = args.get_borrowed_item(0)?;
    let default = args.get_item(1).unwrap_or(py.None().into_bound(py));
    if !key.is_instance_of::<PyString>() {
        return Ok(None);
    }
    let Some(default_size) = size_of_plain(&default)? else { return Ok(None) };
    let given = if args.len() == 2 { default_size } else { 0 };
    let cost = cost.saturating_add(ITEM).saturating_add(length(&key)?).saturating_add(given);
    if cost > QUICK {
        return Ok(None);
    }
    let mut labels = labels.borrow_mut();
    let found = match dict.get_item(key)? {
        Some(item) => labels.read(dict, &key, item)?,
        None => labels.opened(&default)?,
    };
    Ok(Some((found, cost)))
}

/// Returns the size of a value for code that traverses the value; `None` if the value has items
/// other than strings, numbers, None, lists, tuples and dicts. Each occurrence of an item counts.
#[pyfunction]
pub fn size_of_plain(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    Sizes { known: HashMap::default() }.size(value)
}

struct Sizes {
    /// Sizes of lists, tuples and dicts by address.
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
        self.note(at, ITEM)?; // In case the object contains itself.
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
