//! Applies, reads and sets single components of a tokenizer, which Python passes as JSON.

use std::hash::{DefaultHasher, Hash, Hasher};

use bpe_core::components::spec::{Component, Decoder, Normalizer, PostProcessor, PreTokenizer};
use bpe_core::components::{decode, normalize};
use bpe_core::pipeline::pre_tokenize;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::encoding::HfEncoding;
use crate::errors::OrRaise;
use crate::objects::{collected, new_list, new_span, new_str, new_tuple};
use crate::pipeline::{PyPipeline, PyTokenizer};

fn json<'py, T: serde::Serialize>(
    py: Python<'py>,
    component: Option<&T>,
) -> PyResult<Option<Bound<'py, PyString>>> {
    let write = |component: &T| match serde_json::to_string(component) {
        Ok(json) => new_str(py, &json),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    };
    component.map(write).transpose()
}

/// Reads a component from JSON.
pub fn component<C: Component>(json: &str, path: &str) -> PyResult<C> {
    let value = serde_json::from_str(json)
        .map_err(|error| PyValueError::new_err(format!("{path}: {error}")))?;
    C::read(&value, path).or_raise()
}

/// Reads the JSON of a component of this kind, and returns it with all types and fields.
#[pyfunction]
pub fn hf_component<'py>(
    py: Python<'py>,
    kind: &str,
    json: &str,
) -> PyResult<Option<Bound<'py, PyString>>> {
    match kind {
        "normalizer" => self::json(py, Some(&component::<Normalizer>(json, kind)?)),
        "pre_tokenizer" => self::json(py, Some(&component::<PreTokenizer>(json, kind)?)),
        "post_processor" => self::json(py, Some(&component::<PostProcessor>(json, kind)?)),
        "decoder" => self::json(py, Some(&component::<Decoder>(json, kind)?)),
        _ => Err(PyValueError::new_err(format!("no component is called {kind:?}"))),
    }
}

/// A normalizer, pre-tokenizer or decoder that can run.
#[pyclass(frozen, module = "bpe_engine._core")]
pub struct HfComponent(Box<Run>);

type Run = dyn for<'py> Fn(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> + Send + Sync;

#[pymethods]
impl HfComponent {
    /// Reads the JSON of a component of this kind.
    #[new]
    fn new(kind: &str, json: &str) -> PyResult<Self> {
        Ok(Self(match kind {
            "normalizer" => {
                let run = normalize(&component(json, kind)?).or_raise()?;
                Box::new(
                    move |it| Ok(new_str(it.py(), &run(it.extract()?).or_raise()?)?.into_any()),
                )
            }
            "pre_tokenizer" => {
                let run = pre_tokenize(&component(json, kind)?).or_raise()?;
                Box::new(move |it| {
                    let py = it.py();
                    let pieces = run(it.extract()?).or_raise()?.into_iter().map(|(piece, span)| {
                        let piece = new_str(py, &piece)?.into_any();
                        new_tuple(py, [piece, new_span(py, span)?.into_any()])
                    });
                    Ok(new_list(py, collected(pieces)?)?.into_any())
                })
            }
            _ => {
                let run = decode(&component(json, kind)?).or_raise()?;
                Box::new(
                    move |it| Ok(new_str(it.py(), &run(it.extract()?).or_raise()?)?.into_any()),
                )
            }
        }))
    }

    /// Returns the normalized text, the pieces of a text with their offsets, or the text of tokens.
    fn __call__<'py>(&self, input: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        (self.0)(input)
    }
}

/// Counts the tokens that a post-processor given as JSON adds to one sequence, or to a pair.
#[pyfunction]
pub fn hf_added_tokens(json: &str, is_pair: bool) -> PyResult<usize> {
    let processor: PostProcessor = component(json, "post_processor")?;
    Ok(processor.added_tokens(is_pair))
}

/// Hashes the content of an added token like `tokenizers`, so that equal tokens of both packages
/// collide in a set.
#[pyfunction]
pub fn hf_content_hash(content: &str) -> i64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish().cast_signed()
}

