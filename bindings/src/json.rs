//! Writes JSON as Python's `json` does, for `bpe_engine.prompt`.

use std::io::Write;

use bpe_core::ablation::Mechanism;
use bpe_core::memory::reserve;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::buffer_pool;
use crate::interned::interned;
use crate::strings::decode_utf8;
use crate::text::{Utf8, read};

/// The most lists and dicts inside of each other; Python tells of more, or of one that holds itself.
const DEEPEST: usize = 200;
/// The most bytes of a number, or of an escaped character.
const SHORT: usize = 32;

/// Returns the JSON of plain data: strings, numbers, truth values, None, lists, tuples, and dicts whose
/// keys are strings. Returns None for other data, for nesting or numbers that Python may refuse, for
/// lone surrogates, and for more than `most` bytes.
///
/// `separators` come after an item and after a key. With an `indent`, each item has its own line.
#[pyfunction]
pub fn write_json<'py>(
    value: &Bound<'py, PyAny>,
    is_ascii: bool,
    separators: (Bound<'py, PyString>, Bound<'py, PyString>),
    indent: Option<Bound<'py, PyString>>,
    most: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !Mechanism::NativeJson.is_used() {
        return Ok(None);
    }
    let indent = indent.as_ref().map(|indent| indent.to_str()).transpose();
    let (Ok(item), Ok(key), Ok(indent)) = (separators.0.to_str(), separators.1.to_str(), indent)
    else {
        return Ok(None);
    };
    let bytes = buffer_pool::TEXT.borrow(0);
    let mut writer = Writer { bytes, is_ascii, separators: [item, key], indent, most };
    let text = match writer.value(value, 0)? {
        true => Some(decode_utf8(value.py(), &writer.bytes, interned!(value.py(), "strict"))?),
        false => None,
    };
    buffer_pool::TEXT.give(writer.bytes);
    Ok(text)
}

struct Writer<'a> {
    bytes: Vec<u8>,
    /// Whether all other characters are escaped.
    is_ascii: bool,
    separators: [&'a str; 2],
    indent: Option<&'a str>,
    most: usize,
}

