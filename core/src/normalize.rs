//! Normalizes text, and maps positions back to the original.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::char::{canonical_combining_class, decompose_canonical};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::error::{Error, Result};
use crate::memory::reserve;
use crate::polling::poll;

/// Bytes of a long text between two polls.
const POLLED: usize = 4096;

/// Normalization of text before the search for special tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Normalization {
    /// Text stays unchanged.
    #[default]
    None,
    /// Unicode normalization form C.
    Nfc,
}

impl Normalization {
    /// Normalizes `text`.
    #[inline]
    pub fn apply<'a>(self, text: &'a str) -> Result<Cow<'a, str>> {
        match self {
            Normalization::Nfc if !is_nfc(text) => {
                let mut normal = String::new();
                append_nfc(text, &mut normal)?;
                Ok(Cow::Owned(normal))
            }
            _ => Ok(Cow::Borrowed(text)),
        }
    }

    /// Returns true if normalization is certain not to change `text`.
    pub(crate) fn keeps(self, text: &str) -> bool {
        match self {
            Normalization::None => true,
            Normalization::Nfc => is_nfc(text),
        }
    }

    /// Normalizes `text` and aligns the result with `text`. Returns a borrowed text if and only if
    /// nothing changes.
    pub fn align<'a>(self, text: &'a str) -> Result<(Cow<'a, str>, Alignment)> {
        match self {
            Normalization::Nfc if !is_nfc(text) => {
                let (normal, alignment) = align_nfc(text)?;
                // Any part of a text in form C is in form C.
                if normal == text {
                    return Ok((Cow::Borrowed(text), Alignment::default()));
                }
                Ok((Cow::Owned(normal), alignment))
            }
            _ => Ok((Cow::Borrowed(text), Alignment::default())),
        }
    }
}

/// Maps positions in normalized text to the original, by the ranges that were rewritten. All other
/// text is unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alignment {
    /// Ascending, disjoint byte ranges `(in the normalized text, in the original)`.
    rewritten: Vec<(Range<usize>, Range<usize>)>,
}

impl Alignment {
    /// Returns the bytes of the original for the bytes `span` of the normalized text. Any part of a
    /// rewritten range maps to the whole original range.
    pub fn original(&self, span: Range<usize>) -> Range<usize> {
        self.position(span.start, false)..self.position(span.end, true)
    }

    /// Returns the original position for byte `position` of the normalized text, if the texts
    /// before and after it normalize independently.
    pub fn boundary(&self, position: usize) -> Option<usize> {
        let (low, high) = (self.position(position, false), self.position(position, true));
        (low == high).then_some(low)
    }

    fn position(&self, position: usize, end: bool) -> usize {
        let after = self.rewritten.partition_point(|(normal, _)| normal.start < position);
        let Some((normal, original)) = after.checked_sub(1).map(|last| &self.rewritten[last])
        else {
            return position;
        };
        match position {
            _ if position >= normal.end => original.end + (position - normal.end),
            _ if end => original.end,
            _ => original.start,
        }
    }
}

/// Returns true if `text` is certain to be in form C. Uncertain text is normalized, with the same
/// result.
fn is_nfc(text: &str) -> bool {
    text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes
}

/// Returns true if text can be cut before `character` and the parts normalized independently.
pub(crate) fn is_boundary_before(character: char) -> bool {
    // Characters below U+0300 do not combine with the character before.
    if character < '\u{300}' {
        return true;
    }
    // The first character of its decomposition decides.
    let mut first = None;
    decompose_canonical(character, |part| {
        first.get_or_insert(part);
    });
    let first = first.unwrap_or(character);
    canonical_combining_class(first) == 0
        && is_nfc_quick(std::iter::once(first)) == IsNormalized::Yes
}

/// Appends form C of `text`.
fn append_nfc(text: &str, normal: &mut String) -> Result<()> {
    let mut polled = normal.len();
    for character in text.nfc() {
        let bytes = character.len_utf8();
        normal.try_reserve(bytes).map_err(|_| Error::OutOfMemory { bytes })?;
        normal.push(character);
        if normal.len() - polled > POLLED {
            poll(POLLED)?;
            polled = normal.len();
        }
    }
    Ok(())
}

