//! Reads the fields of a SentencePiece model's protocol buffer that encoding and decoding need.

use crate::polling::poll;

use crate::components::encoding::copied;
use crate::error::{Error, Result};

/// A model as stored in its file; missing fields have their defaults.
#[derive(Debug, Default)]
pub(crate) struct ModelProto {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) trainer: Trainer,
    pub(crate) normalizer: Normalizer,
    pub(crate) denormalizer: Normalizer,
}

#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) score: f32,
    pub(crate) kind: u64,
}

/// Fields of `TrainerSpec` that matter after training.
#[derive(Debug)]
pub(crate) struct Trainer {
    pub(crate) model_type: u64,
    pub(crate) byte_fallback: bool,
    pub(crate) treat_whitespace_as_suffix: bool,
    pub(crate) unk_surface: String,
}

impl Default for Trainer {
    fn default() -> Self {
        Self {
            model_type: 1,
            byte_fallback: false,
            treat_whitespace_as_suffix: false,
            unk_surface: " \u{2047} ".into(),
        }
    }
}

/// Fields of `NormalizerSpec`.
#[derive(Debug)]
pub(crate) struct Normalizer {
    pub(crate) precompiled_charsmap: Vec<u8>,
    pub(crate) add_dummy_prefix: bool,
    pub(crate) remove_extra_whitespaces: bool,
    pub(crate) escape_whitespaces: bool,
}

impl Default for Normalizer {
    fn default() -> Self {
        Self {
            precompiled_charsmap: Vec::new(),
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
        }
    }
}

enum Value<'a> {
    Number(u64),
    Float(f32),
    Bytes(&'a [u8]),
    /// Any other wire type.
    Other,
}

impl ModelProto {
    /// Reads a model from the bytes of a file.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        let mut model = Self::default();
        each_field(bytes, |number, value| {
            match (number, value) {
                (1, Value::Bytes(bytes)) => model.pieces.push(piece(bytes)?),
                (2, Value::Bytes(bytes)) => model.trainer.read(bytes)?,
                (3, Value::Bytes(bytes)) => model.normalizer.read(bytes)?,
                (5, Value::Bytes(bytes)) => model.denormalizer.read(bytes)?,
                _ => {}
            }
            Ok(())
        })?;
        if model.pieces.is_empty() {
            return Err(malformed("it has no pieces"));
        }
        Ok(model)
    }
}

fn piece(bytes: &[u8]) -> Result<Piece> {
    let mut piece = Piece { text: String::new(), score: 0.0, kind: 1 };
    each_field(bytes, |number, value| {
        match (number, value) {
            (1, Value::Bytes(text)) => piece.text = string(text)?,
            (2, Value::Float(score)) => piece.score = score,
            // Unknown values are treated as missing.
            (3, Value::Number(kind @ 1..=6)) => piece.kind = kind,
            _ => {}
        }
        Ok(())
    })?;
    Ok(piece)
}

impl Trainer {
    fn read(&mut self, bytes: &[u8]) -> Result<()> {
        each_field(bytes, |number, value| {
            match (number, value) {
                (3, Value::Number(kind @ 1..=4)) => self.model_type = kind,
                (24, Value::Number(flag)) => self.treat_whitespace_as_suffix = flag != 0,
                (35, Value::Number(flag)) => self.byte_fallback = flag != 0,
                (44, Value::Bytes(text)) => self.unk_surface = string(text)?,
                _ => {}
            }
            Ok(())
        })
    }
}

impl Normalizer {
    fn read(&mut self, bytes: &[u8]) -> Result<()> {
        each_field(bytes, |number, value| {
            match (number, value) {
                (2, Value::Bytes(rules)) => self.precompiled_charsmap = copied(rules)?,
                (3, Value::Number(flag)) => self.add_dummy_prefix = flag != 0,
                (4, Value::Number(flag)) => self.remove_extra_whitespaces = flag != 0,
                (5, Value::Number(flag)) => self.escape_whitespaces = flag != 0,
                _ => {}
            }
            Ok(())
        })
    }
}

fn malformed(what: &str) -> Error {
    Error::Invalid(format!("not a SentencePiece model: {what}"))
}

fn string(bytes: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(bytes).map_err(|_| malformed("a text that is not UTF-8"))?;
    Ok(text.to_owned())
}

/// Calls `found` with the number and the value of each field in a message.
fn each_field(mut bytes: &[u8], mut found: impl FnMut(u64, Value<'_>) -> Result<()>) -> Result<()> {
    while !bytes.is_empty() {
        poll(bytes.len().min(64))?;
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)?),
            1 => {
                take(&mut bytes, 8)?;
                Value::Other
            }
            2 => {
                let length = varint(&mut bytes)?;
                Value::Bytes(take(&mut bytes, usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            5 => {
                let part = take(&mut bytes, 4)?;
                Value::Float(f32::from_le_bytes([part[0], part[1], part[2], part[3]]))
            }
            _ => return Err(malformed("a field of an unknown type")),
        };
        match tag >> 3 {
            0 => return Err(malformed("a field without a number")),
            number => found(number, value)?,
        }
    }
    Ok(())
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let cut_off = || malformed("it is cut off");
    let (part, rest) = bytes.split_at_checked(length).ok_or_else(cut_off)?;
    *bytes = rest;
    Ok(part)
}

fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut number = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = take(bytes, 1)?[0];
        if shift < 64 {
            number |= u64::from(byte & 127) << shift;
        }
        if byte < 128 {
            return Ok(number);
        }
    }
    Err(malformed("a number that is too long"))
}
