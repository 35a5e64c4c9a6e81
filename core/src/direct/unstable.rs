//! Finds the tokens that the end of a text may become as more is typed.

use std::collections::BTreeSet;

use crate::direct::Direct;
use crate::error::{Error, Result};
use crate::polling::poll;
use crate::request::Request;
use crate::sink::Pieces;
use crate::special_tokens::Selection;

impl Direct {
    /// Returns the tokens of `text` that are the same for every continuation, and the possible ids
    /// of the rest: sequences of ids that cover the rest and end with a token that reaches its end
    /// or extends beyond it. Text that ends with an allowed special token has no rest.
    pub fn encode_with_unstable(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, BTreeSet<Vec<u32>>)> {
        let text = &*self.prepare(text, request)?;
        let mut walk = Pieces::default();
        self.encode_normal(text, &request.allowed, &mut walk)?;
        let mut stable = walk.ids;
        let ends_with_special =
            stable.last().is_some_and(|&id| self.vocabulary().rank_of_id(id).is_none());
        let Some(&(_, first)) = walk.starts.last().filter(|_| !ends_with_special) else {
            return Ok((stable, BTreeSet::new()));
        };
        let from = unstable_from(self, &stable, first);
        let rest = self.decode_bytes(&stable[from..])?;
        stable.truncate(from);
        let completions = completions(self, &rest)?;
        Ok((stable, completions))
    }

    /// Returns the ids of bytes that need not be UTF-8. Text up to the first invalid byte is
    /// encoded as ordinary text, without normalization; the rest, with the last piece before it, as
    /// one piece.
    pub fn encode_bytes(&self, bytes: &[u8]) -> Result<Vec<u32>> {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => {
                let mut ids = Vec::new();
                self.encode_normal(text, &Selection::None, &mut ids)?;
                return Ok(ids);
            }
            Err(error) => error,
        };
        let (valid, invalid) = bytes.split_at(error.valid_up_to());
        let text = std::str::from_utf8(valid).unwrap_or_default();
        let mut walk = Pieces::default();
        self.encode_normal(text, &Selection::None, &mut walk)?;
        let mut ids = walk.ids;
        let mut rest = Vec::new();
        if let Some(&(_, first)) = walk.starts.last() {
            let from = unstable_from(self, &ids, first);
            rest = self.decode_bytes(&ids[from..])?;
            ids.truncate(from);
        }
        rest.extend_from_slice(invalid);
        self.encode_piece(&rest, &mut ids)?;
        Ok(ids)
    }
}

/// Returns the index of the first of `ids` that may change when text is appended: the first id of
/// the last piece, or of the whitespace before it, since pieces of whitespace may grow together.
fn unstable_from(encoding: &Direct, ids: &[u32], last_piece: usize) -> usize {
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

/// Returns the id sequences for texts that start with `rest`.
fn completions(encoding: &Direct, rest: &[u8]) -> Result<BTreeSet<Vec<u32>>> {
    let (vocabulary, tokens) = (encoding.vocabulary(), encoding.sorted_tokens());
    let single = tokens.starting_with(vocabulary, rest).iter();
    let mut found: BTreeSet<Vec<u32>> = single.map(|&rank| vec![vocabulary.id(rank)]).collect();

    // A token may straddle the end of `rest` from every position within the length of the longest
    // token.
    let first = rest.len().saturating_sub(tokens.longest()).max(1);
    let mut text = Vec::new();
    for cut in first..rest.len() {
        for &rank in tokens.starting_with(vocabulary, &rest[cut..]) {
            text.clear();
            text.extend_from_slice(&rest[..cut]);
            text.extend_from_slice(vocabulary.token(rank));
            poll(text.len())?;
            found.insert(covering(encoding, encode(encoding, &text)?, rest.len())?);
        }
    }

    // The text that follows may cut off whitespace at the end: `\s+(?!\S)`.
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

/// Returns the ids of bytes: as text if they are UTF-8, otherwise as one piece.
fn encode(encoding: &Direct, bytes: &[u8]) -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    match std::str::from_utf8(bytes) {
        Ok(text) => encoding.encode_normal(text, &Selection::None, &mut ids)?,
        Err(_) => encoding.encode_piece(bytes, &mut ids)?,
    }
    Ok(ids)
}

fn token_length(encoding: &Direct, id: u32) -> Result<usize> {
    encoding.token_bytes(id).map(<[u8]>::len).ok_or(Error::UnknownId(id.into()))
}

/// Returns the shortest prefix of `ids` with at least `length` bytes.
fn covering(encoding: &Direct, mut ids: Vec<u32>, length: usize) -> Result<Vec<u32>> {
    let (mut covered, mut count) = (0, 0);
    while covered < length && count < ids.len() {
        covered += token_length(encoding, ids[count])?;
        count += 1;
    }
    ids.truncate(count);
    Ok(ids)
}
