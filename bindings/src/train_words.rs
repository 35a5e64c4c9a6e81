//! Counts words with the pipeline of a tokenizer and trains models on the counts.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bpe_core::pipeline::count::{Counts, Lines, WordCounter};
use bpe_core::polling::poll;
use bpe_core::train::count_files::write_table;
use bpe_core::train::piece_table::PieceTable;
use bpe_core::train::{characters, unigram};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::errors::OrRaise;
use crate::gil;
use crate::objects::listed;
use crate::pipeline::PyPipeline;
use crate::progress::ProgressReporter;

/// Tokens, and the two tokens of each merge.
type TokensAndMerges = (Vec<String>, Vec<(u32, u32)>);

/// Counts of the words into which a tokenizer's normalizer and pre-tokenizer turn texts.
///
/// Several threads may count at once, each into a separate table. Training uses up the counts.
#[pyclass(module = "bpe_engine._core", frozen)]
pub struct WordCounts {
    counter: Box<WordCounter>,
    /// Counts that no thread is using.
    counts: Mutex<Vec<Counts>>,
}

impl WordCounts {
    /// Locks the counts. Only attached threads take the lock, so it is never held during a fork. A
    /// panic leaves the counts valid, so a poisoned lock is used normally.
    fn lock(&self, _: Python<'_>) -> MutexGuard<'_, Vec<Counts>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on counts that no other thread is using, detached.
    fn with_counts<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Counts) -> bpe_core::Result<T> + Send,
    ) -> PyResult<T> {
        let mut counts = self.lock(py).pop().unwrap_or_default();
        let result = gil::detached(py, || work(&mut counts));
        self.lock(py).push(counts);
        result?.or_raise()
    }

    /// Runs a trainer on all words, detached, and uses up the counts.
    fn train<T: Send>(
        &self,
        py: Python<'_>,
        total: usize,
        progress: Option<Py<PyAny>>,
        work: impl FnOnce(PieceTable, Progress<'_>) -> bpe_core::Result<T> + Send,
    ) -> PyResult<T> {
        let mut counts = std::mem::take(&mut *self.lock(py));
        let mut reporter = ProgressReporter::new(progress);
        let mut is_over = false;
        let trained = gil::detached(py, || {
            let mut whole = counts.pop().unwrap_or_default();
            for part in counts {
                poll(part.memory())?;
                whole.merge(&part)?;
            }
            let words = self.counter.words(whole)?;
            work(words, &mut |done| {
                let flow = reporter.report(done, total);
                is_over = flow.is_break();
                flow
            })
        })?;
        if is_over { Err(reporter.failure()) } else { trained.or_raise() }
    }
}

/// Called at intervals with the number of tokens.
type Progress<'a> = &'a mut dyn FnMut(usize) -> ControlFlow<()>;

#[pymethods]
impl WordCounts {
    #[new]
    fn new(py: Python<'_>, tokenizer: &Bound<'_, PyPipeline>) -> PyResult<Self> {
        let tokenizer = PyPipeline::tokenizer(tokenizer)?;
        let counter = py.detach(|| WordCounter::new(&tokenizer)).or_raise()?;
        Ok(Self { counter: Box::new(counter), counts: Mutex::default() })
    }

