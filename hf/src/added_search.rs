//! Searches a text for the names of added tokens.

use std::ops::Range;

use aho_corasick::{Anchored, Input};
use bpe_core::ablation::Mechanism;
use bpe_core::memory::ask_for;
use bpe_core::special_tokens::Automaton;
use memchr::memmem::Finder;
use memchr::{memchr, memchr2, memchr3};

use crate::error::Result;

/// The maximum number of beginnings to search for.
const MOST_BEGINNINGS: usize = 3;
/// A name may contain the first byte of a beginning at this many places after the longest other
/// name that it starts with. This bounds how often the automaton reads the same text, so that the
/// time stays linear.
const MOST_INSIDE: usize = 8;
/// If more beginnings than these, and one more per this many bytes, lead to no name, the automaton
/// alone is faster.
const FEW_MISSES: usize = 16;
const BETWEEN_MISSES: usize = 32;
/// In texts of fewer bytes, searching for the first byte of a beginning is faster.
const SHORT: usize = 64;
/// An upper bound on the bytes of memory to build an automaton, per byte of a name.
const MEMORY: usize = 64;

/// Names, each with the id of its token.
#[derive(Debug)]
pub(crate) struct Names {
    /// `None` for a single name, which is its own beginning.
    automaton: Option<Automaton>,
    ids: Vec<u32>,
    /// The beginnings of the names, often only `<|`. The automaton runs only where a search finds
    /// one. Empty if the names have too many beginnings, or contain them too often.
    beginnings: Vec<Finder<'static>>,
}

impl Names {
    /// Builds the search. `names` must be sorted, distinct and not empty.
    pub(crate) fn new(names: &[&str], ids: Vec<u32>) -> Result<Self> {
        let beginnings =
            if Mechanism::Beginnings.is_used() { beginnings(names) } else { Vec::new() };
        if let ([_], [_]) = (names, &beginnings[..]) {
            return Ok(Self { automaton: None, ids, beginnings });
        }
        let length: usize = names.iter().map(|name| name.len()).sum();
        ask_for(length.saturating_mul(MEMORY))?;
        let automaton = Automaton::new(names, !beginnings.is_empty())?;
        Ok(Self { automaton: Some(automaton), ids, beginnings })
    }

    /// Calls `found` with the id and range of each match in `text`, leftmost-longest. It returns
    /// where the search continues: at the end of the match, or within it.
    pub(crate) fn each(
        &self,
        text: &str,
        mut found: impl FnMut(u32, Range<usize>) -> Result<usize>,
    ) -> Result<()> {
        let Some(automaton) = &self.automaton else {
            let [name] = &self.beginnings[..] else { return Ok(()) };
            let length = name.needle().len();
            return name
                .find_iter(text.as_bytes())
                .try_for_each(|start| found(self.ids[0], start..start + length).map(drop));
        };
        let mut found = |(name, range): (usize, Range<usize>)| found(self.ids[name], range);
        if self.beginnings.is_empty() {
            return each_from(automaton, text, 0, found);
        }
        if text.len() < SHORT && !self.may_begin(text.as_bytes()) {
            return Ok(());
        }
        let (mut from, mut misses) = (0, 0);
        // The next place of each beginning, at `from` or later.
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
            if let Some(m) = automaton.find(input) {
                from = found(m)?;
                continue;
            }
            misses += 1;
            if misses > FEW_MISSES + start / BETWEEN_MISSES {
                return each_from(automaton, text, start, found);
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

/// Calls `found` with each match from byte `from` on; it returns where the search continues.
fn each_from(
    automaton: &Automaton,
    text: &str,
    mut from: usize,
    mut found: impl FnMut((usize, Range<usize>)) -> Result<usize>,
) -> Result<()> {
    while let Some(m) = automaton.find(Input::new(text).range(from..)) {
        from = found(m)?;
    }
    Ok(())
}

/// For each first byte, the common beginning of the names that start with it. Empty if searching
/// for them does not pay.
fn beginnings(names: &[&str]) -> Vec<Finder<'static>> {
    let alike = names.chunk_by(|a, b| a.as_bytes()[0] == b.as_bytes()[0]);
    let beginnings: Vec<Finder<'_>> = alike
        .take(MOST_BEGINNINGS + 1)
        .map(|group| {
            // Names are sorted, so a prefix of the first and the last is one of all.
            let (first, last) = (group[0].as_bytes(), group[group.len() - 1].as_bytes());
            let length = first.iter().zip(last).take_while(|(a, b)| a == b).count();
            Finder::new(&first[..length])
        })
        .collect();
    let first: Vec<u8> = beginnings.iter().map(|beginning| beginning.needle()[0]).collect();
    let pays = names.len() == 1 || hold_few(names, &first);
    if beginnings.len() > MOST_BEGINNINGS || !pays {
        return Vec::new();
    }
    beginnings.into_iter().map(Finder::into_owned).collect()
}

/// Whether each name contains these bytes at most [`MOST_INSIDE`] times after the longest other
/// name that it starts with.
fn hold_few<'a>(names: &[&'a str], bytes: &[u8]) -> bool {
    // Each is a prefix of the next.
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

    /// Finds names leftmost-longest, without overlaps.
    fn naive(names: &[&str], text: &str) -> Vec<(u32, Range<usize>)> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let here = (0..names.len())
                .filter(|&name| text.as_bytes()[at..].starts_with(names[name].as_bytes()));
            let longest = here.max_by_key(|&name| names[name].len());
            if let Some(name) = longest {
                found.push((name as u32, at..at + names[name].len()));
            }
            at += longest.map_or(1, |name| names[name].len());
        }
        found
    }

    #[test]
    fn matches_are_leftmost_longest() {
        let sets: [&[&str]; 10] = [
            &["a", "aa", "aaaa", "aaaaaaaaaaa"],
            &["aaa", "aaaa", "aaaab", "aaaabaaaaaaaa", "aaaabaaaaaaaab", "b"],
            &["<a>"],
            &["<", "<a", "<a>", "<aa>"],
            &["<|a|>", "<|b|>", "|||A|||"],
            &["<a>", "ab<", "b<a"],
            &["aa", "aaa"],
            &["a", "b", "c", "d"],
            &["aa<"],
            &["<", "aaaaaaaaaaaaaaaaaaaa"],
        ];
        let letters = ["<", "a", ">", "|", "b", "A", "é", "<a>", "|||A|||"];
        for (place, names) in sets.iter().enumerate() {
            let made = Names::new(names, (0..names.len() as u32).collect()).unwrap();
            assert_eq!(made.beginnings.is_empty(), [7, 9].contains(&place), "{names:?}");
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
                    found.push((id, range.clone()));
                    Ok(range.end)
                })
                .unwrap();
                assert_eq!(found, naive(names, &text), "{names:?} in {text:?}");
                number += 1;
            }
        }
    }

    #[test]
    fn many_names_are_found_like_few() {
        for begins_alike in [true, false] {
            let beginning = if begins_alike { "t" } else { "" };
            let mut names: Vec<String> =
                (0..2000).map(|number| format!("{beginning}{number}")).collect();
            names.sort_unstable();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let made = Names::new(&names, (0..2000).collect()).unwrap();
            assert_eq!(made.beginnings.is_empty(), !begins_alike);
            let text = "t1999t20000 t t12t3 ".repeat(40);
            let mut found = Vec::new();
            made.each(&text, |id, range| {
                found.push((id, range.clone()));
                Ok(range.end)
            })
            .unwrap();
            assert_eq!(found, naive(&names, &text));
        }
    }
}
