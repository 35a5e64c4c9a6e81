//! Matches patterns with Oniguruma, the regex engine of `tokenizers`. Nearly all patterns mean the
//! same in other engines, but only the same engine makes sure of it.

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;
use onig::{MatchParam, Region, SearchOptions};

use crate::error::{Error, Result};

/// The code of Oniguruma's error for an allocation that failed.
const NO_MEMORY: i32 = -5;

/// A compiled pattern.
#[derive(Clone)]
pub(crate) enum Regex {
    /// A text to search for, not empty.
    Text(Arc<str>),
    /// At least this many spaces, U+0020, in a row.
    Blanks(usize),
    /// White space in a row.
    Spaces(Arc<onig::Regex>),
    Pattern(Arc<onig::Regex>),
}

impl std::fmt::Debug for Regex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Regex")
    }
}

impl Regex {
    pub(crate) fn new(pattern: &str) -> Result<Self> {
        match pattern {
            " +" | " {1,}" => return Ok(Self::Blanks(1)),
            "  +" | " {2,}" => return Ok(Self::Blanks(2)),
            _ => {}
        }
        let regex = onig::Regex::new(pattern).map(Arc::new).map_err(|error| {
            Error::Invalid(format!("the pattern {pattern:?} is malformed: {}", error.description()))
        })?;
        Ok(if pattern == r"\s+" { Self::Spaces(regex) } else { Self::Pattern(regex) })
    }

    /// Calls `found` with each match in `text`, in order; stops at the first error. Skips an empty
    /// match that directly follows another match.
    pub(crate) fn each(
        &self,
        text: &str,
        mut found: impl FnMut(Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let regex = match self {
            Self::Pattern(regex) | Self::Spaces(regex) => regex,
            Self::Blanks(least) => {
                let mut ends = 0;
                return memchr::memchr_iter(b' ', text.as_bytes()).try_for_each(|start| {
                    if start < ends {
                        return Ok(());
                    }
                    let rest = text[start..].bytes();
                    ends = start + rest.take_while(|&byte| byte == b' ').count();
                    if ends - start < *least { Ok(()) } else { found(start..ends) }
                });
            }
            Self::Text(wanted) => {
                let mut places = memmem::find_iter(text.as_bytes(), wanted.as_bytes());
                return places.try_for_each(|at| found(at..at + wanted.len()));
            }
        };
        let mut region = Region::new();
        let (mut from, mut last_end) = (0, None);
        while from <= text.len() {
            region.clear();
            let at = regex
                .search_with_param(
                    text,
                    from,
                    text.len(),
                    SearchOptions::SEARCH_OPTION_NONE,
                    Some(&mut region),
                    MatchParam::default(),
                )
                .map_err(|error| match error.code() {
                    NO_MEMORY => Error::OutOfMemory { bytes: text.len() },
                    _ => Error::Invalid(format!(
                        "matching the pattern failed after byte {from} of the text: {}",
                        error.description()
                    )),
                })?;
            let Some((start, end)) = at.and_then(|_| region.pos(0)) else { return Ok(()) };
            if start == end && last_end == Some(end) {
                from += text[from..].chars().next().map_or(1, char::len_utf8);
                continue;
            }
            (from, last_end) = (end, Some(end));
            found(start..end)?;
        }
        Ok(())
    }
}
