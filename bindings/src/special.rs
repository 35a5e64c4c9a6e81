//! `allowed_special` and `disallowed_special`: every method that takes them reads them here.

use bpe_core::special_tokens::{Names, Selection, SpecialTokens};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyAnyMethods, PyBytes, PySet, PyString, PyTuple};

use crate::errors::OrRaise;

/// What a caller wants to be done about the names of special tokens in a text.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The special tokens that text may stand for.
    pub allowed: Selection,
    disallowed: Disallowed,
}

/// The names that must not occur in a text.
#[derive(Debug, Clone)]
enum Disallowed {
    Nothing,
    /// Every special token that is not allowed.
    AllOthers,
    /// These, special tokens or not, allowed or not.
    Names(Box<Names>),
    /// The empty name is among them, which is in every text.
    Everything,
}

impl Rules {
    /// No special tokens, no check: `encode_ordinary`.
    pub const ORDINARY: Rules = Rules { allowed: Selection::None, disallowed: Disallowed::Nothing };

    /// Reads the two arguments: `"all"`, or names.
    pub fn read(
        special: &SpecialTokens,
        allowed: &Bound<'_, PyAny>,
        disallowed: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        Self::read_given(special, Some(allowed), Some(disallowed))
    }

    /// The same where they may be left out: then no name is allowed, and all others are disallowed.
    pub fn read_given(
        special: &SpecialTokens,
        allowed: Option<&Bound<'_, PyAny>>,
        disallowed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self {
            allowed: allowed.map_or(Ok(Selection::None), |names| read_allowed(special, names))?,
            disallowed: disallowed.map_or(Ok(Disallowed::AllOthers), read_disallowed)?,
        })
    }

    /// How many bytes the longest name that may be disallowed has.
    pub fn longest(&self, special: &SpecialTokens) -> usize {
        match &self.disallowed {
            Disallowed::Names(names) => names.longest(),
            _ => special.all().longest(),
        }
    }

    /// The first disallowed name in `text`, if there is one.
    pub fn find_disallowed(&self, special: &SpecialTokens, text: &str) -> Option<String> {
        match &self.disallowed {
            Disallowed::Nothing => None,
            Disallowed::AllOthers => {
                special.find_disallowed(text, &self.allowed).map(str::to_owned)
            }
            Disallowed::Names(names) => {
                names.find(text, 0).map(|found| names.names()[found.name].clone())
            }
            Disallowed::Everything => Some(String::new()),
        }
    }
}

/// The `ValueError` for a disallowed name in the text.
pub fn disallowed(py: Python<'_>, name: &str) -> PyErr {
    match disallowed_special_message(&PyString::new(py, name)) {
        Ok(message) => PyValueError::new_err(message),
        Err(error) => error,
    }
}

/// The message of the `ValueError` for a disallowed special token in the text; the same as
/// tiktoken's, since programs show it to their users.
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

fn read_allowed(special: &SpecialTokens, allowed: &Bound<'_, PyAny>) -> PyResult<Selection> {
    if let Ok(set) = allowed.cast::<PySet>() {
        if set.is_empty() {
            return Ok(Selection::None);
        }
    } else if is_all(allowed, "allowed_special")? {
        return Ok(Selection::All);
    }
    let names = names(allowed, "allowed_special")?;
    Ok(special.select(names.iter().map(String::as_str)))
}

fn read_disallowed(disallowed: &Bound<'_, PyAny>) -> PyResult<Disallowed> {
    if let Ok(tuple) = disallowed.cast::<PyTuple>() {
        if tuple.is_empty() {
            return Ok(Disallowed::Nothing);
        }
    } else if is_all(disallowed, "disallowed_special")? {
        return Ok(Disallowed::AllOthers);
    } else if disallowed.is_none() {
        return Ok(Disallowed::Nothing);
    }
    let names = names(disallowed, "disallowed_special")?;
    if names.is_empty() {
        Ok(Disallowed::Nothing)
    } else if names.iter().any(String::is_empty) {
        Ok(Disallowed::Everything)
    } else {
        Ok(Disallowed::Names(Box::new(Names::new(names).or_raise(disallowed.py())?)))
    }
}

/// Whether the argument is `"all"`. Any other `str` would be read as a set of its characters,
/// which nobody means.
fn is_all(value: &Bound<'_, PyAny>, argument: &str) -> PyResult<bool> {
    // The literal in a program, and our own default, are this very object.
    if value.is(pyo3::intern!(value.py(), "all")) {
        return Ok(true);
    }
    let Ok(text) = value.cast::<PyString>() else { return Ok(false) };
    if text.to_str().is_ok_and(|text| text == "all") {
        return Ok(true);
    }
    let repr = text.repr()?;
    if text.is_empty()? {
        return Err(PyTypeError::new_err(format!(
            "{argument} must be \"all\" or a set of names, not the string {repr}; \
             for no names pass {argument}=()"
        )));
    }
    Err(PyTypeError::new_err(format!(
        "{argument} must be \"all\" or a set of names, not the string {repr}; \
         for this one name pass {argument}={{{repr}}}"
    )))
}

/// The names in a set, list, tuple or any other iterable. Names that hold surrogates are read
/// with U+FFFD in their place, as texts are.
fn names(value: &Bound<'_, PyAny>, argument: &str) -> PyResult<Vec<String>> {
    let wrong = |value: &Bound<'_, PyAny>, what: &str| {
        let kind = value.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!(
            "{argument} must be \"all\" or a set of str, not {what}{kind}"
        ))
    };
    if value.is_instance_of::<PyBytes>() {
        return Err(wrong(value, ""));
    }
    let mut names = Vec::new();
    for name in value.try_iter().map_err(|_| wrong(value, ""))? {
        let name = name?;
        if !name.is_instance_of::<PyString>() {
            return Err(wrong(&name, "one that holds "));
        }
        names.push(crate::text::read(&name)?.utf8().to_string());
    }
    Ok(names)
}
