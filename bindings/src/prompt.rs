//! Segments and conversations: the native half of `bpe_engine.prompt`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bpe_core::conversation::{self, Conversation};
use bpe_core::segments::{Engine, Prompt};
use bpe_core::special_tokens::{Names, Selection};
use bpe_core::{Encoding, Error, Normalization, Request, SpecialTokens};
use bpe_hf::Tokenizer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFrozenSet, PyList, PySet, PyString, PyTuple};

use crate::buffer::TokenBuffer;
use crate::buffer_pool::BufferPool;
use crate::columns::Column;
use crate::core_bpe::CoreBpe;
use crate::errors::{OrRaise, to_python};
use crate::hf::HfTokenizer;
use crate::interned::interned;
use crate::{buffer_pool, gil, hf, ids, int_cache, request, text};

/// The engine of a call: an encoding or a tokenizer file.
pub enum Source {
    Core(Py<CoreBpe>),
    File(Arc<Tokenizer>),
}

/// An engine whose errors Python can raise.
pub trait PyEngine: Engine<Error: Send> + Sync {
    fn raise(py: Python<'_>, error: Self::Error) -> PyErr;
}

impl PyEngine for Encoding {
    fn raise(py: Python<'_>, error: Error) -> PyErr {
        to_python(py, error)
    }
}

impl PyEngine for Tokenizer {
    fn raise(_: Python<'_>, error: bpe_hf::Error) -> PyErr {
        hf::to_python(error)
    }
}

/// Evaluates an expression with the engine of a source.
macro_rules! with_engine {
    ($source:expr, $engine:ident => $work:expr) => {
        match $source {
            Source::Core(core) => {
                let $engine: &Encoding = core.get().encoding();
                $work
            }
            Source::File(tokenizer) => {
                let $engine: &Tokenizer = tokenizer;
                $work
            }
        }
    };
}

pub(crate) use with_engine;

impl Source {
    /// Reads a `CoreBPE` or the current tokenizer of an `HfTokenizer`.
    pub fn read(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(core) = source.cast::<CoreBpe>() {
            return Ok(Self::Core(core.clone().unbind()));
        }
        let tokenizer = source.cast::<HfTokenizer>()?.get().current();
        Ok(match tokenizer.encoding().cloned() {
            Some(encoding) => Self::Core(Py::new(source.py(), CoreBpe::of_encoding(encoding))?),
            None => Self::File(tokenizer),
        })
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Core(core) => Self::Core(core.clone_ref(py)),
            Self::File(tokenizer) => Self::File(tokenizer.clone()),
        }
    }

    fn prefault_vocabulary(&self, bytes: usize) {
        if let Self::Core(core) = self {
            core.get().prefault_vocabulary(bytes);
        }
    }

    /// Reads `allowed_special` and `disallowed_special`. The tokenizer of a file, which searches
    /// for all special tokens or none, is replaced by a copy with this request.
    pub fn request(
        &mut self,
        allowed: &Bound<'_, PyAny>,
        disallowed: &Bound<'_, PyAny>,
    ) -> PyResult<Request> {
        match self {
            Self::Core(core) => core.get().request(allowed, disallowed),
            Self::File(tokenizer) => {
                let request = request::read_for_file(tokenizer, allowed, disallowed)?;
                Arc::make_mut(tokenizer).set_request(request.clone());
                Ok(request)
            }
        }
    }
}

/// Runs `work`, and releases the interpreter meanwhile if `size` is large.
fn run<E: PyEngine, T: Send>(
    py: Python<'_>,
    size: usize,
    work: impl FnOnce() -> Result<T, E::Error> + Send,
) -> PyResult<T> {
    let result = if size < gil::WORTH_DETACHING { work() } else { gil::detached(py, work)? };
    result.map_err(|error| E::raise(py, error))
}

// ---- Segments ----

/// Encodes segments.
#[pyfunction]
pub fn encode_segments<'py>(
    source: &Bound<'py, PyAny>,
    segments: &Bound<'py, PyAny>,
    is_joined: bool,
) -> PyResult<Bound<'py, PyList>> {
    let ids = segment_ids(source, segments, is_joined, BufferPool::borrow)?;
    let list = int_cache::list(source.py(), &ids);
    buffer_pool::IDS.give(ids);
    list
}

