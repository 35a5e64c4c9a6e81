//! Finds special tokens in whole texts, and in the segments of prompts.

use std::ops::Range;

use crate::char_boundary::floor;
use crate::direct::Direct;
use crate::error::Result;
use crate::fixed::{Fixed, FixedIds};
use crate::normalize::{Normalization, is_boundary_before};
use crate::special_tokens::Selection;

impl Direct {
    /// Returns the special tokens in a text: the name and the byte range of each.
    pub(crate) fn find_special(&self, text: &str) -> Result<Vec<(&str, Range<usize>)>> {
        let (normal, alignment) = self.normalization().align(text)?;
        let all = self.special_tokens().all();
        let mut spans = Vec::new();
        let mut from = 0;
        while let Some(found) = all.find(&normal, from) {
            let name = all.names()[found.name].as_str();
            spans.push((name, alignment.original(found.start..found.end)));
            from = found.end;
        }
        Ok(spans)
    }

    /// Searches a segment before normalization, so that normalization cannot form a name. Names
    /// that normalization would change inside this segment are ordinary text, as in
    /// [`Direct::encode`].
    pub(crate) fn find_in_segment(
        &self,
        text: &str,
        allowed: &Selection,
    ) -> Result<Vec<(Range<usize>, u32)>> {
        let mut names = Vec::new();
        let mut from = 0;
        while let Some((found, id)) = self.special_tokens().find_allowed(text, from, allowed) {
            let name = found.start..found.end;
            from = found.end;
            if self.normalization() != Normalization::None
                && !survives(self.normalization(), text, &name)?
            {
                from = found.start + 1;
                continue;
            }
            names.push((name, id));
        }
        Ok(names)
    }

    /// Finds the special tokens of a normalized text. `earlier` has the tokens of a text with the
    /// same first `known` bytes. Returns how many leading tokens of `earlier` are valid, and all
    /// tokens after them.
    pub(crate) fn find_in_text(
        &self,
        text: &str,
        allowed: &Selection,
        known: usize,
        earlier: &[Fixed],
    ) -> Result<(usize, Vec<Fixed>)> {
        let special = self.special_tokens();
        // A name that begins this early ends in the known bytes, and is no part of a longer name.
        let decided = known.saturating_sub(special.all().longest());
        let kept = earlier.partition_point(|fixed| fixed.start < decided);
        let last = kept.checked_sub(1).map_or(0, |last| earlier[last].end);
        let mut from = last.max(floor(text, decided));
        let mut found = Vec::new();
        while let Some((name, id)) = special.find_allowed(text, from, allowed) {
            let ids = FixedIds::Special(id);
            found.push(Fixed { start: name.start, end: name.end, ids });
            from = name.end;
        }
        Ok((kept, found))
    }

    /// Appends the special tokens of a normalized text that are the same for every continuation.
    /// Returns the first byte from which more text may form another special token.
    pub(crate) fn find_settled(
        &self,
        text: &str,
        allowed: &Selection,
        fixed: &mut Vec<Fixed>,
    ) -> Result<usize> {
        // Considers all names, because the caller may allow other names before appending text.
        let open = self.special_tokens().all().open_from(text);
        *fixed = self.find_in_text(text, allowed, 0, &[])?.1;
        fixed.retain(|fixed| fixed.start < open);
        Ok(open)
    }
}

/// Returns true if normalizing `text` leaves the name at `name` unchanged.
fn survives(normalization: Normalization, text: &str, name: &Range<usize>) -> Result<bool> {
    // Characters below U+0300 do not combine with a neighbor.
    let next = text[name.end..].chars().next();
    if text[name.clone()].is_ascii() && next.is_none_or(|character| character < '\u{300}') {
        return Ok(true);
    }
    let starts = |&(_, character): &(usize, char)| is_boundary_before(character);
    let before = text[..name.start].char_indices().rev().find(starts);
    let before = before.map_or(0, |(offset, _)| offset);
    let after = text[name.end..].char_indices().find(starts);
    let after = after.map_or(text.len(), |(offset, _)| name.end + offset);
    let mut apart = normalization.apply(&text[before..name.start])?.into_owned();
    apart.push_str(&text[name.clone()]);
    apart.push_str(&normalization.apply(&text[name.end..after])?);
    Ok(normalization.apply(&text[before..after])? == apart)
}
