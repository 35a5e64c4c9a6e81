//! Methods of `Tokenizer` that encode texts.

use std::sync::{Arc, Mutex, PoisonError};

use bpe_core::memory::{ask_for, reserve};
use bpe_core::pipeline::{Encoded, Input, Pipeline};
use bpe_core::threads::{cores, in_order};
use bpe_core::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::encoding::HfEncoding;
use super::input::{Given, GivenInput, Surrogates, items};
use super::lazy::LazyEncoding;
use crate::buffer_pool::{self, likely_ids};
use crate::errors::{OrRaise, to_python};
use crate::objects::{collected, new_list};
use crate::pipeline::PyTokenizer;
use crate::{gil, rows};

/// Results of a share, and the error of the next input. Locked while they are taken out.
type ShareResult<T> = Mutex<(Vec<T>, Option<Error>)>;

/// Size of one share of a batch, in bytes of text.
pub const SHARE: usize = 32 * 1024;

/// Runs `encode` on inputs, on up to `threads` threads, and keeps the order.
pub fn encode_each<T: Send>(
    py: Python<'_>,
    given: &[GivenInput],
    threads: usize,
    encode: impl Fn(Input<'_>) -> Result<T> + Sync,
) -> PyResult<Vec<T>> {
    let read = GivenInput::all_utf8(py, given)?;
    let inputs = collected(read.iter().map(|read| Ok(read.input())))?;
    let total: usize = inputs.iter().map(|input| input.size()).sum();
    let shares = rows::shares(inputs.iter().map(|input| input.size()), SHARE)?;
    let encode = |share: usize, part: &mut ShareResult<T>| {
        let (made, failure) = part.get_mut().unwrap_or_else(PoisonError::into_inner);
        let inputs = &inputs[shares[share].clone()];
        *failure = ask_for_encodings(inputs).err();
        for &input in if failure.is_none() { inputs } else { &[] } {
            match reserve(made, 1).and_then(|()| encode(input)) {
                Ok(encoding) => made.push(encoding),
                Err(error) => {
                    *failure = Some(error);
                    return;
                }
            }
        }
    };
    let mut encodings = Vec::new();
    reserve(&mut encodings, given.len()).or_raise()?;
    let take = |part: &ShareResult<T>| {
        let (made, failure) = &mut *part.lock().unwrap_or_else(PoisonError::into_inner);
        encodings.append(made);
        failure.take().map_or(Ok(()), |error| Err(to_python(error)))
    };
    let threads = threads.min(cores()).min(total / SHARE + 1);
    in_order(shares.len(), threads, encode, |job| gil::run_job(py, total, job), take)?;
    Ok(encodings)
}

/// Fails if there is no memory for the encodings of these inputs, which are many small allocations.
fn ask_for_encodings(inputs: &[Input<'_>]) -> Result<()> {
    /// Memory in bytes per byte of text; the next constants are per input, and for everything else.
    const BYTE: usize = 100;
    const INPUT: usize = 1024;
    const MORE: usize = 1 << 20;
    let size: usize = inputs.iter().map(|input| input.size()).sum();
    let memory = size.saturating_mul(BYTE).saturating_add(inputs.len() * INPUT + MORE);
    ask_for(memory)
}

/// Encodes inputs as one batch, pads the batch, and keeps the order.
pub fn encode_all<'py>(
    py: Python<'py>,
    tokenizer: &Arc<Pipeline>,
    given: Vec<GivenInput>,
    add_special_tokens: bool,
    threads: usize,
) -> PyResult<Bound<'py, PyList>> {
    let encodings = given.len();
    ask_for(encodings.saturating_mul(LazyEncoding::MEMORY)).or_raise()?;
    let encode = |input: Input<'_>| tokenizer.encode(input, add_special_tokens, Vec::new());
    let mut made = encode_each(py, &given, threads, encode)?;
    let length = tokenizer.pad(made.iter_mut().filter_map(Encoded::encoding_mut)).or_raise()?;
    // Existing encodings take memory themselves, so memory for the objects is checked again.
    ask_for(encodings.saturating_mul(LazyEncoding::MEMORY)).or_raise()?;
    let objects = made.into_iter().zip(given).map(|(encoded, given)| {
        let state =
            LazyEncoding::new(encoded, tokenizer.clone(), given, add_special_tokens, length);
        Bound::new(py, HfEncoding::new(state))
    });
    new_list(py, collected(objects)?)
}

