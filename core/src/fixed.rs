//! Fixed positions in a text: special tokens and given ids, which are not encoded.

/// Ids at a fixed position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixedIds {
    /// A special token.
    Special(u32),
    /// Ids given by the caller.
    Given(Vec<u32>),
}

impl FixedIds {
    /// Returns the ids.
    pub fn as_slice(&self) -> &[u32] {
        match self {
            Self::Special(id) => std::slice::from_ref(id),
            Self::Given(ids) => ids,
        }
    }
}

/// A fixed position in the text of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    /// The first byte of a special token's name, or the position of given ids.
    pub start: usize,
    /// The byte after the name; `start` for given ids, which have no text.
    pub end: usize,
    /// The ids at the position.
    pub ids: FixedIds,
}

impl Fixed {
    /// Returns the position relative to byte `start` of the text.
    pub(crate) fn moved_back(&self, start: usize) -> Self {
        Self { start: self.start - start, end: self.end - start, ids: self.ids.clone() }
    }
}
