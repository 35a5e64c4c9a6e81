//! Text that records, for each byte, its position in the original.

use std::ops::Range;

use crate::memory::{append, push, reserve, reserve_text, with_capacity};
use crate::polling::poll;
use unicode_normalization_alignments::char::canonical_combining_class;

use crate::components::encoding::copied;
use crate::error::Result;

/// Cost of a token or a piece with token fields, in bytes of text: see [`poll`].
pub(crate) const WORK: usize = 32;

/// Returns the maximum length of a text of `length` bytes during normalization or decoding. Without
/// a limit, a file that repeatedly doubles the text would exhaust memory.
pub(crate) fn limit(length: usize) -> usize {
    length.saturating_mul(1024).max(1 << 20)
}

/// A text derived from an original.
#[derive(Debug, Clone, Default)]
pub(crate) struct AlignedText {
    pub(crate) text: String,
    /// For each byte of `text`, its range of original bytes.
    pub(crate) origins: Vec<(usize, usize)>,
    /// Whether an origin covers all source bytes of a character. Otherwise origins equal the
    /// origins in `tokenizers`, which may cover less.
    pub(crate) is_whole: bool,
    /// Start of the original: if origins are whole, after any text that a normalizer removed;
    /// otherwise 0.
    pub(crate) begin: usize,
}

/// A character of the new text, and the number of old characters it replaces; 0 for a character
/// inserted after the previous character.
pub(crate) type Change = (char, usize);

impl AlignedText {
    pub(crate) fn original(text: &str, part: Range<usize>) -> Result<Self> {
        let (start, text) = (part.start, &text[part]);
        let mut origins = with_capacity(text.len())?;
        for (at, character) in text.char_indices() {
            poll(character.len_utf8())?;
            let (at, end) = (start + at, start + at + character.len_utf8());
            origins.extend(std::iter::repeat_n((at, end), end - at));
        }
        Ok(Self { text: joined(text, "")?, origins, is_whole: false, begin: 0 })
    }

    /// Moves the start of the original to the origin of the text's first byte.
    pub(crate) fn begin_here(&mut self) {
        let first = self.origins.first().filter(|_| self.is_whole);
        self.begin = first.map_or(0, |origin| origin.0);
    }

    /// Replaces the text, with an origin for each byte.
    pub(crate) fn set(&mut self, text: String, origins: Vec<(usize, usize)>) {
        (self.text, self.origins) = (text, origins);
    }

    pub(crate) fn slice(&self, range: Range<usize>) -> Result<Self> {
        poll(range.len() + WORK)?;
        let text = joined(&self.text[range.clone()], "")?;
        let Self { is_whole, begin, .. } = *self;
        Ok(Self { text, origins: copied(&self.origins[range])?, is_whole, begin })
    }

    /// Returns the original range of these bytes.
    pub(crate) fn origin(&self, range: Range<usize>) -> (usize, usize) {
        hull(&self.origins[range])
    }

    /// Returns the original range of a token without bytes at position `place`: empty, or the range
    /// of the character there.
    pub(crate) fn empty_origin(&self, place: usize) -> (usize, usize) {
        let character = self.text.get(place..).and_then(|rest| rest.chars().next());
        let length = character.map_or(0, char::len_utf8);
        match self.origin(place..place + length) {
            whole if self.is_whole => whole,
            (start, _) => (start, start),
        }
    }

    /// Replaces the text, character by character, and drops the first `skipped` characters. A
    /// character that replaces several characters has the origin of the first; an inserted
    /// character has the origin of the last old character before it.
    pub(crate) fn transform(
        &mut self,
        changes: impl IntoIterator<Item = Change>,
        skipped: usize,
    ) -> Result<()> {
        let mut old = self.text.chars();
        let mut at: usize = old.by_ref().take(skipped).map(char::len_utf8).sum();
        let mut text = String::new();
        reserve_text(&mut text, self.text.len())?;
        let mut origins = with_capacity(self.origins.len())?;
        for (character, count) in changes {
            poll(character.len_utf8())?;
            let origin = match count {
                0 => at.checked_sub(1).and_then(|before| self.origins.get(before)),
                _ => self.origins.get(at),
            };
            at += old.by_ref().take(count).map(char::len_utf8).sum::<usize>();
            let origin = origin.copied().unwrap_or_default();
            reserve(&mut origins, character.len_utf8())?;
            origins.extend(std::iter::repeat_n(origin, character.len_utf8()));
            reserve_text(&mut text, character.len_utf8())?;
            text.push(character);
        }
        self.set(text, origins);
        Ok(())
    }

    /// Like [`AlignedText::transform`], for a Unicode form. A whole origin of a character includes
    /// the marks after it, and for a mark the marks before it, unless all of them stay unchanged:
    /// the form may reorder marks.
    pub(crate) fn compose(&mut self, changes: impl IntoIterator<Item = Change>) -> Result<()> {
        if !self.is_whole {
            return self.transform(changes, 0);
        }
        let mut old = self.text.chars();
        let mut text = String::new();
        reserve_text(&mut text, self.text.len())?;
        let mut origins = with_capacity(self.origins.len())?;
        // Start of a character and its marks in the new text, and their byte range in the old text.
        let (mut first, mut source, mut is_kept) = (0, 0..0, true);
        for (character, count) in changes {
            poll(character.len_utf8())?;
            let end = source.end;
            if canonical_combining_class(character) == 0 {
                if !is_kept {
                    origins[first..].fill(hull(&self.origins[source]));
                }
                // An inserted character comes from the character before it.
                source = if count == 0 { end.saturating_sub(1)..end } else { end..end };
                (first, is_kept) = (origins.len(), true);
            }
            for _ in 0..count {
                let Some(replaced) = old.next() else { break };
                source.end += replaced.len_utf8();
                is_kept &= replaced == character;
            }
            is_kept &= count == 1;
            let origin = hull(&self.origins[end.min(source.end.saturating_sub(1))..source.end]);
            reserve(&mut origins, character.len_utf8())?;
            origins.extend(std::iter::repeat_n(origin, character.len_utf8()));
            reserve_text(&mut text, character.len_utf8())?;
            text.push(character);
        }
        if !is_kept {
            origins[first..].fill(hull(&self.origins[source]));
        }
        self.set(text, origins);
        Ok(())
    }

