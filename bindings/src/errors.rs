//! Converts errors of the core to Python exceptions, of the types that tiktoken raises.

use bpe_core::Error;
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyError, PyKeyboardInterrupt, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::objects::{new_bytes, new_str};

create_exception!(
    bpe_engine._core,
    UnsupportedTokenizer,
    PyValueError,
    "A tokenizer file requires a feature that is not supported exactly. The message names it."
);

/// Returns `KeyError` for an unknown token, id or stream, `MemoryError` and `KeyboardInterrupt` for
/// out of memory and interruption, `UnsupportedTokenizer` for an unsupported part of a file, and
/// `ValueError` for everything else.
pub fn to_python(error: Error) -> PyErr {
    match error {
        Error::DisallowedSpecial { name } => Python::attach(|py| {
            let message = new_str(py, &name).and_then(|name| disallowed_special_message(&name));
            message.map_or_else(|error| error, PyValueError::new_err)
        }),
        Error::UnknownToken(bytes) => Python::attach(|py| {
            let bytes = new_bytes(py, &bytes).map(Bound::unbind);
            bytes.map_or_else(|error| error, PyKeyError::new_err)
        }),
        Error::Unsupported { .. } => UnsupportedTokenizer::new_err(error.to_string()),
        Error::UnknownId(_) | Error::UnknownStream(_) => PyKeyError::new_err(error.to_string()),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// Returns the message of the `ValueError` for a disallowed special token in a text. Programs show
/// this message to users, so it equals tiktoken's.
#[pyfunction]
pub fn disallowed_special_message(token: &Bound<'_, PyString>) -> PyResult<String> {
    let token = token.repr()?;
    let token = token.to_str()?;
    Ok(format!(
        "Encountered text corresponding to disallowed special token {token}.\n\
         If you want this text to be encoded as a special token, \
         pass it to `allowed_special`, e.g. `allowed_special={{{token}, ...}}`.\n\
         If you want this text to be encoded as normal text, disable the check for this token \
         by passing `disallowed_special=(enc.special_tokens_set - {{{token}}})`.\n\
         To disable this check for all special tokens, pass `disallowed_special=()`.\n"
    ))
}

/// Describes a value of the wrong type with `bpe_engine.common.values.describe`, which avoids
/// objects whose repr may crash the process.
pub fn describe(value: &Bound<'_, PyAny>) -> String {
    let call = || {
        let module = value.py().import("bpe_engine.common.values")?;
        module.call_method1("describe", (value,))?.extract()
    };
    call().unwrap_or_else(|_: PyErr| "another object".to_owned())
}

/// Converts the error of a core result with [`to_python`].
pub trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for bpe_core::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(to_python)
    }
}
