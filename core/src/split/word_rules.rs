//! Rules for the borders of words.

/// Where words begin and end.
#[derive(Debug, Clone, Copy, Default)]
pub struct WordRules {
    /// Whitespace in a row begins the word after it. Otherwise it is part of no word.
    pub keeps_spaces: bool,
    /// Whitespace is U+0020 only, not also a tab or a line end.
    pub only_blank: bool,
    /// Each character of ASCII punctuation is a word, as are some others of punctuation.
    pub isolates_punctuation: bool,
    /// Each Han character of the blocks U+3400 and U+4E00 is a word.
    pub isolates_han: bool,
}

/// Whether text may be cut at whitespace next to a character; without a function, it may. White
/// space and printable ASCII permit it anyway.
pub type Permits<'a> = Option<&'a dyn Fn(char) -> bool>;
