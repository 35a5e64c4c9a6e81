//! Prompts out of segments: special tokens are looked for inside one segment only, and text is
//! encoded as one run across the borders of segments.

use std::ops::Range;

use crate::encoding::Encoding;
use crate::error::Result;
use crate::memory::{append, push, push_text, reserve, reserve_text};
use crate::normalize::{Normalization, starts_stretch};
use crate::polling::poll;
use crate::sink::Pieces;
use crate::special_tokens::Selection;

/// Ids that do not come from encoding text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixedIds {
    /// A special token.
    Special(u32),
    /// Ids that were given as such.
    Given(Vec<u32>),
}

impl FixedIds {
    /// The ids.
    pub fn as_slice(&self) -> &[u32] {
        match self {
            Self::Special(id) => std::slice::from_ref(id),
            Self::Given(ids) => ids,
        }
    }
}

/// Where in the text of a prompt ids stand that do not come from encoding it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    /// The first byte of a special token's name, or the place of given ids.
    pub start: usize,
    /// The byte after the name; `start` for given ids, which have no text.
    pub end: usize,
    /// The ids.
    pub ids: FixedIds,
}

/// The segments of a prompt, one after the other.
#[derive(Debug, Default)]
pub struct Prompt {
    text: String,
    fixed: Vec<Fixed>,
    /// The segment of each of `fixed`.
    fixed_segments: Vec<usize>,
    /// Where in the text each segment ends.
    ends: Vec<usize>,
}

/// Where an id comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The segment with its first byte, and the one with its last.
    pub segments: (usize, usize),
    /// Whether it is a special token.
    pub is_special: bool,
}

impl Prompt {
    /// An empty prompt with room for so many segments of ordinary length.
    pub fn with_room(segments: usize) -> Result<Self> {
        const LENGTH: usize = 64;
        let mut prompt = Self::default();
        reserve_text(&mut prompt.text, segments.saturating_mul(LENGTH))?;
        reserve(&mut prompt.ends, segments)?;
        reserve(&mut prompt.fixed, segments)?;
        reserve(&mut prompt.fixed_segments, segments)?;
        Ok(prompt)
    }

    /// Adds text in which the names in `allowed` are special tokens.
    ///
    /// They are looked for before text is normalized, so that normalization makes none. What it
    /// would take apart inside this text is none either, as in [`Encoding::encode`].
    pub fn push_text(
        &mut self,
        encoding: &Encoding,
        text: &str,
        allowed: &Selection,
    ) -> Result<()> {
        poll(text.len())?;
        reserve_text(&mut self.text, text.len())?;
        let normalization = encoding.normalization();
        let base = self.text.len();
        let mut from = 0;
        while let Some((found, id)) = encoding.special_tokens().find_allowed(text, from, allowed) {
            let name = found.start..found.end;
            from = found.end;
            if normalization != Normalization::None && !survives(normalization, text, &name)? {
                from = found.start + 1;
                continue;
            }
            self.push_fixed(base + name.start..base + name.end, FixedIds::Special(id))?;
        }
        self.text.push_str(text);
        push(&mut self.ends, self.text.len())
    }

    /// Puts `character` in place of the U+FFFD at the end of the text, which stands for its first
    /// half: what is pushed next began with the second one.
    pub fn join_halves(&mut self, character: char) -> Result<()> {
        let end = self.text.len();
        let is_name = self.fixed.last().is_some_and(|fixed| fixed.end == end);
        if is_name || !self.text.ends_with(char::REPLACEMENT_CHARACTER) {
            return push_text(&mut self.text, char::REPLACEMENT_CHARACTER.encode_utf8(&mut [0; 4]));
        }
        self.text.pop();
        push_text(&mut self.text, character.encode_utf8(&mut [0; 4]))?;
        for place in self.ends.iter_mut().rev().take_while(|place| **place == end) {
            *place = self.text.len();
        }
        Ok(())
    }

    /// Adds a special token.
    pub fn push_special(&mut self, name: &str, id: u32) -> Result<()> {
        let start = self.text.len();
        self.push_fixed(start..start + name.len(), FixedIds::Special(id))?;
        push_text(&mut self.text, name)?;
        push(&mut self.ends, self.text.len())
    }

    /// Adds ids. What stands on both sides of them, if there are any, is encoded on its own.
    pub fn push_ids(&mut self, ids: Vec<u32>) -> Result<()> {
        let place = self.text.len();
        if !ids.is_empty() {
            self.push_fixed(place..place, FixedIds::Given(ids))?;
        }
        push(&mut self.ends, place)
    }

    fn push_fixed(&mut self, place: Range<usize>, ids: FixedIds) -> Result<()> {
        push(&mut self.fixed, Fixed { start: place.start, end: place.end, ids })?;
        push(&mut self.fixed_segments, self.ends.len())
    }

