//! The class `CoreBPE`: one method for each way to encode and decode.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Once, OnceLock};

use bpe_core::cache::CacheSize;
use bpe_core::memory::prefault;
use bpe_core::offsets::{lossy_characters, spans};
use bpe_core::sink::{Count, Pieces};
use bpe_core::special_tokens::Selection;
use bpe_core::truncate::Truncator;
use bpe_core::unstable::{self, ByBytes};
use bpe_core::{Encoding, Error, Normalization, Splitter, Vocabulary, inspect};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyInt, PyList, PyString};

use crate::errors::{OrRaise, to_python};
use crate::special::{self, Rules};
use crate::strings::decode_utf8;
use crate::{batch, buffer::TokenBuffer, buffer_pool, builtin, gil, ids, int_cache, ranks, text};

/// Everything that text needs to become ids: what `bpe_engine.Encoding` wraps.
#[pyclass(frozen, name = "CoreBPE", module = "bpe_engine._core")]
pub struct CoreBpe {
    /// In a box, since Python's allocator aligns objects to 16 bytes only.
    encoding: Box<Encoding>,
    normalization: Normalization,
    /// Where a built-in vocabulary lies.
    image: Option<&'static [u8]>,
    image_mapped: Once,
    /// Made when `encode_with_unstable` is first called.
    by_bytes: OnceLock<ByBytes>,
}

const _: () = assert!(align_of::<CoreBpe>() <= 16);

/// `(start, end)` of stretches of a Python string, in characters.
type CharacterSpans = Vec<(usize, usize)>;

/// What can stop a walk.
#[derive(Debug)]
pub enum Stop {
    /// The text holds this name, which the caller does not want to see.
    Disallowed(String),
    Core(Error),
}

impl Stop {
    pub fn as_python(&self, py: Python<'_>) -> PyErr {
        match self {
            Stop::Disallowed(name) => special::disallowed(py, name),
            Stop::Core(error) => to_python(py, error.clone()),
        }
    }

    pub fn into_python(self, py: Python<'_>) -> PyErr {
        self.as_python(py)
    }
}

impl CoreBpe {
    fn assemble(
        py: Python<'_>,
        vocabulary: Vocabulary,
        special: &Bound<'_, PyDict>,
        pattern: &str,
        normalization: Option<&str>,
    ) -> PyResult<Self> {
        let normalization = match normalization {
            None => Normalization::None,
            Some("NFC") => Normalization::Nfc,
            Some(other) => {
                return Err(PyValueError::new_err(format!(
                    "normalization must be None or \"NFC\", not {other:?}"
                )));
            }
        };
        let special = ranks::check_special(py, &vocabulary, ranks::special_tokens(special)?)?;
        let splitter = Splitter::new(pattern).or_raise(py)?;
        let encoding = Encoding::new(vocabulary, splitter, special).or_raise(py)?;
        if let Some(size) = cache_size_of_environment()? {
            encoding.workspaces().set_cache_size(size);
        }
        if let Some(caching) = caching_of_environment()? {
            encoding.workspaces().set_caching(caching);
        }
        Ok(Self {
            encoding: Box::new(encoding),
            normalization,
            image: None,
            image_mapped: Once::new(),
            by_bytes: OnceLock::new(),
        })
    }

    /// Prepares for so many bytes of text. Much of it will need most of the vocabulary, which is
    /// soonest there when it is mapped at once.
    pub fn expect(&self, bytes: usize) {
        const MUCH: usize = 1 << 18;
        if bytes >= MUCH
            && let Some(image) = self.image
        {
            self.image_mapped.call_once(|| prefault(image));
        }
    }

    /// The one walk behind every method that encodes: normalize, check, hand over to `work`.
    pub fn walk<T>(
        &self,
        text: &str,
        rules: &Rules,
        work: impl FnOnce(&Encoding, &str, &Selection) -> bpe_core::Result<T>,
    ) -> Result<T, Stop> {
        self.expect(text.len());
        let text = self.normalization.apply(text);
        if let Some(name) = rules.find_disallowed(self.encoding.special_tokens(), &text) {
            return Err(Stop::Disallowed(name));
        }
        work(&self.encoding, &text, &rules.allowed).map_err(Stop::Core)
    }

