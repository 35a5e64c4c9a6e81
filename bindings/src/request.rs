//! Reads the arguments `allowed_special` and `disallowed_special` for all methods that have them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use bpe_core::Pipeline;
use bpe_core::Request;
use bpe_core::request::Disallowed;
use bpe_core::special_tokens::{Names, Selection, SpecialTokens};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyAnyMethods, PyBytes, PySet, PyString, PyTuple};

use crate::errors::OrRaise;
use crate::interned::interned;
use crate::objects::iterate;
use crate::text;

/// Interface of an object, which decides the defaults of allowed and disallowed names:
///
/// | | `Encoding` | others |
/// |---|---|---|
/// | allowed | none | all; none of a tokenizer that encodes their names as text |
/// | disallowed, where a method returns ids | all others | none |
/// | disallowed, where it counts or cuts | none | none |
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// The interface of tiktoken.
    Encoding,
    /// The interface of `tokenizers`.
    File,
    /// The interface of transformers, in which the attribute `split_special_tokens` also counts.
    Calls,
}

/// Kind of a method's result, which decides whether the method raises by default.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    Ids,
    /// A number, or parts of the text.
    Counts,
}

/// Returns the defaults of the two arguments. `is_text` says whether the object encodes the names
/// of special tokens as text.
pub fn defaults(
    py: Python<'_>,
    face: Face,
    gives: Gives,
    is_text: bool,
) -> (Bound<'_, PyAny>, Bound<'_, PyAny>) {
    let none = PyTuple::empty(py).into_any();
    let all = interned!(py, "all").as_any();
    let raises = face == Face::Encoding && gives == Gives::Ids;
    let allowed = if is_text || face == Face::Encoding { &none } else { all }.clone();
    (allowed, if raises { all.clone() } else { none })
}

/// Reads the two arguments: `"all"`, or names.
pub fn read(
    special: &SpecialTokens,
    allowed: &Bound<'_, PyAny>,
    disallowed: &Bound<'_, PyAny>,
) -> PyResult<Request> {
    read_optional(special, Some(allowed), Some(disallowed), Gives::Ids)
}

/// Reads the two arguments of a method of `Encoding`, if given.
#[inline]
pub fn read_optional(
    special: &SpecialTokens,
    allowed: Option<&Bound<'_, PyAny>>,
    disallowed: Option<&Bound<'_, PyAny>>,
    gives: Gives,
) -> PyResult<Request> {
    let default = || match gives {
        Gives::Ids => Disallowed::AllOthers,
        Gives::Counts => Disallowed::None,
    };
    Ok(Request {
        allowed: allowed.map_or(Ok(Selection::None), |names| read_allowed(special, names))?,
        disallowed: disallowed.map_or_else(|| Ok(default()), read_disallowed)?,
    })
}

/// Reads the two arguments for a tokenizer file, which searches for all its special tokens or for
/// none.
pub fn read_for_file(
    tokenizer: &Pipeline,
    allowed: &Bound<'_, PyAny>,
    disallowed: &Bound<'_, PyAny>,
) -> PyResult<Request> {
    let is_all = !is_empty(allowed) && is_all(allowed, "allowed_special")?;
    let disallowed_names = read_disallowed(disallowed)?;
    if is_all && matches!(disallowed_names, Disallowed::None | Disallowed::AllOthers) {
        return Ok(Request::allowing(Selection::All));
    }
    let skips_names = is_all || is_empty(allowed);
    let names = if skips_names { Vec::new() } else { names(allowed, "allowed_special")? };
    let allows_any = is_all || !names.is_empty() && allows(tokenizer, &names)?;
    let disallowed = match disallowed_names {
        Disallowed::AllOthers if !allows_any => {
            Disallowed::Names(tokenizer.special_names().or_raise()?.clone())
        }
        Disallowed::AllOthers => Disallowed::None,
        names => names,
    };
    Ok(Request { allowed: if allows_any { Selection::All } else { Selection::None }, disallowed })
}

/// Returns true if the names contain all special tokens of a tokenizer file, false if none.
fn allows(tokenizer: &Pipeline, names: &[String]) -> PyResult<bool> {
    let special = tokenizer.special_names().or_raise()?.names();
    let names = names.iter().filter(|name| special.binary_search(name).is_ok());
    match names.collect::<HashSet<_>>().len() {
        0 => Ok(false),
        count if count == special.len() => Ok(true),
        _ => Err(PyValueError::new_err(
            "a tokenizer.json looks for all of its special tokens or for none; pass \
             allowed_special=\"all\" or set(), not some of them",
        )),
    }
}

/// Returns true for an empty set or tuple, the usual ways to write no names.
fn is_empty(names: &Bound<'_, PyAny>) -> bool {
    match names.cast::<PyTuple>() {
        Ok(tuple) => tuple.is_empty(),
        Err(_) => names.cast::<PySet>().is_ok_and(|set| set.is_empty()),
    }
}

fn read_allowed(special: &SpecialTokens, allowed: &Bound<'_, PyAny>) -> PyResult<Selection> {
    if is_empty(allowed) {
        return Ok(Selection::None);
    }
    if is_all(allowed, "allowed_special")? {
        return Ok(Selection::All);
    }
    let names = names(allowed, "allowed_special")?;
    Ok(special.select(names.iter().map(String::as_str)))
}

fn read_disallowed(disallowed: &Bound<'_, PyAny>) -> PyResult<Disallowed> {
    if is_empty(disallowed) || disallowed.is_none() {
        return Ok(Disallowed::None);
    }
    if is_all(disallowed, "disallowed_special")? {
        return Ok(Disallowed::AllOthers);
    }
    let names = names(disallowed, "disallowed_special")?;
    if names.is_empty() {
        Ok(Disallowed::None)
    } else if names.iter().any(String::is_empty) {
        Ok(Disallowed::Everything)
    } else {
        Ok(Disallowed::Names(searcher(names)?))
    }
}

/// Returns a searcher for names, and keeps it: to build one takes longer than a short call.
fn searcher(names: Vec<String>) -> PyResult<Arc<Names>> {
    static LAST: Mutex<Option<(Vec<String>, Arc<Names>)>> = Mutex::new(None);
    // Never waits, because the lock may stay locked after a fork.
    let mut last = LAST.try_lock().ok();
    if let Some((known, searcher)) = last.as_deref().and_then(Option::as_ref)
        && *known == names
    {
        return Ok(searcher.clone());
    }
    let searcher = Arc::new(Names::new(names.iter().cloned()).or_raise()?);
    if let Some(last) = last.as_deref_mut() {
        *last = Some((names, searcher.clone()));
    }
    Ok(searcher)
}

/// Returns true if the argument is `"all"`. Any other `str` is refused: it would be read as a set
/// of its characters.
fn is_all(value: &Bound<'_, PyAny>, argument: &str) -> PyResult<bool> {
    // A literal in a program, and the default of this library, are the same interned object.
    if value.is(interned!(value.py(), "all")) {
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
             to pass no names, use {argument}=()"
        )));
    }
    Err(PyTypeError::new_err(format!(
        "{argument} must be \"all\" or a set of names, not the string {repr}; \
         for this one name pass {argument}={{{repr}}}"
    )))
}

/// Reads the names in a set, list, tuple or any other iterable. Surrogates in names become U+FFFD,
/// as in texts.
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
    for name in iterate(value).map_err(|_| wrong(value, ""))? {
        let name = name?;
        if !name.is_instance_of::<PyString>() {
            return Err(wrong(&name, "one that holds "));
        }
        names.push(text::read(&name)?.utf8().or_raise()?.to_string());
    }
    Ok(names)
}
