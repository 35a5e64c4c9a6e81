//! Calls methods of strings and dicts that chat templates often call, for `bpe_engine.prompt`.

use bpe_core::ablation::Mechanism;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::string::PyStringData;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple, PyType};

use crate::interned::interned;
use crate::labels::{GIVEN_SHIFT, Labels, NOWHERE, START_SHIFT, length, new_traced};
use crate::objects::push;
use crate::template::substring;
use crate::traced::{ITEM, size_of_plain};

/// Bytes that a short string with its origin takes, roughly.
const STRING: usize = 64;
/// The cost of a call above which it is counted before.
const QUICK: usize = 1 << 16;

/// ``value.name(*args)``, counted by `limits`: here for a `str`, one whose characters have flags in
/// common, and a dict; by the template language for all others.
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

/// Takes a cost off the room of `limits`, as `use` does.
fn count(limits: &Bound<'_, PyAny>, cost: usize) -> PyResult<()> {
    let py = limits.py();
    let room = limits.getattr(interned!(py, "room"))?.sub(cost)?;
    limits.setattr(interned!(py, "room"), &room)?;
    if room.lt(limits.getattr(interned!(py, "next_look"))?)? {
        limits.call_method1(interned!(py, "check"), (cost,))?;
    }
    Ok(())
}

/// Returns the result of a call and its cost; `None` for other calls.
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

/// Returns the result of a call of a method of a dict and its cost; `None` for other calls.
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

/// Returns a string without white space, or without `characters`, at the chosen sides, with its
/// flags; `None` if these differ between its characters.
#[pyfunction]
pub fn strip_traced<'py>(
    text: &Bound<'py, PyAny>,
    characters: Option<&Bound<'py, PyAny>>,
    sides: (bool, bool),
    traced: &Bound<'py, PyType>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !Mechanism::NativeMethods.is_used() {
        return Ok(None);
    }
    Text::new(text, traced)?.map(|text| text.stripped(characters, sides)).transpose()
}

/// A string whose characters have the same flags, or none.
struct Text<'a, 'py> {
    text: &'a Bound<'py, PyAny>,
    traced: &'a Bound<'py, PyType>,
    length: usize,
    flags: Option<u64>,
}

impl<'a, 'py> Text<'a, 'py> {
    fn new(text: &'a Bound<'py, PyAny>, traced: &'a Bound<'py, PyType>) -> PyResult<Option<Self>> {
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

    /// Returns a part, whose flags say where it begins.
    fn part(&self, part: Bound<'py, PyAny>, start: usize) -> PyResult<Bound<'py, PyAny>> {
        let Some(mut flags) = self.flags else { return Ok(part) };
        if length(&part)? == 0 {
            flags = 0;
        } else if flags >> GIVEN_SHIFT != 0 && flags >> START_SHIFT < NOWHERE {
            flags += u64::try_from(start)? << START_SHIFT;
        }
        new_traced(self.traced, &part, &flags.into_pyobject(part.py())?.into_any())
    }

    fn stripped(
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

    fn matches(&self, other: &Bound<'py, PyAny>, direction: i32) -> PyResult<Bound<'py, PyAny>> {
        let (text, most) = (self.text.as_ptr(), ffi::Py_ssize_t::MAX);
        // SAFETY: attached; both are instances of `str`. The call returns -1 with an exception set,
        // or a truth value.
        let found = unsafe { ffi::PyUnicode_Tailmatch(text, other.as_ptr(), 0, most, direction) };
        if found < 0 {
            return Err(PyErr::fetch(self.text.py()));
        }
        Ok(pyo3::types::PyBool::new(self.text.py(), found > 0).to_owned().into_any())
    }

    fn split(&self, separator: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
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
