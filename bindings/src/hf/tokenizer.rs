//! The class that `bpe_engine.hf.Tokenizer` inherits.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bpe_core::threads::{cores, in_order};
use bpe_hf::detail::Token;
use bpe_hf::spec::{Padding, PaddingStrategy, Truncation, TruncationStrategy};
use bpe_hf::{AddedToken, Encoding, Input, Sequence, Tokenizer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::encoding::{HfEncoding, Source, direction};
use super::{OrRaise, component, input};
use crate::{gil, rows};

/// How much text a share of a batch has.
const SHARE: usize = 32 * 1024;

/// What `bpe_engine.hf.Tokenizer` inherits. Use that one.
#[pyclass(frozen, subclass, name = "HfTokenizer", module = "bpe_engine._core")]
pub struct HfTokenizer(RwLock<Arc<Tokenizer>>);

impl HfTokenizer {
    /// The tokenizer as it is now. Whoever changes it makes another one.
    pub fn current(&self) -> Arc<Tokenizer> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change<T>(&self, work: impl FnOnce(&mut Tokenizer) -> bpe_hf::Result<T>) -> PyResult<T> {
        let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Tokenizer::clone(&place);
        let result = work(&mut changed).or_raise()?;
        *place = Arc::new(changed);
        Ok(result)
    }
}

/// Runs `work`, without holding the interpreter if `size` says that it takes a while.
fn aside<T: Send>(py: Python<'_>, size: usize, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    const WORTH_DETACHING: usize = 4096;
    if size < WORTH_DETACHING { Ok(work()) } else { gil::detached(py, work) }
}

/// Encodings of a share, and what stopped the next one. The lock is for taking them out.
type Part<E> = Mutex<(Vec<Encoding>, Option<E>)>;

fn size(input: &Input) -> usize {
    let sequence = |sequence: &Sequence| match sequence {
        Sequence::Text(text) => text.len(),
        Sequence::Words(words) => words.iter().map(String::len).sum(),
    };
    sequence(&input.first) + input.second.as_ref().map_or(0, sequence)
}

/// The encodings of inputs, in order, on up to `threads` threads.
pub fn encode_each<E: Send>(
    py: Python<'_>,
    inputs: &[Input],
    threads: usize,
    encode: impl Fn(&Input) -> Result<Encoding, E> + Sync,
    raise: impl Fn(E) -> PyErr,
) -> PyResult<Vec<Encoding>> {
    let total: usize = inputs.iter().map(size).sum();
    let mut shares = vec![];
    let (mut start, mut sum) = (0, 0);
    for (index, input) in inputs.iter().enumerate() {
        sum += size(input) + 16;
        if sum >= SHARE || index + 1 == inputs.len() {
            shares.push(start..index + 1);
            (start, sum) = (index + 1, 0);
        }
    }
    let mut encodings: Vec<Encoding> = Vec::with_capacity(inputs.len());
    let encode = |share: usize, part: &mut Part<E>| {
        let (made, failure) = part.get_mut().unwrap_or_else(PoisonError::into_inner);
        *failure = None;
        for input in &inputs[shares[share].clone()] {
            match encode(input) {
                Ok(encoding) => made.push(encoding),
                Err(error) => {
                    *failure = Some(error);
                    return;
                }
            }
        }
    };
    let take = |part: &Part<E>| {
        let (made, failure) = &mut *part.lock().unwrap_or_else(PoisonError::into_inner);
        encodings.append(made);
        failure.take().map_or(Ok(()), |error| Err(raise(error)))
    };
    let threads = threads.min(cores()).min(total / SHARE + 1);
    in_order(shares.len(), threads, encode, |job| aside(py, total, job), take)?;
    Ok(encodings)
}

/// The encodings of inputs, in order, filled up.
fn encode_all(
    py: Python<'_>,
    tokenizer: &Arc<Tokenizer>,
    inputs: Vec<Input>,
    add_special_tokens: bool,
    threads: usize,
) -> PyResult<Vec<HfEncoding>> {
    let encode = |input: &Input| tokenizer.encode_unpadded(input, add_special_tokens, false);
    let mut encodings = encode_each(py, &inputs, threads, encode, super::to_python)?;
    let length = tokenizer.pad(&mut encodings);
    let objects = encodings.into_iter().zip(inputs).map(|(encoding, input)| {
        HfEncoding::new(
            encoding,
            Source {
                tokenizer: tokenizer.clone(),
                input: Arc::new(input),
                add_special_tokens,
                length,
                path: Vec::new(),
            },
        )
    });
    Ok(objects.collect())
}

/// An added token: a name, or an object with the attributes of `AddedToken`.
fn added_token(token: &Bound<'_, PyAny>, special: bool) -> PyResult<AddedToken> {
    if let Ok(content) = token.extract::<String>() {
        return Ok(AddedToken {
            content,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: !special,
            special,
        });
    }
    if !token.hasattr("content")? {
        return Err(PyTypeError::new_err("Input must be a List[Union[str, AddedToken]]"));
    }
    if special {
        // As there: whether it is normalized may depend on it.
        token.setattr("special", true)?;
    }
    let flag = |name: &str| token.getattr(name)?.extract::<bool>();
    Ok(AddedToken {
        content: token.getattr("content")?.extract()?,
        single_word: flag("single_word")?,
        lstrip: flag("lstrip")?,
        rstrip: flag("rstrip")?,
        normalized: flag("normalized")?,
        special: flag("special")?,
    })
}

/// `"longest_first"`, `"only_first"` or `"only_second"`.
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

fn json<T: serde::Serialize>(component: Option<&T>) -> PyResult<Option<String>> {
    let write = |component: &T| {
        serde_json::to_string(component).map_err(|error| PyValueError::new_err(error.to_string()))
    };
    component.map(write).transpose()
}

#[pymethods]
impl HfTokenizer {
    /// Reads the JSON of a tokenizer file, or begins as another tokenizer is now.
    #[new]
    fn new(py: Python<'_>, json: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(other) = json.cast::<Self>() {
            return Ok(Self(RwLock::new(other.get().current())));
        }
        let json: &str = json.extract()?;
        let tokenizer = py.detach(|| Tokenizer::from_json(json)).or_raise()?;
        Ok(Self(RwLock::new(Arc::new(tokenizer))))
    }

    /// The JSON of a file that `tokenizers` reads as this tokenizer.
    ///
    /// Args:
    ///     pretty: With line breaks.
    #[pyo3(signature = (pretty=false))]
    fn to_str(&self, py: Python<'_>, pretty: bool) -> PyResult<String> {
        let tokenizer = self.current();
        py.detach(|| tokenizer.to_json(pretty)).or_raise()
    }

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
        let first = input::sequence(sequence, is_pretokenized)?;
        let second = pair.map(|pair| input::sequence(pair, is_pretokenized)).transpose()?;
        let inputs = vec![Input { first, second }];
        let mut made = encode_all(py, &self.current(), inputs, add_special_tokens, 1)?;
        Ok(made.remove(0))
    }

    /// Encodes many inputs: texts, or pairs of texts.
    ///
    /// Args:
    ///     input: Texts, or tuples of two; with ``is_pretokenized`` lists of words.
    ///     is_pretokenized: Whether sequences are lists of words.
    ///     add_special_tokens: Whether the post-processor adds its tokens.
    ///     num_threads: At most so many threads; None: as many as the machine has cores. They
    ///         live as long as the call, and a batch of little text uses one.
    #[pyo3(signature = (input, is_pretokenized=false, add_special_tokens=true, num_threads=None))]
    fn encode_batch(
        &self,
        py: Python<'_>,
        input: &Bound<'_, PyAny>,
        is_pretokenized: bool,
        add_special_tokens: bool,
        num_threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<HfEncoding>> {
        if input.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("Can't extract `str` to `Vec`"));
        }
        let threads = num_threads.map_or(Ok(usize::MAX), rows::threads)?;
        let inputs = input.try_iter()?.map(|item| input::read(&item?, is_pretokenized));
        let inputs = inputs.collect::<PyResult<Vec<_>>>()?;
        encode_all(py, &self.current(), inputs, add_special_tokens, threads)
    }

    /// The same as `encode_batch`: what is costly is made only when it is asked for.
    #[pyo3(signature = (input, is_pretokenized=false, add_special_tokens=true, num_threads=None))]
    fn encode_batch_fast(
        &self,
        py: Python<'_>,
        input: &Bound<'_, PyAny>,
        is_pretokenized: bool,
        add_special_tokens: bool,
        num_threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<HfEncoding>> {
        self.encode_batch(py, input, is_pretokenized, add_special_tokens, num_threads)
    }

    /// Truncates encodings of one sequence, or of two, adds special tokens, and fills up.
    #[pyo3(signature = (encoding, pair=None, add_special_tokens=true))]
    fn post_process(
        &self,
        encoding: &Bound<'_, HfEncoding>,
        pair: Option<&Bound<'_, HfEncoding>>,
        add_special_tokens: bool,
    ) -> PyResult<HfEncoding> {
        let tokenizer = self.current();
        let sequences = std::iter::once(encoding).chain(pair).map(|part| part.get().to_core());
        let sequences = sequences.collect::<PyResult<_>>()?;
        let mut made = [tokenizer.post_process(sequences, add_special_tokens).or_raise()?];
        let length = tokenizer.pad(&mut made);
        let [made] = made;
        let first = Sequence::Text(String::new());
        let input = Arc::new(Input { first, second: None });
        Ok(HfEncoding::new(
            made,
            Source { tokenizer, input, add_special_tokens, length, path: Vec::new() },
        ))
    }

    /// The text of ids. Ids of no token are left out.
    ///
    /// Args:
    ///     ids: The ids.
    ///     skip_special_tokens: Whether special tokens are left out.
    #[pyo3(signature = (ids, skip_special_tokens=true))]
    fn decode(&self, py: Python<'_>, ids: Vec<u32>, skip_special_tokens: bool) -> PyResult<String> {
        let tokenizer = self.current();
        aside(py, ids.len(), || tokenizer.decode(&ids, skip_special_tokens))?.or_raise()
    }

    /// The text of each sequence of ids.
    #[pyo3(signature = (sequences, skip_special_tokens=true, num_threads=None))]
    fn decode_batch(
        &self,
        py: Python<'_>,
        sequences: Vec<Vec<u32>>,
        skip_special_tokens: bool,
        num_threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<String>> {
        let tokenizer = self.current();
        let threads = num_threads.map_or(Ok(usize::MAX), rows::threads)?;
        let total: usize = sequences.iter().map(Vec::len).sum();
        let share = 256;
        let shares = sequences.len().div_ceil(share);
        let mut texts = Vec::with_capacity(sequences.len());
        let decode = |index: usize, made: &mut Vec<bpe_hf::Result<String>>| {
            made.clear();
            let part = sequences.iter().skip(index * share).take(share);
            made.extend(part.map(|ids| tokenizer.decode(ids, skip_special_tokens)));
        };
        let threads = threads.min(cores()).min(total / SHARE + 1);
        in_order(
            shares,
            threads,
            decode,
            |job| aside(py, total, job),
            |made| {
                for text in made {
                    texts.push(text.clone().or_raise()?);
                }
                Ok::<(), PyErr>(())
            },
        )?;
        Ok(texts)
    }

    /// The id of a token; None if there is none.
    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.current().token_to_id(token)
    }

    /// The token of an id; None if there is none.
    fn id_to_token(&self, id: u32) -> Option<String> {
        self.current().id_to_token(id)
    }

    /// Tokens and ids.
    #[pyo3(signature = (with_added_tokens=true))]
    fn get_vocab<'py>(
        &self,
        py: Python<'py>,
        with_added_tokens: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let vocab = PyDict::new(py);
        for (token, id) in self.current().vocab(with_added_tokens) {
            vocab.set_item(token, id)?;
        }
        Ok(vocab)
    }

    /// How many tokens there are.
    #[pyo3(signature = (with_added_tokens=true))]
    fn get_vocab_size(&self, with_added_tokens: bool) -> usize {
        self.current().vocab_size(with_added_tokens)
    }

    /// Adds tokens: names, or `AddedToken` objects. Returns how many are new.
    fn add_tokens(&self, tokens: &Bound<'_, PyAny>) -> PyResult<usize> {
        let tokens = tokens.try_iter()?.map(|token| added_token(&token?, false));
        let tokens = tokens.collect::<PyResult<_>>()?;
        self.change(|tokenizer| tokenizer.add_tokens(tokens))
    }

    /// Adds tokens that decoding can leave out. Returns how many are new.
    fn add_special_tokens(&self, tokens: &Bound<'_, PyAny>) -> PyResult<usize> {
        let tokens = tokens.try_iter()?.map(|token| added_token(&token?, true));
        let tokens = tokens.collect::<PyResult<_>>()?;
        self.change(|tokenizer| tokenizer.add_tokens(tokens))
    }

    /// `(id, (content, single_word, lstrip, rstrip, normalized, special))` of each added token.
    #[allow(clippy::type_complexity)]
    fn _added_tokens(&self) -> Vec<(u32, (String, bool, bool, bool, bool, bool))> {
        let tokenizer = self.current();
        let tokens = tokenizer.added_tokens_by_id().into_iter();
        let row = |(id, token): (u32, &AddedToken)| {
            let AddedToken { content, single_word, lstrip, rstrip, normalized, special } =
                token.clone();
            (id, (content, single_word, lstrip, rstrip, normalized, special))
        };
        tokens.map(row).collect()
    }

    /// How many tokens the post-processor adds to one sequence, or to two.
    fn num_special_tokens_to_add(&self, is_pair: bool) -> usize {
        self.current().added_tokens(is_pair)
    }

    /// Cuts texts off from now on.
    ///
    /// Args:
    ///     max_length: How many tokens are kept, those of the post-processor included.
    ///     stride: By how many tokens the parts that are cut off overlap.
    ///     strategy: Of a pair, what is cut: ``"longest_first"``, ``"only_first"`` or
    ///         ``"only_second"``.
    ///     direction: The side that is cut: ``"right"`` or ``"left"``.
    ///
    /// Raises:
    ///     ValueError: The stride is as long as what is kept, or a name is unknown.
    #[pyo3(signature = (max_length, stride=0, strategy="longest_first", direction="right"))]
    fn enable_truncation(
        &self,
        max_length: usize,
        stride: usize,
        strategy: &str,
        direction: &str,
    ) -> PyResult<()> {
        let direction = self::direction(direction)?;
        let strategy = truncation_strategy(strategy)?;
        let truncation = Truncation { direction, max_length, strategy, stride };
        self.change(|tokenizer| tokenizer.set_truncation(Some(truncation)))
    }

    /// Cuts nothing off from now on.
    fn no_truncation(&self) -> PyResult<()> {
        self.change(|tokenizer| tokenizer.set_truncation(None))
    }

    /// How texts are cut off; None: not at all.
    #[getter]
    fn truncation<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let tokenizer = self.current();
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

    /// Fills texts up from now on.
    ///
    /// Args:
    ///     direction: The side that is filled: ``"right"`` or ``"left"``.
    ///     pad_id, pad_type_id, pad_token: What it is filled with.
    ///     length: To how many tokens; None: to those of the longest text of the batch.
    ///     pad_to_multiple_of: The length becomes a multiple of it.
    #[pyo3(signature = (direction="right", pad_id=0, pad_type_id=0, pad_token="[PAD]", length=None, pad_to_multiple_of=None))]
    fn enable_padding(
        &self,
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
        self.change(|tokenizer| {
            tokenizer.set_padding(Some(padding));
            Ok(())
        })
    }

    /// Fills nothing up from now on.
    fn no_padding(&self) -> PyResult<()> {
        self.change(|tokenizer| {
            tokenizer.set_padding(None);
            Ok(())
        })
    }

    /// How texts are filled up; None: not at all.
    #[getter]
    fn padding<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let tokenizer = self.current();
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

    /// Whether the names of special tokens in texts are ordinary text.
    #[getter]
    fn get_encode_special_tokens(&self) -> bool {
        self.current().encodes_special_tokens()
    }

    #[setter]
    fn set_encode_special_tokens(&self, value: bool) -> PyResult<()> {
        self.change(|tokenizer| {
            tokenizer.set_encode_special_tokens(value);
            Ok(())
        })
    }

    /// The JSON of a component: `normalizer`, `pre_tokenizer`, `post_processor` or `decoder`.
    fn _component(&self, name: &str) -> PyResult<Option<String>> {
        let tokenizer = self.current();
        match name {
            "normalizer" => json(tokenizer.normalizer_spec()),
            "pre_tokenizer" => json(tokenizer.pre_tokenizer_spec()),
            "post_processor" => json(tokenizer.post_processor_spec()),
            "decoder" => json(tokenizer.decoder_spec()),
            _ => Err(PyValueError::new_err(format!("no component is called {name:?}"))),
        }
    }

    /// Sets a component to what its JSON says.
    #[pyo3(signature = (name, json))]
    fn _set_component(&self, name: &str, json: Option<&str>) -> PyResult<()> {
        match name {
            "normalizer" => {
                let spec = json.map(|json| component(json, name)).transpose()?;
                self.change(|tokenizer| tokenizer.set_normalizer(spec))
            }
            "pre_tokenizer" => {
                let spec = json.map(|json| component(json, name)).transpose()?;
                self.change(|tokenizer| tokenizer.set_pre_tokenizer(spec))
            }
            "post_processor" => {
                let spec = json.map(|json| component(json, name)).transpose()?;
                self.change(|tokenizer| tokenizer.set_post_processor(spec))
            }
            "decoder" => {
                let spec = json.map(|json| component(json, name)).transpose()?;
                self.change(|tokenizer| tokenizer.set_decoder(spec))
            }
            _ => Err(PyValueError::new_err(format!("no component is called {name:?}"))),
        }
    }

    /// The tokens that the model makes of a text: `(id, token, (start, end))`.
    fn _tokenize(&self, text: &str) -> PyResult<Vec<Token>> {
        self.current().tokenize(text).or_raise()
    }

    /// `{token bytes: id}` and the pattern, for an encoding that merges in the order of ids. The
    /// pattern is None where one pattern is not all that the pre-tokenizer amounts to.
    fn _ranks<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Option<String>)> {
        let tokenizer = self.current();
        let ranks = PyDict::new(py);
        for (bytes, id) in tokenizer.ranks().or_raise()? {
            ranks.set_item(PyBytes::new(py, bytes), id)?;
        }
        Ok((ranks, tokenizer.pattern().map(str::to_owned)))
    }

    fn _model_token_to_id(&self, token: &str) -> Option<u32> {
        self.current().model_token_to_id(token)
    }

    fn _model_id_to_token(&self, id: u32) -> Option<String> {
        self.current().model_id_to_token(id)
    }
}
