//! Positions of tokens in bytes and characters.

use std::ops::Range;

/// End of a token in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenEnd {
    /// Number of tokens up to this end.
    pub tokens: usize,
    /// End in bytes, rounded down if the token ends inside a character or a range that
    /// normalization rewrote.
    pub low: usize,
    /// End in bytes, rounded up.
    pub high: usize,
}

/// Returns the end of each token, given the byte spans of the tokens.
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

/// Converts byte spans of UTF-8 to character spans; the cost is proportional to the bytes between
/// successive starts, and between successive ends.
#[derive(Debug)]
pub struct CharacterSpans<'a> {
    text: &'a str,
    /// Byte and character of the last start, and of the last end.
    cursors: [(usize, usize); 2],
    /// Indices of characters that count twice, in ascending order.
    doubled: Vec<usize>,
}

impl<'a> CharacterSpans<'a> {
    /// Creates a converter for spans of `text`.
    pub fn new(text: &'a str) -> Self {
        Self::with_doubled(text, Vec::new())
    }

    /// Creates a converter that counts the characters with the indices `doubled` twice: a string of
    /// surrogates has two code points for each of these characters.
    pub fn with_doubled(text: &'a str, doubled: Vec<usize>) -> Self {
        Self { text, cursors: [(0, 0); 2], doubled }
    }

    /// Returns the character range of a byte span. Panics if an end is inside a character.
    pub fn next(&mut self, Range { start, end }: Range<usize>) -> (usize, usize) {
        let mut positions = [start, end];
        for (position, (byte, character)) in positions.iter_mut().zip(&mut self.cursors) {
            match position.checked_sub(*byte) {
                Some(_) => *character += self.text[*byte..*position].chars().count(),
                None => *character -= self.text[*position..*byte].chars().count(),
            }
            *byte = *position;
            *position = *character + self.doubled.partition_point(|&index| index < *character);
        }
        positions.into()
    }
}
