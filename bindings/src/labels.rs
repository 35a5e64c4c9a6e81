//! Marks the text that a caller passes to a chat template with its origin, for `bpe_engine.prompt`.
//!
//! A value is marked when a template reads it, together with its neighbors in the same dict or
//! list; a value of a message is marked on its own. Most data of a conversation is never read value
//! by value, but printed whole.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple, PyType};

use crate::interned::interned;
use crate::objects::{new_dict, new_tuple, new_tuple_of, push};
use crate::taint::{
    GENERATED, GIVEN_SHIFT, NOWHERE, START_SHIFT, TRUSTED, length, new_traced, plain_text,
};

/// Maximum number of labels, set by the number of bits in a label.
const MOST_LABELS: usize = (1 << (START_SHIFT - GIVEN_SHIFT)) - 1;
/// Message keys whose reasoning may be inside the content.
const REASONING_KEYS: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Position of a caller's value: one step of the path to the value.
struct ValuePath {
    /// Previous step; `None` for the first.
    up: Option<usize>,
    key: Py<PyAny>,
    /// Index and role of the message, and field, as in an origin.
    head: [Py<PyAny>; 3],
    kind: ValueKind,
    /// Whether the value is in the arguments of a call, or in their schema, whose keys are the
    /// caller's.
    has_own_keys: bool,
}

/// Fields whose values get special treatment.
#[derive(Clone, Copy, PartialEq)]
enum ValueKind {
    Role,
    Content,
    ToolCalls,
    Other,
}

/// A list or a dict from the caller.
enum Known {
    /// A message: its index and role, and whether all its values are labeled.
    Message { index: usize, role: Py<PyAny>, is_open: bool },
    /// Data from the caller, its position, and a copy with labeled items, once requested.
    Data { at: usize, opened: Option<Py<PyAny>> },
    /// A copy with labeled items, and the data it was copied from.
    Opened { data: Py<PyAny> },
}

/// Origins of the values that a caller passes to a template. Numbers the values, and marks their
/// text with the numbers.
///
/// `traced` is the type of strings with flags, and `origin` the type of origins. `scalars` has a
/// function for each type of number in the arguments of calls, which returns a value with flags;
/// `fields` maps message keys to fields with a different name. `getattr` and `getitem` look up
/// values of objects other than dicts and lists, and `call` calls the result.
#[pyclass(module = "bpe_engine._core")]
pub struct Labels {
    traced: Py<PyType>,
    origin: Py<PyType>,
    scalars: Py<PyDict>,
    fields: Py<PyDict>,
    getattr: Py<PyAny>,
    getitem: Py<PyAny>,
    call: Py<PyAny>,
    places: Vec<ValuePath>,
    /// The values that are numbered from 1.
    given: Vec<Given>,
    /// Lists and dicts by address; addresses stay valid because each object is kept alive.
    known: HashMap<usize, (Py<PyAny>, Known), BuildHasherDefault<Address>>,
    /// Paths of one key: most origins have one of a few short paths.
    paths: Vec<(Py<PyAny>, Py<PyTuple>)>,
    /// Whether the caller passed segments, so that a string with flags may lack a label.
    #[pyo3(get, set)]
    has_segments: bool,
}

/// A value with a number.
struct Given {
    segment: Option<Py<PyTuple>>,
    place: Option<usize>,
    text: Option<Py<PyAny>>,
}

