//! Aligns the ids of two tokenizers by the bytes of texts.

use std::ops::Range;

use bpe_core::align::{Aligned, Placed, place, unplaced};
use bpe_core::memory::{self, append, has_room, reserve};
use bpe_core::{Request, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::buffer::TokenBuffer;
use crate::engine::{Current, PyEngine};
use crate::errors::OrRaise;
use crate::objects::{collected, push};
use crate::text::Text;
use crate::{buffer_pool, ids, rows};

/// 64-bit numbers for numpy, as halves.
struct Numbers(Vec<u32>);

impl Numbers {
    /// Numbers for texts of `size` bytes in all.
    fn new(size: usize) -> Self {
        Self(buffer_pool::IDS.take(2 * buffer_pool::likely_ids(size)))
    }

    fn append(&mut self, numbers: impl ExactSizeIterator<Item = usize>) -> Result<()> {
        reserve(&mut self.0, 2 * numbers.len())?;
        for number in numbers {
            let bytes = (number as i64).to_ne_bytes();
            self.0.extend(bytes.as_chunks().0.iter().map(|&half| u32::from_ne_bytes(half)));
        }
        Ok(())
    }
}

/// The ids of one tokenizer for all texts, one after the other.
struct Side {
    ids: Vec<u32>,
    splits: Numbers,
    unplaced: Numbers,
}

impl Side {
    fn new(size: usize) -> Self {
        let ids = buffer_pool::IDS.take(buffer_pool::likely_ids(size));
        Self { ids, splits: Numbers::new(size), unplaced: Numbers::new(0) }
    }

    fn append(&mut self, (ids, spans): &Placed, splits: &[usize]) -> Result<()> {
        let base = self.ids.len();
        let unplaced = unplaced(spans)?;
        self.splits.append(splits.iter().skip(1).map(|split| base + split))?;
        self.unplaced.append(unplaced.iter().map(|index| base + index))?;
        append(&mut self.ids, ids)
    }
}

/// The groups of all texts.
struct Batch {
    a: Side,
    b: Side,
    spans: Numbers,
    groups: usize,
    rows: Numbers,
}

impl Batch {
    /// A batch for texts of `size` bytes in all.
    fn new(size: usize) -> Result<Self> {
        let mut batch = Self {
            a: Side::new(size),
            b: Side::new(size),
            spans: Numbers::new(2 * size),
            groups: 0,
            rows: Numbers::new(0),
        };
        for splits in [&mut batch.a.splits, &mut batch.b.splits, &mut batch.rows] {
            splits.append([0].into_iter())?;
        }
        Ok(batch)
    }

    fn append(&mut self, Aligned { a, b, groups }: &Aligned) -> Result<()> {
        self.a.append(a, &groups.a_splits)?;
        self.b.append(b, &groups.b_splits)?;
        reserve(&mut self.spans.0, 4 * groups.spans.len())?;
        for Range { start, end } in &groups.spans {
            self.spans.append([*start, *end].into_iter())?;
        }
        self.groups += groups.spans.len();
        self.rows.append([self.groups].into_iter())
    }
}

/// A text, and the ids of both sides that are there already.
type Row<'a> = (Text<'a>, [Option<&'a [u32]>; 2]);

/// Ids of each text that are there already, or `None`.
type Given<'py> = Option<Bound<'py, PyAny>>;

/// Names that may and that may not be special tokens.
type Names<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

fn read_ids(given: &Given<'_>, texts: usize) -> PyResult<Option<Vec<Vec<u32>>>> {
    let Some(given) = given else { return Ok(None) };
    let read = collected(given.try_iter()?.map(|row| ids::read(&row?)))?;
    if read.len() != texts {
        return Err(PyValueError::new_err(format!(
            "there are ids of {} texts for {texts} texts",
            read.len()
        )));
    }
    Ok(Some(read))
}

/// More bytes of memory than any alignment takes for each byte of text, for each text, and besides.
const BYTE: usize = 1024;
const ROW: usize = 4096;
const MORE: usize = 32 << 20;

/// Aligns the ids of two engines. Returns the ids of both sides; and as 64-bit numbers the splits of
/// both sides, the spans, the splits of texts, and the indices of ids without a place
/// of both sides.
#[pyfunction]
pub fn align_texts<'py>(
    a: &Bound<'py, PyEngine>,
    b: &Bound<'py, PyEngine>,
    texts: &Bound<'py, PyAny>,
    given: (Given<'py>, Given<'py>),
    num_threads: &Bound<'py, PyAny>,
    a_names: Names<'py>,
    b_names: Names<'py>,
) -> PyResult<([TokenBuffer; 2], [TokenBuffer; 6])> {
    let py = texts.py();
    let texts = collected(texts.try_iter()?)?;
    let given = [read_ids(&given.0, texts.len())?, read_ids(&given.1, texts.len())?];
    let sides = [a.get().ask(&a_names.0, &a_names.1)?, b.get().ask(&b_names.0, &b_names.1)?];
    let mut inputs: Vec<Row<'_>> = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let ids = given.each_ref().map(|side| side.as_ref().map(|rows| rows[index].as_slice()));
        push(&mut inputs, (rows::read_row(py, text, index)?, ids))?;
    }
    let size: usize = inputs.iter().map(|(text, _)| text.size()).sum();
    let mut batch = Batch::new(size).or_raise()?;
    let memory = size.saturating_mul(BYTE).saturating_add(inputs.len().saturating_mul(ROW) + MORE);
    // Places of tokens take small allocations, which another thread may leave no memory for.
    let threads = if has_room(memory) { rows::threads(num_threads)? } else { 1 };
    let row = |row: &Row<'_>, made: &mut Vec<Aligned>, _: &mut Vec<u8>| {
        memory::push(made, align_row(&sides, row)?)
    };
    rows::map(
        py,
        &inputs,
        |(text, _)| text.size(),
        threads,
        row,
        |rows| rows.items.iter().try_for_each(|aligned| batch.append(aligned)).or_raise(),
    )?;
    let Batch { a, b, spans, rows, .. } = batch;
    let numbers = [a.splits, b.splits, spans, rows, a.unplaced, b.unplaced];
    let ids = [a.ids, b.ids].map(TokenBuffer::new);
    Ok((ids, numbers.map(|numbers| TokenBuffer::new(numbers.0))))
}

fn align_row(sides: &[(Current<'_>, Request); 2], (text, ids): &Row<'_>) -> Result<Aligned> {
    let text = text.utf8()?;
    let [(a, one), (b, other)] = sides;
    Aligned::new(place(&**a, one, &text, ids[0])?, place(&**b, other, &text, ids[1])?)
}
