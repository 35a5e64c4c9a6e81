//! Reads the texts of Arrow string arrays in place. Arrays are not trusted: offsets and validity
//! are checked against the sizes of the buffers, and texts must be UTF-8.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::{self, NonNull};

use bpe_core::Error;
use bpe_core::memory::reserve;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::OrRaise;

/// The texts of one array. Keeps the memory alive.
pub struct Column {
    values: Option<PyBuffer<u8>>,
    /// Span of each text in `values`.
    spans: Vec<Range<usize>>,
    /// Index of the first row in the whole batch.
    first_row: usize,
}

/// One text of a column, as bytes that may be invalid UTF-8.
#[derive(Debug, Clone, Copy)]
pub struct ColumnText<'a> {
    memory: Memory<'a>,
    is_read_only: bool,
    row: usize,
}

/// Buffers of validity, offsets and text; index of the first row; number of rows; true for 64-bit
/// offsets.
type Parts = (Option<PyBuffer<u8>>, PyBuffer<u8>, Option<PyBuffer<u8>>, usize, usize, bool);

impl Column {
    /// Reads the buffers of a string array.
    ///
    /// Raises `ValueError` if a row is null or an offset is outside the buffers.
    pub fn read(parts: &Bound<'_, PyTuple>, first_row: usize) -> PyResult<Self> {
        let (validity, offsets, values, first, count, is_wide): Parts = parts.extract()?;
        let damaged = |row: usize| {
            PyValueError::new_err(format!(
                "row {}: the offsets or the validity of the column do not fit its buffers; the \
                 column is damaged",
                first_row + row
            ))
        };
        let offsets = Memory::of(&offsets)?;
        let validity = validity.as_ref().map(Memory::of).transpose()?;
        let size = values.as_ref().map_or(0, |buffer| buffer.item_count());
        let mut spans = Vec::new();
        for row in 0..count {
            let index = first.checked_add(row).ok_or_else(|| damaged(row))?;
            let is_valid = |validity: Memory<'_>| {
                Some(validity.group::<1>(index / 8)?[0] >> (index % 8) & 1 == 1)
            };
            if !validity.map_or(Some(true), is_valid).ok_or_else(|| damaged(row))? {
                return Err(PyValueError::new_err(format!(
                    "row {} is null; drop nulls or replace them with text \
                     first, as in pyarrow.compute.fill_null(column, \"\")",
                    first_row + row
                )));
            }
            let offset = |index: usize| offsets.offset(index, is_wide);
            let (start, end) = offset(index)
                .zip(index.checked_add(1).and_then(offset))
                .filter(|&(start, end)| start <= end && end <= size)
                .ok_or_else(|| damaged(row))?;
            reserve(&mut spans, 1).or_raise()?;
            spans.push(start..end);
        }
        Ok(Self { values, spans, first_row })
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the texts.
    pub fn texts(&self) -> PyResult<impl Iterator<Item = ColumnText<'_>>> {
        let all = self.values.as_ref().map(Memory::of).transpose()?;
        let is_read_only = self.values.as_ref().is_none_or(|buffer| buffer.readonly());
        let text = move |(index, span): (usize, &Range<usize>)| ColumnText {
            memory: all.and_then(|all| all.part(span.clone())).unwrap_or(Memory::EMPTY),
            is_read_only,
            row: self.first_row + index,
        };
        Ok(self.spans.iter().enumerate().map(text))
    }
}

impl<'a> ColumnText<'a> {
    /// Returns the number of bytes.
    pub fn size(self) -> usize {
        self.memory.bytes.len()
    }

    /// Returns the text if it is UTF-8: in place if the memory is read-only, otherwise as a copy in
    /// `scratch`, which cannot change after the check. (Most pyarrow memory is writable.)
    pub fn utf8<'b>(self, scratch: &'b mut Vec<u8>) -> bpe_core::Result<&'b str>
    where
        'a: 'b,
    {
        let bytes = if self.is_read_only {
            // SAFETY: the memory lives for `'a`, and its exporter declares it read-only.
            unsafe { self.memory.bytes.as_ref() }
        } else {
            self.memory.copy_to(scratch)?;
            scratch
        };
        simdutf8::compat::from_utf8(bytes)
            .map_err(|error| Error::NotUtf8 { row: self.row, position: error.valid_up_to() })
    }
}

/// Memory that a buffer exports for `'a`, read only as bytes. If another thread writes to the
/// buffer meanwhile, the ids belong to a mixture of old and new bytes, as with any writable buffer.
#[derive(Debug, Clone, Copy)]
struct Memory<'a> {
    bytes: NonNull<[u8]>,
    export: PhantomData<&'a PyBuffer<u8>>,
}

// SAFETY: the export keeps the memory in place for all threads.
unsafe impl Send for Memory<'_> {}
// SAFETY: as above.
unsafe impl Sync for Memory<'_> {}

impl<'a> Memory<'a> {
    const EMPTY: Self =
        Self { bytes: NonNull::slice_from_raw_parts(NonNull::dangling(), 0), export: PhantomData };

    fn of(buffer: &'a PyBuffer<u8>) -> PyResult<Self> {
        let bytes = buffer
            .as_slice_ptr()
            .ok_or_else(|| PyValueError::new_err("the buffers of a column must be contiguous"))?;
        Ok(Self { bytes, export: PhantomData })
    }

    /// Returns a part of the bytes, or `None` for a span outside them.
    fn part(self, span: Range<usize>) -> Option<Self> {
        if span.start > span.end || span.end > self.bytes.len() {
            return None;
        }
        // SAFETY: the start is inside the memory or at its end.
        let start = unsafe { self.bytes.cast::<u8>().add(span.start) };
        let bytes = NonNull::slice_from_raw_parts(start, span.end - span.start);
        Some(Self { bytes, export: PhantomData })
    }

    /// Replaces the contents of `copy` with the bytes.
    fn copy_to(self, copy: &mut Vec<u8>) -> bpe_core::Result<()> {
        let length = self.bytes.len();
        copy.clear();
        reserve(copy, length)?;
        // SAFETY: both pointers are valid for `length` bytes, the second points to memory owned
        // here, and all its bytes are written.
        unsafe {
            ptr::copy_nonoverlapping(self.bytes.cast().as_ptr(), copy.as_mut_ptr(), length);
            copy.set_len(length);
        }
        Ok(())
    }

    /// Returns the `index`-th group of `N` bytes.
    fn group<const N: usize>(self, index: usize) -> Option<[u8; N]> {
        let start = index.checked_mul(N)?;
        let part = self.part(start..start.checked_add(N)?)?;
        // SAFETY: the part has `N` bytes, and an array of bytes has no alignment.
        Some(unsafe { part.bytes.cast::<[u8; N]>().read() })
    }

    /// Returns the `index`-th offset, or `None` if it is negative or outside the memory.
    fn offset(self, index: usize, is_wide: bool) -> Option<usize> {
        if is_wide {
            usize::try_from(i64::from_ne_bytes(self.group(index)?)).ok()
        } else {
            usize::try_from(i32::from_ne_bytes(self.group(index)?)).ok()
        }
    }
}