/// The segment and the origin of a value, and the caller's string.
pub type GivenValue<'py> =
    (Option<Bound<'py, PyTuple>>, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

#[pymethods]
impl Labels {
    #[new]
    fn new(
        traced: Py<PyType>,
        origin: Py<PyType>,
        scalars: Py<PyDict>,
        fields: Py<PyDict>,
        getattr: Py<PyAny>,
        getitem: Py<PyAny>,
        call: Py<PyAny>,
    ) -> Self {
        let (places, given, known) = (Vec::new(), Vec::new(), HashMap::default());
        let (paths, has_segments) = (Vec::new(), false);
        Self {
            traced,
            origin,
            scalars,
            fields,
            getattr,
            getitem,
            call,
            places,
            given,
            known,
            paths,
            has_segments,
        }
    }

    /// Returns the flags for text from a caller's segment.
    fn flags(&mut self, segment: Py<PyTuple>) -> PyResult<u64> {
        self.number(Some(segment), None, None)
    }

    /// Registers the messages of a list, whose values are labeled in place when read. Copies
    /// reasoning to each key under which templates read it.
    fn note_messages(&mut self, messages: &Bound<'_, PyList>) -> PyResult<()> {
        let py = messages.py();
        for index in 0..messages.len() {
            let mut message = messages.get_item(index)?.cast_into::<PyDict>()?;
            let role = match message.get_item(interned!(py, "role"))? {
                Some(role) if role.is_instance_of::<PyString>() => plain_key(&role)?,
                _ => py.None().into_bound(py),
            };
            if let Some((key, reasoning)) = reasoning_of(&message)? {
                let place = self.place_in_message(index, role.as_unbound(), &key)?;
                let reasoning = match may_hold_text(&reasoning) {
                    true => self.label(&reasoning, place)?,
                    false => reasoning,
                };
                message.set_item(key, &reasoning)?;
                let copy = new_dict(py)?;
                copy.set_item(interned!(py, "thinking"), &reasoning)?;
                copy.update(message.as_mapping())?;
                copy.set_item(interned!(py, "reasoning_content"), &reasoning)?;
                messages.set_item(index, &copy)?;
                message = copy;
            }
            let role = role.unbind();
            self.note(&message, Known::Message { index, role, is_open: false })?;
        }
        Ok(())
    }

    /// Registers tools or documents, which are labeled when read.
    fn note_data(
        &mut self,
        name: &Bound<'_, PyString>,
        values: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        let none = name.py().None().into_bound(name.py());
        for (index, value) in values.iter().enumerate() {
            let key = index.into_pyobject(name.py())?.into_any();
            let place = ValuePath::first([&none, &none, name.as_any()], &key)?;
            values.set_item(index, self.label(&value, place)?)?;
        }
        Ok(())
    }

    /// Returns the number of a message, counted from 1, or `outer` for any other value.
    fn turn(&self, value: &Bound<'_, PyAny>, outer: usize) -> usize {
        match self.known_of(value) {
            Some(Known::Message { index, .. }) => index + 1,
            _ => outer,
        }
    }

    /// Returns the flags of text made from one of the caller's lists or dicts, and the same list or
    /// dict without labels. Returns 0 and the value itself for other values.
    fn found<'py>(&mut self, value: &Bound<'py, PyAny>) -> PyResult<(u64, Bound<'py, PyAny>)> {
        let data = match self.known_of(value) {
            Some(Known::Data { .. }) => value.clone(),
            Some(Known::Opened { data }) => data.bind(value.py()).clone(),
            _ => return Ok((0, value.clone())),
        };
        let Some(&Known::Data { at, .. }) = self.known_of(&data) else { return Ok((0, data)) };
        Ok((self.rewritten(at)?, data))
    }

    /// Returns a caller's list or dict with labeled items; returns other values unchanged.
    pub fn opened<'py>(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = value.py();
        match self.known_of(value) {
            Some(Known::Message { is_open: false, .. }) => {
                let message = value.cast::<PyDict>()?;
                for (key, item) in &message.copy()? {
                    self.read(message, &key, item)?;
                }
                if let Some((_, Known::Message { is_open, .. })) = self.known.get_mut(&id(value)) {
                    *is_open = true;
                }
                Ok(value.clone())
            }
            Some(Known::Data { opened: Some(opened), .. }) => Ok(opened.bind(py).clone()),
            Some(&Known::Data { at, .. }) => {
                let opened = match value.cast_exact::<PyDict>() {
                    Ok(dict) => self.dict(dict, at)?.into_any(),
                    Err(_) => {
                        let Ok(list) = value.cast_exact::<PyList>() else {
                            return Ok(value.clone());
                        };
                        PyList::new(py, self.items(list.iter(), at)?)?.into_any()
                    }
                };
                self.note(&opened, Known::Opened { data: value.clone().unbind() })?;
                if let Some((_, Known::Data { opened: known, .. })) = self.known.get_mut(&id(value))
                {
                    *known = Some(opened.clone().unbind());
                }
                Ok(opened)
            }
            _ => Ok(value.clone()),
        }
    }

    /// Returns ``value.name``.
    fn attribute<'py>(
        slf: &Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
        name: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(item) = Self::look_up(slf, value, name)? {
            return Ok(item);
        }
        let getattr = slf.borrow().getattr.clone_ref(slf.py());
        getattr.bind(slf.py()).call1((value, name))
    }

    /// Returns ``value[key]``.
    fn item<'py>(
        slf: &Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(item) = Self::look_up(slf, value, key)? {
            return Ok(item);
        }
        let getitem = slf.borrow().getitem.clone_ref(slf.py());
        getitem.bind(slf.py()).call1((value, key))
    }
}

