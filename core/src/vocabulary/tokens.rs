//! Looks up the rank and id of bytes, and the bytes of a rank.

use super::order::ByBytes;
use super::perfect_hash::{EMPTY, PerfectHash};
use super::rank_list::RankList;
use super::{NONE, RANK_BITS, RANK_MASK, Section};
use crate::error::{Error, Result};
use crate::hash::{hash_bytes, hash16};
use crate::memory::prefetch;

/// Maximum length in bytes of tokens and pieces that are looked up by a 16-byte key; longer tokens
/// and pieces are looked up by hash.
pub(crate) const SHORT: usize = 15;
/// `SHORT` also serves as a mask for lengths.
const _: () = assert!((SHORT + 1).is_power_of_two());

/// Bytes, with their length as the last byte: different short byte strings have different keys. In
/// the keys of longer pieces the last byte is [`RUN`] or [`OTHER`], and the rest of its word is the
/// length.
pub(crate) type Key = [u64; 2];

/// Last byte of the key of a longer piece that its first word and its length identify.
const RUN: u64 = 0xff;
/// Last byte of a key that contains only the length: no table has such a key.
const OTHER: u64 = 0xfe;

/// Returns the key of a longer piece that `what` and its length identify.
pub(crate) fn key_of_run(what: u64, length: usize) -> Key {
    [what, RUN << 56 | length as u64]
}

/// Returns the key of any other longer piece: only its length.
pub(crate) fn key_of_other(length: usize) -> Key {
    [0, OTHER << 56 | length as u64]
}

/// Returns true for a [`key_of_other`].
pub(crate) fn is_key_of_other(key: Key) -> bool {
    key[1] >> 56 == OTHER
}

/// Returns the length in bytes of the piece with this key.
#[inline(always)]
pub(crate) fn length_of(key: Key) -> usize {
    let last = key[1] >> 56;
    (if last <= SHORT as u64 { last } else { key[1] & ((1 << 56) - 1) }) as usize
}

/// `MASKS[n]` keeps the first `n` bytes of a key.
static MASKS: [Key; SHORT + 1] = {
    let mut masks = [[0; 2]; SHORT + 1];
    let mut length = 1;
    while length <= SHORT {
        let bits = (1u128 << (8 * length)) - 1;
        masks[length] = [bits as u64, (bits >> 64) as u64];
        length += 1;
    }
    masks
};

/// Returns the key of `bytes[start..end]`, at most [`SHORT`] bytes; meaningless for longer ranges.
#[inline(always)]
pub(crate) fn key(bytes: &[u8], start: usize, end: usize) -> Key {
    const KEY_BYTES: usize = size_of::<Key>();
    let length = (end - start) & SHORT;
    let block: Key = if start < bytes.len().saturating_sub(KEY_BYTES - 1) {
        // SAFETY: `start + KEY_BYTES <= bytes.len()`.
        let block = unsafe { bytes.as_ptr().add(start).cast::<[u8; KEY_BYTES]>().read() };
        let block = u128::from_le_bytes(block);
        [block as u64, (block >> 64) as u64]
    } else {
        tail_block(bytes, start)
    };
    let mask = MASKS[length];
    [block[0] & mask[0], block[1] & mask[1] | (length as u64) << 56]
}

/// Returns 16 bytes of the text from `start`, near its end, padded with zeros. Uses overlapping
/// reads of constant size, because reading words right after a copy of few bytes would wait for the
/// copy.
#[inline(never)]
fn tail_block(text: &[u8], start: usize) -> Key {
    let wide = |bytes: &[u8; 8]| u128::from(u64::from_le_bytes(*bytes));
    let (block, from) = if let Some(last) = text.last_chunk() {
        (u128::from_le_bytes(*last), text.len() - 16)
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        (wide(first) | wide(last) << (8 * (text.len() - 8)), 0)
    } else {
        (text.iter().rev().fold(0, |block, &byte| block << 8 | u128::from(byte)), 0)
    };
    // An empty piece may begin at the end.
    let block = block.checked_shr(8 * (start - from) as u32).unwrap_or(0);
    [block as u64, (block >> 64) as u64]
}

