//! Runs SentencePiece's byte pair encoding on the core, for models in which two pieces merge
//! whenever their concatenation is a piece, in the order of scores.
//!
//! The core cuts text where no piece crosses. Some models have runs of marks as pieces that share
//! one score below all others; they merge last and only among themselves, in this module.

use std::cmp::Reverse;
use std::ops::Range;

use crate::polling::poll;
use crate::pool::Pool;

use super::Questions;
use super::bpe::Bpe;
use super::header::Header;
use super::piece::{PieceKind, UNKNOWN};
use super::pieces::SentencePieces;
use super::scored::Merging;
use super::token_lists::{MergeList, TokenList};
use crate::components::bytes::{MARK, swapped};
use crate::components::split::Split;
use crate::error::{Error, Result};

/// Maximum length of a run of marks whose ids are computed when the model is built.
const SHORT: usize = 64;

/// The core, and the merges left to this module.
#[derive(Debug)]
pub(crate) struct Core {
    bpe: Bpe,
    runs: Option<Runs>,
}

#[derive(Debug, Clone)]
struct Runs {
    mark: u32,
    /// Ids of short runs, by length.
    short: Vec<Vec<u32>>,
}

/// A piece of several characters, and its id.
type Long<'a> = (&'a str, u32);

impl Core {
    /// Builds the core; `None` if its ids could differ.
    pub(crate) fn new(
        pieces: &SentencePieces,
        byte_fallback: bool,
        split: &Split,
    ) -> Result<Option<Self>> {
        let Some(unknown) = pieces.unknown.and_then(|id| pieces.vocab.token(id)) else {
            return Ok(None);
        };
        let is_plain = !pieces.kinds.contains(&PieceKind::Unused) && !pieces.fails_on_characters();
        if !is_plain || unknown.chars().nth(1).is_none() {
            return Ok(None);
        }
        let Some(mut long) = long_pieces(pieces)? else { return Ok(None) };
        long.sort_by_key(|&(_, id)| Reverse(pieces.order_of(id)));
        let has_runs = are_runs_last(pieces, &long);
        long.retain(|&(text, _)| !has_runs || !is_run(text));
        if long.windows(2).any(|pair| pieces.order_of(pair[0].1) == pieces.order_of(pair[1].1)) {
            return Ok(None);
        }
        let mut tokens = TokenList::default();
        for (text, id) in pieces.vocab.iter() {
            let is_kept = match pieces.kind(id) {
                PieceKind::Unknown | PieceKind::Byte => true,
                // Merging can produce this piece: text is cut around user-defined characters.
                PieceKind::Normal => {
                    !(has_runs && is_run(text)) && first_missing(pieces, text).is_none()
                }
                _ => false,
            };
            if is_kept {
                tokens.push(text, id);
            }
        }
        let header = Header::of_characters(unknown.to_owned(), byte_fallback);
        let merges = merges(pieces, &long)?;
        let bpe = match Bpe::new(header, &tokens, &merges, false, split.splitter()?) {
            Ok(bpe) if bpe.table.is_core => bpe,
            Ok(_) | Err(Error::Unsupported { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let runs = if has_runs { Runs::new(pieces)? } else { None };
        Ok(Some(Self { bpe, runs }))
    }

    /// Copies the core for a different split, with empty caches.
    pub(crate) fn with_split(&self, split: &Split) -> Result<Option<Self>> {
        let runs = self.runs.clone();
        Ok(self.bpe.with_split(split)?.map(|bpe| Self { bpe, runs }))
    }

    pub(crate) fn workspaces(&self) -> &Pool {
        self.bpe.workspaces()
    }

    /// See [`Model::are_apart`](super::Model::are_apart).
    pub(crate) fn are_apart(&self, before: char, after: char) -> Option<bool> {
        let is_run = self.runs.is_some() && before == MARK && after == MARK;
        if is_run { Some(false) } else { self.bpe.are_apart(before, after) }
    }

    /// See [`Model::encode_marked`](super::Model::encode_marked).
    pub(crate) fn append_marked(
        &self,
        pieces: &SentencePieces,
        text: &str,
        is_prefixed: bool,
        ids: &mut Vec<u32>,
    ) -> Result<bool> {
        let from = ids.len();
        Ok(self.bpe.encode_marked(text, is_prefixed, ids)? && self.merge_runs(pieces, from, ids)?)
    }

    /// Appends the ids of a text, cut at user-defined pieces.
    pub(crate) fn append(
        &self,
        pieces: &SentencePieces,
        text: &str,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let (mut start, mut at) = (0, 0);
        while !pieces.user_defined.is_empty() && at < text.len() {
            let begins = |&byte: &u8| pieces.user_defined.begins_with(byte);
            let Some(next) = text.as_bytes()[at..].iter().position(begins) else { break };
            poll(next)?;
            at += next;
            // Pieces begin at character boundaries.
            match text.get(at..).and_then(|rest| pieces.user_defined.longest(rest)) {
                Some((length, id)) => {
                    self.append_run(pieces, &text[start..at], ids)?;
                    ids.push(id);
                    at += length;
                    start = at;
                }
                None => at += 1,
            }
        }
        self.append_run(pieces, &text[start..], ids)
    }

    /// Calls `found` with the id and the bytes of each piece of a text; [`UNKNOWN`] for characters
    /// that are not pieces.
    pub(crate) fn each_piece(
        &self,
        pieces: &SentencePieces,
        text: &str,
        found: &mut dyn FnMut(u32, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut ids = Vec::new();
        self.append(pieces, text, &mut ids)?;
        let (mut ids, mut start) = (ids.into_iter(), 0);
        while let Some(id) = ids.next() {
            let rest = &text[start..];
            let first = rest.chars().next().map_or(0, char::len_utf8);
            let (id, length) = match pieces.kind(id) {
                // One token for each byte of the character.
                PieceKind::Byte => {
                    ids.by_ref().take(first - 1).for_each(drop);
                    (UNKNOWN, first)
                }
                PieceKind::Unknown => (UNKNOWN, unknown_length(pieces, rest)),
                _ => (id, pieces.vocab.token(id).map_or(0, str::len)),
            };
            poll(length)?;
            found(id, start..start + length)?;
            start += length;
        }
        Ok(())
    }

    fn append_run(&self, pieces: &SentencePieces, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        self.append_swapped(pieces, &swapped(text)?, ids)
    }

    /// Appends the ids of a [swapped] text without user-defined pieces.
    pub(crate) fn append_swapped(
        &self,
        pieces: &SentencePieces,
        text: &str,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let from = ids.len();
        self.bpe.append_swapped(text, ids)?;
        self.merge_runs(pieces, from, ids).map(|_| ())
    }

    /// Merges adjacent marks among the ids from index `from`. Returns true.
    fn merge_runs(&self, pieces: &SentencePieces, from: usize, ids: &mut Vec<u32>) -> Result<bool> {
        let Some(Runs { mark, short }) = &self.runs else { return Ok(true) };
        if !ids[from..].windows(2).any(|pair| pair == [*mark; 2]) {
            return Ok(true);
        }
        let rest = ids.split_off(from);
        for run in rest.chunk_by(|a, b| (*a == *mark) == (*b == *mark)) {
            match short.get(run.len()) {
                _ if run[0] != *mark => ids.extend_from_slice(run),
                Some(made) => ids.extend_from_slice(made),
                None => ids.extend(run_ids(pieces, run.len())?),
            }
        }
        Ok(true)
    }
}

impl Runs {
    fn new(pieces: &SentencePieces) -> Result<Option<Self>> {
        let Some(mark) = pieces.vocab.id(MARK.encode_utf8(&mut [0; 4])) else { return Ok(None) };
        let short = (0..SHORT).map(|length| run_ids(pieces, length)).collect::<Result<_>>()?;
        Ok(Some(Self { mark, short }))
    }
}

/// Returns the ids of a run of `length` marks.
fn run_ids(pieces: &SentencePieces, length: usize) -> Result<Vec<u32>> {
    let (text, mut ids) = ("\u{2581}".repeat(length), Vec::new());
    Merging::each_token(
        pieces,
        &text,
        |_, _| false,
        |id, _| {
            ids.push(id);
            Ok(())
        },
    )?;
    Ok(ids)
}

fn is_run(text: &str) -> bool {
    text.chars().all(|character| character == MARK) && text.chars().nth(1).is_some()
}

fn is_normal(pieces: &SentencePieces, text: &str) -> bool {
    pieces.vocab.id(text).is_some_and(|id| pieces.kind(id) == PieceKind::Normal)
}

/// Returns the length of the leading characters of a text that are not pieces.
fn unknown_length(pieces: &SentencePieces, text: &str) -> usize {
    let is_piece = |at: usize, character: char| {
        pieces.first(text, at, |_, _| false).1
            || is_normal(pieces, character.encode_utf8(&mut [0; 4]))
    };
    let end = text.char_indices().find(|&(at, character)| is_piece(at, character));
    end.map_or(text.len(), |(at, _)| at)
}

/// Returns the first character of a piece that is not itself a normal piece.
fn first_missing(pieces: &SentencePieces, text: &str) -> Option<char> {
    text.chars().find(|character| !is_normal(pieces, character.encode_utf8(&mut [0; 4])))
}

/// Returns the pieces of several characters that merging can produce; `None` if a piece has a
/// character that is not a piece.
fn long_pieces(pieces: &SentencePieces) -> Result<Option<Vec<Long<'_>>>> {
    let mut long = Vec::new();
    for (text, id) in pieces.vocab.iter() {
        poll(text.len())?;
        if pieces.kind(id) != PieceKind::Normal || text.chars().nth(1).is_none() {
            continue;
        }
        match first_missing(pieces, text) {
            None => long.push((text, id)),
            Some(missing) => {
                let id = pieces.vocab.id(missing.encode_utf8(&mut [0; 4]));
                if id.is_none_or(|id| pieces.kind(id) != PieceKind::UserDefined) {
                    return Ok(None);
                }
            }
        }
    }
    Ok(Some(long))
}

/// Whether runs of marks rank after all other pieces, and are part of no other piece.
fn are_runs_last(pieces: &SentencePieces, long: &[Long<'_>]) -> bool {
    let others = long.iter().take_while(|(text, _)| !is_run(text)).count();
    let (others, runs) = long.split_at(others);
    let order = |piece: Option<&Long<'_>>| piece.map(|&(_, id)| pieces.order_of(id));
    let is_apart = others.is_empty() || order(others.last()) > order(runs.first());
    !runs.is_empty()
        && is_apart
        && runs.iter().all(|(text, _)| is_run(text))
        && !others.iter().any(|(text, _)| text.contains("\u{2581}\u{2581}"))
}

/// Returns the pairs that merge into each piece, in the order of the pieces.
fn merges(pieces: &SentencePieces, long: &[Long<'_>]) -> Result<MergeList> {
    let mut merges = MergeList::default();
    for (text, _) in long {
        poll(text.len())?;
        for (cut, _) in text.char_indices().skip(1) {
            let (left, right) = text.split_at(cut);
            if is_normal(pieces, left) && is_normal(pieces, right) {
                merges.push(left, right);
            }
        }
    }
    Ok(merges)
}
