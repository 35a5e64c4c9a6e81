//! Walks over a text that end where a limit of tokens is passed.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

use super::last_piece::KnownPiece;
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
    /// The last place up to which the text may have `limit` tokens, if that had to be found.
    pub(super) last_end: Option<usize>,
    /// The piece in which the limit is passed, if it is: where it starts, and its ids.
    pub(super) passed_at: Option<Border>,
    pub(super) passed: Vec<u32>,
    /// The special tokens found.
    pub(super) special: Vec<Range<usize>>,
    /// Up to where all special tokens have been found.
    pub(super) searched: usize,
    /// The text, normalized.
    pub(super) normal: Cow<'a, str>,
    pub(super) alignment: Alignment,
}

/// Counts, and keeps the borders around a limit.
struct BorderSink<'a> {
    alignment: &'a Alignment,
    ids: Vec<u32>,
    counted: usize,
    limit: usize,
    borders: VecDeque<Border>,
    /// The start of the last piece, and the first of its ids.
    last: (Border, usize),
    /// The start of the piece in which the limit is passed, and its ids, of those of their batch.
    passed: Option<(Border, Range<usize>)>,
    /// The ids of that batch.
    kept: Vec<u32>,
    special: Vec<Range<usize>>,
}

impl BorderSink<'_> {
    /// Notes where the last piece and its ids are, if the limit is passed in it.
    fn note_passed(&mut self) {
        if self.passed.is_none() && self.counted + self.ids.len() > self.limit {
            let (start, ids) = self.last;
            self.passed = Some((start, ids..self.ids.len()));
        }
    }

    /// Where the piece starts in which the limit is passed, and its ids.
    fn into_passed(self) -> (Option<Border>, Vec<u32>) {
        let Some((start, span)) = self.passed else { return (None, Vec::new()) };
        let mut ids = self.kept;
        ids.truncate(span.end);
        ids.drain(..span.start);
        (Some(start), ids)
    }

    /// How many borders have more tokens before them than the limit.
    fn beyond(&self) -> usize {
        self.borders.iter().rev().take_while(|border| border.before > self.limit).count()
    }
}

impl Sink for BorderSink<'_> {
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
        let before = self.counted + self.ids.len();
        let border = Border { position: bytes.start, before };
        if before > self.limit {
            self.note_passed();
        }
        self.last = (border, self.ids.len());
        // (The other places are inside of what normalization changed.)
        let Some(position) = self.alignment.boundary(bytes.start) else { return };
        if before <= self.limit && self.borders.len() > CHANGED + 1 {
            self.borders.pop_front();
        }
        if before <= self.limit || self.borders.len() < 3 * CHANGED {
            self.borders.push_back(Border { position, before });
        }
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

    /// The borders, as places in the normalized text.
    pub(super) fn normal_borders(&self) -> Cow<'_, [Border]> {
        if self.is_normal() {
            return Cow::Borrowed(&self.borders);
        }
        let places = self.borders.iter().filter_map(|&border| {
            self.alignment.normal(border.position).map(|position| Border { position, ..border })
        });
        Cow::Owned(places.collect())
    }

    /// Whether the pieces of `text` before this border are the same wherever the text is cut behind it.
    pub(super) fn is_settled(&self, splitter: &Splitter, text: &str, border: usize) -> bool {
        if self.is_normal() || border == 0 {
            return splitter.is_settled(text, border);
        }
        text[border..].chars().next().is_none_or(starts_stretch)
            && self.alignment.normal(border).is_some_and(|at| splitter.is_settled(&self.normal, at))
    }

    /// The first place from this border on behind which a cut of `text` leaves the pieces before it as they
    /// are.
    pub(super) fn settled_from(
        &self,
        splitter: &Splitter,
        text: &str,
        border: usize,
    ) -> Option<usize> {
        if self.is_settled(splitter, text, border) {
            return Some(border);
        }
        self.is_normal().then(|| splitter.space_end(text, border))?
    }

    /// Whether the pieces of the text before this border are the same if it goes on behind its end, too.
    pub(super) fn is_final(&self, splitter: &Splitter, border: usize) -> bool {
        border == 0
            || self.alignment.normal(border).is_some_and(|at| splitter.is_final(&self.normal, at))
    }
}

