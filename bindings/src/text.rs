//! Reads a Python `str` as UTF-8. All text from Python goes through [`read`].

use std::ops::Deref;
use std::sync::atomic::{AtomicPtr, Ordering};

use bpe_core::char_boundary;
use bpe_core::code_points::CodePoints;
use bpe_core::offsets::CharacterSpans;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::string::PyStringData;
use pyo3::types::{PyIterator, PyString};

use crate::buffer_pool;
use crate::objects::iterate;

/// Contents of a `str`, which any thread can read without the interpreter.
#[derive(Debug, Clone, Copy)]
pub enum Text<'a> {
    /// Stored as UTF-8.
    Utf8(&'a str),
    /// Stored as code points. The interpreter could convert them, but would keep the result for the
    /// life of the `str`, in newly allocated memory.
    CodePoints(CodePoints<'a>),
}

/// Iterates over texts. Refuses a pyarrow column, whose items are not `str`: an item of a damaged
/// column aborts the process.
pub fn items<'py>(texts: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    let kind = texts.get_type();
    if kind.module()? == "pyarrow.lib" {
        return Err(PyTypeError::new_err(format!(
            "texts must be a list of str, not pyarrow.{}; pass column.to_pylist(), or give the column \
             to encode_batch_to_numpy",
            kind.name()?
        )));
    }
    iterate(texts)
}

/// Returns the text of a `str`.
pub fn read<'a>(text: &'a Bound<'_, PyAny>) -> PyResult<Text<'a>> {
    let text = cast(text)?;
    // SAFETY: attached, and `text` is a live `str`, which does not change while it has more than
    // one owner. Its kind is in bit fields, whose layout depends on the compiler; tests read
    // strings of every kind.
    let stored = unsafe { text.data()? };
    if let PyStringData::Ucs1(units) = stored {
        // SAFETY: a `str` begins with this header, whose end is inside or at the end of the object.
        let end = unsafe { text.as_ptr().byte_add(size_of::<ffi::PyASCIIObject>()) };
        // Only in an ASCII `str` do the characters directly follow this short header.
        if units.as_ptr() == end.cast_const().cast() {
            // SAFETY: ASCII is UTF-8.
            return Ok(Text::Utf8(unsafe { str::from_utf8_unchecked(units) }));
        }
    }
    Ok(match kept_utf8(text) {
        Some(utf8) => Text::Utf8(utf8),
        None => Text::CodePoints(match stored {
            PyStringData::Ucs1(units) => CodePoints::Latin1(units),
            PyStringData::Ucs2(units) => CodePoints::Ucs2(units),
            PyStringData::Ucs4(units) => CodePoints::Ucs4(units),
        }),
    })
}

/// Returns the UTF-8 that the interpreter has cached for a `str`. The `str` must not be ASCII with
/// the short header.
fn kept_utf8<'a>(text: &'a Bound<'_, PyString>) -> Option<&'a str> {
    let header: *mut ffi::PyCompactUnicodeObject = text.as_ptr().cast();
    // SAFETY: attached, and a live `str` that is not ASCII with the short header begins with this
    // header. The memory of `utf8` lives as long as the `str`, and its length is written before it;
    // without the GIL, another thread may be writing them.
    unsafe {
        let utf8 = AtomicPtr::from_ptr(&raw mut (*header).utf8).load(Ordering::Acquire);
        if utf8.is_null() {
            return None;
        }
        let length = usize::try_from((*header).utf8_length).ok()?;
        Some(str::from_utf8_unchecked(std::slice::from_raw_parts(utf8.cast(), length)))
    }
}

impl<'a> Text<'a> {
    /// Returns the number of bytes or code points, as a measure of the work.
    pub fn size(self) -> usize {
        match self {
            Self::Utf8(text) => text.len(),
            Self::CodePoints(code_points) => code_points.len(),
        }
    }

    /// Returns the first `size` bytes or code points, or a few fewer.
    pub fn first(self, size: usize) -> Self {
        match self {
            Self::Utf8(text) => Self::Utf8(&text[..char_boundary::floor(text, size)]),
            Self::CodePoints(code_points) => {
                Self::CodePoints(code_points.part(0..size.min(code_points.len())))
            }
        }
    }

