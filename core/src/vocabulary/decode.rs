//! Decodes ids to bytes.

use super::Vocabulary;
use super::tokens::Tokens;
use crate::error::Result;
use crate::memory::{prefetch, reserve};

/// Width of a copy: tokens of up to this many bytes are copied as if they had this many. Most
/// tokens are shorter, and a copy of constant size is one load and one store. The next token
/// overwrites the excess.
const WIDE: usize = 16;

/// Number of tokens copied between two checks of the output's capacity.
const IDS_AT_ONCE: usize = 64;

/// Prefetch distances in ids: for the start of a token, and for its bytes.
const START_AHEAD: usize = 96;
const BYTES_AHEAD: usize = 48;

impl Vocabulary {
    /// Appends the bytes of `ids` to `bytes`, up to the first id that is not a token of the
    /// vocabulary. Returns the number of ids decoded.
    pub(crate) fn append_bytes(&self, ids: &[u32], bytes: &mut Vec<u8>) -> Result<usize> {
        if !self.tokens.ids_are_ranks() {
            for (done, &id) in ids.iter().enumerate() {
                let Some(rank) = self.rank_of_id(id) else { return Ok(done) };
                reserve(bytes, self.token(rank).len())?;
                bytes.extend_from_slice(self.token(rank));
            }
            return Ok(ids.len());
        }
        let mut end = bytes.len();
        let mut done = 0;
        for block in ids.chunks(IDS_AT_ONCE) {
            let copied = self.tokens.copy_block(block, &ids[done..], bytes, &mut end)?;
            done += copied;
            if copied < block.len() {
                break;
            }
        }
        bytes.truncate(end);
        Ok(done)
    }
}

impl Tokens {
    /// Copies the tokens of a block of ranks to `bytes[end..]` and advances `end`; `bytes` grows to
    /// at least the needed length. `ahead` has the ids from the block on. Returns the number of
    /// tokens copied: all before the first id that is not a token.
    fn copy_block(
        &self,
        block: &[u32],
        ahead: &[u32],
        bytes: &mut Vec<u8>,
        end: &mut usize,
    ) -> Result<usize> {
        let (arena, starts) = (&*self.arena, &*self.starts);
        make_room(bytes, *end, block.len())?;
        let mut copied = 0;
        let mut at = *end;
        for (index, &rank) in block.iter().enumerate() {
            prefetch_token(arena, starts, ahead, index);
            let rank = rank as usize;
            let Some(&[start, stop]) = starts.get(rank..).and_then(<[u32]>::first_chunk::<2>)
            else {
                break;
            };
            let (start, stop) = (start as usize, stop as usize);
            let length = stop - start;
            let source = arena.get(start..).and_then(<[u8]>::first_chunk::<WIDE>);
            let target = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<WIDE>);
            match (source, target) {
                (Some(source), Some(target)) if length <= WIDE => *target = *source,
                _ => {
                    bytes.truncate(at);
                    reserve(bytes, length)?;
                    bytes.extend_from_slice(&arena[start..stop]);
                    make_room(bytes, at + length, block.len() - index)?;
                }
            }
            at += length;
            copied = index + 1;
        }
        *end = at;
        Ok(copied)
    }
}

/// Extends `bytes` so that `tokens` wide copies fit after byte `end`.
#[inline(always)]
fn make_room(bytes: &mut Vec<u8>, end: usize, tokens: usize) -> Result<()> {
    let room = end + tokens * WIDE;
    if bytes.len() < room {
        reserve(bytes, room - bytes.len())?;
        bytes.resize(room, 0);
    }
    Ok(())
}

#[inline(always)]
fn prefetch_token(arena: &[u8], starts: &[u32], ids: &[u32], index: usize) {
    if let Some(start) = ids.get(index + START_AHEAD).and_then(|&id| starts.get(id as usize)) {
        prefetch(start);
    }
    if let Some(&start) = ids.get(index + BYTES_AHEAD).and_then(|&id| starts.get(id as usize))
        && let Some(byte) = arena.get(start as usize)
    {
        prefetch(byte);
    }
}
