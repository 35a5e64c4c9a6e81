//! Where in the text each token stands.

use std::borrow::Cow;
use std::ops::Range;

use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::memory::{reserve, with_capacity};
use crate::normalize::Alignment;
use crate::request::Request;
use crate::sink::Sink;

/// The ids of a text, and what it takes to find where in it each stands.
#[derive(Debug)]
pub struct Aligned<'a> {
    /// The ids.
    pub ids: Vec<u32>,
    normal: Cow<'a, str>,
    alignment: Alignment,
    jumps: Vec<Jump>,
}

/// An id that does not start where the bytes of the id before it end: text between them is in no
/// piece, or one of them is a special token, whose id may stand for several names.
#[derive(Debug)]
struct Jump {
    /// The index of the id.
    index: usize,
    start: usize,
    /// Of special tokens.
    end: Option<usize>,
}

/// Keeps every id, and the jumps.
#[derive(Debug, Default)]
struct JumpSink {
    ids: Vec<u32>,
    jumps: Vec<Jump>,
    /// Where the next id starts unless it is a jump; `None` after a special token.
    expected: Option<usize>,
}

impl Sink for JumpSink {
    const WANTS_PIECES: bool = true;

    fn ids(&mut self) -> &mut Vec<u32> {
        &mut self.ids
    }

    fn reserve(&mut self, pieces: usize, ids: usize) -> Result<()> {
        // Most texts have no jump beside the first.
        if self.jumps.len() > 1 {
            reserve(&mut self.jumps, pieces)?;
        }
        reserve(&mut self.ids, ids)
    }

    fn piece(&mut self, bytes: Range<usize>) {
        if self.expected != Some(bytes.start) {
            self.jumps.push(Jump { index: self.ids.len(), start: bytes.start, end: None });
        }
        self.expected = Some(bytes.end);
    }

    fn special(&mut self, bytes: Range<usize>) {
        let (start, end) = (bytes.start, Some(bytes.end));
        self.jumps.push(Jump { index: self.ids.len(), start, end });
        self.expected = None;
    }
}

impl Encoding {
    /// The ids of `text`, with the way to their places.
    pub fn encode_aligned<'a>(&self, text: &'a str, request: &Request) -> Result<Aligned<'a>> {
        let (normal, alignment) = self.prepare_aligned(text, request)?;
        let mut sink = JumpSink::default();
        self.encode_normal(&normal, &request.allowed, &mut sink)?;
        Ok(Aligned { ids: sink.ids, normal, alignment, jumps: sink.jumps })
    }
}

impl Aligned<'_> {
    /// The bytes of the text that each id stands for, widened to whole characters: tokens that
    /// share a character overlap. `encoding` is the one that made the ids.
    pub fn spans(&self, encoding: &Encoding) -> impl Iterator<Item = Result<Range<usize>>> {
        let mut jumps = self.jumps.iter().peekable();
        let mut position = 0;
        self.ids.iter().enumerate().map(move |(index, &id)| {
            let jump = jumps.next_if(|jump| jump.index == index);
            if let Some(jump) = jump {
                position = jump.start;
            }
            let end = match jump.and_then(|jump| jump.end) {
                Some(end) => end,
                None => {
                    let token = encoding.token_bytes(id).ok_or(Error::UnknownId(id.into()))?;
                    position + token.len()
                }
            };
            let span = floor(&self.normal, position)..ceil(&self.normal, end);
            position = end;
            Ok(self.alignment.original(span))
        })
    }
}

/// The character of `String::from_utf8_lossy(bytes)` that each byte position in `starts`, given in
/// ascending order, lies in.
pub fn lossy_characters(bytes: &[u8], starts: &[usize]) -> Result<Vec<usize>> {
    let mut indices = with_capacity(starts.len())?;
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
    Ok(indices)
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