/// Encodes segments to a buffer for numpy.
#[pyfunction]
pub fn encode_segments_to_buffer(
    source: &Bound<'_, PyAny>,
    segments: &Bound<'_, PyAny>,
    is_joined: bool,
) -> PyResult<TokenBuffer> {
    Ok(TokenBuffer::new(segment_ids(source, segments, is_joined, BufferPool::take)?))
}

fn segment_ids(
    source: &Bound<'_, PyAny>,
    segments: &Bound<'_, PyAny>,
    is_joined: bool,
    buffer: fn(&BufferPool<u32>, usize) -> Vec<u32>,
) -> PyResult<Vec<u32>> {
    let py = source.py();
    let source = Source::read(source)?;
    with_engine!(&source, engine => {
        let prompt = read(engine, segments, is_joined)?;
        let mut ids = buffer(&buffer_pool::IDS, buffer_pool::likely_ids(prompt.size()));
        source.prefault_vocabulary(prompt.size());
        run_on(engine, py, prompt.size(), |engine| prompt.encode(engine, is_joined, &mut ids))?;
        Ok(ids)
    })
}

/// Like [`run`], for work on an engine.
pub fn run_on<E: PyEngine, T: Send>(
    engine: &E,
    py: Python<'_>,
    size: usize,
    work: impl FnOnce(&E) -> Result<T, E::Error> + Send,
) -> PyResult<T> {
    run::<E, T>(py, size, || work(engine))
}

/// Reads segments: tuples `(text, allowed_special)`, or segments of `bpe_engine.prompt`.
pub fn read<E: PyEngine>(
    engine: &E,
    segments: &Bound<'_, PyAny>,
    is_joined: bool,
) -> PyResult<Prompt> {
    let py = segments.py();
    let wrong = || {
        let kind = kind(segments);
        let hint = if segments.is_instance_of::<PyString>() {
            "; for one text pass [untrusted(text)]"
        } else {
            ""
        };
        PyTypeError::new_err(format!("segments must be a list of segments, not {kind}{hint}"))
    };
    let mut reader = Reader { engine, is_joined, prompt: Prompt::default(), half: None };
    if let Ok(list) = segments.cast_exact::<PyList>() {
        reader.prompt = Prompt::with_room(list.len()).or_raise(py)?;
        for (index, item) in list.iter().enumerate() {
            reader.push(index, &item)?;
        }
        return reader.finish(py);
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
    reader.finish(py)
}

struct Reader<'a, E> {
    engine: &'a E,
    /// Whether tokens may cross the borders of segments.
    is_joined: bool,
    prompt: Prompt,
    /// The high surrogate that the text so far ends with.
    half: Option<u32>,
}

impl<E: PyEngine> Reader<'_, E> {
    fn finish(mut self, py: Python<'_>) -> PyResult<Prompt> {
        self.prompt.finish(self.engine).map_err(|error| E::raise(py, error))?;
        Ok(self.prompt)
    }

    fn push(&mut self, index: usize, segment: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = segment.py();
        let special = self.engine.special_tokens().map_err(|error| E::raise(py, error))?;
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
            // The literal in Python's source is this object.
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
        let allowed = read_allowed(special, index, &allowed)?;
        self.push_text(&text, &allowed)
    }

    fn push_ids(&mut self, index: usize, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = given.py();
        let given = ids::read(given).map_err(|error| at_segment(py, index, &error))?;
        if let Some(id) = given.iter().find(|&&id| !self.engine.has_token(id)) {
            return Err(PyValueError::new_err(format!(
                "segments[{index}] contains the id {id}, which is not a token of the encoding"
            )));
        }
        if !given.is_empty() {
            self.half = None;
        }
        self.prompt.push_ids(given).or_raise(py)
    }

    fn push_text(&mut self, text: &Bound<'_, PyAny>, allowed: &Selection) -> PyResult<()> {
        let py = text.py();
        let text = text::read(text)?;
        let utf8 = text.utf8().or_raise(py)?;
        let mut rest = &*utf8;
        if !rest.is_empty() {
            let before = self.half.take().filter(|_| self.is_joined);
            if let Some((first, last)) = text.ends() {
                self.half = (0xd800..0xdc00).contains(&last).then_some(last);
                if let Some(pair) = before.and_then(|before| joined(before, first)) {
                    self.prompt.join_halves(pair).or_raise(py)?;
                    rest = rest.strip_prefix(char::REPLACEMENT_CHARACTER).unwrap_or(rest);
                }
            }
        }
        let pushed = self.prompt.push_text(self.engine, rest, allowed);
        pushed.map_err(|error| E::raise(py, error))
    }
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

