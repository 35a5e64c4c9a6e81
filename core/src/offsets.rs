//! Positions of tokens in bytes and characters.

use std::ops::Range;

/// Where a token ends in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenEnd {
    /// Number of tokens up to this end.
    pub tokens: usize,
    /// End in bytes, rounded down if the token ends inside a character or a range that
    /// normalization rewrote.
    pub low: usize,
    /// End rounded up.
    pub high: usize,
}

/// Returns the end of each token, from the byte span of each.
pub fn ends_of(spans: &[Range<usize>]) -> Vec<TokenEnd> {
    let mut ends = Vec::with_capacity(spans.len());
    let mut high = 0;
    for (span, tokens) in spans.iter().zip(1..) {
        high = high.max(span.end);
        ends.push(TokenEnd { tokens, low: high, high });
    }
    let mut next = usize::MAX;
    for (end, span) in ends.iter_mut().zip(spans).rev() {
        end.low = end.high.min(next);
        next = next.min(span.start);
    }
    ends
}

/// Returns, for each of the ascending byte positions `starts`, the index of the character of
/// `String::from_utf8_lossy(bytes)` that contains it; at the end of `bytes`, the number of
/// characters.
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
    indices.extend(starts.map(|_| index));
    indices
}

/// Converts byte positions to character positions; the cost is proportional to the bytes between
/// consecutive positions.
#[derive(Debug)]
pub struct Characters<'a> {
    text: &'a str,
    byte: usize,
    character: usize,
}

impl<'a> Characters<'a> {
    /// Creates an index that starts at the start of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, byte: 0, character: 0 }
    }

    /// Returns the index of the character at byte `position`. Panics if no character starts there.
    pub fn index(&mut self, position: usize) -> usize {
        match position.checked_sub(self.byte) {
            Some(_) => self.character += self.text[self.byte..position].chars().count(),
            None => self.character -= self.text[position..self.byte].chars().count(),
        }
        self.byte = position;
        self.character
    }
}
