//! The regex path: any pattern that no family declares, and the oracle of the families.

use fancy_regex::Regex;

use super::Batch;
use crate::error::{Error, Result};

#[derive(Debug, Clone)]
pub(super) struct Pattern {
    regex: Regex,
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Result<Self> {
        let regex = Regex::new(pattern).map_err(|error| Error::Pattern {
            pattern: pattern.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self { regex })
    }

    /// Writes the matches from `*position` on into `batch`; text between matches is in no piece.
    pub(super) fn fill(
        &self,
        text: &str,
        position: &mut usize,
        batch: &mut Batch,
    ) -> Result<usize> {
        let mut count = 0;
        while count < batch.len() && *position < text.len() {
            let found = self.regex.find_from_pos(text, *position).map_err(|error| {
                Error::PatternLimit { position: *position, reason: error.to_string() }
            })?;
            let Some(found) = found else {
                *position = text.len();
                break;
            };
            if found.end() > found.start() {
                (batch[count].start, batch[count].end) = (found.start(), found.end());
                count += 1;
                *position = found.end();
            } else {
                let step = text[found.end()..].chars().next().map_or(1, char::len_utf8);
                *position = found.end() + step;
            }
        }
        Ok(count)
    }
}
