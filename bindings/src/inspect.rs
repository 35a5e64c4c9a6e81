//! Counts and searches texts, and checks ids: methods of `Engine`.

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::engine::PyEngine;
use crate::errors::OrRaise;
use crate::objects::{check_signals, new_list, new_named_span};
use crate::{gil, ids, text};

#[pymethods]
impl PyEngine {
    fn count(
        &self,
        text: &Bound<'_, PyAny>,
        limit: Option<usize>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let (engine, request) = self.ask(allowed_special, disallowed_special)?;
        let limit = limit.unwrap_or(usize::MAX);
        self.run(text, |text| engine.count(text, limit, &request))
    }

    /// Returns `(name, start, end)` of every special token's name in the text, in characters.
    fn find_special<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = text.py();
        let stored = text::read(text)?;
        let original = stored.utf8().or_raise()?;
        let engine = self.current();
        let found = gil::run(py, stored.size(), || engine.find_special(&original))?;
        let mut characters = text::CharacterSpans::new(&original);
        let list = new_list::<PyAny>(py, Vec::new())?;
        for (index, (name, span)) in found.into_iter().enumerate() {
            check_signals(py, index)?;
            list.append(new_named_span(py, name, characters.next(span))?)?;
        }
        Ok(list)
    }

    /// Returns true if decoding and encoding `tokens` gives `tokens`, with special tokens as
    /// special tokens and all else as ordinary text.
    fn is_canonical(&self, tokens: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (ids, engine) = (ids::read(tokens)?, self.current());
        gil::run(tokens.py(), ids.len(), || engine.is_canonical(&ids))
    }
}
