//! The class `Encoding` of `bpe_engine.hf`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bpe_core::once::LockFreeOnce;
use bpe_hf::encoding::Details;
use bpe_hf::runs::Runs;
use bpe_hf::spec::Direction;
use bpe_hf::{Encoded, Encoding};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::OrRaise;
use super::state::{Current, Origin, Source, walks_differ};
use crate::objects::{collected, list_of_spans, new_list, new_str};
use crate::{buffer_pool, int_cache};

/// The ids of a text, or of two, and what goes with each.
///
/// Tokens, offsets, words and overflow are made when they are first asked for.
// Making Python objects can run any code, of other threads as well: the lock is never held
// meanwhile.
#[pyclass(frozen, name = "HfEncoding", module = "bpe_engine._core")]
pub struct HfEncoding {
    /// Of plain ids (see [`Encoded`]), mostly all that is ever asked for. Empty otherwise.
    ids: Vec<u32>,
    /// As it was made; of plain ids once more than these is asked for.
    first: LockFreeOnce<Encoding>,
    /// There if that has no details.
    source: Option<Source>,
    /// What an input shares with its overflow, once that was asked for.
    origin: LockFreeOnce<Arc<Origin>>,
    /// An input with its details, but without its overflow.
    detailed: LockFreeOnce<Encoding>,
    /// Whether the ids of that were found to be the same.
    is_checked: AtomicBool,
    /// What counts once `is_changed` is set.
    changed: Mutex<Option<Arc<Encoding>>>,
    is_changed: AtomicBool,
}

impl HfEncoding {
    /// What was made of an input.
    #[inline]
    pub fn of_input(encoded: Encoded, origin: Origin) -> Self {
        match encoded {
            Encoded::Plain(ids) => {
                Self::with(ids, LockFreeOnce::new(), Some(Source::Input(origin)))
            }
            Encoded::Whole(first, whole) => {
                Self::new(first, Source::Input(origin.with_overflow(whole)))
            }
        }
    }

    fn new(first: Box<Encoding>, source: Source) -> Self {
        let source = first.details.is_none().then_some(source);
        Self::with(Vec::new(), LockFreeOnce::with(first), source)
    }

    pub fn detailed(encoding: Encoding) -> Self {
        Self::with(Vec::new(), LockFreeOnce::with(Box::new(encoding)), None)
    }

    #[inline]
    fn with(ids: Vec<u32>, first: LockFreeOnce<Encoding>, source: Option<Source>) -> Self {
        Self {
            ids,
            first,
            source,
            origin: LockFreeOnce::new(),
            detailed: LockFreeOnce::new(),
            is_checked: AtomicBool::new(false),
            changed: Mutex::new(None),
            is_changed: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Encoding>>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) -> Option<Current<'_>> {
        let is_changed = self.is_changed.load(Ordering::Acquire);
        is_changed.then(|| self.lock().clone().map(Current::Changed)).flatten()
    }

    /// The ids, while they are plain and nothing else was asked for.
    #[inline]
    fn plain(&self) -> Option<&[u32]> {
        let is_plain = self.first.get().is_none() && !self.is_changed.load(Ordering::Acquire);
        is_plain.then_some(&self.ids)
    }

    /// As it was made.
    fn first(&self) -> PyResult<&Encoding> {
        self.first.get_or_try_init(|| match &self.source {
            Some(Source::Input(own)) => own.plain(&self.ids),
            // Only inputs are plain.
            _ => Err(walks_differ()),
        })
    }

