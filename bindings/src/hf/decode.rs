//! Ids to text.

use bpe_core::memory::reserve;
use bpe_core::threads::{cores, in_order};
use pyo3::prelude::*;

use super::OrRaise;
use super::input::items;
use super::tokenizer::{HfTokenizer, SHARE, aside};
use crate::errors::OrRaise as _;
use crate::objects::collected;
use crate::{ids, rows};

#[pymethods]
impl HfTokenizer {
    /// The text of ids. Ids of no token are left out.
    ///
    /// Args:
    ///     ids: The ids.
    ///     skip_special_tokens: Whether special tokens are left out.
    #[pyo3(signature = (ids, skip_special_tokens=true))]
    fn decode(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        skip_special_tokens: bool,
    ) -> PyResult<String> {
        let ids = ids::read(ids)?;
        let tokenizer = self.current();
        aside(py, ids.len(), || tokenizer.decode(&ids, skip_special_tokens))?.or_raise()
    }

    /// The text of each sequence of ids.
    #[pyo3(signature = (sequences, skip_special_tokens=true, num_threads=None))]
    fn decode_batch(
        &self,
        py: Python<'_>,
        sequences: &Bound<'_, PyAny>,
        skip_special_tokens: bool,
        num_threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<String>> {
        let sequences = items(sequences)?.map(|ids| ids::read(&ids?));
        let sequences = collected(py, sequences)?;
        let tokenizer = self.current();
        let threads = num_threads.map_or(Ok(usize::MAX), rows::threads)?;
        let total: usize = sequences.iter().map(Vec::len).sum();
        let share = 256;
        let shares = sequences.len().div_ceil(share);
        let mut texts = Vec::new();
        reserve(&mut texts, sequences.len()).or_raise(py)?;
        let decode = |index: usize, made: &mut Vec<bpe_hf::Result<String>>| {
            made.clear();
            let part = sequences.iter().skip(index * share).take(share);
            made.extend(part.map(|ids| tokenizer.decode(ids, skip_special_tokens)));
        };
        let threads = threads.min(cores()).min(total / SHARE + 1);
        in_order(
            shares,
            threads,
            decode,
            |job| aside(py, total, job),
            |made| {
                for text in made {
                    texts.push(text.clone().or_raise()?);
                }
                Ok::<(), PyErr>(())
            },
        )?;
        Ok(texts)
    }
}
