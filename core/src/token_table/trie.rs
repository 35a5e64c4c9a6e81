//! Sorts the tokens of a table by their bytes, and finds the tokens that agree with required bytes.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::polling::poll;
use crate::token_table::TokenTable;
use crate::token_table::rests::{Branch, Rests};

/// Minimum number of tokens with a common prefix for which a set is kept.
const MANY: usize = 4096;

/// Maximum number of kept sets, and maximum length of their prefixes.
const MOST_SETS: usize = 64;
const LONGEST_PREFIX: usize = 4;

/// The number of bits in a mask word.
const WORD: usize = 32;

/// The tokens of a table that [spell text](TokenTable::is_spelling), in ascending order of their
/// bytes. Excludes special tokens, the unknown token and absent ids.
///
/// ```
/// use bpe_core::token_table::{TokenKind, TokenTable};
///
/// let mut table = TokenTable::with_largest_id(Some(3))?;
/// for token in ["a", "b", "ab", "abc"] {
///     table.push(token.as_bytes(), TokenKind::Ordinary)?;
/// }
/// let trie = table.trie()?;
/// assert_eq!(trie.starting_with(b"ab"), [2, 3]);
/// let mut mask = [0];
/// trie.fill_mask(b"ab", &mut mask)?;
/// assert_eq!(mask, [0b1101]);
/// # Ok::<(), bpe_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TokenTrie<'a> {
    table: &'a TokenTable,
    sorted: &'a Sorted,
}

/// The part of a trie that a table keeps.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// Ids in the order of their bytes.
    order: Vec<u32>,
    /// The sets of long ranges of `order`, in ascending order.
    sets: Vec<(Range<usize>, Vec<u32>)>,
}

impl Sorted {
    /// Sorts the tokens of a table.
    pub(crate) fn new(table: &TokenTable) -> Result<Self> {
        let ids = 0..table.len() as u32;
        let mut order = ids.filter(|&id| table.is_spelling(id)).collect::<Vec<_>>();
        poll(table.bytes().len())?;
        order.sort_unstable_by_key(|&id| (table.get(id), id));
        let mut sorted = Self { order, sets: Vec::new() };
        sorted.keep_sets(table, 0..sorted.order.len(), 0)?;
        sorted.sets.sort_unstable_by_key(|(range, _)| (range.start, range.end));
        sorted.sets.dedup_by(|one, other| one.0 == other.0);
        Ok(sorted)
    }

    /// Keeps the set of a range of tokens that share `depth` bytes, and the sets of its subranges.
    fn keep_sets(&mut self, table: &TokenTable, range: Range<usize>, depth: usize) -> Result<()> {
        if range.len() < MANY || self.sets.len() >= MOST_SETS || depth > LONGEST_PREFIX {
            return Ok(());
        }
        let mut set = vec![0; table.len().div_ceil(WORD)];
        set_bits(&mut set, &self.order[range.clone()]);
        self.sets.push((range.clone(), set));
        let byte = |id: u32| table.get(id).get(depth);
        let mut start = range.start;
        while start < range.end {
            let first = byte(self.order[start]);
            let rest = &self.order[start..range.end];
            let end = start + rest.partition_point(|&id| byte(id) == first);
            self.keep_sets(table, start..end, depth + 1)?;
            start = end;
        }
        Ok(())
    }
}

impl<'a> TokenTrie<'a> {
    pub(crate) fn of(table: &'a TokenTable, sorted: &'a Sorted) -> Self {
        Self { table, sorted }
    }

    fn byte(self, id: u32, place: usize) -> Option<u8> {
        self.table.get(id).get(place).copied()
    }

    /// Returns the number of words in a mask, which has a bit for each id of the table.
    pub fn words(self) -> usize {
        self.table.len().div_ceil(WORD)
    }

