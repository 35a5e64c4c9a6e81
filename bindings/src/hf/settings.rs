//! Methods of `Tokenizer` for truncation, padding and special tokens.

use bpe_core::components::spec::{Padding, PaddingStrategy, Truncation, TruncationStrategy};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::encoding::direction;
use crate::pipeline::{PyPipeline, PyTokenizer};

/// Reads `"longest_first"`, `"only_first"` or `"only_second"`.
pub fn truncation_strategy(name: &str) -> PyResult<TruncationStrategy> {
    match name {
        "longest_first" => Ok(TruncationStrategy::LongestFirst),
        "only_first" => Ok(TruncationStrategy::OnlyFirst),
        "only_second" => Ok(TruncationStrategy::OnlySecond),
        _ => Err(PyValueError::new_err(format!(
            "Unknown `strategy`: `{name}`. Use one of `longest_first`, `only_first`, or \
             `only_second`"
        ))),
    }
}

#[pymethods]
impl PyTokenizer {
    /// Enables truncation.
    ///
    /// Args:
    ///     max_length: The maximum number of tokens, including tokens of the post-processor.
    ///     stride: The number of tokens that consecutive parts of the overflow share.
    ///     strategy: Which sequence of a pair to truncate: ``"longest_first"``, ``"only_first"`` or
    ///         ``"only_second"``.
    ///     direction: The side to truncate: ``"right"`` or ``"left"``.
    ///
    /// Raises:
    ///     ValueError: The stride leaves no new tokens, or a name is unknown.
    #[pyo3(signature = (max_length, stride=0, strategy="longest_first", direction="right"))]
    fn enable_truncation(
        slf: &Bound<'_, Self>,
        max_length: usize,
        stride: usize,
        strategy: &str,
        direction: &str,
    ) -> PyResult<()> {
        let direction = self::direction(direction)?;
        let strategy = truncation_strategy(strategy)?;
        let truncation =
            Truncation { direction, max_length, strategy, stride, discards_overflow: false };
        Self::change(slf, |tokenizer| tokenizer.set_truncation(Some(truncation)))
    }

    /// Disables truncation.
    fn no_truncation(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::change(slf, |tokenizer| tokenizer.set_truncation(None))
    }

    /// The truncation settings as a dict, or None.
    #[getter]
    fn truncation<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let tokenizer = Self::tokenizer(slf)?;
        let Some(truncation) = tokenizer.truncation() else { return Ok(None) };
        let strategy = match truncation.strategy {
            TruncationStrategy::LongestFirst => "longest_first",
            TruncationStrategy::OnlyFirst => "only_first",
            TruncationStrategy::OnlySecond => "only_second",
        };
        let dict = PyDict::new(py);
        dict.set_item("max_length", truncation.max_length)?;
        dict.set_item("stride", truncation.stride)?;
        dict.set_item("strategy", strategy)?;
        dict.set_item("direction", format!("{:?}", truncation.direction).to_lowercase())?;
        Ok(Some(dict))
    }

    /// Enables padding.
    ///
    /// Args:
    ///     direction: The side to pad: ``"right"`` or ``"left"``.
    ///     pad_id, pad_type_id, pad_token: The padding token.
    ///     length: The length to pad to; None for the longest text of the batch.
    ///     pad_to_multiple_of: Rounds the length up to a multiple of this number.
    #[pyo3(signature = (direction="right", pad_id=0, pad_type_id=0, pad_token="[PAD]", length=None, pad_to_multiple_of=None))]
    fn enable_padding(
        slf: &Bound<'_, Self>,
        direction: &str,
        pad_id: u32,
        pad_type_id: u32,
        pad_token: &str,
        length: Option<usize>,
        pad_to_multiple_of: Option<usize>,
    ) -> PyResult<()> {
        let padding = Padding {
            strategy: length.map_or(PaddingStrategy::BatchLongest, PaddingStrategy::Fixed),
            direction: self::direction(direction)?,
            pad_to_multiple_of,
            pad_id,
            pad_type_id,
            pad_token: pad_token.to_owned(),
        };
        Self::set(slf, |tokenizer| tokenizer.set_padding(Some(padding)))
    }

    /// Disables padding.
    fn no_padding(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::set(slf, |tokenizer| tokenizer.set_padding(None))
    }

    /// The padding settings as a dict, or None.
    #[getter]
    fn padding<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let tokenizer = Self::tokenizer(slf)?;
        let Some(padding) = tokenizer.padding() else { return Ok(None) };
        let length = match padding.strategy {
            PaddingStrategy::BatchLongest => None,
            PaddingStrategy::Fixed(length) => Some(length),
        };
        let dict = PyDict::new(py);
        dict.set_item("length", length)?;
        dict.set_item("pad_to_multiple_of", padding.pad_to_multiple_of)?;
        dict.set_item("pad_id", padding.pad_id)?;
        dict.set_item("pad_token", &padding.pad_token)?;
        dict.set_item("pad_type_id", padding.pad_type_id)?;
        dict.set_item("direction", format!("{:?}", padding.direction).to_lowercase())?;
        Ok(Some(dict))
    }

    /// Whether the names of special tokens in texts are encoded as ordinary text.
    #[getter]
    fn encode_special_tokens(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Ok(Self::tokenizer(slf)?.encodes_special_tokens())
    }

    #[setter(encode_special_tokens)]
    fn setencode_special_tokens(slf: &Bound<'_, Self>, value: bool) -> PyResult<()> {
        Self::set(slf, |tokenizer| tokenizer.set_encode_special_tokens(value))
    }
}

#[pymethods]
impl PyPipeline {
    /// Whether abilities avoid added tokens that the model produces from ordinary text; `encode`
    /// keeps these.
    #[getter]
    fn _keeps_out_control(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Ok(Self::tokenizer(slf)?.keeps_out_control())
    }

    #[setter(_keeps_out_control)]
    fn set_keeps_out_control(slf: &Bound<'_, Self>, value: bool) -> PyResult<()> {
        Self::change(slf, |tokenizer| {
            tokenizer.set_keeps_out_control(value);
            Ok(())
        })
    }
}
