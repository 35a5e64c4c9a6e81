//! Marks the text that a caller gives to a chat template with its origin, for `bpe_engine.prompt`.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple, PyType};

use crate::interned::interned;
use crate::objects::{new_dict, new_tuple, push};

/// Flags of characters: the template wrote them; they are in a `{% generation %}` block.
pub const TRUSTED: u64 = 1;
pub const GENERATED: u64 = 2;
/// The bits of the number of a caller's value, and of the first character in it.
pub const GIVEN_SHIFT: u32 = 2;
pub const START_SHIFT: u32 = 32;
/// The start of text whose characters are not one by one those of its origin.
pub const NOWHERE: u64 = (1 << 31) - 1;
/// Numbers have so many bits.
const MOST_LABELS: usize = (1 << (START_SHIFT - GIVEN_SHIFT)) - 1;
/// The keys of a message under which its reasoning may be inside its content.
const REASONING_KEYS: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Where a value of a caller is: a step of the path to it.
struct Place {
    /// The step before; `None` for the first one.
    up: Option<usize>,
    key: Py<PyAny>,
    /// The index and the role of the message, and the field, as in an origin.
    head: [Py<PyAny>; 3],
    kind: Kind,
    /// Whether it is among the arguments of a call, or their schema, whose keys are the caller's.
    has_own_keys: bool,
}

/// The fields whose values are treated in their own way.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Role,
    Content,
    ToolCalls,
    Other,
}

/// The origins of the values that a caller gives to a template. Numbers them, and marks their text
/// with the numbers.
///
/// `traced` is the type of strings with flags, and `origin` the type of origins. `scalars` has a
/// function for each type of numbers in the arguments of calls, which returns a value with flags;
/// `fields` has the fields of keys of messages whose names differ.
#[pyclass(module = "bpe_engine._core")]
pub struct Labels {
    traced: Py<PyType>,
    origin: Py<PyType>,
    scalars: Py<PyDict>,
    fields: Py<PyDict>,
    places: Vec<Place>,
    /// The caller's segment and the place of each number - 1.
    given: Vec<(Option<Py<PyTuple>>, Option<usize>)>,
    /// The flags of lists and dicts, and the same data as it is written as JSON, by id.
    #[pyo3(get)]
    known: Py<PyDict>,
    /// Keeps ids alive.
    kept: Vec<Py<PyAny>>,
}

/// The segment and the origin of a value.
pub type GivenValue<'py> = (Option<Bound<'py, PyTuple>>, Bound<'py, PyAny>);

#[pymethods]
impl Labels {
    #[new]
    fn new(
        py: Python<'_>,
        traced: Py<PyType>,
        origin: Py<PyType>,
        scalars: Py<PyDict>,
        fields: Py<PyDict>,
    ) -> PyResult<Self> {
        let (places, given, kept) = (Vec::new(), Vec::new(), Vec::new());
        let known = new_dict(py)?.unbind();
        Ok(Self { traced, origin, scalars, fields, places, given, known, kept })
    }

    /// Returns the flags of text of a caller's segment.
    fn flags(&mut self, segment: Py<PyTuple>) -> PyResult<u64> {
        self.number(Some(segment), None)
    }

    /// Labels the text of messages in place.
    fn label_messages(&mut self, messages: &Bound<'_, PyList>) -> PyResult<()> {
        let py = messages.py();
        for (index, message) in messages.iter().enumerate() {
            let message = message.cast_into::<PyDict>()?;
            let role = match message.get_item(interned!(py, "role"))? {
                Some(role) if role.is_instance_of::<PyString>() => plain_key(&role)?,
                _ => py.None().into_bound(py),
            };
            let index = index.into_pyobject(py)?.into_any();
            for (key, value) in &message.copy()? {
                if may_hold_text(&value) {
                    let name = plain_key(key.str()?.as_any())?;
                    let field = self.fields.bind(py).get_item(&name)?.unwrap_or(name.clone());
                    let place = Place::first([&index, &role, &field], &name)?;
                    message.set_item(key, self.label(&value, place)?)?;
                }
            }
        }
        Ok(())
    }

