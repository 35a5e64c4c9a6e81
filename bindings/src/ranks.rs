//! Builds vocabularies from dicts and rank files.

use bpe_core::vocabulary::RankList;
use bpe_core::{Error, SpecialTokens, Vocabulary, rank_file};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::errors::{OrRaise, describe, to_python};
use crate::gil::detached;
use crate::ids;
use crate::objects::{check_signals, new_bytes, new_dict, new_int};

/// Reads the tokens of a `dict[bytes, int]`.
pub fn from_dict(ranks: &Bound<'_, PyDict>) -> PyResult<RankList> {
    let py = ranks.py();
    // Capacity per token, more than the average length of a token.
    const BYTES: usize = 8;
    let mut list = RankList::with_capacity(ranks.len(), ranks.len() * BYTES);
    // A rank may be an object whose conversion runs Python code, which may change the dict.
    for (token, rank) in &ranks.copy()? {
        let Ok(bytes) = token.cast::<PyBytes>() else {
            return Err(PyTypeError::new_err(format!(
                "the keys of mergeable_ranks must be bytes, not {}",
                describe(&token)
            )));
        };
        let id = ids::read_one(&rank).map_err(|error| of_token(py, &token, error))?;
        list.push(bytes.as_bytes(), id);
    }
    Ok(list)
}

/// Names the token in an error about its id.
fn of_token(py: Python<'_>, token: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let message = token.repr().map(|token| format!("the token {token}: {}", error.value(py)));
    message.map_or_else(|error| error, |message| PyErr::from_type(error.get_type(py), message))
}

/// Reads the special tokens of a `dict[str, int]`, in order.
pub fn special_tokens(special: &Bound<'_, PyDict>) -> PyResult<Vec<(String, u32)>> {
    special
        .copy()?
        .iter()
        .map(|(name, id)| {
            let Ok(text) = name.cast::<PyString>() else {
                return Err(PyTypeError::new_err(format!(
                    "the names of special tokens must be str, not {}",
                    describe(&name)
                )));
            };
            let id = ids::read_one(&id).map_err(|error| of_token(id.py(), &name, error))?;
            Ok((text.to_str()?.to_owned(), id))
        })
        .collect()
}

/// Reads the tokens of rank files, given as `(name in messages, contents)`, in order.
pub fn from_files(py: Python<'_>, files: &[(String, PyBackedBytes)]) -> PyResult<RankList> {
    let mut list = RankList::default();
    for (label, contents) in files {
        let parsed = detached(py, || rank_file::parse(contents))?;
        let parsed = parsed.map_err(|error| match error {
            Error::RankFile { line, reason } => {
                PyValueError::new_err(format!("{label}, line {line}: {reason}"))
            }
            other => to_python(other),
        })?;
        if list.is_empty() {
            list = parsed;
        } else {
            list.append(&parsed);
        }
    }
    Ok(list)
}

/// Builds a vocabulary of these tokens.
pub fn build(py: Python<'_>, list: RankList) -> PyResult<Vocabulary> {
    detached(py, || Vocabulary::from_ranks(list))?.or_raise()
}

/// Reads the ranks of a `.tiktoken` file, in the order of ranks.
///
/// `contents` are the bytes of the file, and `label` its name in messages. Raises `ValueError` if a
/// line is malformed, a token or a rank is repeated, or the file has no tokens.
#[pyfunction]
pub fn parse_ranks<'py>(
    py: Python<'py>,
    contents: PyBackedBytes,
    label: String,
) -> PyResult<Bound<'py, PyDict>> {
    let blame = |error: Error| match error {
        Error::Vocabulary(reason) => PyValueError::new_err(format!("{label}: {reason}")),
        other => to_python(other),
    };
    let list = from_files(py, &[(label.clone(), contents)])?;
    let list = detached(py, || list.sorted_by_id())?.map_err(blame)?;
    let ranks = new_dict(py)?;
    for (index, (token, id)) in list.iter().enumerate() {
        check_signals(py, index)?;
        ranks.set_item(new_bytes(py, token)?, new_int(py, id as usize)?)?;
    }
    if list.is_empty() || ranks.len() < list.len() {
        // Raises the error that names the repeated token or says that the list is empty.
        Vocabulary::from_ranks(list).map_err(blame)?;
    }
    Ok(ranks)
}

/// Returns a vocabulary as `dict[bytes, int]`, in the order of ids.
pub fn to_dict<'py>(py: Python<'py>, vocabulary: &Vocabulary) -> PyResult<Bound<'py, PyDict>> {
    let ranks = new_dict(py)?;
    for rank in 0..vocabulary.len() as u32 {
        ranks.set_item(
            new_bytes(py, vocabulary.token(rank))?,
            new_int(py, vocabulary.id(rank) as usize)?,
        )?;
    }
    Ok(ranks)
}

/// Checks that no special token has an id of the vocabulary.
pub fn check_special(
    vocabulary: &Vocabulary,
    special: Vec<(String, u32)>,
) -> PyResult<SpecialTokens> {
    for (name, id) in &special {
        if let Some(rank) = vocabulary.rank_of_id(*id) {
            return Err(PyValueError::new_err(format!(
                "the id {id} of the special token {name:?} is taken by the token b\"{}\"; \
                 give the special token an id above {}",
                vocabulary.token(rank).escape_ascii(),
                vocabulary.max_id()
            )));
        }
    }
    SpecialTokens::new(special).or_raise()
}
