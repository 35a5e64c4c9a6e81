//! Copies the variables of chat templates and collects their output, for `bpe_engine.prompt`.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::rc::Rc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyIterator, PyList, PyString, PyTuple, PyType};

use crate::interned::interned;
use crate::labels::{Address, Depth, GivenValue, Labels};
use crate::objects::{new_list, new_tuple_of, push};
use crate::taint::{
    GENERATED, GIVEN_SHIFT, NOWHERE, START_SHIFT, TRUSTED, joined, length, plain_text, substring,
};

/// Copies data that a caller passes to a template.
///
/// Copies instances of dict, list, str, int, float, bool and None, but not of their subclasses, and
/// calls `other` for everything else. Returns the copy, and the number of characters in its
/// strings, excluding strings copied by `other`.
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
    /// Returns an immutable value itself, and a copy of any other value.
    fn copy(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if self.is_scalar(value)? {
            return Ok(value.clone());
        }
        let Ok(dict) = value.cast_exact::<PyDict>() else {
            let Ok(list) = value.cast_exact::<PyList>() else {
                return self.other.call1((value,));
            };
            let _depth = Depth::enter(value.py())?;
            let items: Vec<_> = list.iter().collect();
            let items: Vec<_> =
                items.iter().map(|item| self.copy(item)).collect::<PyResult<_>>()?;
            return Ok(PyList::new(value.py(), items)?.into_any());
        };
        let _depth = Depth::enter(value.py())?;
        // No other code has the copy, so the dict cannot change during iteration.
        let copy = dict.copy()?;
        let before = self.characters;
        let mut changed = Vec::new();
        for (key, item) in &copy {
            if !key.is_exact_instance_of::<PyString>() {
                self.characters = before;
                return self.copy_items(&dict.copy()?);
            }
            self.is_scalar(&key)?;
            if !self.is_scalar(&item)? {
                push(&mut changed, (key, item))?;
            }
        }
        for (key, item) in changed {
            copy.set_item(key, self.copy(&item)?)?;
        }
        Ok(copy.into_any())
    }

    /// Copies a dict with non-string keys and no other owner.
    fn copy_items(&mut self, dict: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let copy = PyDict::new(dict.py());
        for (key, item) in dict {
            copy.set_item(self.copy(&key)?, self.copy(&item)?)?;
        }
        Ok(copy.into_any())
    }

    /// Returns true for an immutable value of a built-in type and counts its characters.
    fn is_scalar(&mut self, value: &Bound<'py, PyAny>) -> PyResult<bool> {
        if value.is_exact_instance_of::<PyString>() {
            self.characters += length(value)?;
            return Ok(true);
        }
        Ok(value.is_none()
            || value.is_exact_instance_of::<PyInt>()
            || value.is_exact_instance_of::<PyBool>()
            || value.is_exact_instance_of::<PyFloat>())
    }
}

/// Collects the output of a template into segments.
///
/// Output consists of strings, tuples and numbers. A tuple that begins with the first of `kinds`
/// has values whose texts are concatenated; a tuple that begins with the second has values to be
/// added. The first of `texts` returns the text of a value other than a string, and the second the
/// text of such a sum. A number is the number of the message to which the template's following text
/// belongs, or 0.
///
/// The `_flags` of a string of the type `traced` are one number for all characters, or the lengths
/// and flags of its parts: bit 0 for trusted text, bit 1 for text in a `{% generation %}` block,
/// above these the number of its origin in `labels`, counted from 1, and above that the index of
/// its first character there. Other strings have no flags.
///
/// Adjacent texts that continue each other become one segment of the type `segment`, a named tuple
/// of eight, with the labels of their number. A special token that is still whole becomes a
/// separate segment. Returns None for more than `limit` characters.
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

/// How to read tuples in the output.
struct Rules<'a, 'py> {
    pieces: &'a Bound<'py, PyAny>,
    summands: &'a Bound<'py, PyAny>,
    text_of: &'a Bound<'py, PyAny>,
    add: &'a Bound<'py, PyAny>,
}

/// A value from the caller.
struct Given<'py> {
    origin: Bound<'py, PyAny>,
    role: Bound<'py, PyAny>,
    source: Bound<'py, PyAny>,
    /// Text and allowed names of a segment that is a special token.
    special: Option<[Bound<'py, PyAny>; 2]>,
    is_labeled: bool,
    text: Option<Bound<'py, PyAny>>,
}

