//! Looks for the names of added tokens in a text.

use std::ops::Range;

use aho_corasick::{AhoCorasick, Anchored, Input, MatchKind, StartKind};
use bpe_core::special_tokens::automaton;
use memchr::memmem::Finder;

use crate::error::{Error, Result};

/// How many different beginnings are looked for.
const MOST_BEGINNINGS: usize = 3;
/// At how many places a name may hold the first byte of a beginning. What is read at one place has a
/// beginning at no more others, so that the time stays linear.
const MOST_INSIDE: usize = 8;

/// Names, each with the id of its token.
#[derive(Debug)]
pub(crate) struct Names {
    automaton: AhoCorasick,
    ids: Vec<u32>,
    /// What names begin with, often `<|` alone: a text is searched for these, and the automaton looks
    /// only where they stand. Empty where names have many beginnings, or hold them too often.
    beginnings: Vec<Finder<'static>>,
}

impl Names {
    /// `names` are sorted, distinct and not empty.
    pub(crate) fn new(names: &[&str], ids: Vec<u32>) -> Result<Self> {
        let beginnings = beginnings(names);
        if beginnings.is_empty() {
            return Ok(Self { automaton: automaton(names)?, ids, beginnings });
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .start_kind(StartKind::Anchored)
            .build(names)
            .map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(Self { automaton, ids, beginnings })
    }

    /// Calls `found` with the id of each match in `text`, and where it is: the leftmost first, and the
    /// longest of those that begin at one place. Matches do not overlap.
    pub(crate) fn each(
        &self,
        text: &str,
        mut found: impl FnMut(u32, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut found = |m: aho_corasick::Match| found(self.ids[m.pattern().as_usize()], m.range());
        if self.beginnings.is_empty() {
            return self.automaton.find_iter(text).try_for_each(found);
        }
        let mut from = 0;
        // Where each beginning comes next, at `from` or behind it.
        let mut next = [None; MOST_BEGINNINGS];
        loop {
            for (next, beginning) in next.iter_mut().zip(&self.beginnings) {
                if next.is_none_or(|at| at < from) {
                    let at = beginning.find(&text.as_bytes()[from..]);
                    *next = Some(at.map_or(usize::MAX, |at| from + at));
                }
            }
            let start = next.iter().flatten().min().copied().unwrap_or(usize::MAX);
            if start == usize::MAX {
                return Ok(());
            }
            let input = Input::new(text).range(start..).anchored(Anchored::Yes);
            from = start + 1;
            if let Some(m) = self.automaton.find(input) {
                from = m.end();
                found(m)?;
            }
        }
    }
}

/// What names that begin with the same byte have in common, for each such byte; none where that is
/// not worth while.
fn beginnings(names: &[&str]) -> Vec<Finder<'static>> {
    let alike = names.chunk_by(|a, b| a.as_bytes()[0] == b.as_bytes()[0]);
    let beginnings: Vec<Finder<'_>> = alike
        .take(MOST_BEGINNINGS + 1)
        .map(|group| {
            // What the first and the last begin with, those between them begin with too.
            let (first, last) = (group[0].as_bytes(), group[group.len() - 1].as_bytes());
            let length = first.iter().zip(last).take_while(|(a, b)| a == b).count();
            Finder::new(&first[..length])
        })
        .collect();
    let first: Vec<u8> = beginnings.iter().map(|beginning| beginning.needle()[0]).collect();
    let are_few =
        |name: &&str| name.bytes().filter(|byte| first.contains(byte)).count() <= MOST_INSIDE;
    if beginnings.len() > MOST_BEGINNINGS || !names.iter().all(are_few) {
        return Vec::new();
    }
    beginnings.into_iter().map(Finder::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_those_of_the_automaton() {
        let sets: [&[&str]; 7] = [
            &["<a>"],
            &["<", "<a", "<a>", "<aa>"],
            &["<|a|>", "<|b|>", "|||A|||"],
            &["<a>", "ab<", "b<a"],
            &["aa", "aaa"],
            &["a", "b", "c", "d"],
            &["aaaaaaaaaaaaaaaaaaaa"],
        ];
        let letters = ["<", "a", ">", "|", "b", "A", "é", "<a>", "|||A|||"];
        for (place, names) in sets.iter().enumerate() {
            let made = Names::new(names, (0..names.len() as u32).collect()).unwrap();
            assert_eq!(made.beginnings.is_empty(), place > 4, "{names:?}");
            let plain = automaton(names).unwrap();
            let mut number = 0_usize;
            while number < 9_usize.pow(5) {
                let digits = (0..5).map(|digit| letters[number / 9_usize.pow(digit) % 9]);
                let text: String = digits.collect();
                let mut found = Vec::new();
                made.each(&text, |id, range| {
                    found.push((id, range));
                    Ok(())
                })
                .unwrap();
                let expected: Vec<_> =
                    plain.find_iter(&text).map(|m| (m.pattern().as_u32(), m.range())).collect();
                assert_eq!(found, expected, "{names:?} in {text:?}");
                number += 1;
            }
        }
    }
}
