//! The caller's choice: which special tokens are allowed, disallowed, or ordinary text.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::special_tokens::{Names, Selection, SpecialTokens};

/// Treatment of special token names in a text. Names that are neither allowed nor disallowed are
/// ordinary text.
#[derive(Debug, Clone)]
pub struct Request {
    /// Special tokens that the text may contain.
    pub allowed: Selection,
    /// Names that cause an error.
    pub disallowed: Disallowed,
}

/// Names that must not occur in a text.
#[derive(Debug, Clone)]
pub enum Disallowed {
    /// No names: the text is not searched.
    None,
    /// Every special token that is not allowed.
    AllOthers,
    /// These names, whether or not they are special tokens or allowed.
    Names(Arc<Names>),
    /// The empty name, which every text contains.
    Everything,
}

impl Request {
    /// No special tokens, and no search for them.
    pub const ORDINARY: Request =
        Request { allowed: Selection::None, disallowed: Disallowed::None };

    /// Allows the special tokens in `allowed`; other names are ordinary text.
    pub fn allowing(allowed: Selection) -> Self {
        Self { allowed, disallowed: Disallowed::None }
    }

    /// Returns true if no special token is allowed.
    pub fn is_ordinary(&self) -> bool {
        self.allowed == Selection::None
    }

    /// Returns the length in bytes of the longest name that may be disallowed.
    pub(crate) fn longest_disallowed(&self, special: &SpecialTokens) -> usize {
        match &self.disallowed {
            Disallowed::Names(names) => names.longest(),
            _ => special.all().longest(),
        }
    }

    /// Fails with [`Error::DisallowedSpecial`], which names the first disallowed name in `text`.
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
