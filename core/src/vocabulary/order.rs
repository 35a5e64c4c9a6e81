//! Sorts tokens by their bytes.

use super::NONE;
use super::rank_list::shown;
use crate::error::{Error, Result};
use crate::memory::prefetch;
use crate::polling::poll;

/// Ranks of tokens, sorted by the bytes of the tokens.
#[derive(Debug)]
pub(super) struct ByBytes {
    ranks: Vec<u32>,
    /// Length of the prefix that each token shares with the previous token.
    shared: Vec<u32>,
}

/// Number of bytes compared at once.
const CHUNK: usize = 8;
/// Maximum size of a group of tokens that is compared byte by byte.
const SMALL_GROUP: usize = 16;
/// Prefetch distance in tokens for bytes; starts are prefetched twice as far ahead.
const AHEAD: usize = 16;

impl ByBytes {
    /// Sorts all tokens of a vocabulary. Refuses equal tokens.
    ///
    /// Reads each byte of a token once, in chunks: tokens are sorted by their first eight bytes,
    /// groups with the same first eight by the next eight, and so on.
    pub(super) fn new(starts: &[u32], arena: &[u8], ids: impl Fn(u32) -> u32) -> Result<Self> {
        let token =
            |rank: u32| &arena[starts[rank as usize] as usize..starts[rank as usize + 1] as usize];
        let count = starts.len() - 1;
        // Each entry packs a chunk, its number of bytes, and the rank.
        let mut entries: Vec<u128> = (0..count as u32).map(u128::from).collect();
        let mut unsorted = vec![(0, count, 0)];
        while let Some((from, to, depth)) = unsorted.pop() {
            let group = &mut entries[from..to];
            poll(group.len())?;
            if group.len() <= SMALL_GROUP {
                group.sort_unstable_by_key(|&entry| &token(entry as u32)[depth..]);
                continue;
            }
            for entry in &mut *group {
                let rank = *entry as u32;
                let rest = &token(rank)[depth..];
                *entry = chunk(rest) | u128::from(rank);
            }
            group.sort_unstable();
            let is_full = |entry: u128| (entry >> 32) as u32 as usize == CHUNK;
            let (first, last) = (group[0], group[group.len() - 1]);
            if first >> 32 == last >> 32 && is_full(first) {
                let first = &token(first as u32)[depth..];
                let rests = group.iter().map(|&entry| &token(entry as u32)[depth..]);
                unsorted.push((from, to, depth + shared_by_all(first, rests)));
                continue;
            }
            let mut start = from;
            for same in group.chunk_by(|a, b| a >> 32 == b >> 32) {
                if same.len() > 1 && is_full(same[0]) {
                    unsorted.push((start, start + same.len(), depth + CHUNK));
                }
                start += same.len();
            }
        }
        let ranks: Vec<u32> = entries.iter().map(|&entry| entry as u32).collect();
        drop(entries);

        let mut shared = Vec::with_capacity(count);
        shared.extend(ranks.first().map(|_| 0));
        for (index, (&before, &rank)) in ranks.iter().zip(ranks.iter().skip(1)).enumerate() {
            if let Some(&ahead) = ranks.get(index + 2 * AHEAD) {
                prefetch(&starts[ahead as usize]);
            }
            if let Some(byte) = ranks.get(index + AHEAD).and_then(|&rank| token(rank).first()) {
                prefetch(byte);
            }
            let [first, second] = [token(before), token(rank)];
            let common = common_prefix(first, second);
            if common == first.len() && common == second.len() {
                let (low, high) = (before.min(rank), before.max(rank));
                return Err(Error::Vocabulary(format!(
                    "the token {} has two ranks, {} and {}; keep one of them",
                    shown(first),
                    ids(low),
                    ids(high)
                )));
            }
            poll(1 + common / CHUNK)?;
            shared.push(common as u32);
        }
        Ok(Self { ranks, shared })
    }

