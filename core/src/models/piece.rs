//! Fields of a SentencePiece model, and the types of its pieces.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Placeholder id for text that is not a piece.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// SentencePiece releases whose ids a model reproduces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// Up to 0.2.1.
    #[serde(rename = "0.2.1")]
    V021,
    /// 0.2.2 and later.
    #[serde(rename = "0.2.3")]
    V023,
}

/// Algorithm that finds pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Algorithm {
    Unigram,
    #[serde(rename = "BPE")]
    Bpe,
    Word,
    Char,
}

/// The type of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
#[allow(missing_docs)]
pub enum PieceKind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

const KINDS: [PieceKind; 6] = [
    PieceKind::Normal,
    PieceKind::Unknown,
    PieceKind::Control,
    PieceKind::UserDefined,
    PieceKind::Unused,
    PieceKind::Byte,
];

impl TryFrom<u64> for PieceKind {
    type Error = String;

    fn try_from(number: u64) -> std::result::Result<Self, String> {
        let place = number.checked_sub(1).and_then(|place| usize::try_from(place).ok());
        let kind = place.and_then(|place| KINDS.get(place)).copied();
        kind.ok_or_else(|| format!("{number} is not the type of a piece"))
    }
}

impl From<PieceKind> for u64 {
    fn from(kind: PieceKind) -> Self {
        kind as Self + 1
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Fields {
    pub(crate) algorithm: Algorithm,
    pub(crate) version: Version,
    /// Whether unknown characters become one token per byte.
    pub(crate) byte_fallback: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) kinds: Vec<PieceKind>,
}

/// Converts the numbers in a file to piece types.
pub(crate) fn kinds(numbers: impl Iterator<Item = u64>) -> Result<Vec<PieceKind>> {
    let mut kinds = Vec::new();
    for number in numbers {
        kinds.push(PieceKind::try_from(number).map_err(Error::Invalid)?);
    }
    Ok(kinds)
}
