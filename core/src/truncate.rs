//! How much of a text fits into a number of tokens.
//!
//! Cutting a text changes its tokens near the cut, and shorter is not always fewer: of "ab" + "c"
//! the first two characters may be one token and the first alone another, but a letter cut off a
//! word may as well turn one token into three. So candidates are encoded and counted. What makes
//! that cheap is that a cut changes only the pieces next to it: candidates are counted from (or
//! up to) a border between pieces that is far enough away.

use std::ops::{ControlFlow, Range};

use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::normalize::Normalization;
use crate::sink::{Count, Pieces, Sink};
use crate::special_tokens::Selection;

/// Borders between pieces that a cut may disturb: the pattern looks a few characters ahead, and
/// white space is cut by what follows it.
const DISTURBED: usize = 4;

/// Up to this many candidates are all tried. Among more, which only very long pieces have, the
/// border is searched by halving, which takes "longer" for "more tokens".
const TRY_ALL: usize = 256;

/// How many candidates beyond the one found by halving are tried.
const TRY_BEYOND: usize = 32;

/// Boundaries texts to size for one encoding.
#[derive(Debug, Clone, Copy)]
pub struct Truncator<'a> {
    /// What the tokens are of.
    pub encoding: &'a Encoding,
    /// What text is brought into before it is encoded.
    pub normalization: Normalization,
    /// The special tokens that text may stand for.
    pub allowed: &'a Selection,
}

/// A place in the text between two pieces.
#[derive(Debug, Clone, Copy)]
struct Border {
    position: usize,
    /// Tokens before it.
    before: usize,
}

/// What a walk over (the beginning of) a text found.
struct Walk {
    borders: Vec<Border>,
    /// Tokens in all, as far as the walk went.
    total: usize,
    /// The special tokens found.
    special: Vec<Range<usize>>,
}

/// Keeps the pieces of a walk, and ends it once there are more than `limit` ids.
struct Limited {
    pieces: Pieces,
    limit: usize,
}

impl Sink for Limited {
    const WANTS_PIECES: bool = true;

    fn ids(&mut self) -> &mut Vec<u32> {
        self.pieces.ids()
    }

