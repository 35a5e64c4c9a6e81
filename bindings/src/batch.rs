//! Many texts on many threads.

use std::ops::Range;

use bpe_core::threads::{cores, in_order};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyString};

use crate::buffer::TokenBuffer;
use crate::encoding::{CoreBpe, Stop};
use crate::errors::to_python;
use crate::special::Rules;
use crate::strings::decode_utf8;
use crate::text::{self, Text};
use crate::{buffer_pool, gil, ids, int_cache};

/// Bytes (or ids) that are worth a thread of their own; starting one takes some 20 microseconds.
const WORTH_A_THREAD: usize = 16 * 1024;

/// How much a share of the work has: little, so that its results are still in a near cache when
/// Python objects are made of them, and that no thread is left with much when the others end.
const SHARE: Range<usize> = 4 * 1024..64 * 1024;

/// The ids of each text, as lists.
pub fn encode<'py>(
    core: &CoreBpe,
    texts: &Bound<'py, PyAny>,
    num_threads: &Bound<'py, PyAny>,
    rules: &Rules,
) -> PyResult<Bound<'py, PyList>> {
    let py = texts.py();
    let mut lists = Vec::new();
    encode_each(core, texts, num_threads, rules, |part, _| {
        int_cache::append_lists(py, part.rows(), &mut lists)
    })?;
    PyList::new(py, lists)
}

/// The ids of all texts one after the other, and where each begins and the last one ends, as the
/// bytes of 64-bit numbers.
pub fn encode_flat<'py>(
    core: &CoreBpe,
    texts: &Bound<'py, PyAny>,
    num_threads: &Bound<'py, PyAny>,
    rules: &Rules,
) -> PyResult<(TokenBuffer, Bound<'py, PyByteArray>)> {
    let mut ids = Vec::new();
    let mut splits = 0i64.to_ne_bytes().to_vec();
    encode_each(core, texts, num_threads, rules, |part, size| {
        if ids.capacity() == 0 {
            ids = buffer_pool::IDS.take(buffer_pool::likely_ids(size));
        }
        for &end in &part.ends {
            splits.extend_from_slice(&((ids.len() + end) as i64).to_ne_bytes());
        }
        ids.extend_from_slice(&part.items);
        Ok(())
    })?;
    Ok((TokenBuffer::new(ids), PyByteArray::new(texts.py(), &splits)))
}

/// The text of each sequence of ids.
pub fn decode<'py>(
    core: &CoreBpe,
    batch: &Bound<'py, PyAny>,
    num_threads: &Bound<'py, PyAny>,
    errors: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyList>> {
    let py = batch.py();
    let mut texts = Vec::new();
    decode_each(core, batch, num_threads, |bytes| {
        texts.push(decode_utf8(py, bytes, errors)?);
        Ok(())
    })?;
    PyList::new(py, texts)
}

/// The bytes of each sequence of ids.
pub fn decode_bytes<'py>(
    core: &CoreBpe,
    batch: &Bound<'py, PyAny>,
    num_threads: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyList>> {
    let py = batch.py();
    let mut texts = Vec::new();
    decode_each(core, batch, num_threads, |bytes| {
        texts.push(PyBytes::new(py, bytes));
        Ok(())
    })?;
    PyList::new(py, texts)
}

/// Rows of a share, one after the other.
struct Part<T, E> {
    items: Vec<T>,
    /// Where each row ends.
    ends: Vec<usize>,
    /// What stopped the row after the last.
    error: Option<E>,
}

impl<T, E> Default for Part<T, E> {
    fn default() -> Self {
        Self { items: Vec::new(), ends: Vec::new(), error: None }
    }
}

impl<T, E> Part<T, E> {
    fn rows(&self) -> impl Iterator<Item = &[T]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.items[start..end])
    }

    /// Makes rows with `row`, up to the first error.
    fn fill<I>(&mut self, inputs: &[I], row: impl Fn(&I, &mut Vec<T>) -> Result<(), E>) {
        self.items.clear();
        self.ends.clear();
        self.error = None;
        for input in inputs {
            if let Err(error) = row(input, &mut self.items) {
                self.error = Some(error);
                return;
            }
            self.ends.push(self.items.len());
        }
    }
}

