//! Methods of `HfTokenizer` that look up tokens and ids.

use bpe_core::memory::push_text;
use bpe_hf::AddedToken;
use bpe_hf::details::Token;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::input::items;
use super::tokenizer::HfTokenizer;
use crate::errors::OrRaise;

/// Copies a text.
fn owned(text: &Bound<'_, PyString>) -> PyResult<String> {
    let mut copy = String::new();
    push_text(&mut copy, text.to_str()?).or_raise()?;
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
        // As in `tokenizers`: the default of `normalized` depends on it.
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
    items(tokens)?.map(|token| added_token(&token?, special)).collect()
}

#[pymethods]
impl HfTokenizer {
    /// The id of a token, or None.
    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.current().token_to_id(token)
    }

    /// The token of an id, or None.
    fn id_to_token(&self, id: u32) -> Option<String> {
        self.current().id_to_token(id)
    }

    /// The tokens and their ids.
    #[pyo3(signature = (with_added_tokens=true))]
    fn get_vocab<'py>(
        &self,
        py: Python<'py>,
        with_added_tokens: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let vocab = PyDict::new(py);
        for (token, id) in self.current().vocab(with_added_tokens) {
            vocab.set_item(token, id)?;
        }
        Ok(vocab)
    }

    /// The number of tokens.
    #[pyo3(signature = (with_added_tokens=true))]
    fn get_vocab_size(&self, with_added_tokens: bool) -> usize {
        self.current().vocab_size(with_added_tokens)
    }

    /// Adds tokens: names, or `AddedToken` objects. Returns how many are new.
    fn add_tokens(&self, tokens: &Bound<'_, PyAny>) -> PyResult<usize> {
        let tokens = added_tokens(tokens, false)?;
        self.change(|tokenizer| tokenizer.add_tokens(tokens))
    }

    /// Adds special tokens, which decoding can skip. Returns how many are new.
    fn add_special_tokens(&self, tokens: &Bound<'_, PyAny>) -> PyResult<usize> {
        let tokens = added_tokens(tokens, true)?;
        self.change(|tokenizer| tokenizer.add_tokens(tokens))
    }

    /// The added tokens as `(id, (content, single_word, lstrip, rstrip, normalized, special))`.
    #[allow(clippy::type_complexity)]
    fn _added_tokens(&self) -> Vec<(u32, (String, bool, bool, bool, bool, bool))> {
        let tokenizer = self.current();
        let tokens = tokenizer.added_tokens_by_id().into_iter();
        let row = |(id, token): (u32, &AddedToken)| {
            let AddedToken { content, single_word, lstrip, rstrip, normalized, special } =
                token.clone();
            (id, (content, single_word, lstrip, rstrip, normalized, special))
        };
        tokens.map(row).collect()
    }

    /// The number of tokens that the post-processor adds to one sequence, or to a pair.
    fn num_special_tokens_to_add(&self, is_pair: bool) -> usize {
        self.current().added_tokens(is_pair)
    }

    /// Runs only the model on a text. Returns `(id, token, (start, end))` for each token.
    fn _tokenize(&self, text: &str) -> PyResult<Vec<Token>> {
        self.current().tokenize(text).or_raise()
    }

    /// `{token bytes: id}` and the pattern, for an encoding that merges in the order of ids. The
    /// pattern is None if the pre-tokenizer does more than split by one pattern.
    fn _ranks<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Option<String>)> {
        let tokenizer = self.current();
        let ranks = PyDict::new(py);
        for (bytes, id) in tokenizer.ranks().or_raise()? {
            ranks.set_item(PyBytes::new(py, bytes), id)?;
        }
        Ok((ranks, tokenizer.pattern().map(str::to_owned)))
    }

    fn _model_token_to_id(&self, token: &str) -> Option<u32> {
        self.current().model_token_to_id(token)
    }

    fn _model_id_to_token(&self, id: u32) -> Option<String> {
        self.current().model_id_to_token(id)
    }
}
