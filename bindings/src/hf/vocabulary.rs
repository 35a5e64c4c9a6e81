//! Methods of `Tokenizer` that look up tokens and ids.

use bpe_core::components::AddedToken;
use bpe_core::memory::{append_text, ask_for};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString};

use super::input::items;
use crate::errors::OrRaise;
use crate::objects::{collected, new_dict, new_int, new_list, new_span, new_str, new_tuple};
use crate::pipeline::{PyPipeline, PyTokenizer};

/// Memory in bytes for a token in a list.
const TOKEN: usize = 192;

fn owned(text: &Bound<'_, PyString>) -> PyResult<String> {
    let mut copy = String::new();
    append_text(&mut copy, text.to_str()?).or_raise()?;
    Ok(copy)
}

/// Reads an added token: a name, or an object with the attributes of `AddedToken`.
fn added_token(token: &Bound<'_, PyAny>, special: bool) -> PyResult<AddedToken> {
    if let Ok(content) = token.cast::<PyString>() {
        return Ok(AddedToken {
            content: owned(content)?,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: !special,
            special,
        });
    }
    if !token.hasattr("content")? {
        return Err(PyTypeError::new_err("Input must be a List[Union[str, AddedToken]]"));
    }
    if special {
        // As in `tokenizers`, the default of `normalized` depends on `special`.
        token.setattr("special", true)?;
    }
    let flag = |name: &str| token.getattr(name)?.extract::<bool>();
    Ok(AddedToken {
        content: owned(token.getattr("content")?.cast()?)?,
        single_word: flag("single_word")?,
        lstrip: flag("lstrip")?,
        rstrip: flag("rstrip")?,
        normalized: flag("normalized")?,
        special: flag("special")?,
    })
}

fn added_tokens(tokens: &Bound<'_, PyAny>, special: bool) -> PyResult<Vec<AddedToken>> {
    if tokens.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!(
            "expected a list of tokens, not a str; for one token give [{}]",
            tokens.repr()?
        )));
    }
    // Tokens are many small allocations, so check their total size first.
    let count = tokens.cast::<PyList>().map_or(0, |tokens| tokens.len());
    ask_for(count.saturating_mul(TOKEN)).or_raise()?;
    items(tokens)?.map(|token| added_token(&token?, special)).collect()
}

#[pymethods]
impl PyTokenizer {
    /// Returns the id of a token, or None.
    fn token_to_id(slf: &Bound<'_, Self>, token: &str) -> PyResult<Option<u32>> {
        Ok(Self::tokenizer(slf)?.token_to_id(token))
    }

    /// Returns the token of an id, or None.
    fn id_to_token<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
        id: u32,
    ) -> PyResult<Option<Bound<'py, PyString>>> {
        Self::tokenizer(slf)?.id_to_token(id).map(|token| new_str(py, &token)).transpose()
    }

    /// Returns the tokens and their ids.
    #[pyo3(signature = (with_added_tokens=true))]
    fn get_vocab<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
        with_added_tokens: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let tokenizer = Self::tokenizer(slf)?;
        // Tokens are many small allocations, so check their total size first.
        ask_for(tokenizer.vocab_size(true).or_raise()?.saturating_mul(TOKEN)).or_raise()?;
        let vocab = new_dict(py)?;
        for (token, id) in tokenizer.vocab(with_added_tokens) {
            vocab.set_item(new_str(py, &token)?, new_int(py, id as usize)?)?;
        }
        Ok(vocab)
    }

    /// Returns the number of tokens.
    #[pyo3(signature = (with_added_tokens=true))]
    fn get_vocab_size(slf: &Bound<'_, Self>, with_added_tokens: bool) -> PyResult<usize> {
        Self::tokenizer(slf)?.vocab_size(with_added_tokens).or_raise()
    }

    /// Adds tokens: names, or `AddedToken` objects. Returns the number of new tokens.
    fn add_tokens(slf: &Bound<'_, Self>, tokens: &Bound<'_, PyAny>) -> PyResult<usize> {
        let tokens = added_tokens(tokens, false)?;
        Self::change(slf, |tokenizer| tokenizer.add_tokens(tokens))
    }

    /// Adds special tokens, which decoding can skip. Returns the number of new tokens.
    fn add_special_tokens(slf: &Bound<'_, Self>, tokens: &Bound<'_, PyAny>) -> PyResult<usize> {
        let tokens = added_tokens(tokens, true)?;
        Self::change(slf, |tokenizer| tokenizer.add_tokens(tokens))
    }

    /// Returns the number of tokens that the post-processor adds to one sequence, or to a pair.
    fn num_special_tokens_to_add(slf: &Bound<'_, Self>, is_pair: bool) -> PyResult<usize> {
        Ok(Self::tokenizer(slf)?.added_tokens(is_pair))
    }
}

#[pymethods]
impl PyPipeline {
    /// A number that differs after each change of the tokenizer.
    #[getter]
    fn _version(slf: &Bound<'_, Self>) -> PyResult<u64> {
        Ok(Self::shared(slf)?.version())
    }

    /// The length in bytes of the longest name of a special token.
    #[getter]
    fn _longest_special(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Ok(Self::current(slf)?.special_tokens().or_raise()?.all().longest())
    }

    /// Returns the added tokens as `(id, (content, single_word, lstrip, rstrip, normalized,
    /// special))`.
    fn _added_tokens<'py>(slf: &Bound<'_, Self>, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let tokenizer = Self::tokenizer(slf)?;
        let rows = tokenizer.added_tokens_by_id().into_iter().map(|(id, token)| {
            let AddedToken { content, single_word, lstrip, rstrip, normalized, special } = token;
            let flag = |flag: &bool| PyBool::new(py, *flag).to_owned().into_any();
            let [a, b, c, d, e] = [single_word, lstrip, rstrip, normalized, special].map(flag);
            let row = new_tuple(py, [new_str(py, content)?.into_any(), a, b, c, d, e])?;
            new_tuple(py, [new_int(py, id as usize)?, row.into_any()])
        });
        new_list(py, collected(rows)?)
    }

    /// Runs only the model on a text. Returns `(id, token, (start, end))` for each token.
    fn _tokenize<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
        text: &str,
    ) -> PyResult<Bound<'py, PyList>> {
        let tokens = Self::tokenizer(slf)?.tokenize(text).or_raise()?;
        let rows = tokens.into_iter().map(|(id, token, span)| {
            let (id, token) = (new_int(py, id as usize)?, new_str(py, &token)?);
            new_tuple(py, [id, token.into_any(), new_span(py, span)?.into_any()])
        });
        new_list(py, collected(rows)?)
    }

    fn _model_token_to_id(slf: &Bound<'_, Self>, token: &str) -> PyResult<Option<u32>> {
        Ok(Self::tokenizer(slf)?.model_token_to_id(token))
    }

    fn _model_id_to_token<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
        id: u32,
    ) -> PyResult<Option<Bound<'py, PyString>>> {
        Self::tokenizer(slf)?.model_id_to_token(id).map(|token| new_str(py, &token)).transpose()
    }
}
