//! Copies the variables of chat templates, and collects their output, for `bpe_engine.prompt`.

use std::rc::Rc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyIterator, PyList, PyString, PyTuple, PyType};

use crate::interned::interned;
use crate::labels::{Depth, GENERATED, GIVEN_SHIFT, Labels, NOWHERE, START_SHIFT, TRUSTED, length};
use crate::objects::push;

/// Copies data that a caller gives to a template.
///
/// Copies instances of dict, list, str, int, float, bool and None, but not of their subclasses, and
/// calls `other` for everything else. Returns the copy, and the number of characters in its strings
/// without those that `other` copied.
#[pyfunction]
pub fn copy_plain<'py>(
    value: &Bound<'py, PyAny>,
    other: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    let mut copier = Copier { other, characters: 0 };
    let copy = copier.copy(value)?;
    Ok((copy, copier.characters))
}

struct Copier<'a, 'py> {
    other: &'a Bound<'py, PyAny>,
    characters: usize,
}

impl<'py> Copier<'_, 'py> {
    /// Returns the value itself if it is immutable, or a copy.
    fn copy(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if self.is_scalar(value)? {
            return Ok(value.clone());
        }
        let Ok(dict) = value.cast_exact::<PyDict>() else {
            let Ok(list) = value.cast_exact::<PyList>() else { return self.other.call1((value,)) };
            let _depth = Depth::enter(value.py())?;
            let items: Vec<_> = list.iter().collect();
            let items: Vec<_> =
                items.iter().map(|item| self.copy(item)).collect::<PyResult<_>>()?;
            return Ok(PyList::new(value.py(), items)?.into_any());
        };
        let _depth = Depth::enter(value.py())?;
        // Nobody else has the copy, so it does not change during iteration.
        let copy = dict.copy()?;
        let before = self.characters;
        let mut changed = Vec::new();
        for (key, item) in &copy {
            if !key.is_exact_instance_of::<PyString>() {
                self.characters = before;
                return self.copy_items(&dict.copy()?);
            }
            self.characters += length(&key)?;
            if !self.is_scalar(&item)? {
                push(&mut changed, (key, item))?;
            }
        }
        for (key, item) in changed {
            copy.set_item(key, self.copy(&item)?)?;
        }
        Ok(copy.into_any())
    }

    /// Copies a dict whose keys are not all strings and which has no other owner.
    fn copy_items(&mut self, dict: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let copy = PyDict::new(dict.py());
        for (key, item) in dict {
            copy.set_item(self.copy(&key)?, self.copy(&item)?)?;
        }
        Ok(copy.into_any())
    }

    /// Returns true for an immutable value of a built-in type, and counts its characters.
    fn is_scalar(&mut self, value: &Bound<'py, PyAny>) -> PyResult<bool> {
        if value.is_exact_instance_of::<PyString>() {
            self.characters += length(value)?;
            return Ok(true);
        }
        Ok(value.is_none()
            || value.is_exact_instance_of::<PyBool>()
            || value.is_exact_instance_of::<PyInt>()
            || value.is_exact_instance_of::<PyFloat>())
    }
}

/// Collects the output of a template, which is strings, tuples of summands and turns, into segments.
///
/// The `_runs` of a string of the type `traced` are the lengths and flags of its parts: bit 0 for
/// trusted text, bit 1 for text in a `{% generation %}` block, above these the number, from 1 on, of
/// `labels` that it comes from, and above that the first of its characters there. Other strings have
/// no flags. `add` sums a tuple that has other values than strings. An int is the item of `turns`
/// that the text of the template belongs to from there on.
///
/// Neighbors that continue each other become one segment of the type `segment`, a named tuple of
/// eight, with the labels of their number. A special token that is still whole becomes a segment of
/// its own. Returns None for more than `limit` characters.
#[pyfunction]
pub fn collect_segments<'py>(
    output: &Bound<'py, PyIterator>,
    traced: &Bound<'py, PyType>,
    add: &Bound<'py, PyAny>,
    segment: &Bound<'py, PyType>,
    labels: &Bound<'py, Labels>,
    turns: &Bound<'py, PyList>,
    limit: usize,
) -> PyResult<Option<Bound<'py, PyList>>> {
    let mut collector = Collector::new(traced, segment, labels.borrow(), turns)?;
    for item in output {
        let item = item?;
        if let Ok(turn) = item.cast_exact::<PyInt>() {
            collector.enter(turns.get_item(turn.extract()?)?)?;
            continue;
        }
        match item.cast_exact::<PyTuple>() {
            Ok(parts) if parts.iter_borrowed().all(|part| collector.is_text(&part)) => {
                for part in parts.iter_borrowed() {
                    collector.add(&part)?;
                }
            }
            Ok(parts) => collector.add(&add.call1((parts,))?)?,
            Err(_) => collector.add(&item)?,
        }
        if collector.characters > limit {
            return Ok(None);
        }
    }
    collector.close()?;
    Ok(Some(collector.segments))
}