fn align_nfc(text: &str) -> Result<(String, Alignment)> {
    let mut normal = String::new();
    let mut rewritten = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let end = text[start..]
            .char_indices()
            .skip(1)
            .find(|&(_, character)| is_boundary_before(character))
            .map_or(text.len(), |(offset, _)| start + offset);
        let from = normal.len();
        poll(end - start)?;
        append_nfc(&text[start..end], &mut normal)?;
        let (before, after) = (&text[start..end], &normal[from..]);
        if before != after {
            let (prefix, suffix) = unchanged(before, after);
            reserve(&mut rewritten, 1)?;
            rewritten.push((from + prefix..normal.len() - suffix, start + prefix..end - suffix));
        }
        start = end;
    }
    Ok((normal, Alignment { rewritten }))
}

/// Returns the lengths in bytes of the common prefix and suffix of a text and its normalized form.
/// The middle of the text normalizes on its own to the middle of the normalized text: canonical
/// equivalence allows cancelling, and every part of a text in form C is in form C.
fn unchanged(before: &str, after: &str) -> (usize, usize) {
    let same = |(a, b): &(char, char)| a == b;
    let prefix: usize = before
        .chars()
        .zip(after.chars())
        .take_while(same)
        .map(|(character, _)| character.len_utf8())
        .sum();
    let suffix = before[prefix..]
        .chars()
        .rev()
        .zip(after[prefix..].chars().rev())
        .take_while(same)
        .map(|(character, _)| character.len_utf8())
        .sum();
    (prefix, suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nfc(text: &str) -> String {
        text.nfc().collect()
    }

    #[test]
    fn aligned_text_is_form_c() {
        for text in [
            "",
            "plain",
            "e\u{301}",
            "x\u{301}\u{323}y",
            "\u{1100}\u{1161}\u{11a8}z",
            "\u{212a}\u{2126}",
            "<\u{338}",
            "\u{301}e\u{301}",
            "\u{0958}\u{fb1d}a",
            "a\u{315}\u{300}\u{5ae}b",
            ">\u{5b0}\u{339}",
            "x\u{339}\u{5b0}\u{338}\u{301}e\u{301}\u{301}",
        ] {
            let (normal, alignment) = Normalization::Nfc.align(text).unwrap();
            assert_eq!(normal, nfc(text));
            assert_eq!(Normalization::Nfc.apply(text).unwrap(), nfc(text));
            assert_eq!(alignment.original(0..normal.len()), 0..text.len());
            for (position, _) in normal.char_indices() {
                if let Some(original) = alignment.boundary(position) {
                    assert_eq!(nfc(&text[..original]), normal[..position]);
                    assert_eq!(nfc(&text[original..]), normal[position..]);
                }
            }
        }
    }

    /// Each rewritten range maps to its original, without their common prefix and suffix.
    #[test]
    fn only_what_was_rewritten_is_taken_as_a_whole() {
        let (normal, alignment) = Normalization::Nfc.align("ae\u{301}bce\u{301}d").unwrap();
        assert_eq!(normal, "a\u{e9}bc\u{e9}d");
        assert_eq!(alignment.original(3..4), 4..5);
        assert_eq!(alignment.original(3..5), 4..6);
        assert_eq!(alignment.original(5..7), 6..9);
        assert_eq!(alignment.original(7..8), 9..10);
        assert_eq!([3, 4, 5].map(|at| alignment.boundary(at)), [Some(4), Some(5), Some(6)]);
        // Two marks are reordered; the letter before them and the mark after them stay in place.
        let text = "xq\u{301}\u{323}\u{5ae}y";
        let (normal, alignment) = Normalization::Nfc.align(text).unwrap();
        assert_eq!(normal, "xq\u{323}\u{5ae}\u{301}y");
        assert_eq!(alignment.original(1..2), 1..2);
        assert_eq!(alignment.original(2..4), 2..8);
        let (normal, alignment) = Normalization::Nfc.align("q\u{301}\u{323}\u{303}").unwrap();
        assert_eq!(normal, "q\u{323}\u{301}\u{303}");
        assert_eq!(alignment.original(2..3), 1..5);
        assert_eq!(alignment.original(5..7), 5..7);
    }

    #[test]
    fn every_character_below_u300_starts_a_stretch() {
        for character in '\0'..'\u{300}' {
            assert_eq!(canonical_combining_class(character), 0);
            assert_eq!(is_nfc_quick(std::iter::once(character)), IsNormalized::Yes);
        }
    }
}
