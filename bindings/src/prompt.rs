//! Segments and conversations: what `bpe_engine.prompt` is built on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bpe_core::conversation::{self, Conversation};
use bpe_core::segments::{Origin, Prompt};
use bpe_core::special_tokens::{Names, Selection};
use bpe_core::strip;
use bpe_core::{Encoding, Normalization, Request};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFrozenSet, PyList, PySet, PyString, PyTuple,
};

use crate::buffer::TokenBuffer;
use crate::buffer_pool::BufferPool;
use crate::core_bpe::CoreBpe;
use crate::errors::OrRaise;
use crate::interned::interned;
use crate::objects::{collected, list_of_spans, new_bytearray};
use crate::{buffer_pool, gil, ids, int_cache, text};

// ---- Segments ----

/// The ids of segments.
#[pyfunction]
pub fn encode_segments<'py>(
    core: &Bound<'py, CoreBpe>,
    segments: &Bound<'py, PyAny>,
    is_joined: bool,
) -> PyResult<Bound<'py, PyList>> {
    let ids = segment_ids(core, segments, is_joined, BufferPool::borrow)?;
    let list = int_cache::list(core.py(), &ids);
    buffer_pool::IDS.give(ids);
    list
}

/// The same for numpy.
#[pyfunction]
pub fn encode_segments_to_buffer(
    core: &Bound<'_, CoreBpe>,
    segments: &Bound<'_, PyAny>,
    is_joined: bool,
) -> PyResult<TokenBuffer> {
    Ok(TokenBuffer::new(segment_ids(core, segments, is_joined, BufferPool::take)?))
}

fn segment_ids(
    core: &Bound<'_, CoreBpe>,
    segments: &Bound<'_, PyAny>,
    is_joined: bool,
    buffer: fn(&BufferPool<u32>, usize) -> Vec<u32>,
) -> PyResult<Vec<u32>> {
    let py = core.py();
    let core = core.get();
    let prompt = read(core, segments, is_joined)?;
    let mut ids = buffer(&buffer_pool::IDS, buffer_pool::likely_ids(prompt.size()));
    gil::run(py, prompt.size(), || {
        core.prefault_vocabulary(prompt.size());
        prompt.encode(core.encoding(), is_joined, &mut ids)
    })?;
    Ok(ids)
}

/// The ids of segments; for each the first and the last segment that it comes from, as bytes of
/// 64-bit numbers one after the other; and for each a byte that says whether it is special.
#[pyfunction]
pub fn audit_segments<'py>(
    core: &Bound<'py, CoreBpe>,
    segments: &Bound<'py, PyAny>,
    is_joined: bool,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>, Bound<'py, PyByteArray>)> {
    let py = core.py();
    let core = core.get();
    let prompt = read(core, segments, is_joined)?;
    let (mut ids, mut origins) = (Vec::new(), Vec::new());
    gil::run(py, prompt.size(), || {
        prompt.encode_with_origins(core.encoding(), is_joined, &mut ids, &mut origins)
    })?;
    let special = collected(py, origins.iter().map(|origin| Ok(u8::from(origin.is_special))))?;
    let places = origins.iter().map(|&Origin { segments, .. }| segments);
    Ok((int_cache::list(py, &ids)?, list_of_spans(py, places)?, new_bytearray(py, &special)?))
}

/// Reads segments: tuples of a text and of what is special in it, and what `bpe_engine.prompt`
/// makes.
fn read(core: &CoreBpe, segments: &Bound<'_, PyAny>, is_joined: bool) -> PyResult<Prompt> {
    let wrong = || {
        let kind = kind(segments);
        let hint = if segments.is_instance_of::<PyString>() {
            "; for one text pass [untrusted(text)]"
        } else {
            ""
        };
        PyTypeError::new_err(format!("segments must be a list of segments, not {kind}{hint}"))
    };
    let mut reader = Reader { core, is_joined, prompt: Prompt::default(), half: None };
    if let Ok(list) = segments.cast_exact::<PyList>() {
        reader.prompt = Prompt::with_room(list.len()).or_raise(segments.py())?;
        for (index, item) in list.iter().enumerate() {
            reader.push(index, &item)?;
        }
        return Ok(reader.prompt);
    }
    if segments.is_instance_of::<PyString>()
        || segments.is_instance_of::<PyBytes>()
        || segments.is_instance_of::<PyDict>()
    {
        return Err(wrong());
    }
    for (index, item) in segments.try_iter().map_err(|_| wrong())?.enumerate() {
        reader.push(index, &item?)?;
    }
    Ok(reader.prompt)
}