/// The first place from `position` on where text can be cut and the parts normalized on their own.
pub(super) fn stretch_end(text: &str, position: usize) -> usize {
    let mut rest = text[position..].char_indices();
    let found = rest.find(|&(_, character)| starts_stretch(character));
    found.map_or(text.len(), |(offset, _)| position + offset)
}

/// The last such place before `position`, or there.
pub(super) fn stretch_start(text: &str, position: usize) -> usize {
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
            let mut walk = self.walk_from(window, limit, Some(known))?;
            if window.len() == text.len() || self.is_passed(window, limit, &mut walk)? {
                return Ok((window, walk));
            }
            size = size.max(2 * window.len());
        }
        loop {
            let window = &text[..floor(text, size)];
            let mut walk = self.walk(window, limit)?;
            if window.len() == text.len() || self.is_passed(window, limit, &mut walk)? {
                return Ok((window, walk));
            }
            size = size.saturating_mul(2);
        }
    }

    /// Whether every text that goes on behind `window` has more than `limit` tokens.
    fn is_passed(&self, window: &str, limit: usize, walk: &mut Walk<'_>) -> Result<bool> {
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
            let stays = |border: &Border| {
                walk.settled_from(splitter, window, border.position).is_some()
                    && walk.is_final(splitter, border.position)
            };
            let is_special = |at: usize| walk.special.iter().any(|special| special.start == at);
            if beyond.any(|border| stays(border) && !is_special(border.position)) {
                return Ok(true);
            }
            // In a long piece the length of tokens tells: the whole may have fewer than its beginning.
            // Of a stretch of more than 64 characters not all ends are tried anyway.
            let mut within = walk.borders.iter().rev().filter(|border| border.before <= limit);
            let start = within.find(|border| stays(border)).map_or(0, |border| border.position);
            if walk.total > limit {
                let last = self.last_end(window, walk, window.len(), true, limit)?;
                if last < stable {
                    walk.last_end = Some(last);
                    return Ok(true);
                }
            }
            let is_stretch = window[start..].chars().nth(STRETCH).is_some();
            let is_enough = is_stretch || self.memo.work.is_done();
            if !is_enough || open < window.len() {
                return Ok(false);
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
            alignment: &alignment,
            ids: Vec::new(),
            counted: 0,
            limit,
            borders: VecDeque::new(),
            last: (Border { position: 0, before: 0 }, 0),
            passed: None,
            kept: Vec::new(),
            special: Vec::new(),
        };
        let known = known.filter(|_| matches!(normal, Cow::Borrowed(_)));
        self.encode_from(&normal, known, &mut sink)?;
        let is_whole = sink.beyond() <= CHANGED || matches!(self.allowed, Selection::None);
        let mut borders = vec![Border { position: 0, before: 0 }];
        borders.extend(sink.borders.iter().filter(|border| border.position > 0));
        let mut special = std::mem::take(&mut sink.special);
        special.iter_mut().for_each(|span| *span = alignment.original(span.clone()));
        let last = borders.last().map_or(0, |border| border.position);
        let searched = if is_whole { text.len() } else { last };
        let total = sink.counted;
        let (passed_at, passed) = sink.into_passed();
        let last_end = None;
        Ok(Walk {
            borders,
            total,
            last_end,
            passed_at,
            passed,
            special,
            searched,
            normal,
            alignment,
        })
    }

    /// Walks a normalized text into `sink`. The first piece may be known.
    fn encode_from(
        &self,
        text: &str,
        known: Option<KnownPiece>,
        sink: &mut BorderSink<'_>,
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
