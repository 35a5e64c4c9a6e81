//! Counts and searches texts and checks ids: methods of `Pipeline`.

use bpe_core::memory::reserve;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::OrRaise;
use crate::objects::{check_signals, new_list, new_named_span};
use crate::pipeline::PyPipeline;
use crate::request::Gives;
use crate::truncate::whole_number;
use crate::{gil, ids, int_cache, rows, text};

#[pymethods]
impl PyPipeline {
    /// Returns the number of tokens in a text, without making a list of ids.
    ///
    /// Names that are not allowed count as ordinary text, unless `disallowed_special` demands an
    /// error.
    ///
    /// >>> import bpe_engine
    /// >>> bpe_engine.get_encoding("gpt2").count("hello world")
    /// 2
    #[pyo3(signature = (text, *, allowed_special=None, disallowed_special=None))]
    fn count(
        slf: &Bound<'_, Self>,
        text: &Bound<'_, PyAny>,
        allowed_special: Option<&Bound<'_, PyAny>>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        let (pipeline, request) =
            Self::ask(slf, allowed_special, disallowed_special, Gives::Counts)?;
        Self::shared(slf)?.run(text, |text| pipeline.count(text, usize::MAX, &request))
    }

    /// Returns the number of tokens in each text, on up to `num_threads` threads. Each part is an
    /// iterable of `str`, or a tuple of the buffers of a column.
    #[pyo3(signature = (parts, num_threads, *, allowed_special=None, disallowed_special=None))]
    fn _count_each<'py>(
        slf: &Bound<'py, Self>,
        parts: &Bound<'py, PyList>,
        num_threads: &Bound<'py, PyAny>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let asked = Self::ask(slf, allowed_special, disallowed_special, Gives::Counts)?;
        let (read, mut counts) = (rows::TextBatch::read_all(parts)?, Vec::new());
        rows::encode_parts(Self::shared(slf)?, &read, num_threads, &asked, |rows, _| {
            reserve(&mut counts, rows.ends.len()).or_raise()?;
            counts.extend(rows.rows().map(|ids| ids.len() as u32));
            Ok(())
        })?;
        int_cache::list(parts.py(), &counts)
    }

    /// Returns the number of tokens in a text, or None if the text has more than `limit`.
    ///
    /// Stops as soon as the limit is exceeded, so a small limit on a huge text costs little. (A
    /// piece is merged whole, and unnormalized text is normalized whole.)
    ///
    /// >>> import bpe_engine
    /// >>> gpt2 = bpe_engine.get_encoding("gpt2")
    /// >>> gpt2.count_till_limit("hello world", 2), gpt2.count_till_limit("hello world", 1)
    /// (2, None)
    #[pyo3(signature = (text, limit, *, allowed_special=None, disallowed_special=None))]
    fn count_till_limit(
        slf: &Bound<'_, Self>,
        text: &Bound<'_, PyAny>,
        limit: &Bound<'_, PyAny>,
        allowed_special: Option<&Bound<'_, PyAny>>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<usize>> {
        let limit = whole_number("limit", limit, 0)?;
        let (pipeline, request) =
            Self::ask(slf, allowed_special, disallowed_special, Gives::Counts)?;
        let count = Self::shared(slf)?.run(text, |text| pipeline.count(text, limit, &request))?;
        Ok((count <= limit).then_some(count))
    }

    /// Returns ``(name, start, end)`` of each special token's name in a text, in characters.
    ///
    /// Of overlapping names, the leftmost is found; of names with the same start, the longest.
    ///
    /// >>> import bpe_engine
    /// >>> bpe_engine.get_encoding("gpt2").find_special("a<|endoftext|>")
    /// [('<|endoftext|>', 1, 14)]
    fn find_special<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = text.py();
        let stored = text::read(text)?;
        let original = stored.utf8().or_raise()?;
        let pipeline = Self::current(slf)?;
        let found = gil::run(py, stored.size(), || pipeline.find_special(&original))?;
        let mut characters = original.character_spans();
        let list = new_list::<PyAny>(py, Vec::new())?;
        for (index, (name, span)) in found.into_iter().enumerate() {
            check_signals(py, index)?;
            list.append(new_named_span(py, name, characters.next(span))?)?;
        }
        Ok(list)
    }

    /// Returns True if decoding and encoding these ids gives the same ids.
    ///
    /// Special tokens are encoded as special tokens, all other text as ordinary text. Ids whose
    /// bytes are not UTF-8 are never canonical, nor are ids whose text a tokenizer file changes,
    /// such as a token in capitals if the file lowercases text.
    ///
    /// Raises:
    ///     KeyError: An id has no token.
    ///
    /// >>> import bpe_engine
    /// >>> gpt2 = bpe_engine.get_encoding("gpt2")
    /// >>> gpt2.is_canonical([31373]), gpt2.is_canonical([258, 18798])
    /// (True, False)
    fn is_canonical(slf: &Bound<'_, Self>, tokens: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (ids, pipeline) = (ids::read(tokens)?, Self::current(slf)?);
        gil::run(tokens.py(), ids.len(), || pipeline.is_canonical(&ids))
    }
}
