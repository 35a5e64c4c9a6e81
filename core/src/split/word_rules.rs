//! Where words of text begin and end.

/// The white space that words have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WordSpaces {
    /// None.
    #[default]
    Dropped,
    /// The last before a word begins it.
    Last,
    /// All of it in a row begins the word after it.
    Rows,
}

/// Where words begin and end.
#[derive(Debug, Clone, Copy, Default)]
pub struct WordRules {
    /// The white space that words have.
    pub spaces: WordSpaces,
    /// White space is U+0020 only, not also a tab or a line end.
    pub only_blank: bool,
    /// Each character of ASCII punctuation is a word, as are some others of punctuation.
    pub isolates_punctuation: bool,
    /// Each Han character of the blocks U+3400 and U+4E00 is a word.
    pub isolates_han: bool,
}

/// Answers about characters, beside the rules.
#[derive(Clone, Copy, Default)]
#[allow(missing_debug_implementations)]
pub struct WordChecks<'a> {
    /// Whether text may be cut at white space beside a character; without a function, it may. White
    /// space and printable ASCII permit it anyway.
    pub permits: Option<&'a dyn Fn(char) -> bool>,
    /// Whether text is cut between two characters of which one is ASCII punctuation.
    pub apart: Option<Apart<'a>>,
}

/// Whether text is cut between two characters.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub struct Apart<'a> {
    /// 1 for two characters of ASCII that it is cut between, if those around them are ASCII, too.
    pub ascii: &'a [[u8; 128]; 128],
    /// The answer for other places, each between two characters of a text.
    pub others: &'a dyn Fn(&str, usize) -> bool,
}