    /// Returns the tokens that start with `prefix`, in the order of their bytes.
    pub fn starting_with(self, prefix: &[u8]) -> &'a [u32] {
        &self.sorted.order[self.range(prefix)]
    }

    fn range(self, prefix: &[u8]) -> Range<usize> {
        let order = &self.sorted.order;
        let start = order.partition_point(|&id| self.table.get(id) < prefix);
        let rest = &order[start..];
        start..start + rest.partition_point(|&id| self.table.get(id).starts_with(prefix))
    }

    /// Returns the bytes that follow `prefix` in tokens, in ascending order.
    pub fn next_bytes(self, prefix: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = self.starting_with(prefix);
        while let Some(&first) = rest.first() {
            let next = self.byte(first, prefix.len());
            if let Some(next) = next {
                bytes.push(next);
            }
            rest = &rest[rest.partition_point(|&id| self.byte(id, prefix.len()) == next)..];
        }
        bytes
    }

    /// Sets the bits of the tokens that agree with required bytes: tokens that are a prefix of
    /// `rest` or begin with `rest`. Clears all other bits. Bit `id % 32` of word `id / 32` stands
    /// for `id`.
    ///
    /// Fails with [`Error::Invalid`] if `mask` has fewer than [`TokenTrie::words`] words.
    pub fn fill_mask(self, rest: &[u8], mask: &mut [u32]) -> Result<()> {
        self.fill(rest, &[], &[], mask)
    }

    /// Like [`TokenTrie::fill_mask`], for alternatives. Sets all bits if every token may follow.
    pub fn fill_mask_of(self, rests: &Rests, mask: &mut [u32]) -> Result<()> {
        self.fill(rests.first(), rests.pool(), rests.branches(), mask)?;
        if rests.is_done() {
            mask.fill(u32::MAX);
        }
        Ok(())
    }

    fn fill(
        self,
        rest: &[u8],
        pool: &[u8],
        mut branches: &[Branch],
        mask: &mut [u32],
    ) -> Result<()> {
        mask.fill(0);
        let words = self.words();
        let Some(mask) = mask.get_mut(..words) else {
            return Err(Error::Invalid(format!(
                "the mask has {} words of 32 bits, but {} ids need {words}",
                mask.len(),
                self.table.len()
            )));
        };
        let mut range = 0..self.sorted.order.len();
        for (depth, &byte) in rest.iter().enumerate() {
            let here = branches.partition_point(|branch| branch.at == depth);
            self.fill_branches(pool, &branches[..here], range.clone(), depth, mask);
            branches = &branches[here..];
            set_bits(mask, self.ending(range.clone(), depth));
            range = self.narrowed(range, depth, byte);
            if range.is_empty() {
                return Ok(());
            }
        }
        self.set_range(range, mask);
        Ok(())
    }

    /// Sets the bits of the tokens of a range that agree with one of `branches` after the `depth`
    /// bytes that the range shares.
    fn fill_branches(
        self,
        pool: &[u8],
        branches: &[Branch],
        range: Range<usize>,
        depth: usize,
        mask: &mut [u32],
    ) {
        let mut open = Vec::new();
        open.push((branches, range, 0));
        while let Some((mut branches, range, known)) = open.pop() {
            let byte = |branch: &Branch| pool[branch.bytes.clone()].get(known).copied();
            while let Some(next) = branches.first() {
                let Some(first) = byte(next) else {
                    // No other branch begins with this branch.
                    self.set_range(range.clone(), mask);
                    break;
                };
                let (group, others) =
                    branches.split_at(branches.partition_point(|it| byte(it) == Some(first)));
                branches = others;
                let range = self.narrowed(range.clone(), depth + known, first);
                if !range.is_empty() {
                    set_bits(mask, self.ending(range.clone(), depth + known + 1));
                    open.push((group, range, known + 1));
                }
            }
        }
    }

    /// Returns the subrange of tokens, which share `depth` bytes, whose next byte is `byte`.
    fn narrowed(self, range: Range<usize>, depth: usize, byte: u8) -> Range<usize> {
        let tokens = &self.sorted.order[range.clone()];
        let before = tokens.partition_point(|&id| self.byte(id, depth) < Some(byte));
        let count = tokens[before..].partition_point(|&id| self.byte(id, depth) == Some(byte));
        range.start + before..range.start + before + count
    }

    /// Returns the tokens of a range that end after the `depth` bytes that the range shares.
    fn ending(self, range: Range<usize>, depth: usize) -> &'a [u32] {
        let tokens = &self.sorted.order[range];
        &tokens[..tokens.partition_point(|&id| self.byte(id, depth).is_none())]
    }

    /// Sets the bits of a range of tokens.
    fn set_range(self, range: Range<usize>, mask: &mut [u32]) {
        let sets = &self.sorted.sets;
        let place = sets
            .binary_search_by(|(kept, _)| (kept.start, kept.end).cmp(&(range.start, range.end)));
        match place {
            Ok(place) => {
                mask.iter_mut().zip(&sets[place].1).for_each(|(word, kept)| *word |= kept);
            }
            Err(_) => set_bits(mask, &self.sorted.order[range]),
        }
    }
}

