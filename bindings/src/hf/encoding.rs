//! The class `Encoding` of `bpe_engine.hf`, the result of encoding one input.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bpe_core::components::Encoding;
use bpe_core::components::encoding::TokenFields;
use bpe_core::components::run_length::Runs;
use bpe_core::components::spec::Direction;
use pyo3::exceptions::{PyDeprecationWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::lazy::{Current, LazyEncoding};
use crate::errors::OrRaise;
use crate::interned::interned;
use crate::objects::{
    collected, iterate, list_of_spans, new_int, new_list, new_optional_int, new_strs, new_tuple,
};
use crate::{buffer_pool, int_cache};

/// The ids of one or two texts, with their fields.
///
/// Tokens, offsets, words and overflow are computed on first use.
// Creating Python objects can run arbitrary code and other threads, so the lock is never held
// meanwhile.
#[pyclass(frozen, name = "HfEncoding", module = "bpe_engine._core")]
pub struct HfEncoding {
    state: LazyEncoding,
    /// Replaces `state` once `is_changed` is set.
    changed: Mutex<Option<Arc<Encoding>>>,
    is_changed: AtomicBool,
}

impl HfEncoding {
    #[inline]
    pub fn new(state: LazyEncoding) -> Self {
        Self { state, changed: Mutex::new(None), is_changed: AtomicBool::new(false) }
    }

    /// Wraps an encoding that has all fields.
    pub fn complete(encoding: Encoding) -> Self {
        Self::new(LazyEncoding::Complete(Box::new(encoding)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Encoding>>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) -> Option<Current<'_>> {
        let is_changed = self.is_changed.load(Ordering::Acquire);
        is_changed.then(|| self.lock().clone().map(Current::Changed)).flatten()
    }

    /// Returns the ids, if the encoding is unchanged.
    #[inline]
    fn unchanged(&self) -> Option<&[u32]> {
        (!self.is_changed.load(Ordering::Acquire)).then(|| self.state.ids())
    }

    /// Lists the value of each token; `plain` is the value for [`LazyEncoding::Ids`].
    fn values<'py, T: Copy + Default + PartialEq + Into<u32>>(
        &self,
        py: Python<'py>,
        plain: u32,
        runs: impl FnOnce(&Encoding) -> &Runs<T>,
    ) -> PyResult<Bound<'py, PyList>> {
        if let (LazyEncoding::Ids { is_plain: true, .. }, Some(ids)) =
            (&self.state, self.unchanged())
        {
            return int_cache::repeated(py, ids.len(), std::iter::once((plain, ids.len())));
        }
        let encoding = self.encoding()?;
        let runs = runs(&encoding);
        int_cache::repeated(py, runs.len(), runs.runs().map(|(value, times)| (value.into(), times)))
    }

    /// Returns the encoding; token fields and overflow may be missing.
    fn encoding(&self) -> PyResult<Current<'_>> {
        match self.changed() {
            Some(changed) => Ok(changed),
            None => Ok(Current::Made(self.state.encoding()?)),
        }
    }

    /// Returns the encoding with its token fields; overflow may be missing.
    fn detailed(&self, py: Python<'_>) -> PyResult<Current<'_>> {
        match self.changed() {
            Some(changed) => Ok(changed),
            None => Ok(Current::Made(self.state.detailed(py, false)?)),
        }
    }

    /// Returns the encoding with all fields.
    fn whole(&self, py: Python<'_>) -> PyResult<Current<'_>> {
        match self.changed() {
            Some(changed) => Ok(changed),
            None => Ok(Current::Made(self.state.detailed(py, true)?)),
        }
    }

    /// Changes the encoding, after computing all its fields.
    fn change(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Encoding) -> bpe_core::Result<()>,
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

/// Returns a list of encodings.
pub fn list_of_encodings(
    py: Python<'_>,
    encodings: impl Iterator<Item = HfEncoding>,
) -> PyResult<Bound<'_, PyList>> {
    new_list(py, collected(encodings.map(|encoding| Bound::new(py, encoding)))?)
}

impl Drop for HfEncoding {
    fn drop(&mut self) {
        buffer_pool::IDS.give(self.state.take_ids());
    }
}

/// Reads `"left"` or `"right"`.
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
    /// The token ids.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        match self.unchanged() {
            Some(ids) => int_cache::list(py, ids),
            None => int_cache::list(py, &self.encoding()?.ids),
        }
    }

    /// The type id of each token, as the model expects it.
    #[getter]
    fn type_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.values(py, 0, |encoding| &encoding.type_ids)
    }

    /// 1 for tokens, 0 for padding.
    #[getter]
    fn attention_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.values(py, 1, |encoding| &encoding.attention_mask)
    }

    /// 1 for special tokens, which have no text.
    #[getter]
    fn special_tokens_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.values(py, 0, |encoding| &encoding.special_tokens_mask)
    }

    /// The tokens as text.
    #[getter]
    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let state = self.detailed(py)?;
        new_strs(py, state.token_fields().tokens.iter())
    }

    /// The start and end of each token in its text, in characters.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list_of_spans(py, self.detailed(py)?.token_fields().offsets.iter().copied())
    }

    /// The index of each token's word.
    #[getter]
    fn word_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let state = self.detailed(py)?;
        let words = state.token_fields().words.iter();
        let numbers = words.map(|word| new_optional_int(py, word.map(|word| word as usize)));
        new_list(py, collected(numbers)?)
    }

    /// Alias of `word_ids`, with a warning, as in `tokenizers`.
    #[getter]
    fn words<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let category = py.get_type::<PyDeprecationWarning>();
        PyErr::warn(py, &category, c"Encoding.words is deprecated, use Encoding.word_ids", 1)?;
        self.word_ids(py)
    }

    /// The class for `isinstance`: the class of the same name in `tokenizers`, if imported.
    #[getter(__class__)]
    fn shown_class<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let modules = py.import(interned!(py, "sys"))?.getattr(interned!(py, "modules"))?;
        let module = modules.cast_into::<PyDict>()?.get_item(interned!(py, "tokenizers"))?;
        let found = module.map(|module| module.getattr_opt(interned!(py, "Encoding")));
        Ok(found.transpose()?.flatten().unwrap_or_else(|| slf.get_type().into_any()))
    }

    /// The index of each token's sequence.
    #[getter]
    fn sequence_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let numbers = self.encoding()?.sequence_ids().or_raise()?.into_iter();
        new_list(py, collected(numbers.map(|number| new_optional_int(py, number)))?)
    }

    /// The number of sequences.
    #[getter]
    fn n_sequences(&self) -> PyResult<usize> {
        Ok(self.encoding()?.n_sequences())
    }

    /// The parts that truncation cut off.
    #[getter]
    fn overflowing<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let parts = match self.changed() {
            Some(changed) => LazyEncoding::complete_parts(&changed)?,
            None => self.state.overflow(py)?,
        };
        list_of_encodings(py, parts.into_iter().map(Self::new))
    }

    fn __len__(&self) -> PyResult<usize> {
        self.unchanged().map_or_else(|| Ok(self.encoding()?.len()), |ids| Ok(ids.len()))
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!(
            "Encoding(num_tokens={}, attributes=[ids, type_ids, tokens, offsets, attention_mask, \
             special_tokens_mask, overflowing])",
            self.__len__()?
        ))
    }

    /// Returns the index of a token's sequence.
    fn token_to_sequence(&self, token_index: usize) -> PyResult<Option<usize>> {
        Ok(self.encoding()?.token_to_sequence(token_index))
    }

    /// Returns the start and end of a token in its sequence, in characters.
    fn token_to_chars(
        &self,
        py: Python<'_>,
        token_index: usize,
    ) -> PyResult<Option<(usize, usize)>> {
        let state = self.detailed(py)?;
        let is_token = state.token_to_sequence(token_index).is_some();
        Ok(state.token_fields().offsets.get(token_index).copied().filter(|_| is_token))
    }

    /// Returns the index of a token's word.
    fn token_to_word(&self, py: Python<'_>, token_index: usize) -> PyResult<Option<u32>> {
        let state = self.detailed(py)?;
        Ok(token_to_word(&state, token_index))
    }

    /// Returns the index of the token that contains a character of a sequence.
    #[pyo3(signature = (char_pos, sequence_index=0))]
    fn char_to_token(
        &self,
        py: Python<'_>,
        char_pos: usize,
        sequence_index: usize,
    ) -> PyResult<Option<usize>> {
        let state = self.detailed(py)?;
        Ok(char_to_token(&state, char_pos, sequence_index))
    }

    /// Returns the index of the word that contains a character of a sequence.
    #[pyo3(signature = (char_pos, sequence_index=0))]
    fn char_to_word(
        &self,
        py: Python<'_>,
        char_pos: usize,
        sequence_index: usize,
    ) -> PyResult<Option<u32>> {
        let state = self.detailed(py)?;
        let token = char_to_token(&state, char_pos, sequence_index);
        Ok(token.and_then(|token| token_to_word(&state, token)))
    }

    /// Returns the start and end of a word's range of tokens.
    #[pyo3(signature = (word_index, sequence_index=0))]
    fn word_to_tokens(
        &self,
        py: Python<'_>,
        word_index: u32,
        sequence_index: usize,
    ) -> PyResult<Option<(usize, usize)>> {
        let state = self.detailed(py)?;
        Ok(word_to_tokens(&state, word_index, sequence_index))
    }

    /// Returns the start and end of a word in its sequence, in characters.
    #[pyo3(signature = (word_index, sequence_index=0))]
    fn word_to_chars(
        &self,
        py: Python<'_>,
        word_index: u32,
        sequence_index: usize,
    ) -> PyResult<Option<(usize, usize)>> {
        let state = self.detailed(py)?;
        let offsets = &state.token_fields().offsets;
        let tokens = word_to_tokens(&state, word_index, sequence_index);
        Ok(tokens.map(|(start, end)| (offsets[start].0, offsets[end - 1].1)))
    }

    /// Assigns all tokens to a sequence, given by index.
    fn set_sequence_id(&self, py: Python<'_>, sequence_id: usize) -> PyResult<()> {
        self.change(py, |encoding| {
            encoding.set_sequence_id(sequence_id);
            Ok(())
        })
    }

    /// Pads to `length` tokens.
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

    /// Truncates to at most `max_length` tokens; the rest becomes overflow.
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

    /// Concatenates encodings.
    #[staticmethod]
    #[pyo3(signature = (encodings, growing_offsets=true))]
    fn merge(
        py: Python<'_>,
        encodings: &Bound<'_, PyAny>,
        growing_offsets: bool,
    ) -> PyResult<Self> {
        let parts = iterate(encodings)?.map(|it| it?.cast_into::<HfEncoding>()?.get().to_core(py));
        let merged = Encoding::merge(collected(parts)?, growing_offsets).or_raise()?;
        Ok(Self::complete(merged))
    }

    /// Returns all fields, for pickling.
    fn _state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let masks = [self.special_tokens_mask(py)?, self.attention_mask(py)?].map(Bound::into_any);
        let masks = new_tuple(py, masks)?.into_any();
        let ids = [self.ids(py)?.into_any(), self.type_ids(py)?.into_any(), masks];
        let token_fields =
            [self.tokens(py)?, self.offsets(py)?, self.word_ids(py)?].map(Bound::into_any);
        let state = self.whole(py)?;
        let ranges = state.sequence_ranges.iter().map(|(sequence, range)| {
            let numbers = [*sequence, range.start, range.end].map(|number| new_int(py, number));
            let [sequence, start, end] = numbers;
            new_tuple(py, [sequence?, start?, end?])
        });
        let ranges = new_list(py, collected(ranges)?)?.into_any();
        let parts = Encoding::try_clone_all(&state.overflowing).or_raise()?;
        let parts = list_of_encodings(py, parts.into_iter().map(Self::complete))?.into_any();
        let rest = new_tuple(py, [parts, ranges])?;
        let state = [new_tuple(py, ids)?, new_tuple(py, token_fields)?, rest];
        new_tuple(py, state.map(Bound::into_any))
    }

    /// Restores an encoding from the result of `_state`.
    #[staticmethod]
    #[allow(clippy::type_complexity)]
    fn _from_state(
        py: Python<'_>,
        ids: (Vec<u32>, Vec<u32>, (Vec<u8>, Vec<u8>)),
        token_fields: (Vec<String>, Vec<(usize, usize)>, Vec<Option<u32>>),
        rest: (Vec<Bound<'_, HfEncoding>>, Vec<(usize, usize, usize)>),
    ) -> PyResult<Self> {
        let (ids, type_ids, (special_tokens_mask, attention_mask)) = ids;
        let (tokens, offsets, words) = token_fields;
        let lengths = [
            type_ids.len(),
            special_tokens_mask.len(),
            attention_mask.len(),
            tokens.len(),
            offsets.len(),
            words.len(),
        ];
        if lengths.iter().any(|&length| length != ids.len()) {
            return Err(PyValueError::new_err("the parts of an Encoding must have one length"));
        }
        if rest.1.iter().any(|&(_, start, end)| start > end || end > ids.len()) {
            return Err(PyValueError::new_err(
                "a sequence of an Encoding must be a range of its tokens",
            ));
        }
        let overflowing = rest.0.iter().map(|part| part.get().to_core(py));
        let ranges = rest.1.into_iter().map(|(sequence, start, end)| (sequence, start..end));
        Ok(Self::complete(Encoding {
            ids,
            type_ids: type_ids.into_iter().collect(),
            special_tokens_mask: special_tokens_mask.into_iter().collect(),
            attention_mask: attention_mask.into_iter().collect(),
            token_fields: Some(Box::new(TokenFields { tokens, offsets, words })),
            overflowing: overflowing.collect::<PyResult<_>>()?,
            sequence_ranges: ranges.collect(),
        }))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let maker = slf.get_type().getattr("_from_state")?;
        new_tuple(slf.py(), [maker, slf.get()._state(slf.py())?.into_any()])
    }
}

fn token_to_word(state: &Current<'_>, token: usize) -> Option<u32> {
    state.token_to_sequence(token)?;
    state.token_fields().words.get(token).copied().flatten()
}

fn char_to_token(state: &Current<'_>, character: usize, sequence: usize) -> Option<usize> {
    let range = state.sequence_range(sequence);
    let offsets = state.token_fields().offsets.get(range.clone())?;
    let found = offsets.iter().position(|&(start, end)| (start..end).contains(&character))?;
    Some(range.start + found)
}

fn word_to_tokens(state: &Current<'_>, word: u32, sequence: usize) -> Option<(usize, usize)> {
    let range = state.sequence_range(sequence);
    let words = state.token_fields().words.get(range.clone())?;
    let reached = words.iter().take_while(|&&other| other <= Some(word));
    let mut found = reached.enumerate().filter(|&(_, &other)| other == Some(word));
    let first = found.next()?.0;
    let last = found.last().map_or(first, |(index, _)| index);
    Some((range.start + first, range.start + last + 1))
}
