//! The pipeline that the objects of one tokenizer share.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bpe_core::system::prefault;
use bpe_core::{Pipeline, Request};
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::{environment, gil, request, text};

/// The pipeline shared by tokenizer objects in Python.
pub struct Shared(Sharing);

enum Sharing {
    /// An encoding: calls need no lock and no reference count.
    Fixed {
        pipeline: Arc<Pipeline>,
        /// Bytes of a built-in vocabulary.
        image: Option<&'static [u8]>,
        is_prefaulted: AtomicBool,
    },
    /// A tokenizer whose parts can be set: changes replace the pipeline with a changed copy, and
    /// the version.
    Changing(RwLock<Arc<Pipeline>>, AtomicU64),
}

/// The pipeline during a call.
pub enum Current<'a> {
    Fixed(&'a Arc<Pipeline>),
    Shared(Arc<Pipeline>),
}

impl Deref for Current<'_> {
    type Target = Pipeline;

    fn deref(&self) -> &Pipeline {
        match self {
            Self::Fixed(pipeline) => pipeline,
            Self::Shared(pipeline) => pipeline,
        }
    }
}

impl Current<'_> {
    /// Returns the pipeline, for a caller that keeps a reference.
    pub fn share(self) -> Arc<Pipeline> {
        match self {
            Self::Fixed(pipeline) => pipeline.clone(),
            Self::Shared(pipeline) => pipeline,
        }
    }
}

fn new_version() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

impl Shared {
    /// Wraps a pipeline that never changes; `image` has the bytes of a built-in vocabulary.
    pub fn fixed(pipeline: Arc<Pipeline>, image: Option<&'static [u8]>) -> Self {
        Self(Sharing::Fixed { pipeline, image, is_prefaulted: AtomicBool::new(false) })
    }

    /// Wraps a pipeline whose parts can be set.
    pub fn changing(pipeline: Arc<Pipeline>) -> Self {
        Self(Sharing::Changing(RwLock::new(pipeline), AtomicU64::new(new_version())))
    }

    /// Configures the caches of a new pipeline from the environment.
    pub fn configured(self) -> PyResult<Self> {
        environment::configure_caches(self.current().workspaces())?;
        Ok(self)
    }

    /// Returns the current pipeline.
    pub fn current(&self) -> Current<'_> {
        match &self.0 {
            Sharing::Fixed { pipeline, .. } => Current::Fixed(pipeline),
            Sharing::Changing(place, _) => {
                Current::Shared(place.read().unwrap_or_else(PoisonError::into_inner).clone())
            }
        }
    }

    /// Returns the pipeline if it never changes.
    #[inline]
    pub fn fixed_pipeline(&self) -> Option<&Arc<Pipeline>> {
        match &self.0 {
            Sharing::Fixed { pipeline, .. } => Some(pipeline),
            Sharing::Changing(..) => None,
        }
    }

    /// Returns a number that differs after each change, and between tokenizers that change.
    pub fn version(&self) -> u64 {
        match &self.0 {
            Sharing::Fixed { .. } => 0,
            Sharing::Changing(_, version) => version.load(Ordering::Acquire),
        }
    }

    /// Replaces the pipeline with a copy that `work` has changed. The caches of the copy keep their
    /// configuration.
    pub fn change<T>(
        &self,
        work: impl FnOnce(&mut Pipeline) -> bpe_core::Result<T>,
    ) -> PyResult<Option<T>> {
        let Sharing::Changing(place, version) = &self.0 else { return Ok(None) };
        let mut place = place.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Pipeline::clone(&place);
        let result = work(&mut changed).or_raise()?;
        let pools = [&**place, &changed].map(Pipeline::workspaces);
        if !std::ptr::eq(pools[0], pools[1]) {
            pools[1].set_like(pools[0]);
        }
        *place = Arc::new(changed);
        version.store(new_version(), Ordering::Release);
        Ok(Some(result))
    }

    /// Reads `allowed_special` and `disallowed_special`. Returns the pipeline with this request: a
    /// changed copy for some requests of a tokenizer file.
    pub fn ask(
        &self,
        allowed: &Bound<'_, PyAny>,
        disallowed: &Bound<'_, PyAny>,
    ) -> PyResult<(Current<'_>, Request)> {
        let current = self.current();
        if let Some(direct) = current.direct() {
            let request = request::read(direct.special_tokens(), allowed, disallowed)?;
            return Ok((current, request));
        }
        let request = request::read_for_file(&current, allowed, disallowed)?;
        if current.encodes_special_tokens() == request.is_ordinary() {
            return Ok((current, request));
        }
        let mut pipeline = current.share();
        Arc::make_mut(&mut pipeline).set_request(Request::allowing(request.allowed.clone()));
        Ok((Current::Shared(pipeline), request))
    }

    /// Maps a whole built-in vocabulary at once if `bytes` of text will need most of it: faster
    /// than page by page.
    pub fn prefault_vocabulary(&self, bytes: usize) {
        const MUCH: usize = 1 << 18;
        if bytes >= MUCH
            && let Sharing::Fixed { image: Some(image), is_prefaulted, .. } = &self.0
            && !is_prefaulted.swap(true, Ordering::Relaxed)
        {
            prefault(image);
        }
    }

    /// Runs `work` on the UTF-8 of `text`, detached if the text is long. Every call that reads one
    /// whole text uses this method.
    pub fn run<T: Send>(
        &self,
        text: &Bound<'_, PyAny>,
        work: impl FnOnce(&str) -> bpe_core::Result<T> + Send,
    ) -> PyResult<T> {
        let py = text.py();
        let text = text::read(text)?;
        gil::run(py, text.size(), || {
            let text = text.utf8()?;
            self.prefault_vocabulary(text.len());
            work(&text)
        })
    }
}
