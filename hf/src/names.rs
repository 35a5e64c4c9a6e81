//! Looks for the names of added tokens in a text.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored, Input, MatchKind, StartKind};
use bpe_core::ablation::Mechanism;
use bpe_core::special_tokens::automaton;
use memchr::memmem::Finder;
use memchr::{memchr, memchr2, memchr3};

use crate::error::{Error, Result};

/// How many different beginnings are looked for.
const MOST_BEGINNINGS: usize = 3;
/// At how many places a name may hold the first byte of a beginning, behind the longest other name
/// that it starts with. What is read at one place beyond a match has a beginning at no more others, so
/// that the time stays linear.
const MOST_INSIDE: usize = 8;
/// Where more beginnings lead to no name than these, and one each so many bytes, the automaton alone
/// takes less time.
const FEW_MISSES: usize = 16;
const BETWEEN_MISSES: usize = 32;
/// In texts of fewer bytes, the first byte of a beginning is found sooner than the whole.
const SHORT: usize = 64;

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
        let beginnings =
            if Mechanism::Beginnings.is_used() { beginnings(names) } else { Vec::new() };
        if beginnings.is_empty() {
            return Ok(Self { automaton: automaton(names)?, ids, beginnings });
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .start_kind(StartKind::Both)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
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
        if text.len() < SHORT && !self.may_begin(text.as_bytes()) {
            return Ok(());
        }
        let (mut from, mut misses) = (0, 0);
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
            let input = Input::new(text).range(start..);
            from = start + 1;
            if let Some(m) = self.automaton.find(input.clone().anchored(Anchored::Yes)) {
                from = m.end();
                found(m)?;
                continue;
            }
            misses += 1;
            if misses > FEW_MISSES + start / BETWEEN_MISSES {
                return self.automaton.find_iter(input).try_for_each(found);
            }
        }
    }

    /// Whether the first byte of a beginning is anywhere in `text`.
    fn may_begin(&self, text: &[u8]) -> bool {
        let first = |index: usize| self.beginnings[index].needle()[0];
        let found = match self.beginnings.len() {
            1 => memchr(first(0), text),
            2 => memchr2(first(0), first(1), text),
            _ => memchr3(first(0), first(1), first(2), text),
        };
        found.is_some()
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
    if beginnings.len() > MOST_BEGINNINGS || !hold_few(names, &first) {
        return Vec::new();
    }
    beginnings.into_iter().map(Finder::into_owned).collect()
}

/// Whether each name holds these bytes at [`MOST_INSIDE`] places at most, those in the longest other name
/// that it starts with left out.
fn hold_few<'a>(names: &[&'a str], bytes: &[u8]) -> bool {
    // Each a prefix of the next.
    let mut prefixes: Vec<&'a str> = Vec::new();
    names.iter().all(|&name| {
        while prefixes.pop_if(|prefix| !name.starts_with(*prefix)).is_some() {}
        let rest = prefixes.last().map_or(0, |prefix| prefix.len());
        prefixes.push(name);
        name.bytes().skip(rest).filter(|byte| bytes.contains(byte)).count() <= MOST_INSIDE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_those_of_the_automaton() {
        let sets: [&[&str]; 9] = [
            &["a", "aa", "aaaa", "aaaaaaaaaaa"],
            &["aaa", "aaaa", "aaaab", "aaaabaaaaaaaa", "aaaabaaaaaaaab", "b"],
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
            assert_eq!(made.beginnings.is_empty(), place > 6, "{names:?}");
            let plain = automaton(names).unwrap();
            let mut number = 0_usize;
            while number < 9_usize.pow(5) {
                let digits = (0..5).map(|digit| letters[number / 9_usize.pow(digit) % 9]);
                let mut text: String = digits.collect();
                if number.is_multiple_of(11) {
                    text.insert_str(number % 2 * text.len(), &"-".repeat(SHORT));
                    text = text.repeat(1 + number % 3 * FEW_MISSES);
                }
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
