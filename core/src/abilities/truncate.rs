//! Truncates text to a number of tokens, and cuts text into chunks.
//!
//! Text is cut only where a token of its encoding ends. Patterns see the text around a piece, so a
//! part may get different tokens on its own than within the text. Each part is therefore encoded on
//! its own, and a shorter part is tried if there are too many tokens.
//!
//! Only the part of a long text near the cut is read, up to a position where the tokens before and
//! after are independent. In runs without such a position (a ruler, a very long word), a little
//! more text than needed is read; characters that normalization may join are read as a whole.

use std::ops::Range;

use crate::Pipeline;
use crate::char_boundary::{ceil, floor};
use crate::error::{Error, Result};
use crate::normalize::{Normalization, is_boundary_before};
use crate::offsets::TokenEnd;
use crate::request::Request;

/// Number of candidates to try before halving the token budget.
const TRIES: usize = 4;

/// Number of token ends next to the limit to examine. If no token ends between two characters
/// there, the next attempt examines `NEAR` times as many.
const NEAR: usize = 256;

/// Number of extra bytes to read if no piece is certain to end after the needed bytes: the tokens
/// of a long piece depend only on nearby text.
const MARGIN: usize = 256;

/// Number of bytes to search backwards for the certain end of a piece.
const LOOK_BACK: [usize; 3] = [64, MARGIN, 4096];

/// Number of bytes to encode at once when cutting a text into chunks.
const WINDOW: usize = 1 << 16;

/// Number of bytes around a position that can affect the normalization there.
const NORMALIZED: usize = 8;

impl Pipeline {
    /// Returns the length in bytes of a prefix of `text` that ends where a token of `text` ends and
    /// that encodes to at most `max_tokens` tokens.
    pub fn truncate(&self, text: &str, max_tokens: usize, request: &Request) -> Result<usize> {
        Cutter::new(self, text, request)?.prefix(max_tokens)
    }

    /// Returns the start of a suffix of `text` that begins where a token of `text` ends and that
    /// encodes to at most `max_tokens` tokens.
    pub fn truncate_left(&self, text: &str, max_tokens: usize, request: &Request) -> Result<usize> {
        Cutter::new(self, text, request)?.suffix(max_tokens)
    }

    /// Returns the range that [`Pipeline::truncate`] (from the left, [`Pipeline::truncate_left`])
    /// keeps of a text that begins (ends) with `part`, which is shorter than the text. Returns
    /// `None` if `part` is too short to decide.
    ///
    /// The last (first) character of `part` may differ from the text's. Disallowed names are
    /// searched for in `part` only.
    pub fn truncate_part(
        &self,
        part: &str,
        max_tokens: usize,
        from_left: bool,
        request: &Request,
    ) -> Result<Option<Range<usize>>> {
        Cutter::of_part(self, part, request)?.kept(max_tokens, from_left)
    }

    /// Cuts `text` into chunks that end where tokens of `text` end and that encode to at most
    /// `max_tokens` tokens each. Each chunk begins with up to `overlap` tokens from the end of the
    /// previous chunk; `overlap` must be smaller than `max_tokens`.
    ///
    /// Cuts between two token ends only where the characters there do not fit into one chunk. Fails
    /// with [`Error::ChunkTooSmall`] if one character does not fit.
    pub fn chunk(
        &self,
        text: &str,
        max_tokens: usize,
        overlap: usize,
        request: &Request,
    ) -> Result<Vec<Range<usize>>> {
        chunk(Cutter::new(self, text, request)?, max_tokens, overlap)
    }
}

/// A position between two characters where a token ends.
#[derive(Debug, Clone, Copy, Default)]
struct Cut {
    position: usize,
    /// The number of tokens before the position.
    tokens: usize,
}

/// Finds positions where one text can be cut.
struct Cutter<'a> {
    pipeline: &'a Pipeline,
    text: &'a str,
    /// Whether `text` is the whole text.
    is_all: bool,
    /// A request that disallows nothing: the caller has checked the text.
    request: Request,
    /// The length in bytes of the longest special token name.
    longest_name: usize,
}

