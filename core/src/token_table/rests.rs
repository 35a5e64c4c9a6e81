//! Alternatives for the bytes that come next, which share most of their bytes.

use std::ops::Range;
use std::sync::Arc;

/// The alternatives for the bytes that the next tokens must begin with.
///
/// No alternative is a prefix of another: a token that agrees with the longer alternative would
/// also agree with the shorter alternative.
#[derive(Debug, Clone, Default)]
pub struct Rests {
    /// The bytes of all alternatives.
    pool: Arc<Vec<u8>>,
    /// The first alternative. Empty once the tokens have spelled an alternative.
    first: Range<usize>,
    /// The other alternatives, in ascending order of [`Branch::at`] and of their bytes.
    branches: Vec<Branch>,
}

/// An alternative that shares a prefix with the first alternative.
#[derive(Debug, Clone, Default)]
pub(crate) struct Branch {
    /// The length of the shared prefix in bytes.
    pub(crate) at: usize,
    /// The bytes after the prefix. The first byte differs from the first alternative's.
    pub(crate) bytes: Range<usize>,
}

/// Collects the alternatives of [`Rests`].
#[derive(Debug)]
pub(crate) struct Draft {
    pool: Vec<u8>,
    first: usize,
    branches: Vec<Branch>,
}

impl Draft {
    /// Creates a draft with the first alternative.
    pub(crate) fn new(first: Vec<u8>) -> Self {
        Self { first: first.len(), pool: first, branches: Vec::new() }
    }

    /// Adds an alternative: `first[..at]` followed by `bytes`.
    pub(crate) fn add(&mut self, at: usize, bytes: &[u8]) {
        let start = self.pool.len();
        self.pool.extend_from_slice(bytes);
        self.branches.push(Branch { at, bytes: start..self.pool.len() });
    }

    pub(crate) fn finish(self) -> Rests {
        let (pool, first) = (Arc::new(self.pool), 0..self.first);
        let mut rests = Rests { pool, first, branches: self.branches };
        rests.settle();
        rests
    }
}

impl Rests {
    /// Creates `Rests` from alternatives; without alternatives, every token may follow.
    pub fn of<'a>(mut lists: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut draft = Draft::new(lists.next().unwrap_or_default().to_vec());
        lists.for_each(|list| draft.add(0, list));
        draft.finish()
    }

    /// Returns true if every token may follow.
    pub fn is_done(&self) -> bool {
        self.first.is_empty()
    }

    /// Returns the first alternative.
    pub fn first(&self) -> &[u8] {
        &self.pool[self.first.clone()]
    }

    /// Returns the other alternatives, each as the number of bytes shared with the first
    /// alternative, and the remaining bytes.
    pub(crate) fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// Returns the bytes of [`Branch::bytes`].
    pub(crate) fn pool(&self) -> &[u8] {
        &self.pool
    }

    /// Returns all alternatives, in order; empty once every token may follow.
    pub fn lists(&self) -> Vec<Vec<u8>> {
        if self.is_done() {
            return Vec::new();
        }
        let list = |it: &Branch| [&self.first()[..it.at], &self.pool[it.bytes.clone()]].concat();
        std::iter::once(self.first().to_vec()).chain(self.branches.iter().map(list)).collect()
    }

    /// Consumes the bytes of a token. Changes nothing and returns false if they agree with no
    /// alternative: neither is a prefix of the other.
    pub fn advance(&mut self, token: &[u8]) -> bool {
        let rest = self.first();
        let same = rest.iter().zip(token).take_while(|(one, other)| one == other).count();
        if same == rest.len() {
            self.finish();
        } else if same == token.len() {
            self.first.start += same;
            self.branches.retain(|branch| branch.at >= same);
            self.branches.iter_mut().for_each(|branch| branch.at -= same);
        } else {
            return self.leave_first(same, &token[same..]);
        }
        true
    }

    /// Consumes a token that matches the first alternative up to byte `at` and ends with `more`.
    fn leave_first(&mut self, at: usize, more: &[u8]) -> bool {
        let Self { pool, branches, .. } = self;
        let agrees = |branch: &Branch| {
            let bytes = &pool[branch.bytes.clone()];
            branch.at == at && (bytes.starts_with(more) || more.starts_with(bytes))
        };
        if !branches.iter().any(agrees) {
            return false;
        }
        branches.retain(agrees);
        if branches.iter().any(|branch| branch.bytes.len() <= more.len()) {
            self.finish();
            return true;
        }
        for branch in &mut *branches {
            (branch.at, branch.bytes.start) = (0, branch.bytes.start + more.len());
        }
        self.first = branches.remove(0).bytes;
        self.settle();
        true
    }

    fn finish(&mut self) {
        self.first = 0..0;
        self.branches = Vec::new();
    }

    /// Sorts the alternatives and drops every alternative that begins with another.
    fn settle(&mut self) {
        let Self { pool, first, branches } = self;
        for branch in &mut *branches {
            let rest = pool[first.clone()].get(branch.at..).unwrap_or_default();
            let bytes = &pool[branch.bytes.clone()];
            let same = rest.iter().zip(bytes).take_while(|(one, other)| one == other).count();
            branch.at += same;
            branch.bytes.start += same;
            if branch.bytes.is_empty() {
                first.end = first.end.min(first.start + branch.at);
            }
        }
        branches.retain(|branch| branch.at < first.len() && !branch.bytes.is_empty());
        let key = |branch: &Branch| (branch.at, &pool[branch.bytes.clone()]);
        branches.sort_unstable_by(|one, other| key(one).cmp(&key(other)));
        branches.dedup_by(|later, kept| {
            let (later, kept) = (key(later), key(kept));
            later.0 == kept.0 && later.1.starts_with(kept.1)
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn letters(most: usize) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0..3_u8, 1..most)
    }

    fn agree(one: &[u8], other: &[u8]) -> bool {
        one.starts_with(other) || other.starts_with(one)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        /// Compares with alternatives that are kept as separate lists.
        #[test]
        fn tokens_are_taken_as_from_each_list(
            mut lists in prop::collection::vec(letters(9), 0..12),
            tokens in prop::collection::vec(letters(4), 0..8),
        ) {
            let mut rests = Rests::of(lists.iter().map(Vec::as_slice));
            for token in tokens {
                let first = rests.lists();
                prop_assert!(first.iter().all(|list| lists.contains(list)));
                prop_assert!(lists.iter().all(|list| first.iter().any(|it| list.starts_with(it))));
                if let Some(own) = first.first() {
                    prop_assert_eq!(rests.first(), &own[..]);
                }
                if rests.is_done() {
                    break;
                }
                let is_taken = rests.advance(&token);
                prop_assert_eq!(is_taken, lists.iter().any(|list| agree(list, &token)));
                if is_taken {
                    lists.retain(|list| agree(list, &token));
                    lists = lists.iter().map(|it| it[token.len().min(it.len())..].to_vec()).collect();
                }
                let is_done = lists.iter().any(Vec::is_empty);
                prop_assert_eq!(rests.is_done(), is_done);
                if is_done {
                    lists.clear();
                }
            }
        }
    }
}