    fn batch_done(&mut self) -> ControlFlow<()> {
        if self.pieces.ids.len() > self.limit {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn piece(&mut self, start: usize) {
        self.pieces.piece(start);
    }
}

impl Truncator<'_> {
    /// The length in bytes of the longest prefix of `text`, cut between characters, that has at
    /// most `max_tokens` tokens when it is encoded on its own.
    pub fn prefix(&self, text: &str, max_tokens: usize) -> Result<usize> {
        self.prefix_of(text, max_tokens, &self.walk(text, max_tokens)?)
    }

    /// Boundaries `text` into stretches of at most `max_tokens` tokens each, never inside a special
    /// token. Each begins with up to `overlap` tokens' worth of the end of the one before.
    /// `overlap` must be smaller than `max_tokens`.
    /// A character that alone has more than `max_tokens` tokens is an error.
    pub fn chunks(
        &self,
        text: &str,
        max_tokens: usize,
        overlap: usize,
    ) -> Result<Vec<Range<usize>>> {
        let mut chunks: Vec<Range<usize>> = Vec::new();
        // The special tokens of the last chunk and somewhat beyond.
        let mut special: Vec<Range<usize>> = Vec::new();
        let mut done = 0;
        while done < text.len() {
            let mut start = match chunks.last() {
                Some(last) if overlap > 0 => {
                    last.start + self.suffix(&text[last.clone()], overlap)?
                }
                _ => done,
            };
            let end = loop {
                if let Some(inside) = around(&special, start) {
                    start = inside.end;
                }
                let (length, found) = self.chunk(&text[start..], max_tokens)?;
                if length > done - start {
                    special = found.iter().map(|at| start + at.start..start + at.end).collect();
                    break start + length;
                }
                if start == done {
                    let character = text[done..ceil(text, done + 1)].to_owned();
                    return Err(Error::ChunkTooSmall { character, max_tokens });
                }
                // So much overlap leaves no room for anything new: take a character less.
                start = ceil(text, start + 1);
            };
            chunks.push(start..end);
            done = end;
        }
        Ok(chunks)
    }

    /// The length in bytes of the next chunk of `text`, and the special tokens around.
    fn chunk(&self, text: &str, max_tokens: usize) -> Result<(usize, Vec<Range<usize>>)> {
        // Looking at a window keeps normalization, which knows no limit, from going over all of
        // the rest for each chunk.
        let mut size = max_tokens.saturating_mul(8).saturating_add(1024);
        loop {
            let window = &text[..floor(text, size)];
            let walk = self.walk(window, max_tokens)?;
            if walk.total <= max_tokens && window.len() < text.len() {
                size = size.saturating_mul(2);
                continue;
            }
            let end = self.prefix_of(window, max_tokens, &walk)?;
            let end = around(&walk.special, end).map_or(end, |span| span.start);
            return Ok((end, walk.special));
        }
    }

    fn walk(&self, text: &str, limit: usize) -> Result<Walk> {
        let (normal, alignment) = self.normalization.align(text);
        let mut sink = Limited { pieces: Pieces::default(), limit };
        self.encoding.encode(&normal, self.allowed, &mut sink)?;
        let Pieces { ids, starts } = sink.pieces;
        let mut borders = Vec::with_capacity(starts.len() + 2);
        borders.push(Border { position: 0, before: 0 });
        let mut special = Vec::new();
        for &(start, before) in &starts {
            borders.extend(alignment.boundary(start).map(|position| Border { position, before }));
            let id = ids.get(before);
            if id.is_some_and(|&id| self.encoding.vocabulary().rank_of_id(id).is_none())
                && let Some((found, _)) =
                    self.encoding.special_tokens().find_allowed(&normal, start, self.allowed)
            {
                special.push(alignment.original(found.start..found.end));
            }
        }
        if ids.len() <= limit {
            borders.push(Border { position: text.len(), before: ids.len() });
        }
        Ok(Walk { borders, total: ids.len(), special })
    }

    fn prefix_of(&self, text: &str, max_tokens: usize, walk: &Walk) -> Result<usize> {
        if walk.total <= max_tokens {
            return Ok(text.len());
        }
        let borders = &walk.borders;
        let last = borders.partition_point(|border| border.before <= max_tokens) - 1;
        let anchor = borders[last.saturating_sub(DISTURBED)];
        let high = borders.get(last + DISTURBED).map_or(text.len(), |border| border.position);
        let fits = |end: usize| {
            let room = max_tokens - anchor.before;
            Ok(self.count(&text[anchor.position..end], room)? <= room
                && self.count(&text[..end], max_tokens)? <= max_tokens)
        };
        let candidates = positions(text, anchor.position..high);
        if let Some(end) = farthest(candidates.len(), |index| fits(candidates[index]))? {
            return Ok(candidates[end]);
        }
        // Nothing near: the pattern looks further than any of the published ones do.
        for border in borders[..last].iter().rev() {
            if self.count(&text[..border.position], max_tokens)? <= max_tokens {
                return Ok(border.position);
            }
        }
        Ok(0)
    }

    /// Where the longest suffix of `text` starts, cut between characters, that has at most
    /// `max_tokens` tokens when it is encoded on its own.
    pub fn suffix(&self, text: &str, max_tokens: usize) -> Result<usize> {
        let walk = self.walk(text, usize::MAX)?;
        let borders = &walk.borders;
        let first = borders.partition_point(|border| walk.total - border.before > max_tokens);
        let first = first.min(borders.len() - 1);
        let anchor = borders[(first + DISTURBED).min(borders.len() - 1)];
        let low = borders[first.saturating_sub(DISTURBED)].position;
        let fits = |start: usize| {
            let room = max_tokens - (walk.total - anchor.before).min(max_tokens);
            Ok(self.count(&text[start..anchor.position], room)? <= room
                && self.count(&text[start..], max_tokens)? <= max_tokens)
        };
        let candidates = positions(text, low..anchor.position);
        let count = candidates.len();
        let found = farthest(count, |index| fits(candidates[count - 1 - index]))?;
        if let Some(index) = found {
            return Ok(candidates[count - 1 - index]);
        }
        for border in &borders[first..] {
            if self.count(&text[border.position..], max_tokens)? <= max_tokens {
                return Ok(border.position);
            }
        }
        Ok(text.len())
    }

    /// The tokens of `text`; some number above `limit` if there are more than that.
    fn count(&self, text: &str, limit: usize) -> Result<usize> {
        let mut count = Count::till(limit);
        self.encoding.encode(&self.normalization.apply(text), self.allowed, &mut count)?;
        Ok(count.total)
    }
}

/// The span that `position` is inside of.
fn around(spans: &[Range<usize>], position: usize) -> Option<&Range<usize>> {
    spans.iter().find(|span| span.start < position && position < span.end)
}

/// The largest index below `count` for which `fits` holds.
fn farthest(count: usize, mut fits: impl FnMut(usize) -> Result<bool>) -> Result<Option<usize>> {
    let mut range = 0..count;
    if count > TRY_ALL {
        let (mut low, mut high) = (0, count);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle)? { low = middle } else { high = middle }
        }
        range = low.saturating_sub(TRY_BEYOND)..(high + TRY_BEYOND).min(count);
    }
    for index in range.rev() {
        if fits(index)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// The places between characters in a range of the text, both ends included.
fn positions(text: &str, range: Range<usize>) -> Vec<usize> {
    let starts = text[range.clone()].char_indices().map(|(offset, _)| range.start + offset);
    starts.chain(std::iter::once(range.end)).collect()
}

fn floor(text: &str, position: usize) -> usize {
    let mut position = position.min(text.len());
    while !text.is_char_boundary(position) {
        position -= 1;
    }
    position
}

fn ceil(text: &str, position: usize) -> usize {
    let mut position = position.min(text.len());
    while !text.is_char_boundary(position) {
        position += 1;
    }
    position
}
