//! Texts cut to a number of tokens.

use std::ops::Range;

use bpe_core::Encoding;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::core_bpe::CoreBpe;
use crate::errors::OrRaise;
use crate::objects::list_of_spans;
use crate::{gil, text};

impl CoreBpe {
    /// Spans of the text in characters, from those in bytes that `cut` finds.
    fn spans(
        &self,
        text: &Bound<'_, PyAny>,
        cut: impl FnOnce(&Encoding, &str) -> bpe_core::Result<Vec<Range<usize>>> + Send,
    ) -> PyResult<Vec<(usize, usize)>> {
        let py = text.py();
        let stored = text::read(text)?;
        let original = stored.utf8().or_raise(py)?;
        let spans = gil::run(py, stored.size(), || cut(self.encoding(), &original))?;
        let mut characters = text::CharacterSpans::new(text, &original)?;
        Ok(spans.into_iter().map(|span| characters.next(span)).collect())
    }
}

#[pymethods]
impl CoreBpe {
    /// `(start, end)`, in characters, of the longest prefix or suffix of the text that has at most
    /// `max_tokens` tokens.
    fn truncate(
        &self,
        text: &Bound<'_, PyAny>,
        max_tokens: usize,
        from_left: bool,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<(usize, usize)> {
        let request = self.request(allowed_special, disallowed_special)?;
        let spans = self.spans(text, |encoding, text| {
            Ok(vec![if from_left {
                encoding.truncate_left(text, max_tokens, &request)?..text.len()
            } else {
                0..encoding.truncate(text, max_tokens, &request)?
            }])
        })?;
        Ok(spans[0])
    }

    /// `(start, end)`, in characters, of each chunk of the text.
    fn chunk<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        max_tokens: usize,
        overlap: usize,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let request = self.request(allowed_special, disallowed_special)?;
        let spans =
            self.spans(text, |encoding, text| encoding.chunk(text, max_tokens, overlap, &request))?;
        list_of_spans(text.py(), spans.into_iter())
    }
}
