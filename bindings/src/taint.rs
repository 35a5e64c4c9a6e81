//! The taint rule of chat templates in native code: joins and cuts strings whose characters have
//! flags.
//!
//! `bpe_engine/prompt/taint.py` states the rule. No function here creates trust: a flag of a result
//! is the flag of the character that was copied.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::string::PyStringData;
use pyo3::types::{PyInt, PyList, PyString, PyTuple, PyType};

use crate::interned::interned;
use crate::objects::{new_list, new_tuple, push, untrack};

/// Flag of a character that the template wrote; the next flag is for `{% generation %}` blocks.
pub const TRUSTED: u64 = 1;
pub const GENERATED: u64 = 2;
/// Shift of a caller value's number, and of the index of the first character in the value.
pub const GIVEN_SHIFT: u32 = 2;
pub const START_SHIFT: u32 = 32;
/// Start of text whose characters do not map one by one to the caller's value.
pub const NOWHERE: u64 = (1 << 31) - 1;
/// Approximate size in bytes of a list item.
pub const ITEM: usize = 8;

/// Joins a tuple of strings to a string of the type `traced`, or to a `str` if no part has flags.
/// Returns the string and its cost: its characters, and the items of its flags.
#[pyfunction]
pub fn join_traced<'py>(
    parts: &Bound<'py, PyTuple>,
    traced: &Bound<'py, PyType>,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    let py = parts.py();
    let text = joined(parts.as_any())?;
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

/// Joins a tuple or a list of strings to a `str`.
pub fn joined<'py>(parts: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = parts.py();
    // SAFETY: attached; both objects are live. The call returns a new reference to a `str`, or null
    // with an exception set.
    unsafe {
        let joined = ffi::PyUnicode_Join(interned!(py, "").as_ptr(), parts.as_ptr());
        Bound::from_owned_ptr_or_err(py, joined)
    }
}

/// Returns the cost of joining a tuple of strings.
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

/// Creates a string of the type `traced`, a subclass of `str`, with these characters and `flags`: a
/// number for all characters, or a tuple of (length, number).
pub fn new_traced<'py>(
    traced: &Bound<'py, PyType>,
    text: &Bound<'py, PyAny>,
    flags: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = text.py();
    let arguments = new_tuple(py, [text.clone()])?;
    // SAFETY: attached. `str.__new__` does the same for a subclass, which `traced` is: the call
    // returns a new object, or null with an exception set.
    let made = unsafe {
        let new = (*std::ptr::addr_of!(ffi::PyUnicode_Type)).tp_new;
        let make = new.ok_or_else(|| pyo3::exceptions::PyTypeError::new_err("str"))?;
        let made = make(traced.as_type_ptr(), arguments.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, made)?
    };
    made.setattr(interned!(py, "_flags"), flags)?;
    // SAFETY: the string is new, and holds a number, or a tuple of pairs of numbers.
    unsafe { untrack(&made) };
    Ok(made)
}

/// A string whose characters share one set of flags, or have none.
pub struct Text<'a, 'py> {
    text: &'a Bound<'py, PyAny>,
    traced: &'a Bound<'py, PyType>,
    pub length: usize,
    pub flags: Option<u64>,
}

impl<'a, 'py> Text<'a, 'py> {
    pub fn new(
        text: &'a Bound<'py, PyAny>,
        traced: &'a Bound<'py, PyType>,
    ) -> PyResult<Option<Self>> {
        let flags = match text.is_exact_instance_of::<PyString>() {
            true => None,
            false if text.get_type_ptr() == traced.as_type_ptr() => {
                let flags = text.getattr(interned!(text.py(), "_flags"))?;
                let Ok(flags) = flags.cast_exact::<PyInt>() else { return Ok(None) };
                Some(flags.extract()?)
            }
            false => return Ok(None),
        };
        Ok(Some(Self { text, traced, length: length(text)?, flags }))
    }

    /// Returns a part with flags that record its start.
    fn part(&self, part: Bound<'py, PyAny>, start: usize) -> PyResult<Bound<'py, PyAny>> {
        let Some(mut flags) = self.flags else { return Ok(part) };
        if length(&part)? == 0 {
            flags = 0;
        } else if flags >> GIVEN_SHIFT != 0 && flags >> START_SHIFT < NOWHERE {
            flags += u64::try_from(start)? << START_SHIFT;
        }
        new_traced(self.traced, &part, &flags.into_pyobject(part.py())?.into_any())
    }

    pub fn stripped(
        &self,
        characters: Option<&Bound<'py, PyAny>>,
        (left, right): (bool, bool),
    ) -> PyResult<Bound<'py, PyAny>> {
        let characters = characters.map(units).transpose()?;
        let text = units(self.text)?;
        let is_stripped = |unit: u32| match &characters {
            None => is_space(unit),
            Some(characters) => characters.position(unit).is_some(),
        };
        let (mut start, mut end) = (0, self.length);
        while left && start < end && is_stripped(text.get(start)) {
            start += 1;
        }
        while right && end > start && is_stripped(text.get(end - 1)) {
            end -= 1;
        }
        if start == 0 && end == self.length {
            return Ok(self.text.clone());
        }
        self.part(substring(self.text, start, end)?, start)
    }