impl<'a> Cutter<'a> {
    pub(crate) fn new(pipeline: &'a Pipeline, text: &'a str, request: &Request) -> Result<Self> {
        pipeline.check(text, request)?;
        let request = Request::allowing(request.allowed.clone());
        let longest_name = pipeline.special_tokens()?.all().longest();
        Ok(Self { pipeline, text, is_all: true, request, longest_name })
    }

    /// Creates a cutter for a text that is longer than `part`.
    pub(crate) fn of_part(
        pipeline: &'a Pipeline,
        part: &'a str,
        request: &Request,
    ) -> Result<Self> {
        Ok(Self { is_all: false, ..Self::new(pipeline, part, request)? })
    }

    /// Returns the kept range of a part, if the rest of the text cannot change it.
    pub(crate) fn kept(&self, max_tokens: usize, from_left: bool) -> Result<Option<Range<usize>>> {
        let kept = match from_left {
            false => 0..self.prefix(max_tokens)?,
            true => self.suffix(max_tokens)?..self.text.len(),
        };
        Ok((kept.len() < self.text.len()).then_some(kept))
    }

    /// Returns the end of a prefix of at most `max_tokens` tokens.
    pub(crate) fn prefix(&self, max_tokens: usize) -> Result<usize> {
        let (mut room, mut near) = (max_tokens, NEAR);
        loop {
            let Some(cuts) = self.cuts_before(room, near)? else { return Ok(self.text.len()) };
            let is_empty = cuts.is_empty();
            let cuts = cuts.into_iter().rev();
            if let Some(cut) = self.first_that_fits(cuts, max_tokens, |end| 0..end)? {
                return Ok(cut.position);
            }
            (room, near) = match (room, is_empty) {
                (0, _) => return Ok(0),
                (_, true) if near >= room => return Ok(0),
                (_, true) => (room - near, near.saturating_mul(NEAR)),
                (_, false) => (room / 2, NEAR),
            };
        }
    }

    /// Returns the start of a suffix of at most `max_tokens` tokens.
    pub(crate) fn suffix(&self, max_tokens: usize) -> Result<usize> {
        let end = self.text.len();
        let mut room = max_tokens;
        loop {
            let Some(cuts) = self.cuts_after(room)? else { return Ok(0) };
            let cuts = cuts.into_iter();
            if let Some(cut) = self.first_that_fits(cuts, max_tokens, |start| start..end)? {
                return Ok(cut.position);
            }
            if room == 0 {
                return Ok(end);
            }
            room /= 2;
        }
    }

    /// Returns the first of `cuts` for which the part of the text has at most `max_tokens` tokens.
    /// Tries a few cuts; each attempt lowers the number of tokens by the excess of the last
    /// attempt.
    fn first_that_fits(
        &self,
        mut cuts: impl Iterator<Item = Cut>,
        max_tokens: usize,
        part: impl Fn(usize) -> Range<usize>,
    ) -> Result<Option<Cut>> {
        let mut next = cuts.next();
        for _ in 0..TRIES {
            let Some(cut) = next else { break };
            let count = self.count(part(cut.position))?;
            let Some(excess) = count.checked_sub(max_tokens).filter(|&excess| excess > 0) else {
                return Ok(Some(cut));
            };
            next = cuts.find(|other| other.tokens.abs_diff(cut.tokens) >= excess);
        }
        Ok(None)
    }

    /// Returns the cuts with `room` tokens before them, or up to `near` fewer, in ascending order.
    /// `None` if the whole text has no more tokens, or if more text must be read.
    fn cuts_before(&self, room: usize, near: usize) -> Result<Option<Vec<Cut>>> {
        let mut size = first_size(room);
        loop {
            let (end, certain) = self.beginning(size);
            let is_all = end == self.text.len();
            if is_all && !self.is_all {
                return Ok(None);
            }
            let (ends, total) = self.tokens(0..end, room.saturating_sub(near)..room)?;
            if is_all && total <= room {
                return Ok(None);
            }
            let mut cuts = Vec::new();
            let mut is_enough = is_all || room == 0;
            for TokenEnd { tokens, low, high } in ends {
                if low == high && tokens <= room {
                    cuts.push(Cut { position: low, tokens });
                }
                if tokens >= room {
                    is_enough |= low <= certain;
                    break;
                }
            }
            if is_enough {
                return Ok(Some(cuts));
            }
            size = next_size(size, room, total);
        }
    }