    /// The ids of a text.
    fn ids(&self, text: &str, rules: &Rules) -> Result<Vec<u32>, Stop> {
        let mut ids = buffer_pool::IDS.take(buffer_pool::likely_ids(text.len()));
        self.append_ids(text, rules, &mut ids)?;
        Ok(ids)
    }

    /// Appends the ids of a text.
    pub fn append_ids(&self, text: &str, rules: &Rules, ids: &mut Vec<u32>) -> Result<(), Stop> {
        self.walk(text, rules, |encoding, text, allowed| encoding.encode(text, allowed, ids))
    }

    /// [`CoreBpe::walk`] from Python, without the GIL for long texts.
    fn run<T: Send>(
        &self,
        text: &Bound<'_, PyAny>,
        rules: &Rules,
        work: impl FnOnce(&Encoding, &str, &Selection) -> bpe_core::Result<T> + Send,
    ) -> PyResult<T> {
        let py = text.py();
        let text = text::read(text)?;
        gil::run(py, text.size(), || self.walk(&text.utf8(), rules, work))
            .map_err(|stop| stop.into_python(py))
    }

    fn rules(&self, allowed: &Bound<'_, PyAny>, disallowed: &Bound<'_, PyAny>) -> PyResult<Rules> {
        Rules::read(self.encoding.special_tokens(), allowed, disallowed)
    }

    pub fn list<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        rules: &Rules,
    ) -> PyResult<Bound<'py, PyList>> {
        let ids = self.run_ids(text, rules)?;
        let list = int_cache::list(text.py(), &ids);
        buffer_pool::IDS.give(ids);
        list
    }

    fn run_ids(&self, text: &Bound<'_, PyAny>, rules: &Rules) -> PyResult<Vec<u32>> {
        let py = text.py();
        let text = text::read(text)?;
        gil::run(py, text.size(), || self.ids(&text.utf8(), rules))
            .map_err(|stop| stop.into_python(py))
    }

    /// Boundaries the text to size; the spans are in characters, starts and ends each ascending.
    fn fit(
        &self,
        text: &Bound<'_, PyAny>,
        rules: &Rules,
        work: impl FnOnce(&Truncator<'_>, &str) -> bpe_core::Result<Vec<Range<usize>>> + Send,
    ) -> PyResult<CharacterSpans> {
        let py = text.py();
        let original = text::read(text)?.utf8();
        let spans = gil::run(py, original.len(), || {
            self.walk(&original, rules, |encoding, _, allowed| {
                let fitter = Truncator { encoding, normalization: self.normalization, allowed };
                work(&fitter, &original)
            })
        })
        .map_err(|stop| stop.into_python(py))?;
        text::character_spans(text, &original, spans)
    }

    pub fn encoding(&self) -> &Encoding {
        &self.encoding
    }

    /// What `work` makes of the bytes that ids stand for.
    fn decoded<T>(
        &self,
        tokens: &Bound<'_, PyAny>,
        work: impl FnOnce(&[u8]) -> PyResult<T>,
    ) -> PyResult<T> {
        let py = tokens.py();
        let ids = ids::read(tokens)?;
        let mut bytes = buffer_pool::TEXT.take(buffer_pool::likely_bytes(ids.len()));
        gil::run(py, ids.len(), || self.encoding.append_bytes(&ids, &mut bytes)).or_raise(py)?;
        buffer_pool::IDS.give(ids);
        let made = work(&bytes);
        buffer_pool::TEXT.give(bytes);
        made
    }
}

/// The bytes of a `bytes` or the UTF-8 of a `str`, surrogates repaired.
fn bytes_or_text<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    if !value.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!(
            "expected str or bytes, not {}",
            value.get_type().name()?
        )));
    }
    Ok(Cow::Owned(text::read(value)?.utf8().as_bytes().to_vec()))
}

