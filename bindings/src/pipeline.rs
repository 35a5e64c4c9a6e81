//! The class `Pipeline`, the native base class of every tokenizer class. Its methods are in other
//! files, one file per ability.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use bpe_core::direct::Direct;
use bpe_core::pipeline::Version;
use bpe_core::request::Disallowed;
use bpe_core::{Normalization, Pipeline, Request, Splitter, Vocabulary};
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyUnicodeDecodeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::errors::OrRaise;
use crate::interned::interned;
use crate::request::{self, Face, Gives};
use crate::shared::{Current, Shared};
use crate::{builtin, ranks};

/// The native base class of `Encoding`, `hf.Tokenizer` and `Tokenizer`. Use the subclasses.
#[pyclass(frozen, subclass, name = "Pipeline", module = "bpe_engine._core")]
pub struct PyPipeline {
    /// An owned [`Held`], or null before it is set. Zeroed memory, as in a new object, is a valid
    /// state: see [`Pipeline::prepare`].
    held: AtomicPtr<Held>,
}

/// The pipeline of an object, and the interface of its class.
struct Held {
    /// Shared by the faces of one tokenizer.
    shared: Arc<Shared>,
    face: Face,
    /// The direct stage of an immutable `Encoding`, for quick access in short calls.
    direct: Option<Arc<Direct>>,
    /// Set in an `Encoding` of a tokenizer file without ranks.
    file: Option<File>,
    /// Previous value, which calls in progress may still use, so the object owns it to the end.
    previous: AtomicPtr<Held>,
}

impl Held {
    fn new(shared: Arc<Shared>, face: Face, file: Option<File>) -> Self {
        let fixed = shared.fixed_pipeline().filter(|_| face == Face::Encoding);
        let direct = fixed.and_then(|pipeline| pipeline.direct()).cloned();
        Self { shared, face, direct, file, previous: AtomicPtr::default() }
    }
}

/// For an `Encoding` without ranks: the pipeline for calls that allow or disallow special tokens.
/// The shared pipeline encodes the names of special tokens as text.
#[derive(Clone)]
struct File {
    special: Arc<Pipeline>,
    /// Request of calls without arguments: special tokens are disallowed.
    safe: Request,
}

impl File {
    fn new(special: Arc<Pipeline>) -> PyResult<Self> {
        let disallowed = Disallowed::Names(special.special_names().or_raise()?.clone());
        Ok(Self { special, safe: Request { disallowed, ..Request::ORDINARY } })
    }

    /// Same as [`PyPipeline::ask`].
    fn ask<'a>(
        &self,
        ordinary: &'a Shared,
        allowed: Option<&Bound<'_, PyAny>>,
        disallowed: Option<&Bound<'_, PyAny>>,
        gives: Gives,
        py: Python<'_>,
    ) -> PyResult<(Current<'a>, Request)> {
        let request = match (allowed, disallowed, gives) {
            (None, None, Gives::Ids) => self.safe.clone(),
            (None, None, Gives::Counts) => Request::ORDINARY,
            _ => {
                let own = request::defaults(py, Face::Encoding, gives, true);
                let allowed = allowed.unwrap_or(&own.0);
                let disallowed = disallowed.unwrap_or(&own.1);
                request::read_for_file(&self.special, allowed, disallowed)?
            }
        };
        let pipeline = match request.is_ordinary() {
            true => ordinary.current(),
            false => Current::Shared(self.special.clone()),
        };
        Ok((pipeline, request))
    }
}

/// Methods specific to `bpe_engine.Encoding`.
#[pyclass(frozen, subclass, extends = PyPipeline, name = "Encoding", module = "bpe_engine._core")]
pub struct PyEncoding;

/// Methods specific to `bpe_engine.hf.Tokenizer`, under the names of `tokenizers`.
#[pyclass(frozen, subclass, extends = PyPipeline, name = "Tokenizer", module = "bpe_engine._core")]
pub struct PyTokenizer;

impl PyTokenizer {
    /// Same as [`PyPipeline::tokenizer`].
    pub fn tokenizer(slf: &Bound<'_, Self>) -> PyResult<Arc<Pipeline>> {
        PyPipeline::tokenizer(slf.as_super())
    }

    /// Same as [`PyPipeline::change`].
    pub fn change<T>(
        slf: &Bound<'_, Self>,
        work: impl FnOnce(&mut Pipeline) -> bpe_core::Result<T>,
    ) -> PyResult<T> {
        PyPipeline::change(slf.as_super(), work)
    }

