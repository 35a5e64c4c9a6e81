//! The tokens of a growing vocabulary.

use std::collections::HashMap;
use std::rc::Rc;

use crate::error::{Error, Result};

/// Tokens by number; the number of a token is its place in the order of ids.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    bytes: Vec<Rc<[u8]>>,
    numbers: HashMap<Rc<[u8]>, u32>,
    shapes: Vec<Shape>,
}

/// The properties of a token that limits apply to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Its bytes.
    pub(super) length: u32,
    /// The number of its words: stretches of bytes without ASCII whitespace.
    words: u32,
    begins_in_word: bool,
    ends_in_word: bool,
}

/// Which tokens may be made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a token.
    pub bytes: Option<u32>,
    /// The most words of a token: stretches of bytes without ASCII whitespace.
    pub words: Option<u32>,
}

impl Shape {
    fn of(bytes: &[u8]) -> Self {
        let in_word = |byte: Option<&u8>| byte.is_some_and(|byte| !byte.is_ascii_whitespace());
        let words = bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
        Self {
            length: bytes.len() as u32,
            words: words as u32,
            begins_in_word: in_word(bytes.first()),
            ends_in_word: in_word(bytes.last()),
        }
    }

    /// Returns true if both joined are within the limits.
    pub(super) fn may_join(self, right: Shape, limits: Limits) -> bool {
        let shared = u32::from(self.ends_in_word && right.begins_in_word);
        limits.bytes.is_none_or(|most| self.length.saturating_add(right.length) <= most)
            && limits.words.is_none_or(|most| self.words + right.words - shared <= most)
    }
}

impl Symbols {
    /// Returns the number of a token, and whether it is new: then it gets the next number.
    pub(super) fn intern(&mut self, bytes: &[u8]) -> Result<(u32, bool)> {
        if let Some(&number) = self.numbers.get(bytes) {
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
        self.shapes.push(Shape::of(bytes));
        Ok((number, true))
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

    /// Returns the bytes of both, one after the other.
    pub(super) fn joined(&self, left: u32, right: u32) -> Vec<u8> {
        [&self.bytes(left)[..], &self.bytes(right)[..]].concat()
    }
}
