//! What a caller asks for, beside the text: what the names of special tokens in it are to be.

use crate::error::{Error, Result};
use crate::special_tokens::{Names, Selection, SpecialTokens};

/// How the names of special tokens in a text are treated. A name that is neither allowed nor
/// disallowed is ordinary text.
#[derive(Debug, Clone)]
pub struct Request {
    /// The special tokens that text may stand for.
    pub allowed: Selection,
    /// The names that make the text an error.
    pub disallowed: Disallowed,
}

/// Names that must not occur in a text.
#[derive(Debug, Clone)]
pub enum Disallowed {
    /// None: the text is not searched.
    None,
    /// Every special token that is not allowed.
    AllOthers,
    /// These, special tokens or not, allowed or not.
    Names(Box<Names>),
    /// The empty name, which is in every text.
    Everything,
}

impl Request {
    /// No special tokens, and no search for them.
    pub const ORDINARY: Request =
        Request { allowed: Selection::None, disallowed: Disallowed::None };

    /// The special tokens in `allowed`; other names are ordinary text.
    pub fn allowing(allowed: Selection) -> Self {
        Self { allowed, disallowed: Disallowed::None }
    }

    /// How many bytes the longest name that may be disallowed has.
    pub(crate) fn longest_disallowed(&self, special: &SpecialTokens) -> usize {
        match &self.disallowed {
            Disallowed::Names(names) => names.longest(),
            _ => special.all().longest(),
        }
    }

    /// Fails with [`Error::DisallowedSpecial`] if a disallowed name is in `text`; of several it
    /// names the first.
    #[inline]
    pub fn check(&self, special: &SpecialTokens, text: &str) -> Result<()> {
        let found = match &self.disallowed {
            Disallowed::None => None,
            Disallowed::AllOthers => special.find_disallowed(text, &self.allowed),
            Disallowed::Names(names) => {
                names.find(text, 0).map(|found| names.names()[found.name].as_str())
            }
            Disallowed::Everything => Some(""),
        };
        match found {
            None => Ok(()),
            Some(name) => Err(Error::DisallowedSpecial { name: name.to_owned() }),
        }
    }
}