    /// Labels tools or documents in place.
    fn label_data(
        &mut self,
        name: &Bound<'_, PyString>,
        values: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        let none = name.py().None().into_bound(name.py());
        for (index, value) in values.iter().enumerate() {
            let key = index.into_pyobject(name.py())?.into_any();
            let place = Place::first([&none, &none, name.as_any()], &key)?;
            values.set_item(index, self.label(&value, place)?)?;
        }
        Ok(())
    }
}

impl Place {
    /// The place of a value in the message, tools or documents that an origin begins with.
    fn first(head: [&Bound<'_, PyAny>; 3], key: &Bound<'_, PyAny>) -> PyResult<Self> {
        let kind = match head[2].cast::<PyString>()?.to_str().unwrap_or_default() {
            "role" => Kind::Role,
            "content" => Kind::Content,
            "tool_calls" => Kind::ToolCalls,
            _ => Kind::Other,
        };
        let head = head.map(|part| part.clone().unbind());
        Ok(Self { up: None, key: key.clone().unbind(), head, kind, has_own_keys: false })
    }
}

impl Labels {
    /// Returns the flags of the next number; none if there are too many.
    fn number(&mut self, segment: Option<Py<PyTuple>>, place: Option<usize>) -> PyResult<u64> {
        if self.given.len() >= MOST_LABELS {
            return Ok(0);
        }
        push(&mut self.given, (segment, place))?;
        Ok((self.given.len() as u64) << GIVEN_SHIFT)
    }

    /// Returns the flags of text that is written for a whole value or key.
    fn rewritten(&mut self, place: usize) -> PyResult<u64> {
        let flags = self.number(None, Some(place))?;
        Ok(if flags == 0 { 0 } else { flags | NOWHERE << START_SHIFT })
    }

