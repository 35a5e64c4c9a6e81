//! When the interpreter is let go.

use std::cell::Cell;
use std::time::{Duration, Instant};

use bpe_core::interrupt::with_check;
use pyo3::prelude::*;

/// Bytes of text (or ids) above which other Python threads may run meanwhile. Below it the work
/// takes less time than handing the interpreter over and getting it back may take.
const WORTH_DETACHING: usize = 4096;

/// Runs `work`, without holding the interpreter if `size` says that it takes a while.
pub fn run<T: Send>(py: Python<'_>, size: usize, work: impl FnOnce() -> T + Send) -> T {
    if size < WORTH_DETACHING { work() } else { py.detach(work) }
}

/// Runs long work of the core without holding the interpreter, and looks for signals meanwhile:
/// the work ends with [`bpe_core::Error::Interrupted`] when one raises.
pub fn run_interruptible<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    const EVERY: Duration = Duration::from_millis(100);
    py.detach(|| {
        let last = Cell::new(Instant::now());
        let check = || {
            if last.get().elapsed() < EVERY {
                return true;
            }
            last.set(Instant::now());
            Python::attach(|py| py.check_signals()).is_ok()
        };
        with_check(&check, work)
    })
}