/// Post-processes one or two encoded sequences with a post-processor given as JSON.
#[pyfunction]
pub fn hf_process(
    py: Python<'_>,
    json: &str,
    encoding: &Bound<'_, HfEncoding>,
    pair: Option<&Bound<'_, HfEncoding>>,
    add_special_tokens: bool,
) -> PyResult<HfEncoding> {
    let processor: PostProcessor = component(json, "post_processor")?;
    processor.check("post_processor").or_raise()?;
    let sequences = std::iter::once(encoding).chain(pair).map(|part| part.get().to_core(py));
    let sequences = sequences.collect::<PyResult<_>>()?;
    let made = bpe_core::components::post::post_process(
        sequences,
        None,
        Some(&processor),
        add_special_tokens,
    );
    made.map(HfEncoding::complete).or_raise()
}

#[pymethods]
impl PyTokenizer {
    /// Writes the JSON of a file from which `tokenizers` reads the same tokenizer.
    ///
    /// Args:
    ///     pretty: Whether to add line breaks.
    #[pyo3(signature = (pretty=false))]
    fn to_str<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
        pretty: bool,
    ) -> PyResult<Bound<'py, PyString>> {
        let tokenizer = Self::tokenizer(slf)?;
        new_str(py, &py.detach(|| tokenizer.to_json(pretty)).or_raise()?)
    }
}

#[pymethods]
impl PyPipeline {
    /// Returns the JSON of a component: `normalizer`, `pre_tokenizer`, `post_processor` or
    /// `decoder`.
    fn _component<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Option<Bound<'py, PyString>>> {
        let tokenizer = Self::tokenizer(slf)?;
        match name {
            "normalizer" => json(py, tokenizer.normalizer_spec()),
            "pre_tokenizer" => json(py, tokenizer.pre_tokenizer_spec()),
            "post_processor" => json(py, tokenizer.post_processor_spec()),
            "decoder" => json(py, tokenizer.decoder_spec()),
            _ => Err(PyValueError::new_err(format!("no component is called {name:?}"))),
        }
    }

    /// Sets the scores of all tokens of a Unigram model.
    fn _set_scores(slf: &Bound<'_, Self>, scores: Vec<f64>) -> PyResult<()> {
        Self::change(slf, |tokenizer| tokenizer.set_scores(scores))
    }

    /// Returns the JSON of the model, as in a file.
    fn _model_json<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
        pretty: bool,
    ) -> PyResult<Bound<'py, PyString>> {
        let tokenizer = Self::tokenizer(slf)?;
        new_str(py, &py.detach(|| tokenizer.model_json(pretty)).or_raise()?)
    }

    /// Returns the JSON of the model's fields, without its lists.
    fn _model_fields<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyString>> {
        new_str(py, &Self::tokenizer(slf)?.model_fields().or_raise()?.to_string())
    }

    /// Sets a component, the `model`, or a field of the model such as `model.unk_token`, given as
    /// JSON.
    #[pyo3(signature = (name, json))]
    fn _set_component(slf: &Bound<'_, Self>, name: &str, json: Option<&str>) -> PyResult<()> {
        match name {
            "normalizer" => {
                let spec = json.map(|json| component(json, name)).transpose()?;
                Self::change(slf, |tokenizer| tokenizer.set_normalizer(spec))
            }
            "pre_tokenizer" => {
                let spec = json.map(|json| component(json, name)).transpose()?;
                Self::change(slf, |tokenizer| tokenizer.set_pre_tokenizer(spec))
            }
            "post_processor" => {
                let spec = json.map(|json| component(json, name)).transpose()?;
                Self::change(slf, |tokenizer| tokenizer.set_post_processor(spec))
            }
            "decoder" => {
                let spec = json.map(|json| component(json, name)).transpose()?;
                Self::change(slf, |tokenizer| tokenizer.set_decoder(spec))
            }
            "model" => {
                Self::change(slf, |tokenizer| tokenizer.set_model_json(json.unwrap_or("null")))
            }
            _ => {
                let Some(field) = name.strip_prefix("model.") else {
                    return Err(PyValueError::new_err(format!("no component is called {name:?}")));
                };
                let value = serde_json::from_str(json.unwrap_or("null"))
                    .map_err(|error| PyValueError::new_err(format!("{name}: {error}")))?;
                Self::change(slf, |tokenizer| tokenizer.set_model_field(field, value))
            }
        }
    }
}
