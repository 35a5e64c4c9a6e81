//! Merges pieces by the list of a file: for files whose merges ranks cannot express, and for pieces
//! with bytes that are not tokens.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use bpe_core::memory::{collected, push, reserve};
use bpe_core::polling::poll;
use foldhash::fast::FixedState;

use super::header::Header;
use crate::bytes::{CHAR_OF, is_in_utf8, text_length};
use crate::error::{Error, Result};

pub(crate) type FastMap<K, V> = HashMap<K, V, FixedState>;

/// Two tokens, by id.
pub(crate) type Pair = (u32, u32);

/// The work of a merge, in bytes of text: see [`poll`].
const WORK: usize = 32;

/// The treatment of bytes that are not tokens.
#[derive(Debug)]
pub(crate) enum Unknown {
    /// Drops the byte; the bytes around it merge.
    Dropped,
    /// Replaces it by a token; if `fused`, one token replaces several bytes in a row.
    Token { id: u32, fused: bool },
    /// Fails, because the unknown token, with this name, is not in the vocabulary.
    Fails(String),
}

/// An unknown token and the length of its text.
pub(crate) type Waiting = Option<(u32, usize)>;

impl Unknown {
    /// `id` looks up a token of the vocabulary by its name.
    pub(crate) fn new(header: &Header, id: impl Fn(&str) -> Option<u32>) -> Self {
        match &header.unk_token {
            None => Self::Dropped,
            Some(token) => match id(token) {
                Some(id) => Self::Token { id, fused: header.fuse_unk },
                None => Self::Fails(token.clone()),
            },
        }
    }

    /// Takes text that is not a token, of this length, which `name` names in an error. Returns an
    /// unknown token that is complete. Another is left in `waiting` until a token of the vocabulary
    /// follows, or the end: as in `tokenizers`, it comes after the bytes of text that follows it.
    pub(crate) fn meet(
        &self,
        waiting: &mut Waiting,
        length: usize,
        name: impl FnOnce() -> String,
    ) -> Result<Waiting> {
        match (self, waiting) {
            (Self::Dropped, _) => Ok(None),
            (Self::Token { fused: true, .. }, Some((_, before))) => {
                *before += length;
                Ok(None)
            }
            (&Self::Token { id, .. }, waiting) => Ok(waiting.replace((id, length))),
            (Self::Fails(token), _) => Err(Error::Invalid(format!(
                "model.unk_token: {token:?} is not in the vocabulary, and the text contains a {}",
                name()
            ))),
        }
    }
}

/// The list of merges, by ids.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The id of each byte that is a token.
    pub(crate) bytes: Vec<Option<u32>>,
    /// The tokens for the UTF-8 of the character that represents each other byte; empty if the
    /// vocabulary lacks one of them.
    pub(crate) fallback: Vec<Vec<u32>>,
    pub(crate) unknown: Unknown,
    /// For each pair, its place in the list and the id of the token that it becomes.
    pub(crate) pairs: FastMap<Pair, (u32, u32)>,
}

impl Listed {
    /// Whether `text` has a byte that is not a token.
    pub(crate) fn lacks_a_byte_of(&self, text: &[u8]) -> bool {
        text.iter().any(|&byte| self.bytes[usize::from(byte)].is_none())
    }

    /// Whether each byte that UTF-8 has is a token.
    pub(crate) fn has_all_bytes(&self) -> bool {
        (0..=255).all(|byte| !is_in_utf8(byte) || self.bytes[usize::from(byte)].is_some())
    }

