//! The native half of the store of `bpe_engine.serving.ConversationCache`.

use std::sync::Arc;

use bpe_core::stored_blocks::{Key, StoredPrompt};
use bpe_core::{Engine, Request};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::buffer::TokenBuffer;
use crate::engine::PyEngine;
use crate::errors::OrRaise;
use crate::prompt::read;
use crate::{gil, int_cache, text};

/// A new block: its key and value.
type Block<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Ids, how many they are and how many came from the store, and new blocks.
type Encoded<'py> = (Bound<'py, PyAny>, usize, usize, Vec<Block<'py>>);

/// Encodes prompts of one tokenizer with the blocks of a store.
#[pyclass(frozen, module = "bpe_engine._core")]
pub struct StoredBlocks {
    engine: Arc<dyn Engine>,
    request: Request,
    root: Key,
}

const _: () = assert!(align_of::<StoredBlocks>() <= 16);

#[pymethods]
impl StoredBlocks {
    /// `root` is a hash of all that decides the ids.
    #[new]
    fn new(
        source: &PyEngine,
        root: [u8; 16],
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let (engine, request) = source.ask(allowed_special, disallowed_special)?;
        let root = u128::from_ne_bytes(root);
        Ok(Self { engine: engine.share(), request, root: [root as u64, (root >> 64) as u64] })
    }

    /// Encodes a text or a list of segments with the blocks in `waiting`, and those in the store: inside
    /// of `reading`, a context manager, a function returns the value of a key. Returns the ids as a list
    /// or a buffer, how many they are and how many came from the store, and new blocks; `None` if the
    /// prompt has none.
    fn encode<'py>(
        &self,
        prompt: &Bound<'py, PyAny>,
        waiting: &Bound<'py, PyDict>,
        reading: &Bound<'py, PyAny>,
        is_list: bool,
    ) -> PyResult<Option<Encoded<'py>>> {
        let (py, engine) = (prompt.py(), &*self.engine);
        let given;
        let mut found = if prompt.is_instance_of::<PyString>() {
            given = text::read(prompt)?.utf8().or_raise()?;
            let work = || StoredPrompt::of_text(engine, &given, &self.request, self.root);
            gil::run(py, given.len(), work)?
        } else {
            let prompt = read(engine, prompt, true)?;
            if !engine.ignores_segments() {
                return Ok(None);
            }
            StoredPrompt::of_prompt(engine, prompt, self.root)
        };
        if found.next_key().is_some() {
            // The function is dropped before the end: a fork must find nothing of a transaction.
            let result = self.follow(&mut found, waiting, reading.call_method0("__enter__")?);
            reading.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
            result?;
        }
        let known = found.known();
        let Some((ids, blocks)) =
            gil::run(py, found.rest(), || found.encode(engine, &self.request))?
        else {
            return Ok(None);
        };
        let blocks = blocks.iter().map(|(key, value)| (name(py, *key), PyBytes::new(py, value)));
        let (blocks, count) = (blocks.collect(), ids.len());
        let ids = match is_list {
            true => int_cache::list(py, &ids)?.into_any(),
            false => Bound::new(py, TokenBuffer::new(ids))?.into_any(),
        };
        Ok(Some((ids, count, known, blocks)))
    }
}

impl StoredBlocks {
    /// Takes the blocks at the beginning of a prompt that are known.
    fn follow(
        &self,
        prompt: &mut StoredPrompt<'_>,
        waiting: &Bound<'_, PyDict>,
        get: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        while let Some(key) = prompt.next_key() {
            let name = name(get.py(), key);
            let value = match waiting.get_item(&name)? {
                Some(value) => value,
                None => get.call1((&name,))?,
            };
            let Ok(value) = value.cast::<PyBytes>() else { break };
            if !prompt.take(&*self.engine, &self.request, key, value.as_bytes()).or_raise()? {
                break;
            }
        }
        Ok(())
    }
}

fn name(py: Python<'_>, key: Key) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &key.map(u64::to_ne_bytes).concat())
}
