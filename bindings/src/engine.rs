//! The class `Engine`: what every tokenizer class of Python works with. Its methods are in other
//! files, one for each ability.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bpe_core::hf::Tokenizer;
use bpe_core::memory::prefault;
use bpe_core::{Encoding, Request};
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::{environment, gil, request, text};

/// An encoding, or the tokenizer of a file.
#[pyclass(frozen, subclass, name = "Engine", module = "bpe_engine._core")]
pub struct PyEngine(Kind);

const _: () = assert!(align_of::<PyEngine>() <= 16);

enum Kind {
    Encoding {
        /// Shared with tokenizers made from it.
        encoding: Arc<Encoding>,
        /// The bytes of a built-in vocabulary.
        image: Option<&'static [u8]>,
        is_prefaulted: AtomicBool,
    },
    /// Changes replace the tokenizer by a changed copy.
    Tokenizer(RwLock<Arc<Tokenizer>>),
}

/// The engine during a call.
pub enum Current<'a> {
    Encoding(&'a Arc<Encoding>),
    Shared(Arc<dyn bpe_core::Engine>),
}

impl Deref for Current<'_> {
    type Target = dyn bpe_core::Engine;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Encoding(encoding) => &***encoding,
            Self::Shared(engine) => &**engine,
        }
    }
}

impl Current<'_> {
    /// Returns the engine for an object that keeps it.
    pub fn share(self) -> Arc<dyn bpe_core::Engine> {
        match self {
            Self::Encoding(encoding) => encoding.clone(),
            Self::Shared(engine) => engine,
        }
    }
}

impl PyEngine {
    /// Wraps an encoding; `image` is the bytes of a built-in vocabulary.
    pub fn of_encoding(encoding: Arc<Encoding>, image: Option<&'static [u8]>) -> Self {
        Self(Kind::Encoding { encoding, image, is_prefaulted: AtomicBool::new(false) })
    }

    /// Wraps a tokenizer.
    pub fn of_tokenizer(tokenizer: Arc<Tokenizer>) -> Self {
        Self(Kind::Tokenizer(RwLock::new(tokenizer)))
    }

    /// Configures the caches of an engine that was just made, from the environment.
    pub fn configured(self) -> PyResult<Self> {
        environment::configure_caches(self.current().workspaces())?;
        Ok(self)
    }

    /// Returns the engine as it is now.
    pub fn current(&self) -> Current<'_> {
        match &self.0 {
            Kind::Encoding { encoding, .. } => Current::Encoding(encoding),
            Kind::Tokenizer(place) => {
                let tokenizer = place.read().unwrap_or_else(PoisonError::into_inner).clone();
                match tokenizer.encoding() {
                    Some(encoding) => Current::Shared(encoding.clone()),
                    None => Current::Shared(tokenizer),
                }
            }
        }
    }

    /// Returns the tokenizer of an `HfTokenizer`.
    pub fn tokenizer(&self) -> Option<Arc<Tokenizer>> {
        match &self.0 {
            Kind::Encoding { .. } => None,
            Kind::Tokenizer(place) => {
                Some(place.read().unwrap_or_else(PoisonError::into_inner).clone())
            }
        }
    }

    /// Replaces the tokenizer by a copy that `work` has changed. The caches of the copy are
    /// configured as they were.
    pub fn change<T>(
        &self,
        work: impl FnOnce(&mut Tokenizer) -> bpe_core::Result<T>,
    ) -> PyResult<Option<T>> {
        let Kind::Tokenizer(place) = &self.0 else { return Ok(None) };
        let mut place = place.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Tokenizer::clone(&place);
        let result = work(&mut changed).or_raise()?;
        let pools = [&**place, &changed].map(bpe_core::Engine::workspaces);
        if !std::ptr::eq(pools[0], pools[1]) {
            pools[1].set_like(pools[0]);
        }
        *place = Arc::new(changed);
        Ok(Some(result))
    }

    /// Reads `allowed_special` and `disallowed_special`. Returns the engine that has this request:
    /// a tokenizer of a file may be a copy.
    pub fn ask(
        &self,
        allowed: &Bound<'_, PyAny>,
        disallowed: &Bound<'_, PyAny>,
    ) -> PyResult<(Current<'_>, Request)> {
        let mut tokenizer = match &self.0 {
            Kind::Tokenizer(_) => self.tokenizer().filter(|it| it.encoding().is_none()),
            Kind::Encoding { .. } => None,
        };
        let Some(tokenizer) = &mut tokenizer else {
            let current = self.current();
            let special = current.special_tokens().or_raise()?;
            let request = request::read(special, allowed, disallowed)?;
            return Ok((current, request));
        };
        let request = request::read_for_file(tokenizer, allowed, disallowed)?;
        if tokenizer.encodes_special_tokens() != request.is_ordinary() {
            let own = Request::allowing(request.allowed.clone());
            Arc::make_mut(tokenizer).set_request(own);
        }
        Ok((Current::Shared(tokenizer.clone()), request))
    }

    /// Maps all of a built-in vocabulary if `bytes` of text will need most of it: faster than page
    /// by page.
    pub fn prefault_vocabulary(&self, bytes: usize) {
        const MUCH: usize = 1 << 18;
        if let Kind::Encoding { image: Some(image), is_prefaulted, .. } = &self.0
            && bytes >= MUCH
            && !is_prefaulted.swap(true, Ordering::Relaxed)
        {
            prefault(image);
        }
    }

    /// Runs `work` on the UTF-8 of `text`, and releases the interpreter meanwhile if it is long.
    /// Every call that reads all of one text uses this.
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