    /// Returns, for each rank, the longest other token that is a prefix of the token, or [`NONE`].
    /// `length` returns the length of a token in bytes.
    pub(super) fn prefixes(&self, length: impl Fn(u32) -> usize) -> Vec<u32> {
        let mut prefixes = vec![NONE; self.ranks.len()];
        // A chain in which each token is a prefix of the next token.
        let mut chain: Vec<u32> = Vec::new();
        for (&rank, &shared) in self.ranks.iter().zip(&self.shared) {
            while chain.pop_if(|top| length(*top) > shared as usize).is_some() {}
            prefixes[rank as usize] = chain.last().copied().unwrap_or(NONE);
            if length(rank) > 0 {
                chain.push(rank);
            }
        }
        prefixes
    }
}

/// Packs the first bytes of `rest` and their number into an integer with the same order.
fn chunk(rest: &[u8]) -> u128 {
    let (bytes, length) = match rest.first_chunk::<CHUNK>() {
        Some(chunk) => (u64::from_be_bytes(*chunk), CHUNK),
        None => {
            let mut chunk = [0; CHUNK];
            chunk[..rest.len()].copy_from_slice(rest);
            (u64::from_be_bytes(chunk), rest.len())
        }
    };
    u128::from(bytes) << 64 | (length as u128) << 32
}

/// Returns the length in bytes of the common prefix of all strings, in chunks, up to a limit: a
/// group that shares more is examined again.
fn shared_by_all<'a>(first: &[u8], rests: impl Iterator<Item = &'a [u8]>) -> usize {
    const FAR: usize = 32 * CHUNK;
    let mut shared = first.len().min(FAR);
    for rest in rests {
        shared = shared.min(rest.len());
        if first[..shared] != rest[..shared] {
            shared = common_prefix(&first[..shared], &rest[..shared]);
        }
    }
    shared / CHUNK * CHUNK
}

/// Returns the length of the common prefix.
fn common_prefix(first: &[u8], second: &[u8]) -> usize {
    let chunks = first.as_chunks::<CHUNK>().0.iter().zip(second.as_chunks::<CHUNK>().0);
    let equal = chunks.take_while(|(a, b)| a == b).count() * CHUNK;
    let rest = first[equal..].iter().zip(&second[equal..]);
    equal + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::ByBytes;

    /// Sorts groups that share fewer and more bytes than are skipped at once, with and without
    /// tokens that end early.
    #[test]
    fn tokens_that_share_many_bytes_are_sorted() {
        let lengths = [0, 7, 8, 9, 63, 255, 256, 257, 600];
        for (shared, ends_early) in lengths.iter().flat_map(|&n| [(n, true), (n, false)]) {
            let start = vec![b'q'; shared];
            let end = if ends_early { 3 } else { 30 };
            // The last bytes are in reverse order.
            let end_of = |byte: u8| [vec![byte; end], vec![!byte; end]].concat();
            let mut tokens: Vec<Vec<u8>> = (0..200).rev().map(end_of).collect();
            if ends_early {
                tokens.extend([vec![], vec![7], vec![7; 300], vec![b'q'; 90], vec![7; 2]]);
            }
            tokens.iter_mut().for_each(|token| *token = [&*start, token].concat());
            let mut starts = vec![0];
            starts.extend(tokens.iter().scan(0, |end, token| {
                *end += token.len() as u32;
                Some(*end)
            }));
            let order = ByBytes::new(&starts, &tokens.concat(), |rank| rank).unwrap();
            let mut expected: Vec<u32> = (0..tokens.len() as u32).collect();
            expected.sort_by_key(|&rank| &tokens[rank as usize]);
            assert_eq!(order.ranks, expected, "{shared}");
            for (index, pair) in expected.windows(2).enumerate() {
                let [first, second] = [pair[0], pair[1]].map(|rank| &tokens[rank as usize]);
                let common = first.iter().zip(second).take_while(|(a, b)| a == b).count();
                assert_eq!(order.shared[index + 1] as usize, common, "{shared}");
            }
        }
    }
}
