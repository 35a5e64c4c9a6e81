//! Oniguruma, the engine whose syntax the patterns of tokenizer files have. Nearly all of them
//! mean the same to other engines; only with the same engine it is certain.

use std::ops::Range;
use std::sync::Arc;

use onig::{MatchParam, Region, SearchOptions};

use crate::error::{Error, Result};

/// A compiled pattern.
#[derive(Clone)]
pub(crate) struct Regex(Arc<onig::Regex>);

impl std::fmt::Debug for Regex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Regex")
    }
}

impl Regex {
    pub(crate) fn new(pattern: &str) -> Result<Self> {
        onig::Regex::new(pattern).map(|regex| Self(Arc::new(regex))).map_err(|error| {
            Error::Invalid(format!("the pattern {pattern:?} is malformed: {}", error.description()))
        })
    }

    /// Calls `found` with every match in `text`, in order. An empty match right behind the match
    /// before it does not count.
    pub(crate) fn each(&self, text: &str, mut found: impl FnMut(Range<usize>)) -> Result<()> {
        let mut region = Region::new();
        let (mut from, mut last_end) = (0, None);
        while from <= text.len() {
            region.clear();
            let at = self
                .0
                .search_with_param(
                    text,
                    from,
                    text.len(),
                    SearchOptions::SEARCH_OPTION_NONE,
                    Some(&mut region),
                    MatchParam::default(),
                )
                .map_err(|error| {
                    Error::Invalid(format!(
                        "the pattern gave up on the text after byte {from}: {}",
                        error.description()
                    ))
                })?;
            let Some((start, end)) = at.and_then(|_| region.pos(0)) else { return Ok(()) };
            if start == end && last_end == Some(end) {
                from += text[from..].chars().next().map_or(1, char::len_utf8);
                continue;
            }
            (from, last_end) = (end, Some(end));
            found(start..end);
        }
        Ok(())
    }
}
