//! What a text that is still being typed may become.

use std::collections::BTreeSet;

use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::sink::Pieces;
use crate::special_tokens::Selection;

/// The tokens of a vocabulary in the order of their bytes: those that start alike stand together.
#[derive(Debug)]
pub struct ByBytes {
    /// Ranks.
    order: Vec<u32>,
    longest: usize,
}

impl ByBytes {
    /// Sorts the tokens of `encoding`.
    pub fn new(encoding: &Encoding) -> Self {
        let vocabulary = encoding.vocabulary();
        let mut order: Vec<u32> = (0..vocabulary.len() as u32).collect();
        order.sort_unstable_by_key(|&rank| vocabulary.token(rank));
        let longest = order.iter().map(|&rank| vocabulary.token(rank).len()).max().unwrap_or(0);
        Self { order, longest }
    }

    /// The tokens, as ranks, that start with `prefix`.
    fn starting_with(&self, encoding: &Encoding, prefix: &[u8]) -> &[u32] {
        let token = |&rank: &u32| encoding.vocabulary().token(rank);
        let from = self.order.partition_point(|rank| token(rank) < prefix);
        let length = self.order[from..].partition_point(|rank| token(rank).starts_with(prefix));
        &self.order[from..from + length]
    }
}

/// The tokens of `text` that stay whatever is written after it, and the ways in which the rest
/// of it may come out: each a sequence of ids that covers the rest and ends with a token that
/// reaches its end or beyond. Text that ends with an allowed special token has no rest.
pub fn encode_with_unstable(
    encoding: &Encoding,
    by_bytes: &ByBytes,
    text: &str,
    allowed: &Selection,
) -> Result<(Vec<u32>, BTreeSet<Vec<u32>>)> {
    let mut walk = Pieces::default();
    encoding.encode(text, allowed, &mut walk)?;
    let mut stable = walk.ids;
    let ends_with_special =
        stable.last().is_some_and(|&id| encoding.vocabulary().rank_of_id(id).is_none());
    let Some(&(_, first)) = walk.starts.last().filter(|_| !ends_with_special) else {
        return Ok((stable, BTreeSet::new()));
    };
    let rest = encoding.decode_bytes(&stable[unstable_from(encoding, &stable, first)..])?;
    stable.truncate(unstable_from(encoding, &stable, first));
    let completions = completions(encoding, by_bytes, &rest)?;
    Ok((stable, completions))
}

/// The first of `ids` that may change when text is added: the first of the last piece, or of the
/// white space before it, since pieces of white space may grow together.
fn unstable_from(encoding: &Encoding, ids: &[u32], last_piece: usize) -> usize {
    let is_space = |id: u32| {
        encoding
            .token_bytes(id)
            .is_some_and(|bytes| bytes.iter().all(|byte| matches!(byte, b' ' | b'\n' | b'\t')))
    };
    if !ids.get(last_piece).is_some_and(|&id| is_space(id)) {
        return last_piece;
    }
    ids[..last_piece].iter().rposition(|&id| !is_space(id)).map_or(0, |place| place + 1)
}

/// The sequences of ids that `rest` may become a prefix of.
fn completions(encoding: &Encoding, by_bytes: &ByBytes, rest: &[u8]) -> Result<BTreeSet<Vec<u32>>> {
    let vocabulary = encoding.vocabulary();
    let single = by_bytes.starting_with(encoding, rest).iter();
    let mut found: BTreeSet<Vec<u32>> = single.map(|&rank| vec![vocabulary.id(rank)]).collect();

    // A token may straddle the end of `rest` from every position in it. No token is longer than
    // the longest, so positions further back have none.
    let first = rest.len().saturating_sub(by_bytes.longest).max(1);
    let mut text = Vec::new();
    for cut in first..rest.len() {
        for &rank in by_bytes.starting_with(encoding, &rest[cut..]) {
            text.clear();
            text.extend_from_slice(&rest[..cut]);
            text.extend_from_slice(vocabulary.token(rank));
            found.insert(covering(encoding, &text, rest.len())?);
        }
    }

    // White space at the end may be cut off by what follows it: `\s+(?!\S)`.
    let last = rest.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty());
    if let Some(space) = last.and_then(|chunk| chunk.valid().chars().next_back())
        && space.is_whitespace()
        && rest.len() > space.len_utf8()
    {
        let (before, space) = rest.split_at(rest.len() - space.len_utf8());
        let mut ids = Vec::new();
        encoding.encode_piece(before, &mut ids)?;
        encoding.encode_piece(space, &mut ids)?;
        found.insert(ids);
    }
    Ok(found)
}

/// The first ids of `text` that together have at least `length` bytes.
fn covering(encoding: &Encoding, text: &[u8], length: usize) -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    match std::str::from_utf8(text) {
        Ok(text) => encoding.encode(text, &Selection::None, &mut ids)?,
        Err(_) => encoding.encode_piece(text, &mut ids)?,
    }
    let mut covered = 0;
    let mut count = 0;
    while covered < length && count < ids.len() {
        let id = ids[count];
        covered += encoding.token_bytes(id).ok_or(Error::UnknownId(u64::from(id)))?.len();
        count += 1;
    }
    ids.truncate(count);
    Ok(ids)
}

/// The ids of bytes that need not be UTF-8. Text up to the first invalid byte is encoded as
/// text; the rest, and the last piece before it, as one piece.
pub fn encode_bytes(encoding: &Encoding, bytes: &[u8]) -> Result<Vec<u32>> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => {
            let mut ids = Vec::new();
            encoding.encode(text, &Selection::None, &mut ids)?;
            return Ok(ids);
        }
        Err(error) => error,
    };
    let (valid, invalid) = bytes.split_at(error.valid_up_to());
    let text = std::str::from_utf8(valid).expect("UTF-8 up to the first invalid byte");
    let mut walk = Pieces::default();
    encoding.encode(text, &Selection::None, &mut walk)?;
    let mut ids = walk.ids;
    let mut rest = Vec::new();
    if let Some(&(_, first)) = walk.starts.last() {
        let from = unstable_from(encoding, &ids, first);
        rest = encoding.decode_bytes(&ids[from..])?;
        ids.truncate(from);
    }
    rest.extend_from_slice(invalid);
    encoding.encode_piece(&rest, &mut ids)?;
    Ok(ids)
}
