//! Methods of `CoreBPE` that split, count and search texts, and check ids.

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::core_bpe::CoreBpe;
use crate::errors::OrRaise;
use crate::objects::{check_signals, new_named_span, new_str};
use crate::{gil, ids, text};

#[pymethods]
impl CoreBpe {
    fn split<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let request = self.request(allowed_special, disallowed_special)?;
        let list = PyList::empty(text.py());
        let (pieces, mut failure) = (list.clone().unbind(), None);
        let result = self.run(text, |encoding, text| {
            encoding.split(text, &request, |text, batch| {
                // A batch of pieces becomes Python objects before the next batch is split.
                let append = |py: Python<'_>| {
                    let list = pieces.bind(py);
                    let mut texts = batch.iter().map(|piece| &text[piece.start..piece.end]);
                    texts.try_for_each(|text| list.append(new_str(py, text)?))
                };
                Python::attach(append).map_err(|error| {
                    failure = Some(error);
                    bpe_core::Error::Interrupted
                })
            })
        });
        failure.map_or(result, Err)?;
        Ok(list)
    }

    fn count(
        &self,
        text: &Bound<'_, PyAny>,
        limit: Option<usize>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let request = self.request(allowed_special, disallowed_special)?;
        let limit = limit.unwrap_or(usize::MAX);
        self.run(text, |encoding, text| encoding.count(text, limit, &request))
    }

    /// Returns `(name, start, end)` of every special token's name in the text, in characters.
    fn find_special<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = text.py();
        let stored = text::read(text)?;
        let original = stored.utf8().or_raise(py)?;
        let found = gil::run(py, stored.size(), || self.encoding().find_special(&original))?;
        let mut characters = text::CharacterSpans::new(&original);
        let list = PyList::empty(py);
        for (index, (name, span)) in found.into_iter().enumerate() {
            check_signals(py, index)?;
            list.append(new_named_span(py, name, characters.next(span))?)?;
        }
        Ok(list)
    }

    /// Returns true if decoding and encoding `tokens` gives `tokens`, with special tokens as
    /// special tokens and all else as ordinary text.
    fn is_canonical(&self, tokens: &Bound<'_, PyAny>) -> PyResult<bool> {
        let ids = ids::read(tokens)?;
        gil::run(tokens.py(), ids.len(), || self.encoding().is_canonical(&ids))
    }
}
