//! Decodes bytes to a Python `str`.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;

use bpe_core::memory::{advise_huge_pages, write_copy};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Length below which the interpreter's decoder is as fast.
const LONG_TEXT: usize = 64;

/// Returns `bytes.decode("utf-8", errors)`.
pub fn decode_utf8<'py>(
    py: Python<'py>,
    bytes: &[u8],
    errors: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    if bytes.len() >= LONG_TEXT
        && let Some(text) = decode_valid(py, bytes)?
    {
        return Ok(text);
    }
    match errors.to_str()? {
        "replace" => decode_any(py, bytes, c"replace"),
        errors => decode_any(py, bytes, &CString::new(errors)?),
    }
}

/// Decodes with the interpreter's decoder, which handles bytes that are not UTF-8.
fn decode_any<'py>(py: Python<'py>, bytes: &[u8], errors: &CStr) -> PyResult<Bound<'py, PyAny>> {
    let length = ffi::Py_ssize_t::try_from(bytes.len())?;
    // SAFETY: attached; pointer and length are from a live slice, and `errors` ends with a null
    // byte. The call returns a new reference, or null with an exception set.
    unsafe {
        let text = ffi::PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), length, errors.as_ptr());
        Bound::from_owned_ptr_or_err(py, text)
    }
}

/// Decodes UTF-8 to a `str`; returns `None` if the bytes are invalid.
///
/// A `str` stores 1, 2 or 4 bytes per character, depending on the largest character. Here the
/// largest first byte decides, so that characters are written only once; the interpreter's decoder
/// begins with 1 byte and widens at larger characters.
#[cfg(not(any(PyPy, GraalPy)))]
fn decode_valid<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
    let largest = if bytes.is_ascii() { 0 } else { bytes.iter().copied().max().unwrap_or(0) };
    // SAFETY, for all four: the last argument is the largest character that the type can store.
    unsafe {
        match largest {
            ..0x80 => fill::<u8>(py, bytes, bytes.len(), 0x7F, |bytes, units| {
                write_copy(units, bytes);
                true
            }),
            // Characters below U+0100.
            0x80..0xC4 => fill::<u8>(py, bytes, characters(bytes), 0xFF, decode_units),
            // Characters below U+10000, at least one of them U+0100 or above.
            0xC4..0xF0 => fill::<u16>(py, bytes, characters(bytes), 0xFFFF, decode_units),
            0xF0.. => fill::<u32>(py, bytes, characters(bytes), 0x10_FFFF, decode_units),
        }
    }
}

#[cfg(any(PyPy, GraalPy))]
fn decode_valid<'py>(_: Python<'py>, _: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(None)
}

/// Returns a new `str` of `length` characters up to `largest`, written by `write`; `None` if
/// `write` returns `false`. If `write` returns `true`, it has written all characters.
///
/// # Safety
/// A `str` whose largest character is `largest` stores its characters as `T`.
#[cfg(not(any(PyPy, GraalPy)))]
unsafe fn fill<'py, T>(
    py: Python<'py>,
    bytes: &[u8],
    length: usize,
    largest: u32,
    write: impl FnOnce(&[u8], &mut [MaybeUninit<T>]) -> bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    // SAFETY: attached; the call returns a new reference, or null with an exception set. No other
    // code has seen the new object, whose characters are `length` values of `T` (the caller's
    // promise), not yet initialized; it is dropped unless all of them are.
    unsafe {
        let text = ffi::PyUnicode_New(ffi::Py_ssize_t::try_from(length)?, largest);
        let text = Bound::from_owned_ptr_or_err(py, text)?;
        let units = ffi::PyUnicode_DATA(text.as_ptr()).cast::<MaybeUninit<T>>();
        let units = std::slice::from_raw_parts_mut(units, length);
        advise_huge_pages(units);
        Ok(write(bytes, units).then_some(text))
    }
}

/// Returns the number of characters, by counting their first bytes.
#[cfg(not(any(PyPy, GraalPy)))]
fn characters(bytes: &[u8]) -> usize {
    let begins = |&byte: &u8| u8::from(byte.cast_signed() >= -0x40);
    // Adds in blocks whose sum fits in a byte, which vector instructions add fastest.
    bytes.chunks(128).map(|block| usize::from(block.iter().map(begins).sum::<u8>())).sum()
}