    /// Returns the last `size` bytes or code points, or a few fewer.
    pub fn last(self, size: usize) -> Self {
        let start = self.size().saturating_sub(size);
        match self {
            Self::Utf8(text) => Self::Utf8(&text[char_boundary::ceil(text, start)..]),
            Self::CodePoints(code_points) => {
                Self::CodePoints(code_points.part(start..code_points.len()))
            }
        }
    }

    /// Returns the first and the last code point, if the text may contain surrogates.
    pub fn ends(self) -> Option<(u32, u32)> {
        match self {
            Self::CodePoints(CodePoints::Ucs2(units)) => {
                Some(((*units.first()?).into(), (*units.last()?).into()))
            }
            Self::CodePoints(CodePoints::Ucs4(units)) => Some((*units.first()?, *units.last()?)),
            _ => None,
        }
    }

    /// Returns the text as UTF-8. Surrogates, which UTF-8 cannot represent, are repaired as by
    /// `text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")`: valid pairs are
    /// joined, lone surrogates become U+FFFD.
    pub fn utf8(self) -> bpe_core::Result<Utf8<'a>> {
        Ok(match self {
            Self::Utf8(text) => Utf8::Borrowed(text),
            Self::CodePoints(code_points) => {
                let buffer = buffer_pool::TEXT.borrow(code_points.likely_utf8_length());
                let mut text = String::from_utf8(buffer).unwrap_or_default();
                let repaired = code_points.append_to(&mut text)?.then_some(code_points);
                Utf8::Made { text, repaired }
            }
        })
    }
}

/// Text as UTF-8.
#[derive(Debug)]
pub enum Utf8<'a> {
    Borrowed(&'a str),
    Made {
        text: String,
        /// Code points, if they contain surrogates.
        repaired: Option<CodePoints<'a>>,
    },
}

impl Utf8<'_> {
    /// Returns a converter from byte spans of the UTF-8 to character spans of the `str`.
    pub fn character_spans(&self) -> CharacterSpans<'_> {
        let mut pairs = Vec::new();
        if let Self::Made { text, repaired: Some(code_points) } = self {
            for (index, character) in text.chars().enumerate() {
                let original = code_points.get(index + pairs.len());
                if original != u32::from(character) && character != char::REPLACEMENT_CHARACTER {
                    pairs.push(index);
                }
            }
        }
        CharacterSpans::with_doubled(self, pairs)
    }

    /// Whether a lone surrogate became U+FFFD.
    pub fn has_lone_surrogates(&self) -> bool {
        let Self::Made { text, repaired: Some(code_points) } = self else { return false };
        const REPLACED: char = char::REPLACEMENT_CHARACTER;
        let given = |&index: &usize| code_points.get(index) == u32::from(REPLACED);
        text.matches(REPLACED).count() > (0..code_points.len()).filter(given).count()
    }
}

impl Deref for Utf8<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Made { text, .. } => text,
        }
    }
}

impl Drop for Utf8<'_> {
    fn drop(&mut self) {
        if let Self::Made { text, .. } = self {
            buffer_pool::TEXT.give(std::mem::take(text).into_bytes());
        }
    }
}

fn cast<'a, 'py>(text: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyString>> {
    text.cast::<PyString>().map_err(|_| not_a_text("text", text))
}

/// Returns the error for a value that is not text, with advice; `what` names the argument.
pub fn not_a_text(what: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let kind = given.get_type();
    let kind = kind.name().map(|name| name.to_string()).unwrap_or_default();
    let is_missing = given.is_none() || given.extract::<f64>().is_ok_and(f64::is_nan);
    let hint = match kind.as_str() {
        // The types of missing values in pandas.
        "NAType" | "NaTType" => "; leave a missing text out, or fill it with \"\"",
        "ndarray" | "Series" | "Tensor" => "; give the list that its tolist() returns",
        _ if is_missing => "; leave a missing text out, or fill it with \"\"",
        "bytes" | "bytearray" => "; decode it first, as in text.decode(\"utf-8\")",
        "int" | "float" | "bool" => "; str() makes a text of it",
        "list" | "tuple" => "; give each text as a row of a batch",
        "dict" => "; give the text in it, as in row[\"text\"]",
        _ => "",
    };
    PyTypeError::new_err(format!("{what} must be a str, not {kind}{hint}"))
}
