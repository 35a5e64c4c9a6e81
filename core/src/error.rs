//! The error type. Each message names the value and the remedy.

use std::fmt;

/// An error of the engine. The bindings map each variant to one Python exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The vocabulary cannot be built from the input.
    Vocabulary(String),
    /// A rank file is malformed. `line` counts from 1.
    RankFile { line: usize, reason: String },
    /// The pattern does not compile.
    Pattern { pattern: String, reason: String },
    /// The pattern compiled, but matching this text exceeded the limits of the regex engine.
    PatternLimit { position: usize, reason: String },
    /// The text contains the name of a special token that the request disallows.
    DisallowedSpecial { name: String },
    /// A special token's name or id cannot be used.
    SpecialToken(String),
    /// The text contains a byte that is not a token of the vocabulary.
    MissingByte { byte: u8 },
    /// The bytes are not a token.
    UnknownToken(Vec<u8>),
    /// A text given as bytes is not UTF-8. Rows count from 0.
    NotUtf8 { row: usize, position: usize },
    /// A chunk of this many tokens cannot hold the character.
    ChunkTooSmall { character: String, max_tokens: usize },
    /// A cache cannot have this size, quoted as the caller wrote it.
    CacheSize(String),
    /// A stop string cannot be searched for.
    StopString(String),
    /// A pool has no open stream with this number.
    UnknownStream(u32),
    /// The vocabulary lacks this id.
    UnknownId(u64),
    /// The system cannot allocate this many more bytes.
    OutOfMemory { bytes: usize },
    /// The caller interrupted the work; see [`crate::polling`].
    Interrupted,
    /// A tokenizer file, at `path`, requires a feature without an exact implementation.
    Unsupported { path: String, reason: String },
    /// A tokenizer file, or an argument, is malformed.
    Invalid(String),
}

impl Error {
    /// Returns the error for an unsupported part of a tokenizer file, such as
    /// `pre_tokenizer.pretokenizers[0].type`.
    pub fn unsupported(path: impl Into<String>, feature: impl Into<String>) -> Self {
        Self::refused(path, format!("{} is not supported", feature.into()))
    }

    /// Returns [`Error::Unsupported`]; `reason` is a whole sentence.
    pub fn refused(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unsupported { path: path.into(), reason: reason.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Vocabulary(reason)
            | Error::SpecialToken(reason)
            | Error::StopString(reason)
            | Error::Invalid(reason) => f.write_str(reason),
            Error::Unsupported { path, reason } => write!(f, "{path}: {reason}"),
            Error::UnknownStream(slot) => write!(
                f,
                "the pool has no open stream {slot}; it was closed, or `open` never returned it"
            ),
            Error::RankFile { line, reason } => write!(f, "line {line}: {reason}"),
            Error::Pattern { pattern, reason } => {
                write!(f, "pattern {pattern:?} does not compile: {reason}")
            }
            Error::PatternLimit { position, reason } => write!(
                f,
                "the pattern could not split the text at byte {position}: {reason}; \
                 simplify the pattern, or cut the text before encoding it"
            ),
            Error::DisallowedSpecial { name } => write!(
                f,
                "the text contains {name:?}, a special token that the request disallows; allow it, \
                 or remove it from the disallowed names to encode it as ordinary text"
            ),
            Error::MissingByte { byte } => write!(
                f,
                "the byte 0x{byte:02x} is not a token of this vocabulary, so the text cannot be \
                 encoded; add the single byte to the ranks"
            ),
            Error::UnknownToken(bytes) => {
                write!(f, "{} is not a token", bytes.escape_ascii())
            }
            Error::NotUtf8 { row, position } => write!(
                f,
                "row {row} is not UTF-8 at byte {position}; decode it from its own encoding, or with \
                 replacement characters"
            ),
            Error::ChunkTooSmall { character, max_tokens } => write!(
                f,
                "the character {character:?} alone has more than {max_tokens} tokens; make \
                 max_tokens larger"
            ),
            Error::CacheSize(size) => write!(
                f,
                "a cache of {size} bytes is not possible; choose 65536 (64 KiB) to 1073741824 (1 GiB) \
                 bytes, or turn caching off"
            ),
            Error::UnknownId(id) => write!(f, "Invalid token for decoding: {id}"),
            Error::OutOfMemory { bytes } => write!(
                f,
                "no memory for {bytes} more bytes; cut the input into smaller parts, or give the \
                 process more memory"
            ),
            Error::Interrupted => f.write_str("the work was interrupted"),
        }
    }
}

impl std::error::Error for Error {}

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
