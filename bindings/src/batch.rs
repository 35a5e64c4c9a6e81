//! Many texts on many threads. The threads live as long as the call: none is left to hang after
//! a fork, and none waits for another call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::encoding::CoreBpe;
use crate::special::Rules;
use crate::{ids, ints, text};

/// Bytes (or ids) that are worth a thread of their own; starting one costs some 20 microseconds.
const WORTH_A_THREAD: usize = 16 * 1024;

/// The ids of each text.
pub fn encode<'py>(
    core: &CoreBpe,
    texts: &Bound<'py, PyAny>,
    num_threads: &Bound<'py, PyAny>,
    rules: &Rules,
) -> PyResult<Bound<'py, PyList>> {
    let py = texts.py();
    let threads = threads(num_threads)?;
    // Holding the objects keeps their text alive, whatever other threads do to the list.
    let texts = texts.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let texts = texts.iter().map(text::read).collect::<PyResult<Vec<_>>>()?;
    let size = texts.iter().map(|text| text.len()).sum();
    let results = py.detach(|| map(&texts, threads, size, |text| core.ids(text, rules)));
    let lists = results
        .into_iter()
        .map(|ids| ints::list(py, &ids.map_err(|stop| stop.into_python(py))?))
        .collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, lists)
}

/// The bytes of each sequence of ids.
pub fn decode(
    core: &CoreBpe,
    batch: &Bound<'_, PyAny>,
    num_threads: &Bound<'_, PyAny>,
) -> PyResult<Vec<bpe_core::Result<Vec<u8>>>> {
    let threads = threads(num_threads)?;
    let batch = batch.try_iter()?.map(|ids| ids::read(&ids?)).collect::<PyResult<Vec<_>>>()?;
    let size = batch.iter().map(Vec::len).sum();
    let work = || map(&batch, threads, size, |ids| core.encoding().decode_bytes(ids));
    Ok(num_threads.py().detach(work))
}

/// The argument `num_threads`; `None` leaves the number to the machine.
fn threads(num_threads: &Bound<'_, PyAny>) -> PyResult<usize> {
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

/// `work` on every item, on at most `threads` threads and no more than the machine has. `size`
/// says how much there is to do. Results are in the order of the items.
fn map<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    size: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(cores).min(items.len()).min(size / WORTH_A_THREAD + 1);
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    // Small shares, so that a thread that got the long texts does not keep the others waiting.
    let share = (items.len() / (threads * 8)).clamp(1, 256);
    let next = AtomicUsize::new(0);
    let parts = Mutex::new(Vec::new());
    let run = || {
        loop {
            let from = next.fetch_add(share, Ordering::Relaxed);
            if from >= items.len() {
                return;
            }
            let to = (from + share).min(items.len());
            let results: Vec<R> = items[from..to].iter().map(&work).collect();
            parts.lock().unwrap_or_else(PoisonError::into_inner).push((from, results));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // A thread that cannot be started is one helper less; this thread does its share.
            let _ = std::thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    let mut parts = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
    parts.sort_unstable_by_key(|&(from, _)| from);
    parts.into_iter().flat_map(|(_, results)| results).collect()
}
