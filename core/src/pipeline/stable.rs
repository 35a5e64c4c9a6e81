//! Finds prefixes of texts whose tokens are the same for every continuation.

use std::borrow::Cow;

use crate::char_boundary::floor;
use crate::error::Result;
use crate::fixed::Fixed;
use crate::normalize::{Alignment, Normalization, is_boundary_before};
use crate::pipeline::assembly::Pipeline;
use crate::request::Request;
use crate::special_tokens::Selection;

/// Size in bytes of the first prefix to try, and of the margin for a few more tokens.
const LEAST: usize = 1024;

/// Finds a prefix of a text with at least `most` tokens, which are also the first tokens of the
/// text. Writes their ids to `ids`. Returns `None` if this would not save half of the text.
pub(crate) fn beginning<'a>(
    pipeline: &Pipeline,
    text: &'a str,
    most: usize,
    request: &Request,
    ids: &mut Vec<u32>,
) -> Result<Option<&'a str>> {
    // The first try shows the number of bytes per token.
    let mut size = (most / 2).max(LEAST);
    while size <= text.len() / 2 {
        let window = &text[..floor(text, size)];
        let length = Stable::of(pipeline, window, &request.allowed)?.original;
        // Without a position at which to cut, a larger window does not help.
        if length < window.len() / 2 {
            break;
        }
        ids.clear();
        pipeline.encode_text(&text[..length], request, ids)?;
        if ids.len() >= most {
            return Ok(Some(&text[..length]));
        }
        let needed = length as f64 / ids.len().max(1) as f64 * most as f64 * 1.1;
        size = (needed as usize).saturating_add(LEAST).max(size + size / 2);
    }
    Ok(None)
}

/// The prefix of a text that is the same for every continuation.
pub(crate) struct Stable<'a> {
    /// The normalized text, and the end of the prefix in it.
    pub(crate) normal: Cow<'a, str>,
    pub(crate) end: usize,
    /// Special tokens up to the end.
    pub(crate) fixed: Vec<Fixed>,
    /// End of the prefix before normalization.
    pub(crate) original: usize,
}

impl<'a> Stable<'a> {
    pub(crate) fn of(pipeline: &Pipeline, text: &'a str, allowed: &Selection) -> Result<Self> {
        let normalization = pipeline.normalization();
        let settled = settled(normalization, text);
        let (normal, alignment) = normalization.align(&text[..settled])?;
        let mut fixed = Vec::new();
        let open = pipeline.find_settled(&normal, allowed, &mut fixed)?;
        let after_special = fixed.last().map_or(0, |last| last.end);
        let cuts = [last_cut(pipeline, &normal, after_special, open), Some(after_special)];
        let places = cuts.into_iter().flatten();
        let found = places.filter_map(|cut| Some((cut, original(&alignment, cut)?))).next();
        let (end, original) = found.unwrap_or_default();
        // The ends are unsorted: a token with the spaces after it may end after the next token.
        let kept = fixed.iter().rposition(|fixed| fixed.end <= end).map_or(0, |last| last + 1);
        fixed.truncate(kept);
        Ok(Self { normal, end, fixed, original })
    }
}

/// Returns how many bytes are final once normalized: later text can change only the last starter.
pub(crate) fn settled(normalization: Normalization, text: &str) -> usize {
    match normalization {
        Normalization::None => text.len(),
        _ => last_boundary(text),
    }
}

/// Returns the last position before which a text can be cut so that both parts normalize
/// independently, for any text that follows.
pub(crate) fn last_boundary(text: &str) -> usize {
    let start = text.char_indices().rev().find(|&(_, c)| is_boundary_before(c));
    start.map_or(0, |(at, _)| at)
}

fn original(alignment: &Alignment, position: usize) -> Option<usize> {
    if position == 0 { Some(0) } else { alignment.boundary(position) }
}

/// Returns the last position after `start` at which `text` can be cut, for any text after byte
/// `open`.
pub(crate) fn last_cut(
    pipeline: &Pipeline,
    text: &str,
    start: usize,
    open: usize,
) -> Option<usize> {
    let run = &text[start..open.max(start)];
    let mut back = 64;
    loop {
        let from = floor(run, run.len().saturating_sub(back));
        let mut found = None;
        let mut near = from.max(1);
        while let Some(cut) = pipeline.beginning_cut(run, near) {
            found = Some(start + cut);
            near = cut + 1;
        }
        if found.is_some() || from == 0 {
            return found;
        }
        back *= 8;
    }
}
