//! The class `EncodingBase`: the methods of `bpe_engine.Encoding` that programs call for every
//! request. A Python function around them would be a good part of what a short text takes.

use std::convert::Infallible;

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::encoding::CoreBpe;
use crate::special::Rules;

/// What `bpe_engine.Encoding` inherits. Use that one.
///
/// It holds nothing: the attribute `_core_bpe` of the instance does the work.
#[pyclass(frozen, subclass, name = "EncodingBase", module = "bpe_engine._core")]
pub struct EncodingBase;

impl EncodingBase {
    /// Leaves it to `object` to make the instances, so that Python classes inherit from this one,
    /// and are pickled, as if it were not there.
    pub fn prepare(py: Python<'_>) {
        let class = py.get_type::<EncodingBase>().as_type_ptr();
        let object = py.get_type::<PyAny>().as_type_ptr();
        // SAFETY: attached, and nobody has used the class yet. An instance has nothing that one of
        // `object` has not, and is complete as `object` makes it.
        unsafe {
            assert_eq!((*class).tp_basicsize, (*object).tp_basicsize);
            (*class).tp_new = (*object).tp_new;
        }
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
    /// The ids of a text in which nothing is special: ``encode(text,
    /// disallowed_special=())``.
    ///
    /// >>> import bpe_engine
    /// >>> bpe_engine.get_encoding("gpt2").encode_ordinary("hello world")
    /// [31373, 995]
    fn encode_ordinary<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        core(slf)?.get().list(text, &Rules::ORDINARY)
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
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        allowed_special: Given<'_, 'py>,
        disallowed_special: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        let core = core(slf)?;
        let special = core.get().encoding().special_tokens();
        let rules = Rules::read_given(special, allowed_special.get(), disallowed_special.get())?;
        core.get().list(text, &rules)
    }
}

fn core<'py>(encoding: &Bound<'py, EncodingBase>) -> PyResult<Bound<'py, CoreBpe>> {
    let core = encoding.getattr(pyo3::intern!(encoding.py(), "_core_bpe"))?;
    Ok(core.cast_into::<CoreBpe>()?)
}
