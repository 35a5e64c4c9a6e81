//! Encodes and decodes batches on several threads.

use std::ops::Range;

use bpe_core::memory::reserve;
use bpe_core::threads::{cores, in_order};
use bpe_core::{Error, Request, Result};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::columns::{Column, ColumnText};
use crate::errors::{OrRaise, to_python};
use crate::gil;
use crate::objects::{collected, push};
use crate::shared::{Current, Shared};
use crate::text::{self, Text};

/// Bytes (or ids) that justify another thread; starting a thread takes about 20 microseconds.
const WORTH_A_THREAD: usize = 16 * 1024;

/// Range of sizes for a share of the work, in bytes (or ids). Small, so that results are still in
/// the processor's cache when they become Python objects, and threads end at about the same time.
const SHARE: Range<usize> = 4 * 1024..64 * 1024;

/// Concatenated rows of a share.
pub struct Rows<T> {
    pub items: Vec<T>,
    /// End of each row.
    pub ends: Vec<usize>,
    /// Scratch buffer for the input of a row.
    scratch: Vec<u8>,
    /// The error of the row after these rows, if that row failed.
    error: Option<Error>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { items: Vec::new(), ends: Vec::new(), scratch: Vec::new(), error: None }
    }
}

impl<T> Rows<T> {
    pub fn rows(&self) -> impl Iterator<Item = &[T]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.items[start..end])
    }

    /// Fills the rows with `row`, up to the first error.
    fn fill<I>(&mut self, inputs: &[I], row: impl RowOf<I, T>) {
        self.items.clear();
        self.ends.clear();
        self.error = None;
        for input in inputs {
            if let Err(error) = row(input, &mut self.items, &mut self.scratch) {
                self.error = Some(error);
                return;
            }
            if let Err(error) = reserve(&mut self.ends, 1) {
                self.error = Some(error);
                return;
            }
            self.ends.push(self.items.len());
        }
    }
}

/// Appends the row of an input. The last argument is a scratch buffer.
pub trait RowOf<I, T>: Fn(&I, &mut Vec<T>, &mut Vec<u8>) -> Result<()> {}

impl<I, T, F: Fn(&I, &mut Vec<T>, &mut Vec<u8>) -> Result<()>> RowOf<I, T> for F {}

/// A part of a batch. Owns the objects, to keep their text alive even if other threads change the
/// list.
pub enum TextBatch<'py> {
    Objects(Vec<Bound<'py, PyAny>>),
    Column(Column),
}

impl<'py> TextBatch<'py> {
    pub fn objects(texts: &Bound<'py, PyAny>) -> PyResult<Self> {
        collected(text::items(texts)?).map(Self::Objects)
    }

    /// Reads a list of parts: tuples with the buffers of a column, or iterables of `str`.
    pub fn read_all(parts: &Bound<'py, PyList>) -> PyResult<Vec<Self>> {
        let mut count = 0;
        let read = |part: Bound<'py, PyAny>| {
            let part = match part.cast::<PyTuple>() {
                Ok(buffers) => Self::Column(Column::read(buffers, count)?),
                Err(_) => Self::objects(&part)?,
            };
            count += match &part {
                Self::Objects(objects) => objects.len(),
                Self::Column(column) => column.len(),
            };
            Ok(part)
        };
        collected(parts.iter().map(read))
    }
}

/// One text of a batch.
enum RowText<'a> {
    Str(Text<'a>),
    Column(ColumnText<'a>),
}

impl RowText<'_> {
    fn size(&self) -> usize {
        match self {
            Self::Str(text) => text.size(),
            Self::Column(text) => text.size(),
        }
    }
}