    /// The texts of all segments, and the ids that stand in them.
    pub fn into_parts(self) -> (String, Vec<Fixed>) {
        (self.text, self.fixed)
    }

    /// How many bytes of text there are.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// Calls `text` for every run of text, and `fixed` for the ids between them, by index. With
    /// `is_joined` a run goes on across the borders of segments.
    fn walk(
        &self,
        is_joined: bool,
        mut work: impl FnMut(Range<usize>, Option<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut position = 0;
        let mut ends = self.ends.iter();
        for index in 0..=self.fixed.len() {
            let next = self.fixed.get(index);
            let stop = next.map_or(self.text.len(), |fixed| fixed.start);
            if !is_joined {
                let within = ends.as_slice().partition_point(|&end| end < stop);
                for &end in ends.by_ref().take(within) {
                    if end > position {
                        work(position..end, None)?;
                        position = end;
                    }
                }
            }
            if stop > position {
                work(position..stop, None)?;
            }
            if let Some(fixed) = next {
                work(fixed.start..fixed.end, Some(index))?;
                position = fixed.end;
            }
        }
        Ok(())
    }

    /// Appends the ids.
    pub fn encode(&self, encoding: &Encoding, is_joined: bool, ids: &mut Vec<u32>) -> Result<()> {
        // Asked of all the text at once; ASCII is normalized.
        let normalization = match encoding.normalization() {
            Normalization::Nfc if self.text.is_ascii() => Normalization::None,
            other => other,
        };
        encoding.encode_stretches(|encode| {
            self.walk(is_joined, |span, fixed| match fixed {
                Some(index) => append(ids, self.fixed[index].ids.as_slice()),
                None => encode(&normalization.apply(&self.text[span])?, ids),
            })
        })
    }

    /// Appends the ids, and where each comes from.
    pub fn encode_with_origins(
        &self,
        encoding: &Encoding,
        is_joined: bool,
        ids: &mut Vec<u32>,
        origins: &mut Vec<Origin>,
    ) -> Result<()> {
        self.walk(is_joined, |span, fixed| {
            if let Some(index) = fixed {
                let given = self.fixed[index].ids.as_slice();
                let segment = self.fixed_segments[index];
                append(ids, given)?;
                reserve(origins, given.len())?;
                origins.extend(given.iter().map(|&id| Origin {
                    segments: (segment, segment),
                    is_special: encoding.special_tokens().name(id).is_some(),
                }));
                return Ok(());
            }
            let (text, alignment) = encoding.normalization().align(&self.text[span.clone()])?;
            let mut walk = Pieces::default();
            encoding.encode_normal(&text, &Selection::None, &mut walk)?;
            reserve(origins, walk.ids.len())?;
            for bytes in token_spans(encoding, &walk) {
                let original = alignment.original(bytes);
                let first = self.segment_at(span.start + original.start);
                let last = self.segment_at(span.start + original.end.max(1) - 1);
                origins.push(Origin { segments: (first, last.max(first)), is_special: false });
            }
            append(ids, &walk.ids)
        })
    }

    /// The segment with the byte at `position`.
    fn segment_at(&self, position: usize) -> usize {
        self.ends.partition_point(|&end| end <= position).min(self.ends.len().saturating_sub(1))
    }
}

/// Where the bytes of each id stand in the text that was walked over.
fn token_spans<'a>(
    encoding: &'a Encoding,
    walk: &'a Pieces,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let ends = walk.starts.iter().skip(1).map(|&(_, index)| index).chain([walk.ids.len()]);
    walk.starts.iter().zip(ends).flat_map(move |(&(start, first), end)| {
        walk.ids[first..end].iter().scan(start, move |at, &id| {
            let start = *at;
            *at += encoding.token_bytes(id).map_or(0, <[u8]>::len);
            Some(start..*at)
        })
    })
}

/// Whether normalizing `text` leaves the name at `name` as it is.
fn survives(normalization: Normalization, text: &str, name: &Range<usize>) -> Result<bool> {
    // Nothing below U+0300 changes with what stands beside it.
    let next = text[name.end..].chars().next();
    if text[name.clone()].is_ascii() && next.is_none_or(|character| character < '\u{300}') {
        return Ok(true);
    }
    let starts = |&(_, character): &(usize, char)| starts_stretch(character);
    let before = text[..name.start].char_indices().rev().find(starts);
    let before = before.map_or(0, |(offset, _)| offset);
    let behind = text[name.end..].char_indices().find(starts);
    let behind = behind.map_or(text.len(), |(offset, _)| name.end + offset);
    let mut apart = normalization.apply(&text[before..name.start])?.into_owned();
    apart.push_str(&text[name.clone()]);
    apart.push_str(&normalization.apply(&text[name.end..behind])?);
    Ok(normalization.apply(&text[before..behind])? == apart)
}
