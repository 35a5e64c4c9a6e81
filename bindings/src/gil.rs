//! Runs work detached from the interpreter and checks for signals meanwhile.

use std::cell::{Cell, RefCell};

use bpe_core::polling;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::OrRaise;

/// Size of the work, in bytes of text or ids, above which other Python threads can run meanwhile.
/// Smaller work may take less time than detaching and attaching again.
pub const WORTH_DETACHING: usize = 4096;

/// Runs `work`, detached from the interpreter if `size` justifies it. On the main thread, signals
/// are handled meanwhile: Ctrl-C ends the work.
pub fn run<T: Send>(
    py: Python<'_>,
    size: usize,
    work: impl FnOnce() -> bpe_core::Result<T> + Send,
) -> PyResult<T> {
    if size < WORTH_DETACHING { work().or_raise() } else { detached(py, work)?.or_raise() }
}

/// Runs `job`, which has no result, like [`run`].
pub fn run_job(py: Python<'_>, size: usize, job: &mut (dyn FnMut() + Send)) -> PyResult<()> {
    run(py, size, || {
        job();
        Ok(())
    })
}

/// Runs `work` detached, like [`run`], for any type of result. `work` must end by itself once
/// [`polling::poll`] fails.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let (result, raised) = py.detach(|| {
        let signals = Signals::new();
        let result = polling::with_check(&|| signals.may_go_on(), work);
        (result, signals.raised.into_inner())
    });
    raised.map_or(Ok(result), Err)
}

/// Makes PyO3 initialize now. Otherwise PyO3 initializes when a thread first attaches, or asks for
/// the name or module of a type, and takes a lock while detached: a fork meanwhile would leave the
/// lock taken in the child.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    py.detach(|| Python::attach(|_| ()));
    let class = py.get_type::<PyString>();
    class.name().and(class.module()).and(class.fully_qualified_name()).map(drop)
}

/// Checks for signals, on the thread that handles them.
struct Signals {
    is_main_thread: Cell<Option<bool>>,
    /// Exception of a signal handler.
    raised: RefCell<Option<PyErr>>,
}

impl Signals {
    fn new() -> Self {
        Self { is_main_thread: Cell::new(None), raised: RefCell::new(None) }
    }

    /// Called while detached, after every [`polling::INTERVAL`] of work. Attaching takes a
    /// microsecond, or as long as another thread holds the interpreter.
    fn may_go_on(&self) -> bool {
        if self.is_main_thread.get() == Some(false) {
            return true;
        }
        if self.raised.borrow().is_some() {
            return false;
        }
        let result = Python::attach(|py| {
            if self.is_main_thread.get().is_none() {
                self.is_main_thread.set(Some(is_main_thread(py)?));
            }
            py.check_signals()
        });
        if let Err(error) = result {
            self.raised.replace(Some(error));
            return false;
        }
        true
    }
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    main.eq(threading.call_method0("get_ident")?)
}

/// Returns the work that this thread has reported so far, in bytes of text or the equivalent, so
/// that tests can measure work without a clock.
#[pyfunction]
pub fn work_done() -> u64 {
    polling::work_done()
}
