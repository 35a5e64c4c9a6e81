//! A Python `str` as UTF-8. Every path that takes text comes through [`read`].

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicPtr, Ordering};

use bpe_core::code_points::CodePoints;
use bpe_core::offsets::Characters;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::types::string::PyStringData;

use crate::buffer_pool;

/// What a `str` holds. May be read on any thread, whoever holds the interpreter.
#[derive(Debug, Clone, Copy)]
pub enum Text<'a> {
    /// There as UTF-8 already.
    Utf8(&'a str),
    /// Not there as UTF-8. The interpreter could make it, but holds on to it for as long as the
    /// `str` lives, and takes fresh memory every time.
    CodePoints(CodePoints<'a>),
}

/// The text of a `str`.
pub fn read<'a>(text: &'a Bound<'_, PyAny>) -> PyResult<Text<'a>> {
    let text = cast(text)?;
    // SAFETY: attached, and `text` is a live `str`. Its memory stays as it is while somebody
    // holds a reference: a `str` with more than one owner never changes. How it is stored is
    // told by bit fields, which compilers lay out; tests read strings stored in every way.
    let stored = unsafe { text.data()? };
    if let PyStringData::Ucs1(units) = stored {
        // SAFETY: a `str` begins with such a header, so the end of it is in or behind the object.
        let behind = unsafe { text.as_ptr().byte_add(size_of::<ffi::PyASCIIObject>()) };
        // Characters directly behind this header, which is the short one, are ASCII.
        if units.as_ptr() == behind.cast_const().cast() {
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

/// The UTF-8 of a `str` that somebody asked the interpreter for before. Not for ASCII with the
/// short header.
fn kept_utf8<'a>(text: &'a Bound<'_, PyString>) -> Option<&'a str> {
    let header: *mut ffi::PyCompactUnicodeObject = text.as_ptr().cast();
    // SAFETY: attached, and a live `str` that is not ASCII with the short header begins with
    // this one. What `utf8` points to stays until the `str` is freed, and its length is written
    // before it; another thread may be just doing that if there is no GIL.
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
    /// How many bytes or code points: a measure of the work.
    pub fn size(self) -> usize {
        match self {
            Self::Utf8(text) => text.len(),
            Self::CodePoints(code_points) => code_points.len(),
        }
    }

    /// The first and the last code point, if one of the text's may be a surrogate.
    pub fn ends(self) -> Option<(u32, u32)> {
        match self {
            Self::CodePoints(CodePoints::Ucs2(units)) => {
                Some(((*units.first()?).into(), (*units.last()?).into()))
            }
            Self::CodePoints(CodePoints::Ucs4(units)) => Some((*units.first()?, *units.last()?)),
            _ => None,
        }
    }

    /// The text as UTF-8. Surrogates, which UTF-8 cannot hold, are repaired as by
    /// `text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")`: valid pairs are
    /// joined, lone ones become U+FFFD.
    pub fn utf8(self) -> bpe_core::Result<Utf8<'a>> {
        Ok(match self {
            Self::Utf8(text) => Utf8::Borrowed(text),
            Self::CodePoints(code_points) => {
                let buffer = buffer_pool::TEXT.borrow(code_points.likely_utf8_length());
                let mut text = String::from_utf8(buffer).unwrap_or_default();
                let is_repaired = code_points.append_to(&mut text)?;
                Utf8::Made { text, is_repaired }
            }
        })
    }
}

/// Text as UTF-8.
#[derive(Debug)]
pub enum Utf8<'a> {
    Borrowed(&'a str),
    Made { text: String, is_repaired: bool },
}

impl Utf8<'_> {
    /// Whether there were surrogates.
    fn is_repaired(&self) -> bool {
        matches!(self, Self::Made { is_repaired: true, .. })
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

/// Turns byte spans of `utf8`, the UTF-8 of a `str`, into character spans of the `str`. Starts and
/// ends must each ascend.
pub struct CharacterSpans<'a> {
    starts: Characters<'a>,
    ends: Characters<'a>,
    /// The characters, by index, that are two surrogates in the `str`.
    pairs: Vec<usize>,
}

impl<'a> CharacterSpans<'a> {
    pub fn new(text: &Bound<'_, PyAny>, utf8: &'a Utf8<'_>) -> PyResult<Self> {
        let pairs = joined_pairs(text, utf8)?;
        Ok(Self { starts: Characters::new(utf8), ends: Characters::new(utf8), pairs })
    }

    pub fn next(&mut self, span: Range<usize>) -> (usize, usize) {
        let (start, end) = (self.starts.index(span.start), self.ends.index(span.end));
        (self.in_text(start), self.in_text(end))
    }

    fn in_text(&self, character: usize) -> usize {
        character + self.pairs.partition_point(|&pair| pair < character)
    }
}

/// The characters of `utf8`, by index, that stand for two surrogates of `text`.
fn joined_pairs(text: &Bound<'_, PyAny>, utf8: &Utf8<'_>) -> PyResult<Vec<usize>> {
    if !utf8.is_repaired() {
        return Ok(Vec::new());
    }
    // An astral character of the repaired text was either the same one before, or a pair.
    let mut pairs = Vec::new();
    let mut characters = cast(text)?.try_iter()?;
    for (index, character) in utf8.chars().enumerate() {
        let Some(original) = characters.next().transpose()? else { break };
        if character.len_utf16() == 2 && original.cast::<PyString>()?.to_str().is_err() {
            pairs.push(index);
            characters.next();
        }
    }
    Ok(pairs)
}

fn cast<'a, 'py>(text: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyString>> {
    text.cast::<PyString>().map_err(|_| {
        let kind = text.get_type();
        let kind = kind.name().map(|name| name.to_string()).unwrap_or_default();
        let hint = match kind.as_str() {
            "bytes" | "bytearray" => "; decode it first, as in text.decode(\"utf-8\")",
            _ => "",
        };
        PyTypeError::new_err(format!("text must be a str, not {kind}{hint}"))
    })
}
