//! Reads texts and words from Python objects, with the errors of `tokenizers`.

use bpe_core::memory::ask_for;
use bpe_core::pipeline::{Input, Sequence};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyIterator, PyList, PySet, PyString, PyTuple};

use crate::errors::OrRaise;
use crate::objects::collected;
use crate::rows;
use crate::text::{self, Utf8};

/// What to do with surrogates, which UTF-8 cannot encode.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Surrogates {
    /// Raises `TypeError`, like `tokenizers`.
    Refused,
    /// Joins pairs and replaces lone surrogates with U+FFFD, like `Encoding.encode`.
    Repaired,
    /// Raises `ValueError`, since repaired text has no offsets.
    WithoutOffsets,
}

/// One sequence as given by the caller.
pub enum Given {
    /// A text, which is immutable.
    Text(Py<PyString>),
    /// Words, copied from a list.
    Words(Vec<String>),
}

impl Given {
    /// Reads a text, or words.
    pub fn read(
        item: &Bound<'_, PyAny>,
        is_pretokenized: bool,
        surrogates: Surrogates,
    ) -> PyResult<Self> {
        if is_pretokenized {
            return words(item, surrogates).map(Self::Words);
        }
        let text = item.cast::<PyString>().map_err(|_| text::not_a_text("text", item))?;
        Ok(Self::Text(text.clone().unbind()))
    }

    fn utf8<'a>(&'a self, py: Python<'a>, surrogates: Surrogates) -> PyResult<ReadSequence<'a>> {
        Ok(match self {
            Self::Text(given) => ReadSequence::Text(utf8(given.bind(py), surrogates)?),
            Self::Words(words) => ReadSequence::Words(words),
        })
    }
}

/// One input as given by the caller: a sequence or a pair.
pub struct GivenInput {
    pub first: Given,
    pub second: Option<Given>,
    pub surrogates: Surrogates,
}

impl GivenInput {
    /// Reads one input of a batch.
    pub fn read(
        item: &Bound<'_, PyAny>,
        is_pretokenized: bool,
        surrogates: Surrogates,
    ) -> PyResult<Self> {
        let read = |item: &Bound<'_, PyAny>| Given::read(item, is_pretokenized, surrogates);
        let problem = match read(item) {
            Ok(first) => return Ok(Self { first, second: None, surrogates }),
            Err(problem) => problem,
        };
        // Malformed words must not pass for a pair of texts.
        let is_pair =
            |first: &Bound<'_, PyAny>| !is_pretokenized || !first.is_instance_of::<PyString>();
        match pair(item).filter(|(first, _)| is_pair(first)) {
            Some((first, second)) => {
                let second = Some(read(&second)?);
                Ok(Self { first: read(&first)?, second, surrogates })
            }
            None if !is_pretokenized
                && (item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>()) =>
            {
                Err(PyTypeError::new_err(format!(
                    "text must be a str, or two of them for a pair, not a {} of {}; words need \
                     is_pretokenized, or is_split_into_words",
                    item.get_type().name()?,
                    item.len()?
                )))
            }
            None => Err(problem),
        }
    }

    /// Reads all inputs of a batch. An error names the row.
    pub fn read_all<'py>(
        py: Python<'py>,
        inputs: Bound<'py, PyIterator>,
        is_pretokenized: bool,
        surrogates: Surrogates,
    ) -> PyResult<Vec<Self>> {
        let read = |(row, item): (usize, PyResult<Bound<'py, PyAny>>)| {
            Self::read(&item?, is_pretokenized, surrogates)
                .map_err(|error| rows::in_row(py, row, error))
        };
        collected(inputs.enumerate().map(read))
    }

    /// Reads the texts of a batch as UTF-8. An error names the row.
    pub fn all_utf8<'a>(py: Python<'a>, given: &'a [Self]) -> PyResult<Vec<ReadInput<'a>>> {
        let read = |(row, given): (usize, &'a Self)| {
            given.utf8(py).map_err(|error| rows::in_row(py, row, error))
        };
        collected(given.iter().enumerate().map(read))
    }

    /// Reads the texts as UTF-8.
    pub fn utf8<'a>(&'a self, py: Python<'a>) -> PyResult<ReadInput<'a>> {
        let read = |given: &'a Given| given.utf8(py, self.surrogates);
        Ok(ReadInput {
            first: read(&self.first)?,
            second: self.second.as_ref().map(read).transpose()?,
        })
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

/// Returns the two items of a pair: a tuple, a list or a row of an array.
fn pair<'py>(item: &Bound<'py, PyAny>) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let is_row = || item.hasattr("ndim").is_ok_and(|has_dimensions| has_dimensions);
    if !(item.is_instance_of::<PyTuple>() || item.is_instance_of::<PyList>() || is_row()) {
        return None;
    }
    (item.len().ok()? == 2).then_some(())?;
    Some((item.get_item(0).ok()?, item.get_item(1).ok()?))
}

/// Iterates a list, an array or another ordered object. Refuses str, sets and dicts.
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
    text::items(given)
}

/// Memory in bytes for a short word.
const SHORT_WORD: usize = 64;

fn words(item: &Bound<'_, PyAny>, surrogates: Surrogates) -> PyResult<Vec<String>> {
    let items = items(item).map_err(|_| text::not_a_text("each word of a list", item))?;
    // Short words are many small allocations, so check their total size first.
    let count = item.len().unwrap_or(0);
    ask_for(count.saturating_mul(SHORT_WORD)).or_raise()?;
    let words = items.map(|word| {
        let word = word?;
        let word = word.cast::<PyString>().map_err(|_| text::not_a_text("a word", &word))?;
        Ok(utf8(word, surrogates)?.to_string())
    });
    collected(words)
}

fn utf8<'a>(text: &'a Bound<'_, PyString>, surrogates: Surrogates) -> PyResult<Utf8<'a>> {
    match (text::read(text)?.utf8().or_raise()?, surrogates) {
        (Utf8::Made { repaired: Some(_), .. }, Surrogates::Refused) => {
            Err(PyTypeError::new_err(SURROGATES))
        }
        (Utf8::Made { repaired: Some(_), .. }, Surrogates::WithoutOffsets) => {
            Err(PyValueError::new_err(SURROGATES))
        }
        (utf8, _) => Ok(utf8),
    }
}

const SURROGATES: &str = "a text contains surrogates, which have no offsets; repair it first: \
                          text.encode(\"utf-16\", \"surrogatepass\").decode(\"utf-16\", \"replace\")";
