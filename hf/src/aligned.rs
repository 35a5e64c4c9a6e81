//! Text, and the place in the original that each byte of it came from.

use std::ops::Range;

/// Text that was made from an original.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aligned {
    pub(crate) text: String,
    /// For each byte of `text`: the bytes of the original that it came from.
    pub(crate) origins: Vec<(usize, usize)>,
}

/// A character of the new text: how many characters of the old one it stands for. 0 for one that
/// is inserted behind what the one before it stands for.
pub(crate) type Change = (char, usize);

impl Aligned {
    /// The original itself.
    pub(crate) fn original(text: &str) -> Self {
        let origins = text.char_indices().flat_map(|(at, character)| {
            let end = at + character.len_utf8();
            std::iter::repeat_n((at, end), end - at)
        });
        Self { text: text.to_owned(), origins: origins.collect() }
    }

    pub(crate) fn slice(&self, range: Range<usize>) -> Self {
        Self { text: self.text[range.clone()].to_owned(), origins: self.origins[range].to_vec() }
    }

    /// The bytes of the original that these bytes came from.
    pub(crate) fn origin(&self, range: Range<usize>) -> (usize, usize) {
        match &self.origins[range] {
            [] => (0, 0),
            [one] => *one,
            [first, .., last] => (first.0, last.1),
        }
    }

    /// Replaces the text, character by character, after `skipped` characters that are dropped. A
    /// character that stands for several comes from where the first of them came from; an inserted
    /// one from where the last character before it did that was not inserted.
    pub(crate) fn transform(&mut self, changes: impl IntoIterator<Item = Change>, skipped: usize) {
        let mut old = self.text.chars();
        let mut at: usize = old.by_ref().take(skipped).map(char::len_utf8).sum();
        let mut text = String::with_capacity(self.text.len());
        let mut origins = Vec::with_capacity(self.origins.len());
        for (character, count) in changes {
            let origin = match count {
                0 => at.checked_sub(1).and_then(|before| self.origins.get(before)),
                _ => self.origins.get(at),
            };
            at += old.by_ref().take(count).map(char::len_utf8).sum::<usize>();
            let origin = origin.copied().unwrap_or_default();
            origins.extend(std::iter::repeat_n(origin, character.len_utf8()));
            text.push(character);
        }
        *self = Self { text, origins };
    }

    /// Puts `prefix` before the text; it comes from where the first character does. Nothing is put
    /// before the empty text. `prefix` is not empty.
    pub(crate) fn prepend(&mut self, prefix: &str) {
        let Some(first) = self.text.chars().next() else { return };
        let origin = self.origins[0];
        let inserted = self.origins[first.len_utf8() - 1];
        let head = prefix.chars().next().map_or(0, char::len_utf8);
        let mut origins = vec![origin; head];
        origins.resize(prefix.len() + first.len_utf8(), inserted);
        self.origins.splice(..first.len_utf8(), origins);
        self.text.insert_str(0, prefix);
    }

    /// Replaces these stretches, which ascend, by `content`, which comes from where the last
    /// character of the stretch did.
    pub(crate) fn replace(&mut self, stretches: &[Range<usize>], content: &str) {
        let mut new = Self::default();
        let mut last = 0;
        for stretch in stretches {
            new.text.push_str(&self.text[last..stretch.start]);
            new.origins.extend_from_slice(&self.origins[last..stretch.start]);
            let origin = stretch.end.checked_sub(1).map(|at| self.origins[at]).unwrap_or_default();
            new.text.push_str(content);
            new.origins.extend(std::iter::repeat_n(origin, content.len()));
            last = stretch.end;
        }
        new.text.push_str(&self.text[last..]);
        new.origins.extend_from_slice(&self.origins[last..]);
        *self = new;
    }
}
