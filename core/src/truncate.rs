//! How much of a text fits into a number of tokens.
//!
//! Cutting a text changes its tokens near the cut, and shorter is not always fewer: of "ab" + "c"
//! the first two characters may be one token and the first alone another, but a letter cut off a
//! word may as well turn one token into three. So candidates are encoded and counted. What makes
//! that cheap is that a cut changes only the pieces next to it: candidates are counted from (or
//! up to) a border between pieces that is far enough away.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::memory::{collected, reserve};
use crate::request::{Disallowed, Request};
use crate::sink::{Count, Sink};
use crate::special_tokens::Selection;

/// Borders between pieces that a cut may change: the pattern looks a few characters ahead, and
/// white space is cut by what follows it.
const CHANGED: usize = 4;

/// Tokens of a long piece that a cut may change, before the cut and behind it.
const TOKENS_BEFORE: usize = 8;
const TOKENS_BEHIND: usize = 3;

/// Pieces of more bytes than this are long: of those the tokens tell where to cut.
const LONG_PIECE: usize = 32;

/// Up to this many characters between two safe cuts are all tried as the beginning of a suffix.
const STRETCH: usize = 64;

/// Up to this many candidates are all tried. Among more, the border is searched by halving, which
/// takes "longer" for "more tokens".
const TRY_ALL: usize = 256;

/// How many candidates beyond the one found by halving are tried.
const TRY_BEYOND: usize = 32;

impl Encoding {
    /// Looks through all of the text for disallowed names, if there are any.
    fn check_request(&self, text: &str, request: &Request) -> Result<()> {
        match request.disallowed {
            Disallowed::None => Ok(()),
            _ => self.prepare(text, request).map(drop),
        }
    }

    /// The length in bytes of the longest prefix of `text`, cut between characters, that has at
    /// most `max_tokens` tokens when it is encoded on its own.
    pub fn truncate(&self, text: &str, max_tokens: usize, request: &Request) -> Result<usize> {
        self.check_request(text, request)?;
        Truncator { encoding: self, allowed: &request.allowed }.prefix(text, max_tokens)
    }

    /// Where the longest suffix of `text` starts, cut between characters, that has at most
    /// `max_tokens` tokens when it is encoded on its own. Where more than 64 characters have no safe
    /// cut among them (a ruler, a long word), one more would be too many, but a still longer suffix may
    /// fit. For a pattern that is no published family all of the text is read, since it is not known
    /// where its pieces begin.
    pub fn truncate_left(&self, text: &str, max_tokens: usize, request: &Request) -> Result<usize> {
        self.check_request(text, request)?;
        Truncator { encoding: self, allowed: &request.allowed }.suffix(text, max_tokens)
    }

    /// Cuts `text` into chunks of at most `max_tokens` tokens each, never inside an allowed special
    /// token. Each begins with up to `overlap` tokens' worth of the end of the one before.
    /// `overlap` must be smaller than `max_tokens`.
    ///
    /// Fails with [`Error::ChunkTooSmall`] if a character alone has more than `max_tokens` tokens.
    pub fn chunk(
        &self,
        text: &str,
        max_tokens: usize,
        overlap: usize,
        request: &Request,
    ) -> Result<Vec<Range<usize>>> {
        self.check_request(text, request)?;
        Truncator { encoding: self, allowed: &request.allowed }.chunks(text, max_tokens, overlap)
    }
}

/// Cuts texts to size for one encoding.
#[derive(Debug, Clone, Copy)]
struct Truncator<'a> {
    encoding: &'a Encoding,
    /// The special tokens that text may stand for.
    allowed: &'a Selection,
}

/// A place in the text between two tokens.
#[derive(Debug, Clone, Copy)]
struct Border {
    position: usize,
    /// Tokens before it.
    before: usize,
}

/// What a walk over (the beginning of) a text found.
struct Walk {
    /// The borders of pieces around the place where the limit is passed: the last ones with at
    /// most `limit` tokens before them, and the first ones with more.
    borders: Vec<Border>,
    /// Tokens in all, as far as the walk went.
    total: usize,
    /// The special tokens found.
    special: Vec<Range<usize>>,
}

/// Where the last safe cut before a place is.
enum SafeCut {
    At(usize),
    /// Not among the characters that are looked at.
    Far,
    /// Not between the beginning of the text and the place, which are near.
    BeforeText,
}

/// Counts, and keeps the borders around a limit.
struct BorderSink {
    ids: Vec<u32>,
    counted: usize,
    limit: usize,
    borders: VecDeque<Border>,
    special: Vec<Range<usize>>,
}

