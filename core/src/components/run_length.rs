//! Run-length encoded values, one value per token.

use std::ops::Range;

/// Values as runs of equal values. A single run needs no allocation.
#[derive(Debug, Clone, Default)]
pub struct Runs<T> {
    first: (T, usize),
    rest: Vec<(T, usize)>,
}

impl<T: Copy + Default + PartialEq> Runs<T> {
    /// Creates a single run of `length` copies of `value`.
    pub fn uniform(value: T, length: usize) -> Self {
        Self { first: (value, length), rest: Vec::new() }
    }

    /// Returns the number of values, not of runs.
    pub fn len(&self) -> usize {
        self.runs().map(|(_, length)| length).sum()
    }

    /// Whether the list has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the runs as values and lengths. Neighbors may have equal values, and lengths may be
    /// 0.
    pub fn runs(&self) -> impl Iterator<Item = (T, usize)> {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }

    /// Iterates over the values.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.runs().flat_map(|(value, length)| std::iter::repeat_n(value, length))
    }

    /// Sets all values to `value`.
    pub fn fill(&mut self, value: T) {
        *self = Self::uniform(value, self.len());
    }

    /// Returns the values in a range.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let mut part = Self::default();
        let mut start = 0;
        for (value, length) in self.runs() {
            let end = start + length;
            part.push(value, end.min(range.end).saturating_sub(start.max(range.start)));
            start = end;
        }
        part
    }

    /// Appends `length` copies of `value`.
    pub fn push(&mut self, value: T, length: usize) {
        if length == 0 {
            return;
        }
        if self.first.1 == 0 && self.rest.is_empty() {
            self.first = (value, length);
            return;
        }
        let last = self.rest.last_mut().unwrap_or(&mut self.first);
        if last.0 == value {
            last.1 += length;
        } else {
            self.rest.push((value, length));
        }
    }

    /// Appends the values of `other`.
    pub fn append(&mut self, other: &Self) {
        other.runs().for_each(|(value, length)| self.push(value, length));
    }

    /// Prepends `length` copies of `value`.
    pub fn prepend(&mut self, value: T, length: usize) {
        let mut all = Self::uniform(value, length);
        all.append(self);
        *self = all;
    }
}

impl<T: Copy + Default + PartialEq> PartialEq for Runs<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Copy + Default + Eq> Eq for Runs<T> {}

impl<T: Copy + Default + PartialEq> FromIterator<T> for Runs<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut runs = Self::default();
        values.into_iter().for_each(|value| runs.push(value, 1));
        runs
    }
}
