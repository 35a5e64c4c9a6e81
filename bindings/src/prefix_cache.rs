//! The native half of `bpe_engine.serving.ConversationCache`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bpe_core::prefix_cache::{Plan, PrefixCache};
use bpe_core::{Pipeline, Request};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::buffer::TokenBuffer;
use crate::errors::OrRaise;
use crate::pipeline::PyPipeline;
use crate::prompt::read;
use crate::request::Gives;
use crate::{gil, text};

/// Encodes prompts, each shared prefix once. Only attached threads hold the lock, so it is never
/// held during a fork.
#[pyclass(frozen, name = "PrefixCache", module = "bpe_engine._core")]
pub struct SharedPrefixCache {
    pipeline: Arc<Pipeline>,
    request: Request,
    seeds: [u64; 2],
    cache: Mutex<PrefixCache>,
}

const _: () = assert!(align_of::<SharedPrefixCache>() <= 16);

impl SharedPrefixCache {
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, PrefixCache> {
        self.cache.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    fn ids(&self, py: Python<'_>, plan: &Plan<'_>) -> PyResult<TokenBuffer> {
        let known = self.lock(py).find(plan).or_raise()?;
        let size = plan.new_size(&known);
        let encoded = gil::run(py, size, || plan.encode(&self.pipeline, known))?;
        self.lock(py).insert(plan, &encoded);
        Ok(TokenBuffer::new(encoded.ids))
    }
}

#[pymethods]
impl SharedPrefixCache {
    #[new]
    fn new(
        source: &Bound<'_, PyPipeline>,
        max_memory: usize,
        allowed_special: Option<&Bound<'_, PyAny>>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (pipeline, request) =
            PyPipeline::ask(source, allowed_special, disallowed_special, Gives::Ids)?;
        let cache = PrefixCache::new(max_memory);
        let pipeline = pipeline.share();
        Ok(Self { pipeline, request, seeds: cache.seeds(), cache: Mutex::new(cache) })
    }

    /// Encodes a text.
    fn encode_text(&self, text: &Bound<'_, PyAny>) -> PyResult<TokenBuffer> {
        let py = text.py();
        let utf8 = text::read(text)?.utf8().or_raise()?;
        let work = || Plan::of_text(&self.pipeline, &utf8, &self.request, self.seeds);
        let plan = gil::run(py, utf8.len(), work)?;
        self.ids(py, &plan)
    }

    /// Encodes segments.
    fn encode_segments(&self, segments: &Bound<'_, PyAny>) -> PyResult<TokenBuffer> {
        let (py, pipeline) = (segments.py(), &*self.pipeline);
        let prompt = read(pipeline, segments, true)?;
        let size = prompt.size();
        if !pipeline.ignores_segments() {
            let mut ids = Vec::new();
            gil::run(py, size, || prompt.encode(pipeline, true, &mut ids))?;
            self.lock(py).count_other(ids.len());
            return Ok(TokenBuffer::new(ids));
        }
        let plan = gil::run(py, size, || Plan::of_prompt(pipeline, prompt, self.seeds))?;
        self.ids(py, &plan)
    }

    /// Returns `(prompts, ids, reused ids, blocks, evicted blocks, bytes of memory)`.
    fn stats(&self, py: Python<'_>) -> (u64, u64, u64, usize, u64, usize) {
        let cache = self.lock(py);
        let stats = cache.stats();
        (stats.prompts, stats.ids, stats.reused, cache.len(), stats.evicted, cache.memory())
    }

    /// Removes all prompts.
    fn clear(&self, py: Python<'_>) {
        self.lock(py).clear();
    }
}
