//! Methods that encode texts.

use bpe_core::Request;
use bpe_core::memory::reserve;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList, PyTuple};

use crate::buffer::{self, TokenBuffer};
use crate::errors::OrRaise;
use crate::objects::{Argument, check_signals, new_bytearray, new_list, new_span};
use crate::pipeline::{PyEncoding, PyPipeline};
use crate::request::{Gives, read_optional};
use crate::shared::Current;
use crate::{buffer_pool, gil, int_cache, rows, text};

/// Ids, and the span of each id as `(start, end)` in characters.
type Offsets<'py> = (Bound<'py, PyList>, Bound<'py, PyList>);

/// Ids of many texts, concatenated, and the row splits.
pub struct Ragged {
    ids: Vec<u32>,
    /// Row splits as the bytes of 64-bit numbers.
    splits: Vec<u8>,
}

impl Default for Ragged {
    fn default() -> Self {
        Self { ids: Vec::new(), splits: 0i64.to_ne_bytes().to_vec() }
    }
}

impl Ragged {
    /// Appends rows of texts that have `size` bytes in total.
    fn append(&mut self, rows: &rows::Rows<u32>, size: usize) -> PyResult<()> {
        if self.ids.capacity() == 0 {
            self.ids = buffer_pool::IDS.take(buffer_pool::likely_ids(size));
        }
        reserve(&mut self.splits, size_of::<i64>() * rows.ends.len()).or_raise()?;
        for &end in &rows.ends {
            self.splits.extend_from_slice(&((self.ids.len() + end) as i64).to_ne_bytes());
        }
        reserve(&mut self.ids, rows.items.len()).or_raise()?;
        self.ids.extend_from_slice(&rows.items);
        Ok(())
    }

    fn into_python(self, py: Python<'_>) -> PyResult<(TokenBuffer, Bound<'_, PyByteArray>)> {
        Ok((TokenBuffer::new(self.ids), new_bytearray(py, &self.splits)?))
    }
}

impl PyPipeline {
    /// Returns a list of the ids that `encode` appends for a text.
    #[inline]
    fn list<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        encode: impl FnOnce(&str, &mut Vec<u32>) -> bpe_core::Result<()> + Send,
    ) -> PyResult<Bound<'py, PyList>> {
        let ids = Self::shared(slf)?.run(text, |text| {
            let mut ids = buffer_pool::IDS.borrow(buffer_pool::likely_ids(text.len()));
            encode(text, &mut ids)?;
            Ok(ids)
        })?;
        let list = int_cache::list(text.py(), &ids);
        buffer_pool::IDS.give(ids);
        list
    }
}

#[pymethods]
impl PyEncoding {
    /// Encodes a text without special tokens, like ``encode(text, disallowed_special=())``.
    ///
    /// >>> import bpe_engine
    /// >>> bpe_engine.get_encoding("gpt2").encode_ordinary("hello world")
    /// [31373, 995]
    fn encode_ordinary<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let slf = slf.as_super();
        if let Some(direct) = PyPipeline::direct(slf)? {
            let encode = |text: &str, ids: &mut _| direct.encode(text, &Request::ORDINARY, ids);
            return PyPipeline::list(slf, text, encode);
        }
        let none = PyTuple::empty(slf.py()).into_any();
        let (pipeline, request) = PyPipeline::ask(slf, Some(&none), Some(&none), Gives::Ids)?;
        PyPipeline::list(slf, text, |text, ids| pipeline.encode_text(text, &request, ids))
    }

    /// Encodes a text.
    ///
    /// Special tokens control a model, and so could their names in untrusted text. Therefore the
    /// name of a special token in the text raises an error by default.
    ///
    /// Args:
    ///     text: A str. Surrogate pairs are joined; lone surrogates become U+FFFD.
    ///     allowed_special: The names that become special tokens: a set, or ``"all"``.
    ///     disallowed_special: The names that raise an error: a collection of str, or ``"all"`` for
    ///         every special token that is not allowed. Other names are ordinary text, so ``()``
    ///         turns the check off.
    ///
    /// Raises:
    ///     ValueError: The text contains a disallowed name.
    ///
    /// >>> import bpe_engine
    /// >>> gpt2 = bpe_engine.get_encoding("gpt2")
    /// >>> gpt2.encode("hello world")
    /// [31373, 995]
    /// >>> gpt2.encode("<|endoftext|>", allowed_special={"<|endoftext|>"})
    /// [50256]
    /// >>> gpt2.encode("<|endoftext|>", disallowed_special=())
    /// [27, 91, 437, 1659, 5239, 91, 29]
    #[pyo3(
        signature = (text, *, allowed_special=None, disallowed_special=Argument::Absent),
        text_signature = "($self, text, *, allowed_special=(), disallowed_special='all')"
    )]
    fn encode<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Argument<'_, 'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        let slf = slf.as_super();
        // As in tiktoken, `None` disallows nothing.
        let empty = PyTuple::empty(slf.py()).into_any();
        let disallowed = disallowed_special.or(&empty);
        if let Some(direct) = PyPipeline::direct(slf)? {
            let special = direct.special_tokens();
            let request = read_optional(special, allowed_special, disallowed, Gives::Ids)?;
            return PyPipeline::list(slf, text, |text, ids| direct.encode(text, &request, ids));
        }
        let (pipeline, request) = PyPipeline::ask(slf, allowed_special, disallowed, Gives::Ids)?;
        PyPipeline::list(slf, text, |text, ids| pipeline.encode_text(text, &request, ids))
    }
}