struct Reader<'a> {
    core: &'a CoreBpe,
    /// Whether text goes on across the borders of segments.
    is_joined: bool,
    prompt: Prompt,
    /// The first half of a pair of surrogates with which the text so far ends.
    half: Option<u32>,
}

impl Reader<'_> {
    fn push(&mut self, index: usize, segment: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = segment.py();
        let special = self.core.encoding().special_tokens();
        let wrong = |what: String| {
            PyTypeError::new_err(format!(
                "segments[{index}] must be a tuple (text, allow_special), not {what}"
            ))
        };
        let segment = segment.cast::<PyTuple>().map_err(|_| wrong(kind(segment)))?;
        let mut items = segment.iter_borrowed();
        let (Some(text), Some(allowed)) = (items.next(), items.next()) else {
            return Err(wrong(format!("a tuple of {}", segment.len())));
        };
        if !text.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err(format!(
                "the text of segments[{index}] must be a str, not {}",
                kind(&text)
            )));
        }
        if segment.len() == 6
            && let (Some(what), Some(given)) = (items.nth(2), items.next())
            // The literal in Python's source is this very object.
            && !what.is(interned!(py, "text"))
        {
            if what.eq(interned!(py, "special"))? {
                self.half = None;
                let name = text::read(&text)?.utf8().or_raise(py)?;
                let id = special.id(&name).ok_or_else(|| unknown(index, &name))?;
                return self.prompt.push_special(&name, id).or_raise(py);
            }
            if what.eq(interned!(py, "tokens"))? {
                return self.push_ids(index, &given);
            }
            if !what.eq(interned!(py, "text"))? {
                return Err(PyValueError::new_err(format!(
                    "the kind of segments[{index}] must be \"text\", \"special\" or \"tokens\", not {}",
                    what.repr()?
                )));
            }
        }
        let allowed = read_allowed(self.core, index, &allowed)?;
        self.push_text(&text, &allowed)
    }

    fn push_ids(&mut self, index: usize, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = given.py();
        let encoding = self.core.encoding();
        let given = ids::read(given).map_err(|error| at_segment(py, index, &error))?;
        if let Some(id) = given.iter().find(|&&id| encoding.token_bytes(id).is_none()) {
            return Err(PyValueError::new_err(format!(
                "segments[{index}] holds the id {id}, which is no token of the encoding"
            )));
        }
        if !given.is_empty() {
            self.half = None;
        }
        self.prompt.push_ids(given).or_raise(py)
    }

    fn push_text(&mut self, text: &Bound<'_, PyAny>, allowed: &Selection) -> PyResult<()> {
        let py = text.py();
        let encoding = self.core.encoding();
        let text = text::read(text)?;
        let utf8 = text.utf8().or_raise(py)?;
        if utf8.is_empty() {
            return self.prompt.push_text(encoding, "", allowed).or_raise(py);
        }
        let Some((first, last)) = text.ends() else {
            self.half = None;
            return self.prompt.push_text(encoding, &utf8, allowed).or_raise(py);
        };
        let before = self.half.take().filter(|_| self.is_joined);
        self.half = (0xd800..0xdc00).contains(&last).then_some(last);
        let pair = before.and_then(|before| joined(before, first));
        let Some(pair) = pair else {
            return self.prompt.push_text(encoding, &utf8, allowed).or_raise(py);
        };
        self.prompt.join_halves(pair).or_raise(py)?;
        let rest = utf8.strip_prefix(char::REPLACEMENT_CHARACTER).unwrap_or(&utf8);
        self.prompt.push_text(encoding, rest, allowed).or_raise(py)
    }
}

/// The character of two surrogates.
fn joined(first: u32, second: u32) -> Option<char> {
    let (first, second) = (u16::try_from(first).ok()?, u16::try_from(second).ok()?);
    char::decode_utf16([first, second]).next()?.ok()
}

