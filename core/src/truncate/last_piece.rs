//! The tokens of a long piece, kept from one chunk to the next one, which begins inside of it.

use std::cell::RefCell;

use super::walk::Walk;
use super::{LONG_PIECE, NEAR, Truncator, ceil};
use crate::encoding::Encoding;
use crate::error::Result;
use crate::memory::append;

/// The long piece in which the limit of a chunk was passed. Places are counted from the end of the
/// text, since of each chunk only the text from its beginning on is known.
#[derive(Debug, Default)]
struct Piece {
    start: usize,
    end: usize,
    /// The end of the window that was read.
    window_end: usize,
    /// None if there is no such piece.
    ids: Vec<u32>,
}

/// The last such piece.
#[derive(Debug, Default)]
pub(super) struct LastPiece(RefCell<Piece>);

/// The first piece of a window.
pub(super) struct KnownPiece {
    /// Its end.
    pub(super) end: usize,
    /// The end of a window in which it is that piece.
    pub(super) window: usize,
    pub(super) ids: Vec<u32>,
}

/// How many times as long as others the window of a piece may be.
const MOST_WINDOWS: usize = 16;

impl Truncator<'_> {
    /// Keeps the piece in which the limit was passed in the walk over a window of `text`.
    pub(super) fn keep_piece(&self, text: &str, window: &str, limit: usize, walk: Walk<'_>) {
        let mut last = self.memo.last_piece.0.borrow_mut();
        last.ids.clear();
        let next = walk.borders.partition_point(|border| border.before <= limit);
        let start = walk.borders[next - 1].position;
        let end = walk.borders.get(next).map_or(window.len(), |border| border.position);
        let length: usize = walk.passed.iter().map(|&id| length(self.encoding, id)).sum();
        if walk.is_normal() && length > LONG_PIECE && length == end - start {
            let [start, end, window_end] = [start, end, window.len()].map(|at| text.len() - at);
            *last = Piece { start, end, window_end, ids: walk.passed };
        }
    }

    /// The first piece of `text`, if it is what is left of the last one, and a window for it. Others are
    /// `size` long.
    pub(super) fn known_piece(&self, text: &str, size: usize) -> Result<Option<KnownPiece>> {
        let last = self.memo.last_piece.0.borrow();
        if last.ids.is_empty() || text.len() > last.start || text.len() <= last.end + LONG_PIECE {
            return Ok(None);
        }
        let end = text.len() - last.end;
        let window = if last.end == last.window_end { end } else { ceil(text, end.max(size)) };
        // (Looking through far more than is needed again and again is slower.)
        if window / MOST_WINDOWS > size
            || self.encoding.splitter().piece_end(&text[..window], 0) != Some(end)
        {
            return Ok(None);
        }
        let before = last.start - text.len();
        let (mut encoded, mut position, mut tokens) = (Vec::new(), 0, 0);
        for (index, &id) in last.ids.iter().enumerate() {
            if position > before && text.is_char_boundary(position - before) {
                tokens += 1;
                if NEAR.contains(&tokens) {
                    encoded.clear();
                    let bytes = &text.as_bytes()[..position - before];
                    self.encoding.encode_piece(bytes, &mut encoded)?;
                    if self.stay_apart(encoded[encoded.len() - 1], id) {
                        append(&mut encoded, &last.ids[index..])?;
                        return Ok(Some(KnownPiece { end, window, ids: encoded }));
                    }
                }
                if tokens == NEAR[NEAR.len() - 1] {
                    break;
                }
            }
            position += length(self.encoding, id);
        }
        Ok(None)
    }
}

/// How many bytes a token has.
fn length(encoding: &Encoding, id: u32) -> usize {
    encoding.token_bytes(id).map_or(0, <[u8]>::len)
}
