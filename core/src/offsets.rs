//! Where in the text each token stands.

use std::ops::Range;

use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::sink::Pieces;

/// The bytes of `text` that each id of a walk over it stands for, widened to whole characters:
/// tokens that share a character overlap.
pub fn spans(encoding: &Encoding, text: &str, walk: &Pieces) -> Result<Vec<Range<usize>>> {
    let mut spans = Vec::with_capacity(walk.ids.len());
    for (place, &(start, first)) in walk.starts.iter().enumerate() {
        let last = walk.starts.get(place + 1).map_or(walk.ids.len(), |&(_, next)| next);
        let mut position = start;
        for &id in &walk.ids[first..last] {
            let token = encoding.token_bytes(id).ok_or(Error::UnknownId(u64::from(id)))?;
            let end = position + token.len();
            spans.push(floor(text, position)..ceil(text, end));
            position = end;
        }
    }
    Ok(spans)
}

/// The character of `String::from_utf8_lossy(bytes)` that each byte position in `starts`, given in
/// ascending order, lies in.
pub fn lossy_characters(bytes: &[u8], starts: &[usize]) -> Vec<usize> {
    let mut indices = Vec::with_capacity(starts.len());
    let mut starts = starts.iter().copied().peekable();
    let (mut position, mut index) = (0, 0);
    let mut pass = |length: usize| {
        while starts.next_if(|&start| start < position + length).is_some() {
            indices.push(index);
        }
        position += length;
        index += 1;
    };
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().map(char::len_utf8).for_each(&mut pass);
        if !chunk.invalid().is_empty() {
            pass(chunk.invalid().len());
        }
    }
    indices
}

fn floor(text: &str, mut position: usize) -> usize {
    while !text.is_char_boundary(position) {
        position -= 1;
    }
    position
}

fn ceil(text: &str, mut position: usize) -> usize {
    while !text.is_char_boundary(position) {
        position += 1;
    }
    position
}

/// Turns byte positions, given in ascending order, into character positions.
#[derive(Debug)]
pub struct Characters<'a> {
    text: &'a str,
    byte: usize,
    character: usize,
}

impl<'a> Characters<'a> {
    /// Starts at the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, byte: 0, character: 0 }
    }

    /// The index of the character that starts at byte `position`, which must not lie before the
    /// position asked for last. Panics if no character starts there.
    pub fn index(&mut self, position: usize) -> usize {
        self.character += self.text[self.byte..position].chars().count();
        self.byte = position;
        self.character
    }
}
