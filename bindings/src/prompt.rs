//! Segments and conversations: what `bpe_engine.prompt` is built on.

use std::sync::{Arc, Mutex};

use bpe_core::Normalization;
use bpe_core::conversation::{self, Conversation};
use bpe_core::segments::{Origin, Prompt};
use bpe_core::special_tokens::{Names, Selection};
use bpe_core::strip;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBool, PyByteArray, PyList, PyString, PyTuple};

use crate::buffer::TokenBuffer;
use crate::encoding::{CoreBpe, Stop};
use crate::errors::OrRaise;
use crate::special::Rules;
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
        core.expect(prompt.size());
        prompt.encode(core.encoding(), core.normalization(), is_joined, &mut ids)
    })
    .or_raise(py)?;
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
        let (encoding, normalization) = (core.encoding(), core.normalization());
        prompt.encode_with_origins(encoding, normalization, is_joined, &mut ids, &mut origins)
    })
    .or_raise(py)?;
    let special: Vec<u8> = origins.iter().map(|origin| origin.is_special.into()).collect();
    let places = origins.iter().map(|&Origin { segments, .. }| segments);
    Ok((
        int_cache::list(py, &ids)?,
        PyList::new(py, places.collect::<Vec<_>>())?,
        PyByteArray::new(py, &special),
    ))
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
    let mut prompt = Prompt::default();
    for (index, item) in segments.try_iter().map_err(|_| wrong())?.enumerate() {
        let item = item?;
        match item.cast::<PyTuple>() {
            Ok(segment) if segment.len() >= 2 => push(core, &mut prompt, index, segment)?,
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "segments[{index}] must be a tuple (text, allow_special), not {}",
                    kind(&item)
                )));
            }
        }
    }
    Ok(prompt)
}

fn push(
    core: &CoreBpe,
    prompt: &mut Prompt,
    index: usize,
    segment: &Bound<'_, PyTuple>,
) -> PyResult<()> {
    let py = segment.py();
    let special = core.encoding().special_tokens();
    let text = segment.get_borrowed_item(0)?;
    if !text.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!(
            "the text of segments[{index}] must be a str, not {}",
            kind(&text)
        )));
    }
    if segment.len() == 6 {
        let what = segment.get_borrowed_item(4)?;
        if what.eq(pyo3::intern!(py, "special"))? {
            let name = text::read(&text)?.utf8();
            let id = special.id(&name).ok_or_else(|| unknown(index, &name))?;
            prompt.push_special(&name, id);
            return Ok(());
        }
        if what.eq(pyo3::intern!(py, "tokens"))? {
            let given =
                ids::read(&segment.get_item(5)?).map_err(|error| at_segment(py, index, &error))?;
            if let Some(id) = given.iter().find(|&&id| core.encoding().token_bytes(id).is_none()) {
                return Err(PyValueError::new_err(format!(
                    "segments[{index}] holds the id {id}, which is no token of the encoding"
                )));
            }
            prompt.push_ids(given);
            return Ok(());
        }
    }
    let allowed = read_allowed(core, index, &segment.get_item(1)?)?;
    let text = text::read(&text)?.utf8();
    prompt.push_text(core.encoding(), core.normalization(), &text, &allowed);
    Ok(())
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
        let name = text::read(&name)?.utf8().to_string();
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
        Ok(Self { names, normalization: core.get().normalization() })
    }

    /// The names in a text: each with its first character, and the one after its last.
    fn find(&self, text: &Bound<'_, PyAny>) -> PyResult<Vec<(String, usize, usize)>> {
        let original = text::read(text)?.utf8();
        let (normal, alignment) = self.normalization.align(&original);
        let (mut names, mut spans) = (Vec::new(), Vec::new());
        let mut from = 0;
        while let Some(found) = self.names.find(&normal, from) {
            names.push(self.names.names()[found.name].clone());
            spans.push(alignment.original(found.start..found.end));
            from = found.end;
        }
        let spans = text::character_spans(text, &original, spans)?;
        Ok(names.into_iter().zip(spans).map(|(name, (start, end))| (name, start, end)).collect())
    }

    /// The parts of a text that are left when every name is taken out, and every one that only
    /// comes about thereby: the first character of each part, and the one after its last.
    fn strip(&self, text: &Bound<'_, PyAny>) -> PyResult<Vec<(usize, usize)>> {
        let original = text::read(text)?.utf8();
        text::character_spans(text, &original, strip::without_names(&self.names, &original))
    }

    /// The text in the form that the encoding gives to texts.
    fn normalized(&self, text: &Bound<'_, PyAny>) -> PyResult<String> {
        Ok(self.normalization.apply(&text::read(text)?.utf8()).into_owned())
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
    rules: Rules,
    state: Mutex<Arc<Conversation>>,
}

