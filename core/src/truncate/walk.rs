//! Walks over a text that end where a limit of tokens is passed.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

use super::last_piece::KnownPiece;
use super::split_text::last_end;
use super::{CHANGED, STRETCH, TOKENS_BEFORE, Truncator, ceil, floor};
use crate::error::Result;
use crate::memory::reserve;
use crate::normalize::{Alignment, Normalization, starts_stretch};
use crate::polling::poll;
use crate::sink::Sink;
use crate::special_tokens::Selection;
use crate::split::Splitter;

/// A place in the text between two tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Border {
    pub(super) position: usize,
    /// Tokens before it.
    pub(super) before: usize,
}

/// What a walk over (the beginning of) a text found.
pub(super) struct Walk<'a> {
    /// The borders of pieces around the place where the limit is passed: the last ones with at
    /// most `limit` tokens before them, and the first ones with more.
    pub(super) borders: Vec<Border>,
    /// Tokens in all, as far as the walk went.
    pub(super) total: usize,
    /// The ids of the piece in which the limit is passed.
    pub(super) passed: Vec<u32>,
    /// The special tokens found.
    pub(super) special: Vec<Range<usize>>,
    /// Up to where all special tokens have been found.
    pub(super) searched: usize,
    /// The text, normalized.
    normal: Cow<'a, str>,
    alignment: Alignment,
}

/// Counts, and keeps the borders around a limit.
struct BorderSink {
    ids: Vec<u32>,
    counted: usize,
    limit: usize,
    borders: VecDeque<Border>,
    /// The first of the ids of the last piece.
    piece: usize,
    /// Of the ids of their batch, those of the piece in which the limit is passed.
    passed: Option<Range<usize>>,
    /// The ids of that batch.
    kept: Vec<u32>,
    special: Vec<Range<usize>>,
}

impl BorderSink {
    /// Notes where the ids of the last piece are, if the limit is passed in it.
    fn note_passed(&mut self) {
        if self.passed.is_none() && self.counted + self.ids.len() > self.limit {
            self.passed = Some(self.piece..self.ids.len());
        }
    }

    /// The ids of the piece in which the limit is passed.
    fn into_passed(self) -> Vec<u32> {
        let mut ids = self.kept;
        let passed = self.passed.unwrap_or_default();
        ids.truncate(passed.end);
        ids.drain(..passed.start);
        ids
    }

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
        self.note_passed();
        self.counted += self.ids.len();
        if self.passed.is_some() && self.kept.is_empty() {
            self.kept = std::mem::take(&mut self.ids);
        }
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
        } else {
            self.note_passed();
            if self.borders.len() < 3 * CHANGED {
                self.borders.push_back(border);
            }
        }
        self.piece = self.ids.len();
    }

    fn special(&mut self, bytes: Range<usize>) {
        self.special.push(bytes.clone());
        self.piece(bytes);
    }
}

impl Walk<'_> {
    /// Whether a special token may stand, in part, between these places.
    pub(super) fn has_special(&self, start: usize, end: usize) -> bool {
        end > self.searched || self.special.iter().any(|span| start < span.end && span.start < end)
    }

    /// Whether normalization leaves the text as it is.
    pub(super) fn is_normal(&self) -> bool {
        matches!(self.normal, Cow::Borrowed(_))
    }

    /// A range of the text in its normalized form, if each of its ends normalizes on its own.
    pub(super) fn normal_span(&self, span: &Range<usize>) -> Option<Range<usize>> {
        Some(self.alignment.normal(span.start)?..self.alignment.normal(span.end)?)
    }

    /// The place in the text of one in its normalized form, if both stand between characters.
    pub(super) fn place(&self, normal: usize) -> Option<usize> {
        self.normal.is_char_boundary(normal).then(|| self.alignment.boundary(normal))?
    }

    /// Whether the pieces of `text` before this border are the same wherever the text is cut behind it.
    pub(super) fn is_settled(&self, splitter: &Splitter, text: &str, border: usize) -> bool {
        if self.is_normal() || border == 0 {
            return splitter.is_settled(text, border);
        }
        text[border..].chars().next().is_none_or(starts_stretch)
            && self.alignment.normal(border).is_some_and(|at| splitter.is_settled(&self.normal, at))
    }

    /// The last place of `text`, up to `high`, where what is before it may have no more tokens than
    /// `furthest` covers of the bytes from `start` on, which is a border.
    pub(super) fn last_covered(
        &self,
        text: &str,
        span: Range<usize>,
        furthest_end: impl FnOnce(&[u8]) -> usize,
    ) -> usize {
        let Some(normal) = self.normal_span(&span) else { return span.end };
        let covered = normal.start + furthest_end(&self.normal.as_bytes()[normal]);
        if self.is_normal() {
            return floor(text, covered);
        }
        // Up to the end of its stretch, a cut may change what is covered.
        let behind = self.alignment.original(0..(covered + 1).min(self.normal.len())).end;
        stretch_end(text, ceil(text, behind)).min(span.end)
    }

    /// The same for the first place of `text`, `span.start` or behind it, up to the end of the span.
    pub(super) fn first_covered(
        &self,
        text: &str,
        span: Range<usize>,
        furthest_start: impl FnOnce(&[u8]) -> usize,
    ) -> usize {
        let Some(normal) = self.normal_span(&span) else { return span.start };
        let covered = normal.start + furthest_start(&self.normal.as_bytes()[normal]);
        if self.is_normal() {
            return ceil(text, covered);
        }
        let before = self.alignment.original(covered.saturating_sub(1)..self.normal.len()).start;
        stretch_start(text, floor(text, before)).max(span.start)
    }
}