    /// The value of each token; `plain` for those of plain ids.
    fn values<'py, T: Copy + Default + PartialEq + Into<u32>>(
        &self,
        py: Python<'py>,
        plain: u32,
        runs: impl FnOnce(&Encoding) -> &Runs<T>,
    ) -> PyResult<Bound<'py, PyList>> {
        if let Some(ids) = self.plain() {
            return int_cache::repeated(py, ids.len(), std::iter::once((plain, ids.len())));
        }
        let state = self.state()?;
        let runs = runs(&state);
        int_cache::repeated(py, runs.len(), runs.runs().map(|(value, times)| (value.into(), times)))
    }

    fn state(&self) -> PyResult<Current<'_>> {
        match self.changed() {
            Some(changed) => Ok(changed),
            None => Ok(Current::Made(self.first()?)),
        }
    }

    /// The encoding with its details; its overflow may be missing.
    fn with_details(&self, py: Python<'_>) -> PyResult<Current<'_>> {
        if let Some(changed) = self.changed() {
            return Ok(changed);
        }
        let made = match (&self.source, self.origin.get()) {
            (None, _) => self.first()?,
            (Some(Source::Input(own)), None) => {
                self.detailed.get_or_try_init(|| own.with_details(py))?
            }
            (Some(Source::Input(_)), Some(origin)) => match self.detailed.get() {
                Some(detailed) => detailed,
                None => origin.whole_with_details(py, &[])?,
            },
            (Some(Source::Part(origin, path)), _) => origin.whole_with_details(py, path)?,
        };
        if !self.is_checked.load(Ordering::Relaxed) {
            let ids = self.plain().map_or_else(|| self.first().map(|first| &first.ids[..]), Ok)?;
            if made.ids != ids {
                return Err(walks_differ());
            }
            self.is_checked.store(true, Ordering::Relaxed);
        }
        Ok(Current::Made(made))
    }

    /// The encoding with its details and its overflow.
    fn whole(&self, py: Python<'_>) -> PyResult<Current<'_>> {
        match &self.source {
            Some(Source::Input(own)) if own.has_overflow() && self.changed().is_none() => {
                Ok(Current::Made(self.origin(py, own)?.whole_with_details(py, &[])?))
            }
            _ => self.with_details(py),
        }
    }

    fn origin(&self, py: Python<'_>, own: &Origin) -> PyResult<&Arc<Origin>> {
        self.origin.get_or_try_init(|| own.clone_ref(py).map(Arc::new))
    }

    /// Changes the encoding, all of which is there then.
    fn change(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Encoding) -> bpe_hf::Result<()>,
    ) -> PyResult<()> {
        let whole = self.whole(py)?;
        let mut place = self.lock();
        let mut encoding = place.as_deref().unwrap_or(&whole).try_clone().or_raise()?;
        let result = work(&mut encoding);
        *place = Some(Arc::new(encoding));
        self.is_changed.store(true, Ordering::Release);
        result.or_raise()
    }

    pub fn to_core(&self, py: Python<'_>) -> PyResult<Encoding> {
        self.whole(py)?.try_clone().or_raise()
    }
}

impl Drop for HfEncoding {
    fn drop(&mut self) {
        let ids = self.first.get_mut().map_or(&mut self.ids, |first| &mut first.ids);
        buffer_pool::IDS.give(std::mem::take(ids));
    }
}

/// `"left"` or `"right"`.
pub fn direction(name: &str) -> PyResult<Direction> {
    match name {
        "left" => Ok(Direction::Left),
        "right" => Ok(Direction::Right),
        _ => Err(PyValueError::new_err(format!(
            "Unknown `direction`: `{name}`. Use one of `left` or `right`"
        ))),
    }
}