    /// Removes the characters for which `keep` returns false.
    pub(crate) fn keep(&mut self, keep: impl Fn(char) -> bool) -> Result<()> {
        if self.text.chars().all(&keep) {
            return Ok(());
        }
        let (mut changes, mut skipped): (Vec<Change>, usize) = (Vec::new(), 0);
        for character in self.text.chars() {
            match changes.last_mut() {
                _ if keep(character) => push(&mut changes, (character, 1))?,
                Some(before) => before.1 += 1,
                None => skipped += 1,
            }
        }
        self.transform(changes, skipped)
    }

    /// Replaces ascending ranges of characters, each with a text. An origin that is not whole is
    /// found by counting characters, as in `tokenizers`: characters removed at the start of the
    /// text are not counted.
    pub(crate) fn rewrite(&mut self, rules: &[(Range<usize>, String)]) -> Result<()> {
        if rules.is_empty() {
            return Ok(());
        }
        let (mut changes, mut whole): (Vec<Change>, _) = (Vec::new(), Vec::new());
        let mut last = 0;
        for (range, new) in rules {
            for character in self.text[last..range.start].chars() {
                push(&mut changes, (character, 1))?;
            }
            append(&mut whole, &self.origins[last..range.start])?;
            let mut old = self.text[range.clone()].chars().count();
            for character in new.chars() {
                push(&mut changes, (character, old.min(1)))?;
                old = old.saturating_sub(1);
            }
            if let Some(before) = changes.last_mut() {
                before.1 += old;
            }
            reserve(&mut whole, new.len())?;
            let origin = hull(&self.origins[range.clone()]);
            whole.extend(std::iter::repeat_n(origin, new.len()));
            last = range.end;
        }
        for character in self.text[last..].chars() {
            push(&mut changes, (character, 1))?;
        }
        append(&mut whole, &self.origins[last..])?;
        self.transform(changes, 0)?;
        if self.is_whole {
            self.origins = whole;
        }
        Ok(())
    }

    /// Prepends the nonempty `prefix`, with the origin of the first character, unless the text is
    /// empty.
    pub(crate) fn prepend(&mut self, prefix: &str) -> Result<()> {
        let Some(first) = self.text.chars().next() else { return Ok(()) };
        reserve(&mut self.origins, prefix.len())?;
        reserve_text(&mut self.text, prefix.len())?;
        let origin = self.origins[0];
        let inserted = self.origins[first.len_utf8() - 1];
        let head = prefix.chars().next().map_or(0, char::len_utf8);
        let mut origins = vec![origin; head];
        origins.resize(prefix.len() + first.len_utf8(), inserted);
        self.origins.splice(..first.len_utf8(), origins);
        self.text.insert_str(0, prefix);
        Ok(())
    }

    /// Replaces ascending ranges with `content`. Its origin is the origin of the last character of
    /// each range or, if `is_whole`, the origin of the entire range.
    pub(crate) fn replace(&mut self, ranges: &[Range<usize>], content: &str) -> Result<()> {
        let text = replaced(&self.text, ranges, content)?;
        let mut origins = with_capacity(text.len())?;
        let mut last = 0;
        for range in ranges {
            poll(range.end - last)?;
            origins.extend_from_slice(&self.origins[last..range.start]);
            let made_of = if self.is_whole { range.start } else { range.end.saturating_sub(1) };
            let origin = hull(&self.origins[made_of..range.end]);
            origins.extend(std::iter::repeat_n(origin, content.len()));
            last = range.end;
        }
        origins.extend_from_slice(&self.origins[last..]);
        self.set(text, origins);
        Ok(())
    }
}

/// Returns the original bytes from the first of these origins to the last.
fn hull(origins: &[(usize, usize)]) -> (usize, usize) {
    match origins {
        [] => (0, 0),
        [one] => *one,
        [first, .., last] => (first.0, last.1),
    }
}

/// Concatenates two texts; fails if memory runs out.
pub(crate) fn joined(first: &str, second: &str) -> Result<String> {
    let mut text = String::new();
    reserve_text(&mut text, first.len() + second.len())?;
    text.push_str(first);
    text.push_str(second);
    Ok(text)
}

pub(crate) fn replaced(text: &str, ranges: &[Range<usize>], content: &str) -> Result<String> {
    let old: usize = ranges.iter().map(ExactSizeIterator::len).sum();
    let mut new = String::new();
    reserve_text(&mut new, text.len() - old + ranges.len() * content.len())?;
    let mut last = 0;
    for Range { start, end } in ranges {
        new.push_str(&text[last..*start]);
        new.push_str(content);
        last = *end;
    }
    new.push_str(&text[last..]);
    Ok(new)
}