/// Adds the segment to the message of an error.
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
    /// The normalized names. Boxed, since Python's allocator aligns objects to 16 bytes only.
    names: Box<Names>,
    /// The original names, in the order of `names`.
    given: Vec<String>,
    normalization: Normalization,
    /// If present, normalizes texts instead of `normalization`.
    file: Option<Arc<Tokenizer>>,
}

const _: () = assert!(align_of::<NameFinder>() <= 16 && align_of::<ConversationState>() <= 16);

#[pymethods]
impl NameFinder {
    /// Builds a finder for normalized names. If several names have the same form, the first counts.
    #[new]
    fn new(py: Python<'_>, source: &Bound<'_, PyAny>, names: Vec<String>) -> PyResult<Self> {
        let (normalization, file) = match Source::read(source)? {
            Source::Core(core) => (core.get().encoding().normalization(), None),
            Source::File(tokenizer) => (Normalization::None, Some(tokenizer)),
        };
        let mut by_form = BTreeMap::new();
        for name in names {
            let form = match &file {
                Some(file) => hf::OrRaise::or_raise(file.control_form(&name))?.0,
                None => normalization.apply(&name).or_raise(py)?.into_owned(),
            };
            by_form.entry(form).or_insert(name);
        }
        // Both are sorted by the form.
        let names = Box::new(Names::new(by_form.keys().cloned()).or_raise(py)?);
        Ok(Self { names, given: by_form.into_values().collect(), normalization, file })
    }

    /// Returns true if a finder built for `source` now would find the same.
    fn is_current(&self, source: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(match (Source::read(source)?, &self.file) {
            (Source::Core(core), None) => {
                core.get().encoding().normalization() == self.normalization
            }
            (Source::File(tokenizer), Some(file)) => Arc::ptr_eq(&tokenizer, file),
            _ => false,
        })
    }

    /// Finds the names in a text. Returns each with its start and end, in characters.
    fn find(&self, text: &Bound<'_, PyAny>) -> PyResult<Vec<(&str, usize, usize)>> {
        let py = text.py();
        let original = text::read(text)?.utf8().or_raise(py)?;
        let mut characters = text::CharacterSpans::new(&original);
        let mut result = Vec::new();
        let mut from = 0;
        if let Some(file) = &self.file {
            let (form, origins) = hf::OrRaise::or_raise(file.control_form(&original))?;
            while let Some(found) = self.names.find(&form, from) {
                let (first, last) = (origins[found.start], origins[found.end - 1]);
                let (start, end) = characters.next(first.0..last.1);
                result.push((self.given[found.name].as_str(), start, end));
                from = found.end;
            }
            return Ok(result);
        }
        let (normal, alignment) = self.normalization.align(&original).or_raise(py)?;
        while let Some(found) = self.names.find(&normal, from) {
            let (start, end) = characters.next(alignment.original(found.start..found.end));
            result.push((self.given[found.name].as_str(), start, end));
            from = found.end;
        }
        Ok(result)
    }
}

/// Counts names in columns of texts, as they are, without normalization.
#[pyclass(frozen, module = "bpe_engine._core")]
pub struct NameCounter(Box<Names>);

const _: () = assert!(align_of::<NameCounter>() <= 16);