impl ValuePath {
    /// Returns the position of a value in the message, tools or documents that an origin begins
    /// with.
    fn first(head: [&Bound<'_, PyAny>; 3], key: &Bound<'_, PyAny>) -> PyResult<Self> {
        let kind = match head[2].cast::<PyString>()?.to_str().unwrap_or_default() {
            "role" => ValueKind::Role,
            "content" => ValueKind::Content,
            "tool_calls" => ValueKind::ToolCalls,
            _ => ValueKind::Other,
        };
        let head = head.map(|part| part.clone().unbind());
        Ok(Self { up: None, key: key.clone().unbind(), head, kind, has_own_keys: false })
    }
}

impl Labels {
    /// Returns a labeled item of a dict or a list.
    fn look_up<'py>(
        slf: &Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            // A tuple may contain one tuple many times, so that hashing costs more than its memory.
            if key.is_instance_of::<PyTuple>() {
                return Ok(None);
            }
            let Some(item) = dict.get_item(key)? else { return Ok(None) };
            return slf.borrow_mut().read(dict, key, item).map(Some);
        }
        let Ok(list) = value.cast_exact::<PyList>() else { return Ok(None) };
        let Ok(index) = key.cast_exact::<PyInt>() else { return Ok(None) };
        let index: isize = index.extract()?;
        let place =
            if index < 0 { list.len().checked_add_signed(index) } else { Some(index as usize) };
        let Some(place) = place.filter(|&place| place < list.len()) else { return Ok(None) };
        let opened = slf.borrow_mut().opened(value)?;
        opened.cast::<PyList>()?.get_item(place).map(Some)
    }

    /// Returns the type of strings with flags.
    pub fn traced<'py>(&self, py: Python<'py>) -> Bound<'py, PyType> {
        self.traced.bind(py).clone()
    }

    /// Returns the functions for looking up an attribute and for calling the result.
    pub fn calls<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, Bound<'py, PyAny>) {
        (self.getattr.bind(py).clone(), self.call.bind(py).clone())
    }

    /// Returns a labeled item of a dict.
    pub fn read<'py>(
        &mut self,
        dict: &Bound<'py, PyDict>,
        key: &Bound<'py, PyAny>,
        item: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let is_traced = item.get_type_ptr() == self.traced.as_ptr().cast();
        if is_traced && !self.has_segments {
            return Ok(item);
        }
        match self.known_of(dict.as_any()) {
            Some(Known::Message { index, role, .. }) => {
                if !may_hold_text(&item) || self.known_of(&item).is_some() {
                    return Ok(item);
                }
                if is_traced && self.has_place(&item)? {
                    return Ok(item);
                }
                let (index, role) = (*index, role.clone_ref(dict.py()));
                let place = self.place_in_message(index, &role, key)?;
                let labeled = self.label(&item, place)?;
                dict.set_item(key, &labeled)?;
                Ok(labeled)
            }
            Some(Known::Data { .. }) => {
                let opened = self.opened(dict.as_any())?;
                Ok(opened.cast::<PyDict>()?.get_item(key)?.unwrap_or(item))
            }
            _ => Ok(item),
        }
    }

    /// Whether text with flags has a label but differs from the caller's text.
    fn has_place(&self, text: &Bound<'_, PyAny>) -> PyResult<bool> {
        let number = number_of(self.only_flags(text)?);
        Ok(number.and_then(|number| self.given.get(number)).is_some_and(|it| it.place.is_some()))
    }

    fn known_of(&self, value: &Bound<'_, PyAny>) -> Option<&Known> {
        self.known.get(&id(value)).map(|(_, known)| known)
    }

    fn note(&mut self, value: &Bound<'_, PyAny>, known: Known) -> PyResult<()> {
        let no_room = |_| PyMemoryError::new_err("no room for labels");
        self.known.try_reserve(1).map_err(no_room)?;
        self.known.insert(id(value), (value.clone().unbind(), known));
        Ok(())
    }

    /// Returns the position (index, role, field) of a value in a message.
    fn place_in_message(
        &self,
        index: usize,
        role: &Py<PyAny>,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<ValuePath> {
        let py = key.py();
        let name = plain_key(key.str()?.as_any())?;
        let field = self.fields.bind(py).get_item(&name)?.unwrap_or(name.clone());
        let index = index.into_pyobject(py)?.into_any();
        ValuePath::first([&index, role.bind(py), &field], &name)
    }

    /// Numbers a value, and returns its flags; 0 if all numbers are in use.
    fn number(
        &mut self,
        segment: Option<Py<PyTuple>>,
        place: Option<usize>,
        text: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        if self.given.len() >= MOST_LABELS {
            return Ok(0);
        }
        push(&mut self.given, Given { segment, place, text })?;
        Ok((self.given.len() as u64) << GIVEN_SHIFT)
    }

    /// Returns the flags of text written for a whole value or key.
    fn rewritten(&mut self, place: usize) -> PyResult<u64> {
        let flags = self.number(None, Some(place), None)?;
        Ok(if flags == 0 { 0 } else { flags | NOWHERE << START_SHIFT })
    }

    /// Labels the value at a position and returns it; lists and dicts are registered instead of
    /// labeled.
    fn label<'py>(
        &mut self,
        value: &Bound<'py, PyAny>,
        place: ValuePath,
    ) -> PyResult<Bound<'py, PyAny>> {
        let is_call = place.kind == ValueKind::ToolCalls;
        let at = self.places.len();
        push(&mut self.places, place)?;
        if value.is_instance_of::<PyString>() {
            return self.text(value, at, false);
        }
        let data = Known::Data { at, opened: None };
        if value.is_exact_instance_of::<PyDict>() || value.is_exact_instance_of::<PyList>() {
            self.note(value, data)?;
            return Ok(value.clone());
        }
        let Ok(tuple) = value.cast::<PyTuple>() else {
            return if is_call { self.scalar(value, at) } else { Ok(value.clone()) };
        };
        let _depth = Depth::enter(value.py())?;
        self.note(value, data)?;
        if tuple.is_empty() {
            return Ok(value.clone());
        }
        let labeled = PyTuple::new(value.py(), self.items(tuple.iter(), at)?)?.into_any();
        self.note(&labeled, Known::Opened { data: value.clone().unbind() })?;
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
        let has_own_keys =
            self.places[at].has_own_keys && self.places[at].kind == ValueKind::ToolCalls;
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

    /// Returns the position of an item of the value at a position.
    fn below(&self, at: usize, key: &Bound<'_, PyAny>) -> PyResult<ValuePath> {
        let py = key.py();
        let place = &self.places[at];
        let mut head = place.head.each_ref().map(|part| part.clone_ref(py));
        let (mut kind, mut has_own_keys) = (place.kind, place.has_own_keys);
        let name = key.cast::<PyString>().ok().map(|key| key.to_str()).transpose();
        if let Ok(Some(name)) = name {
            has_own_keys |= ["arguments", "parameters"].contains(&name);
            if kind == ValueKind::Content && REASONING_KEYS.contains(&name) {
                head[2] = interned!(py, "reasoning").clone().into_any().unbind();
                kind = ValueKind::Other;
            }
        }
        Ok(ValuePath { up: Some(at), key: plain_key(key)?.unbind(), head, kind, has_own_keys })
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
            0 => {
                let is_plain = value.is_exact_instance_of::<PyString>();
                let text = is_plain.then(|| value.clone().unbind());
                self.number(None, Some(at), text)?
            }
            flags => {
                let segment = self.segment(flags, value.py());
                let is_plain = match &segment {
                    Some(segment) => is_unlabeled(segment.bind(value.py()))?,
                    None => true,
                };
                if self.places[at].kind == ValueKind::Role && is_plain && flags & TRUSTED != 0 {
                    // The template may build a control token from this text, so the text and its
                    // neighbors must remain one run.
                    TRUSTED
                } else {
                    flags & (TRUSTED | GENERATED) | self.number(segment, Some(at), None)?
                }
            }
        };
        self.flagged(value, flags)
    }

    /// Returns the flags of a string from the caller's segment; 0 for any other string.
    fn only_flags(&self, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        if value.get_type_ptr() != self.traced.as_ptr().cast() {
            return Ok(0);
        }
        let flags = value.getattr(interned!(value.py(), "_flags"))?;
        if flags.is_exact_instance_of::<PyInt>() { flags.extract() } else { Ok(0) }
    }

    fn segment(&self, flags: u64, py: Python<'_>) -> Option<Py<PyTuple>> {
        self.given.get(number_of(flags)?)?.segment.as_ref().map(|segment| segment.clone_ref(py))
    }

    /// Returns a text whose characters all have these flags.
    fn flagged<'py>(&self, text: &Bound<'py, PyAny>, flags: u64) -> PyResult<Bound<'py, PyAny>> {
        // Empty text keeps its neighbors separate.
        let flags = if length(text)? == 0 { 0 } else { flags };
        new_traced(self.traced.bind(text.py()), text, &flags.into_pyobject(text.py())?.into_any())
    }

    /// Returns the segment and the origin of text with these flags, each possibly None, and the
    /// caller's string if that is plain.
    pub fn given<'py>(&mut self, py: Python<'py>, flags: u64) -> PyResult<Option<GivenValue<'py>>> {
        let Some(Given { segment, place, text }) =
            number_of(flags).and_then(|number| self.given.get(number))
        else {
            return Ok(None);
        };
        let (segment, place) = (segment.as_ref().map(|it| it.bind(py).clone()), *place);
        let text = text.as_ref().map(|text| text.bind(py).clone());
        let origin = match place {
            Some(place) => self.origin_of(py, place)?,
            None => py.None().into_bound(py),
        };
        Ok(Some((segment, origin, text)))
    }

    fn path_to<'py>(&mut self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        const MOST: usize = 8;
        let ValuePath { up: is_deep, key, .. } = &self.places[place];
        if is_deep.is_none() {
            if let Some((_, path)) = self.paths.iter().find(|(known, _)| known.is(key)) {
                return Ok(path.bind(py).clone().into_any());
            }
            let path = new_tuple(py, [key.bind(py).clone()])?;
            if self.paths.len() < MOST {
                let known = (key.clone_ref(py), path.clone().unbind());
                push(&mut self.paths, known)?;
            }
            return Ok(path.into_any());
        }
        let steps = std::iter::successors(Some(place), |&at| self.places[at].up);
        let mut path = Vec::new();
        for at in steps {
            push(&mut path, self.places[at].key.bind(py).clone())?;
        }
        path.reverse();
        Ok(PyTuple::new(py, path)?.into_any())
    }

    /// Returns the origin of a value at a position.
    fn origin_of<'py>(&mut self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        let path = self.path_to(py, place)?;
        let [message, role, field] = &self.places[place].head;
        let [message, role, field] = [message, role, field].map(|part| part.bind(py).clone());
        let has_tags = PyBool::new(py, false).to_owned().into_any();
        let is_answer = has_tags.clone();
        new_tuple_of(self.origin.bind(py), [message, role, field, path, has_tags, is_answer])
    }

    /// Returns the origin of template text around the message of a turn.
    pub fn origin_of_turn<'py>(
        &self,
        py: Python<'py>,
        turn: usize,
        has_tags: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let none = py.None().into_bound(py);
        let message = match turn.checked_sub(1) {
            Some(index) => index.into_pyobject(py)?.into_any(),
            None => none.clone(),
        };
        let (field, path) = (interned!(py, "template").clone().into_any(), PyTuple::empty(py));
        let has_tags = PyBool::new(py, has_tags).to_owned().into_any();
        let is_answer = PyBool::new(py, false).to_owned().into_any();
        let path = path.into_any();
        new_tuple_of(self.origin.bind(py), [message, none, field, path, has_tags, is_answer])
    }
}

