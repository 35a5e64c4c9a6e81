//! The native half of `bpe_engine.serving.ConversationCache`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bpe_core::prefix_cache::{Plan, PrefixCache};
use bpe_core::segments::Engine;
use bpe_core::{Encoding, Request};
use bpe_hf::Tokenizer;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyList;

use crate::buffer::TokenBuffer;
use crate::errors::OrRaise;
use crate::prompt::{PyEngine, Source, read, run_on, with_engine};
use crate::{int_cache, text};

/// Encodes prompts, each beginning once. Only a thread that holds the interpreter holds the lock, so
/// a forked child never finds it taken.
#[pyclass(frozen, name = "PrefixCache", module = "bpe_engine._core")]
pub struct SharedPrefixCache {
    source: Source,
    request: Request,
    seeds: [u64; 2],
    cache: Mutex<PrefixCache>,
}

const _: () = assert!(align_of::<SharedPrefixCache>() <= 16);

impl SharedPrefixCache {
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, PrefixCache> {
        self.cache.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    fn text_ids(&self, text: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
        let py = text.py();
        let utf8 = text::read(text)?.utf8().or_raise(py)?;
        with_engine!(&self.source, engine => {
            let plan = run_on(engine, py, utf8.len(), |engine| {
                Plan::of_text(engine, &utf8, &self.request, self.seeds)
            })?;
            self.ids(py, engine, &plan)
        })
    }

    fn segment_ids(&self, segments: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
        let py = segments.py();
        with_engine!(&self.source, engine => {
            let prompt = read(engine, segments, true)?;
            let size = prompt.size();
            if !engine.ignores_segments() {
                let mut ids = Vec::new();
                run_on(engine, py, size, |engine| prompt.encode(engine, true, &mut ids))?;
                self.lock(py).count_other(ids.len());
                return Ok(ids);
            }
            let plan = run_on(engine, py, size, |engine| {
                let plan = Plan::of_prompt(engine, prompt, self.seeds)?;
                Ok(plan)
            })?;
            self.ids(py, engine, &plan)
        })
    }

    fn ids<E: PyEngine>(&self, py: Python<'_>, engine: &E, plan: &Plan<'_>) -> PyResult<Vec<u32>> {
        let known = self.lock(py).find(plan).or_raise(py)?;
        let size = plan.new_size(&known);
        let encoded = run_on(engine, py, size, |engine| plan.encode(engine, &self.request, known))?;
        self.lock(py).insert(plan, &encoded).or_raise(py)?;
        Ok(encoded.ids)
    }
}

#[pymethods]
impl SharedPrefixCache {
    #[new]
    fn new(
        source: &Bound<'_, PyAny>,
        max_memory: usize,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let mut source = Source::read(source)?;
        let request = source.request(allowed_special, disallowed_special)?;
        let cache = PrefixCache::new(max_memory);
        Ok(Self { source, request, seeds: cache.seeds(), cache: Mutex::new(cache) })
    }

    fn encode_text<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        int_cache::list(text.py(), &self.text_ids(text)?)
    }

    fn encode_text_to_buffer(&self, text: &Bound<'_, PyAny>) -> PyResult<TokenBuffer> {
        Ok(TokenBuffer::new(self.text_ids(text)?))
    }

    fn encode_segments<'py>(&self, segments: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        int_cache::list(segments.py(), &self.segment_ids(segments)?)
    }

    fn encode_segments_to_buffer(&self, segments: &Bound<'_, PyAny>) -> PyResult<TokenBuffer> {
        Ok(TokenBuffer::new(self.segment_ids(segments)?))
    }

    /// Returns `(prompts, ids, reused ids, blocks, evicted blocks, bytes of memory)`.
    fn stats(&self, py: Python<'_>) -> (u64, u64, u64, usize, u64, usize) {
        let cache = self.lock(py);
        let stats = cache.stats();
        (stats.prompts, stats.ids, stats.reused, cache.len(), stats.evicted, cache.memory())
    }

    fn clear(&self, py: Python<'_>) {
        self.lock(py).clear();
    }
}