/// Returns an entry of a table of tokens: from the lowest bit, its rank, its start in the arena,
/// its length ([`MARK_OF_LONG`] for more than [`SHORT`] bytes), and bits of its hash that
/// [`PerfectHash`] does not use. The last two fields rule out most keys that are not in the table.
fn word(rank: u32, start: u32, length: usize, hash: u64) -> u64 {
    let length = if length <= SHORT { length } else { MARK_OF_LONG };
    u64::from(rank) | u64::from(start) << RANK_BITS | marks(length, hash)
}

const MARK_OF_LONG: usize = 0;
const LENGTH_SHIFT: u32 = RANK_BITS + 32;
const TAG_SHIFT: u32 = LENGTH_SHIFT + 4;

#[inline(always)]
fn marks(length: usize, hash: u64) -> u64 {
    (length as u64) << LENGTH_SHIFT | hash >> 31 << TAG_SHIFT
}

/// State of a stepwise look-up for a token of up to [`SHORT`] bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenProbe {
    key: Key,
    hash: u64,
    /// Slot after the second step, word of the slot after the third.
    slot_or_word: u64,
}

impl TokenProbe {
    #[inline(always)]
    pub(crate) fn new(key: Key) -> Self {
        Self { key, hash: 0, slot_or_word: EMPTY }
    }

