//! When the interpreter is let go, and when it is asked for signals meanwhile.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use bpe_core::polling;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::OrRaise;

/// Bytes of text (or ids) above which other Python threads may run meanwhile. Below it the work
/// takes less time than handing the interpreter over and getting it back may take.
const WORTH_DETACHING: usize = 4096;

/// Runs `work`, without holding the interpreter if `size` says that it takes a while. On the main
/// thread, signals that arrive meanwhile are handled: Ctrl-C ends the work.
pub fn run<T: Send>(
    py: Python<'_>,
    size: usize,
    work: impl FnOnce() -> bpe_core::Result<T> + Send,
) -> PyResult<T> {
    if size < WORTH_DETACHING { work().or_raise(py) } else { detached(py, work)?.or_raise(py) }
}

/// The same for work that answers with something else, and ends early by itself when
/// [`polling::poll`] fails.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let (result, raised) = py.detach(|| {
        let signals = Signals::new();
        let result = polling::with_check(&|| signals.may_go_on(), work);
        (result, signals.raised.into_inner())
    });
    raised.map_or(Ok(result), Err)
}

/// Has PyO3 make now what it would make behind a lock without holding the interpreter, when a thread
/// first attaches, or asks for the name of a type: a process that forks meanwhile would leave that
/// lock locked in its child.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    py.detach(|| Python::attach(|_| ()));
    py.get_type::<PyString>().name().map(drop)
}

/// Looks for signals now and then, if this is the thread that handles them.
struct Signals {
    /// When it last looked; at the first call, which comes after some work, the time starts.
    last: Cell<Option<Instant>>,
    is_main_thread: Cell<Option<bool>>,
    /// What a handler raised.
    raised: RefCell<Option<PyErr>>,
}

impl Signals {
    /// Often enough for a person; attaching to the interpreter takes a microsecond, or as long as
    /// another thread holds it.
    const EVERY: Duration = Duration::from_millis(50);

    fn new() -> Self {
        Self { last: Cell::new(None), is_main_thread: Cell::new(None), raised: RefCell::new(None) }
    }

    /// Called without the interpreter.
    fn may_go_on(&self) -> bool {
        if self.is_main_thread.get() == Some(false) {
            return true;
        }
        let Some(last) = self.last.get() else {
            self.last.set(Some(Instant::now()));
            return true;
        };
        if last.elapsed() < Self::EVERY {
            return true;
        }
        let result = Python::attach(|py| {
            if self.is_main_thread.get().is_none() {
                self.is_main_thread.set(Some(is_main_thread(py)?));
            }
            py.check_signals()
        });
        self.last.set(Some(Instant::now()));
        match result {
            Ok(()) => true,
            Err(error) => {
                self.raised.replace(Some(error));
                false
            }
        }
    }
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    main.eq(threading.call_method0("get_ident")?)
}
