//! Counts the pieces or the words of texts and trains on the counts.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bpe_core::pipeline::count::{Counts, Lines, WordCounter};
use bpe_core::polling::poll;
use bpe_core::train::bpe::{self, Limits, Options, Pieces};
use bpe_core::train::count_files::{CountWriter, MergedCounts, write_table};
use bpe_core::train::counting::PieceCounter;
use bpe_core::train::piece_table::PieceTable;
use bpe_core::train::{characters, unigram};
use bpe_core::{Normalization, SpecialTokens, Splitter};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyList};

use crate::errors::OrRaise;
use crate::gil;
use crate::objects::{ROW, ask_for, collected, listed, new_bytes, new_list};
use crate::pipeline::PyPipeline;
use crate::progress::ProgressReporter;

/// Tokens, and the two tokens of each merge.
type TokensAndMerges = (Vec<String>, Vec<(u32, u32)>);

/// Called at intervals with the number of tokens.
type Progress<'a> = &'a mut dyn FnMut(usize) -> ControlFlow<()>;

/// Counts of the pieces of texts, or of the words into which a tokenizer's normalizer and
/// pre-tokenizer turn texts.
///
/// `pattern` cuts text into pieces; the names in `special_tokens` are cut out first and belong to
/// no piece; with `nfc`, text is normalized first. Several threads can count at once, each into a
/// separate table.
#[pyclass(module = "bpe_engine._core", frozen)]
pub struct PieceCounts {
    counter: Counter,
    /// Tables that no thread is using.
    tables: Mutex<Vec<Counts>>,
    /// Total bytes of the tables in use, each measured when it was taken.
    taken: AtomicUsize,
}

/// Boxed: Python may give objects less alignment than the counters need.
enum Counter {
    Pieces(Box<PieceCounter>),
    Words(Box<WordCounter>, Lines),
}

impl Counter {
    fn count(&self, text: &str, table: &mut Counts) -> bpe_core::Result<()> {
        match self {
            Self::Pieces(counter) => counter.count(text, &mut table.words),
            Self::Words(counter, lines) => counter.count(text, *lines, table),
        }
    }

    /// Merges the tables into one and removes them. On interruption, the tables keep all counts; if
    /// memory runs out they keep none, because partial counts would be worse.
    fn add_up(&self, tables: &mut Vec<Counts>) -> bpe_core::Result<PieceTable> {
        tables.sort_by_key(Counts::len);
        let mut whole = tables.pop().unwrap_or_default();
        while let Some(table) = tables.pop() {
            if let Err(interrupted) = poll(table.memory()) {
                tables.extend([table, whole]);
                return Err(interrupted);
            }
            whole.merge(&table).inspect_err(|_| tables.clear())?;
        }
        match self {
            Self::Pieces(_) => Ok(whole.words),
            Self::Words(counter, _) => counter.words(whole),
        }
    }
}

impl PieceCounts {
    fn of(counter: Counter) -> Self {
        Self { counter, tables: Mutex::default(), taken: AtomicUsize::new(0) }
    }

    /// Locks the tables. Only attached threads take the lock, so it is never held during a fork. A
    /// panic leaves the tables valid, so a poisoned lock is used normally.
    fn lock(&self, _: Python<'_>) -> MutexGuard<'_, Vec<Counts>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on a table that no other thread is using, detached.
    fn with_table<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Counts) -> bpe_core::Result<T> + Send,
    ) -> PyResult<T> {
        let mut tables = self.lock(py);
        let mut table = tables.pop().unwrap_or_default();
        let memory = table.memory();
        self.taken.fetch_add(memory, Ordering::Relaxed);
        drop(tables);
        let result = gil::detached(py, || work(&mut table));
        let mut tables = self.lock(py);
        tables.push(table);
        self.taken.fetch_sub(memory, Ordering::Relaxed);
        result?.or_raise()
    }

    /// Runs `work` on all counts in one table, detached, and keeps the counts.
    fn with_whole<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut PieceTable) -> bpe_core::Result<T> + Send,
    ) -> PyResult<T> {
        let mut tables = std::mem::take(&mut *self.lock(py));
        let result = gil::detached(py, || {
            let mut whole = Counts::default();
            whole.words = self.counter.add_up(&mut tables)?;
            let result = work(&mut whole.words);
            tables.push(whole);
            result
        });
        // Keeps all counts, even if the work failed.
        self.lock(py).append(&mut tables);
        result?.or_raise()
    }

    /// Removes all counts and returns them in one table.
    fn take(&self, py: Python<'_>) -> PyResult<PieceTable> {
        self.with_whole(py, |whole| Ok(std::mem::take(whole)))
    }

    /// Runs a trainer on all words and uses up the counts.
    fn train<T: Send>(
        &self,
        py: Python<'_>,
        total: usize,
        progress: Option<Py<PyAny>>,
        work: impl FnOnce(PieceTable, Progress<'_>) -> bpe_core::Result<T> + Send,
    ) -> PyResult<T> {
        let words = self.take(py)?;
        reporting(py, total, progress, |progress| work(words, progress))
    }
}

