//! The class `StreamPool`: decodes the ids of many requests, one call per step of a model.

use std::sync::{Arc, Mutex, PoisonError};

use bpe_core::memory::{prefetch, reserve};
use bpe_core::stops::Stops;
use bpe_core::stream_pool::{self, Found, Options, StreamPool, Text};
use bpe_core::token_table::TokenTable;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyList, PyString};

use crate::errors::OrRaise;
use crate::objects::{collected, iterate, new_list, new_str, push};
use crate::pipeline::PyPipeline;
use crate::{ids, text};

/// Prefetch distance in ids.
const AHEAD: usize = 16;

/// Decodes the ids of many requests as they arrive.
///
/// A stream emits only complete characters. Its concatenated texts equal the result of ``decode``
/// for all its ids: bytes that are not UTF-8 become U+FFFD; ids without a token are skipped by a
/// tokenizer file and refused by an encoding. Any number of threads can use a pool. A pool keeps
/// the ``str`` of each token that it has emitted; each stream needs memory for its stop strings and
/// for the text that it holds back.
// The lock is held only while no Python code runs: no thread waits for another thread while holding
// it, and no process forks meanwhile.
#[pyclass(frozen, name = "StreamPool", module = "bpe_engine._core")]
pub struct PyStreamPool(Mutex<Streams>);

struct Streams {
    table: Arc<TokenTable>,
    pool: StreamPool,
    /// The `str` of each token that a step emitted alone. Creating a `str` takes longer than all
    /// other work.
    texts: Vec<Option<Py<PyString>>>,
}

/// The stop string that ended a stream.
#[pyclass(frozen, eq, name = "StreamStop", module = "bpe_engine._core")]
#[derive(PartialEq)]
pub struct StreamStop {
    /// Index of the stop string in the list given to `StreamPool.open`. If several end at the same
    /// character, the longest.
    #[pyo3(get)]
    stop_index: usize,
    /// Index of the id that completed the stop string; the first id of the stream has index 0.
    #[pyo3(get)]
    id_index: usize,
}

#[pymethods]
impl StreamStop {
    fn __repr__(&self) -> String {
        format!("StreamStop(stop_index={}, id_index={})", self.stop_index, self.id_index)
    }
}

#[pymethods]
impl PyStreamPool {
    #[new]
    fn new(source: &Bound<'_, PyPipeline>) -> PyResult<Self> {
        let pipeline = PyPipeline::current(source)?;
        let tables = pipeline.stream_tables().or_raise()?;
        let table = tables.after.clone();
        let pool = StreamPool::new(tables);
        Ok(Self(Mutex::new(Streams { table, pool, texts: Vec::new() })))
    }

    /// Opens a stream.
    ///
    /// Args:
    ///     prompt_ids: The ids before the first id of the stream, a list or an array. Their text is
    ///         not emitted, except for a last character that the prompt begins and the stream
    ///         completes.
    ///     stop: Strings that end the stream, at most 65,536 bytes in total. The stream ends at the
    ///         first complete stop string; its text ends before the longest stop string that ends
    ///         at this point. Text that may still become a stop string is held back.
    ///     skip_special_tokens: Whether to drop special tokens.
    ///     min_chars: Minimum number of characters per step. Fewer characters wait for a later
    ///         step, or for the end.
    ///
    /// Returns:
    ///     The number of the stream, its slot. Numbers are never reused.
    ///
    /// Raises:
    ///     TypeError, OverflowError, KeyError: An id is invalid, as in ``decode``.
    ///     TypeError, ValueError: A stop string is not a str, is empty or has a lone surrogate, or
    ///         the strings are too long.
    #[pyo3(signature = (prompt_ids=None, *, stop=None, skip_special_tokens=false, min_chars=0))]
    fn open(
        &self,
        py: Python<'_>,
        prompt_ids: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        skip_special_tokens: bool,
        min_chars: usize,
    ) -> PyResult<u32> {
        let prompt = prompt_ids.map_or(Ok(Vec::new()), ids::read)?;
        let stops = stop.map_or(Ok(None), read_stops)?.map(Box::new);
        let options = Options { stops, skips_special: skip_special_tokens, min_chars };
        self.with(py, |streams| streams.pool.open(&prompt, options)).or_raise()
    }

