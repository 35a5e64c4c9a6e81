//! Early ends: truncation on the right reads little more of a text than it keeps.

use crate::Request;
use crate::request::Disallowed;
use crate::special_tokens::Selection;

use crate::components::encoding::Encoding;
use crate::components::spec::{Direction, TruncationStrategy};
use crate::error::Result;
use crate::pipeline::assembly::{Input, Pipeline};
use crate::pipeline::stable::beginning;

/// A truncation that can end the walk over a text early.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EarlyEnd {
    /// Number of tokens to keep, without tokens added by the post-processor.
    max_length: usize,
    pub(crate) strategy: TruncationStrategy,
}

impl EarlyEnd {
    /// Returns the number of tokens at which a sequence is known to be too long, if the other
    /// sequence has `others` tokens.
    pub(crate) fn tokens_to_exceed(self, others: usize) -> usize {
        self.max_length.saturating_sub(others).saturating_add(1)
    }

    /// Whether the result depends on which of two overlong sequences is longer: an odd number of
    /// tokens cannot be shared equally.
    pub(crate) fn depends_on_lengths(self, sequences: &[Encoding]) -> bool {
        self.strategy == TruncationStrategy::LongestFirst
            && self.max_length % 2 == 1
            && sequences.iter().all(|sequence| sequence.len() > self.max_length)
    }
}

impl Pipeline {
    /// Returns the truncation, if it keeps the starts of texts and nothing else depends on the
    /// rest.
    pub(crate) fn early_end(&self, input: Input<'_>, add_special_tokens: bool) -> Option<EarlyEnd> {
        let truncation = self.truncation()?;
        // Encoding may fail for the rest of a text.
        if self.model().may_fail() {
            return None;
        }
        if truncation.direction != Direction::Right
            || !matches!(self.request().disallowed, Disallowed::None)
        {
            return None;
        }
        let added = if add_special_tokens { self.added_tokens(input.second.is_some()) } else { 0 };
        let max_length = truncation.max_length.checked_sub(added)?;
        Some(EarlyEnd { max_length, strategy: truncation.strategy })
    }

    /// Finds a prefix of a text with at least `most` tokens, which are also the first tokens of the
    /// text. Writes their ids to `ids`. Returns `None` if this would not save half of the text.
    pub(crate) fn beginning<'a>(
        &self,
        text: &'a str,
        most: usize,
        ids: &mut Vec<u32>,
    ) -> Result<Option<&'a str>> {
        if !self.is_fast() {
            return Ok(None);
        }
        let allowed = match self.encodes_special_tokens() {
            true if self.direct().is_none() => Selection::None,
            _ => self.request().allowed.clone(),
        };
        beginning(self, text, most, &Request::allowing(allowed), ids)
    }
}
