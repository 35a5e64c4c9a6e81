//! The tokens of a growing vocabulary.

use std::collections::HashMap;
use std::rc::Rc;

use crate::error::{Error, Result};

/// Tokens by number; the number of a token is its index in the order of ids.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    bytes: Vec<Rc<[u8]>>,
    numbers: HashMap<Rc<[u8]>, u32>,
    shapes: Vec<Shape>,
}

/// Properties of a token that limits apply to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Number of cells of a piece that the token takes: its bytes, or its characters; 0 until it
    /// occurs in a piece.
    pub(super) length: u32,
    /// True if the token takes different numbers of cells in different places, as `##` can with the
    /// prefix `#`.
    pub(super) varies: bool,
    /// Number of words in the token: runs of bytes without ASCII whitespace.
    words: u32,
    begins_in_word: bool,
    ends_in_word: bool,
}

/// Limits on new tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of bytes in a token, or of characters if words consist of characters.
    pub bytes: Option<u32>,
    /// Maximum number of words in a token: runs of bytes without ASCII whitespace.
    pub words: Option<u32>,
}

impl Shape {
    fn of(bytes: &[u8], length: u32) -> Self {
        let in_word = |byte: Option<&u8>| byte.is_some_and(|byte| !byte.is_ascii_whitespace());
        let words = bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
        Self {
            length,
            varies: false,
            words: words as u32,
            begins_in_word: in_word(bytes.first()),
            ends_in_word: in_word(bytes.last()),
        }
    }

    /// Returns true if the joined token is within the limits.
    pub(super) fn may_join(self, right: Shape, limits: Limits) -> bool {
        let shared = u32::from(self.ends_in_word && right.begins_in_word);
        limits.bytes.is_none_or(|most| self.length.saturating_add(right.length) <= most)
            && limits.words.is_none_or(|most| self.words + right.words - shared <= most)
    }
}

impl Symbols {
    /// Returns the number of a token, and whether it is new; a new token gets the next number.
    pub(super) fn intern(&mut self, bytes: &[u8]) -> Result<(u32, bool)> {
        self.intern_of(bytes, bytes.len() as u32)
    }

    /// Like [`Self::intern`], for a token of `length` cells.
    pub(super) fn intern_of(&mut self, bytes: &[u8], length: u32) -> Result<(u32, bool)> {
        if let Some(&number) = self.numbers.get(bytes) {
            let shape = &mut self.shapes[number as usize];
            match shape.length {
                0 => shape.length = length,
                first => shape.varies |= first != length,
            }
            return Ok((number, false));
        }
        let shared: Rc<[u8]> = bytes.into();
        let number = self.bytes.len() as u32;
        self.bytes.reserve(1);
        self.shapes.reserve(1);
        let no_memory = |_| Error::OutOfMemory { bytes: size_of::<(Rc<[u8]>, u32)>() };
        self.numbers.try_reserve(1).map_err(no_memory)?;
        self.bytes.push(Rc::clone(&shared));
        self.numbers.insert(shared, number);
        self.shapes.push(Shape::of(bytes, length));
        Ok((number, true))
    }

    /// Like [`Self::intern`], for a token merged from two tokens.
    pub(super) fn intern_joined(&mut self, bytes: &[u8], of: [u32; 2]) -> Result<(u32, bool)> {
        let shapes = of.map(|token| self.shape(token));
        let interned = self.intern_of(bytes, shapes.iter().map(|shape| shape.length).sum())?;
        self.shapes[interned.0 as usize].varies |= shapes.iter().any(|shape| shape.varies);
        Ok(interned)
    }

    pub(super) fn number(&self, bytes: &[u8]) -> Option<u32> {
        self.numbers.get(bytes).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn bytes(&self, number: u32) -> &Rc<[u8]> {
        &self.bytes[number as usize]
    }

    #[inline(always)]
    pub(super) fn shape(&self, number: u32) -> Shape {
        self.shapes[number as usize]
    }

    #[inline(always)]
    pub(super) fn length(&self, number: u32) -> usize {
        self.shapes[number as usize].length as usize
    }

    pub(super) fn joined(&self, left: u32, right: u32) -> Vec<u8> {
        [&self.bytes(left)[..], &self.bytes(right)[..]].concat()
    }
}
