//! How much of a text fits into a number of tokens.
//!
//! Cutting a text changes its tokens near the cut, and shorter is not always fewer: of "ab" + "c"
//! the first two characters may be one token and the first alone another, but a letter cut off a
//! word may as well turn one token into three. So candidates are encoded and counted. What makes
//! that cheap is that a cut changes only the pieces next to it, and in a long piece only the tokens
//! next to it: a candidate is counted from (or up to) a border that is certain to be the same with
//! the cut and without it. Where that is not known (for other patterns than the published families,
//! where normalization changes the text, next to special tokens) it is counted as a whole.

mod covered;
mod last_piece;
mod long_piece;
mod longest_run;
mod pairs;
mod prefix;
mod search;
mod split_text;
mod suffix;
mod walk;

use std::cell::RefCell;
use std::ops::Range;

use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::memory::{collected, reserve};
use crate::request::{Disallowed, Request};
use crate::sink::Count;
use crate::special_tokens::Selection;
use last_piece::LastPiece;
use longest_run::LongestRuns;
use pairs::Pairs;
use search::Work;

/// Borders between pieces that a cut may change: the pattern looks a few characters ahead, and
/// white space is cut by what follows it.
const CHANGED: usize = 4;

/// Tokens of a long piece that a cut may change, before the cut and behind it.
const TOKENS_BEFORE: usize = 8;
const TOKENS_BEHIND: usize = 3;

/// Pieces of more bytes than this are long: of those the tokens tell where to cut.
const LONG_PIECE: usize = 32;

/// How many tokens are encoded again, those next to a cut, before all of a long piece is: a token
/// further away seldom depends on the cut.
const NEAR: [usize; 4] = [1, 2, 4, 8];

/// Up to this many characters between two safe cuts are all tried as the beginning of a suffix.
const STRETCH: usize = 64;

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
        let memo = Memo::default();
        Truncator { encoding: self, allowed: &request.allowed, memo: &memo }
            .prefix(text, max_tokens)
    }

    /// Where the longest suffix of `text` starts, cut between characters, that has at most
    /// `max_tokens` tokens when it is encoded on its own. Where more than 64 characters have no safe
    /// cut among them (a ruler, a long word), one more would be too many, but a still longer suffix may
    /// fit. For a pattern that is no published family all of the text is read, since it is not known
    /// where its pieces begin.
    pub fn truncate_left(&self, text: &str, max_tokens: usize, request: &Request) -> Result<usize> {
        self.check_request(text, request)?;
        let memo = Memo::default();
        Truncator { encoding: self, allowed: &request.allowed, memo: &memo }
            .suffix(text, max_tokens)
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
        let memo = Memo::default();
        Truncator { encoding: self, allowed: &request.allowed, memo: &memo }
            .chunks(text, max_tokens, overlap)
    }
}

/// Cuts texts to size for one encoding.
#[derive(Debug, Clone, Copy)]
struct Truncator<'a> {
    encoding: &'a Encoding,
    /// The special tokens that text may stand for.
    allowed: &'a Selection,
    memo: &'a Memo,
}

/// What is kept from one chunk of a text to the next one.
#[derive(Debug, Default)]
struct Memo {
    runs: LongestRuns,
    last_piece: LastPiece,
    pairs: Pairs,
    work: Work,
    /// Room for the ids of what is tried.
    ids: RefCell<Vec<u32>>,
}

impl Truncator<'_> {
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
            let (mut step, mut is_renewed) = (1, false);
            let end = loop {
                while let Some(inside) = around(&special, start) {
                    start = inside.end;
                    start += self.suffix(&text[start..done], overlap)?;
                }
                let (length, found) = self.chunk(&text[start..], max_tokens)?;
                if length > done - start {
                    special = found;
                    special.iter_mut().for_each(|at| *at = start + at.start..start + at.end);
                    break start + length;
                }
                if start == done && self.memo.work.is_done() && !is_renewed {
                    // More text may have fewer tokens than its first characters.
                    self.memo.work.renew();
                    is_renewed = true;
                    continue;
                }
                if start == done {
                    let character = text[done..ceil(text, done + 1)].to_owned();
                    return Err(Error::ChunkTooSmall { character, max_tokens });
                }
                // So much overlap leaves no room for anything new: take less of it. (Less text may be
                // more tokens.)
                start = ceil(text, start + step).min(done);
                step *= 4;
                while self.count(&text[start..done], overlap)? > overlap {
                    start = ceil(text, start + step).min(done);
                    step *= 4;
                }
            };
            reserve(&mut chunks, 1)?;
            chunks.push(start..end);
            done = end;
        }
        Ok(chunks)
    }

    /// The length in bytes of the next chunk of `text`, and the special tokens around.
    fn chunk(&self, text: &str, max_tokens: usize) -> Result<(usize, Vec<Range<usize>>)> {
        let (window, mut walk) = self.walk_window(text, max_tokens)?;
        let mut end = self.prefix_of(window, max_tokens, &walk)?;
        while let Some(span) = around(&walk.special, end) {
            end = self.prefix(&text[..span.start], max_tokens)?;
        }
        let special = std::mem::take(&mut walk.special);
        self.keep_piece(text, window, max_tokens, walk);
        Ok((end, special))
    }

    /// The tokens of `text`; some number above `limit` if there are more than that.
    fn count(&self, text: &str, limit: usize) -> Result<usize> {
        let mut count = Count::till(limit);
        let text = self.encoding.normalization().apply(text)?;
        self.encoding.encode_normal(&text, self.allowed, &mut count)?;
        Ok(count.total)
    }

    /// The same of a candidate, which is normalized and encoded as a whole. (For a pattern that is no
    /// published family each is; what that takes is not bounded.)
    fn count_candidate(&self, text: &str, limit: usize) -> Result<usize> {
        if self.encoding.splitter().is_family() {
            self.memo.work.add(2 * text.len());
        }
        self.count(text, limit)
    }

    /// The tokens of a piece of a candidate. `ids` is overwritten.
    fn count_piece(&self, piece: &[u8], ids: &mut Vec<u32>) -> Result<usize> {
        self.memo.work.add(piece.len());
        self.encoding.count_piece(piece, ids)
    }

    /// The ids of a piece of a candidate, or of a part of one, in place of those in `ids`.
    fn encode_piece(&self, piece: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        self.memo.work.add(piece.len());
        ids.clear();
        self.encoding.encode_piece(piece, ids)
    }
}

/// The span that `position` is inside of.
fn around(spans: &[Range<usize>], position: usize) -> Option<&Range<usize>> {
    spans.iter().find(|span| span.start < position && position < span.end)
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