/// The integer type in which a `str` stores its characters.
#[cfg(not(any(PyPy, GraalPy)))]
trait Unit: From<u8> {
    fn new(character: u32) -> Self;
}

#[cfg(not(any(PyPy, GraalPy)))]
macro_rules! unit {
    ($($unit:ty),*) => { $(impl Unit for $unit {
        #[inline(always)]
        fn new(character: u32) -> Self {
            character as $unit
        }
    })* };
}
#[cfg(not(any(PyPy, GraalPy)))]
unit!(u8, u16, u32);

/// Writes the characters of `bytes` to `units`. Returns `false` if `bytes` are not UTF-8, or if the
/// numbers of characters and units differ. The characters must fit in the units.
#[cfg(not(any(PyPy, GraalPy)))]
fn decode_units<T: Unit>(bytes: &[u8], units: &mut [MaybeUninit<T>]) -> bool {
    let mut rest = bytes;
    let mut at = 0;
    while !rest.is_empty() {
        if let Some(room) = units.get_mut(at..)
            && let Some(count @ 1..) = widen_ascii(rest, room)
        {
            at += count;
            rest = &rest[count..];
            continue;
        }
        // Three-byte characters come in runs. The last byte read is not used.
        while let Some(block) = rest.first_chunk::<4>()
            && let block = u32::from_le_bytes(*block)
            && block & 0x00C0_C0F0 == 0x0080_80E0
        {
            let character = (block & 0x0F) << 12 | (block >> 2) & 0x0FC0 | (block >> 16) & 0x3F;
            if character < 0x800 || character & 0xF800 == 0xD800 {
                return false;
            }
            let Some(unit) = units.get_mut(at) else { return false };
            unit.write(T::new(character));
            at += 1;
            rest = &rest[3..];
        }
        let Some((character, width)) = character(rest) else {
            return rest.is_empty() && at == units.len();
        };
        let Some(unit) = units.get_mut(at) else { return false };
        unit.write(T::new(character));
        at += 1;
        rest = &rest[width..];
    }
    at == units.len()
}

/// Writes the start of `bytes` as if it were ASCII, and returns the number of characters before the
/// first non-ASCII character. `None` if `bytes` are shorter than a block.
#[cfg(not(any(PyPy, GraalPy)))]
#[inline(always)]
fn widen_ascii<T: Unit>(bytes: &[u8], units: &mut [MaybeUninit<T>]) -> Option<usize> {
    const BLOCK: usize = 16;
    const NOT_ASCII: u128 = u128::from_ne_bytes([0x80; BLOCK]);
    let block = bytes.first_chunk::<BLOCK>()?;
    for (unit, &byte) in units.first_chunk_mut::<BLOCK>()?.iter_mut().zip(block) {
        unit.write(T::from(byte));
    }
    let others = u128::from_le_bytes(*block) & NOT_ASCII;
    Some(others.trailing_zeros() as usize / 8)
}

/// Decodes the first character, and returns it with its number of bytes; `None` if it is not UTF-8.
#[cfg(not(any(PyPy, GraalPy)))]
#[inline(always)]
fn character(bytes: &[u8]) -> Option<(u32, usize)> {
    let tail = |byte: u8| (byte & 0xC0 == 0x80).then_some(u32::from(byte & 0x3F));
    match *bytes {
        [a @ ..0x80, ..] => Some((a.into(), 1)),
        [a @ 0xE0..0xF0, b, c, ..] => {
            let character = u32::from(a & 0x0F) << 12 | tail(b)? << 6 | tail(c)?;
            (character >= 0x800 && character & 0xF800 != 0xD800).then_some((character, 3))
        }
        [a @ 0xC2..0xE0, b, ..] => Some((u32::from(a & 0x1F) << 6 | tail(b)?, 2)),
        [a @ 0xF0..0xF5, b, c, d, ..] => {
            let high = u32::from(a & 0x07) << 18 | tail(b)? << 12;
            let character = high | tail(c)? << 6 | tail(d)?;
            (0x1_0000..0x11_0000).contains(&character).then_some((character, 4))
        }
        _ => None,
    }
}