    /// Returns the first cuts with at most `room` tokens after them, in ascending order. `None` if
    /// the whole text has no more tokens, or if more text must be read.
    fn cuts_after(&self, room: usize) -> Result<Option<Vec<Cut>>> {
        let mut size = first_size(room);
        loop {
            let (start, certain) = self.end(size);
            if start == 0 && !self.is_all {
                return Ok(None);
            }
            let part = start..self.text.len();
            // Encodes a large part twice, rather than storing its ids.
            let small = match part.len() {
                ..=WINDOW => Some(self.tokens(part.clone(), 0..usize::MAX)?),
                _ => None,
            };
            let total = match &small {
                Some((_, total)) => *total,
                None => self.count(part.clone())?,
            };
            if total > room {
                let before = total - room;
                let (ends, _) = match small {
                    Some(tokens) => tokens,
                    None => self.tokens(part, before..before.saturating_add(NEAR))?,
                };
                let mut cuts = Vec::new();
                let mut is_enough = start == 0;
                for TokenEnd { tokens, low, high } in ends {
                    is_enough |= tokens == before && start + high >= certain;
                    if low == high && tokens >= before {
                        cuts.push(Cut { position: start + low, tokens });
                    }
                }
                if is_enough {
                    return Ok(Some(cuts));
                }
            } else if start == 0 {
                return Ok(None);
            }
            size = next_size(size, room, total);
        }
    }

    /// Returns how far to read for the tokens of the first `size` bytes, and where tokens may
    /// differ from the whole text's. The last character of a proper part is not examined.
    fn beginning(&self, size: usize) -> (usize, usize) {
        let all = self.text.len();
        let end = ceil(self.text, size.saturating_add(self.margin()));
        let mut rest = self.text[end..].char_indices();
        let end = rest.find(|&(_, c)| self.is_normal_before(c)).map_or(all, |(at, _)| end + at);
        if ceil(self.text, end.saturating_add(self.reach())) == all {
            return (all, all);
        }
        let is_local = self.pipeline.is_local();
        let last = if is_local { end } else { floor(self.text, all - self.reach() - 1) };
        match self.independent_cut(size..last) {
            Some(cut) => (cut, cut),
            None if is_local => (end, size),
            None => (all, all),
        }
    }

    /// Returns where to start reading for the tokens of the last `size` bytes, and from where on
    /// these tokens equal the tokens of the whole text. The first character of a proper part is not
    /// examined.
    fn end(&self, size: usize) -> (usize, usize) {
        let near = floor(self.text, self.text.len().saturating_sub(size));
        for back in LOOK_BACK {
            if floor(self.text, near.saturating_sub(back + self.reach())) == 0 {
                return (0, 0);
            }
            if let Some(cut) = self.independent_cut(near - back..ceil(self.text, near + 1)) {
                return (self.start_for(cut), cut);
            }
        }
        if !self.pipeline.is_local() {
            return (0, 0);
        }
        let start = ceil(self.text, near.saturating_sub(self.margin()) + 1);
        let mut before = self.text[..start].char_indices().rev();
        (before.find(|&(_, c)| self.is_normal_before(c)).map_or(0, |(at, _)| at), near)
    }

    /// Returns where to start encoding for the tokens after an independent cut: at an earlier cut
    /// if the pipeline prepends text.
    fn start_for(&self, cut: usize) -> usize {
        if cut == 0 || !self.pipeline.prepends(true) {
            return cut;
        }
        let before = |back| {
            let start = floor(self.text, cut.saturating_sub(back));
            self.independent_cut(start.max(self.reach() + 1)..cut)
        };
        LOOK_BACK.into_iter().find_map(before).unwrap_or(0)
    }

    /// Whether text before `character` and text that begins with it normalize independently.
    fn is_normal_before(&self, character: char) -> bool {
        self.pipeline.normalization() == Normalization::None || is_boundary_before(character)
    }

    /// Number of further bytes to read where no cut is certain to be independent.
    fn margin(&self) -> usize {
        MARGIN + self.longest_name
    }

    /// Number of bytes around a position that decide whether it is independent.
    fn reach(&self) -> usize {
        self.longest_name.max(NORMALIZED)
    }

