//! Rules for word boundaries.

/// Rules for where words begin and end.
#[derive(Debug, Clone, Copy, Default)]
pub struct WordRules {
    /// A run of whitespace begins the next word; otherwise whitespace is dropped.
    pub keeps_spaces: bool,
    /// Whitespace is U+0020 alone, without tabs and line ends.
    pub only_blank: bool,
    /// Each character of ASCII punctuation is a word, as is some other punctuation.
    pub isolates_punctuation: bool,
    /// Each Han character of the blocks U+3400 and U+4E00 is a word.
    pub isolates_han: bool,
}

/// Tells whether text can be cut at whitespace next to a character; `None` permits every cut.
/// Whitespace and printable ASCII always permit the cut.
pub type Permits<'a> = Option<&'a dyn Fn(char) -> bool>;