#[pymethods]
impl PyPipeline {
    /// Returns the ids of a text as a numpy array of uint32, without making Python ints.
    ///
    /// Requires numpy. Raises the errors of `encode`.
    ///
    /// Args:
    ///     text, allowed_special, disallowed_special: As in `encode`.
    ///     num_threads: Maximum number of threads that work on the text, or None for as many as the
    ///         machine runs at once. Texts under some 128 KB, and patterns without known safe
    ///         positions to cut, use one thread. The ids do not depend on this number.
    ///
    /// >>> import bpe_engine
    /// >>> gpt2 = bpe_engine.get_encoding("gpt2")
    /// >>> gpt2.encode_to_numpy("hello world").tolist()
    /// [31373, 995]
    /// >>> len(gpt2.encode_to_numpy("hello world! " * 50_000, num_threads=2))
    /// 150001
    #[pyo3(
        signature = (text, *, allowed_special=None, disallowed_special=None,
            num_threads=Argument::Absent),
        text_signature = "($self, text, *, allowed_special=None, disallowed_special=None, \
                          num_threads=1)"
    )]
    fn encode_to_numpy<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        allowed_special: Option<&Bound<'_, PyAny>>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
        num_threads: Argument<'_, '_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let threads = num_threads.get().map_or(Ok(1), rows::threads)?;
        let (pipeline, request) = Self::ask(slf, allowed_special, disallowed_special, Gives::Ids)?;
        let ids = Self::shared(slf)?.run(text, |text| {
            let mut ids = buffer_pool::IDS.take(buffer_pool::likely_ids(text.len()));
            pipeline.encode_on_threads(text, &request, threads, &mut ids)?;
            Ok(ids)
        })?;
        buffer::array(text.py(), ids, "encode_to_numpy", "encode")
    }

    /// Returns the ids of each text, on up to `num_threads` threads.
    #[pyo3(signature = (texts, num_threads, *, allowed_special=None, disallowed_special=None))]
    fn _encode_each<'py>(
        slf: &Bound<'py, Self>,
        texts: &Bound<'py, PyAny>,
        num_threads: &Bound<'py, PyAny>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = texts.py();
        let asked = Self::ask(slf, allowed_special, disallowed_special, Gives::Ids)?;
        let mut lists = Vec::new();
        let parts = [rows::TextBatch::objects(texts)?];
        rows::encode_parts(Self::shared(slf)?, &parts, num_threads, &asked, |ids, _| {
            int_cache::append_lists(py, ids.rows(), &mut lists)
        })?;
        new_list(py, lists)
    }

    /// Returns all ids in one buffer, and the row splits as the bytes of 64-bit numbers. Each part
    /// is an iterable of `str`, or a tuple of the buffers of a column.
    #[pyo3(signature = (parts, num_threads, *, allowed_special=None, disallowed_special=None))]
    fn _encode_ragged<'py>(
        slf: &Bound<'py, Self>,
        parts: &Bound<'py, PyList>,
        num_threads: &Bound<'py, PyAny>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(TokenBuffer, Bound<'py, PyByteArray>)> {
        let asked = Self::ask(slf, allowed_special, disallowed_special, Gives::Ids)?;
        let read = rows::TextBatch::read_all(parts)?;
        let mut ragged = Ragged::default();
        let append = |part: &_, size| ragged.append(part, size);
        rows::encode_parts(Self::shared(slf)?, &read, num_threads, &asked, append)?;
        ragged.into_python(parts.py())
    }

    /// Returns the ids of a text and, for each id, its span in the text.
    ///
    /// Args:
    ///     text, allowed_special, disallowed_special: As in `encode`.
    ///     unit: The unit of spans: ``"characters"``, or ``"bytes"`` of the text's UTF-8.
    ///
    /// Returns:
    ///     The ids and, for each id, a span ``(start, end)``, as in ``text[start:end]``. A token
    ///     with only some bytes of a character spans the whole character, so spans may overlap. In
    ///     bytes, the token spans exactly those bytes if the bytes of the tokens are the bytes of
    ///     the text, and whole characters where a tokenizer file normalizes the text or puts a
    ///     space before it. Spans refer to the given text, even if a normalizer changes it. Spans
    ///     of a SentencePiece ``.model`` equal sentencepiece's spans, in both units.
    ///
    /// Raises:
    ///     ValueError: `unit` is unknown, or an error of `encode`.
    ///
    /// >>> import bpe_engine
    /// >>> gpt2 = bpe_engine.get_encoding("gpt2")
    /// >>> gpt2.encode_with_offsets("hello world")
    /// ([31373, 995], [(0, 5), (5, 11)])
    /// >>> gpt2.encode_with_offsets("🦜"), gpt2.encode_with_offsets("🦜", unit="bytes")[1]
    /// (([8582, 99, 250], [(0, 1), (0, 1), (0, 1)]), [(0, 2), (2, 3), (3, 4)])
    #[pyo3(signature = (text, *, unit="characters", allowed_special=None, disallowed_special=None))]
    fn encode_with_offsets<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        unit: &str,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Offsets<'py>> {
        let unit = match unit {
            "characters" => Unit::Characters,
            "bytes" => Unit::Bytes,
            other => {
                let text = format!("unit must be 'characters' or 'bytes', not '{other}'");
                return Err(PyValueError::new_err(text));
            }
        };
        let asked = Self::ask(slf, allowed_special, disallowed_special, Gives::Ids)?;
        with_offsets(text, &asked, unit)
    }

    /// Returns ids like `encode_with_offsets`, with the span of all source bytes of each token.
    #[pyo3(signature = (text, *, allowed_special=None, disallowed_special=None))]
    fn _encode_with_origins<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Offsets<'py>> {
        let asked = Self::ask(slf, allowed_special, disallowed_special, Gives::Ids)?;
        with_offsets(text, &asked, Unit::Origins)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Characters,
    Bytes,
    /// All source bytes of a token.
    Origins,
}

fn with_offsets<'py>(
    text: &Bound<'py, PyAny>,
    (pipeline, request): &(Current<'_>, Request),
    unit: Unit,
) -> PyResult<Offsets<'py>> {
    let py = text.py();
    let stored = text::read(text)?;
    let original = stored.utf8().or_raise()?;
    let work = || match unit {
        Unit::Characters => pipeline.encode_with_spans(&original, request),
        Unit::Bytes => pipeline.encode_with_places(&original, request),
        Unit::Origins => pipeline.encode_with_bytes(&original, request),
    };
    let (ids, places) = gil::run(py, stored.size(), work)?;
    let spans = new_list::<PyAny>(py, Vec::new())?;
    let mut characters = original.character_spans();
    for (index, span) in places.into_iter().enumerate() {
        check_signals(py, index)?;
        let span = match unit {
            Unit::Characters => characters.next(span),
            _ => (span.start, span.end),
        };
        spans.append(new_span(py, span)?)?;
    }
    Ok((int_cache::list(py, &ids)?, spans))
}