/// What is special in the text of a segment: a bool, or names.
fn read_allowed(core: &CoreBpe, index: usize, allowed: &Bound<'_, PyAny>) -> PyResult<Selection> {
    if let Ok(all) = allowed.cast::<PyBool>() {
        return Ok(if all.is_true() { Selection::All } else { Selection::None });
    }
    let wrong = |what: &str| {
        PyTypeError::new_err(format!(
            "allow_special of segments[{index}] must be True, False or a set of names, not {what}"
        ))
    };
    if !allowed.is_instance_of::<PySet>() && !allowed.is_instance_of::<PyFrozenSet>() {
        return Err(wrong(&kind(allowed)));
    }
    let special = core.encoding().special_tokens();
    let mut names = Vec::new();
    for name in allowed.try_iter()? {
        let name = name?;
        if !name.is_instance_of::<PyString>() {
            return Err(wrong(&format!("one that holds {}", kind(&name))));
        }
        let name = text::read(&name)?.utf8().or_raise(name.py())?.to_string();
        special.id(&name).ok_or_else(|| unknown(index, &name))?;
        names.push(name);
    }
    Ok(special.select(names.iter().map(String::as_str)))
}

fn unknown(index: usize, name: &str) -> PyErr {
    PyValueError::new_err(format!(
        "segments[{index}] asks for the special token {name:?}, which the encoding does not have; \
         its special tokens are in special_tokens_set"
    ))
}

/// The same error with the segment in its message.
fn at_segment(py: Python<'_>, index: usize, error: &PyErr) -> PyErr {
    let message = format!("segments[{index}]: {}", error.value(py));
    if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(message)
    } else {
        PyValueError::new_err(message)
    }
}

fn kind(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map(|name| name.to_string()).unwrap_or_default()
}

// ---- Control strings ----

/// Finds names in texts, leftmost-longest.
#[pyclass(frozen, module = "bpe_engine._core")]
pub struct NameFinder {
    /// As the encoding normalizes them. In a box, since Python's allocator aligns objects to 16
    /// bytes only.
    names: Box<Names>,
    /// The names as they were given, in the order of `names`.
    given: Vec<String>,
    normalization: Normalization,
}

const _: () = assert!(align_of::<NameFinder>() <= 16 && align_of::<ConversationState>() <= 16);

#[pymethods]
impl NameFinder {
    /// Finds names in the form that the encoding gives to texts. Of names with the same form it
    /// finds the first.
    #[new]
    fn new(py: Python<'_>, core: &Bound<'_, CoreBpe>, names: Vec<String>) -> PyResult<Self> {
        let normalization = core.get().encoding().normalization();
        let mut by_form = BTreeMap::new();
        for name in names {
            let form = normalization.apply(&name).or_raise(py)?.into_owned();
            by_form.entry(form).or_insert(name);
        }
        // Both are in the order of strings.
        let names = Box::new(Names::new(by_form.keys().cloned()).or_raise(py)?);
        Ok(Self { names, given: by_form.into_values().collect(), normalization })
    }

    /// The names in a text: each with its first character, and the one after its last.
    fn find(&self, text: &Bound<'_, PyAny>) -> PyResult<Vec<(&str, usize, usize)>> {
        let py = text.py();
        let original = text::read(text)?.utf8().or_raise(py)?;
        let (normal, alignment) = self.normalization.align(&original).or_raise(py)?;
        let mut characters = text::CharacterSpans::new(text, &original)?;
        let mut result = Vec::new();
        let mut from = 0;
        while let Some(found) = self.names.find(&normal, from) {
            let (start, end) = characters.next(alignment.original(found.start..found.end));
            result.push((self.given[found.name].as_str(), start, end));
            from = found.end;
        }
        Ok(result)
    }

    /// The texts, which stand one after the other, without names and without those that only come
    /// about thereby, in the form that the encoding gives to texts.
    fn strip(&self, py: Python<'_>, texts: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
        let texts = texts.iter().map(|text| text::read(text)?.utf8().or_raise(py));
        let texts = texts.collect::<PyResult<Vec<_>>>()?;
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        strip::strip(&self.names, self.normalization, &texts).or_raise(py)
    }
}