    /// Returns the first position in `range` where the tokens before and after are independent.
    /// `range` ends at a character boundary.
    fn independent_cut(&self, range: Range<usize>) -> Option<usize> {
        let mut from = range.start;
        loop {
            let cut = self.pipeline.beginning_cut(&self.text[..range.end], from)?;
            if self.is_independent(cut) {
                return Some(cut);
            }
            from = cut + 1;
        }
    }

    /// Whether no normalization and no special token crosses or touches a position.
    fn is_independent(&self, cut: usize) -> bool {
        let reach = self.reach();
        let start = floor(self.text, cut.saturating_sub(reach));
        let around = &self.text[start..ceil(self.text, cut.saturating_add(reach))];
        let after = self.text[cut..].chars().next();
        let starts = after.is_none_or(|character| self.is_normal_before(character));
        if !starts || !self.pipeline.normalization().keeps(around) {
            return false;
        }
        let ends_in_space = || self.text[..cut].ends_with(char::is_whitespace);
        let is_space = after.is_some_and(char::is_whitespace) && ends_in_space();
        if is_space && self.pipeline.takes_space() {
            return false;
        }
        let special = self.pipeline.special_tokens();
        special.is_ok_and(|special| !special.all().touches(around, cut - start))
    }

    /// Encodes a part of the text. Returns the number of tokens, and the ends of `wanted` tokens.
    fn tokens(&self, part: Range<usize>, wanted: Range<usize>) -> Result<(Vec<TokenEnd>, usize)> {
        self.pipeline.token_ends(&self.text[part], &self.request.allowed, wanted)
    }

    /// Counts the tokens in a part of the text.
    fn count(&self, part: Range<usize>) -> Result<usize> {
        self.pipeline.count(&self.text[part], usize::MAX, &self.request)
    }
}

/// Number of bytes to read first for `tokens` tokens: few, since a token may be a single byte.
fn first_size(tokens: usize) -> usize {
    tokens.saturating_mul(2).saturating_add(64)
}

/// Number of bytes to read next: two to four times as many, depending on the tokens found.
fn next_size(size: usize, wanted: usize, found: usize) -> usize {
    let likely = size.saturating_mul(wanted / found.max(1) + 1);
    likely.clamp(size.saturating_mul(2), size.saturating_mul(4))
}

/// Cuts a text into chunks: see [`Pipeline::chunk`].
fn chunk(cutter: Cutter<'_>, max_tokens: usize, overlap: usize) -> Result<Vec<Range<usize>>> {
    Chunker { cutter, max_tokens, overlap, cuts: Vec::new(), read: Cut::default() }.chunks()
}

/// Cuts a text into chunks, from its beginning to its end.
struct Chunker<'a> {
    cutter: Cutter<'a>,
    max_tokens: usize,
    overlap: usize,
    /// The cuts from the start of the last chunk on, as far as the text has been read.
    cuts: Vec<Cut>,
    read: Cut,
}