/// The value of the environment variable `BPE_ENGINE_CACHE_SIZE`, if it is set.
fn cache_size_of_environment() -> PyResult<Option<CacheSize>> {
    const NAME: &str = "BPE_ENGINE_CACHE_SIZE";
    let Some(value) = std::env::var_os(NAME).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let size = value.to_str().ok_or_else(|| Error::CacheSize(format!("{value:?}")));
    let wrong = |error| PyValueError::new_err(format!("the environment variable {NAME}: {error}"));
    size.and_then(str::parse).map(Some).map_err(wrong)
}

/// The value of the environment variable `BPE_ENGINE_CACHE`, if it is set.
fn caching_of_environment() -> PyResult<Option<bool>> {
    const NAME: &str = "BPE_ENGINE_CACHE";
    match std::env::var_os(NAME) {
        None => Ok(None),
        Some(value) if value == "on" || value.is_empty() => Ok(Some(true)),
        Some(value) if value == "off" => Ok(Some(false)),
        Some(value) => Err(PyValueError::new_err(format!(
            "the environment variable {NAME} must be \"on\" or \"off\", not {value:?}"
        ))),
    }
}

#[pymethods]
impl CoreBpe {
    /// Ranks as `{token bytes: id}`, special tokens as `{name: id}`, and the pattern that cuts
    /// text into pieces.
    #[new]
    #[pyo3(signature = (encoder, special_tokens_encoder, pattern, normalization=None))]
    fn new(
        py: Python<'_>,
        encoder: &Bound<'_, PyDict>,
        special_tokens_encoder: &Bound<'_, PyDict>,
        pattern: &str,
        normalization: Option<&str>,
    ) -> PyResult<Self> {
        let tokens = ranks::from_dict(encoder)?;
        let vocabulary = py.detach(|| Vocabulary::build(tokens)).or_raise(py)?;
        Self::assemble(py, vocabulary, special_tokens_encoder, pattern, normalization)
    }

    /// The same with the ranks of rank files, given as `[(label for messages, contents)]`.
    #[staticmethod]
    #[pyo3(signature = (files, special_tokens_encoder, pattern, normalization=None))]
    fn from_rank_files(
        py: Python<'_>,
        files: Vec<(String, Vec<u8>)>,
        special_tokens_encoder: &Bound<'_, PyDict>,
        pattern: &str,
        normalization: Option<&str>,
    ) -> PyResult<Self> {
        let tokens = ranks::from_files(py, &files)?;
        let vocabulary = py.detach(|| Vocabulary::build(tokens)).or_raise(py)?;
        Self::assemble(py, vocabulary, special_tokens_encoder, pattern, normalization)
    }

    /// The same with a vocabulary that is inside the module.
    #[staticmethod]
    #[pyo3(signature = (vocabulary, special_tokens_encoder, pattern, normalization=None))]
    fn builtin(
        py: Python<'_>,
        vocabulary: &str,
        special_tokens_encoder: &Bound<'_, PyDict>,
        pattern: &str,
        normalization: Option<&str>,
    ) -> PyResult<Self> {
        let (vocabulary, image) = builtin::builtin_vocabulary(py, vocabulary)?;
        let core = Self::assemble(py, vocabulary, special_tokens_encoder, pattern, normalization)?;
        Ok(Self { image: Some(image), ..core })
    }

    // ---- Encoding (`encode` and `encode_ordinary` are there as in tiktoken's class of this name;
    // those of `bpe_engine.Encoding` are in `base`) ----

