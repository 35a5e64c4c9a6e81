//! Lazy fields of an [`super::encoding::HfEncoding`]: the fields computed so far, and the input
//! from which to compute the rest.

use std::ops::Deref;
use std::sync::Arc;

use bpe_core::components::Encoding;
use bpe_core::components::encoding::TokenFields;
use bpe_core::once::OnceBox;
use bpe_core::pipeline::{CutOff, Encoded, Pipeline};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::input::GivenInput;
use crate::errors::OrRaise;
use crate::gil;

/// An encoding whose missing fields are computed on first use.
pub enum LazyEncoding {
    /// Ids of a text, as in [`Encoded::Ids`].
    Ids {
        ids: Vec<u32>,
        /// Whether all other fields have the values of plain text.
        is_plain: bool,
        origin: Origin,
        /// Encoding of these ids, without token fields.
        encoding: OnceBox<Encoding>,
        /// Encoding with token fields.
        detailed: OnceBox<Encoding>,
    },
    /// All fields except token fields; for a whole input, also except overflow.
    Partial { encoding: Box<Encoding>, source: Source },
    /// All fields.
    Complete(Box<Encoding>),
}

/// Source of an encoding without token fields: an input, or a part of its overflow.
pub struct Source {
    row: Arc<Row>,
    /// Index into the input's overflow, index into the overflow of that part, and so on.
    path: Vec<usize>,
}

/// An input and the arguments with which it was encoded, to encode it again with more fields.
pub struct Origin {
    tokenizer: Arc<Pipeline>,
    given: GivenInput,
    add_special_tokens: bool,
    /// Padded length of its batch.
    length: usize,
}

/// An input whose encoding is padded or may be truncated.
struct Row {
    origin: Origin,
    /// Part that truncation cut off, from which to make the overflow.
    cut_off: CutOff,
    /// Encoding with token fields but without overflow.
    detailed: OnceBox<Encoding>,
    /// Encoding with token fields and overflow.
    whole: OnceBox<Encoding>,
}

/// A read-only view of an encoding.
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
    pub fn token_fields(&self) -> &TokenFields {
        static NONE: TokenFields = TokenFields { tokens: vec![], offsets: vec![], words: vec![] };
        self.token_fields.as_deref().unwrap_or(&NONE)
    }
}

impl LazyEncoding {
    /// Creates the state of an encoded input. `length` is the padded length of its batch.
    #[inline]
    pub fn new(
        encoded: Encoded,
        tokenizer: Arc<Pipeline>,
        given: GivenInput,
        add_special_tokens: bool,
        length: usize,
    ) -> Self {
        let origin = Origin { tokenizer, given, add_special_tokens, length };
        let (unused, detailed) = (OnceBox::new(), OnceBox::new());
        match encoded {
            Encoded::Ids { ids, is_plain } => {
                Self::Ids { ids, is_plain, origin, encoding: unused, detailed }
            }
            Encoded::Partial { encoding, cut_off } => {
                let row = Row { origin, cut_off, detailed, whole: unused };
                Self::Partial { encoding, source: Source { row: Arc::new(row), path: Vec::new() } }
            }
            Encoded::Complete(encoding) => Self::Complete(encoding),
        }
    }

    /// Memory in bytes of an encoding with its Python object, without its lists and strings. The
    /// last number is the overhead of an object and an allocator.
    pub const MEMORY: usize = size_of::<Self>() + size_of::<Row>() + 160;

    pub fn ids(&self) -> &[u32] {
        match self {
            Self::Ids { ids, .. } => ids,
            Self::Partial { encoding, .. } | Self::Complete(encoding) => &encoding.ids,
        }
    }

    pub fn take_ids(&mut self) -> Vec<u32> {
        std::mem::take(match self {
            Self::Ids { ids, .. } => ids,
            Self::Partial { encoding, .. } | Self::Complete(encoding) => &mut encoding.ids,
        })
    }

    /// Returns the encoding; token fields and overflow may be missing.
    pub fn encoding(&self) -> PyResult<&Encoding> {
        match self {
            Self::Ids { ids, encoding, origin, .. } => encoding.get_or_try_init(|| {
                let Origin { tokenizer, add_special_tokens, .. } = origin;
                tokenizer.encoding_of_ids(ids, *add_special_tokens).map(Box::new).or_raise()
            }),
            Self::Partial { encoding, .. } | Self::Complete(encoding) => Ok(encoding),
        }
    }