/// A value that the caller gave.
struct Given<'py> {
    origin: Bound<'py, PyAny>,
    role: Bound<'py, PyAny>,
    source: Bound<'py, PyAny>,
    /// The name and the names of a special token.
    special: Option<[Bound<'py, PyAny>; 2]>,
    is_labeled: bool,
}

impl<'py> Given<'py> {
    fn new(segment: Option<Bound<'py, PyTuple>>, origin: Bound<'py, PyAny>) -> PyResult<Self> {
        let Some(segment) = segment else {
            let none = origin.py().None().into_bound(origin.py());
            let (role, source) = (none.clone(), none);
            return Ok(Self { origin, role, source, special: None, is_labeled: false });
        };
        let item = |place| segment.get_item(place);
        let (role, source) = (item(2)?, item(3)?);
        let is_labeled = !role.is_none() || !source.is_none();
        let is_special = item(4)?.eq(interned!(segment.py(), "special"))?;
        let special = if is_special { Some([item(0)?, item(1)?]) } else { None };
        Ok(Self { origin, role, source, special, is_labeled })
    }
}

struct Collector<'a, 'py> {
    traced: &'a Bound<'py, PyType>,
    segment: &'a Bound<'py, PyType>,
    segments: Bound<'py, PyList>,
    labels: PyRef<'py, Labels>,
    /// The value that was asked for last, with its flags.
    last: Option<(u64, Rc<Given<'py>>)>,
    /// The flags of the first text of the open segment, those of a text that continues it, and its
    /// texts.
    flags: u64,
    next: u64,
    texts: Bound<'py, PyList>,
    /// Values for all segments.
    kind: Bound<'py, PyAny>,
    special: Bound<'py, PyAny>,
    ids: Bound<'py, PyAny>,
    /// Values for some segments.
    none: Bound<'py, PyAny>,
    template: Bound<'py, PyAny>,
    assistant: Bound<'py, PyAny>,
    /// The origin of the text of the template.
    turn: Bound<'py, PyAny>,
    characters: usize,
}

impl<'a, 'py> Collector<'a, 'py> {
    fn new(
        traced: &'a Bound<'py, PyType>,
        segment: &'a Bound<'py, PyType>,
        labels: PyRef<'py, Labels>,
        turns: &Bound<'py, PyList>,
    ) -> PyResult<Self> {
        if !segment.is_subclass_of::<PyTuple>()? {
            return Err(PyTypeError::new_err("segments must be tuples"));
        }
        let py = traced.py();
        Ok(Self {
            traced,
            segment,
            segments: PyList::empty(py),
            labels,
            last: None,
            flags: 0,
            next: 0,
            texts: PyList::empty(py),
            kind: interned!(py, "text").clone().into_any(),
            special: interned!(py, "special").clone().into_any(),
            ids: PyTuple::empty(py).into_any(),
            none: py.None().into_bound(py),
            template: interned!(py, "template").clone().into_any(),
            assistant: interned!(py, "assistant").clone().into_any(),
            turn: turns.get_item(0)?,
            characters: 0,
        })
    }

    fn is_text(&self, part: &Bound<'py, PyAny>) -> bool {
        part.is_exact_instance_of::<PyString>() || part.get_type_ptr() == self.traced.as_type_ptr()
    }

    fn add(&mut self, part: &Bound<'py, PyAny>) -> PyResult<()> {
        self.characters = self.characters.saturating_add(length(part)?);
        if part.get_type_ptr() != self.traced.as_type_ptr() {
            return self.push(0, part);
        }
        let runs = part.getattr(interned!(part.py(), "_runs"))?.cast_into::<PyTuple>()?;
        if runs.len() == 1 {
            let (_, flags) = runs.get_borrowed_item(0)?.extract::<(usize, u64)>()?;
            return self.push(flags, part);
        }
        let mut start = 0;
        for run in runs.iter_borrowed() {
            let (length, flags) = run.extract::<(usize, u64)>()?;
            self.push(flags, &substring(part, start, start + length)?)?;
            start += length;
        }
        Ok(())
    }

    /// Text of the template belongs to this turn from here on.
    fn enter(&mut self, turn: Bound<'py, PyAny>) -> PyResult<()> {
        if !turn.is(&self.turn) {
            self.close()?;
            self.turn = turn;
        }
        Ok(())
    }

    fn push(&mut self, flags: u64, text: &Bound<'py, PyAny>) -> PyResult<()> {
        if flags >> GIVEN_SHIFT != 0 {
            return self.push_given(flags, text);
        }
        self.extend(flags, text)
    }

    /// Adds text to the open segment if it continues that, and to a new one if it does not.
    fn extend(&mut self, flags: u64, text: &Bound<'py, PyAny>) -> PyResult<()> {
        if flags != self.next {
            self.close()?;
            self.flags = flags;
        }
        self.next = flags;
        if flags >> GIVEN_SHIFT != 0 && flags >> START_SHIFT != NOWHERE {
            self.next += u64::try_from(length(text)?)? << START_SHIFT;
        }
        self.texts.append(text)
    }

