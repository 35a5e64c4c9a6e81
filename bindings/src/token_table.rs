//! The class `TokenTable`: the bytes of every id in one buffer.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use bpe_core::token_table::{TokenKind, TokenTable};
use pyo3::exceptions::{PyBufferError, PyIndexError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView};

use crate::errors::OrRaise;
use crate::objects::new_bytes;
use crate::pipeline::PyPipeline;
use crate::{ids, int_cache};

/// The bytes that each id adds after other ids, in one buffer, and the kind of each id.
///
/// ``table[id]`` is the bytes of an id, which are empty if there is no token; ``len(table)`` is one
/// more than the largest id. The table never changes.
#[pyclass(frozen, sequence, name = "TokenTable", module = "bpe_engine._core")]
pub struct PyTokenTable(Arc<TokenTable>);

fn name(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Absent => "absent",
        TokenKind::Ordinary => "ordinary",
        TokenKind::Special => "special",
    }
}

#[pymethods]
impl PyTokenTable {
    #[new]
    fn new(source: &Bound<'_, PyPipeline>) -> PyResult<Self> {
        Ok(Self(PyPipeline::current(source)?.token_table().or_raise()?.clone()))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        new_bytes(py, self.0.get(self.known(id)?))
    }

    /// Returns the kind of an id: ``"ordinary"``, ``"special"`` for a token that decoding can skip, or
    /// ``"absent"``.
    ///
    /// Raises:
    ///     IndexError: The id is negative, or the table ends before it.
    fn kind(&self, id: &Bound<'_, PyAny>) -> PyResult<&'static str> {
        Ok(name(self.0.kind(self.known(id)?)))
    }

    /// Returns the ids of one kind, in ascending order.
    ///
    /// Raises:
    ///     ValueError: The kind is unknown.
    fn ids<'py>(&self, py: Python<'py>, kind: &str) -> PyResult<Bound<'py, PyList>> {
        let kinds = [TokenKind::Absent, TokenKind::Ordinary, TokenKind::Special];
        let Some(kind) = kinds.into_iter().find(|&other| name(other) == kind) else {
            return Err(PyValueError::new_err(format!(
                "kind must be \"ordinary\", \"special\" or \"absent\", not {kind:?}"
            )));
        };
        let all = 0..self.0.len() as u32;
        let found: Vec<u32> = all.filter(|&id| self.0.kind(id) == kind).collect();
        int_cache::list(py, &found)
    }

    /// The concatenated bytes of all ids.
    #[getter]
    fn buffer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        self.view(py, TableField::Bytes)
    }

    /// The start of each id in `buffer`, and the end of the last id, as 32-bit numbers.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.view(py, TableField::Offsets)?.call_method1("cast", ("I",))
    }

    /// The kind of each id, as one byte: 0 absent, 1 ordinary, 2 special.
    #[getter]
    fn kinds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        self.view(py, TableField::Kinds)
    }

    fn __repr__(&self) -> String {
        format!("<TokenTable of {} ids>", self.0.len())
    }
}

impl PyTokenTable {
    /// Reads an id of the table. Raises `IndexError` for an id beyond its end.
    fn known(&self, id: &Bound<'_, PyAny>) -> PyResult<u32> {
        match ids::read_one(id) {
            Ok(id) if (id as usize) < self.0.len() => Ok(id),
            Err(error) if error.is_instance_of::<PyTypeError>(id.py()) => Err(error),
            _ => Err(PyIndexError::new_err(format!(
                "the table has the ids 0 to {}, not {id}",
                self.0.len() as i64 - 1
            ))),
        }
    }

    fn view<'py>(&self, py: Python<'py>, part: TableField) -> PyResult<Bound<'py, PyMemoryView>> {
        PyMemoryView::from(Bound::new(py, TableBuffer(self.0.clone(), part))?.as_any())
    }
}

#[derive(Clone, Copy)]
enum TableField {
    Bytes,
    Offsets,
    Kinds,
}

/// A part of a table as a read-only buffer.
#[pyclass(frozen, module = "bpe_engine._core")]
struct TableBuffer(Arc<TokenTable>, TableField);

#[pymethods]
impl TableBuffer {
    /// # Safety
    /// Called only by the interpreter, with a valid `view`.
    unsafe fn __getbuffer__(
        slf: PyRef<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let py = slf.py();
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        let TableBuffer(table, part) = &*slf;
        let (data, length) = match part {
            TableField::Bytes => (table.bytes().as_ptr(), table.bytes().len()),
            TableField::Offsets => (table.offsets().as_ptr().cast(), size_of_val(table.offsets())),
            TableField::Kinds => (table.kinds().as_ptr(), table.kinds().len()),
        };
        let length = ffi::Py_ssize_t::try_from(length)?;
        let data = data.cast::<c_void>().cast_mut();
        // SAFETY: `view` is valid; `data` points to `length` bytes of a table that never changes and
        // lives as long as `slf`. The call stores a new reference to `slf` in the view, which is
        // read-only.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), data, length, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(py)) }
    }

    /// # Safety
    /// Called only by the interpreter.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {}
}