impl<'py> Given<'py> {
    fn new((segment, origin, text): GivenValue<'py>) -> PyResult<Self> {
        let Some(segment) = segment else {
            let none = origin.py().None().into_bound(origin.py());
            let (role, source) = (none.clone(), none);
            return Ok(Self { origin, role, source, special: None, is_labeled: false, text });
        };
        let item = |place| segment.get_item(place);
        let (role, source) = (item(2)?, item(3)?);
        let is_labeled = !role.is_none() || !source.is_none();
        let is_special = item(4)?.eq(interned!(segment.py(), "special"))?;
        let special = if is_special { Some([item(0)?, item(1)?]) } else { None };
        Ok(Self { origin, role, source, special, is_labeled, text })
    }
}

struct Collector<'a, 'py> {
    traced: &'a Bound<'py, PyType>,
    segment: &'a Bound<'py, PyType>,
    segments: Bound<'py, PyList>,
    labels: &'a Bound<'py, Labels>,
    /// Last requested value, with its flags.
    last: Option<(u64, Rc<Given<'py>>)>,
    /// The flags of the first text of the open segment, the flags that would continue it, and its
    /// texts.
    flags: u64,
    next: u64,
    text: Option<Bound<'py, PyAny>>,
    more: Vec<Bound<'py, PyAny>>,
    /// Texts of the template as `str`, by address; addresses stay valid because each object is kept
    /// alive.
    constants: HashMap<usize, (Bound<'py, PyAny>, Bound<'py, PyAny>), BuildHasherDefault<Address>>,
    /// Values for all segments.
    kind: Bound<'py, PyAny>,
    special: Bound<'py, PyAny>,
    ids: Bound<'py, PyAny>,
    /// Values for some segments.
    none: Bound<'py, PyAny>,
    has_tags: bool,
    template: Bound<'py, PyAny>,
    assistant: Bound<'py, PyAny>,
    /// Number of the message to which text of the template belongs, and the origin of that text,
    /// once requested.
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
            constants: HashMap::default(),
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

    /// Assigns the template's text from here on to this message.
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

    fn push(&mut self, flags: u64, text: &Bound<'py, PyAny>) -> PyResult<()> {
        if flags >> GIVEN_SHIFT != 0 {
            return self.push_given(flags, text);
        }
        self.extend(flags, text)
    }

    /// Adds text to the open segment if the text continues it, otherwise to a new segment.
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

    /// Adds text that comes from one of the caller's segments.
    fn push_given(&mut self, mut flags: u64, text: &Bound<'py, PyAny>) -> PyResult<()> {
        let given = self.given(flags)?.ok_or_else(|| PyValueError::new_err("no such segment"))?;
        let mut special = None;
        if let Some([name, names]) = &given.special {
            // Only comparing the text shows whether part of it was removed.
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
        // Later text begins a new segment.
        self.part()
    }

    /// Returns the caller's value from which text with these flags comes.
    fn given(&mut self, flags: u64) -> PyResult<Option<Rc<Given<'py>>>> {
        let flags = flags & ((1 << START_SHIFT) - (1 << GIVEN_SHIFT));
        if let Some((_, given)) = self.last.as_ref().filter(|(last, _)| *last == flags) {
            return Ok(Some(given.clone()));
        }
        let found = self.labels.borrow_mut().given(self.segments.py(), flags)?;
        let Some(found) = found else {
            return Ok(None);
        };
        let given = Rc::new(Given::new(found)?);
        self.last = Some((flags, given.clone()));
        Ok(Some(given))
    }

    /// Closes the open segment. A segment without text only separated its neighbors and is dropped.
    fn close(&mut self) -> PyResult<()> {
        let py = self.segments.py();
        let Some(mut text) = self.text.take() else { return Ok(()) };
        if !self.more.is_empty() {
            let mut texts = std::mem::take(&mut self.more);
            texts.insert(0, text);
            text = joined(new_list(py, texts)?.as_any())?;
        }
        if !text.is_exact_instance_of::<PyString>() {
            text = self.plain(&text)?;
        }
        if length(&text)? == 0 {
            return Ok(());
        }
        let trust = PyBool::new(py, self.flags & TRUSTED != 0).to_owned().into_any();
        self.append([text, trust], &self.kind.clone())
    }

    /// Returns `text`, the only text of the open segment, as a plain `str`: without a copy if the
    /// caller or an earlier segment has the `str`.
    fn plain(&mut self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        const MOST: usize = 256;
        if self.flags == TRUSTED {
            let at = text.as_ptr() as usize;
            if let Some((_, plain)) = self.constants.get(&at) {
                return Ok(plain.clone());
            }
            let plain = plain_text(text)?;
            if self.constants.len() < MOST {
                self.constants.insert(at, (text.clone(), plain.clone()));
            }
            return Ok(plain);
        }
        // The text begins with the first character of the caller's value.
        if self.flags >> START_SHIFT == 0
            && let Some(given) = self.given(self.flags)?
            && let Some(whole) = &given.text
            && length(whole)? == length(text)?
            && whole.eq(text)?
        {
            return Ok(whole.clone());
        }
        plain_text(text)
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