    #[inline(always)]
    pub(crate) fn key(&self) -> Key {
        self.key
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Tokens {
    /// Concatenated bytes of all tokens in the order of ranks.
    pub(super) arena: Section<u8>,
    /// Start of each token in the arena, and the end of the last token.
    pub(super) starts: Section<u32>,
    /// Ids of ranks; empty if every id equals its rank.
    pub(super) ids: Section<u32>,
    /// Tokens of up to [`SHORT`] bytes.
    pub(super) short: PerfectHash,
    pub(super) long: PerfectHash,
    /// One bit per rank, set for unreachable tokens.
    pub(super) unreachable: Section<u64>,
}

impl Tokens {
    /// Lays out tokens in ascending order of ids. Refuses equal tokens.
    pub(super) fn build(list: RankList) -> Result<(Self, ByBytes)> {
        let starts = starts(&list)?;
        let order = ByBytes::new(&starts, &list.bytes, |rank| list.ids[rank as usize])?;
        let tokens = Self::index(list, starts)?.ok_or_else(|| {
            Error::Vocabulary("no seeds hash the tokens without collisions".into())
        })?;
        Ok((tokens, order))
    }

    /// Lays out tokens without sorting them by their bytes. `None` if two tokens are equal.
    pub(super) fn build_unsorted(list: RankList) -> Result<Option<Self>> {
        let starts = starts(&list)?;
        Self::index(list, starts)
    }

    /// Builds the hash tables; `None` if no seeds are found, as with two equal tokens.
    fn index(list: RankList, starts: Vec<u32>) -> Result<Option<Self>> {
        let RankList { bytes: arena, ends, ids } = list;
        let are_ranks = ids.iter().zip(0..).all(|(&id, rank)| id == rank);

        let length = |rank: u32| (starts[rank as usize + 1] - starts[rank as usize]) as usize;
        let is_short = |rank: &u32| length(*rank) <= SHORT;
        let ranks = 0..ends.len() as u32;
        let short = ranks.clone().filter(is_short).collect::<Vec<_>>();
        let long = ranks.filter(|rank| !is_short(rank)).collect::<Vec<_>>();
        let at = |rank: u32| (starts[rank as usize] as usize, starts[rank as usize + 1] as usize);
        let word = |rank: u32, hash: u64| word(rank, starts[rank as usize], length(rank), hash);
        let hash_short = |rank, seeds| {
            let (start, end) = at(rank);
            hash16(key(&arena, start, end), seeds)
        };
        let hash_long = |rank, seeds| {
            let (start, end) = at(rank);
            hash_bytes(&arena[start..end], seeds)
        };
        let Some(short) = PerfectHash::build(&short, hash_short, word)? else { return Ok(None) };
        let Some(long) = PerfectHash::build(&long, hash_long, word)? else { return Ok(None) };
        let unreachable = vec![0; ends.len().div_ceil(64)].into();
        let ids = if are_ranks { vec![] } else { ids };
        let (arena, starts, ids) = (arena.into(), starts.into(), ids.into());
        Ok(Some(Self { arena, starts, ids, short, long, unreachable }))
    }

    pub(super) fn set_unreachable(&mut self, rank: u32) {
        self.unreachable.to_mut()[rank as usize / 64] |= 1 << (rank % 64);
    }

    pub(crate) fn is_reachable(&self, rank: u32) -> bool {
        self.unreachable[rank as usize / 64] >> (rank % 64) & 1 == 0
    }

    /// Returns true if merging can reach every token except an empty token.
    pub(super) fn all_reachable(&self) -> bool {
        let count: u32 = self.unreachable.iter().map(|word| word.count_ones()).sum();
        count == u32::from(self.find(&[]).is_some())
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline]
    pub(crate) fn bytes(&self, rank: u32) -> &[u8] {
        let rank = rank as usize;
        &self.arena[self.starts[rank] as usize..self.starts[rank + 1] as usize]
    }

    /// Returns the key of a token's bytes from offset `from` to its end; meaningless for more than
    /// [`SHORT`] bytes.
    #[inline]
    pub(super) fn key_of_end(&self, rank: u32, from: usize) -> Key {
        let [start, end] = [rank, rank + 1].map(|rank| self.starts[rank as usize] as usize);
        if start + from == end { [0; 2] } else { key(&self.arena, start + from, end) }
    }

    /// Returns the key of part of a token, of 1 to [`SHORT`] bytes.
    #[inline]
    pub(super) fn key_of_part(&self, rank: u32, from: usize, to: usize) -> Key {
        let start = self.starts[rank as usize] as usize;
        key(&self.arena, start + from, start + to)
    }

    /// Prefetches the memory that [`Tokens::bytes`] reads first.
    #[inline]
    pub(super) fn prefetch_start(&self, rank: u32) {
        if let Some(start) = self.starts.get(rank as usize) {
            prefetch(start);
        }
    }

    #[inline]
    pub(crate) fn id(&self, rank: u32) -> u32 {
        if self.ids.is_empty() { rank } else { self.ids[rank as usize] }
    }

    #[inline(always)]
    pub(crate) fn ids_are_ranks(&self) -> bool {
        self.ids.is_empty()
    }

    #[inline]
    pub(crate) fn rank_of_id(&self, id: u32) -> Option<u32> {
        let Some(&first) = self.ids.first() else {
            return ((id as usize) < self.len()).then_some(id);
        };
        // Most ids are consecutive.
        let rank = id.checked_sub(first)?;
        let found = (self.ids.get(rank as usize) == Some(&id)).then_some(rank);
        found.or_else(|| self.ids.binary_search(&id).ok().map(|rank| rank as u32))
    }

    pub(crate) fn find(&self, bytes: &[u8]) -> Option<u32> {
        let rank = match bytes.len() {
            0..=SHORT => self.find_short(key(bytes, 0, bytes.len())),
            _ => return self.find_long(bytes),
        };
        (rank != NONE).then_some(rank)
    }

    /// Returns the rank of the token with this key, or [`NONE`].
    #[inline(always)]
    pub(crate) fn find_short(&self, wanted: Key) -> u32 {
        let hash = hash16(wanted, self.short.seeds);
        self.confirmed(candidate(self.short.word(hash), hash, wanted), wanted)
    }

    /// Returns the rank in a [`candidate`] if its bytes equal this key, or [`NONE`].
    #[inline(always)]
    fn confirmed(&self, word: u64, wanted: Key) -> u32 {
        if word == EMPTY {
            return NONE;
        }
        let start = start_of(word);
        let length = (wanted[1] >> 56) as usize;
        if key(&self.arena, start, start + length) == wanted { rank_of(word) } else { NONE }
    }

    /// Starts a look-up of the token with this key, the first of four steps. Each step prefetches
    /// the memory that the next step reads, so that the look-ups of a batch overlap.
    #[inline(always)]
    pub(crate) fn prefetch(&self, probe: &mut TokenProbe) {
        probe.hash = hash16(probe.key, self.short.seeds);
        self.short.prefetch(probe.hash);
    }

    /// Runs the second step.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, probe: &mut TokenProbe) {
        probe.slot_or_word = self.short.prefetch_slot(probe.hash) as u64;
    }

    /// Runs the third step.
    #[inline(always)]
    pub(crate) fn prefetch_bytes(&self, probe: &mut TokenProbe) {
        let word = self.short.at(probe.slot_or_word as usize);
        probe.slot_or_word = candidate(word, probe.hash, probe.key);
        // An empty token may start at the end of the arena.
        if probe.slot_or_word != EMPTY
            && let Some(byte) = self.arena.get(start_of(word))
        {
            prefetch(byte);
        }
    }

    /// Returns the rank of the token, or [`NONE`], after the third step.
    #[inline(always)]
    pub(crate) fn found(&self, probe: &TokenProbe) -> u32 {
        self.confirmed(probe.slot_or_word, probe.key)
    }

    /// Returns the rank of the token with these bytes, of which there are more than [`SHORT`].
    pub(crate) fn find_long(&self, bytes: &[u8]) -> Option<u32> {
        let hash = hash_bytes(bytes, self.long.seeds);
        let word = self.long.word(hash);
        let is_candidate = (word ^ marks(MARK_OF_LONG, hash)) >> LENGTH_SHIFT == 0 && word != EMPTY;
        let rank = rank_of(word);
        (is_candidate && self.bytes(rank) == bytes).then_some(rank)
    }
}

/// Returns the start of each token of a list, and the end of the last token.
fn starts(list: &RankList) -> Result<Vec<u32>> {
    if u32::try_from(list.bytes.len()).is_err() {
        return Err(Error::Vocabulary("the tokens take more than 4 GiB".into()));
    }
    let mut starts = Vec::with_capacity(list.ends.len() + 1);
    starts.push(0);
    starts.extend(list.ends.iter().map(|&end| end as u32));
    Ok(starts)
}

/// Returns the word if it may hold the key with this hash, or [`EMPTY`].
#[inline(always)]
fn candidate(word: u64, hash: u64, key: Key) -> u64 {
    let length = (key[1] >> 56) as usize;
    if (word ^ marks(length, hash)) >> LENGTH_SHIFT == 0 { word } else { EMPTY }
}

#[inline(always)]
fn rank_of(word: u64) -> u32 {
    word as u32 & RANK_MASK
}

#[inline(always)]
fn start_of(word: u64) -> usize {
    (word >> RANK_BITS) as u32 as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_on_its_bytes_alone() {
        let bytes: Vec<u8> = (1..=40).collect();
        for piece in (0..=25).flat_map(|start| (0..=SHORT).map(move |length| start..start + length))
        {
            let mut alone = [0; 32];
            alone[..piece.len()].copy_from_slice(&bytes[piece.clone()]);
            for after in piece.end..=bytes.len() {
                let key = key(&bytes[..after], piece.start, piece.end);
                assert_eq!(key, super::key(&alone, 0, piece.len()), "{piece:?} of {after}");
            }
        }
    }

    /// A word is a candidate only for keys of its length; otherwise a token's start would match.
    #[test]
    fn words_are_candidates_for_keys_of_their_length() {
        let bytes = [b'a'; SHORT];
        for hash in [0, 1 << 33, u64::MAX] {
            for (length, wanted) in (0..=SHORT).flat_map(|a| (0..=SHORT).map(move |b| (a, b))) {
                let word = word(7, 0, length, hash);
                let expected = if length == wanted { word } else { EMPTY };
                let found = candidate(word, hash, key(&bytes, 0, wanted));
                assert_eq!(found, expected, "{length} {wanted}");
            }
        }
    }
}