/// `take` gets the ids share by share, and the size of all texts.
fn encode_each(
    core: &CoreBpe,
    texts: &Bound<'_, PyAny>,
    num_threads: &Bound<'_, PyAny>,
    rules: &Rules,
    mut take: impl FnMut(&Part<u32, Stop>, usize) -> PyResult<()>,
) -> PyResult<()> {
    let py = texts.py();
    let threads = threads(num_threads)?;
    // Holding the objects keeps their text alive, whatever other threads do to the list.
    let texts = texts.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let texts: Vec<Text<'_>> = texts.iter().map(text::read).collect::<PyResult<_>>()?;
    let size = texts.iter().map(|text| text.size()).sum();
    core.expect(size);
    let row = |text: &Text<'_>, ids: &mut Vec<u32>| core.append_ids(&text.utf8(), rules, ids);
    map(
        py,
        &texts,
        |text| text.size(),
        threads,
        row,
        |part| {
            take(part, size)?;
            part.error.as_ref().map_or(Ok(()), |stop| Err(stop.as_python(py)))
        },
    )
}

fn decode_each(
    core: &CoreBpe,
    batch: &Bound<'_, PyAny>,
    num_threads: &Bound<'_, PyAny>,
    mut take: impl FnMut(&[u8]) -> PyResult<()>,
) -> PyResult<()> {
    let py = batch.py();
    let threads = threads(num_threads)?;
    let batch = batch.try_iter()?.map(|ids| ids::read(&ids?)).collect::<PyResult<Vec<_>>>()?;
    let row = |ids: &Vec<u32>, bytes: &mut Vec<u8>| core.encoding().append_bytes(ids, bytes);
    map(py, &batch, Vec::len, threads, row, |part| {
        part.rows().try_for_each(&mut take)?;
        part.error.clone().map_or(Ok(()), |error| Err(to_python(py, error)))
    })
}

/// Makes a row of every input, on at most `threads` threads and no more than the machine has.
/// `take` gets the rows share by share, in the order of the inputs, while the interpreter is held.
fn map<I: Sync, T: Send, E: Send>(
    py: Python<'_>,
    inputs: &[I],
    size: impl Fn(&I) -> usize,
    threads: usize,
    row: impl Fn(&I, &mut Vec<T>) -> Result<(), E> + Sync,
    take: impl FnMut(&Part<T, E>) -> PyResult<()>,
) -> PyResult<()> {
    let total: usize = inputs.iter().map(&size).sum();
    let threads = threads.min(cores()).min(total / WORTH_A_THREAD + 1);
    let share = (total / (threads * 8)).clamp(SHARE.start, SHARE.end);
    let shares = shares(inputs.iter().map(size), share);
    let work =
        |share: usize, part: &mut Part<T, E>| part.fill(&inputs[shares[share].clone()], &row);
    in_order(shares.len(), threads, work, |job| gil::run(py, total, job), take)
}

/// Inputs of these sizes in shares of `share` or a little more.
fn shares(sizes: impl Iterator<Item = usize>, share: usize) -> Vec<Range<usize>> {
    /// What an input costs beside its size.
    const EACH: usize = 16;
    let mut shares = Vec::new();
    let (mut start, mut end, mut sum) = (0, 0, 0);
    for size in sizes {
        end += 1;
        sum += size + EACH;
        if sum >= share {
            shares.push(start..end);
            (start, sum) = (end, 0);
        }
    }
    if start < end {
        shares.push(start..end);
    }
    shares
}

/// The argument `num_threads`; `None` leaves the number to the machine.
pub fn threads(num_threads: &Bound<'_, PyAny>) -> PyResult<usize> {
    if num_threads.is_none() {
        return Ok(usize::MAX);
    }
    if num_threads.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("num_threads must be an int, not str"));
    }
    match num_threads.extract::<f64>()? {
        threads if threads > 0.0 => Ok((threads as usize).max(1)),
        threads => {
            Err(PyValueError::new_err(format!("num_threads must be greater than 0, not {threads}")))
        }
    }
}
