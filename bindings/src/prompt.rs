//! Segments and conversations: the native half of `bpe_engine.prompt`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bpe_core::conversation::{self, Conversation};
use bpe_core::memory;
use bpe_core::segments::Prompt;
use bpe_core::special_tokens::{Names, Selection};
use bpe_core::{Pipeline, Request, SpecialTokens};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFrozenSet, PyList, PySet, PyString, PyTuple};

use crate::buffer::TokenBuffer;
use crate::columns::Column;
use crate::errors::{OrRaise, describe};
use crate::interned::interned;
use crate::objects::{iterate, listed};
use crate::pipeline::PyPipeline;
use crate::request::Gives;
use crate::{buffer_pool, gil, ids, int_cache, text};

// ---- Segments ----

/// Encodes segments.
#[pyfunction]
pub fn encode_segments(
    source: &Bound<'_, PyPipeline>,
    segments: &Bound<'_, PyAny>,
    is_joined: bool,
) -> PyResult<TokenBuffer> {
    let pipeline = PyPipeline::current(source)?;
    let prompt = read(&pipeline, segments, is_joined)?;
    let mut ids = buffer_pool::IDS.take(buffer_pool::likely_ids(prompt.size()));
    PyPipeline::shared(source)?.prefault_vocabulary(prompt.size());
    let work = || prompt.encode(&pipeline, is_joined, &mut ids);
    gil::run(segments.py(), prompt.size(), work)?;
    Ok(TokenBuffer::new(ids))
}

/// Reads segments: tuples `(text, allowed_special)`, or segments of `bpe_engine.prompt`.
pub fn read(pipeline: &Pipeline, segments: &Bound<'_, PyAny>, is_joined: bool) -> PyResult<Prompt> {
    let mut prompt = read_after(pipeline, segments, is_joined, Prompt::default(), None)?.0;
    prompt.finish(pipeline).or_raise()?;
    Ok(prompt)
}

/// Reads the segments after a prompt that ends with this half of a surrogate pair. Returns the
/// prompt, before [`Prompt::finish`] is called, and the half that it now ends with.
fn read_after(
    pipeline: &Pipeline,
    segments: &Bound<'_, PyAny>,
    is_joined: bool,
    prompt: Prompt,
    half: Option<u32>,
) -> PyResult<(Prompt, Option<u32>)> {
    let wrong = || {
        let kind = kind(segments);
        let hint = if segments.is_instance_of::<PyString>() {
            "; for one text pass [untrusted(text)]"
        } else {
            ""
        };
        PyTypeError::new_err(format!("segments must be a list of segments, not {kind}{hint}"))
    };
    let mut reader = Reader { pipeline, is_joined, prompt, half };
    if let Ok(list) = segments.cast_exact::<PyList>() {
        for (index, item) in list.iter().enumerate() {
            reader.push(index, &item)?;
        }
        return Ok((reader.prompt, reader.half));
    }
    if segments.is_instance_of::<PyString>()
        || segments.is_instance_of::<PyBytes>()
        || segments.is_instance_of::<PyDict>()
    {
        return Err(wrong());
    }
    for (index, item) in iterate(segments).map_err(|_| wrong())?.enumerate() {
        reader.push(index, &item?)?;
    }
    Ok((reader.prompt, reader.half))
}

struct Reader<'a> {
    pipeline: &'a Pipeline,
    /// Whether tokens may cross segment boundaries.
    is_joined: bool,
    prompt: Prompt,
    /// High surrogate at the end of the text so far.
    half: Option<u32>,
}

