//! Positions of a text whose ids are not the result of encoding.

/// Ids that are not the result of encoding.
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

/// A position in the text of a prompt whose ids are not the result of encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    /// The first byte of a special token's name, or the position of given ids.
    pub start: usize,
    /// The byte after the name; `start` for given ids, which have no text.
    pub end: usize,
    /// The ids.
    pub ids: FixedIds,
}

impl Fixed {
    /// Returns the position in a text without the first `start` bytes.
    pub(crate) fn moved_back(&self, start: usize) -> Self {
        Self { start: self.start - start, end: self.end - start, ids: self.ids.clone() }
    }
}
