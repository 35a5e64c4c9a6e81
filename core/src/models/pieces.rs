//! The pieces of a SentencePiece model, with look-ups by text.

use std::ops::Range;

use super::piece::{Fields, PieceKind, UNKNOWN, Version};
use super::scores::order_of_scores;
use super::token_lists::TokenList;
use super::vocab::Vocab;
use crate::components::sentencepiece::UserDefined;
use crate::error::{Error, Result};

/// Pieces with look-ups by text.
#[derive(Debug)]
pub(crate) struct SentencePieces {
    pub(crate) kinds: Vec<PieceKind>,
    pub(crate) version: Version,
    pub(super) vocab: Vocab,
    pub(super) scores: Vec<f32>,
    order: Vec<i32>,
    pub(super) user_defined: UserDefined,
    pub(super) unknown: Option<u32>,
    /// Token for each byte, with byte fallback.
    pub(super) bytes: Vec<u32>,
}

impl SentencePieces {
    pub(super) fn new(fields: &Fields, list: TokenList, scores: Vec<f32>) -> Result<Self> {
        let Fields { version, byte_fallback, ref kinds, .. } = *fields;
        let invalid = |reason: &str| Error::Invalid(format!("model.vocab: {reason}"));
        if kinds.len() != list.ids().len() || scores.len() != kinds.len() {
            return Err(invalid("each piece needs a score and a type"));
        }
        if let Some(place) = scores.iter().position(|score| !score.is_finite()) {
            return Err(invalid(&format!(
                "the score of the piece {:?} is {}; write a finite number",
                list.get(place),
                scores[place]
            )));
        }
        let vocab = Vocab::of_list(list)?;
        for (text, id) in vocab.iter() {
            let problem = match text {
                "" => "is empty",
                _ if text.contains('\0') => "has the character U+0000",
                _ if vocab.id(text) != Some(id) => "is there twice",
                _ => continue,
            };
            return Err(invalid(&format!("the piece {text:?} {problem}")));
        }
        let of_kind = |kind: PieceKind| {
            let rows = vocab.iter().zip(kinds);
            rows.filter(move |(_, other)| **other == kind).map(|(row, _)| row)
        };
        let unknown = of_kind(PieceKind::Unknown).next().map(|(_, id)| id);
        if of_kind(PieceKind::Unknown).count() > 1 || unknown.is_none() && !byte_fallback {
            return Err(invalid("there must be one unknown piece"));
        }
        if !byte_fallback && of_kind(PieceKind::Byte).next().is_some() {
            return Err(invalid("byte pieces are there without byte_fallback"));
        }
        let ids = if byte_fallback { vocab.byte_tokens() } else { Vec::new() };
        let is_byte = |id: &u32| kinds[*id as usize] == PieceKind::Byte;
        let bytes: Option<Vec<u32>> = ids.into_iter().map(|id| id.filter(is_byte)).collect();
        let bytes = bytes.ok_or_else(|| invalid("byte_fallback needs a piece for each byte"))?;
        if let Some((text, _)) = of_kind(PieceKind::Byte).find(|(_, id)| !bytes.contains(id)) {
            return Err(invalid(&format!(
                "the byte piece {text:?} must be one of <0x00> to <0xFF>"
            )));
        }
        let user_defined = UserDefined::new(of_kind(PieceKind::UserDefined))?;
        let order = order_of_scores(&scores, version);
        let kinds = kinds.clone();
        Ok(Self { kinds, version, vocab, scores, order, user_defined, unknown, bytes })
    }

    pub(crate) fn order_of(&self, id: u32) -> i32 {
        self.order[id as usize]
    }

    /// Returns the length of the first symbol of a text from `start` on, and whether it is a
    /// user-defined piece.
    pub(crate) fn first(
        &self,
        text: &str,
        start: usize,
        is_barred: impl Fn(u32, Range<usize>) -> bool,
    ) -> (usize, bool) {
        let is_kept = |id, length| !is_barred(id, start..start + length);
        match self.user_defined.longest_of(&text[start..], is_kept) {
            Some((length, _)) => (length, true),
            None => (text[start..].chars().next().map_or(1, char::len_utf8), false),
        }
    }

    /// Whether SentencePiece fails on a character that is a control piece: up to version 0.2.1.
    pub(super) fn fails_on_characters(&self) -> bool {
        self.version == Version::V021
            && self.vocab.iter().zip(&self.kinds).any(|((text, _), kind)| {
                *kind == PieceKind::Control && text.chars().nth(1).is_none()
            })
    }

    pub(super) fn kind(&self, id: u32) -> PieceKind {
        self.kinds[id as usize]
    }

    /// Returns the id of a piece that merging may produce.
    pub(crate) fn mergeable(&self, piece: &str) -> Option<u32> {
        let is_normal =
            |kind| matches!(kind, PieceKind::Normal | PieceKind::UserDefined | PieceKind::Unused);
        self.vocab.id(piece).filter(|&id| is_normal(self.kind(id)))
    }

    /// Returns the id of a piece of text, or [`UNKNOWN`]. Up to version 0.2.1, also finds pieces
    /// that do not represent text.
    pub(crate) fn final_id(&self, piece: &str) -> Result<u32> {
        if let Some(id) = self.mergeable(piece) {
            return Ok(id);
        }
        let other = self.vocab.id(piece).filter(|_| self.version == Version::V021);
        match other.map(|id| (id, self.kind(id))) {
            Some((_, PieceKind::Control)) => Err(Error::Invalid(format!(
                "the text has the control piece {piece:?}, which SentencePiece 0.2.1 fails on"
            ))),
            Some((id, PieceKind::Byte)) => Ok(id),
            _ => Ok(UNKNOWN),
        }
    }

    /// Returns the id of a character or a word, or [`UNKNOWN`].
    pub(super) fn whole_id(&self, piece: &str) -> Result<u32> {
        let id = self.final_id(piece)?;
        let is_unused = id != UNKNOWN && self.kind(id) == PieceKind::Unused;
        Ok(if is_unused && self.version == Version::V023 { UNKNOWN } else { id })
    }
}
