//! Truncates and chunks text: methods of `Engine`.

use bpe_core::request::Disallowed;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::engine::PyEngine;
use crate::errors::OrRaise;
use crate::objects::list_of_spans;
use crate::{gil, text};

/// How many bytes or code points of a text are read first, beside four for each token.
const FIRST: usize = 1024;

#[pymethods]
impl PyEngine {
    /// Returns how many characters a prefix or suffix of at most `max_tokens` tokens has.
    ///
    /// Reads only as much of the text as is needed, unless it is searched for disallowed names.
    fn truncate(
        &self,
        text: &Bound<'_, PyAny>,
        max_tokens: usize,
        from_left: bool,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let (engine, request) = self.ask(allowed_special, disallowed_special)?;
        let py = text.py();
        let all = text::read(text)?;
        let mut size = match request.disallowed {
            Disallowed::None => max_tokens.saturating_mul(4).saturating_add(FIRST),
            _ => all.size(),
        };
        loop {
            let part = if from_left { all.last(size) } else { all.first(size) };
            let utf8 = part.utf8().or_raise()?;
            let kept = gil::run(py, part.size(), || match from_left {
                _ if size < all.size() => {
                    engine.truncate_part(&utf8, max_tokens, from_left, &request)
                }
                false => Ok(Some(0..engine.truncate(&utf8, max_tokens, &request)?)),
                true => {
                    let start = engine.truncate_left(&utf8, max_tokens, &request)?;
                    Ok(Some(start..utf8.len()))
                }
            })?;
            if let Some(kept) = kept {
                let (start, end) = text::CharacterSpans::new(&utf8).next(kept);
                return Ok(end - start);
            }
            size = size.saturating_mul(4);
        }
    }

    /// Returns `(start, end)`, in characters, of each chunk of the text.
    fn chunk<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        max_tokens: usize,
        overlap: usize,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (engine, request) = self.ask(allowed_special, disallowed_special)?;
        let py = text.py();
        let stored = text::read(text)?;
        let utf8 = stored.utf8().or_raise()?;
        let chunks =
            gil::run(py, stored.size(), || engine.chunk(&utf8, max_tokens, overlap, &request))?;
        let mut characters = text::CharacterSpans::new(&utf8);
        list_of_spans(py, chunks.into_iter().map(|chunk| characters.next(chunk)))
    }
}
