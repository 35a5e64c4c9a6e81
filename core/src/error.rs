//! Everything that can go wrong, in one enum. Each message names the value and the way out.

use std::fmt;

/// An error of the engine. The bindings map each variant to one Python exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The vocabulary cannot be built from what was given.
    Vocabulary(String),
    /// A rank file is malformed. `line` counts from 1.
    RankFile { line: usize, reason: String },
    /// The pattern does not compile.
    Pattern { pattern: String, reason: String },
    /// The pattern compiled, but matching this text ran into the regex engine's limits.
    PatternLimit { position: usize, reason: String },
    /// The text holds the name of a special token that the request does not want to see.
    DisallowedSpecial { name: String },
    /// A special token's name or id is not usable.
    SpecialToken(String),
    /// The text holds a byte that is no token of the vocabulary.
    MissingByte { byte: u8 },
    /// The bytes are no token.
    UnknownToken(Vec<u8>),
    /// A text that was given as bytes is not UTF-8. Rows count from 0.
    NotUtf8 { row: usize, position: usize },
    /// A chunk of this many tokens cannot hold the character.
    ChunkTooSmall { character: String, max_tokens: usize },
    /// A cache cannot have this size, in the words of whoever asked for it.
    CacheSize(String),
    /// The id stands for no token.
    UnknownId(u64),
    /// The system has no memory for this many more bytes.
    OutOfMemory { bytes: usize },
    /// The caller asked for the work to be ended; see [`crate::polling`].
    Interrupted,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Vocabulary(reason) | Error::SpecialToken(reason) => f.write_str(reason),
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
                "the text holds {name:?}, a special token that the request disallows; allow it, \
                 or take it off the disallowed names to have it encoded as ordinary text"
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
                "row {row} is not UTF-8 at byte {position}; decode it first from what it is, or with \
                 replacement characters"
            ),
            Error::ChunkTooSmall { character, max_tokens } => write!(
                f,
                "the character {character:?} alone has more than {max_tokens} tokens; make \
                 max_tokens larger"
            ),
            Error::CacheSize(size) => write!(
                f,
                "a cache of {size} bytes cannot be had; choose 65536 (64 KiB) to 1073741824 (1 GiB) \
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

/// The result of whatever can fail in this crate.
pub type Result<T> = std::result::Result<T, Error>;
