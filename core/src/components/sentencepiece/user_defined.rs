//! User-defined pieces, which are found before all other pieces, longest first.

use crate::components::trie::Trie;
use crate::error::Result;

/// Pieces and their ids.
#[derive(Debug)]
pub(crate) struct UserDefined {
    trie: Trie,
    is_empty: bool,
    /// Whether a piece begins with each byte.
    first: [bool; 256],
    /// Whether a piece contains each ASCII character.
    pub(crate) ascii: [bool; 128],
}

impl UserDefined {
    /// Creates a table of nonempty pieces with their ids.
    pub(crate) fn new<'a>(pieces: impl Iterator<Item = (&'a str, u32)>) -> Result<Self> {
        let pieces = pieces.filter(|(text, _)| !text.is_empty()).collect::<Vec<_>>();
        let (mut first, mut ascii) = ([false; 256], [false; 128]);
        for (text, _) in &pieces {
            first[usize::from(text.as_bytes()[0])] = true;
            text.bytes().filter(u8::is_ascii).for_each(|byte| ascii[usize::from(byte)] = true);
        }
        Ok(Self { is_empty: pieces.is_empty(), trie: Trie::new(pieces.into_iter())?, first, ascii })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    pub(crate) fn begins_with(&self, byte: u8) -> bool {
        self.first[usize::from(byte)]
    }

    /// Returns the length and the id of the longest piece that is a prefix of a text.
    pub(crate) fn longest(&self, text: &str) -> Option<(usize, u32)> {
        self.longest_of(text, |_, _| true)
    }

    /// Like [`UserDefined::longest`], among the pieces that `is_kept` accepts, by id and length.
    pub(crate) fn longest_of(
        &self,
        text: &str,
        is_kept: impl Fn(u32, usize) -> bool,
    ) -> Option<(usize, u32)> {
        if !text.bytes().next().is_some_and(|byte| self.begins_with(byte)) {
            return None;
        }
        let mut longest = None;
        self.trie.each_prefix(Trie::ROOT, text.as_bytes(), |id, length| {
            if is_kept(id, length) {
                longest = Some((length, id));
            }
        });
        longest
    }
}
