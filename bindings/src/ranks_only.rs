//! Methods of `Encoding` that need ranks.

use std::borrow::Cow;
use std::sync::Arc;

use bpe_core::memory::reserve;
use bpe_core::{Direct, Error, Normalization};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::buffer::TokenBuffer;
use crate::errors::{OrRaise, UnsupportedTokenizer};
use crate::objects::{Argument, collected, new_bytes, new_list, new_str};
use crate::pipeline::{PyEncoding, PyPipeline};
use crate::request::Gives;
use crate::{buffer_pool, gil, int_cache, ranks, text};

/// Number of completions converted to lists between two checks for signals.
const LISTS_BETWEEN_SIGNALS: usize = 1024;

impl PyEncoding {
    /// Returns the encoding of an object that has ranks.
    fn ranked<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a Arc<Direct>> {
        let direct =
            PyPipeline::shared(slf.as_super())?.fixed_pipeline().and_then(|it| it.direct());
        if let Some(direct) = direct {
            return Ok(direct);
        }
        let reason = match PyPipeline::tokenizer(slf.as_super())?.as_ranks(false) {
            Err(error) => error.to_string(),
            Ok(_) => "it finds added tokens in every text".to_owned(),
        };
        Err(UnsupportedTokenizer::new_err(format!("this tokenizer has no ranks: {reason}")))
    }
}

#[pymethods]
impl PyEncoding {
    /// Returns the pattern, the special tokens as `{name: id}` in the order of ids, and the
    /// normalization.
    fn _description<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(String, Bound<'py, PyDict>, Option<&'static str>)> {
        let direct = Self::ranked(slf)?;
        let mut special: Vec<_> = direct.special_tokens().iter().collect();
        special.sort_unstable_by_key(|&(_, id)| id);
        let names = PyDict::new(slf.py());
        for (name, id) in special {
            names.set_item(name, id)?;
        }
        let normalization = match direct.normalization() {
            Normalization::None => None,
            Normalization::Nfc => Some("NFC"),
        };
        Ok((direct.splitter().pattern().to_owned(), names, normalization))
    }

    /// Fails, with the reason, if the tokenizer has no ranks.
    fn _check_ranks(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::ranked(slf).map(drop)
    }

    #[pyo3(signature = (text, *, allowed_special=None, disallowed_special=None))]
    fn _ids_in_buffer(
        slf: &Bound<'_, Self>,
        text: &Bound<'_, PyAny>,
        allowed_special: Option<&Bound<'_, PyAny>>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TokenBuffer> {
        let (pipeline, request) =
            PyPipeline::ask(slf.as_super(), allowed_special, disallowed_special, Gives::Ids)?;
        let ids = PyPipeline::shared(slf.as_super())?.run(text, |text| {
            let mut ids = buffer_pool::IDS.take(buffer_pool::likely_ids(text.len()));
            pipeline.encode_text(text, &request, &mut ids)?;
            Ok(ids)
        })?;
        Ok(TokenBuffer::new(ids))
    }