impl BorderSink {
    /// How many borders have more tokens before them than the limit.
    fn beyond(&self) -> usize {
        self.borders.iter().rev().take_while(|border| border.before > self.limit).count()
    }
}

impl Sink for BorderSink {
    const WANTS_PIECES: bool = true;

    fn ids(&mut self) -> &mut Vec<u32> {
        &mut self.ids
    }

    fn reserve(&mut self, pieces: usize, ids: usize) -> Result<()> {
        // Any of them may be a special token.
        reserve(&mut self.special, pieces)?;
        reserve(&mut self.ids, ids)
    }

    fn batch_done(&mut self) -> ControlFlow<()> {
        self.counted += self.ids.len();
        self.ids.clear();
        if self.beyond() > CHANGED { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn piece(&mut self, bytes: Range<usize>) {
        let border = Border { position: bytes.start, before: self.counted + self.ids.len() };
        if border.before <= self.limit {
            if self.borders.len() > CHANGED + 1 {
                self.borders.pop_front();
            }
            self.borders.push_back(border);
        } else if self.borders.len() < 3 * CHANGED {
            self.borders.push_back(border);
        }
    }

    fn special(&mut self, bytes: Range<usize>) {
        self.special.push(bytes.clone());
        self.piece(bytes);
    }
}

impl Truncator<'_> {
    fn prefix(&self, text: &str, max_tokens: usize) -> Result<usize> {
        let (window, walk) = self.walk_window(text, max_tokens)?;
        self.prefix_of(window, max_tokens, &walk)
    }

    /// Walks as much of the beginning of `text` as it takes to pass the limit.
    fn walk_window<'a>(&self, text: &'a str, limit: usize) -> Result<(&'a str, Walk)> {
        let mut size = limit.saturating_mul(6).saturating_add(64);
        loop {
            let window = &text[..floor(text, size)];
            let walk = self.walk(window, limit)?;
            let beyond = walk.borders.iter().filter(|border| border.before > limit).count();
            if window.len() == text.len()
                || beyond > CHANGED
                || walk.total > limit.saturating_add(2 * TOKENS_BEFORE)
            {
                return Ok((window, walk));
            }
            size = size.saturating_mul(2);
        }
    }

