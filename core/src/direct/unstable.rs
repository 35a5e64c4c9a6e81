//! Finds the tokens that the end of a text may become as more text is typed.

use std::collections::BTreeSet;

use crate::direct::Direct;
use crate::error::Result;
use crate::memory::append;
use crate::polling::poll;
use crate::request::Request;
use crate::special_tokens::Selection;

impl Direct {
    /// Returns the tokens of `text` that are the same for every continuation, and the possible ids
    /// of the rest: sequences of ids that cover the rest and whose last token ends with the rest or
    /// extends beyond it. Text that ends with an allowed special token has no rest.
    pub fn encode_with_unstable(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, BTreeSet<Vec<u32>>)> {
        let text = &*self.prepare(text, request)?;
        let mut stable = Vec::new();
        self.encode_normal(text, &request.allowed, &mut stable)?;
        if stable.last().is_none_or(|&id| self.vocabulary().rank_of_id(id).is_none()) {
            return Ok((stable, BTreeSet::new()));
        }
        let first = stable.len() - self.last_piece_size(text, &request.allowed)?;
        let from = unstable_from(self, &stable, first);
        let rest = self.decode_bytes(&stable[from..])?;
        stable.truncate(from);
        let completions = completions(self, &rest)?;
        Ok((stable, completions))
    }

    /// Returns how many ids the last piece of a normalized text has.
    fn last_piece_size(&self, text: &str, allowed: &Selection) -> Result<usize> {
        let (mut last, mut ids) = (Vec::new(), Vec::new());
        self.split_normal(text, allowed, |run, pieces| {
            if let Some(piece) = pieces.last() {
                last.clear();
                append(&mut last, &run.as_bytes()[piece.start..piece.end])?;
            }
            Ok(())
        })?;
        self.encode_piece(&last, &mut ids)?;
        Ok(ids.len())
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
        let (mut ids, mut rest) = (Vec::new(), Vec::new());
        self.encode_normal(text, &Selection::None, &mut ids)?;
        if !ids.is_empty() {
            let first = ids.len() - self.last_piece_size(text, &Selection::None)?;
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
/// the last piece, or of the whitespace before it, since pieces of whitespace may merge.
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

    // Only a token that starts this close to the end can extend beyond `rest`.
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

    // Later text may split whitespace at the end: `\s+(?!\S)`.
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

/// Returns the shortest prefix of `ids` with at least `length` bytes.
fn covering(encoding: &Direct, mut ids: Vec<u32>, length: usize) -> Result<Vec<u32>> {
    let (mut covered, mut count) = (0, 0);
    while covered < length && count < ids.len() {
        covered += encoding.text_size(ids[count]);
        count += 1;
    }
    ids.truncate(count);
    Ok(ids)
}