impl Reader<'_> {
    fn push(&mut self, index: usize, segment: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = segment.py();
        let special = self.pipeline.special_tokens().or_raise()?;
        let wrong = |what: String| {
            PyTypeError::new_err(format!(
                "segments[{index}] must be a tuple (text, allowed_special), not {what}"
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
        if segment.len() >= 6
            && let (Some(what), Some(given)) = (items.nth(2), items.next())
            // A literal in Python source is the same interned object.
            && !what.is(interned!(py, "text"))
        {
            if what.eq(interned!(py, "special"))? {
                self.half = None;
                let name = text::read(&text)?.utf8().or_raise()?;
                let id = special.id(&name).ok_or_else(|| unknown(index, &name))?;
                return self.prompt.push_special(&name, id).or_raise();
            }
            if what.eq(interned!(py, "tokens"))? {
                return self.push_ids(index, &given);
            }
            if !what.eq(interned!(py, "text"))? {
                return Err(PyValueError::new_err(format!(
                    "the kind of segments[{index}] must be \"text\", \"special\" or \"tokens\", not {}",
                    describe(&what)
                )));
            }
        }
        let allowed = read_allowed(special, index, &allowed)?;
        self.push_text(&text, &allowed)
    }

    fn push_ids(&mut self, index: usize, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = given.py();
        let given = ids::read(given).map_err(|error| at_segment(py, index, &error))?;
        if let Some(id) = given.iter().find(|&&id| !self.pipeline.has_token(id)) {
            return Err(PyValueError::new_err(format!(
                "segments[{index}] contains the id {id}, which is not a token of the encoding"
            )));
        }
        if !given.is_empty() {
            self.half = None;
        }
        self.prompt.push_ids(given).or_raise()
    }

    fn push_text(&mut self, text: &Bound<'_, PyAny>, allowed: &Selection) -> PyResult<()> {
        let text = text::read(text)?;
        let utf8 = text.utf8().or_raise()?;
        let mut rest = &*utf8;
        if !rest.is_empty() {
            let before = self.half.take().filter(|_| self.is_joined);
            if let Some((first, last)) = text.ends() {
                self.half = half(last);
                if let Some(pair) = before.and_then(|before| joined(before, first)) {
                    self.prompt.join_halves(pair);
                    rest = without_half(rest);
                }
            }
        }
        self.prompt.push_text(self.pipeline, rest, allowed).or_raise()
    }
}

/// Returns a code unit if it is the first half of a surrogate pair.
fn half(unit: u32) -> Option<u32> {
    (0xd800..0xdc00).contains(&unit).then_some(unit)
}

/// Strips a leading U+FFFD, which stands for the second half of a surrogate pair.
fn without_half(text: &str) -> &str {
    text.strip_prefix(char::REPLACEMENT_CHARACTER).unwrap_or(text)
}

/// Combines two surrogates.
fn joined(first: u32, second: u32) -> Option<char> {
    let (first, second) = (u16::try_from(first).ok()?, u16::try_from(second).ok()?);
    char::decode_utf16([first, second]).next()?.ok()
}

/// Reads the special tokens that a segment allows: a bool, or names.
fn read_allowed(
    special: &SpecialTokens,
    index: usize,
    allowed: &Bound<'_, PyAny>,
) -> PyResult<Selection> {
    if let Ok(all) = allowed.cast::<PyBool>() {
        return Ok(if all.is_true() { Selection::All } else { Selection::None });
    }
    let wrong = |what: &str| {
        PyTypeError::new_err(format!(
            "allowed_special of segments[{index}] must be True, False or a set of names, not {what}"
        ))
    };
    if !allowed.is_instance_of::<PySet>() && !allowed.is_instance_of::<PyFrozenSet>() {
        return Err(wrong(&kind(allowed)));
    }
    let mut names = Vec::new();
    for name in allowed.try_iter()? {
        let name = name?;
        if !name.is_instance_of::<PyString>() {
            return Err(wrong(&format!("one that contains {}", kind(&name))));
        }
        let name = text::read(&name)?.utf8().or_raise()?.to_string();
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

/// Names the segment in an error message.
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

/// Finds control strings: names in texts, leftmost-longest.
#[pyclass(frozen, module = "bpe_engine._core")]
pub struct NameFinder {
    /// Normalized names. Boxed, since Python's allocator aligns objects only to 16 bytes.
    names: Box<Names>,
    /// Original names, in the order of `names`.
    given: Vec<String>,
    pipeline: Arc<Pipeline>,
}

const _: () = assert!(align_of::<NameFinder>() <= 16 && align_of::<ConversationState>() <= 16);

#[pymethods]
impl NameFinder {
    /// Builds a finder for normalized names. Of names with the same form, the first counts.
    #[new]
    fn new(
        source: &Bound<'_, PyPipeline>,
        #[pyo3(from_py_with = listed)] names: Vec<String>,
    ) -> PyResult<Self> {
        let pipeline = PyPipeline::current(source)?.share();
        let mut by_form = BTreeMap::new();
        for name in names {
            let form = pipeline.control_form(&name).or_raise()?.0.into_owned();
            by_form.entry(form).or_insert(name);
        }
        // Both are sorted by normalized form.
        let names = Box::new(Names::new(by_form.keys().cloned()).or_raise()?);
        Ok(Self { names, given: by_form.into_values().collect(), pipeline })
    }

    /// Returns true if the tokenizer is unchanged since the finder was built.
    fn is_current(&self, source: &Bound<'_, PyPipeline>) -> PyResult<bool> {
        Ok(std::ptr::addr_eq(&raw const *PyPipeline::current(source)?, &raw const *self.pipeline))
    }

    /// Finds the names in a text. Returns each with its start and end, in characters.
    fn find(&self, text: &Bound<'_, PyAny>) -> PyResult<Vec<(&str, usize, usize)>> {
        let original = text::read(text)?.utf8().or_raise()?;
        let mut characters = original.character_spans();
        let (form, originals) = self.pipeline.control_form(&original).or_raise()?;
        let mut result = Vec::new();
        let mut from = 0;
        while let Some(found) = self.names.find(&form, from) {
            let (start, end) = characters.next(originals(found.start..found.end));
            result.push((self.given[found.name].as_str(), start, end));
            from = found.end;
        }
        Ok(result)
    }
}

/// Counts names in columns of texts, without normalization.
#[pyclass(frozen, module = "bpe_engine._core")]
pub struct NameCounter(Box<Names>);

const _: () = assert!(align_of::<NameCounter>() <= 16);

#[pymethods]
impl NameCounter {
    #[new]
    fn new(#[pyo3(from_py_with = listed)] names: Vec<String>) -> PyResult<Self> {
        Ok(Self(Box::new(Names::new(names).or_raise()?)))
    }

    /// Returns each name found, its count, and the first row that contains it. The parts are tuples
    /// with the buffers of a column, as for `Pipeline._encode_ragged`.
    fn count(&self, parts: &Bound<'_, PyList>) -> PyResult<Vec<(&str, usize, usize)>> {
        let py = parts.py();
        let names = &*self.0;
        let mut found: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        let mut first_row = 0;
        for part in parts {
            let column = Column::read(part.cast::<PyTuple>()?, first_row)?;
            let texts: Vec<_> = column.texts()?.collect();
            let size = texts.iter().map(|text| text.size()).sum();
            gil::run(py, size, || {
                let mut scratch = Vec::new();
                for (row, text) in texts.iter().enumerate() {
                    let text = text.utf8(&mut scratch)?;
                    let mut from = 0;
                    while let Some(name) = names.find(text, from) {
                        found.entry(name.name).or_insert((0, first_row + row)).0 += 1;
                        from = name.end;
                    }
                }
                Ok(())
            })?;
            first_row += column.len();
        }
        let found = found.into_iter();
        Ok(found.map(|(name, (count, row))| (names.names()[name].as_str(), count, row)).collect())
    }
}

// ---- Conversations ----

/// A prompt that changes, and its ids.
///
/// Only attached threads hold the lock, so it is never held during a fork. Long work changes a
/// copy; the last of concurrent updates wins, and concurrent appends are never lost.
#[pyclass(frozen, module = "bpe_engine._core")]
pub struct ConversationState {
    pipeline: Arc<Pipeline>,
    request: Request,
    state: Mutex<Version>,
}

#[derive(Clone, Default)]
struct Version {
    conversation: Arc<Conversation>,
    /// Number of changes so far.
    changes: u64,
}

/// Updates with more bytes of new text than this release the interpreter.
const WORTH_DETACHING: usize = 1 << 16;

/// Returns a conversation to change: a copy if it is shared.
///
/// Fails if there is no memory for the copy, which `Clone` would not report.
fn own(conversation: &mut Arc<Conversation>) -> bpe_core::Result<&mut Conversation> {
    if Arc::get_mut(conversation).is_none() {
        memory::ask_for(conversation.memory())?;
    }
    Ok(Arc::make_mut(conversation))
}

impl ConversationState {
    fn current(&self, py: Python<'_>) -> Version {
        self.lock(py).clone()
    }

    /// Runs `work`, which reads `new` bytes. Returns the number of ids kept, and all ids after
    /// them; `None` if the number of changes differs from `after`.
    fn change<'py>(
        &self,
        py: Python<'py>,
        new: usize,
        after: Option<u64>,
        work: impl FnOnce(&mut Conversation) -> bpe_core::Result<usize> + Send,
    ) -> PyResult<Option<(usize, Bound<'py, PyList>)>> {
        let is_other = |state: &Version| after.is_some_and(|changes| changes != state.changes);
        if new > WORTH_DETACHING {
            let mut copy = self.current(py).conversation;
            let kept = gil::run(py, new, || work(own(&mut copy)?))?;
            let list = int_cache::list(py, &copy.ids()[kept..])?;
            let mut state = self.lock(py);
            if is_other(&state) {
                return Ok(None);
            }
            *state = Version { conversation: copy, changes: state.changes + 1 };
            return Ok(Some((kept, list)));
        }
        let mut state = self.lock(py);
        if is_other(&state) {
            return Ok(None);
        }
        state.changes += 1;
        let conversation = own(&mut state.conversation).or_raise()?;
        let kept = work(conversation).or_raise()?;
        Ok(Some((kept, int_cache::list(py, &conversation.ids()[kept..])?)))
    }

    fn update<'py>(
        &self,
        py: Python<'py>,
        size: usize,
        work: impl FnOnce(&mut Conversation) -> bpe_core::Result<usize> + Send,
    ) -> PyResult<(usize, Bound<'py, PyList>)> {
        let new = size.saturating_sub(self.current(py).conversation.size());
        Ok(self.change(py, new, None, work)?.expect("any number of changes will do"))
    }

    /// Returns the state if a text (with `is_text`) or segments can be appended.
    fn appendable(&self, py: Python<'_>, is_text: bool) -> PyResult<Version> {
        let state = self.current(py);
        if state.conversation.takes(is_text) {
            return Ok(state);
        }
        Err(PyTypeError::new_err(if is_text {
            "the prompt so far has segments: append a list of segments, not a str"
        } else {
            "the prompt so far is a text: append a str, not segments"
        }))
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Version> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl ConversationState {
    #[new]
    fn new(
        source: &Bound<'_, PyPipeline>,
        allowed_special: Option<&Bound<'_, PyAny>>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (pipeline, request) =
            PyPipeline::ask(source, allowed_special, disallowed_special, Gives::Ids)?;
        Ok(Self { pipeline: pipeline.share(), request, state: Mutex::default() })
    }

    /// Copies the conversation, so that both can continue separately.
    fn fork(&self, py: Python<'_>) -> Self {
        let state = Mutex::new(self.current(py));
        Self { pipeline: self.pipeline.clone(), request: self.request.clone(), state }
    }

    /// Replaces the text. Returns the number of ids kept, and all ids after them.
    fn update_text<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<(usize, Bound<'py, PyList>)> {
        let given = text::read(text)?;
        let (utf8, ends) = (given.utf8().or_raise()?, given.ends());
        self.update(text.py(), utf8.len(), |state| {
            let kept = state.update_text(&self.pipeline, &utf8, &self.request)?;
            state.half = ends.and_then(|(_, last)| half(last));
            Ok(kept)
        })
    }

    /// Replaces the segments, like `update_text`.
    fn update_segments<'py>(
        &self,
        segments: &Bound<'py, PyAny>,
    ) -> PyResult<(usize, Bound<'py, PyList>)> {
        let (prompt, half) = read_after(&self.pipeline, segments, true, Prompt::default(), None)?;
        self.update(segments.py(), prompt.size(), |state| {
            let kept = state.update_prompt(&self.pipeline, prompt)?;
            state.half = half;
            Ok(kept)
        })
    }

    /// Appends a text. Returns the same as `update_text`.
    fn append_text<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<(usize, Bound<'py, PyList>)> {
        let py = text.py();
        let given = text::read(text)?;
        let (utf8, ends) = (given.utf8().or_raise()?, given.ends());
        loop {
            let changes = self.appendable(py, true)?.changes;
            let work = |state: &mut Conversation| {
                let pair = ends.zip(state.half).and_then(|((first, _), half)| joined(half, first));
                let more = if pair.is_some() { without_half(&utf8) } else { &utf8 };
                let kept = state.append_text(&self.pipeline, pair, more, &self.request)?;
                if !utf8.is_empty() {
                    state.half = ends.and_then(|(_, last)| half(last));
                }
                Ok(kept)
            };
            if let Some(change) = self.change(py, utf8.len(), Some(changes), work)? {
                return Ok(change);
            }
        }
    }

    /// Appends a list of segments.
    fn append_segments<'py>(
        &self,
        segments: &Bound<'py, PyList>,
    ) -> PyResult<(usize, Bound<'py, PyList>)> {
        let (py, pipeline) = (segments.py(), &*self.pipeline);
        loop {
            let Version { conversation, changes } = self.appendable(py, false)?;
            let (end, half) = (conversation.end().or_raise()?, conversation.half);
            drop(conversation);
            let before = end.size();
            let (prompt, half) = read_after(pipeline, segments, true, end, half)?;
            let new = prompt.size() - before;
            let work = |state: &mut Conversation| {
                let kept = state.append_prompt(pipeline, prompt)?;
                state.half = half;
                Ok(kept)
            };
            if let Some(change) = self.change(py, new, Some(changes), work)? {
                return Ok(change);
            }
        }
    }

    /// Returns all ids.
    fn ids(&self, py: Python<'_>) -> TokenBuffer {
        TokenBuffer::new(self.current(py).conversation.ids().to_vec())
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.current(py).conversation.ids().len()
    }

    /// Returns the memory of the conversation in bytes.
    fn memory(&self, py: Python<'_>) -> usize {
        self.current(py).conversation.memory()
    }
}

/// Returns the ids of a text that no later text can change, and the number of characters they
/// cover.
#[pyfunction]
pub fn stable_prefix<'py>(
    source: &Bound<'_, PyPipeline>,
    text: &Bound<'py, PyAny>,
    allowed_special: Option<&Bound<'py, PyAny>>,
    disallowed_special: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyList>, usize)> {
    let py = text.py();
    let (pipeline, request) =
        PyPipeline::ask(source, allowed_special, disallowed_special, Gives::Ids)?;
    let original = text::read(text)?.utf8().or_raise()?;
    let work = || conversation::stable_prefix(&pipeline, &original, &request);
    let (ids, bytes) = gil::run(py, original.len(), work)?;
    let (_, characters) = original.character_spans().next(0..bytes);
    Ok((int_cache::list(py, &ids)?, characters))
}