impl Writer<'_> {
    /// Writes a value in so many lists and dicts. Returns false for what only Python can write.
    fn value(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<bool> {
        if value.is_instance_of::<PyString>() {
            return self.text(value);
        }
        if value.is_none() {
            return self.add(b"null");
        }
        if value.is_exact_instance_of::<PyBool>() {
            return self.add(if value.is_truthy()? { b"true" } else { b"false" });
        }
        if value.is_exact_instance_of::<PyInt>() {
            let Ok(number) = value.extract::<i64>() else { return Ok(false) };
            return self.number(number);
        }
        if let Ok(number) = value.cast_exact::<PyFloat>() {
            let number = number.value();
            return match number {
                _ if number.is_nan() => self.add(b"NaN"),
                f64::INFINITY => self.add(b"Infinity"),
                f64::NEG_INFINITY => self.add(b"-Infinity"),
                _ => self.add(value.repr()?.to_str()?.as_bytes()),
            };
        }
        if depth == DEEPEST {
            return Ok(false);
        }
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            for (place, (key, item)) in dict.iter().enumerate() {
                if !key.is_instance_of::<PyString>()
                    || !self.begin(place, b"{", depth)?
                    || !self.text(&key)?
                    || !self.add(self.separators[1].as_bytes())?
                    || !self.value(&item, depth + 1)?
                {
                    return Ok(false);
                }
            }
            return self.end(dict.is_empty(), [b"}", b"{}"], depth);
        }
        if let Ok(list) = value.cast_exact::<PyList>() {
            return self.items(list.iter(), depth);
        }
        let Ok(tuple) = value.cast_exact::<PyTuple>() else { return Ok(false) };
        self.items(tuple.iter(), depth)
    }

    fn items<'py>(
        &mut self,
        items: impl ExactSizeIterator<Item = Bound<'py, PyAny>>,
        depth: usize,
    ) -> PyResult<bool> {
        let is_empty = items.len() == 0;
        for (place, item) in items.enumerate() {
            if !self.begin(place, b"[", depth)? || !self.value(&item, depth + 1)? {
                return Ok(false);
            }
        }
        self.end(is_empty, [b"]", b"[]"], depth)
    }

    /// Begins an item, the first one with what opens the value.
    fn begin(&mut self, place: usize, open: &[u8], depth: usize) -> PyResult<bool> {
        let before = if place == 0 { open } else { self.separators[0].as_bytes() };
        Ok(self.add(before)? && self.line(depth + 1)?)
    }

    /// Ends a value with what closes it, or with all of one that is empty.
    fn end(&mut self, is_empty: bool, close: [&[u8]; 2], depth: usize) -> PyResult<bool> {
        if is_empty {
            return self.add(close[1]);
        }
        Ok(self.line(depth)? && self.add(close[0])?)
    }

    /// Begins a line with so many indents, if items have lines.
    fn line(&mut self, depth: usize) -> PyResult<bool> {
        let Some(indent) = self.indent else { return Ok(true) };
        if !self.has_room(indent.len().saturating_mul(depth).saturating_add(1))? {
            return Ok(false);
        }
        self.bytes.push(b'\n');
        for _ in 0..depth {
            self.bytes.extend_from_slice(indent.as_bytes());
        }
        Ok(true)
    }

    fn number(&mut self, number: i64) -> PyResult<bool> {
        Ok(self.has_room(SHORT)? && write!(self.bytes, "{number}").is_ok())
    }

    fn text(&mut self, text: &Bound<'_, PyAny>) -> PyResult<bool> {
        let text = read(text)?.utf8().map_err(|error| PyMemoryError::new_err(error.to_string()))?;
        if matches!(&text, Utf8::Made { repaired: Some(_), .. }) {
            return Ok(false);
        }
        let mut rest: &str = &text;
        if !self.add(b"\"")? {
            return Ok(false);
        }
        loop {
            let is_ascii = self.is_ascii;
            let plain = rest.bytes().position(|byte| is_escaped(byte, is_ascii));
            let (before, after) = rest.split_at(plain.unwrap_or(rest.len()));
            if !self.add(before.as_bytes())? || !self.has_room(SHORT)? {
                return Ok(false);
            }
            let mut characters = after.chars();
            let Some(character) = characters.next() else { break };
            self.escape(character);
            rest = characters.as_str();
        }
        self.add(b"\"")
    }

    /// Writes a character in another way. There is room for it.
    fn escape(&mut self, character: char) {
        let letter = match character {
            '"' | '\\' => character,
            '\n' => 'n',
            '\r' => 'r',
            '\t' => 't',
            '\u{8}' => 'b',
            '\u{c}' => 'f',
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(self.bytes, "\\u{unit:04x}");
                }
                return;
            }
        };
        let _ = write!(self.bytes, "\\{letter}");
    }

    fn add(&mut self, bytes: &[u8]) -> PyResult<bool> {
        if !self.has_room(bytes.len())? {
            return Ok(false);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(true)
    }

    /// Makes room. Returns false where there would be more than there may.
    fn has_room(&mut self, bytes: usize) -> PyResult<bool> {
        if self.bytes.len().saturating_add(bytes) > self.most.saturating_add(SHORT) {
            return Ok(false);
        }
        reserve(&mut self.bytes, bytes)
            .map_err(|error| PyMemoryError::new_err(error.to_string()))?;
        Ok(true)
    }
}

/// Whether a byte begins a character that is written in another way.
fn is_escaped(byte: u8, is_ascii: bool) -> bool {
    match byte {
        ..b' ' | b'"' | b'\\' => true,
        0x7F.. => is_ascii,
        _ => false,
    }
}
