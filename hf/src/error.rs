//! What can go wrong.

use std::fmt;

/// An error, by what a caller can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The file asks for something that is not supported. `path` is where it does, as in
    /// `pre_tokenizer.pretokenizers[0].type`.
    Unsupported {
        /// Where in the file.
        path: String,
        /// What it asks for.
        feature: String,
    },
    /// The file, or an argument, is malformed.
    Invalid(String),
    /// The system has no memory for this many more bytes.
    OutOfMemory {
        /// How many.
        bytes: usize,
    },
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn unsupported(path: impl Into<String>, feature: impl Into<String>) -> Self {
        Self::Unsupported { path: path.into(), feature: feature.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { path, feature } => write!(f, "{path}: {feature} is not supported"),
            Self::Invalid(message) => f.write_str(message),
            &Self::OutOfMemory { bytes } => bpe_core::Error::OutOfMemory { bytes }.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<bpe_core::Error> for Error {
    fn from(error: bpe_core::Error) -> Self {
        match error {
            bpe_core::Error::OutOfMemory { bytes } => Self::OutOfMemory { bytes },
            error => Self::Invalid(error.to_string()),
        }
    }
}