/// The first place from `position` on where text can be cut and the parts normalized on their own.
fn stretch_end(text: &str, position: usize) -> usize {
    let mut rest = text[position..].char_indices();
    let found = rest.find(|&(_, character)| starts_stretch(character));
    found.map_or(text.len(), |(offset, _)| position + offset)
}

/// The last such place before `position`, or there.
fn stretch_start(text: &str, position: usize) -> usize {
    let end = ceil(text, position + 1);
    let mut starts = text[..end].char_indices().rev();
    starts.find(|&(_, character)| starts_stretch(character)).map_or(0, |(start, _)| start)
}

impl Truncator<'_> {
    /// Walks as much of the beginning of `text` as it takes to pass the limit: no longer beginning of
    /// `text` has so few tokens, in the published families.
    pub(super) fn walk_window<'a>(
        &self,
        text: &'a str,
        limit: usize,
    ) -> Result<(&'a str, Walk<'a>)> {
        let mut size = limit.saturating_mul(6).saturating_add(64);
        let known = self.known_piece(text, size)?;
        if let Some(known) = known.filter(|known| known.ids.len() > limit) {
            let window = &text[..known.window];
            let walk = self.walk_from(window, limit, Some(known))?;
            if window.len() == text.len() || self.is_passed(window, limit, &walk)? {
                return Ok((window, walk));
            }
            size = size.max(2 * window.len());
        }
        loop {
            let window = &text[..floor(text, size)];
            let walk = self.walk(window, limit)?;
            if window.len() == text.len() || self.is_passed(window, limit, &walk)? {
                return Ok((window, walk));
            }
            size = size.saturating_mul(2);
        }
    }

    /// Whether every text that goes on behind `window` has more than `limit` tokens.
    fn is_passed(&self, window: &str, limit: usize, walk: &Walk<'_>) -> Result<bool> {
        let splitter = self.encoding.splitter();
        // From there on more text may make a special token of this.
        let open = match self.allowed {
            Selection::None => window.len(),
            _ => self.encoding.special_tokens().all().open_from(window),
        };
        // And this may be normalized in another way.
        let stable = match self.encoding.normalization() {
            Normalization::None => open,
            Normalization::Nfc => {
                open.min(stretch_start(window, floor(window, window.len().saturating_sub(1))))
            }
        };
        let mut beyond =
            walk.borders.iter().filter(|border| border.before > limit && border.position <= stable);
        if splitter.is_family() {
            // (What is before a special token may have fewer with the beginning of its name.)
            let is_settled = |border: &Border| {
                walk.is_settled(splitter, window, border.position)
                    && walk.special.iter().all(|special| special.start != border.position)
            };
            if beyond.any(is_settled) {
                return Ok(true);
            }
            // In a long piece the length of tokens tells: the whole may have fewer than its beginning.
            // Of a stretch of more than 64 characters not all ends are tried anyway.
            let mut settled = walk.borders.iter().rev().filter(|border| {
                border.before <= limit && walk.is_settled(splitter, window, border.position)
            });
            let start = settled.next().map_or(0, |border| border.position);
            let is_stretch = window[start..].chars().nth(STRETCH).is_some();
            if !is_stretch || open < window.len() {
                return Ok(walk.total > limit
                    && last_end(*self, window, walk, window.len(), limit)? < stable);
            }
        }
        let many = limit.saturating_add(2 * TOKENS_BEFORE);
        Ok(beyond.count() > CHANGED || walk.total > many && open == window.len())
    }

    pub(super) fn walk<'a>(&self, text: &'a str, limit: usize) -> Result<Walk<'a>> {
        self.walk_from(text, limit, None)
    }

    /// The same of a text of which the first piece may be known.
    fn walk_from<'a>(
        &self,
        text: &'a str,
        limit: usize,
        known: Option<KnownPiece>,
    ) -> Result<Walk<'a>> {
        let (normal, alignment) = self.encoding.normalization().align(text)?;
        let mut sink = BorderSink {
            ids: Vec::new(),
            counted: 0,
            limit,
            borders: VecDeque::new(),
            piece: 0,
            passed: None,
            kept: Vec::new(),
            special: Vec::new(),
        };
        let known = known.filter(|_| matches!(normal, Cow::Borrowed(_)));
        self.encode_from(&normal, known, &mut sink)?;
        let is_whole = sink.beyond() <= CHANGED || matches!(self.allowed, Selection::None);
        let mut borders = vec![Border { position: 0, before: 0 }];
        for &border in &sink.borders {
            if let Some(position) = alignment.boundary(border.position)
                && position > 0
            {
                borders.push(Border { position, ..border });
            }
        }
        let mut special = std::mem::take(&mut sink.special);
        special.iter_mut().for_each(|span| *span = alignment.original(span.clone()));
        let last = borders.last().map_or(0, |border| border.position);
        let searched = if is_whole { text.len() } else { last };
        let (total, passed) = (sink.counted, sink.into_passed());
        Ok(Walk { borders, total, passed, special, searched, normal, alignment })
    }

    /// Walks a normalized text into `sink`. The first piece may be known.
    fn encode_from(
        &self,
        text: &str,
        known: Option<KnownPiece>,
        sink: &mut BorderSink,
    ) -> Result<()> {
        let encoding = self.encoding;
        let mut start = 0;
        if let Some(KnownPiece { end, ids, .. }) = known
            && encoding
                .special_tokens()
                .find_allowed(text, 0, self.allowed)
                .is_none_or(|(found, _)| end <= found.start)
        {
            poll(ids.len())?;
            sink.reserve(1, ids.len())?;
            sink.piece(0..end);
            sink.ids.extend_from_slice(&ids);
            if sink.batch_done().is_break() {
                return Ok(());
            }
            start = end;
        }
        encoding.encode_normal_from(text, start, self.allowed, sink)
    }
}