    /// Returns the stable ids of an unfinished text, and the possible ids of the rest.
    ///
    /// Takes the arguments of `encode` and raises its errors.
    ///
    /// Returns:
    ///     The ids that are the same for every continuation, and every sequence of ids to which the
    ///     rest of the text may encode. Each sequence covers the rest and ends with the token that
    ///     reaches or passes its end. The sequences are in no particular order.
    ///
    /// >>> import bpe_engine
    /// >>> gpt2 = bpe_engine.get_encoding("gpt2")
    /// >>> stable, completions = gpt2.encode_with_unstable("hello fan")
    /// >>> stable, gpt2.encode(" fantastic") in completions
    /// ([31373], True)
    #[pyo3(
        signature = (text, *, allowed_special=None, disallowed_special=Argument::Absent),
        text_signature = "($self, text, *, allowed_special=(), disallowed_special='all')"
    )]
    fn encode_with_unstable<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Argument<'_, 'py>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let py = text.py();
        let encoding = Self::ranked(slf)?;
        // As in tiktoken, `None` disallows nothing.
        let empty = PyTuple::empty(py).into_any();
        let disallowed = disallowed_special.or(&empty);
        let (_, request) =
            PyPipeline::ask(slf.as_super(), allowed_special, disallowed, Gives::Ids)?;
        let stored = text::read(text)?;
        // A short text may have very many completions, so its size does not predict the time.
        let found = gil::detached(py, || {
            let text = stored.utf8()?;
            encoding.encode_with_unstable(&text, &request)
        });
        let (stable, completions) = found?.or_raise()?;
        let mut rows = completions.iter().map(Vec::as_slice).peekable();
        let mut lists = Vec::new();
        while rows.peek().is_some() {
            int_cache::append_lists(py, rows.by_ref().take(LISTS_BETWEEN_SIGNALS), &mut lists)?;
            py.check_signals()?;
        }
        Ok((int_cache::list(py, &stable)?, new_list(py, lists)?))
    }

    /// Returns the id of one token, special or not, given as text or as bytes.
    ///
    /// Raises:
    ///     KeyError: The token does not exist.
    ///
    /// >>> import bpe_engine
    /// >>> bpe_engine.get_encoding("gpt2").encode_single_token("hello")
    /// 31373
    fn encode_single_token(
        slf: &Bound<'_, Self>,
        text_or_bytes: &Bound<'_, PyAny>,
    ) -> PyResult<u32> {
        let bytes = bytes_or_text(text_or_bytes)?;
        let encoding = Self::ranked(slf)?;
        let (vocabulary, special) = (encoding.vocabulary(), encoding.special_tokens());
        let id = vocabulary.rank(&bytes).map(|rank| vocabulary.id(rank));
        id.or_else(|| special.id(std::str::from_utf8(&bytes).ok()?))
            .ok_or_else(|| Error::UnknownToken(bytes.to_vec()))
            .or_raise()
    }

    /// Encodes a text as one piece, without special tokens.
    fn _encode_single_piece<'py>(
        slf: &Bound<'py, Self>,
        text_or_bytes: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let bytes = bytes_or_text(text_or_bytes)?;
        let encoding = Self::ranked(slf)?;
        let ids = gil::run(py, bytes.len(), || {
            let mut ids = Vec::new();
            encoding.encode_piece(&bytes, &mut ids)?;
            Ok(ids)
        });
        int_cache::list(py, &ids?)
    }

    /// Encodes bytes that need not be UTF-8.
    fn _encode_bytes<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyBytes>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, bytes) = (slf.py(), text.as_bytes());
        let encoding = Self::ranked(slf)?;
        let ids = gil::run(py, bytes.len(), || encoding.encode_bytes(bytes))?;
        int_cache::list(py, &ids)
    }

    /// Returns the pieces into which the pattern cuts a text.
    #[pyo3(signature = (text, *, allowed_special=None, disallowed_special=None))]
    fn _split<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        allowed_special: Option<&Bound<'_, PyAny>>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let encoding = Self::ranked(slf)?;
        let (_, request) =
            PyPipeline::ask(slf.as_super(), allowed_special, disallowed_special, Gives::Counts)?;
        let (mut texts, mut ends) = (String::new(), Vec::new());
        PyPipeline::shared(slf.as_super())?.run(text, |text| {
            encoding.split(text, &request, |text, batch| {
                reserve(&mut ends, batch.len())?;
                for piece in batch {
                    let bytes = piece.end - piece.start;
                    texts.try_reserve(bytes).map_err(|_| Error::OutOfMemory { bytes })?;
                    texts.push_str(&text[piece.start..piece.end]);
                    ends.push(texts.len());
                }
                Ok(())
            })
        })?;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let pieces = starts.zip(&ends).map(|(start, &end)| new_str(text.py(), &texts[start..end]));
        new_list(text.py(), collected(pieces)?)
    }

    /// Returns the bytes of all tokens except special tokens, sorted.
    fn token_byte_values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let vocabulary = Self::ranked(slf)?.vocabulary();
        let ranks = 0..vocabulary.len() as u32;
        let mut tokens = collected(ranks.map(|rank| Ok(vocabulary.token(rank))))?;
        tokens.sort_unstable();
        new_list(py, collected(tokens.into_iter().map(|token| new_bytes(py, token)))?)
    }

    /// Returns the ranks as `{token bytes: id}`.
    fn _ranks_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        ranks::to_dict(slf.py(), Self::ranked(slf)?.vocabulary())
    }

    /// Returns the largest id, without special tokens.
    #[getter]
    fn _max_rank(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Ok(Self::ranked(slf)?.vocabulary().max_id())
    }

    /// Returns the number of tokens, without special tokens.
    #[getter]
    fn _rank_count(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Ok(Self::ranked(slf)?.vocabulary().len())
    }
}

/// Returns the bytes of a `bytes`, or the UTF-8 of a `str` with surrogates repaired.
fn bytes_or_text<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    if !value.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!(
            "expected str or bytes, not {}",
            value.get_type().name()?
        )));
    }
    let utf8 = text::read(value)?.utf8().or_raise()?;
    let mut bytes = Vec::new();
    reserve(&mut bytes, utf8.len()).or_raise()?;
    bytes.extend_from_slice(utf8.as_bytes());
    Ok(Cow::Owned(bytes))
}