    /// Counts the words of texts: of whole texts, or of lines with ("kept") or without ("stripped")
    /// line ends. Returns the bytes of the texts as UTF-8.
    #[pyo3(signature = (texts, lines="whole"))]
    fn count(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = listed)] texts: Vec<PyBackedStr>,
        lines: &str,
    ) -> PyResult<usize> {
        let lines = match lines {
            "whole" => Lines::Whole,
            "kept" => Lines::Kept,
            "stripped" => Lines::Stripped,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "lines is {lines:?}; choose whole, kept or stripped"
                )));
            }
        };
        self.with_counts(py, |counts| {
            texts.iter().try_for_each(|text| self.counter.count(text, lines, counts))
        })?;
        Ok(texts.iter().map(|text| text.len()).sum())
    }

    /// Returns the number of distinct words, or runs of text that are split later, summed over
    /// threads.
    fn size(&self, py: Python<'_>) -> usize {
        self.lock(py).iter().map(Counts::len).sum()
    }

    /// Adds words that were counted elsewhere.
    fn add(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = listed)] words: Vec<PyBackedStr>,
        #[pyo3(from_py_with = listed)] counts: Vec<u64>,
    ) -> PyResult<()> {
        if words.len() != counts.len() {
            return Err(PyValueError::new_err(format!(
                "got {} words and {} counts; give the same number of both",
                words.len(),
                counts.len()
            )));
        }
        self.with_counts(py, |table| {
            words.iter().zip(&counts).try_for_each(|(word, &count)| table.add(word, count))
        })
    }

    /// Returns all words with their counts, and uses up the counts.
    fn take_words(&self, py: Python<'_>) -> PyResult<Vec<(String, u64)>> {
        self.train(py, 0, None, |words, _| {
            let text = |(word, count)| Ok((characters::text(word)?.to_owned(), count));
            words.iter().map(text).collect()
        })
    }

    /// Returns the memory in use in bytes, without counts that a thread is filling.
    fn memory(&self, py: Python<'_>) -> usize {
        self.lock(py).iter().map(Counts::memory).sum()
    }

    /// Moves all words with their counts to a sorted file, which `CountReader` reads.
    fn spill(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = self.train(py, 0, None, |words, _| {
            let order = words.by_bytes();
            Ok(write_table(&words, &order, &path))
        })?;
        Ok(written?)
    }

    /// Learns BPE over the characters of words. Returns the tokens and the ids of merges.
    #[pyo3(signature = (vocab_size, *, min_frequency=0, special_tokens=Vec::new(), limit_alphabet=None, character_coverage=None, initial_alphabet=Vec::new(), prefix=String::new(), suffix=String::new(), max_token_length=None, progress=None))]
    #[allow(clippy::too_many_arguments)]
    fn train_bpe(
        &self,
        py: Python<'_>,
        vocab_size: usize,
        min_frequency: u64,
        #[pyo3(from_py_with = listed)] special_tokens: Vec<String>,
        limit_alphabet: Option<usize>,
        character_coverage: Option<f64>,
        #[pyo3(from_py_with = listed)] initial_alphabet: Vec<char>,
        prefix: String,
        suffix: String,
        max_token_length: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<TokensAndMerges> {
        let options = characters::Options {
            vocab_size,
            min_frequency,
            special_tokens,
            limit_alphabet,
            character_coverage,
            initial_alphabet,
            prefix,
            suffix,
            max_token_length,
        };
        let train = |words, progress: Progress<'_>| characters::train(words, &options, progress);
        let trained = self.train(py, vocab_size, progress, train)?;
        Ok((trained.tokens, trained.merges))
    }

    /// Returns special tokens and the most frequent words.
    #[pyo3(signature = (vocab_size, *, min_frequency=0, special_tokens=Vec::new()))]
    fn train_word_level(
        &self,
        py: Python<'_>,
        vocab_size: usize,
        min_frequency: u64,
        #[pyo3(from_py_with = listed)] special_tokens: Vec<String>,
    ) -> PyResult<Vec<String>> {
        self.train(py, vocab_size, None, |words, _| {
            characters::word_level(&words, &special_tokens, vocab_size, min_frequency)
        })
    }

    /// Learns Unigram. Returns the pieces and their scores, best first. `special_tokens` is how
    /// many of `vocab_size` are not pieces; texts in `excluded` never become pieces.
    #[pyo3(signature = (vocab_size, *, special_tokens=0, excluded=Vec::new(), character_coverage=None, initial_alphabet=Vec::new(), shrinking_factor=0.75, n_sub_iterations=2, max_piece_length=16, seed_size=1_000_000, num_threads=1, progress=None))]
    #[allow(clippy::too_many_arguments)]
    fn train_unigram(
        &self,
        py: Python<'_>,
        vocab_size: usize,
        special_tokens: usize,
        #[pyo3(from_py_with = listed)] excluded: Vec<String>,
        character_coverage: Option<f64>,
        #[pyo3(from_py_with = listed)] initial_alphabet: Vec<char>,
        shrinking_factor: f64,
        n_sub_iterations: usize,
        max_piece_length: usize,
        seed_size: usize,
        num_threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<(String, f64)>> {
        let options = unigram::Options {
            vocab_size,
            special_tokens,
            excluded,
            character_coverage,
            initial_alphabet,
            shrinking_factor,
            sub_iterations: n_sub_iterations,
            max_piece_length,
            seed_size,
            threads: num_threads,
        };
        self.train(py, vocab_size, progress, |words, progress| {
            unigram::train(words, &options, progress)
        })
    }
}
