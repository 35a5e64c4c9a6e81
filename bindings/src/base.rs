//! The class `EncodingBase`: the methods of `bpe_engine.Encoding` that programs call for every
//! request. For a short text, a Python function around them would take as long as they do.

use std::convert::Infallible;
use std::sync::OnceLock;

use pyo3::exceptions::{PyAttributeError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::encoding::CoreBpe;
use crate::special::Rules;

/// What `bpe_engine.Encoding` inherits. Use that one.
#[pyclass(frozen, subclass, name = "EncodingBase", module = "bpe_engine._core")]
#[derive(Default)]
pub struct EncodingBase {
    core: OnceLock<Py<CoreBpe>>,
}

impl EncodingBase {
    fn core(&self) -> PyResult<&CoreBpe> {
        let core = self.core.get().ok_or_else(|| {
            PyAttributeError::new_err(
                "this Encoding was not initialized; an __init__ of your own must call \
                 super().__init__(...)",
            )
        })?;
        Ok(core.get())
    }
}

/// An argument that may be left out. Unlike with `Option`, to give `None` is not the same.
enum Given<'a, 'py> {
    Not,
    As(Borrowed<'a, 'py, PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Given<'a, 'py> {
    type Error = Infallible;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Self::As(value))
    }
}

impl<'py> Given<'_, 'py> {
    fn get(&self) -> Option<&Bound<'py, PyAny>> {
        match self {
            Self::Not => None,
            Self::As(value) => Some(value),
        }
    }
}

#[pymethods]
impl EncodingBase {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self::default()
    }

    /// Sets what encodes, once.
    fn _bind(&self, core_bpe: Py<CoreBpe>) -> PyResult<()> {
        self.core.set(core_bpe).map_err(|_| {
            PyRuntimeError::new_err("an Encoding never changes; make another one instead")
        })
    }

    /// The ids of a text in which nothing is special: ``encode(text,
    /// disallowed_special=())``.
    ///
    /// >>> import bpe_engine
    /// >>> bpe_engine.get_encoding("gpt2").encode_ordinary("hello world")
    /// [31373, 995]
    fn encode_ordinary<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        self.core()?.list(text, &Rules::ORDINARY)
    }

    /// The ids of a text.
    ///
    /// Special tokens control a model, and text from outside could use their names to the same
    /// end. So the name of one in the text is an error unless you say what it is to be.
    ///
    /// Args:
    ///     text: Any str. Surrogates are repaired: pairs are joined, lone ones become U+FFFD.
    ///     allowed_special: The names that become special tokens: a set, or ``"all"``.
    ///     disallowed_special: The names that raise: any collection of str, or ``"all"`` for
    ///         every special token that is not allowed. Names in neither are ordinary text, so
    ///         ``()`` turns the check off.
    ///
    /// Raises:
    ///     ValueError: The text holds a disallowed name.
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
        signature = (text, *, allowed_special=Given::Not, disallowed_special=Given::Not),
        text_signature = "($self, text, *, allowed_special=(), disallowed_special='all')"
    )]
    fn encode<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        allowed_special: Given<'_, 'py>,
        disallowed_special: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        let core = self.core()?;
        let special = core.encoding().special_tokens();
        core.list(
            text,
            &Rules::read_given(special, allowed_special.get(), disallowed_special.get())?,
        )
    }
}