/// Bytes of new text above which other Python threads may run meanwhile.
const WORTH_DETACHING: usize = 1 << 16;

impl ConversationState {
    fn current(&self, py: Python<'_>) -> Arc<Conversation> {
        let state = self.state.lock_py_attached(py);
        Arc::clone(&state.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Runs `work` on the state; returns how many ids stayed, and all ids behind them.
    fn update<'py>(
        &self,
        py: Python<'py>,
        size: usize,
        work: impl FnOnce(&CoreBpe, &mut Conversation) -> Result<usize, Stop> + Send,
    ) -> PyResult<(usize, Bound<'py, PyList>)> {
        let core = self.core.get();
        let raise = |stop: Stop| stop.into_python(py);
        let mut copy = self.current(py);
        if size > WORTH_DETACHING + copy.size() {
            let kept = py.detach(|| work(core, Arc::make_mut(&mut copy))).map_err(raise)?;
            let list = int_cache::list(py, &copy.ids()[kept..])?;
            *self.state.lock_py_attached(py).unwrap_or_else(std::sync::PoisonError::into_inner) =
                copy;
            return Ok((kept, list));
        }
        drop(copy);
        let mut state =
            self.state.lock_py_attached(py).unwrap_or_else(std::sync::PoisonError::into_inner);
        let state = Arc::make_mut(&mut state);
        let kept = work(core, state).map_err(raise)?;
        Ok((kept, int_cache::list(py, &state.ids()[kept..])?))
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
        let special = core.get().encoding().special_tokens();
        let rules = Rules::read(special, allowed_special, disallowed_special)?;
        let state = Mutex::new(Arc::default());
        Ok(Self { core: core.clone().unbind(), rules, state })
    }

    /// The same conversation, to go on in another way.
    fn fork(&self, py: Python<'_>) -> Self {
        let state = Mutex::new(self.current(py));
        Self { core: self.core.clone_ref(py), rules: self.rules.clone(), state }
    }

    fn update_text<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<(usize, Bound<'py, PyList>)> {
        let utf8 = text::read(text)?.utf8();
        self.update(text.py(), utf8.len(), |core, state| {
            let special = core.encoding().special_tokens();
            let check = |text: &str| match self.rules.find_disallowed(special, text) {
                Some(name) => Err(Stop::Disallowed(name)),
                None => Ok(()),
            };
            let margin = self.rules.longest(special);
            let (encoding, normalization) = (core.encoding(), core.normalization());
            state.update_text(encoding, normalization, &utf8, &self.rules.allowed, margin, check)
        })
    }

    fn update_segments<'py>(
        &self,
        segments: &Bound<'py, PyAny>,
    ) -> PyResult<(usize, Bound<'py, PyList>)> {
        let prompt = read(self.core.get(), segments)?;
        self.update(segments.py(), prompt.size(), |core, state| {
            let (text, fixed) = prompt.into_parts();
            let (encoding, normalization) = (core.encoding(), core.normalization());
            state.update_prompt(encoding, normalization, text, fixed).map_err(Stop::Core)
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
    let special = core.encoding().special_tokens();
    let rules = Rules::read(special, allowed_special, disallowed_special)?;
    let original = text::read(text)?.utf8();
    let (ids, bytes) = gil::run(py, original.len(), || {
        let normal = core.normalization().apply(&original);
        if let Some(name) = rules.find_disallowed(special, &normal) {
            return Err(Stop::Disallowed(name));
        }
        let (encoding, normalization) = (core.encoding(), core.normalization());
        conversation::stable_prefix(encoding, normalization, &original, &rules.allowed)
            .map_err(Stop::Core)
    })
    .map_err(|stop| stop.into_python(py))?;
    let spans = text::character_spans(text, &original, std::iter::once(0..bytes).collect())?;
    Ok((int_cache::list(py, &ids)?, spans.first().map_or(0, |&(_, end)| end)))
}