#[pymethods]
impl NameCounter {
    #[new]
    fn new(py: Python<'_>, names: Vec<String>) -> PyResult<Self> {
        Ok(Self(Box::new(Names::new(names).or_raise(py)?)))
    }

    /// Returns each name that was found, with how often, and the first row that has it. The parts
    /// are tuples with the buffers of a column, as for `CoreBPE.encode_ragged`.
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

/// A text that changes, and its ids.
///
/// Only a thread that holds the interpreter holds the lock, so a forked child never finds it taken.
/// Long updates work on a copy; the last of concurrent updates wins.
#[pyclass(frozen, module = "bpe_engine._core")]
pub struct ConversationState {
    source: Source,
    request: Request,
    state: Mutex<Arc<Conversation>>,
}

/// Updates with more bytes of new text than this release the interpreter.
const WORTH_DETACHING: usize = 1 << 16;

impl ConversationState {
    fn current(&self, py: Python<'_>) -> Arc<Conversation> {
        Arc::clone(&self.lock(py))
    }

    /// Runs `work` on the state. Returns how many ids stay, and all ids after them.
    fn update<'py, E: PyEngine>(
        &self,
        py: Python<'py>,
        engine: &E,
        size: usize,
        work: impl FnOnce(&E, &mut Conversation) -> Result<usize, E::Error> + Send,
    ) -> PyResult<(usize, Bound<'py, PyList>)> {
        let mut copy = self.current(py);
        if size > WORTH_DETACHING + copy.size() {
            let kept = run::<E, _>(py, size, || work(engine, Arc::make_mut(&mut copy)))?;
            let list = int_cache::list(py, &copy.ids()[kept..])?;
            *self.lock(py) = copy;
            return Ok((kept, list));
        }
        drop(copy);
        let mut state = self.lock(py);
        let state = Arc::make_mut(&mut state);
        let kept = work(engine, state).map_err(|error| E::raise(py, error))?;
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
        source: &Bound<'_, PyAny>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let mut source = Source::read(source)?;
        let request = source.request(allowed_special, disallowed_special)?;
        Ok(Self { source, request, state: Mutex::new(Arc::default()) })
    }

    /// Copies the conversation, so that both can continue separately.
    fn fork(&self, py: Python<'_>) -> Self {
        let state = Mutex::new(self.current(py));
        Self { source: self.source.clone_ref(py), request: self.request.clone(), state }
    }

    fn update_text<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<(usize, Bound<'py, PyList>)> {
        let py = text.py();
        let utf8 = text::read(text)?.utf8().or_raise(py)?;
        with_engine!(&self.source, engine => {
            self.update(py, engine, utf8.len(), |engine, state| {
                state.update_text(engine, &utf8, &self.request)
            })
        })
    }

    fn update_segments<'py>(
        &self,
        segments: &Bound<'py, PyAny>,
    ) -> PyResult<(usize, Bound<'py, PyList>)> {
        with_engine!(&self.source, engine => {
            let prompt = read(engine, segments, true)?;
            self.update(segments.py(), engine, prompt.size(), |engine, state| {
                state.update_prompt(engine, prompt)
            })
        })
    }

    /// All ids.
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        int_cache::list(py, self.current(py).ids())
    }

    /// All ids, as a buffer for numpy.
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

/// The ids of a text that no following text can change, and the number of characters they cover.
#[pyfunction]
pub fn stable_prefix<'py>(
    source: &Bound<'py, PyAny>,
    text: &Bound<'py, PyAny>,
    allowed_special: &Bound<'py, PyAny>,
    disallowed_special: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyList>, usize)> {
    let py = text.py();
    let mut source = Source::read(source)?;
    let request = source.request(allowed_special, disallowed_special)?;
    let original = text::read(text)?.utf8().or_raise(py)?;
    let (ids, bytes) = with_engine!(&source, engine => {
        run_on(engine, py, original.len(), |engine| {
            conversation::stable_prefix(engine, &original, &request)
        })
    })?;
    let (_, characters) = text::CharacterSpans::new(&original).next(0..bytes);
    Ok((int_cache::list(py, &ids)?, characters))
}
