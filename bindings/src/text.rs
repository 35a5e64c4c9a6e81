//! A Python `str` as UTF-8. Every path that takes text comes through [`read`].

use std::borrow::Cow;
use std::ops::Range;

use bpe_core::offsets::Characters;
use pyo3::exceptions::{PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// The text of a `str`. Surrogates, which UTF-8 cannot hold, are repaired as by
/// `text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")`: valid pairs are joined,
/// lone ones become U+FFFD.
pub fn read<'a>(text: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, str>> {
    let text = cast(text)?;
    match text.to_str() {
        Ok(utf8) => Ok(Cow::Borrowed(utf8)),
        Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(text.py()) => {
            Ok(Cow::Owned(String::from_utf16_lossy(&utf16(text)?)))
        }
        Err(error) => Err(error),
    }
}

/// Byte spans of `repaired`, what [`read`] made of `text`, as character spans of `text`. Starts
/// and ends must each ascend.
pub fn character_spans(
    text: &Bound<'_, PyAny>,
    repaired: &str,
    spans: Vec<Range<usize>>,
) -> PyResult<Vec<(usize, usize)>> {
    let pairs = joined_pairs(text, repaired)?;
    let in_text = |character| character + pairs.partition_point(|&pair| pair < character);
    let (mut starts, mut ends) = (Characters::new(repaired), Characters::new(repaired));
    let place =
        |span: Range<usize>| (in_text(starts.index(span.start)), in_text(ends.index(span.end)));
    Ok(spans.into_iter().map(place).collect())
}

/// The characters of `repaired`, by index, that stand for two surrogates of `text`.
fn joined_pairs(text: &Bound<'_, PyAny>, repaired: &str) -> PyResult<Vec<usize>> {
    let text = cast(text)?;
    if text.to_str().is_ok() {
        return Ok(Vec::new());
    }
    // An astral character of the repaired text was either the same one before, or a pair.
    let mut pairs = Vec::new();
    let mut characters = text.try_iter()?;
    for (index, character) in repaired.chars().enumerate() {
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

fn utf16(text: &Bound<'_, PyString>) -> PyResult<Vec<u16>> {
    let encoded = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
    let encoded = encoded.cast::<PyBytes>()?.as_bytes();
    Ok(encoded.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect())
}