impl Chunker<'_> {
    fn chunks(&mut self) -> Result<Vec<Range<usize>>> {
        let mut chunks: Vec<Range<usize>> = Vec::new();
        let mut done = Cut::default();
        while done.position < self.cutter.text.len() {
            self.read_after(done)?;
            let last = chunks.last().map_or(0, |last| last.start);
            let (start, end) = match self.overlapping(last, done)? {
                Some(chunk) => chunk,
                None => (done.position, self.plain(done)?),
            };
            chunks.push(start..end.position);
            done = end;
            let used = self.cuts.partition_point(|cut| cut.position < start);
            if used > self.cuts.len() / 2 {
                self.cuts.drain(..used);
            }
        }
        Ok(chunks)
    }

    /// Reads until the cuts of the chunk after `done` are known.
    fn read_after(&mut self, done: Cut) -> Result<()> {
        let text = self.cutter.text;
        let enough = done.tokens.saturating_add(self.max_tokens);
        let is_enough = |cut: &Cut| cut.tokens > enough && cut.position > done.position;
        while self.read.position < text.len() && !self.cuts.last().is_some_and(is_enough) {
            let start = self.read;
            let near = start.position.saturating_add(WINDOW).saturating_add(self.cutter.margin());
            let cut = self.cutter.independent_cut(near..text.len());
            let end = cut.unwrap_or(text.len());
            let from = self.cutter.start_for(start.position);
            let (ends, total) = self.cutter.tokens(from..end, 0..usize::MAX)?;
            // The number of tokens read so far.
            let before = match start.position - from {
                0 => 0,
                size => ends.partition_point(|end| end.high <= size),
            };
            for TokenEnd { tokens, low, high } in ends.into_iter().skip(before) {
                if low == high {
                    let (position, tokens) = (from + low, start.tokens + tokens - before);
                    self.cuts.push(Cut { position, tokens });
                }
            }
            self.read = Cut { position: end, tokens: start.tokens + total - before };
            // The pattern may skip the end of the text.
            if self.cuts.last().is_none_or(|last| last.position < end) {
                self.cuts.push(self.read);
            }
        }
        Ok(())
    }

    /// Returns the start and the end of a chunk that begins with the end of the last chunk, which
    /// spans `last..done`. `None` if no such chunk goes beyond `done`.
    fn overlapping(&self, last: usize, done: Cut) -> Result<Option<(usize, Cut)>> {
        if self.overlap == 0 {
            return Ok(None);
        }
        let end = self.cuts.partition_point(|cut| cut.position < done.position);
        // Reserves room for the text after the overlap.
        let following = self.following(done).tokens - done.tokens;
        let mut overlap = self.overlap.min(self.max_tokens.saturating_sub(following));
        for _ in 0..TRIES {
            let is_before = |cut: &Cut| cut.position < last || cut.tokens + overlap < done.tokens;
            let first = self.cuts[..end].partition_point(is_before);
            let cuts = self.cuts[first..end].iter().copied();
            let part = |start| start..done.position;
            let Some(start) = self.cutter.first_that_fits(cuts, self.overlap, part)? else { break };
            if let Some(end) = self.end(start, done)? {
                return Ok(Some((start.position, end)));
            }
            overlap /= 2;
        }
        Ok(None)
    }

    /// Returns the end of a chunk that starts where the last chunk ends.
    fn plain(&self, done: Cut) -> Result<Cut> {
        match self.end(done, done)? {
            Some(end) => Ok(end),
            None => self.cut_apart(done),
        }
    }

    /// Returns the first cut after `done`.
    fn following(&self, done: Cut) -> Cut {
        self.cuts[self.cuts.partition_point(|cut| cut.position <= done.position)]
    }

    /// Returns the end of a chunk from `start` to a cut after `done`.
    fn end(&self, start: Cut, done: Cut) -> Result<Option<Cut>> {
        let first = self.cuts.partition_point(|cut| cut.position <= done.position);
        let mut room = self.max_tokens;
        loop {
            let limit = start.tokens.saturating_add(room);
            let end = self.cuts.partition_point(|cut| cut.tokens <= limit);
            if end <= first {
                return Ok(None);
            }
            let cuts = self.cuts[first..end].iter().rev().copied();
            let part = |end| start.position..end;
            let found = self.cutter.first_that_fits(cuts, self.max_tokens, part)?;
            if found.is_some() || room == 0 {
                return Ok(found);
            }
            room /= 2;
        }
    }

    /// Returns the end of a chunk at or before the next cut: tries one character, then two, four
    /// and so on, as long as they fit.
    fn cut_apart(&self, done: Cut) -> Result<Cut> {
        let Cut { position: start, tokens } = done;
        let following = self.following(done);
        let fits = |end: Cut| Ok(self.cutter.count(start..end.position)? <= self.max_tokens);
        if following.tokens - tokens <= self.max_tokens && fits(following)? {
            return Ok(following);
        }
        let characters = &self.cutter.text[start..following.position];
        let mut longest = None;
        let mut count = 1;
        loop {
            let length = characters.char_indices().nth(count).map(|(length, _)| length);
            let end = length.map_or(following, |length| Cut { position: start + length, tokens });
            if !fits(end)? {
                break;
            }
            longest = Some(end);
            if length.is_none() {
                break;
            }
            count *= 2;
        }
        longest.ok_or_else(|| Error::ChunkTooSmall {
            character: characters.chars().take(1).collect(),
            max_tokens: self.max_tokens,
        })
    }
}
