//! Segments and conversations: what `bpe_engine.prompt` is built on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bpe_core::conversation::{self, Conversation};
use bpe_core::segments::{Origin, Prompt};
use bpe_core::special_tokens::{Names, Selection};
use bpe_core::strip;
use bpe_core::{Encoding, Normalization, Request};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBool, PyByteArray, PyList, PyString, PyTuple};

use crate::buffer::TokenBuffer;
use crate::core_bpe::CoreBpe;
use crate::errors::OrRaise;
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
    let ids = segment_ids(core, segments, is_joined)?;
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
    Ok(TokenBuffer::new(segment_ids(core, segments, is_joined)?))
}

fn segment_ids(
    core: &Bound<'_, CoreBpe>,
    segments: &Bound<'_, PyAny>,
    is_joined: bool,
) -> PyResult<Vec<u32>> {
    let py = core.py();
    let core = core.get();
    let prompt = read(core, segments)?;
    let mut ids = buffer_pool::IDS.take(buffer_pool::likely_ids(prompt.size()));
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
    let prompt = read(core, segments)?;
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
fn read(core: &CoreBpe, segments: &Bound<'_, PyAny>) -> PyResult<Prompt> {
    let wrong = || {
        let kind = kind(segments);
        let hint = if segments.is_instance_of::<PyString>() {
            "; for one text pass [untrusted(text)]"
        } else {
            ""
        };
        PyTypeError::new_err(format!("segments must be a list of segments, not {kind}{hint}"))
    };
    if segments.is_instance_of::<PyString>() {
        return Err(wrong());
    }
    if let Ok(list) = segments.cast_exact::<PyList>() {
        let mut prompt = Prompt::with_room(list.len()).or_raise(segments.py())?;
        for (index, item) in list.iter().enumerate() {
            push(core, &mut prompt, index, &item)?;
        }
        return Ok(prompt);
    }
    let mut prompt = Prompt::default();
    for (index, item) in segments.try_iter().map_err(|_| wrong())?.enumerate() {
        push(core, &mut prompt, index, &item?)?;
    }
    Ok(prompt)
}

fn push(
    core: &CoreBpe,
    prompt: &mut Prompt,
    index: usize,
    segment: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = segment.py();
    let special = core.encoding().special_tokens();
    let wrong = || {
        PyTypeError::new_err(format!(
            "segments[{index}] must be a tuple (text, allow_special), not {}",
            kind(segment)
        ))
    };
    let segment = segment.cast::<PyTuple>().map_err(|_| wrong())?;
    let mut items = segment.iter_borrowed();
    let (Some(text), Some(allowed)) = (items.next(), items.next()) else { return Err(wrong()) };
    if !text.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!(
            "the text of segments[{index}] must be a str, not {}",
            kind(&text)
        )));
    }
    if segment.len() == 6
        && let (Some(what), Some(given)) = (items.nth(2), items.next())
    {
        // The literal in Python's source is this very object.
        let is_text = what.is(pyo3::intern!(py, "text"));
        if !is_text && what.eq(pyo3::intern!(py, "special"))? {
            let name = text::read(&text)?.utf8().or_raise(py)?;
            let id = special.id(&name).ok_or_else(|| unknown(index, &name))?;
            return prompt.push_special(&name, id).or_raise(py);
        }
        if !is_text && what.eq(pyo3::intern!(py, "tokens"))? {
            let given = ids::read(&given).map_err(|error| at_segment(py, index, &error))?;
            if let Some(id) = given.iter().find(|&&id| core.encoding().token_bytes(id).is_none()) {
                return Err(PyValueError::new_err(format!(
                    "segments[{index}] holds the id {id}, which is no token of the encoding"
                )));
            }
            prompt.push_ids(given).or_raise(py)?;
            return Ok(());
        }
    }
    let allowed = read_allowed(core, index, &allowed)?;
    let text = text::read(&text)?.utf8().or_raise(py)?;
    prompt.push_text(core.encoding(), &text, &allowed).or_raise(py)
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
    if allowed.is_instance_of::<PyString>() {
        return Err(wrong("a str"));
    }
    let special = core.encoding().special_tokens();
    let mut names = Vec::new();
    for name in allowed.try_iter().map_err(|_| wrong(&kind(allowed)))? {
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
    /// In a box, since Python's allocator aligns objects to 16 bytes only.
    names: Box<Names>,
    normalization: Normalization,
}

const _: () = assert!(align_of::<NameFinder>() <= 16 && align_of::<ConversationState>() <= 16);

#[pymethods]
impl NameFinder {
    /// Finds names in the form that the encoding gives to texts.
    #[new]
    fn new(py: Python<'_>, core: &Bound<'_, CoreBpe>, names: Vec<String>) -> PyResult<Self> {
        let names = Box::new(Names::new(names).or_raise(py)?);
        Ok(Self { names, normalization: core.get().encoding().normalization() })
    }

    /// The names in a text: each with its first character, and the one after its last.
    fn find(&self, text: &Bound<'_, PyAny>) -> PyResult<Vec<(String, usize, usize)>> {
        let py = text.py();
        let original = text::read(text)?.utf8().or_raise(py)?;
        let (normal, alignment) = self.normalization.align(&original).or_raise(py)?;
        let mut characters = text::CharacterSpans::new(text, &original)?;
        let mut result = Vec::new();
        let mut from = 0;
        while let Some(found) = self.names.find(&normal, from) {
            let (start, end) = characters.next(alignment.original(found.start..found.end));
            result.push((self.names.names()[found.name].clone(), start, end));
            from = found.end;
        }
        Ok(result)
    }

    /// The parts of a text that are left when every name is taken out, and every one that only
    /// comes about thereby: the first character of each part, and the one after its last.
    fn strip<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let original = text::read(text)?.utf8().or_raise(text.py())?;
        let mut characters = text::CharacterSpans::new(text, &original)?;
        let kept = strip::without_names(&self.names, &original).or_raise(text.py())?;
        list_of_spans(text.py(), kept.into_iter().map(|span| characters.next(span)))
    }

    /// The text in the form that the encoding gives to texts.
    fn normalized(&self, text: &Bound<'_, PyAny>) -> PyResult<String> {
        let text_utf8 = text::read(text)?.utf8().or_raise(text.py())?;
        Ok(self.normalization.apply(&text_utf8).or_raise(text.py())?.into_owned())
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
        let prompt = read(self.core.get(), segments)?;
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