    #[pyo3(signature = (text, allowed_special, disallowed_special=None))]
    fn encode<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        allowed_special: &Bound<'py, PyAny>,
        disallowed_special: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = text.py();
        let none = py.None().into_bound(py);
        let rules = self.rules(allowed_special, disallowed_special.unwrap_or(&none))?;
        self.list(text, &rules)
    }

    fn encode_ordinary<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        self.list(text, &Rules::ORDINARY)
    }

    #[pyo3(signature = (text, allowed_special, disallowed_special=None))]
    fn encode_to_tiktoken_buffer(
        &self,
        text: &Bound<'_, PyAny>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TokenBuffer> {
        let none = text.py().None().into_bound(text.py());
        let rules = self.rules(allowed_special, disallowed_special.unwrap_or(&none))?;
        Ok(TokenBuffer::new(self.run_ids(text, &rules)?))
    }

    /// The same on up to `num_threads` threads.
    fn encode_to_buffer_on_threads(
        &self,
        text: &Bound<'_, PyAny>,
        num_threads: &Bound<'_, PyAny>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<TokenBuffer> {
        let threads = batch::threads(num_threads)?;
        let rules = self.rules(allowed_special, disallowed_special)?;
        let ids = self.run(text, &rules, |encoding, text, allowed| {
            let mut ids = buffer_pool::IDS.take(buffer_pool::likely_ids(text.len()));
            encoding.encode_on_threads(text, allowed, threads, &mut ids)?;
            Ok(ids)
        })?;
        Ok(TokenBuffer::new(ids))
    }

    fn encode_batch<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        num_threads: &Bound<'py, PyAny>,
        allowed_special: &Bound<'py, PyAny>,
        disallowed_special: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        batch::encode(self, texts, num_threads, &self.rules(allowed_special, disallowed_special)?)
    }

    /// All ids in one buffer, and the bytes of 64-bit numbers that say where each text begins and
    /// the last one ends.
    fn encode_batch_to_buffer<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        num_threads: &Bound<'py, PyAny>,
        allowed_special: &Bound<'py, PyAny>,
        disallowed_special: &Bound<'py, PyAny>,
    ) -> PyResult<(TokenBuffer, Bound<'py, PyByteArray>)> {
        let rules = self.rules(allowed_special, disallowed_special)?;
        batch::encode_flat(self, texts, num_threads, &rules)
    }

    #[pyo3(signature = (text, allowed_special, disallowed_special=None))]
    fn encode_with_unstable<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        allowed_special: &Bound<'py, PyAny>,
        disallowed_special: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let py = text.py();
        let none = py.None().into_bound(py);
        let rules = self.rules(allowed_special, disallowed_special.unwrap_or(&none))?;
        let (stable, completions) = self.run(text, &rules, |encoding, text, allowed| {
            let by_bytes = self.by_bytes.get_or_init(|| ByBytes::new(encoding));
            unstable::encode_with_unstable(encoding, by_bytes, text, allowed)
        })?;
        let lists: Vec<_> =
            completions.iter().map(|ids| int_cache::list(py, ids)).collect::<PyResult<_>>()?;
        Ok((int_cache::list(py, &stable)?, PyList::new(py, lists)?))
    }

    fn encode_with_offsets<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        allowed_special: &Bound<'py, PyAny>,
        disallowed_special: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyList>, CharacterSpans)> {
        let py = text.py();
        let rules = self.rules(allowed_special, disallowed_special)?;
        let original = text::read(text)?.utf8();
        let (ids, spans) = gil::run(py, original.len(), || {
            let (normal, alignment) = self.normalization.align(&original);
            let mut walk = Pieces::default();
            self.walk(&normal, &rules, |encoding, text, allowed| {
                encoding.encode(text, allowed, &mut walk)
            })?;
            let spans = spans(&self.encoding, &normal, &walk).map_err(Stop::Core)?;
            let spans: Vec<_> = spans.into_iter().map(|span| alignment.original(span)).collect();
            Ok((walk.ids, spans))
        })
        .map_err(|stop: Stop| stop.into_python(py))?;
        Ok((int_cache::list(py, &ids)?, text::character_spans(text, &original, spans)?))
    }

    fn split(
        &self,
        text: &Bound<'_, PyAny>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<String>> {
        let rules = self.rules(allowed_special, disallowed_special)?;
        self.run(text, &rules, inspect::split)
    }

    fn count(
        &self,
        text: &Bound<'_, PyAny>,
        limit: Option<usize>,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let rules = self.rules(allowed_special, disallowed_special)?;
        self.run(text, &rules, |encoding, text, allowed| {
            let mut count = limit.map_or_else(Count::all, Count::till);
            encoding.encode(text, allowed, &mut count)?;
            Ok(count.total)
        })
    }

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
        let rules = self.rules(allowed_special, disallowed_special)?;
        let spans = self.fit(text, &rules, |fitter, text| {
            Ok(vec![if from_left {
                fitter.suffix(text, max_tokens)?..text.len()
            } else {
                0..fitter.prefix(text, max_tokens)?
            }])
        })?;
        Ok(spans[0])
    }

    /// `(start, end)`, in characters, of each chunk of the text.
    fn chunk(
        &self,
        text: &Bound<'_, PyAny>,
        max_tokens: usize,
        overlap: usize,
        allowed_special: &Bound<'_, PyAny>,
        disallowed_special: &Bound<'_, PyAny>,
    ) -> PyResult<CharacterSpans> {
        let rules = self.rules(allowed_special, disallowed_special)?;
        self.fit(text, &rules, |fitter, text| fitter.chunks(text, max_tokens, overlap))
    }

    fn encode_single_token(&self, piece: &Bound<'_, PyAny>) -> PyResult<u32> {
        let bytes = bytes_or_text(piece)?;
        let vocabulary = self.encoding.vocabulary();
        let special = || self.encoding.special_tokens().id(std::str::from_utf8(&bytes).ok()?);
        vocabulary
            .rank(&bytes)
            .map(|rank| vocabulary.id(rank))
            .or_else(special)
            .ok_or_else(|| Error::UnknownToken(bytes.to_vec()))
            .or_raise(piece.py())
    }

    fn encode_single_piece<'py>(&self, piece: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = piece.py();
        let bytes = bytes_or_text(piece)?;
        let ids = gil::run(py, bytes.len(), || {
            let mut ids = Vec::new();
            if !bytes.is_empty() {
                self.encoding.encode_piece(&bytes, &mut ids)?;
            }
            Ok(ids)
        });
        int_cache::list(py, &ids.or_raise(py)?)
    }

    fn _encode_bytes<'py>(&self, bytes: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyList>> {
        let py = bytes.py();
        let bytes = bytes.as_bytes();
        let ids = gil::run(py, bytes.len(), || unstable::encode_bytes(&self.encoding, bytes));
        int_cache::list(py, &ids.or_raise(py)?)
    }

    /// `(name, start, end)` of every special token in the text, in characters.
    fn find_special(&self, text: &Bound<'_, PyAny>) -> PyResult<Vec<(String, usize, usize)>> {
        let original = text::read(text)?.utf8();
        let (normal, alignment) = self.normalization.align(&original);
        let all = self.encoding.special_tokens().all();
        let (mut names, mut spans) = (Vec::new(), Vec::new());
        let mut from = 0;
        while let Some(found) = all.find(&normal, from) {
            names.push(all.names()[found.name].clone());
            spans.push(alignment.original(found.start..found.end));
            from = found.end;
        }
        let spans = text::character_spans(text, &original, spans)?;
        Ok(names.into_iter().zip(spans).map(|(name, (start, end))| (name, start, end)).collect())
    }

    // ---- Decoding ----

    fn decode_bytes<'py>(&self, tokens: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let py = tokens.py();
        self.decoded(tokens, |bytes| Ok(PyBytes::new(py, bytes)))
    }

    fn decode<'py>(
        &self,
        tokens: &Bound<'py, PyAny>,
        errors: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = tokens.py();
        self.decoded(tokens, |bytes| decode_utf8(py, bytes, errors))
    }

    fn decode_single_token_bytes<'py>(
        &self,
        token: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let id = ids::read_one(token)?;
        let bytes = self.encoding.token_bytes(id).ok_or(Error::UnknownId(id.into()));
        Ok(PyBytes::new(token.py(), bytes.or_raise(token.py())?))
    }

    fn decode_tokens_bytes<'py>(
        &self,
        tokens: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let py = tokens.py();
        ids::read_iterable(tokens)?
            .into_iter()
            .map(|id| {
                let bytes = self.encoding.token_bytes(id).ok_or(Error::UnknownId(id.into()));
                Ok(PyBytes::new(py, bytes.or_raise(py)?))
            })
            .collect()
    }

    fn decode_with_offsets(&self, tokens: &Bound<'_, PyAny>) -> PyResult<(String, Vec<usize>)> {
        let py = tokens.py();
        let ids = ids::read_iterable(tokens)?;
        let mut bytes = Vec::new();
        let mut starts = Vec::with_capacity(ids.len());
        for id in ids {
            starts.push(bytes.len());
            let token = self.encoding.token_bytes(id).ok_or(Error::UnknownId(id.into()));
            bytes.extend_from_slice(token.or_raise(py)?);
        }
        let offsets = lossy_characters(&bytes, &starts);
        Ok((String::from_utf8_lossy(&bytes).into_owned(), offsets))
    }

    fn decode_batch<'py>(
        &self,
        batch: &Bound<'py, PyAny>,
        errors: &Bound<'py, PyString>,
        num_threads: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        batch::decode(self, batch, num_threads, errors)
    }

    fn decode_bytes_batch<'py>(
        &self,
        batch: &Bound<'py, PyAny>,
        num_threads: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        batch::decode_bytes(self, batch, num_threads)
    }

    /// Whether encoding the text of `tokens` gives `tokens`, with the special tokens among them
    /// as special tokens and everything else as ordinary text.
    fn is_canonical(&self, tokens: &Bound<'_, PyAny>) -> PyResult<bool> {
        let ids = ids::read(tokens)?;
        let py = tokens.py();
        let bytes = gil::run(py, ids.len(), || self.encoding.decode_bytes(&ids)).or_raise(py)?;
        let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(false) };
        if matches!(self.normalization.apply(text), Cow::Owned(normal) if normal != text) {
            return Ok(false);
        }
        gil::run(py, text.len(), || inspect::is_canonical(&self.encoding, &ids)).or_raise(py)
    }

    // ---- The vocabulary ----

    /// The bytes of every token that is no special token, sorted.
    fn token_byte_values<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let vocabulary = self.encoding.vocabulary();
        let mut tokens: Vec<_> =
            (0..vocabulary.len() as u32).map(|rank| vocabulary.token(rank)).collect();
        tokens.sort_unstable();
        tokens.into_iter().map(|token| PyBytes::new(py, token)).collect()
    }

    /// The ranks as `{token bytes: id}`.
    fn mergeable_ranks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        ranks::to_dict(py, self.encoding.vocabulary())
    }

    /// Forgets the pieces of texts that were encoded.
    fn clear_cache(&self, py: Python<'_>) {
        py.detach(|| self.encoding.workspaces().clear());
    }

    /// Turns the cache on or off; off forgets what is in there.
    fn set_caching(&self, py: Python<'_>, caching: bool) {
        py.detach(|| self.encoding.workspaces().set_caching(caching));
    }

    /// Sets the memory of each cache, in bytes, and forgets what is in there.
    fn set_cache_size(&self, py: Python<'_>, bytes: &Bound<'_, PyInt>) -> PyResult<()> {
        let size = match bytes.extract() {
            Ok(bytes) => CacheSize::new(bytes),
            Err(_) => Err(Error::CacheSize(bytes.str()?.to_string())),
        };
        let size = size.or_raise(py)?;
        py.detach(|| self.encoding.workspaces().set_cache_size(size));
        Ok(())
    }

    /// The memory of each cache, in bytes.
    #[getter]
    fn cache_size(&self) -> usize {
        self.encoding.workspaces().cache_size().bytes()
    }

    /// Whether the pieces of texts are remembered.
    #[getter]
    fn is_caching(&self) -> bool {
        self.encoding.workspaces().is_caching()
    }

    /// The largest id of a token that is no special token.
    #[getter]
    fn max_rank(&self) -> u32 {
        self.encoding.vocabulary().max_id()
    }

    /// How many tokens there are beside the special tokens.
    #[getter]
    fn rank_count(&self) -> usize {
        self.encoding.vocabulary().len()
    }
}
