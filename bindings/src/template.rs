//! Copies the variables of chat templates, and collects their output, for `bpe_engine.prompt`.

use std::rc::Rc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyIterator, PyList, PyString, PyTuple, PyType};
use pyo3::{Borrowed, ffi};

use crate::interned::interned;
use crate::labels::{
    Depth, GENERATED, GIVEN_SHIFT, Labels, NOWHERE, START_SHIFT, TRUSTED, length, plain_text,
    untracked,
};
use crate::objects::{new_int, new_list, new_tuple_of, push};

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
            return Ok(untracked(PyList::new(value.py(), items)?.into_any()));
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
        Ok(untracked(copy.into_any()))
    }

    /// Copies a dict whose keys are not all strings and which has no other owner.
    fn copy_items(&mut self, dict: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let copy = PyDict::new(dict.py());
        for (key, item) in dict {
            copy.set_item(self.copy(&key)?, self.copy(&item)?)?;
        }
        Ok(untracked(copy.into_any()))
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

/// Compares the values of a list with those kept of an earlier one. Returns the places where they
/// differ, or only the first one.
///
/// The kept values are copies that nobody changes. Two values are equal if they have the same type, a
/// built-in one or `segment`, and the same content in the same order. Calls no code of the caller.
#[pyfunction]
pub fn differing<'py>(
    values: &Bound<'py, PyList>,
    kept: &Bound<'py, PyList>,
    segment: &Bound<'py, PyType>,
    is_first: bool,
) -> PyResult<Vec<usize>> {
    let mut places = Vec::new();
    for (place, value) in values.iter().enumerate() {
        if place < kept.len() {
            let kept = kept.get_item(place)?;
            if is_same(value.as_borrowed(), kept.as_borrowed(), segment)? {
                continue;
            }
        }
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
/// nothing changes either of them meanwhile, or only what was copied. An object that is in both never changes: lists and dicts
/// were copied. So that object is not even read, which would wait for memory.
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

/// Collects the output of a template into segments.
///
/// Output is strings, tuples and numbers. A tuple that begins with the first of `kinds` has values
/// whose text follows each other; one that begins with the second, values whose sum does. The first of
/// `texts` returns the text of a value other than a string, and the second that of the sum of such. A number is that of the message
/// that the text of the template belongs to from there on, or 0. A list has segments of an earlier
/// rendering that come next: their characters, and tuples of them. The numbers of the segments and of
/// the characters until then are appended to it.
///
/// The `_flags` of a string of the type `traced` are those of all characters, or the lengths and
/// flags of its parts: bit 0 for trusted text, bit 1 for text in a `{% generation %}` block, above these the number, from 1 on, of
/// `labels` that it comes from, and above that the first of its characters there. Other strings have
/// no flags.
///
/// Neighbors that continue each other become one segment of the type `segment`, a named tuple of
/// eight, with the labels of their number. A special token that is still whole becomes a segment of
/// its own. Returns None for more than `limit` characters.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn collect_segments<'py>(
    output: &Bound<'py, PyIterator>,
    traced: &Bound<'py, PyType>,
    kinds: [Bound<'py, PyAny>; 2],
    texts: [Bound<'py, PyAny>; 2],
    segment: &Bound<'py, PyType>,
    labels: &Bound<'py, Labels>,
    has_tags: bool,
    limit: usize,
) -> PyResult<Option<Bound<'py, PyList>>> {
    let mut collector = Collector::new(traced, segment, labels, has_tags, limit)?;
    let ([pieces, summands], [text_of, add]) = (&kinds, &texts);
    let rules = Rules { pieces, summands, text_of, add };
    for item in output {
        let item = item?;
        if let Ok(turn) = item.cast_exact::<PyInt>() {
            collector.enter(turn.extract()?)?;
            continue;
        }
        if let Ok(finished) = item.cast_exact::<PyList>() {
            collector.add_finished(finished)?;
            if collector.characters > limit {
                return Ok(None);
            }
            continue;
        }
        match item.cast_exact::<PyTuple>() {
            Ok(parts) => collector.add_parts(parts, &rules)?,
            Err(_) => collector.add(&item)?,
        }
        if collector.characters > limit {
            return Ok(None);
        }
    }
    collector.close()?;
    Ok(Some(collector.segments))
}

/// The meaning of tuples of the output.
struct Rules<'a, 'py> {
    pieces: &'a Bound<'py, PyAny>,
    summands: &'a Bound<'py, PyAny>,
    text_of: &'a Bound<'py, PyAny>,
    add: &'a Bound<'py, PyAny>,
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
    labels: &'a Bound<'py, Labels>,
    /// The value that was asked for last, with its flags.
    last: Option<(u64, Rc<Given<'py>>)>,
    /// The flags of the first text of the open segment, those of a text that continues it, and its
    /// texts.
    flags: u64,
    next: u64,
    text: Option<Bound<'py, PyAny>>,
    more: Vec<Bound<'py, PyAny>>,
    /// Values for all segments.
    kind: Bound<'py, PyAny>,
    special: Bound<'py, PyAny>,
    ids: Bound<'py, PyAny>,
    /// Values for some segments.
    none: Bound<'py, PyAny>,
    has_tags: bool,
    template: Bound<'py, PyAny>,
    assistant: Bound<'py, PyAny>,
    /// The number of the message that text of the template belongs to, and the origin of that text
    /// once it was asked for.
    turn: usize,
    origin: Option<Bound<'py, PyAny>>,
    characters: usize,
    limit: usize,
}

impl<'a, 'py> Collector<'a, 'py> {
    fn new(
        traced: &'a Bound<'py, PyType>,
        segment: &'a Bound<'py, PyType>,
        labels: &'a Bound<'py, Labels>,
        has_tags: bool,
        limit: usize,
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
            text: None,
            more: Vec::new(),
            kind: interned!(py, "text").clone().into_any(),
            special: interned!(py, "special").clone().into_any(),
            ids: PyTuple::empty(py).into_any(),
            none: py.None().into_bound(py),
            has_tags,
            template: interned!(py, "template").clone().into_any(),
            assistant: interned!(py, "assistant").clone().into_any(),
            turn: 0,
            origin: None,
            characters: 0,
            limit,
        })
    }

    fn is_text(&self, part: &Bound<'py, PyAny>) -> bool {
        part.is_exact_instance_of::<PyString>() || part.get_type_ptr() == self.traced.as_type_ptr()
    }

    /// Adds the parts of a tuple.
    fn add_parts(&mut self, parts: &Bound<'py, PyTuple>, rules: &Rules<'_, 'py>) -> PyResult<()> {
        let kind = parts.get_borrowed_item(0)?;
        let values = || parts.iter_borrowed().skip(1);
        if kind.is(rules.summands) {
            if !values().all(|part| self.is_text(&part)) {
                return self.add(&rules.add.call1((parts.get_slice(1, parts.len()),))?);
            }
        } else if !kind.is(rules.pieces) {
            return self.add(&rules.text_of.call1((parts,))?);
        }
        for part in values() {
            if self.characters > self.limit {
                return Ok(());
            }
            if self.is_text(&part) {
                self.add(&part)?;
            } else if let Ok(parts) = part.cast_exact::<PyTuple>() {
                self.add_parts(&parts, rules)?;
            } else {
                self.add(&rules.text_of.call1((part,))?)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, part: &Bound<'py, PyAny>) -> PyResult<()> {
        self.characters = self.characters.saturating_add(length(part)?);
        if part.get_type_ptr() != self.traced.as_type_ptr() {
            return self.push(0, part);
        }
        let flags = part.getattr(interned!(part.py(), "_flags"))?;
        let Ok(runs) = flags.cast_exact::<PyTuple>() else {
            return self.push(flags.extract()?, part);
        };
        let mut start = 0;
        for run in runs.iter_borrowed() {
            let (length, flags) = run.extract::<(usize, u64)>()?;
            self.push(flags, &substring(part, start, start + length)?)?;
            start += length;
        }
        Ok(())
    }

    /// Text of the template belongs to this message from here on.
    fn enter(&mut self, turn: usize) -> PyResult<()> {
        if turn != self.turn {
            self.part()?;
            self.turn = turn;
            self.origin = None;
        }
        Ok(())
    }

    /// Ends the open segment, which no text continues.
    fn part(&mut self) -> PyResult<()> {
        self.close()?;
        self.flags = 0;
        self.next = 0;
        Ok(())
    }

    /// Adds segments of an earlier rendering.
    fn add_finished(&mut self, finished: &Bound<'py, PyList>) -> PyResult<()> {
        self.part()?;
        let characters: usize = finished.get_item(0)?.extract()?;
        self.characters = self.characters.saturating_add(characters);
        for part in finished.iter().skip(1) {
            let end = self.segments.len();
            self.segments.set_slice(end, end, &part)?;
        }
        for number in [self.segments.len(), self.characters] {
            finished.append(new_int(finished.py(), number)?)?;
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
        match &self.text {
            None => self.text = Some(text.clone()),
            Some(_) => push(&mut self.more, text.clone())?,
        }
        Ok(())
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
        self.part()
    }

    /// Returns the value of the caller that text with these flags comes from.
    fn given(&mut self, flags: u64) -> PyResult<Option<Rc<Given<'py>>>> {
        let flags = flags & ((1 << START_SHIFT) - (1 << GIVEN_SHIFT));
        if let Some((_, given)) = self.last.as_ref().filter(|(last, _)| *last == flags) {
            return Ok(Some(given.clone()));
        }
        let found = self.labels.borrow_mut().given(self.segments.py(), flags)?;
        let Some((segment, origin)) = found else {
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
        let Some(mut text) = self.text.take() else { return Ok(()) };
        if !self.more.is_empty() {
            let mut texts = std::mem::take(&mut self.more);
            texts.insert(0, text);
            let texts = new_list(py, texts)?;
            // SAFETY: attached; both objects are live. The call returns a new reference to a `str`,
            // or null with an exception set.
            text = unsafe {
                let joined = ffi::PyUnicode_Join(interned!(py, "").as_ptr(), texts.as_ptr());
                Bound::from_owned_ptr_or_err(py, joined)?
            };
        }
        if !text.is_exact_instance_of::<PyString>() {
            text = plain_text(&text)?;
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
            _ => {
                if self.origin.is_none() {
                    let py = self.segments.py();
                    let labels = self.labels.borrow();
                    self.origin = Some(labels.origin_of_turn(py, self.turn, self.has_tags)?);
                }
                (self.origin.clone().unwrap_or(self.none.clone()), self.none.clone())
            }
        };
        let items = [text, trust, role, source, kind, ids, origin, start];
        self.segments.append(new_tuple_of(self.segment, items)?)
    }
}

/// Returns a part of a `str` or an instance of a subclass, as a plain `str`.
pub fn substring<'py>(
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