/// Runs a trainer, detached. Raises the exception of `progress`.
fn reporting<T: Send>(
    py: Python<'_>,
    total: usize,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(Progress<'_>) -> bpe_core::Result<T> + Send,
) -> PyResult<T> {
    let mut reporter = ProgressReporter::new(progress);
    let mut is_over = false;
    let trained = gil::detached(py, || {
        work(&mut |done| {
            let flow = reporter.report(done, total);
            is_over = flow.is_break();
            flow
        })
    })?;
    if is_over { Err(reporter.failure()) } else { trained.or_raise() }
}

#[pymethods]
impl PieceCounts {
    #[new]
    #[pyo3(signature = (pattern, *, special_tokens=Vec::new(), nfc=false))]
    fn new(
        pattern: &str,
        #[pyo3(from_py_with = listed)] special_tokens: Vec<String>,
        nfc: bool,
    ) -> PyResult<Self> {
        let special = SpecialTokens::new(special_tokens.into_iter().zip(0..)).or_raise()?;
        let normalization = if nfc { Normalization::Nfc } else { Normalization::None };
        let splitter = Splitter::new(pattern).or_raise()?;
        let counter = PieceCounter::new(splitter, normalization, special);
        Ok(Self::of(Counter::Pieces(Box::new(counter))))
    }

    /// Creates counts of a tokenizer's words: in whole texts, or in lines with ("kept") or without
    /// ("stripped") line ends.
    #[staticmethod]
    #[pyo3(signature = (tokenizer, lines="whole"))]
    fn of_words(py: Python<'_>, tokenizer: &Bound<'_, PyPipeline>, lines: &str) -> PyResult<Self> {
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
        let tokenizer = PyPipeline::tokenizer(tokenizer)?;
        let counter = py.detach(|| WordCounter::new(&tokenizer)).or_raise()?;
        Ok(Self::of(Counter::Words(Box::new(counter), lines)))
    }

    /// Counts the pieces of each text. Returns the bytes of the texts as UTF-8.
    fn count(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = listed)] texts: Vec<PyBackedStr>,
    ) -> PyResult<usize> {
        self.with_table(py, |table| {
            texts.iter().try_for_each(|text| self.counter.count(text, table))
        })?;
        Ok(texts.iter().map(|text| text.len()).sum())
    }

    /// Adds pieces that were counted elsewhere.
    fn add(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = listed)] pieces: Vec<PyBackedBytes>,
        #[pyo3(from_py_with = listed)] counts: Vec<u64>,
    ) -> PyResult<()> {
        if pieces.len() != counts.len() {
            return Err(PyValueError::new_err(format!(
                "got {} pieces and {} counts; give the same number of both",
                pieces.len(),
                counts.len()
            )));
        }
        self.with_table(py, |table| {
            let mut rows = pieces.iter().zip(&counts);
            rows.try_for_each(|(piece, &count)| table.words.add(piece, count))
        })
    }

    /// Returns the memory in use in bytes; a table in use by a thread counts with its earlier size.
    fn memory(&self, py: Python<'_>) -> usize {
        let tables = self.lock(py);
        let taken = self.taken.load(Ordering::Relaxed);
        tables.iter().map(Counts::memory).sum::<usize>() + taken
    }

    /// Returns the maximum memory in bytes for training on all counts, without pairs and tokens.
    fn training_memory(&self, py: Python<'_>) -> PyResult<usize> {
        self.with_whole(py, |table| Ok(bpe::memory(table)))
    }

    /// Returns `(distinct pieces, their occurrences, their bytes, their characters)`.
    fn totals(&self, py: Python<'_>) -> PyResult<(usize, u64, u64, u64)> {
        self.with_whole(py, |table| {
            let (mut occurrences, mut bytes, mut characters) = (0u64, 0u64, 0u64);
            for (piece, count) in table.iter() {
                let starts = piece.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
                occurrences = occurrences.saturating_add(count);
                bytes = bytes.saturating_add(count.saturating_mul(piece.len() as u64));
                characters = characters.saturating_add(count.saturating_mul(starts as u64));
            }
            Ok((table.len(), occurrences, bytes, characters))
        })
    }

    /// Removes pieces with a count below `least`. Returns how many, and their total count.
    fn drop_rare(&self, py: Python<'_>, least: u64) -> PyResult<(usize, u64)> {
        self.with_whole(py, |table| table.drop_rare(least))
    }

    /// Moves all counts to a sorted file, which `CountReader` reads.
    fn spill(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = self.with_whole(py, |table| {
            let order = table.by_bytes();
            Ok(write_table(table, &order, &path))
        })?;
        written?;
        self.lock(py).clear();
        Ok(())
    }

    /// Adds the merged counts of files. Omits pieces with a count below `least`, and stops when
    /// training on the counts needs more than `most_memory` bytes. Returns the number of omitted
    /// pieces, their total count, and whether memory was enough.
    #[pyo3(signature = (paths, least=1, most_memory=None))]
    fn read(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = listed)] paths: Vec<PathBuf>,
        least: u64,
        most_memory: Option<usize>,
    ) -> PyResult<(usize, u64, bool)> {
        let read = self.with_whole(py, |table| {
            let (mut pieces, mut occurrences) = (0, 0u64);
            let mut read = || -> io::Result<bpe_core::Result<bool>> {
                let mut merged = MergedCounts::open(&paths)?;
                while let Some((piece, count)) = merged.next_piece()? {
                    if count < least {
                        pieces += 1;
                        occurrences = occurrences.saturating_add(count);
                    } else if let Err(error) = poll(64).and_then(|()| table.add(piece, count)) {
                        return Ok(Err(error));
                    } else if most_memory.is_some_and(|most| bpe::memory(table) > most) {
                        return Ok(Ok(false));
                    }
                }
                Ok(Ok(true))
            };
            let fits = match read() {
                Ok(result) => Ok(result?),
                Err(error) => Err(error),
            };
            Ok(fits.map(|fits| (pieces, occurrences, fits)))
        })?;
        Ok(read?)
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

/// Reads files of counts: each piece once, with the sum of its counts, in byte order.
#[pyclass(module = "bpe_engine._core", frozen)]
pub struct CountReader {
    merged: Mutex<MergedCounts>,
}

#[pymethods]
impl CountReader {
    #[new]
    fn new(#[pyo3(from_py_with = listed)] paths: Vec<PathBuf>) -> PyResult<Self> {
        Ok(Self { merged: Mutex::new(MergedCounts::open(&paths)?) })
    }

    /// Returns up to `most` pieces and their counts; at the end, empty lists.
    fn read<'py>(&self, py: Python<'py>, most: usize) -> PyResult<(Bound<'py, PyList>, Vec<u64>)> {
        let mut merged = self.merged.lock().unwrap_or_else(PoisonError::into_inner);
        let (pieces, mut counts) = (new_list::<PyAny>(py, Vec::new())?, Vec::new());
        while counts.len() < most {
            let Some((piece, count)) = merged.next_piece()? else { break };
            pieces.append(new_bytes(py, piece)?)?;
            counts.push(count);
        }
        Ok((pieces, counts))
    }
}

