//! Searches a text for the names of added tokens.

use std::ops::Range;

use crate::ablation::Mechanism;
use crate::memory::ask_for;
use crate::special_tokens::Automaton;
use aho_corasick::packed::Searcher;
use aho_corasick::{Anchored, Input};
use memchr::memmem::Finder;
use memchr::{memchr, memchr2, memchr3};

use crate::error::Result;

/// Maximum number of distinct first bytes of names, and of prefixes to search for.
const MOST_FIRST: usize = 3;
const MOST_BEGINNINGS: usize = 16;
/// Maximum length in bytes of a prefix, if there are several.
const LONGEST: usize = 8;
/// Maximum number of positions at which a name may contain the first byte of any name, not counting
/// the longest other name that is its prefix. The limit bounds how often the automaton reads the
/// same text, which keeps the time linear.
const MOST_INSIDE: usize = 8;
/// If more prefixes lead to no name than this number, plus one per `BETWEEN_MISSES` bytes, the
/// automaton alone is faster.
const FEW_MISSES: usize = 16;
const BETWEEN_MISSES: usize = 32;
/// Below this text length in bytes, searching for the first byte of a name is faster.
const SHORT: usize = 64;
/// Upper bound on the memory in bytes for building an automaton, per byte of a name.
const MEMORY: usize = 64;

/// Names, each with the id of its token.
#[derive(Debug)]
pub(crate) struct Names {
    /// `None` for a single name, which is its own prefix.
    automaton: Option<Automaton>,
    ids: Vec<u32>,
    /// The automaton runs only where this search finds the prefix of a name. `None` if the names
    /// have too many first bytes, or contain these bytes too often.
    beginnings: Option<Beginnings>,
}

/// Searches for the prefixes of names.
#[derive(Debug)]
struct Beginnings {
    search: Search,
    /// The first bytes of all names, up to [`MOST_FIRST`].
    first: Vec<u8>,
}

#[derive(Debug)]
enum Search {
    /// The common prefix of all names, often `<|`.
    One(Finder<'static>),
    /// Up to [`MOST_BEGINNINGS`] prefixes of up to [`LONGEST`] bytes.
    Several(Searcher),
}

impl Names {
    /// Builds the search. `names` must be sorted, distinct and nonempty.
    pub(crate) fn new(names: &[&str], ids: Vec<u32>) -> Result<Self> {
        let beginnings =
            if Mechanism::Beginnings.is_used() { Beginnings::new(names) } else { None };
        if names.len() == 1 && beginnings.is_some() {
            return Ok(Self { automaton: None, ids, beginnings });
        }
        let length: usize = names.iter().map(|name| name.len()).sum();
        ask_for(length.saturating_mul(MEMORY))?;
        let automaton = Automaton::new(names, beginnings.is_some())?;
        Ok(Self { automaton: Some(automaton), ids, beginnings })
    }

    /// Calls `found` with the id and range of each match in `text`, leftmost-longest. `found`
    /// returns where the search continues: at the end of the match, or within it.
    pub(crate) fn each(
        &self,
        text: &str,
        mut found: impl FnMut(u32, Range<usize>) -> Result<usize>,
    ) -> Result<()> {
        let bytes = text.as_bytes();
        let Some(automaton) = &self.automaton else {
            let Some(Beginnings { search: Search::One(name), .. }) = &self.beginnings else {
                return Ok(());
            };
            let length = name.needle().len();
            return name
                .find_iter(bytes)
                .try_for_each(|start| found(self.ids[0], start..start + length).map(drop));
        };
        let mut found = |(name, range): (usize, Range<usize>)| found(self.ids[name], range);
        let Some(beginnings) = &self.beginnings else {
            return each_from(automaton, text, 0, found);
        };
        if text.len() < SHORT && !beginnings.may_be_in(bytes) {
            return Ok(());
        }
        let (mut from, mut misses) = (0, 0);
        while let Some(start) = beginnings.find(bytes, from) {
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
        Ok(())
    }
}

impl Beginnings {
    /// `None` if the search would not pay off. `names` must be sorted, distinct and nonempty.
    fn new(names: &[&str]) -> Option<Self> {
        let mut first: Vec<u8> = names.iter().map(|name| name.as_bytes()[0]).collect();
        first.dedup();
        if first.len() > MOST_FIRST || (names.len() > 1 && !hold_few(names, &first)) {
            return None;
        }
        // Names are sorted, so a common prefix of the first and the last is a prefix of all.
        let (one, other) = (names[0].as_bytes(), names[names.len() - 1].as_bytes());
        let alike = one.iter().zip(other).take_while(|(a, b)| a == b).count();
        let search = if alike > 1 || names.len() == 1 {
            Search::One(Finder::new(&one[..alike]).into_owned())
        } else {
            Search::Several(several(names)?)
        };
        Some(Self { search, first })
    }

    /// Whether the first byte of a name occurs in `text`.
    fn may_be_in(&self, text: &[u8]) -> bool {
        let found = match self.first[..] {
            [a] => memchr(a, text),
            [a, b] => memchr2(a, b, text),
            [a, b, c, ..] => memchr3(a, b, c, text),
            [] => None,
        };
        found.is_some()
    }

    /// Returns the first position at or after `from` at which a name may begin.
    fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        match &self.search {
            Search::One(beginning) => Some(from + beginning.find(&text[from..])?),
            Search::Several(several) => {
                several.find_in(text, (from..text.len()).into()).map(|found| found.start())
            }
        }
    }
}

/// Creates a searcher for the first bytes of names, as many bytes as keep the number of distinct
/// prefixes small. `None` if the processor lacks the vector instructions.
fn several(names: &[&str]) -> Option<Searcher> {
    let cut = |length: usize| {
        let mut cut: Vec<&[u8]> =
            names.iter().map(|name| &name.as_bytes()[..length.min(name.len())]).collect();
        cut.dedup();
        cut
    };
    let beginnings = (1..=LONGEST).rev().map(cut).find(|cut| cut.len() <= MOST_BEGINNINGS)?;
    Searcher::new(beginnings)
}

/// Calls `found` with each match at or after byte `from`; `found` returns where the search
/// continues.
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

/// Whether each name contains these bytes at most [`MOST_INSIDE`] times after the longest other
/// name that is its prefix.
fn hold_few<'a>(names: &[&'a str], bytes: &[u8]) -> bool {
    // A chain of names, each a prefix of the next name.
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
            assert_eq!(made.beginnings.is_none(), [7, 9].contains(&place), "{names:?}");
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
}