fn set_bits(mask: &mut [u32], ids: &[u32]) {
    for &id in ids {
        if let Some(word) = mask.get_mut(id as usize / WORD) {
            *word |= 1 << (id as usize % WORD);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::token_table::TokenKind;

    fn table(tokens: &[(Vec<u8>, u8)]) -> TokenTable {
        let mut table = TokenTable::with_largest_id(None).unwrap();
        for (bytes, kind) in tokens {
            let kind = [TokenKind::Absent, TokenKind::Ordinary, TokenKind::Special]
                [usize::from(*kind % 3)];
            table.push(if kind == TokenKind::Absent { b"" } else { bytes }, kind).unwrap();
        }
        table
    }

    fn bits(mask: &[u32]) -> Vec<u32> {
        (0..mask.len() as u32 * 32)
            .filter(|&id| mask[id as usize / 32] >> (id % 32) & 1 == 1)
            .collect()
    }

    fn rests_of(first: &[u8], others: &[Vec<u8>]) -> Rests {
        Rests::of(std::iter::once(first).chain(others.iter().map(Vec::as_slice)))
    }

    fn letters(most: usize) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0..3_u8, 0..most)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn masks_are_those_of_all_tokens(
            tokens in prop::collection::vec((letters(5), 0..3_u8), 0..80),
            rest in letters(7),
            others in prop::collection::vec(letters(7), 0..9),
        ) {
            let table = table(&tokens);
            let trie = table.trie().unwrap();
            let ordinary = |&id: &u32| table.kind(id) == TokenKind::Ordinary && !table.get(id).is_empty();
            let ids = || (0..table.len() as u32).filter(ordinary);
            let agrees = |&id: &u32| table.get(id).starts_with(&rest) || rest.starts_with(table.get(id));
            let mut mask = vec![u32::MAX; trie.words() + 1];
            trie.fill_mask(&rest, &mut mask).unwrap();
            prop_assert_eq!(bits(&mask), ids().filter(agrees).collect::<Vec<_>>());
            let others = rests_of(&rest, &others);
            trie.fill_mask_of(&others, &mut mask).unwrap();
            let lists = others.lists();
            let agrees = |&id: &u32| {
                let agree = |list: &Vec<u8>| {
                    table.get(id).starts_with(list) || list.starts_with(table.get(id))
                };
                lists.iter().any(agree)
            };
            if !others.is_done() {
                prop_assert_eq!(bits(&mask), ids().filter(agrees).collect::<Vec<_>>());
            }
            let mut found = trie.starting_with(&rest).to_vec();
            found.sort_unstable();
            prop_assert_eq!(found, ids().filter(|&id| table.get(id).starts_with(&rest)).collect::<Vec<_>>());
            let mut next: Vec<u8> = ids()
                .filter_map(|id| table.get(id).strip_prefix(&rest[..])?.first().copied())
                .collect();
            next.sort_unstable();
            next.dedup();
            prop_assert_eq!(trie.next_bytes(&rest), next);
        }
    }
}