/// Merges files of counts into one.
#[pyfunction]
pub fn merge_counts(
    py: Python<'_>,
    #[pyo3(from_py_with = listed)] paths: Vec<PathBuf>,
    output: PathBuf,
) -> PyResult<()> {
    let merged = gil::detached(py, || -> bpe_core::Result<io::Result<()>> {
        let merge = || -> io::Result<bpe_core::Result<()>> {
            let mut merged = MergedCounts::open(&paths)?;
            let mut writer = CountWriter::create(&output)?;
            while let Some((piece, count)) = merged.next_piece()? {
                if let Err(interrupted) = poll(64) {
                    return Ok(Err(interrupted));
                }
                writer.write(piece, count)?;
            }
            writer.finish().map(Ok)
        };
        match merge() {
            Ok(done) => done.map(Ok),
            Err(error) => Ok(Err(error)),
        }
    })?;
    Ok(merged.or_raise()??)
}

type MergeRow = (u32, u32, u32, u64, u32);
type TrainedRows<'py> = (Vec<Bound<'py, PyBytes>>, Vec<MergeRow>, Vec<u64>);

/// Learns tokens after the tokens of `base`, in the order of their ids.
///
/// `corpora` has counts, which are used up, and the units that measure compression. Returns the new
/// tokens; the merges, `(left, right, token, frequency, corpus)` with tokens as indices, the base's
/// tokens first; and the number of tokens of each corpus. `progress(tokens, tokens wanted)` is
/// called at intervals.
#[pyfunction]
#[pyo3(signature = (base, corpora, *, tokens, min_frequency=2, max_token_bytes=None, max_token_words=None, progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn train_bpe<'py>(
    py: Python<'py>,
    #[pyo3(from_py_with = listed)] base: Vec<Vec<u8>>,
    corpora: Vec<(Py<PieceCounts>, u64)>,
    tokens: usize,
    min_frequency: u64,
    max_token_bytes: Option<u32>,
    max_token_words: Option<u32>,
    progress: Option<Py<PyAny>>,
) -> PyResult<TrainedRows<'py>> {
    let limits = Limits { bytes: max_token_bytes, words: max_token_words };
    let options = Options { tokens, min_frequency, limits };
    let mut tables = Vec::with_capacity(corpora.len());
    for (counts, units) in &corpora {
        tables.push((counts.get().take(py)?, *units));
    }
    let trained = reporting(py, tokens, progress, |progress| {
        let pieces = tables.into_iter().map(|(table, units)| Pieces { table, units }).collect();
        bpe::train(&base, pieces, &options, progress)
    })?;
    ask_for(trained.merges.len(), 2 * ROW)?;
    let new = collected(trained.tokens.iter().map(|token| new_bytes(py, token)))?;
    let merges = trained.merges.iter();
    let merges = merges
        .map(|merge| (merge.left, merge.right, merge.token, merge.frequency, merge.corpus))
        .collect();
    Ok((new, merges, trained.corpus_tokens))
}