    /// Feeds the next ids to streams: one call per step of a model.
    ///
    /// Args:
    ///     slots: The numbers of the streams, a list or an array.
    ///     ids: One id per stream, in a list or an array; or several ids per stream, in a list of
    ///         lists or arrays, or in a two-dimensional array.
    ///
    /// Returns:
    ///     For each stream, the text that has become final; and None, or the stop string that
    ///     ended the stream. A stream that has ended ignores further ids and returns its stop
    ///     string again.
    ///
    /// Raises:
    ///     KeyError: A stream is not open, or an id is unknown to an encoding. No id is consumed.
    ///     TypeError, OverflowError: As in ``decode``. No id is consumed.
    ///     ValueError: The numbers of ids and streams differ. No id is consumed.
    fn step<'py>(
        &self,
        py: Python<'py>,
        slots: &Bound<'py, PyAny>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let slots = ids::read(slots)?;
        let (ids, ends) = read_steps(ids, slots.len())?;
        let mut ended = Vec::new();
        let texts = self.with(py, |streams| -> PyResult<_> {
            streams.pool.check(&slots, &ids).or_raise()?;
            let (mut texts, mut start) = (Vec::new(), 0);
            for (index, (&slot, &end)) in slots.iter().zip(&ends).enumerate() {
                if let Some(&id) = ids.get(start + AHEAD) {
                    streams.prefetch(id);
                }
                let (text, found) = streams.step(py, slot, &ids[start..end])?;
                push(&mut texts, text)?;
                if let Some(found) = found {
                    push(&mut ended, (index, found))?;
                }
                start = end;
            }
            Ok(texts)
        })?;
        let none = py.None().into_bound(py);
        let finished = new_list(py, collected(slots.iter().map(|_| Ok(none.clone())))?)?;
        for (index, Found { stop, id }) in ended {
            finished.set_item(index, StreamStop { stop_index: stop, id_index: id })?;
        }
        Ok((new_list(py, texts)?, finished))
    }

    /// Closes a stream.
    ///
    /// Returns:
    ///     The remaining text: text held back, and U+FFFD for an incomplete character.
    ///
    /// Raises:
    ///     KeyError: The stream is not open.
    fn close<'py>(
        &self,
        py: Python<'py>,
        slot: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyString>> {
        let slot = ids::read_one(slot)?;
        new_str(py, &self.with(py, |streams| streams.pool.close(slot)).or_raise()?)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.with(py, |streams| streams.pool.len())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<StreamPool with {} open streams>", self.__len__(py))
    }
}

impl PyStreamPool {
    fn with<T>(&self, py: Python<'_>, work: impl FnOnce(&mut Streams) -> T) -> T {
        let mut streams = self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        work(&mut streams)
    }
}

impl Streams {
    /// Prefetches the `str` of a token for a later step, since these are scattered in memory.
    #[inline]
    fn prefetch(&self, id: u32) {
        if let Some(Some(text)) = self.texts.get(id as usize) {
            // SAFETY: the pool owns a reference to the object.
            prefetch(unsafe { &*text.as_ptr() });
        }
    }

    /// Feeds the next ids to a stream. Creating a `str` runs no Python code.
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        slot: u32,
        ids: &[u32],
    ) -> PyResult<(Bound<'py, PyString>, Option<Found>)> {
        let Self { table, pool, texts } = self;
        let give = |text: Text<'_>| {
            let id = match text {
                Text::Part(text) => return new_str(py, text),
                Text::Token(id) => id,
            };
            let place = id as usize;
            if let Some(Some(known)) = texts.get(place) {
                return Ok(known.bind(py).clone());
            }
            let made = PyString::from_bytes(py, table.get(id))?;
            if place >= texts.len() {
                reserve(texts, place + 1 - texts.len()).or_raise()?;
                texts.resize_with(place + 1, || None);
            }
            texts[place] = Some(made.clone().unbind());
            Ok(made)
        };
        let (text, found) = pool.step(slot, ids, give).or_raise()?;
        Ok((text?, found))
    }
}

/// Returns the range of bytes whose text does not depend on the bytes that follow. See
/// `bpe_core::stream_pool::whole_characters`.
#[pyfunction]
pub fn whole_characters(
    data: &[u8],
    is_from_prompt: bool,
    keeps_surrogates: bool,
) -> (usize, usize) {
    let whole = stream_pool::whole_characters(data, is_from_prompt, keeps_surrogates);
    (whole.start, whole.end)
}

fn read_stops(given: &Bound<'_, PyAny>) -> PyResult<Option<Stops>> {
    let wrong = |what: &Bound<'_, PyAny>| {
        let kind = what.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!("stop must be a list of str, not {kind}"))
    };
    if given.is_instance_of::<PyString>() {
        let repr = given.repr()?;
        return Err(PyTypeError::new_err(format!(
            "stop must be a list of str; for this one string pass [{repr}]"
        )));
    }
    let mut stops = Vec::new();
    for stop in iterate(given).map_err(|_| wrong(given))? {
        let stop = stop?;
        if !stop.is_instance_of::<PyString>() {
            return Err(wrong(&stop));
        }
        let text = text::read(&stop)?.utf8().or_raise()?;
        if text.has_lone_surrogates() {
            return Err(PyValueError::new_err(format!(
                "stop string {} has a lone surrogate, which no token makes: {}",
                stops.len(),
                stop.repr()?
            )));
        }
        push(&mut stops, text.to_string())?;
    }
    Stops::new(&stops).or_raise()
}

/// Reads the ids of a step, one per slot or a sequence per slot. Returns all ids, and the end of
/// each slot's ids.
fn read_steps(given: &Bound<'_, PyAny>, slots: usize) -> PyResult<(Vec<u32>, Vec<usize>)> {
    let is_flat = match given.getattr_opt("ndim")? {
        Some(dimensions) => dimensions.extract::<usize>()? == 1,
        None => slots == 0 || given.get_item(0).is_ok_and(|first| ids::read_one(&first).is_ok()),
    };
    let (mut all, mut ends) = (Vec::new(), Vec::new());
    if is_flat {
        all = ids::read(given)?;
        ends = collected((1..=all.len()).map(Ok))?;
    } else {
        for row in iterate(given)? {
            for id in ids::read(&row?)? {
                push(&mut all, id)?;
            }
            push(&mut ends, all.len())?;
        }
    }
    if ends.len() != slots {
        return Err(PyValueError::new_err(format!(
            "there are {slots} slots, but ids for {}; pass one id, or one list of ids, for each slot",
            ends.len()
        )));
    }
    Ok((all, ends))
}
