//! Finds positions in a text before and after which special tokens are found independently.

use crate::char_boundary::{ceil, floor};
use crate::error::Result;
use crate::normalize::{Normalization, is_boundary_before};
use crate::pipeline::assembly::Pipeline;

/// Maximum length of names that [`quiet_place`] avoids, and maximum number of positions it tries.
const LONGEST_NAME: usize = 1024;
const MOST_TRIES: usize = 64;

/// Returns the last tried position before byte `known` at which special tokens before and after are
/// found independently, for any text after `known`, and at which text is normalized independently:
/// the position touches no name, and no whitespace, which may belong to special tokens. Returns 0
/// if no such position is found. `is_free` tells whether the caller accepts a position.
pub fn quiet_place(
    pipeline: &Pipeline,
    text: &str,
    known: usize,
    is_free: impl Fn(usize) -> bool,
) -> Result<usize> {
    let names = pipeline.special_tokens()?.all();
    let longest = names.longest();
    if longest > LONGEST_NAME {
        return Ok(0);
    }
    let is_normalized = pipeline.normalization() != Normalization::None;
    let mut after = None;
    // A name may depend on the character after it, and the last U+FFFD may be half of a character.
    let last = floor(text, known.saturating_sub(longest.max(3) + 1));
    let places = text[..last].char_indices().rev().take(MOST_TRIES);
    for (at, character) in places {
        let place = at + character.len_utf8();
        let next = after.replace(character);
        let Some(next) = next.or_else(|| text[place..].chars().next()) else { continue };
        if character.is_whitespace() || next.is_whitespace() || !is_free(place) {
            continue;
        }
        if is_normalized && !is_boundary_before(next) {
            continue;
        }
        let low = floor(text, place.saturating_sub(longest));
        let high = ceil(text, (place + longest).min(text.len()));
        if !names.touches(&text[low..high], place - low) {
            return Ok(place);
        }
    }
    Ok(0)
}