    /// Returns a labeled copy of the value at a place.
    fn label<'py>(
        &mut self,
        value: &Bound<'py, PyAny>,
        place: Place,
    ) -> PyResult<Bound<'py, PyAny>> {
        let is_call = place.kind == Kind::ToolCalls;
        let at = self.places.len();
        push(&mut self.places, place)?;
        if value.is_instance_of::<PyString>() {
            return self.text(value, at, false);
        }
        let _depth = Depth::enter(value.py())?;
        let labeled = if let Ok(dict) = value.cast_exact::<PyDict>() {
            self.dict(dict, at)?.into_any()
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            PyList::new(value.py(), self.items(list.iter(), at)?)?.into_any()
        } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            PyTuple::new(value.py(), self.items(tuple.iter(), at)?)?.into_any()
        } else {
            return if is_call { self.scalar(value, at) } else { Ok(value.clone()) };
        };
        let py = value.py();
        let flags = self.rewritten(at)?.into_pyobject(py)?.into_any();
        let known = new_tuple(py, [flags, value.clone()])?;
        self.known.bind(py).set_item(labeled.as_ptr() as usize, known)?;
        push(&mut self.kept, labeled.clone().unbind())?;
        Ok(labeled)
    }

    fn items<'py>(
        &mut self,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        at: usize,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut labeled = Vec::new();
        for (index, item) in items.enumerate() {
            let key = index.into_pyobject(item.py())?.into_any();
            let place = self.below(at, &key)?;
            push(&mut labeled, self.label(&item, place)?)?;
        }
        Ok(labeled)
    }

    fn dict<'py>(&mut self, dict: &Bound<'py, PyDict>, at: usize) -> PyResult<Bound<'py, PyDict>> {
        let py = dict.py();
        let labeled = new_dict(py)?;
        let has_own_keys = self.places[at].has_own_keys && self.places[at].kind == Kind::ToolCalls;
        for (mut key, item) in dict {
            let place = self.below(at, &key)?;
            if has_own_keys && key.is_exact_instance_of::<PyString>() {
                let name = self.below(at, &key)?;
                push(&mut self.places, name)?;
                let inner = self.places.len() - 1;
                let below_key = self.below(inner, interned!(py, "key"))?;
                push(&mut self.places, below_key)?;
                key = self.text(&key, inner + 1, true)?;
            }
            labeled.set_item(key, self.label(&item, place)?)?;
        }
        Ok(labeled)
    }

    /// Returns the place of an item of the value at a place.
    fn below(&self, at: usize, key: &Bound<'_, PyAny>) -> PyResult<Place> {
        let py = key.py();
        let place = &self.places[at];
        let mut head = place.head.each_ref().map(|part| part.clone_ref(py));
        let (mut kind, mut has_own_keys) = (place.kind, place.has_own_keys);
        let name = key.cast::<PyString>().ok().map(|key| key.to_str()).transpose();
        if let Ok(Some(name)) = name {
            has_own_keys |= ["arguments", "parameters"].contains(&name);
            if kind == Kind::Content && REASONING_KEYS.contains(&name) {
                head[2] = interned!(py, "reasoning").clone().into_any().unbind();
                kind = Kind::Other;
            }
        }
        Ok(Place { up: Some(at), key: plain_key(key)?.unbind(), head, kind, has_own_keys })
    }

    /// Returns a number, truth value or None with flags.
    fn scalar<'py>(&mut self, value: &Bound<'py, PyAny>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        let Some(make) = self.scalars.bind(value.py()).get_item(value.get_type())? else {
            return Ok(value.clone());
        };
        let scalar = make.call1((value,))?;
        scalar.setattr("text_flags", self.rewritten(at)?)?;
        scalar.setattr("plain", value)?;
        Ok(scalar)
    }

    /// Returns a string with flags.
    fn text<'py>(
        &mut self,
        value: &Bound<'py, PyAny>,
        at: usize,
        is_key: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let flags = match self.only_flags(value)? {
            0 if is_key => self.rewritten(at)?,
            0 => self.number(None, Some(at))?,
            flags => {
                let segment = self.segment(flags, value.py());
                let is_plain = match &segment {
                    Some(segment) => is_unlabeled(segment.bind(value.py()))?,
                    None => true,
                };
                if self.places[at].kind == Kind::Role && is_plain && flags & TRUSTED != 0 {
                    // The template may build a control token from it, which no border may cut.
                    TRUSTED
                } else {
                    flags & (TRUSTED | GENERATED) | self.number(segment, Some(at))?
                }
            }
        };
        self.flagged(value, flags)
    }

    /// Returns the flags of a string of the caller's segment; 0 for another one.
    fn only_flags(&self, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        if value.get_type_ptr() != self.traced.as_ptr().cast() {
            return Ok(0);
        }
        let runs = value.getattr(interned!(value.py(), "_runs"))?.cast_into::<PyTuple>()?;
        match runs.len() {
            1 => Ok(runs.get_borrowed_item(0)?.extract::<(usize, u64)>()?.1),
            _ => Ok(0),
        }
    }

    fn segment(&self, flags: u64, py: Python<'_>) -> Option<Py<PyTuple>> {
        self.given.get(number_of(flags)?)?.0.as_ref().map(|segment| segment.clone_ref(py))
    }

    /// Returns a text whose characters all have these flags.
    fn flagged<'py>(&self, text: &Bound<'py, PyAny>, flags: u64) -> PyResult<Bound<'py, PyAny>> {
        let py = text.py();
        let arguments = new_tuple(py, [text.clone()])?;
        // SAFETY: attached. This is what `str.__new__` does for a subclass, which `traced` is: the
        // call returns a new object, or null with an exception set.
        let traced = unsafe {
            let kind = self.traced.as_ptr().cast::<ffi::PyTypeObject>();
            let new = (*std::ptr::addr_of!(ffi::PyUnicode_Type)).tp_new;
            let make = new.ok_or_else(|| pyo3::exceptions::PyTypeError::new_err("str"))?;
            Bound::from_owned_ptr_or_err(py, make(kind, arguments.as_ptr(), std::ptr::null_mut()))?
        };
        let length = length(text)?;
        // A run of no characters keeps its neighbors apart.
        let run = (length, if length == 0 { 0 } else { flags });
        traced.setattr(interned!(py, "_runs"), (run,))?;
        Ok(traced)
    }

    /// Returns the segment and the origin of text with these flags, of which either may be None.
    pub fn given<'py>(&self, py: Python<'py>, flags: u64) -> PyResult<Option<GivenValue<'py>>> {
        let Some((segment, place)) = number_of(flags).and_then(|number| self.given.get(number))
        else {
            return Ok(None);
        };
        let origin = match place {
            Some(place) => self.origin_of(py, *place)?,
            None => py.None().into_bound(py),
        };
        Ok(Some((segment.as_ref().map(|segment| segment.bind(py).clone()), origin)))
    }

    /// Returns the origin of a value at a place.
    fn origin_of<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        let steps = std::iter::successors(Some(place), |&at| self.places[at].up);
        let mut path = Vec::new();
        for at in steps {
            push(&mut path, self.places[at].key.bind(py).clone())?;
        }
        path.reverse();
        let [message, role, field] = &self.places[place].head;
        self.origin.bind(py).call1((message, role, field, PyTuple::new(py, path)?))
    }
}

