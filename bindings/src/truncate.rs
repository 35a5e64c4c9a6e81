//! Truncates and chunks text: methods of `Pipeline`.

use bpe_core::Request;
use bpe_core::request::Disallowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice};

use crate::errors::OrRaise;
use crate::objects::{check_signals, collected, list_of_spans, new_list};
use crate::pipeline::PyPipeline;
use crate::request::Gives;
use crate::shared::Current;
use crate::{gil, text};

/// Number of bytes or code points of a text to read first, in addition to four per token.
const FIRST: usize = 1024;

#[pymethods]
impl PyPipeline {
    /// Truncates text to at most `max_tokens` tokens.
    ///
    /// Keeps a prefix (suffix) that ends (begins) where a token of the text's encoding ends and
    /// that encodes to at most `max_tokens` tokens. Text that fits is returned unchanged.
    /// Characters, surrogate pairs, allowed special tokens and characters that normalization
    /// rewrites together are not cut apart; if the first (last) does not fit, nothing is kept. If
    /// no word or number ends in the 4,096 bytes before a suffix (as in a ruler or a very long
    /// word), the suffix may begin inside a token of the text.
    ///
    /// Args:
    ///     text: The text.
    ///     max_tokens: Maximum number of tokens of the encoded result.
    ///     side: The side to cut off: ``"right"`` keeps a prefix, ``"left"`` a suffix.
    ///     allowed_special, disallowed_special: As in `count`.
    ///
    /// Raises:
    ///     ValueError: `max_tokens` is negative, or `side` is unknown.
    ///
    /// >>> import bpe_engine
    /// >>> gpt2 = bpe_engine.get_encoding("gpt2")
    /// >>> gpt2.truncate("one two three", 2), gpt2.truncate("one two three", 2, side="left")
    /// ('one two', ' two three')
    #[pyo3(signature = (text, max_tokens, *, side="right", allowed_special=None, disallowed_special=None))]
    fn truncate<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        max_tokens: &Bound<'_, PyAny>,
        side: &str,
        allowed_special: Option<&Bound<'_, PyAny>>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let max_tokens = whole_number("max_tokens", max_tokens, 0)?;
        let from_left = match side {
            "right" => false,
            "left" => true,
            other => {
                let text = format!("side must be 'right' or 'left', not '{other}'");
                return Err(PyValueError::new_err(text));
            }
        };
        let asked = Self::ask(slf, allowed_special, disallowed_special, Gives::Counts)?;
        let kept = kept_characters(text, max_tokens, from_left, &asked)?;
        let length = text.len()?;
        let (start, end) = if from_left { (length - kept, length) } else { (0, kept) };
        slice(text, start, end)
    }

    /// Cuts text into chunks of at most `max_tokens` tokens each.
    ///
    /// Args:
    ///     text: The text.
    ///     max_tokens: Maximum number of tokens of an encoded chunk.
    ///     overlap: Maximum number of tokens at the end of a chunk that the next chunk repeats.
    ///     allowed_special, disallowed_special: As in `count`. Allowed special tokens are not cut
    ///         apart.
    ///
    /// Returns:
    ///     Slices of the text that end where tokens of the text's encoding end. Without overlap,
    ///     their concatenation is the text; an empty text has no chunks. Characters that share a
    ///     token, or that normalization rewrites together, are cut apart only if they do not fit
    ///     into one chunk.
    ///
    /// Raises:
    ///     ValueError: `max_tokens` is not positive or too small for a character of the text, or
    ///         `overlap` is negative or not smaller than `max_tokens`.
    ///
    /// >>> import bpe_engine
    /// >>> gpt2 = bpe_engine.get_encoding("gpt2")
    /// >>> gpt2.chunk("one two three four", 2)
    /// ['one two', ' three four']
    /// >>> gpt2.chunk("one two three four", 2, overlap=1)
    /// ['one two', ' two three', ' three four']
    #[pyo3(signature = (text, max_tokens, overlap=None, *, allowed_special=None, disallowed_special=None),
        text_signature = "($self, text, max_tokens, overlap=0, *, allowed_special=None, \
                          disallowed_special=None)")]
    fn chunk<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        max_tokens: &Bound<'_, PyAny>,
        overlap: Option<&Bound<'_, PyAny>>,
        allowed_special: Option<&Bound<'_, PyAny>>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (max_tokens, overlap) = chunk_sizes(max_tokens, overlap)?;
        let asked = Self::ask(slf, allowed_special, disallowed_special, Gives::Counts)?;
        let chunks = new_list::<PyAny>(text.py(), Vec::new())?;
        let spans = chunk_spans(text, max_tokens, overlap, &asked)?;
        for (index, (start, end)) in spans.into_iter().enumerate() {
            check_signals(text.py(), index)?;
            chunks.append(slice(text, start, end)?)?;
        }
        Ok(chunks)
    }

    /// Returns `(start, end)`, in characters, of each chunk of the text.
    #[pyo3(signature = (text, max_tokens, overlap, *, allowed_special=None))]
    fn _chunk_spans<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        max_tokens: usize,
        overlap: usize,
        allowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let asked = Self::ask(slf, allowed_special, None, Gives::Counts)?;
        list_of_spans(text.py(), chunk_spans(text, max_tokens, overlap, &asked)?.into_iter())
    }

    /// Checks the sizes of chunks.
    #[staticmethod]
    fn _chunk_sizes(
        max_tokens: &Bound<'_, PyAny>,
        overlap: &Bound<'_, PyAny>,
    ) -> PyResult<(usize, usize)> {
        chunk_sizes(max_tokens, Some(overlap))
    }
}