/// Encodes the texts of parts with a pipeline and its request. `take` receives the ids share by
/// share, and the total size of the texts.
pub fn encode_parts<'py>(
    native: &Shared,
    parts: &[TextBatch<'py>],
    num_threads: &Bound<'py, PyAny>,
    (pipeline, request): &(Current<'_>, Request),
    mut take: impl FnMut(&Rows<u32>, usize) -> PyResult<()>,
) -> PyResult<()> {
    let py = num_threads.py();
    let threads = threads(num_threads)?;
    let mut texts: Vec<RowText<'_>> = Vec::new();
    for part in parts {
        match part {
            TextBatch::Objects(objects) => {
                reserve(&mut texts, objects.len()).or_raise()?;
                for object in objects {
                    texts.push(RowText::Str(read_row(py, object, texts.len())?));
                }
            }
            TextBatch::Column(column) => {
                reserve(&mut texts, column.len()).or_raise()?;
                texts.extend(column.texts()?.map(RowText::Column));
            }
        }
    }
    let size = texts.iter().map(|text| text.size()).sum();
    native.prefault_vocabulary(size);
    let row = |text: &RowText<'_>, ids: &mut Vec<u32>, scratch: &mut Vec<u8>| match text {
        RowText::Str(text) => pipeline.encode_text(&text.utf8()?, request, ids),
        RowText::Column(text) => pipeline.encode_text(text.utf8(scratch)?, request, ids),
    };
    map(py, &texts, |text| text.size(), threads, row, |rows| take(rows, size))
}

/// Returns the text of a row. An error names the row.
pub fn read_row<'a>(py: Python<'_>, text: &'a Bound<'_, PyAny>, row: usize) -> PyResult<Text<'a>> {
    text::read(text).map_err(|error| in_row(py, row, error))
}

/// Names the row in an error about a text.
pub fn in_row(py: Python<'_>, row: usize, error: PyErr) -> PyErr {
    let message = || format!("row {row}: {}", error.value(py));
    if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(message())
    } else if error.is_instance_of::<PyValueError>(py) {
        PyValueError::new_err(message())
    } else {
        error
    }
}

/// Decodes slices of ids with `decode`, which appends bytes. `take` receives the bytes of each
/// slice.
pub fn decode_rows(
    py: Python<'_>,
    rows: &[&[u32]],
    threads: usize,
    decode: impl Fn(&[u32], &mut Vec<u8>) -> Result<()> + Sync,
    mut take: impl FnMut(&[u8]) -> PyResult<()>,
) -> PyResult<()> {
    let row = |ids: &&[u32], bytes: &mut Vec<u8>, _: &mut Vec<u8>| decode(ids, bytes);
    let take = |rows: &Rows<u8>| rows.rows().try_for_each(&mut take);
    map(py, rows, |ids| ids.len(), threads, row, take)
}

/// Makes a row from every input, on at most `threads` threads and one per core. `take` receives the
/// rows share by share, in order, while the interpreter is held.
pub fn map<I: Sync, T: Send>(
    py: Python<'_>,
    inputs: &[I],
    size: impl Fn(&I) -> usize,
    threads: usize,
    row: impl RowOf<I, T> + Sync,
    mut take: impl FnMut(&Rows<T>) -> PyResult<()>,
) -> PyResult<()> {
    let total: usize = inputs.iter().map(&size).sum();
    let threads = threads.min(cores()).min(total / WORTH_A_THREAD + 1);
    let share = (total / (threads * 8)).clamp(SHARE.start, SHARE.end);
    let shares = shares(inputs.iter().map(size), share)?;
    let work = |share: usize, rows: &mut Rows<T>| rows.fill(&inputs[shares[share].clone()], &row);
    let aside = |job: &mut (dyn FnMut() + Send)| {
        gil::run_job(py, total, job)?;
        // Shares are short, so signals can wait for the end of a share.
        py.check_signals()
    };
    in_order(shares.len(), threads, work, aside, |rows| {
        take(rows)?;
        rows.error.clone().map_or(Ok(()), |error| Err(to_python(error)))
    })
}

/// Groups inputs of these sizes into shares of at least `share` bytes, except the last.
pub fn shares(sizes: impl Iterator<Item = usize>, share: usize) -> PyResult<Vec<Range<usize>>> {
    /// Fixed cost of an input, in bytes of text.
    const EACH: usize = 16;
    let mut shares = Vec::new();
    let (mut start, mut end, mut sum) = (0, 0, 0);
    for size in sizes {
        end += 1;
        sum += size + EACH;
        if sum >= share {
            push(&mut shares, start..end)?;
            (start, sum) = (end, 0);
        }
    }
    if start < end {
        push(&mut shares, start..end)?;
    }
    Ok(shares)
}

/// Reads the argument `num_threads`; `None` means one per core.
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
