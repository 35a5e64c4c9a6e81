//! Texts and words out of Python objects, with the errors of `tokenizers`.

use std::sync::Arc;

use bpe_core::memory::{push_text, reserve};
use bpe_hf::{Input, Sequence};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyIterator, PyList, PySet, PyString, PyTuple};

use crate::errors::OrRaise;
use crate::objects::collected;
use crate::text::{self, Utf8};

/// One sequence, as it was given.
pub enum Given {
    /// A text, which never changes.
    Text(Py<PyString>),
    /// Words out of a list, which may.
    Words(Arc<Vec<String>>),
}

impl Given {
    /// A text, or words.
    pub fn read(item: &Bound<'_, PyAny>, is_pretokenized: bool) -> PyResult<Self> {
        if is_pretokenized {
            return words(item).map(|words| Self::Words(words.into()));
        }
        let text = item.cast::<PyString>().map_err(|_| no_text())?;
        Ok(Self::Text(text.clone().unbind()))
    }

    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Text(text) => Self::Text(text.clone_ref(py)),
            Self::Words(words) => Self::Words(words.clone()),
        }
    }

    fn utf8<'a>(&'a self, py: Python<'a>) -> PyResult<ReadSequence<'a>> {
        Ok(match self {
            Self::Text(given) => ReadSequence::Text(utf8(given.bind(py))?),
            Self::Words(words) => ReadSequence::Words(words),
        })
    }
}

/// One input, as it was given: a sequence, or two.
pub struct GivenInput {
    pub first: Given,
    pub second: Option<Given>,
}

impl GivenInput {
    /// One input of a batch.
    pub fn read(item: &Bound<'_, PyAny>, is_pretokenized: bool) -> PyResult<Self> {
        if let Ok(first) = Given::read(item, is_pretokenized) {
            return Ok(Self { first, second: None });
        }
        let (first, second) = pair(item).ok_or_else(|| {
            let (kind, part) = if is_pretokenized {
                ("PreTokenizedEncodeInput", "PreTokenizedInputSequence")
            } else {
                ("TextEncodeInput", "TextInputSequence")
            };
            PyTypeError::new_err(format!(
                "{kind} must be Union[{part}, Tuple[InputSequence, InputSequence]]"
            ))
        })?;
        let second = Some(Given::read(&second, is_pretokenized)?);
        Ok(Self { first: Given::read(&first, is_pretokenized)?, second })
    }

    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        let second = self.second.as_ref().map(|second| second.clone_ref(py));
        Self { first: self.first.clone_ref(py), second }
    }

    /// The texts as UTF-8; a `TypeError` for one with surrogates, which are no characters.
    pub fn utf8<'a>(&'a self, py: Python<'a>) -> PyResult<ReadInput<'a>> {
        let second = self.second.as_ref().map(|second| second.utf8(py)).transpose()?;
        Ok(ReadInput { first: self.first.utf8(py)?, second })
    }
}

enum ReadSequence<'a> {
    Text(Utf8<'a>),
    Words(&'a [String]),
}

impl ReadSequence<'_> {
    fn sequence(&self) -> Sequence<'_> {
        match self {
            Self::Text(text) => Sequence::Text(text),
            Self::Words(words) => Sequence::Words(words),
        }
    }
}

/// An input whose texts can be read on any thread.
pub struct ReadInput<'a> {
    first: ReadSequence<'a>,
    second: Option<ReadSequence<'a>>,
}

impl ReadInput<'_> {
    pub fn input(&self) -> Input<'_> {
        let second = self.second.as_ref().map(ReadSequence::sequence);
        Input { first: self.first.sequence(), second }
    }
}

fn pair<'py>(item: &Bound<'py, PyAny>) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    if !item.is_instance_of::<PyTuple>() && !item.is_instance_of::<PyList>() {
        return None;
    }
    (item.len().ok()? == 2).then_some(())?;
    Some((item.get_item(0).ok()?, item.get_item(1).ok()?))
}

/// What is in a list, an array or another object with an order: no text, no set, no dict.
pub fn items<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    let has_no_order = given.is_instance_of::<PyDict>()
        || given.is_instance_of::<PySet>()
        || given.is_instance_of::<PyFrozenSet>();
    if has_no_order || given.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!(
            "expected a list, not a {}",
            given.get_type().name()?
        )));
    }
    given.try_iter()
}

/// How many bytes of memory a short word takes.
const SHORT_WORD: usize = 64;

fn words(item: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let error =
        || PyTypeError::new_err("PreTokenizedInputSequence must be Union[List[str], Tuple[str]]");
    let items = items(item).map_err(|_| error())?;
    // Short words are taken in small parts: asks for all at once.
    let count = item.len().unwrap_or(0);
    reserve(&mut Vec::<[u8; SHORT_WORD]>::new(), count).or_raise(item.py())?;
    let words = items.map(|word| {
        let word = word?;
        let word = word.cast::<PyString>().map_err(|_| error())?;
        let mut owned = String::new();
        push_text(&mut owned, &utf8(word).map_err(|_| error())?).or_raise(item.py())?;
        Ok(owned)
    });
    collected(item.py(), words)
}

fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Utf8<'a>> {
    match text::read(text)?.utf8().or_raise(text.py())? {
        Utf8::Made { is_repaired: true, .. } => Err(no_text()),
        utf8 => Ok(utf8),
    }
}

fn no_text() -> PyErr {
    PyTypeError::new_err("TextInputSequence must be str")
}