    fn chunks(&self, text: &str, max_tokens: usize, overlap: usize) -> Result<Vec<Range<usize>>> {
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
            let mut step = 1;
            let end = loop {
                if let Some(inside) = around(&special, start) {
                    start = inside.end;
                }
                let (length, found) = self.chunk(&text[start..], max_tokens)?;
                if length > done - start {
                    special = found;
                    special.iter_mut().for_each(|at| *at = start + at.start..start + at.end);
                    break start + length;
                }
                if start == done {
                    let character = text[done..ceil(text, done + 1)].to_owned();
                    return Err(Error::ChunkTooSmall { character, max_tokens });
                }
                // So much overlap leaves no room for anything new: take less of it.
                start = ceil(text, start + step).min(done);
                step *= 4;
            };
            reserve(&mut chunks, 1)?;
            chunks.push(start..end);
            done = end;
        }
        Ok(chunks)
    }

    /// The length in bytes of the next chunk of `text`, and the special tokens around.
    fn chunk(&self, text: &str, max_tokens: usize) -> Result<(usize, Vec<Range<usize>>)> {
        let (window, walk) = self.walk_window(text, max_tokens)?;
        let end = self.prefix_of(window, max_tokens, &walk)?;
        let end = around(&walk.special, end).map_or(end, |span| span.start);
        Ok((end, walk.special))
    }

    fn walk(&self, text: &str, limit: usize) -> Result<Walk> {
        let (normal, alignment) = self.encoding.normalization().align(text)?;
        let mut sink = BorderSink {
            ids: Vec::new(),
            counted: 0,
            limit,
            borders: VecDeque::new(),
            special: Vec::new(),
        };
        self.encoding.encode_normal(&normal, self.allowed, &mut sink)?;
        let mut borders = vec![Border { position: 0, before: 0 }];
        for border in sink.borders {
            if let Some(position) = alignment.boundary(border.position)
                && position > 0
            {
                borders.push(Border { position, ..border });
            }
        }
        let mut special = sink.special;
        special.iter_mut().for_each(|span| *span = alignment.original(span.clone()));
        Ok(Walk { borders, total: sink.counted, special })
    }

    fn prefix_of(&self, text: &str, max_tokens: usize, walk: &Walk) -> Result<usize> {
        if walk.total <= max_tokens {
            return Ok(text.len());
        }
        let borders = &walk.borders;
        let last = borders.partition_point(|border| border.before <= max_tokens) - 1;
        let mut anchor = borders[last.saturating_sub(CHANGED)];
        let next = borders.get(last + 1).map_or(text.len(), |border| border.position);
        let mut high = borders.get(last + CHANGED).map_or(text.len(), |border| border.position);
        let passed = borders[last].position..next;
        if self.encoding.splitter().is_family() && !text[passed.clone()].trim().is_empty() {
            // Only white space is cut by what follows it.
            high = next;
        }
        if let Some(tokens) = self.tokens_of_long_piece(text, passed, borders[last].before)? {
            let passed = tokens.partition_point(|border| border.before <= max_tokens);
            if let Some(before) = passed.checked_sub(TOKENS_BEFORE) {
                anchor = tokens[before];
            }
            if let Some(behind) = tokens.get(passed + TOKENS_BEHIND) {
                high = behind.position;
            }
        }
        let fits = |end: usize| {
            let room = max_tokens - anchor.before;
            Ok(self.count(&text[anchor.position..end], room)? <= room
                && self.count(&text[..end], max_tokens)? <= max_tokens)
        };
        let candidates = positions(text, anchor.position..high)?;
        if let Some(end) = farthest(candidates.len(), |index| fits(candidates[index]))? {
            return Ok(candidates[end]);
        }
        // Nothing near: the pattern looks further than any of the published ones do.
        let fits = |end: usize| Ok(self.count(&text[..end], max_tokens)? <= max_tokens);
        let (mut fewer, mut too_long) = (max_tokens, anchor.position);
        loop {
            fewer /= 2;
            let borders = self.walk(text, fewer)?.borders;
            let last = borders.iter().rev().find(|border| border.before <= fewer);
            let end = last.map_or(0, |border| border.position);
            if fewer == 0 || fits(end)? {
                let candidates = positions(text, end..too_long.max(end))?;
                return Ok(candidates[bisect(candidates.len(), |index| fits(candidates[index]))?]);
            }
            too_long = end;
        }
    }

    /// The borders between the tokens of a long piece, those between characters; `before` tokens
    /// are before the piece. `None` for a short one.
    fn tokens_of_long_piece(
        &self,
        text: &str,
        piece: Range<usize>,
        before: usize,
    ) -> Result<Option<Vec<Border>>> {
        if piece.len() <= LONG_PIECE {
            return Ok(None);
        }
        let (normal, alignment) = self.encoding.normalization().align(&text[piece.clone()])?;
        let mut ids = Vec::new();
        self.encoding.encode_piece(normal.as_bytes(), &mut ids)?;
        let mut borders = Vec::new();
        reserve(&mut borders, ids.len() + 1)?;
        let mut position = 0;
        for (index, &id) in ids.iter().enumerate() {
            if normal.is_char_boundary(position)
                && let Some(position) = alignment.boundary(position)
            {
                let position = piece.start + position;
                borders.push(Border { position, before: before + index });
            }
            position += self.encoding.token_bytes(id).map_or(0, <[u8]>::len);
        }
        borders.push(Border { position: piece.end, before: before + ids.len() });
        Ok((position == normal.len()).then_some(borders))
    }

    fn suffix(&self, text: &str, max_tokens: usize) -> Result<usize> {
        let mut size = max_tokens.saturating_mul(6).saturating_add(64);
        if !self.encoding.splitter().is_family() {
            size = text.len();
        }
        loop {
            let from = ceil(text, text.len().saturating_sub(size));
            let window = &text[from..];
            let total = self.count(window, usize::MAX)?;
            // What the window begins with may be cut in another way than in the text.
            let enough = max_tokens.saturating_add(2 * TOKENS_BEFORE + CHANGED);
            if (from == 0 || total > enough)
                && let Some(start) = self.suffix_of(window, max_tokens, total, from == 0)?
            {
                return Ok(from + start);
            }
            size = size.saturating_mul(2);
        }
    }

    /// Where the longest suffix of `text`, which has `total` tokens, starts that fits. `None` if it
    /// may start before `text`, where that is not all of the text.
    fn suffix_of(
        &self,
        text: &str,
        max_tokens: usize,
        total: usize,
        is_all: bool,
    ) -> Result<Option<usize>> {
        let Some(surplus) = total.checked_sub(max_tokens).filter(|&surplus| surplus > 0) else {
            return Ok(Some(0));
        };
        let borders = self.walk(text, surplus)?.borders;
        let end = Border { position: text.len(), before: total };
        let first = borders.partition_point(|border| border.before < surplus);
        // From a safe cut on, tokens are the same whatever stands before. (A cut among digits, or in
        // a run of one letter, may change the groups of all that follow.)
        let is_safe = |border: &&Border| self.is_safe(text, border.position);
        let anchor = borders.iter().skip(first).find(is_safe).copied().unwrap_or(end);
        // So the longest suffix starts behind the last safe cut with too many tokens.
        let next = borders.get(first).map_or(text.len(), |border| border.position);
        let low = match self.safe_before(text, next) {
            SafeCut::At(cut) if text[cut..anchor.position].chars().count() <= 2 * STRETCH => cut,
            SafeCut::BeforeText if is_all => 0,
            SafeCut::BeforeText => return Ok(None),
            _ => self.lowest_start(text, &borders, first, surplus)?,
        };
        let fits = |start: usize| {
            let room = max_tokens - (total - anchor.before).min(max_tokens);
            let is_end = anchor.position == text.len();
            Ok((is_end || self.count(&text[start..anchor.position], room)? <= room)
                && self.count(&text[start..], max_tokens)? <= max_tokens)
        };
        let candidates = positions(text, low..anchor.position)?;
        let count = candidates.len();
        // The anchor fits, if nothing else does.
        let found = farthest(count, |index| fits(candidates[count - 1 - index]))?.unwrap_or(0);
        Ok(Some(candidates[count - 1 - found]))
    }

    /// Whether `text` can be cut at `position` without changing a piece before or behind it.
    fn is_safe(&self, text: &str, position: usize) -> bool {
        let before = &text[..ceil(text, position + 1)];
        self.encoding.splitter().safe_cut(before, position) == Some(position)
    }

    /// The last safe cut before `position`, no more than [`STRETCH`] characters away.
    fn safe_before(&self, text: &str, position: usize) -> SafeCut {
        if !self.encoding.splitter().is_family() {
            return SafeCut::Far;
        }
        let mut starts = text[..position].char_indices().rev().map(|(start, _)| start);
        let mut near = starts.by_ref().take(STRETCH);
        match near.find(|&start| self.is_safe(text, start)) {
            Some(cut) => SafeCut::At(cut),
            None if starts.next().is_none() => SafeCut::BeforeText,
            None => SafeCut::Far,
        }
    }

    /// From where on suffixes are tried that begin in a long stretch; `borders[first]` is the first
    /// one with `surplus` tokens before it.
    fn lowest_start(
        &self,
        text: &str,
        borders: &[Border],
        first: usize,
        surplus: usize,
    ) -> Result<usize> {
        let low = borders[first.saturating_sub(CHANGED)].position;
        let Some(before) = first.checked_sub(1).map(|last| borders[last]) else { return Ok(low) };
        let next = borders.get(first).map_or(text.len(), |border| border.position);
        let piece = before.position..next;
        let Some(tokens) = self.tokens_of_long_piece(text, piece, before.before)? else {
            return Ok(low);
        };
        let passed = tokens.partition_point(|border| border.before < surplus);
        Ok(tokens[passed.saturating_sub(TOKENS_BEHIND)].position)
    }

    /// The tokens of `text`; some number above `limit` if there are more than that.
    fn count(&self, text: &str, limit: usize) -> Result<usize> {
        let mut count = Count::till(limit);
        let text = self.encoding.normalization().apply(text)?;
        self.encoding.encode_normal(&text, self.allowed, &mut count)?;
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
        let found = bisect(count, &mut fits)?;
        range = found.saturating_sub(TRY_BEYOND)..(found + 1 + TRY_BEYOND).min(count);
    }
    for index in range.rev() {
        if fits(index)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// The largest index for which `fits` holds if it holds for 0 and for all up to some index; 0 if it
/// does not.
fn bisect(count: usize, mut fits: impl FnMut(usize) -> Result<bool>) -> Result<usize> {
    let (mut low, mut high) = (0, count);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle)? { low = middle } else { high = middle }
    }
    Ok(low)
}

/// The places between characters in a range of the text, both ends included.
fn positions(text: &str, range: Range<usize>) -> Result<Vec<usize>> {
    let starts = text[range.clone()].char_indices().map(|(offset, _)| range.start + offset);
    collected(starts.chain(std::iter::once(range.end)))
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