    /// The ids of single bytes, each with the length of its text in a byte-level vocabulary.
    fn parts(&self, piece: &[u8]) -> Result<Vec<(u32, usize)>> {
        let mut parts: Vec<(u32, usize)> = Vec::new();
        reserve(&mut parts, text_length(piece))?;
        let mut waiting = None;
        for &byte in piece {
            let index = usize::from(byte);
            let length = CHAR_OF[index].len_utf8();
            if let Some(id) = self.bytes[index] {
                parts.extend(waiting.take().into_iter().chain([(id, length)]));
            } else if !self.fallback[index].is_empty() {
                parts.extend(self.fallback[index].iter().map(|&id| (id, 1)));
            } else {
                let name = || format!("byte that is not a token, 0x{byte:02x}");
                parts.extend(self.unknown.meet(&mut waiting, length, name)?);
            }
        }
        parts.extend(waiting);
        Ok(parts)
    }

    /// Merges a piece. Calls `found` with the id of each token and the length of its text, until it
    /// fails.
    pub(crate) fn merge(
        &self,
        piece: &[u8],
        found: impl FnMut(u32, usize) -> Result<()>,
    ) -> Result<()> {
        merge_parts(self.parts(piece)?, &self.pairs, || false, found)
    }
}

/// Merges parts, which are ids and the lengths of their texts: the pair that comes first in the list,
/// and of equal pairs the leftmost, until no pair is left. A pair for which `is_skipped` waits for the
/// next that is merged. Calls `found` with the id of each token and the length of its text, until it
/// fails.
pub(crate) fn merge_parts(
    singles: Vec<(u32, usize)>,
    pairs: &FastMap<Pair, (u32, u32)>,
    mut is_skipped: impl FnMut() -> bool,
    mut found: impl FnMut(u32, usize) -> Result<()>,
) -> Result<()> {
    let mut parts: Vec<u32> = collected(singles.iter().map(|part| part.0))?;
    let mut lengths: Vec<usize> = collected(singles.iter().map(|part| part.1))?;
    let end = parts.len();
    if u32::try_from(end).is_err() {
        return Err(Error::OutOfMemory { bytes: end * size_of::<Merge>() });
    }
    // 0 marks a part that was merged into the one before.
    let mut next: Vec<usize> = collected(1..=end)?;
    let mut previous: Vec<usize> = collected((0..end).map(|at| at.wrapping_sub(1)))?;
    let merge = |parts: &[u32], next: &[usize], left: usize| -> Option<Merge> {
        let right = *parts.get(next[left])?;
        let &(place, product) = pairs.get(&(parts[left], right))?;
        Some(Reverse((place, left as u32, product)))
    };
    let first = (0..end).filter_map(|left| merge(&parts, &next, left));
    let mut queue: BinaryHeap<Merge> = collected(first)?.into();
    let mut skipped = Vec::new();
    while let Some(top) = queue.pop() {
        poll(WORK)?;
        if is_skipped() {
            push(&mut skipped, top)?;
            continue;
        }
        for again in skipped.drain(..) {
            enqueue(&mut queue, again)?;
        }
        let Reverse((_, left, product)) = top;
        let left = left as usize;
        let is_valid = |&Reverse((_, _, now)): &Merge| next[left] != 0 && now == product;
        if merge(&parts, &next, left).filter(is_valid).is_none() {
            continue;
        }
        let right = next[left];
        parts[left] = product;
        lengths[left] += lengths[right];
        next[left] = next[right];
        next[right] = 0;
        if next[left] < end {
            previous[next[left]] = left;
        }
        for left in [previous[left], left] {
            if left < end
                && let Some(more) = merge(&parts, &next, left)
            {
                enqueue(&mut queue, more)?;
            }
        }
    }
    let mut at = 0;
    while at < end {
        found(parts[at], lengths[at])?;
        at = next[at];
    }
    Ok(())
}

/// The place of a pair in the list, its first part, and the token that it becomes.
type Merge = Reverse<(u32, u32, u32)>;

fn enqueue(queue: &mut BinaryHeap<Merge>, merge: Merge) -> Result<()> {
    if queue.len() == queue.capacity() {
        let more = queue.capacity().max(8);
        let bytes = more * size_of::<Merge>();
        queue.try_reserve(more).map_err(|_| Error::OutOfMemory { bytes })?;
    }
    queue.push(merge);
    Ok(())
}
