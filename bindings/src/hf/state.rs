//! What an [`super::encoding::HfEncoding`] was made of, and is made of when more is asked for.

use std::ops::Deref;
use std::sync::Arc;

use bpe_core::once::LockFreeOnce;
use bpe_hf::encoding::Details;
use bpe_hf::{Encoding, Tokenizer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::OrRaise;
use super::input::GivenInput;
use super::tokenizer::aside;

/// An input and how it was encoded: enough to make it again with tokens, offsets and words.
pub struct Origin {
    tokenizer: Arc<Tokenizer>,
    given: GivenInput,
    add_special_tokens: bool,
    /// The length of its batch, padded.
    length: usize,
    /// What was truncated, if it was: the overflow is made of it when it is asked for.
    whole: Vec<Encoding>,
    /// With details, and overflow with details: for all parts of the overflow together.
    detailed: LockFreeOnce<Encoding>,
}

/// Where an encoding without details comes from.
pub enum Source {
    /// An input.
    Input(Origin),
    /// Overflow: which part of that of the input, which part of the part's, and so on.
    Part(Arc<Origin>, Vec<usize>),
}

/// An encoding that does not change while it is looked at.
pub enum Current<'a> {
    Made(&'a Encoding),
    Changed(Arc<Encoding>),
}

impl Deref for Current<'_> {
    type Target = Encoding;

    fn deref(&self) -> &Encoding {
        match self {
            Self::Made(encoding) => encoding,
            Self::Changed(encoding) => encoding,
        }
    }
}

impl Current<'_> {
    pub fn details(&self) -> &Details {
        static NONE: Details = Details { tokens: vec![], offsets: vec![], words: vec![] };
        self.details.as_deref().unwrap_or(&NONE)
    }
}

impl Origin {
    #[inline]
    pub fn new(
        tokenizer: Arc<Tokenizer>,
        given: GivenInput,
        add_special_tokens: bool,
        length: usize,
    ) -> Self {
        let (whole, detailed) = (Vec::new(), LockFreeOnce::new());
        Self { tokenizer, given, add_special_tokens, length, whole, detailed }
    }

    /// The same with the sequences that the overflow can be made of.
    pub fn with_overflow(self, whole: Vec<Encoding>) -> Self {
        Self { whole, ..self }
    }

    pub fn clone_ref(&self, py: Python<'_>) -> PyResult<Self> {
        let Self { tokenizer, given, add_special_tokens, length, whole, .. } = self;
        let whole = Encoding::try_clone_all(whole).or_raise()?;
        let (tokenizer, given) = (tokenizer.clone(), given.clone_ref(py));
        Ok(Self::new(tokenizer, given, *add_special_tokens, *length).with_overflow(whole))
    }

    /// The encoding of plain ids.
    pub fn plain(&self, ids: &[u32]) -> PyResult<Encoding> {
        self.tokenizer.plain(ids).or_raise()
    }

    /// Whether something was cut off that is still to be made.
    pub fn has_overflow(&self) -> bool {
        !self.whole.is_empty()
    }

    /// The overflow, without details.
    pub fn overflow(&self, py: Python<'_>) -> PyResult<Vec<Encoding>> {
        let size = self.whole.iter().map(Encoding::len).sum();
        let work = || {
            let whole = Encoding::try_clone_all(&self.whole)?;
            let mut encoding = self.tokenizer.post_process(whole, self.add_special_tokens)?;
            self.tokenizer.pad_to(&mut encoding, self.length)?;
            Ok(encoding.overflowing)
        };
        aside(py, size, work)?.or_raise()
    }

    /// The encoding with its details, without overflow.
    pub fn with_details(&self, py: Python<'_>) -> PyResult<Encoding> {
        self.make(py, false)
    }

    /// The encoding with all its details; for a path, the part of the overflow there.
    pub fn whole_with_details(&self, py: Python<'_>, path: &[usize]) -> PyResult<&Encoding> {
        let mut encoding = self.detailed.get_or_try_init(|| self.make(py, true))?;
        for &index in path {
            encoding = encoding.overflowing.get(index).ok_or_else(walks_differ)?;
        }
        Ok(encoding)
    }

    fn make(&self, py: Python<'_>, overflow: bool) -> PyResult<Encoding> {
        let Self { tokenizer, given, add_special_tokens, length, .. } = self;
        let read = given.utf8(py)?;
        let input = read.input();
        let work = || {
            let mut encoding = if overflow {
                tokenizer.encode_unpadded(input, *add_special_tokens, true)?
            } else {
                tokenizer.encode_lazily(input, *add_special_tokens, true, Vec::new())?.0
            };
            tokenizer.pad_to(&mut encoding, *length)?;
            Ok(encoding)
        };
        aside(py, input.size(), work)?.or_raise()
    }
}

pub fn walks_differ() -> PyErr {
    PyValueError::new_err("the two walks over the text differ")
}