    /// Changes the tokenizer with `work`, which never fails.
    pub fn set(slf: &Bound<'_, Self>, work: impl FnOnce(&mut Pipeline)) -> PyResult<()> {
        Self::change(slf, |tokenizer| {
            work(tokenizer);
            Ok(())
        })
    }
}

impl PyPipeline {
    /// Makes `object` create the instances, so that Python subclasses inherit and pickle like plain
    /// classes.
    pub fn prepare(py: Python<'_>) -> PyResult<()> {
        let object = py.get_type::<PyAny>().as_type_ptr();
        let classes =
            [py.get_type::<Self>(), py.get_type::<PyEncoding>(), py.get_type::<PyTokenizer>()];
        for class in classes.map(|class| class.as_type_ptr()) {
            // SAFETY: attached, and these are live classes.
            let sizes = unsafe { ((*class).tp_basicsize, (*object).tp_basicsize) };
            assert_eq!(sizes.0, sizes.1 + size_of::<Self>() as ffi::Py_ssize_t, "one field");
            // SAFETY: attached, and the class has not been used yet. `object` fills the memory of a
            // new instance with zeros, which complete the instance: its one field is a null
            // pointer.
            unsafe { (*class).tp_new = (*object).tp_new };
        }
        // Costly fields are computed on request, so the fast method can be an alias.
        let tokenizer = py.get_type::<PyTokenizer>();
        tokenizer.setattr("encode_batch_fast", tokenizer.getattr("encode_batch")?)
    }

    #[inline]
    fn held<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a Held> {
        let held = slf.get().held.load(Ordering::Acquire);
        // SAFETY: null, or created by `set`, and freed only with the object, which `slf` keeps
        // alive.
        match unsafe { held.as_ref() } {
            Some(held) => Ok(held),
            None => Self::adopt(slf),
        }
    }

    /// Initializes the object from its `__dict__`, which may come from another object.
    #[cold]
    fn adopt<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a Held> {
        let py = slf.py();
        if let Some(attributes) = slf.getattr_opt(interned!(py, "__dict__"))? {
            let attributes = attributes.cast::<PyDict>()?;
            let places = [
                (interned!(py, "_core_bpe"), Face::Encoding),
                (interned!(py, "_engine"), Face::Calls),
            ];
            for (name, face) in places {
                if let Some(other) = attributes.get_item(name)? {
                    return Ok(slf.get().set_like(Self::held(other.cast::<Self>()?)?, face));
                }
            }
        }
        let class = slf.get_type().name()?;
        Err(PyAttributeError::new_err(format!(
            "'{class}' object has no attribute '_core_bpe'; has {class}.__init__ been called?"
        )))
    }

    fn set(&self, shared: Arc<Shared>, face: Face) -> &Held {
        self.hold(Held::new(shared, face, None))
    }

    /// Shares the pipeline of another object, with this interface.
    fn set_like(&self, other: &Held, face: Face) -> &Held {
        self.hold(Held::new(other.shared.clone(), face, other.file.clone()))
    }

    fn hold(&self, held: Held) -> &Held {
        let new = Box::into_raw(Box::new(held));
        let previous = self.held.swap(new, Ordering::AcqRel);
        // SAFETY: the object owns the value until its end.
        let new = unsafe { &*new };
        new.previous.store(previous, Ordering::Release);
        new
    }

    /// Returns the pipeline that all objects of the tokenizer share.
    pub fn shared<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a Shared> {
        Ok(&Self::held(slf)?.shared)
    }

    /// Returns the direct stage of an immutable `Encoding`.
    #[inline]
    pub fn direct<'a>(slf: &'a Bound<'_, Self>) -> PyResult<Option<&'a Direct>> {
        Ok(Self::held(slf)?.direct.as_deref())
    }

    /// Returns the current pipeline.
    pub fn current<'a>(slf: &'a Bound<'_, Self>) -> PyResult<Current<'a>> {
        Ok(Self::shared(slf)?.current())
    }

    /// Returns the current tokenizer. Changes replace the tokenizer with a changed copy.
    pub fn tokenizer(slf: &Bound<'_, Self>) -> PyResult<Arc<Pipeline>> {
        Ok(Self::current(slf)?.share())
    }

    /// Replaces the tokenizer with a copy that `work` has changed.
    pub fn change<T>(
        slf: &Bound<'_, Self>,
        work: impl FnOnce(&mut Pipeline) -> bpe_core::Result<T>,
    ) -> PyResult<T> {
        Self::shared(slf)?.change(work)?.ok_or_else(|| never_changes(slf))
    }