    /// Returns the encoding with its token fields, and with its overflow if `overflow` is set.
    pub fn detailed(&self, py: Python<'_>, overflow: bool) -> PyResult<&Encoding> {
        let source = match self {
            Self::Ids { ids, origin, detailed, .. } => {
                return detailed.get_or_try_init(|| {
                    let encoding = origin.encode(py, true, false)?;
                    if encoding.ids == *ids { Ok(Box::new(encoding)) } else { Err(walks_differ()) }
                });
            }
            Self::Partial { source, .. } => source,
            Self::Complete(encoding) => return Ok(encoding),
        };
        let encoding = source.detailed(py, overflow)?;
        if encoding.ids == self.ids() { Ok(encoding) } else { Err(walks_differ()) }
    }

    /// Returns the parts of the overflow.
    pub fn overflow(&self, py: Python<'_>) -> PyResult<Vec<Self>> {
        match self {
            Self::Ids { .. } => Ok(Vec::new()),
            Self::Complete(encoding) => Self::complete_parts(encoding),
            Self::Partial { encoding, source } => {
                let parts = if source.path.is_empty() {
                    source.row.overflow(py)?
                } else {
                    Encoding::try_clone_all(&encoding.overflowing).or_raise()?
                };
                let part = |(index, encoding)| Self::Partial {
                    encoding: Box::new(encoding),
                    source: Source {
                        row: source.row.clone(),
                        path: [&source.path[..], &[index]].concat(),
                    },
                };
                Ok(parts.into_iter().enumerate().map(part).collect())
            }
        }
    }

    /// Copies the overflow of an encoding that has all fields.
    pub fn complete_parts(encoding: &Encoding) -> PyResult<Vec<Self>> {
        let parts = Encoding::try_clone_all(&encoding.overflowing).or_raise()?;
        Ok(parts.into_iter().map(|part| Self::Complete(Box::new(part))).collect())
    }
}

impl Source {
    fn detailed(&self, py: Python<'_>, overflow: bool) -> PyResult<&Encoding> {
        let Row { origin, cut_off, detailed, whole } = &*self.row;
        let needs_overflow =
            !self.path.is_empty() || overflow && !matches!(cut_off, CutOff::Nothing);
        if !needs_overflow && whole.get().is_none() {
            return detailed.get_or_try_init(|| origin.encode(py, true, false).map(Box::new));
        }
        let mut encoding = whole.get_or_try_init(|| origin.encode(py, true, true).map(Box::new))?;
        for &index in &self.path {
            encoding = encoding.overflowing.get(index).ok_or_else(walks_differ)?;
        }
        Ok(encoding)
    }
}

impl Row {
    /// Computes the overflow, without token fields.
    fn overflow(&self, py: Python<'_>) -> PyResult<Vec<Encoding>> {
        let sequences = match &self.cut_off {
            CutOff::Nothing => return Ok(Vec::new()),
            CutOff::Sequences(sequences) => sequences,
            CutOff::Unread => return Ok(self.origin.encode(py, false, true)?.overflowing),
        };
        let size = sequences.iter().map(Encoding::len).sum();
        let Origin { tokenizer, add_special_tokens, length, .. } = &self.origin;
        let work = || {
            let sequences = Encoding::try_clone_all(sequences)?;
            let mut encoding = tokenizer.post_process(sequences, *add_special_tokens, true)?;
            tokenizer.pad_to(&mut encoding, *length)?;
            Ok(encoding.overflowing)
        };
        gil::run(py, size, work)
    }
}

impl Origin {
    /// Encodes the input again.
    fn encode(&self, py: Python<'_>, detailed: bool, overflow: bool) -> PyResult<Encoding> {
        let Self { tokenizer, given, add_special_tokens, length } = self;
        let read = given.utf8(py)?;
        let input = read.input();
        let work = || {
            let mut encoding =
                tokenizer.encode_fully(input, *add_special_tokens, detailed, overflow)?;
            tokenizer.pad_to(&mut encoding, *length)?;
            Ok(encoding)
        };
        gil::run(py, input.size(), work)
    }
}

fn walks_differ() -> PyErr {
    PyValueError::new_err("encoding the text again with token_fields gave different ids")
}