fn slice<'py>(text: &Bound<'py, PyAny>, start: usize, end: usize) -> PyResult<Bound<'py, PyAny>> {
    text.get_item(PySlice::new(text.py(), start.try_into()?, end.try_into()?, 1))
}

fn chunk_sizes(
    max_tokens: &Bound<'_, PyAny>,
    overlap: Option<&Bound<'_, PyAny>>,
) -> PyResult<(usize, usize)> {
    let most = whole_number("max_tokens", max_tokens, 1)?;
    let Some(overlap) = overlap else { return Ok((most, 0)) };
    let repeated = whole_number("overlap", overlap, 0)?;
    if overlap.ge(max_tokens)? {
        return Err(PyValueError::new_err(format!(
            "overlap must be smaller than max_tokens, but is {overlap} of {max_tokens}"
        )));
    }
    Ok((most, repeated.min(most - 1)))
}

/// Reads a count. Counts above the number of tokens of any text are capped.
pub fn whole_number(name: &str, value: &Bound<'_, PyAny>, at_least: usize) -> PyResult<usize> {
    let number = value.call_method0("__index__").map_err(|_| match value.get_type().name() {
        Ok(kind) => PyTypeError::new_err(format!("{name} must be an int, not {kind}")),
        Err(error) => error,
    })?;
    if number.lt(at_least)? {
        return Err(PyValueError::new_err(format!(
            "{name} must be at least {at_least}, but is {number}"
        )));
    }
    Ok(number.extract::<usize>().map_or(isize::MAX as usize, |it| it.min(isize::MAX as usize)))
}

/// Returns the number of characters in a prefix or suffix of at most `max_tokens` tokens.
///
/// Reads only as much of the text as needed, unless the text is searched for disallowed names.
fn kept_characters(
    text: &Bound<'_, PyAny>,
    max_tokens: usize,
    from_left: bool,
    (pipeline, request): &(Current<'_>, Request),
) -> PyResult<usize> {
    let py = text.py();
    let all = text::read(text)?;
    let mut size = match request.disallowed {
        Disallowed::None => max_tokens.saturating_mul(4).saturating_add(FIRST),
        _ => all.size(),
    };
    loop {
        let part = if from_left { all.last(size) } else { all.first(size) };
        let utf8 = part.utf8().or_raise()?;
        let kept = gil::run(py, part.size(), || match from_left {
            _ if size < all.size() => pipeline.truncate_part(&utf8, max_tokens, from_left, request),
            false => Ok(Some(0..pipeline.truncate(&utf8, max_tokens, request)?)),
            true => {
                let start = pipeline.truncate_left(&utf8, max_tokens, request)?;
                Ok(Some(start..utf8.len()))
            }
        })?;
        if let Some(kept) = kept {
            let (start, end) = utf8.character_spans().next(kept);
            return Ok(end - start);
        }
        size = size.saturating_mul(4);
    }
}

/// Returns the span of each chunk in characters.
fn chunk_spans(
    text: &Bound<'_, PyAny>,
    max_tokens: usize,
    overlap: usize,
    (pipeline, request): &(Current<'_>, Request),
) -> PyResult<Vec<(usize, usize)>> {
    let stored = text::read(text)?;
    let utf8 = stored.utf8().or_raise()?;
    let size = stored.size();
    let chunks = gil::run(text.py(), size, || pipeline.chunk(&utf8, max_tokens, overlap, request))?;
    let mut characters = utf8.character_spans();
    collected(chunks.into_iter().map(|chunk| Ok(characters.next(chunk))))
}