    /// Reads `allowed_special` and `disallowed_special`; None is the default of the object's class.
    /// Returns the pipeline for this request: a changed copy for some requests of a tokenizer file.
    #[inline]
    pub fn ask<'a>(
        slf: &'a Bound<'_, Self>,
        allowed: Option<&Bound<'_, PyAny>>,
        disallowed: Option<&Bound<'_, PyAny>>,
        gives: Gives,
    ) -> PyResult<(Current<'a>, Request)> {
        let held = Self::held(slf)?;
        if let (Some(direct), Some(pipeline)) = (&held.direct, held.shared.fixed_pipeline()) {
            let special = direct.special_tokens();
            let request = request::read_optional(special, allowed, disallowed, gives)?;
            return Ok((Current::Fixed(pipeline), request));
        }
        if let Some(file) = &held.file {
            return file.ask(&held.shared, allowed, disallowed, gives, slf.py());
        }
        let py = slf.py();
        let is_text = held.shared.current().encodes_special_tokens()
            || held.face == Face::Calls
                && slf.getattr(interned!(py, "split_special_tokens"))?.is_truthy()?;
        let own = request::defaults(py, held.face, gives, is_text);
        held.shared.ask(allowed.unwrap_or(&own.0), disallowed.unwrap_or(&own.1))
    }
}

#[cold]
fn never_changes(slf: &Bound<'_, PyPipeline>) -> PyErr {
    PyTypeError::new_err(format!("{} is not the tokenizer of a file", slf.get_type()))
}

impl Drop for PyPipeline {
    fn drop(&mut self) {
        let mut held = *self.held.get_mut();
        while !held.is_null() {
            // SAFETY: created by `set`; nothing else can reach `held` while the object is dropped.
            held = unsafe { Box::from_raw(held) }.previous.into_inner();
        }
    }
}

fn encoding(
    vocabulary: Vocabulary,
    special: &Bound<'_, PyDict>,
    pattern: &str,
    normalization: Option<&str>,
    image: Option<&'static [u8]>,
) -> PyResult<Shared> {
    let normalization = match normalization {
        None => Normalization::None,
        Some("NFC") => Normalization::Nfc,
        Some(other) => {
            return Err(PyValueError::new_err(format!(
                "normalization must be None or \"NFC\", not {other:?}"
            )));
        }
    };
    let special = ranks::check_special(&vocabulary, ranks::special_tokens(special)?)?;
    let splitter = Splitter::new(pattern).or_raise()?;
    let pipeline = Pipeline::of_ranks(vocabulary, splitter, special, normalization).or_raise()?;
    Shared::fixed(Arc::new(pipeline), image).configured()
}

/// Decodes UTF-8, or raises `UnicodeDecodeError`.
fn utf8<'a>(bytes: &'a Bound<'_, PyBytes>) -> PyResult<&'a str> {
    let contents = bytes.as_bytes();
    // The fast function takes a fifteenth of the time for a file of 128,000 tokens; the standard
    // function locates an error.
    simdutf8::basic::from_utf8(contents).or_else(|_| std::str::from_utf8(contents)).map_err(
        |error| match PyUnicodeDecodeError::new_utf8(bytes.py(), bytes.as_bytes(), error) {
            Ok(error) => PyErr::from_value(error.into_any()),
            Err(error) => error,
        },
    )
}

fn version_of(version: &str) -> PyResult<Version> {
    match version {
        "0.2.1" => Ok(Version::V021),
        "0.2.3" => Ok(Version::V023),
        other => Err(PyValueError::new_err(format!(
            "version {other:?}: give \"0.2.1\" for the ids of SentencePiece up to this version, or \
             \"0.2.3\" for the ids of 0.2.2 and later"
        ))),
    }
}

/// Constructors: each sets the pipeline of a new object.
#[pymethods]
impl PyPipeline {
    /// Builds an encoding from ranks, special tokens `{name: id}` and the pattern that cuts text
    /// into pieces. Ranks are a dict `{token bytes: id}`, rank files as a list of `(label for
    /// messages, contents)`, or the name of a vocabulary inside the module.
    #[pyo3(signature = (ranks, special_tokens, pattern, normalization=None))]
    fn _build(
        &self,
        ranks: &Bound<'_, PyAny>,
        special_tokens: &Bound<'_, PyDict>,
        pattern: &str,
        normalization: Option<&str>,
    ) -> PyResult<()> {
        let py = ranks.py();
        let (vocabulary, image) = if let Ok(name) = ranks.cast::<PyString>() {
            let (vocabulary, image) = builtin::builtin_vocabulary(name.to_str()?)?;
            (vocabulary, Some(image))
        } else if let Ok(dict) = ranks.cast::<PyDict>() {
            (ranks::build(py, ranks::from_dict(dict)?)?, None)
        } else {
            let files: Vec<(String, PyBackedBytes)> = ranks.extract()?;
            (ranks::build(py, ranks::from_files(py, &files)?)?, None)
        };
        let made = encoding(vocabulary, special_tokens, pattern, normalization, image)?;
        self.set(Arc::new(made), Face::Encoding);
        Ok(())
    }

