//! Reports the progress of long work to a Python callback and checks for Ctrl-C.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Reports progress and checks for Ctrl-C a few times a second.
pub struct ProgressReporter {
    callback: Option<Py<PyAny>>,
    last: Instant,
    failure: Option<PyErr>,
}

impl ProgressReporter {
    const EVERY: Duration = Duration::from_millis(100);

    pub fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, last: Instant::now(), failure: None }
    }

    /// Reports progress if a report is due, and only then attaches to the interpreter.
    pub fn report(&mut self, done: usize, total: usize) -> ControlFlow<()> {
        if self.last.elapsed() < Self::EVERY {
            return ControlFlow::Continue(());
        }
        self.last = Instant::now();
        let result = Python::attach(|py| {
            py.check_signals()?;
            if let Some(callback) = &self.callback {
                callback.call1(py, (done, total))?;
            }
            Ok(())
        });
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Returns the exception that ended the work.
    pub fn failure(self) -> PyErr {
        self.failure.unwrap_or_else(|| PyValueError::new_err("the work was interrupted"))
    }
}
