//! Token ids into numpy, without a copy.

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::buffer_pool;

/// How many ids are many.
const LARGE: usize = 1 << 16;

/// Token ids as memory that `numpy.frombuffer(buffer, dtype=numpy.uint32)` takes over.
///
/// The memory is made for one call and belongs to whoever holds the buffer, so it is writable:
/// nothing in the engine reads it again.
#[pyclass(frozen, module = "bpe_engine._core")]
pub struct TokenBuffer {
    ids: *mut u32,
    /// How many ids.
    length: usize,
    /// How many the memory has room for.
    capacity: usize,
}

// SAFETY: the fields never change after `new`, and the engine does not touch the memory that
// `ids` points to between `new` and `drop`. Python code that writes to it from several threads
// answers for that itself, as with any writable buffer.
unsafe impl Send for TokenBuffer {}
// SAFETY: as above.
unsafe impl Sync for TokenBuffer {}

impl TokenBuffer {
    pub fn new(mut ids: Vec<u32>) -> Self {
        // Of large memory only what was touched counts, and it is used again.
        if ids.capacity() > 2 * ids.len() && ids.capacity() < LARGE {
            ids.shrink_to_fit();
        }
        let mut ids = ManuallyDrop::new(ids);
        Self { ids: ids.as_mut_ptr(), length: ids.len(), capacity: ids.capacity() }
    }
}

impl Drop for TokenBuffer {
    fn drop(&mut self) {
        // SAFETY: `new` took pointer, length and capacity from a vector, and nobody else frees
        // it. Exports hold a reference to this object, so none is left.
        buffer_pool::IDS.give(unsafe { Vec::from_raw_parts(self.ids, self.length, self.capacity) });
    }
}

#[pymethods]
impl TokenBuffer {
    fn __len__(&self) -> usize {
        self.length
    }

    /// # Safety
    /// Called by the interpreter only, with a valid `view`.
    unsafe fn __getbuffer__(
        slf: PyRef<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let py = slf.py();
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        let bytes = ffi::Py_ssize_t::try_from(slf.length * size_of::<u32>())?;
        let data = slf.ids.cast::<c_void>();
        // SAFETY: `view` is valid; `data` points to `bytes` writable bytes that live as long as
        // `slf`, and the call stores a new reference to `slf` in the view.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), data, bytes, 0, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(py)) }
    }

    /// # Safety
    /// Called by the interpreter only.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {}
}
