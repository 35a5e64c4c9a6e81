//! User-defined pieces: found before anything else, the longest first.

use std::collections::HashMap;

use foldhash::fast::FixedState;

/// Pieces and their ids.
#[derive(Debug)]
pub(crate) struct UserDefined {
    ids: HashMap<String, u32, FixedState>,
    /// The lengths of pieces, the longest first.
    lengths: Vec<usize>,
    /// Whether a piece begins with a byte.
    first: [bool; 256],
}

impl UserDefined {
    /// Makes a table of pieces that are not empty, with their ids.
    pub(crate) fn new<'a>(pieces: impl Iterator<Item = (&'a str, u32)>) -> Self {
        let pieces = pieces.filter(|(text, _)| !text.is_empty());
        let ids: HashMap<String, u32, FixedState> =
            pieces.map(|(text, id)| (text.to_owned(), id)).collect();
        let mut first = [false; 256];
        ids.keys().for_each(|text| first[usize::from(text.as_bytes()[0])] = true);
        let mut lengths: Vec<usize> = ids.keys().map(String::len).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        lengths.dedup();
        Self { ids, lengths, first }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether a function is true of any piece.
    pub(crate) fn any(&self, is_one: impl Fn(&str) -> bool) -> bool {
        self.ids.keys().any(|text| is_one(text))
    }

    pub(crate) fn begins_with(&self, byte: u8) -> bool {
        self.first[usize::from(byte)]
    }

    /// The length and the id of the longest piece that a text begins with.
    pub(crate) fn longest(&self, text: &str) -> Option<(usize, u32)> {
        self.longest_of(text, |_, _| true)
    }

    /// [`UserDefined::longest`] of those that `is_kept` has, by id and length.
    pub(crate) fn longest_of(
        &self,
        text: &str,
        is_kept: impl Fn(u32, usize) -> bool,
    ) -> Option<(usize, u32)> {
        if !text.bytes().next().is_some_and(|byte| self.begins_with(byte)) {
            return None;
        }
        let id = |&length: &usize| Some((length, *self.ids.get(text.get(..length)?)?));
        self.lengths.iter().filter_map(id).find(|&(length, id)| is_kept(id, length))
    }
}
