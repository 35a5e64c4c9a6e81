//! Passes token ids to numpy without a copy.

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;

use bpe_core::once::OnceBox;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::{buffer_pool, int_cache};

/// Vectors of at least this capacity are reused, so they keep their capacity.
const REUSED_CAPACITY: usize = 1 << 16;

/// Returns a numpy array of the ids. If numpy is missing, the error names `method`, and the method
/// `instead` that works without numpy.
pub fn array<'py>(
    py: Python<'py>,
    ids: Vec<u32>,
    method: &str,
    instead: &str,
) -> PyResult<Bound<'py, PyAny>> {
    // Looking up numpy's functions for every short text would take as long as its ids.
    static NUMPY: OnceBox<[Py<PyAny>; 2]> = OnceBox::new();
    let [from_buffer, dtype] = NUMPY.get_or_try_init(|| {
        let arguments = py.import("bpe_engine._arguments")?;
        let numpy = arguments.call_method1("numpy_for", (method, instead))?;
        let dtype = numpy.call_method1("dtype", ("uint32",))?;
        Ok::<_, PyErr>(Box::new([numpy.getattr("frombuffer")?.unbind(), dtype.unbind()]))
    })?;
    from_buffer.bind(py).call1((TokenBuffer::new(ids), dtype))
}

/// Token ids as a buffer for `numpy.frombuffer(buffer, dtype=numpy.uint32)`.
///
/// The memory is allocated for one call and belongs to the holder of the buffer, so it is writable:
/// no code here reads the memory again.
#[pyclass(frozen, module = "bpe_engine._core")]
pub struct TokenBuffer {
    ids: *mut u32,
    /// Number of ids.
    length: usize,
    /// Number of ids that fit into the memory.
    capacity: usize,
}

// SAFETY: the fields never change after `new`, and no code here touches the memory behind `ids`
// between `new` and `drop`. Python code that writes to it from several threads must synchronize, as
// with any writable buffer.
unsafe impl Send for TokenBuffer {}
// SAFETY: as above.
unsafe impl Sync for TokenBuffer {}

impl TokenBuffer {
    pub fn new(mut ids: Vec<u32>) -> Self {
        // Unused pages of large memory cost nothing, and large memory is reused.
        if ids.capacity() > 2 * ids.len() && ids.capacity() < REUSED_CAPACITY {
            ids.shrink_to_fit();
        }
        let mut ids = ManuallyDrop::new(ids);
        Self { ids: ids.as_mut_ptr(), length: ids.len(), capacity: ids.capacity() }
    }
}

impl Drop for TokenBuffer {
    fn drop(&mut self) {
        // SAFETY: `new` took pointer, length and capacity from a vector that is freed only here.
        // Exports hold a reference to this object, so all exports are released.
        buffer_pool::IDS.give(unsafe { Vec::from_raw_parts(self.ids, self.length, self.capacity) });
    }
}

#[pymethods]
impl TokenBuffer {
    fn __len__(&self) -> usize {
        self.length
    }

    /// Returns the ids as a list.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        // SAFETY: `new` took pointer and length from a vector, whose memory lives as long as `self`.
        // Code that writes to an export of the buffer meanwhile must synchronize.
        int_cache::list(py, unsafe { std::slice::from_raw_parts(self.ids, self.length) })
    }

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
        let bytes = ffi::Py_ssize_t::try_from(slf.length * size_of::<u32>())?;
        let data = slf.ids.cast::<c_void>();
        // SAFETY: `view` is valid; `data` points to `bytes` writable bytes that live as long as
        // `slf`, and the call stores a new reference to `slf` in the view.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), data, bytes, 0, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(py)) }
    }

    /// # Safety
    /// Called only by the interpreter.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {}
}
