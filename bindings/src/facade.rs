//! The base class of `bpe_engine.Encoding`, with the methods that programs call for every request.
//! For short texts, a Python function around them would take a good part of the time.

use std::convert::Infallible;
use std::sync::atomic::{AtomicPtr, Ordering};

use bpe_core::Request;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::core_bpe::CoreBpe;
use crate::interned::interned;
use crate::request;

/// The base class of `bpe_engine.Encoding`. Use the subclass.
#[pyclass(frozen, subclass, name = "Encoding", module = "bpe_engine._core")]
pub struct NativeEncoding {
    /// An owned reference to a `CoreBPE`, or null before it is set. Zeroed memory, as in a new
    /// object, is a valid state: see [`NativeEncoding::prepare`].
    core: AtomicPtr<ffi::PyObject>,
}

impl NativeEncoding {
    /// Lets `object` create the instances, so that Python subclasses inherit and pickle as if this
    /// class did not exist.
    pub fn prepare(py: Python<'_>) {
        let class = py.get_type::<NativeEncoding>().as_type_ptr();
        let object = py.get_type::<PyAny>().as_type_ptr();
        // SAFETY: attached, and these are live classes.
        let sizes = unsafe { ((*class).tp_basicsize, (*object).tp_basicsize) };
        assert_eq!(sizes.0, sizes.1 + size_of::<Self>() as ffi::Py_ssize_t, "one field");
        // SAFETY: attached, and nobody has used the class yet. `object` fills the memory of a new
        // instance with zeros, and with them it is complete: its one field is a null pointer.
        unsafe { (*class).tp_new = (*object).tp_new };
    }

    /// The native engine of an instance, from its `__dict__` if only that was set.
    #[inline]
    fn core<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, CoreBpe>> {
        let core = slf.get().core.load(Ordering::Acquire);
        // SAFETY: attached; a pointer that is not null is a `CoreBPE` that the instance holds a
        // reference to. `replace` keeps it valid until we have our own.
        match unsafe { Bound::from_borrowed_ptr_or_opt(slf.py(), core) } {
            // SAFETY: as above.
            Some(core) => Ok(unsafe { core.cast_into_unchecked() }),
            None => Self::adopt(slf),
        }
    }

    #[cold]
    fn adopt<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, CoreBpe>> {
        let name = interned!(slf.py(), "_core_bpe");
        let found = match slf.getattr_opt(interned!(slf.py(), "__dict__"))? {
            Some(attributes) => attributes.cast::<PyDict>()?.get_item(name)?,
            None => None,
        };
        let Some(core) = found else {
            return Err(PyAttributeError::new_err(format!(
                "'{}' object has no attribute '_core_bpe'; has Encoding.__init__ been called?",
                slf.get_type().name()?
            )));
        };
        let core = core.cast_into::<CoreBpe>()?;
        Self::replace(slf, core.clone());
        Ok(core)
    }

    fn replace(slf: &Bound<'_, Self>, core: Bound<'_, CoreBpe>) {
        let old = slf.get().core.swap(core.into_ptr(), Ordering::AcqRel);
        // Without the GIL, another thread may have loaded the old engine and not yet taken a
        // reference, so it is never freed. Replacing the engine is rare.
        if cfg!(not(Py_GIL_DISABLED)) {
            // SAFETY: attached; the reference was ours, and the field has another one now.
            drop(unsafe { Bound::from_owned_ptr_or_opt(slf.py(), old) });
        }
    }
}

impl Drop for NativeEncoding {
    fn drop(&mut self) {
        // SAFETY: an instance is freed by the interpreter, by a thread that is attached.
        let py = unsafe { Python::assume_attached() };
        // SAFETY: null, or a reference that the instance owns.
        drop(unsafe { Bound::from_owned_ptr_or_opt(py, *self.core.get_mut()) });
    }
}

/// Raises the `TypeError` of a Python function for surplus positional arguments.
fn refuse(name: &str, surplus: &Bound<'_, PyTuple>) -> PyResult<()> {
    if surplus.is_empty() {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "Encoding.{name}() takes 2 positional arguments but {} were given",
        2 + surplus.len()
    )))
}

/// An optional argument. Unlike `Option`, it tells a missing argument from `None`.
enum Argument<'a, 'py> {
    Absent,
    Given(Borrowed<'a, 'py, PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Argument<'a, 'py> {
    type Error = Infallible;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Self::Given(value))
    }
}

impl<'py> Argument<'_, 'py> {
    fn get(&self) -> Option<&Bound<'py, PyAny>> {
        match self {
            Self::Absent => None,
            Self::Given(value) => Some(value),
        }
    }
}

#[pymethods]
impl NativeEncoding {
    /// Encodes a text without special tokens, as ``encode(text, disallowed_special=())``.
    ///
    /// >>> import bpe_engine
    /// >>> bpe_engine.get_encoding("gpt2").encode_ordinary("hello world")
    /// [31373, 995]
    #[pyo3(signature = (text, *surplus), text_signature = "($self, text)")]
    fn encode_ordinary<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        surplus: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyList>> {
        refuse("encode_ordinary", surplus)?;
        CoreBpe::list(&Self::core(slf)?, text, &Request::ORDINARY)
    }

    /// Encodes a text.
    ///
    /// Special tokens control a model, and their names in untrusted text could do the same. So a
    /// special token's name in the text raises an error by default.
    ///
    /// Args:
    ///     text: A str. Surrogate pairs are joined; lone surrogates become U+FFFD.
    ///     allowed_special: The names that become special tokens: a set, or ``"all"``.
    ///     disallowed_special: The names that raise an error: a collection of str, or ``"all"`` for
    ///         every special token that is not allowed. Other names are ordinary text, so ``()``
    ///         turns the check off.
    ///
    /// Raises:
    ///     ValueError: The text contains a disallowed name.
    ///
    /// >>> import bpe_engine
    /// >>> gpt2 = bpe_engine.get_encoding("gpt2")
    /// >>> gpt2.encode("hello world")
    /// [31373, 995]
    /// >>> gpt2.encode("<|endoftext|>", allowed_special={"<|endoftext|>"})
    /// [50256]
    /// >>> gpt2.encode("<|endoftext|>", disallowed_special=())
    /// [27, 91, 437, 1659, 5239, 91, 29]
    #[pyo3(
        signature = (text, *surplus, allowed_special=Argument::Absent, disallowed_special=Argument::Absent),
        text_signature = "($self, text, *, allowed_special=(), disallowed_special='all')"
    )]
    fn encode<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        surplus: &Bound<'py, PyTuple>,
        allowed_special: Argument<'_, 'py>,
        disallowed_special: Argument<'_, 'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        refuse("encode", surplus)?;
        let core = Self::core(slf)?;
        let special = core.get().encoding().special_tokens();
        let request =
            request::read_optional(special, allowed_special.get(), disallowed_special.get())?;
        CoreBpe::list(&core, text, &request)
    }

    /// The native engine.
    #[getter]
    fn _core_bpe<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, CoreBpe>> {
        Self::core(slf)
    }

    #[setter(_core_bpe)]
    fn set_core_bpe(slf: &Bound<'_, Self>, core: Bound<'_, CoreBpe>) -> PyResult<()> {
        // Instances that receive the `__dict__` of this one find it there.
        let attributes = slf.getattr(interned!(slf.py(), "__dict__"))?;
        attributes.set_item(interned!(slf.py(), "_core_bpe"), &core)?;
        Self::replace(slf, core);
        Ok(())
    }
}