#[pymethods]
impl PyTokenizer {
    /// Encodes a sequence or a pair.
    ///
    /// Args:
    ///     sequence: A text; with ``is_pretokenized``, its words.
    ///     pair: The second sequence.
    ///     is_pretokenized: Whether sequences are lists of words.
    ///     add_special_tokens: Whether the post-processor adds its tokens.
    ///
    /// Raises:
    ///     TypeError: A sequence is not a ``str``, or not a list of ``str``.
    ///     ValueError: Truncation cannot reach its ``max_length``.
    #[pyo3(signature = (sequence, pair=None, is_pretokenized=false, add_special_tokens=true))]
    fn encode(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        sequence: &Bound<'_, PyAny>,
        pair: Option<&Bound<'_, PyAny>>,
        is_pretokenized: bool,
        add_special_tokens: bool,
    ) -> PyResult<HfEncoding> {
        let surrogates = Surrogates::Refused;
        let read = |item: &Bound<'_, PyAny>| Given::read(item, is_pretokenized, surrogates);
        let (first, second) = (read(sequence)?, pair.map(read).transpose()?);
        let given = GivenInput { first, second, surrogates };
        let tokenizer = Self::tokenizer(slf)?;
        let mut encoded = {
            let read = given.utf8(py)?;
            let input = read.input();
            let size = input.size();
            let ids = buffer_pool::IDS.take(likely_ids(size));
            let work = || tokenizer.encode(input, add_special_tokens, ids);
            gil::run(py, size, work)?
        };
        let length = tokenizer.pad(encoded.encoding_mut().into_iter()).or_raise()?;
        let state = LazyEncoding::new(encoded, tokenizer, given, add_special_tokens, length);
        Ok(HfEncoding::new(state))
    }

    /// Encodes a batch of texts, or of pairs of texts.
    ///
    /// Args:
    ///     input: Texts, or tuples of two texts; with ``is_pretokenized``, lists of words.
    ///     is_pretokenized: Whether sequences are lists of words.
    ///     add_special_tokens: Whether the post-processor adds its tokens.
    ///     num_threads: The maximum number of threads; None for one per core. Threads end with the
    ///         call. A small batch uses one thread.
    #[pyo3(signature = (input, is_pretokenized=false, add_special_tokens=true, *, num_threads=None))]
    fn encode_batch<'py>(
        slf: &Bound<'_, Self>,
        py: Python<'py>,
        input: &Bound<'_, PyAny>,
        is_pretokenized: bool,
        add_special_tokens: bool,
        num_threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let threads = num_threads.map_or(Ok(usize::MAX), rows::threads)?;
        let inputs = GivenInput::read_all(py, items(input)?, is_pretokenized, Surrogates::Refused)?;
        encode_all(py, &Self::tokenizer(slf)?, inputs, add_special_tokens, threads)
    }

    /// Truncates one or two encoded sequences, adds special tokens, and pads.
    #[pyo3(signature = (encoding, pair=None, add_special_tokens=true))]
    fn post_process(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        encoding: &Bound<'_, HfEncoding>,
        pair: Option<&Bound<'_, HfEncoding>>,
        add_special_tokens: bool,
    ) -> PyResult<HfEncoding> {
        let tokenizer = Self::tokenizer(slf)?;
        let sequences = std::iter::once(encoding).chain(pair).map(|part| part.get().to_core(py));
        let sequences = sequences.collect::<PyResult<_>>()?;
        let mut encoding =
            tokenizer.post_process(sequences, add_special_tokens, true).or_raise()?;
        tokenizer.pad(std::iter::once(&mut encoding)).or_raise()?;
        Ok(HfEncoding::complete(encoding))
    }
}