    /// Reads the JSON of a tokenizer file, as str or UTF-8 bytes.
    fn _read_json(&self, py: Python<'_>, json: &Bound<'_, PyAny>) -> PyResult<()> {
        let json: &str = match json.cast::<PyBytes>() {
            Ok(bytes) => utf8(bytes)?,
            Err(_) => json.extract()?,
        };
        let tokenizer = py.detach(|| Pipeline::from_json(json)).or_raise()?;
        self.set(Arc::new(Shared::changing(Arc::new(tokenizer)).configured()?), Face::File);
        Ok(())
    }

    /// Reads a SentencePiece model.
    fn _read_sentencepiece(&self, contents: &Bound<'_, PyBytes>, version: &str) -> PyResult<()> {
        let (bytes, version) = (contents.as_bytes(), version_of(version)?);
        let tokenizer =
            contents.py().detach(|| Pipeline::from_sentencepiece(bytes, version)).or_raise()?;
        self.set(Arc::new(Shared::changing(Arc::new(tokenizer)).configured()?), Face::File);
        Ok(())
    }

    /// Reads Mistral's `tekken.json`; `special_tokens` has names and ids for files without them.
    fn _read_tekken(&self, json: &str, special_tokens: &Bound<'_, PyDict>) -> PyResult<()> {
        let special = ranks::special_tokens(special_tokens)?;
        let pipeline = special_tokens.py().detach(|| Pipeline::from_tekken(json, special));
        let shared = Shared::fixed(Arc::new(pipeline.or_raise()?), None).configured()?;
        self.set(Arc::new(shared), Face::Encoding);
        Ok(())
    }

    /// Shares the encoding of another object.
    fn _share(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        self.set_like(Self::held(other)?, Face::Encoding);
        Ok(())
    }

    /// Makes an `Encoding` of a file's current tokenizer.
    fn _share_file(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        let mut special = Self::tokenizer(other)?;
        let mut ordinary = special.clone();
        Arc::make_mut(&mut special).set_encode_special_tokens(false);
        let changed = Arc::make_mut(&mut ordinary);
        changed.set_encode_special_tokens(true);
        changed.set_keeps_out_control(true);
        let file = Some(File::new(special)?);
        let shared = Arc::new(Shared::fixed(ordinary, None));
        self.hold(Held::new(shared, Face::Encoding, file));
        Ok(())
    }

    /// Makes an encoding with the ids of a tokenizer file, sharing its vocabulary. With
    /// `any_flags`, the flags of added tokens are ignored.
    #[pyo3(signature = (other, any_flags=false))]
    fn _share_ranks(&self, other: &Bound<'_, Self>, any_flags: bool) -> PyResult<()> {
        let pipeline = Self::tokenizer(other)?.as_ranks(any_flags).or_raise()?;
        let shared = Shared::fixed(Arc::new(pipeline), None).configured()?;
        self.set(Arc::new(shared), Face::Encoding);
        Ok(())
    }

    /// Shares the encoding from which a tokenizer was made, including tokens added since. Returns
    /// false for a tokenizer read from a file.
    fn _share_encoding(&self, other: &Bound<'_, Self>) -> PyResult<bool> {
        let pipeline = Self::tokenizer(other)?;
        let has_ranks = pipeline.direct().is_some();
        if has_ranks {
            self.set(Arc::new(Shared::fixed(pipeline, None)), Face::Encoding);
        }
        Ok(has_ranks)
    }

    /// Copies a tokenizer; an encoding gets these special tokens, `{name: id}`, and the copy
    /// accepts further tokens.
    #[pyo3(signature = (other, special_tokens=None))]
    fn _copy(
        &self,
        other: &Bound<'_, Self>,
        special_tokens: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let mut tokenizer = Self::tokenizer(other)?;
        if let (Some(direct), Some(special)) = (tokenizer.direct(), special_tokens) {
            let special = special.iter().map(|(name, id)| Ok((name.extract()?, id.extract()?)));
            let special: Vec<(String, u32)> = special.collect::<PyResult<_>>()?;
            tokenizer = Arc::new(Pipeline::of_direct(direct.clone(), special));
        }
        self.set(Arc::new(Shared::changing(tokenizer)), Face::File);
        Ok(())
    }
}