/// Hashes addresses: the caller cannot choose colliding addresses.
#[derive(Default)]
pub struct Address(u64);

impl Hasher for Address {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(byte.into());
        }
    }

    fn write_usize(&mut self, address: usize) {
        self.0 = (self.0 ^ address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}

fn id(value: &Bound<'_, PyAny>) -> usize {
    value.as_ptr() as usize
}

/// Returns the reasoning of a message, and its key; `None` for a message without it.
fn reasoning_of<'py>(
    message: &Bound<'py, PyDict>,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let py = message.py();
    for key in
        [interned!(py, "reasoning_content"), interned!(py, "thinking"), interned!(py, "reasoning")]
    {
        if let Some(value) = message.get_item(key)?.filter(|value| !value.is_none()) {
            return Ok(Some((key.clone().into_any(), value)));
        }
    }
    Ok(None)
}

/// Whether a value of a message is text or may contain text.
fn may_hold_text(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyDict>()
        || value.is_exact_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
}

/// Returns a key as in the path of an origin: a `str` without flags, or an `int`.
fn plain_key<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if key.is_exact_instance_of::<PyString>() || key.is_instance_of::<PyInt>() {
        return Ok(key.clone());
    }
    plain_text(key.str()?.as_any())
}

/// Returns the index of the number in flags; `None` without a number.
fn number_of(flags: u64) -> Option<usize> {
    let number = (flags >> GIVEN_SHIFT) & MOST_LABELS as u64;
    usize::try_from(number).ok()?.checked_sub(1)
}

/// Whether a segment is text without labels.
fn is_unlabeled(segment: &Bound<'_, PyTuple>) -> PyResult<bool> {
    let (role, source, kind) = (segment.get_item(2)?, segment.get_item(3)?, segment.get_item(4)?);
    Ok(role.is_none() && source.is_none() && kind.eq("text")?)
}

/// One level of nesting. Too many levels raise RecursionError.
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