// ---- Conversations ----

/// A text that changes, and its ids.
///
/// The lock is only ever held by a thread that holds the interpreter as well: a forked child never
/// finds it taken. Long updates work on a copy, so that the last of several wins.
#[pyclass(frozen, module = "bpe_engine._core")]
pub struct ConversationState {
    core: Py<CoreBpe>,
    request: Request,
    state: Mutex<Arc<Conversation>>,
}

/// Bytes of new text above which other Python threads may run meanwhile.
const WORTH_DETACHING: usize = 1 << 16;

impl ConversationState {
    fn current(&self, py: Python<'_>) -> Arc<Conversation> {
        Arc::clone(&self.lock(py))
    }

    /// Runs `work` on the state; returns how many ids stayed, and all ids behind them.
    fn update<'py>(
        &self,
        py: Python<'py>,
        size: usize,
        work: impl FnOnce(&Encoding, &mut Conversation) -> bpe_core::Result<usize> + Send,
    ) -> PyResult<(usize, Bound<'py, PyList>)> {
        let encoding = self.core.get().encoding();
        let mut copy = self.current(py);
        if size > WORTH_DETACHING + copy.size() {
            let kept = gil::run(py, size, || work(encoding, Arc::make_mut(&mut copy)))?;
            let list = int_cache::list(py, &copy.ids()[kept..])?;
            *self.lock(py) = copy;
            return Ok((kept, list));
        }
        drop(copy);
        let mut state = self.lock(py);
        let state = Arc::make_mut(&mut state);
        let kept = work(encoding, state).or_raise(py)?;
        Ok((kept, int_cache::list(py, &state.ids()[kept..])?))
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Arc<Conversation>> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl ConversationState {
    #[new]
    fn new(
        core: &Bound<'_, CoreBpe>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let request = core.get().request(allowed_special, disallowed_special)?;
        let state = Mutex::new(Arc::default());
        Ok(Self { core: core.clone().unbind(), request, state })
    }

    /// The same conversation, to go on in another way.
    fn fork(&self, py: Python<'_>) -> Self {
        let state = Mutex::new(self.current(py));
        Self { core: self.core.clone_ref(py), request: self.request.clone(), state }
    }

    fn update_text<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<(usize, Bound<'py, PyList>)> {
        let py = text.py();
        let utf8 = text::read(text)?.utf8().or_raise(py)?;
        self.update(py, utf8.len(), |encoding, state| {
            state.update_text(encoding, &utf8, &self.request)
        })
    }

    fn update_segments<'py>(
        &self,
        segments: &Bound<'py, PyAny>,
    ) -> PyResult<(usize, Bound<'py, PyList>)> {
        let prompt = read(self.core.get(), segments, true)?;
        self.update(segments.py(), prompt.size(), |encoding, state| {
            let (text, fixed) = prompt.into_parts();
            state.update_prompt(encoding, text, fixed)
        })
    }

    /// All ids.
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        int_cache::list(py, self.current(py).ids())
    }

    /// All ids, for numpy.
    fn ids_buffer(&self, py: Python<'_>) -> TokenBuffer {
        TokenBuffer::new(self.current(py).ids().to_vec())
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.current(py).ids().len()
    }

    fn memory(&self, py: Python<'_>) -> usize {
        self.current(py).memory()
    }
}

/// The ids of a text that stay whatever follows it, and how many characters they stand for.
#[pyfunction]
pub fn stable_prefix<'py>(
    core: &Bound<'py, CoreBpe>,
    text: &Bound<'py, PyAny>,
    allowed_special: &Bound<'py, PyAny>,
    disallowed_special: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyList>, usize)> {
    let py = text.py();
    let core = core.get();
    let request = core.request(allowed_special, disallowed_special)?;
    let original = text::read(text)?.utf8().or_raise(py)?;
    let (ids, bytes) = gil::run(py, original.len(), || {
        conversation::stable_prefix(core.encoding(), &original, &request)
    })?;
    let (_, characters) = text::CharacterSpans::new(text, &original)?.next(0..bytes);
    Ok((int_cache::list(py, &ids)?, characters))
}
