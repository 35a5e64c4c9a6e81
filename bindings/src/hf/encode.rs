//! Texts to encodings.

use std::sync::{Arc, Mutex, PoisonError};

use bpe_core::memory::reserve;
use bpe_core::threads::{cores, in_order};
use bpe_hf::{Input, Tokenizer};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::OrRaise;
use super::encoding::HfEncoding;
use super::input::{Given, GivenInput, items};
use super::state::Origin;
use super::tokenizer::{HfTokenizer, SHARE, aside};
use crate::buffer_pool::{self, likely_ids};
use crate::errors::OrRaise as _;
use crate::objects::{collected, new_list, push};
use crate::rows;

/// What was made of a share, and what stopped the next one. The lock is for taking it out.
type Part<T, E> = Mutex<(Vec<T>, Option<E>)>;

/// What `encode` makes of inputs, in order, on up to `threads` threads.
pub fn encode_each<T: Send, E: Send + From<bpe_core::Error>>(
    py: Python<'_>,
    given: &[GivenInput],
    threads: usize,
    encode: impl Fn(Input<'_>) -> Result<T, E> + Sync,
    raise: impl Fn(E) -> PyErr,
) -> PyResult<Vec<T>> {
    let read = collected(py, given.iter().map(|given| given.utf8(py)))?;
    let inputs = collected(py, read.iter().map(|read| Ok(read.input())))?;
    let total: usize = inputs.iter().map(|input| input.size()).sum();
    let mut shares = Vec::new();
    let (mut start, mut sum) = (0, 0);
    for (index, input) in inputs.iter().enumerate() {
        sum += input.size() + 16;
        if sum >= SHARE || index + 1 == inputs.len() {
            push(py, &mut shares, start..index + 1)?;
            (start, sum) = (index + 1, 0);
        }
    }
    let encode = |share: usize, part: &mut Part<T, E>| {
        let (made, failure) = part.get_mut().unwrap_or_else(PoisonError::into_inner);
        *failure = None;
        for &input in &inputs[shares[share].clone()] {
            let room = reserve(made, 1).map_err(E::from);
            match room.and_then(|()| encode(input)) {
                Ok(encoding) => made.push(encoding),
                Err(error) => {
                    *failure = Some(error);
                    return;
                }
            }
        }
    };
    let mut encodings = Vec::new();
    reserve(&mut encodings, given.len()).or_raise(py)?;
    let take = |part: &Part<T, E>| {
        let (made, failure) = &mut *part.lock().unwrap_or_else(PoisonError::into_inner);
        encodings.append(made);
        failure.take().map_or(Ok(()), |error| Err(raise(error)))
    };
    let threads = threads.min(cores()).min(total / SHARE + 1);
    in_order(shares.len(), threads, encode, |job| aside(py, total, job), take)?;
    Ok(encodings)
}

/// The encodings of inputs, in order, filled up.
fn encode_all<'py>(
    py: Python<'py>,
    tokenizer: &Arc<Tokenizer>,
    given: Vec<GivenInput>,
    add_special_tokens: bool,
    threads: usize,
) -> PyResult<Bound<'py, PyList>> {
    let encode = |input: Input<'_>| tokenizer.encode(input, add_special_tokens, Vec::new());
    let mut made = encode_each(py, &given, threads, encode, super::to_python)?;
    let length = tokenizer.pad_encoded(&mut made).or_raise()?;
    let objects = made.into_iter().zip(given).map(|(encoded, given)| {
        let origin = Origin::new(tokenizer.clone(), given, add_special_tokens, length);
        Bound::new(py, HfEncoding::of_input(encoded, origin))
    });
    new_list(py, collected(py, objects)?)
}

#[pymethods]
impl HfTokenizer {
    /// Encodes a sequence, or two.
    ///
    /// Args:
    ///     sequence: A text, or with ``is_pretokenized`` its words.
    ///     pair: The second sequence.
    ///     is_pretokenized: Whether sequences are lists of words.
    ///     add_special_tokens: Whether the post-processor adds its tokens.
    ///
    /// Raises:
    ///     TypeError: A sequence is no ``str``, or no list of them.
    ///     ValueError: Truncation cannot make it as short as it was told to.
    #[pyo3(signature = (sequence, pair=None, is_pretokenized=false, add_special_tokens=true))]
    fn encode(
        &self,
        py: Python<'_>,
        sequence: &Bound<'_, PyAny>,
        pair: Option<&Bound<'_, PyAny>>,
        is_pretokenized: bool,
        add_special_tokens: bool,
    ) -> PyResult<HfEncoding> {
        let first = Given::read(sequence, is_pretokenized)?;
        let second = pair.map(|pair| Given::read(pair, is_pretokenized)).transpose()?;
        let given = GivenInput { first, second };
        let tokenizer = self.current();
        let mut encoded = {
            let read = given.utf8(py)?;
            let input = read.input();
            let size = input.size();
            let ids = buffer_pool::IDS.take(likely_ids(size));
            let work = || tokenizer.encode(input, add_special_tokens, ids);
            aside(py, size, work)?.or_raise()?
        };
        let length = tokenizer.pad_encoded(std::slice::from_mut(&mut encoded)).or_raise()?;
        let origin = Origin::new(tokenizer, given, add_special_tokens, length);
        Ok(HfEncoding::of_input(encoded, origin))
    }

    /// Encodes many inputs: texts, or pairs of texts.
    ///
    /// Args:
    ///     input: Texts, or tuples of two; with ``is_pretokenized`` lists of words.
    ///     is_pretokenized: Whether sequences are lists of words.
    ///     add_special_tokens: Whether the post-processor adds its tokens.
    ///     num_threads: The most threads to use; None: as many as the machine has cores. They
    ///         live as long as the call, and a batch of little text uses one.
    #[pyo3(signature = (input, is_pretokenized=false, add_special_tokens=true, num_threads=None))]
    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        input: &Bound<'_, PyAny>,
        is_pretokenized: bool,
        add_special_tokens: bool,
        num_threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let threads = num_threads.map_or(Ok(usize::MAX), rows::threads)?;
        let inputs = items(input)?.map(|item| GivenInput::read(&item?, is_pretokenized));
        encode_all(py, &self.current(), collected(py, inputs)?, add_special_tokens, threads)
    }

    /// The same as `encode_batch`: what is costly is made only when it is asked for.
    #[pyo3(signature = (input, is_pretokenized=false, add_special_tokens=true, num_threads=None))]
    fn encode_batch_fast<'py>(
        &self,
        py: Python<'py>,
        input: &Bound<'_, PyAny>,
        is_pretokenized: bool,
        add_special_tokens: bool,
        num_threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.encode_batch(py, input, is_pretokenized, add_special_tokens, num_threads)
    }

    /// Truncates encodings of one sequence, or of two, adds special tokens, and fills up.
    #[pyo3(signature = (encoding, pair=None, add_special_tokens=true))]
    fn post_process(
        &self,
        py: Python<'_>,
        encoding: &Bound<'_, HfEncoding>,
        pair: Option<&Bound<'_, HfEncoding>>,
        add_special_tokens: bool,
    ) -> PyResult<HfEncoding> {
        let tokenizer = self.current();
        let sequences = std::iter::once(encoding).chain(pair).map(|part| part.get().to_core(py));
        let sequences = sequences.collect::<PyResult<_>>()?;
        let mut made = [tokenizer.post_process(sequences, add_special_tokens).or_raise()?];
        tokenizer.pad(&mut made).or_raise()?;
        let [made] = made;
        Ok(HfEncoding::detailed(made))
    }
}
