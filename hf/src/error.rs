//! The errors of this crate.

use std::fmt;

use bpe_core::memory::reserve;

/// An error of this crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The file requires an unsupported feature.
    Unsupported {
        /// The place in the file, such as `pre_tokenizer.pretokenizers[0].type`.
        path: String,
        /// The unsupported feature, and the way out.
        reason: String,
    },
    /// The file, or an argument, is malformed.
    Invalid(String),
    /// An allocation failed.
    OutOfMemory {
        /// The size of the allocation.
        bytes: usize,
    },
    /// Another error of the core.
    Core(bpe_core::Error),
}

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn unsupported(path: impl Into<String>, feature: impl Into<String>) -> Self {
        Self::refused(path, format!("{} is not supported", feature.into()))
    }

    /// [`Error::Unsupported`] with a whole sentence.
    pub(crate) fn refused(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unsupported { path: path.into(), reason: reason.into() }
    }
}

/// Fails if the system cannot allocate `bytes`. Call it before work whose own allocations cannot
/// fail cleanly.
pub(crate) fn ask_for(bytes: usize) -> Result<()> {
    Ok(reserve(&mut Vec::<u8>::new(), bytes)?)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { path, reason } => write!(f, "{path}: {reason}"),
            Self::Invalid(message) => f.write_str(message),
            &Self::OutOfMemory { bytes } => bpe_core::Error::OutOfMemory { bytes }.fmt(f),
            Self::Core(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<bpe_core::Error> for Error {
    fn from(error: bpe_core::Error) -> Self {
        match error {
            bpe_core::Error::OutOfMemory { bytes } => Self::OutOfMemory { bytes },
            error => Self::Core(error),
        }
    }
}
