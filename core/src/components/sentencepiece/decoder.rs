//! Decodes pieces like SentencePiece: drops control pieces, joins byte pieces into characters, and
//! turns marks into spaces, except initial marks that encoding has added or would remove.

use std::collections::HashSet;

use crate::polling::poll;
use foldhash::fast::FixedState;

use crate::components::bytes::{MARK, byte_of};
use crate::components::offsets::WORK;
use crate::components::spec::SentencePieceDecoder as Spec;
use crate::error::Result;

#[derive(Debug, Clone)]
pub(crate) struct Decoder {
    control: HashSet<String, FixedState>,
    unknown: Option<String>,
    unk_surface: String,
    byte_fallback: bool,
    strips_first: bool,
    strips_all: bool,
}

enum PieceText<'a> {
    Nothing,
    Byte(u8),
    Unknown,
    Text(&'a str),
}

impl Decoder {
    pub(crate) fn new(spec: &Spec) -> Self {
        Self {
            control: spec.control.iter().cloned().collect(),
            unknown: spec.unknown.clone(),
            unk_surface: spec.unk_surface.clone(),
            byte_fallback: spec.byte_fallback,
            strips_first: spec.add_dummy_prefix || spec.remove_extra_whitespaces,
            strips_all: spec.remove_extra_whitespaces,
        }
    }

    fn part<'a>(&self, piece: &'a str) -> PieceText<'a> {
        if self.unknown.as_deref() == Some(piece) {
            return PieceText::Unknown;
        }
        if self.control.contains(piece) {
            return PieceText::Nothing;
        }
        let is_name = |byte: &u8| self.byte_fallback && piece == format!("<0x{byte:02X}>");
        byte_of(piece).filter(is_name).map_or(PieceText::Text(piece), PieceText::Byte)
    }

    /// Returns the bytes of a piece after other pieces, and whether the piece represents one byte.
    pub(crate) fn bytes_after_others(&self, piece: &str) -> (Vec<u8>, bool) {
        let mut text = String::new();
        match self.part(piece) {
            PieceText::Nothing => {}
            PieceText::Byte(byte) => return (vec![byte], true),
            PieceText::Unknown => text.push_str(&self.unk_surface),
            PieceText::Text(piece) => push_spaced(&mut text, piece),
        }
        (text.into_bytes(), false)
    }

    pub(crate) fn decode(&self, pieces: &[String]) -> Result<String> {
        let (mut text, mut bytes) = (String::new(), Vec::new());
        let mut is_first = self.strips_first;
        for piece in pieces {
            poll(WORK)?;
            let part = self.part(piece);
            if let PieceText::Byte(byte) = part {
                bytes.push(byte);
                continue;
            }
            push_bytes(&mut text, &mut bytes);
            is_first &= text.is_empty();
            match part {
                PieceText::Nothing | PieceText::Byte(_) => {}
                PieceText::Unknown => text.push_str(&self.unk_surface),
                PieceText::Text(piece) => {
                    let rest = piece.strip_prefix(MARK).filter(|_| is_first);
                    push_spaced(&mut text, rest.unwrap_or(piece));
                    is_first &= rest.is_none() || self.strips_all;
                }
            }
        }
        push_bytes(&mut text, &mut bytes);
        Ok(text)
    }
}

/// Appends a piece, with spaces in place of its marks.
fn push_spaced(text: &mut String, piece: &str) {
    for (index, part) in piece.split(MARK).enumerate() {
        if index > 0 {
            text.push(' ');
        }
        text.push_str(part);
    }
}

/// Appends bytes as text, with U+FFFD for each byte outside characters.
fn push_bytes(text: &mut String, bytes: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    bytes.clear();
}