#[pymethods]
impl HfEncoding {
    /// The ids.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        match self.plain() {
            Some(ids) => int_cache::list(py, ids),
            None => int_cache::list(py, &self.state()?.ids),
        }
    }

    /// The sequence that each token counts as, as the model wants it.
    #[getter]
    fn type_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.values(py, 0, |encoding| &encoding.type_ids)
    }

    /// 1 for tokens, 0 for padding.
    #[getter]
    fn attention_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.values(py, 1, |encoding| &encoding.attention_mask)
    }

    /// 1 for tokens that stand for no text.
    #[getter]
    fn special_tokens_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.values(py, 0, |encoding| &encoding.special_tokens_mask)
    }

    /// The tokens as text.
    #[getter]
    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let state = self.with_details(py)?;
        let tokens = state.details().tokens.iter();
        new_list(py, collected(py, tokens.map(|token| new_str(py, token)))?)
    }

    /// Where in the text each token stands, in characters.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list_of_spans(py, self.with_details(py)?.details().offsets.iter().copied())
    }

    /// The piece of the text that each token is of.
    #[getter]
    fn word_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.with_details(py)?.details().words)
    }

    /// The same as `word_ids`.
    #[getter]
    fn words<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.word_ids(py)
    }

    /// The sequence that each token is of.
    #[getter]
    fn sequence_ids(&self) -> PyResult<Vec<Option<usize>>> {
        self.state()?.sequence_ids().or_raise()
    }

    /// How many sequences there are.
    #[getter]
    fn n_sequences(&self) -> PyResult<usize> {
        Ok(self.state()?.n_sequences())
    }

    /// What truncation cut off.
    #[getter]
    fn overflowing(&self, py: Python<'_>) -> PyResult<Vec<HfEncoding>> {
        let source = self.source.as_ref().filter(|_| self.changed().is_none());
        let (origin, path, parts) = match source {
            None => {
                let parts = Encoding::try_clone_all(&self.state()?.overflowing).or_raise()?;
                return Ok(parts.into_iter().map(Self::detailed).collect());
            }
            Some(Source::Input(own)) if !own.has_overflow() => return Ok(Vec::new()),
            Some(Source::Input(own)) => (self.origin(py, own)?, &[][..], own.overflow(py)?),
            Some(Source::Part(origin, path)) => {
                let parts = Encoding::try_clone_all(&self.first()?.overflowing).or_raise()?;
                (origin, &path[..], parts)
            }
        };
        let part = |(index, encoding): (usize, Encoding)| {
            Self::new(Box::new(encoding), Source::Part(origin.clone(), [path, &[index]].concat()))
        };
        Ok(parts.into_iter().enumerate().map(part).collect())
    }

    fn __len__(&self) -> PyResult<usize> {
        self.plain().map_or_else(|| Ok(self.state()?.len()), |ids| Ok(ids.len()))
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!(
            "Encoding(num_tokens={}, attributes=[ids, type_ids, tokens, offsets, attention_mask, \
             special_tokens_mask, overflowing])",
            self.__len__()?
        ))
    }

    /// The sequence that a token is of.
    fn token_to_sequence(&self, token_index: usize) -> PyResult<Option<usize>> {
        Ok(self.state()?.token_to_sequence(token_index))
    }

    /// Where in its sequence a token stands.
    fn token_to_chars(
        &self,
        py: Python<'_>,
        token_index: usize,
    ) -> PyResult<Option<(usize, usize)>> {
        let state = self.with_details(py)?;
        let is_token = state.token_to_sequence(token_index).is_some();
        Ok(state.details().offsets.get(token_index).copied().filter(|_| is_token))
    }

    /// The word that a token is of.
    fn token_to_word(&self, py: Python<'_>, token_index: usize) -> PyResult<Option<u32>> {
        let state = self.with_details(py)?;
        Ok(token_to_word(&state, token_index))
    }

    /// The token that holds a character of a sequence.
    #[pyo3(signature = (char_pos, sequence_index=0))]
    fn char_to_token(
        &self,
        py: Python<'_>,
        char_pos: usize,
        sequence_index: usize,
    ) -> PyResult<Option<usize>> {
        let state = self.with_details(py)?;
        Ok(char_to_token(&state, char_pos, sequence_index))
    }

    /// The word that holds a character of a sequence.
    #[pyo3(signature = (char_pos, sequence_index=0))]
    fn char_to_word(
        &self,
        py: Python<'_>,
        char_pos: usize,
        sequence_index: usize,
    ) -> PyResult<Option<u32>> {
        let state = self.with_details(py)?;
        let token = char_to_token(&state, char_pos, sequence_index);
        Ok(token.and_then(|token| token_to_word(&state, token)))
    }

    /// The tokens of a word of a sequence, as the first and the one after the last.
    #[pyo3(signature = (word_index, sequence_index=0))]
    fn word_to_tokens(
        &self,
        py: Python<'_>,
        word_index: u32,
        sequence_index: usize,
    ) -> PyResult<Option<(usize, usize)>> {
        let state = self.with_details(py)?;
        Ok(word_to_tokens(&state, word_index, sequence_index))
    }

    /// Where in its sequence a word stands.
    #[pyo3(signature = (word_index, sequence_index=0))]
    fn word_to_chars(
        &self,
        py: Python<'_>,
        word_index: u32,
        sequence_index: usize,
    ) -> PyResult<Option<(usize, usize)>> {
        let state = self.with_details(py)?;
        let offsets = &state.details().offsets;
        let tokens = word_to_tokens(&state, word_index, sequence_index);
        Ok(tokens.map(|(start, end)| (offsets[start].0, offsets[end - 1].1)))
    }

    /// Says that all tokens are of this sequence.
    fn set_sequence_id(&self, py: Python<'_>, sequence_id: usize) -> PyResult<()> {
        self.change(py, |encoding| {
            encoding.set_sequence_id(sequence_id);
            Ok(())
        })
    }

    /// Fills up to `length` tokens.
    #[pyo3(signature = (length, direction="right", pad_id=0, pad_type_id=0, pad_token="[PAD]"))]
    fn pad(
        &self,
        py: Python<'_>,
        length: usize,
        direction: &str,
        pad_id: u32,
        pad_type_id: u32,
        pad_token: &str,
    ) -> PyResult<()> {
        let direction = self::direction(direction)?;
        self.change(py, |encoding| encoding.pad(length, pad_id, pad_type_id, pad_token, direction))
    }

    /// Keeps at most `max_length` tokens; what is cut off becomes overflow.
    #[pyo3(signature = (max_length, stride=0, direction="right"))]
    fn truncate(
        &self,
        py: Python<'_>,
        max_length: usize,
        stride: usize,
        direction: &str,
    ) -> PyResult<()> {
        let direction = self::direction(direction)?;
        self.change(py, |encoding| encoding.truncate(max_length, stride, direction, true))
    }

    /// One encoding of several, in order.
    #[staticmethod]
    #[pyo3(signature = (encodings, growing_offsets=true))]
    fn merge(
        py: Python<'_>,
        encodings: Vec<Bound<'_, HfEncoding>>,
        growing_offsets: bool,
    ) -> PyResult<Self> {
        let parts = encodings.iter().map(|encoding| encoding.get().to_core(py));
        let merged =
            Encoding::merge(parts.collect::<PyResult<_>>()?, growing_offsets).or_raise()?;
        Ok(Self::detailed(merged))
    }

    /// Everything that makes it, for pickling.
    fn _state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let state = self.whole(py)?;
        let (encoding, details) = (&*state, state.details());
        let ranges: Vec<(usize, usize, usize)> = encoding
            .sequence_ranges
            .iter()
            .map(|(sequence, range)| (*sequence, range.start, range.end))
            .collect();
        let parts: Vec<HfEncoding> =
            encoding.overflowing.iter().cloned().map(Self::detailed).collect();
        let mask = |runs: &Runs<u8>| runs.iter().collect::<Vec<u8>>();
        let masks = (mask(&encoding.special_tokens_mask), mask(&encoding.attention_mask));
        let type_ids: Vec<u32> = encoding.type_ids.iter().collect();
        let state = (
            (&encoding.ids, type_ids, masks),
            (&details.tokens, &details.offsets, &details.words),
            (parts, ranges),
        );
        Ok(state.into_pyobject(py)?.into_any().unbind())
    }

    /// Out of what [`_state`] gives.
    #[staticmethod]
    #[allow(clippy::type_complexity)]
    fn _from_state(
        py: Python<'_>,
        ids: (Vec<u32>, Vec<u32>, (Vec<u8>, Vec<u8>)),
        details: (Vec<String>, Vec<(usize, usize)>, Vec<Option<u32>>),
        rest: (Vec<Bound<'_, HfEncoding>>, Vec<(usize, usize, usize)>),
    ) -> PyResult<Self> {
        let (ids, type_ids, (special_tokens_mask, attention_mask)) = ids;
        let (tokens, offsets, words) = details;
        let lengths = [
            type_ids.len(),
            special_tokens_mask.len(),
            attention_mask.len(),
            tokens.len(),
            offsets.len(),
            words.len(),
        ];
        if lengths.iter().any(|&length| length != ids.len()) {
            return Err(PyValueError::new_err("the parts of an Encoding must be of one length"));
        }
        if rest.1.iter().any(|&(_, start, end)| start > end || end > ids.len()) {
            return Err(PyValueError::new_err("a sequence of an Encoding must be tokens of it"));
        }
        let overflowing = rest.0.iter().map(|part| part.get().to_core(py));
        let ranges = rest.1.into_iter().map(|(sequence, start, end)| (sequence, start..end));
        Ok(Self::detailed(Encoding {
            ids,
            type_ids: type_ids.into_iter().collect(),
            special_tokens_mask: special_tokens_mask.into_iter().collect(),
            attention_mask: attention_mask.into_iter().collect(),
            details: Some(Box::new(Details { tokens, offsets, words })),
            overflowing: overflowing.collect::<PyResult<_>>()?,
            sequence_ranges: ranges.collect(),
        }))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Py<PyAny>)> {
        let maker = slf.get_type().getattr("_from_state")?;
        Ok((maker, slf.get()._state(slf.py())?))
    }
}

fn token_to_word(state: &Current<'_>, token: usize) -> Option<u32> {
    state.token_to_sequence(token)?;
    state.details().words.get(token).copied().flatten()
}

fn char_to_token(state: &Current<'_>, character: usize, sequence: usize) -> Option<usize> {
    let range = state.sequence_range(sequence);
    let offsets = state.details().offsets.get(range.clone())?;
    let found = offsets.iter().position(|&(start, end)| (start..end).contains(&character))?;
    Some(range.start + found)
}

fn word_to_tokens(state: &Current<'_>, word: u32, sequence: usize) -> Option<(usize, usize)> {
    let range = state.sequence_range(sequence);
    let words = state.details().words.get(range.clone())?;
    let reached = words.iter().take_while(|&&other| other <= Some(word));
    let mut found = reached.enumerate().filter(|&(_, &other)| other == Some(word));
    let first = found.next()?.0;
    let last = found.last().map_or(first, |(index, _)| index);
    Some((range.start + first, range.start + last + 1))
}
