//! When the interpreter is let go.

use pyo3::prelude::*;

/// Bytes of text (or ids) above which other Python threads may run meanwhile. Below it the work
/// takes less time than handing the interpreter over and getting it back may take.
const WORTH_DETACHING: usize = 4096;

/// Runs `work`, without holding the interpreter if `size` says that it takes a while.
pub fn run<T: Send>(py: Python<'_>, size: usize, work: impl FnOnce() -> T + Send) -> T {
    if size < WORTH_DETACHING { work() } else { py.detach(work) }
}
