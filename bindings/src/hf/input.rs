//! Texts and words out of Python objects, with the errors of `tokenizers`.

use bpe_hf::{Input, Sequence};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::errors::OrRaise;
use crate::text::{self, Utf8};

/// One input of a batch: a sequence, or two.
pub fn read(item: &Bound<'_, PyAny>, is_pretokenized: bool) -> PyResult<Input> {
    if let Ok(first) = sequence(item, is_pretokenized) {
        return Ok(Input { first, second: None });
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
    let second = Some(sequence(&second, is_pretokenized)?);
    Ok(Input { first: sequence(&first, is_pretokenized)?, second })
}

fn pair<'py>(item: &Bound<'py, PyAny>) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    if !item.is_instance_of::<PyTuple>() && !item.is_instance_of::<PyList>() {
        return None;
    }
    (item.len().ok()? == 2).then_some(())?;
    Some((item.get_item(0).ok()?, item.get_item(1).ok()?))
}

/// One sequence: a text, or words.
pub fn sequence(item: &Bound<'_, PyAny>, is_pretokenized: bool) -> PyResult<Sequence> {
    if is_pretokenized { words(item) } else { Ok(Sequence::Text(string(item)?)) }
}

fn words(item: &Bound<'_, PyAny>) -> PyResult<Sequence> {
    let error =
        || PyTypeError::new_err("PreTokenizedInputSequence must be Union[List[str], Tuple[str]]");
    if item.is_instance_of::<PyString>() {
        return Err(error());
    }
    let items = item.try_iter().map_err(|_| error())?;
    let words = items.map(|word| string(&word?).map_err(|_| error()));
    Ok(Sequence::Words(words.collect::<PyResult<_>>()?))
}

/// A text; one with surrogates, which are no characters, is none.
fn string(item: &Bound<'_, PyAny>) -> PyResult<String> {
    let error = || PyTypeError::new_err("TextInputSequence must be str");
    if !item.is_instance_of::<PyString>() {
        return Err(error());
    }
    match text::read(item)?.utf8().or_raise(item.py())? {
        Utf8::Made { is_repaired: true, .. } => Err(error()),
        utf8 => Ok(utf8.to_owned()),
    }
}