    pub fn matches(
        &self,
        other: &Bound<'py, PyAny>,
        direction: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (text, most) = (self.text.as_ptr(), ffi::Py_ssize_t::MAX);
        // SAFETY: attached; both are instances of `str`. The call returns -1 with an exception set,
        // or a truth value.
        let found = unsafe { ffi::PyUnicode_Tailmatch(text, other.as_ptr(), 0, most, direction) };
        if found < 0 {
            return Err(PyErr::fetch(self.text.py()));
        }
        Ok(pyo3::types::PyBool::new(self.text.py(), found > 0).to_owned().into_any())
    }

    pub fn split(&self, separator: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        // SAFETY: attached; both are instances of `str`. The call returns a new list of `str`, or
        // null with an exception set.
        let parts = unsafe {
            let parts = ffi::PyUnicode_Split(self.text.as_ptr(), separator.as_ptr(), -1);
            Bound::from_owned_ptr_or_err(self.text.py(), parts)?.cast_into_unchecked::<PyList>()
        };
        if self.flags.is_some() {
            let (mut at, gap) = (0, length(separator)?);
            for place in 0..parts.len() {
                let part = parts.get_item(place)?;
                let size = length(&part)?;
                parts.set_item(place, self.part(part, at)?)?;
                at += size + gap;
            }
        }
        Ok(parts)
    }
}

/// The code points of a `str`.
enum Units<'a> {
    One(&'a [u8]),
    Two(&'a [u16]),
    Four(&'a [u32]),
}

fn units<'a>(text: &'a Bound<'_, PyAny>) -> PyResult<Units<'a>> {
    // SAFETY: attached, and a live `str` does not change while it has more than one owner. See
    // `text::read`.
    Ok(match unsafe { text.cast::<PyString>()?.data()? } {
        PyStringData::Ucs1(units) => Units::One(units),
        PyStringData::Ucs2(units) => Units::Two(units),
        PyStringData::Ucs4(units) => Units::Four(units),
    })
}

impl Units<'_> {
    fn get(&self, place: usize) -> u32 {
        match self {
            Self::One(units) => units[place].into(),
            Self::Two(units) => units[place].into(),
            Self::Four(units) => units[place],
        }
    }

    fn position(&self, wanted: u32) -> Option<usize> {
        match self {
            Self::One(units) => units.iter().position(|&unit| u32::from(unit) == wanted),
            Self::Two(units) => units.iter().position(|&unit| u32::from(unit) == wanted),
            Self::Four(units) => units.iter().position(|&unit| unit == wanted),
        }
    }
}

/// Whether Python's `str.strip` removes a character.
fn is_space(unit: u32) -> bool {
    match unit {
        9..=13 | 28..=32 | 0x85 | 0xA0 => true,
        ..0x1680 => false,
        0x1680 | 0x2000..=0x200A | 0x2028 | 0x2029 | 0x202F | 0x205F | 0x3000 => true,
        _ => false,
    }
}

/// Returns a plain `str` with the characters of a `str` or an instance of a subclass.
pub fn plain_text<'py>(text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: attached. The call copies a `str` of a subclass and returns a new reference, or null
    // with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(text.py(), ffi::PyUnicode_FromObject(text.as_ptr())) }
}

/// Returns the number of characters in a `str`, or a TypeError for other values.
pub fn length(text: &Bound<'_, PyAny>) -> PyResult<usize> {
    // SAFETY: attached, and `text` is a live object. The call returns -1 with an exception set if
    // `text` is not a `str`.
    let length = unsafe { ffi::PyUnicode_GetLength(text.as_ptr()) };
    usize::try_from(length).map_err(|_| PyErr::fetch(text.py()))
}

/// Returns part of a `str`, or of an instance of a subclass, as a plain `str`.
pub fn substring<'py>(
    text: &Bound<'py, PyAny>,
    start: usize,
    end: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let (start, end) = (ffi::Py_ssize_t::try_from(start)?, ffi::Py_ssize_t::try_from(end)?);
    // SAFETY: attached, and `text` is a `str`. The call clamps `end` to its length and returns a
    // new reference to a `str`, or null with an exception set.
    unsafe {
        let part = ffi::PyUnicode_Substring(text.as_ptr(), start, end);
        Bound::from_owned_ptr_or_err(text.py(), part)
    }
}