    /// Adds text that comes from a segment of the caller.
    fn push_given(&mut self, mut flags: u64, text: &Bound<'py, PyAny>) -> PyResult<()> {
        let given = self.given(flags)?.ok_or_else(|| PyValueError::new_err("no such segment"))?;
        let mut special = None;
        if let Some([name, names]) = &given.special {
            // Only the text shows whether something was removed from it.
            if text.eq(name)? {
                special = Some([name.clone(), names.clone()]);
            } else if !given.is_labeled && given.origin.is_none() {
                flags &= TRUSTED | GENERATED;
            }
        }
        let Some([name, names]) = special else { return self.extend(flags, text) };
        self.close()?;
        self.flags = flags;
        self.append([name, names], &self.special.clone())?;
        // The text after it is not part of it.
        self.flags = 0;
        self.next = 0;
        Ok(())
    }

    /// Returns the value of the caller that text with these flags comes from.
    fn given(&mut self, flags: u64) -> PyResult<Option<Rc<Given<'py>>>> {
        let flags = flags & ((1 << START_SHIFT) - (1 << GIVEN_SHIFT));
        if let Some((_, given)) = self.last.as_ref().filter(|(last, _)| *last == flags) {
            return Ok(Some(given.clone()));
        }
        let Some((segment, origin)) = self.labels.given(self.segments.py(), flags)? else {
            return Ok(None);
        };
        let given = Rc::new(Given::new(segment, origin)?);
        self.last = Some((flags, given.clone()));
        Ok(Some(given))
    }

    /// Closes the open segment. A segment without text only separated its neighbors, and is
    /// dropped.
    fn close(&mut self) -> PyResult<()> {
        let py = self.segments.py();
        // SAFETY: attached; both objects are live. The call returns a new reference to a `str`, or
        // null with an exception set.
        let text = unsafe {
            let joined = ffi::PyUnicode_Join(interned!(py, "").as_ptr(), self.texts.as_ptr());
            Bound::from_owned_ptr_or_err(py, joined)?
        };
        if !self.texts.is_empty() {
            self.texts = PyList::empty(py);
        }
        if length(&text)? == 0 {
            return Ok(());
        }
        let trust = PyBool::new(py, self.flags & TRUSTED != 0).to_owned().into_any();
        self.append([text, trust], &self.kind.clone())
    }

    /// Adds a segment with this text, its trust, and the labels of the flags.
    fn append(
        &mut self,
        [text, trust]: [Bound<'py, PyAny>; 2],
        kind: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let given = self.given(self.flags)?;
        let given = given.as_deref();
        let (mut role, source) = match given {
            Some(given) => (&given.role, &given.source),
            None if self.flags & TRUSTED != 0 => (&self.none, &self.template),
            None => (&self.none, &self.none),
        };
        if role.is_none() && self.flags & GENERATED != 0 {
            role = &self.assistant;
        }
        let (role, source) = (role.clone(), source.clone());
        let (kind, ids) = (kind.clone(), self.ids.clone());
        let start = self.flags >> START_SHIFT;
        let (origin, start) = match given {
            Some(given) if !given.origin.is_none() && start != NOWHERE => {
                (given.origin.clone(), start.into_pyobject(self.segments.py())?.into_any())
            }
            Some(given) if !given.origin.is_none() => (given.origin.clone(), self.none.clone()),
            _ => (self.turn.clone(), self.none.clone()),
        };
        let items = [text, trust, role, source, kind, ids, origin, start];
        self.segments.append(new_tuple(self.segment, items)?)
    }
}

/// Makes an instance of `kind`, a subclass of `tuple`, with these items.
fn new_tuple<'py, const N: usize>(
    kind: &Bound<'py, PyType>,
    items: [Bound<'py, PyAny>; N],
) -> PyResult<Bound<'py, PyAny>> {
    let py = kind.py();
    // SAFETY: attached. This is what `tuple.__new__` does for a subclass: its `tp_alloc`, which
    // every type has, returns a new tuple of N null items, or null with an exception set. Nobody
    // else has seen the tuple, and it takes over the reference to each item.
    unsafe {
        let alloc = (*kind.as_type_ptr()).tp_alloc.unwrap_or(ffi::PyType_GenericAlloc);
        let tuple = alloc(kind.as_type_ptr(), N as ffi::Py_ssize_t);
        let tuple = Bound::from_owned_ptr_or_err(py, tuple)?;
        for (place, item) in (0..).zip(items) {
            ffi::PyTuple_SET_ITEM(tuple.as_ptr(), place, item.into_ptr());
        }
        Ok(tuple)
    }
}

/// Returns a part of a `str` or an instance of a subclass, as a plain `str`.
fn substring<'py>(
    text: &Bound<'py, PyAny>,
    start: usize,
    end: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let (start, end) = (ffi::Py_ssize_t::try_from(start)?, ffi::Py_ssize_t::try_from(end)?);
    // SAFETY: attached, and `text` is a `str`. The call cuts `end` to its length, and returns a new
    // reference to a `str`, or null with an exception set.
    unsafe {
        let part = ffi::PyUnicode_Substring(text.as_ptr(), start, end);
        Bound::from_owned_ptr_or_err(text.py(), part)
    }
}