/// Whether a value of a message is text, or may hold some.
fn may_hold_text(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyDict>()
        || value.is_exact_instance_of::<PyList>()
        || value.is_exact_instance_of::<PyTuple>()
}

/// Returns a key as it is in the path of an origin: a `str` without flags, or an `int`.
fn plain_key<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if key.is_exact_instance_of::<PyString>() || key.is_instance_of::<PyInt>() {
        return Ok(key.clone());
    }
    let text = key.str()?;
    // SAFETY: attached, and `text` is a `str`. The call copies that of a subclass, and returns a new
    // reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(key.py(), ffi::PyUnicode_FromObject(text.as_ptr())) }
}

/// The index of the number in flags; `None` without one.
fn number_of(flags: u64) -> Option<usize> {
    let number = (flags >> GIVEN_SHIFT) & MOST_LABELS as u64;
    usize::try_from(number).ok()?.checked_sub(1)
}

/// Whether a segment is text without labels.
fn is_unlabeled(segment: &Bound<'_, PyTuple>) -> PyResult<bool> {
    let (role, source, kind) = (segment.get_item(2)?, segment.get_item(3)?, segment.get_item(4)?);
    Ok(role.is_none() && source.is_none() && kind.eq("text")?)
}

/// One level of nesting. Too many raise RecursionError.
pub struct Depth;

impl Depth {
    pub fn enter(py: Python<'_>) -> PyResult<Self> {
        // SAFETY: attached; the text is a C string.
        match unsafe { ffi::Py_EnterRecursiveCall(c" while copying data".as_ptr()) } {
            0 => Ok(Self),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        // SAFETY: pairs with the call in `enter`; values of this type live on the stack of calls
        // that hold the interpreter.
        unsafe { ffi::Py_LeaveRecursiveCall() }
    }
}

/// Returns the number of characters of a `str`, or a TypeError for other values.
pub fn length(text: &Bound<'_, PyAny>) -> PyResult<usize> {
    // SAFETY: attached, and `text` is a live object. The call returns -1 with an exception set if
    // it is not a `str`.
    let length = unsafe { ffi::PyUnicode_GetLength(text.as_ptr()) };
    usize::try_from(length).map_err(|_| PyErr::fetch(text.py()))
}
