//! Initial pieces of training: characters, and substrings that occur more than once.
//!
//! Substrings are found in sorted suffixes. Only prefixes of the suffixes count: as many characters
//! as a piece may have, plus one.

use std::cmp::Reverse;

use crate::error::Result;
use crate::polling::poll;

use super::Place;
use super::matches::Matches;
use super::words::{END, Words};

/// A substring and all its occurrences: a range of sorted suffixes.
#[derive(Debug, Clone, Copy)]
struct Substring {
    start: u32,
    places: u32,
    length: u32,
}

impl Substring {
    /// Returns the total number of characters in all occurrences.
    fn score(&self) -> u64 {
        u64::from(self.places) * u64::from(self.length)
    }
}

/// Initial pieces, and the positions where they match.
pub(super) struct Seeds {
    /// Count of a character, or total number of characters in all occurrences of a substring.
    pub(super) scores: Vec<f64>,
    pub(super) pieces: Vec<Place>,
    pub(super) matches: Matches,
}

/// Finds the characters of words, then the substrings with the most total characters, up to `most`
/// pieces.
///
/// As in Hugging Face's trainer, a substring counts once per position in distinct words. A
/// substring whose occurrences all have the same next character, or all end words, is omitted.
pub(super) fn find(words: &Words, most: usize, longest: usize) -> Result<Seeds> {
    let mut characters = words.character_counts();
    characters.sort_unstable_by_key(|&it| Reverse(it));
    let mut scores: Vec<f64> = characters.iter().map(|&(count, _)| count as f64).collect();
    let mut sorter = Sorter { words, suffixes: by_character(words), found: Vec::new(), longest };
    let mut buckets = vec![0..0; words.characters.len() + 1];
    let mut start = 0;
    while start < sorter.suffixes.len() {
        let first = words.text[sorter.suffixes[start] as usize];
        let group = &sorter.suffixes[start..];
        let end = start + group.partition_point(|&at| words.text[at as usize] == first);
        sorter.sort(start, end)?;
        buckets[first as usize] = start..end;
        start = end;
    }
    let Sorter { suffixes, mut found, .. } = sorter;
    let room = most.saturating_sub(scores.len()).max(1);
    // On ties, the text that is later in the order of characters comes first.
    let key = |it: &Substring| Reverse((it.score(), it.start, it.length));
    if found.len() > room {
        found.select_nth_unstable_by_key(room - 1, key);
        found.truncate(room);
    }
    found.sort_unstable_by_key(key);
    scores.extend(found.iter().map(|it| it.score() as f64));
    let ranges = characters.iter().map(|&(_, code)| (buckets[code as usize].clone(), 1));
    let ranges = ranges.chain(found.iter().map(|it| {
        let start = it.start as usize;
        (start..start + it.places as usize, it.length)
    }));
    let places: Vec<(&[u32], u32)> =
        ranges.map(|(range, length)| (&suffixes[range], length)).collect();
    let matches = Matches::new(words.text.len(), &places)?;
    let pieces = places.iter().map(|&(places, length)| Place { at: places[0], length }).collect();
    Ok(Seeds { scores, pieces, matches })
}

/// Returns the positions of all characters, sorted by character.
fn by_character(words: &Words) -> Vec<u32> {
    let mut ends = vec![0u32; words.characters.len() + 2];
    let is_sorted = |&code: &u32| code != END && !words.is_border(code);
    for &code in words.text.iter().filter(|&code| is_sorted(code)) {
        ends[code as usize + 1] += 1;
    }
    for code in 1..ends.len() {
        ends[code] += ends[code - 1];
    }
    let mut suffixes = vec![0; ends[ends.len() - 1] as usize];
    for (at, code) in (0..).zip(&words.text).filter(|&(_, code)| is_sorted(code)) {
        let place = &mut ends[*code as usize];
        suffixes[*place as usize] = at;
        *place += 1;
    }
    suffixes
}

struct Sorter<'a> {
    words: &'a Words,
    suffixes: Vec<u32>,
    found: Vec<Substring>,
    /// Maximum number of characters in a piece.
    longest: usize,
}

/// Next characters of a suffix, and its position.
type Keyed = (u64, u32);

impl Sorter<'_> {
    /// Sorts suffixes with the same first character, and finds the substrings that begin there.
    fn sort(&mut self, start: usize, end: usize) -> Result<()> {
        poll((end - start) * 16)?;
        if end - start < 2 {
            return Ok(());
        }
        let mut keyed: Vec<Keyed> = self.suffixes[start..end].iter().map(|&at| (0, at)).collect();
        self.sort_from(&mut keyed, 1);
        for (suffix, &(_, at)) in self.suffixes[start..end].iter_mut().zip(&keyed) {
            *suffix = at;
        }
        drop(keyed);
        self.find(start, end);
        Ok(())
    }

    /// Sorts suffixes whose first `depth` characters are equal.
    fn sort_from(&self, keyed: &mut [Keyed], depth: usize) {
        if depth > self.longest || keyed.len() < 2 {
            return;
        }
        let width = self.words.width;
        let at_once = 64 / width;
        for (key, at) in keyed.iter_mut() {
            *key = self.words.key(*at as usize + depth, at_once);
        }
        keyed.sort_unstable();
        let mut start = 0;
        while start < keyed.len() {
            let key = keyed[start].0;
            let mut end = start + 1;
            while end < keyed.len() && keyed[end].0 == key {
                end += 1;
            }
            // A word that ends within the key has no more characters.
            if key & ((1 << width) - 1) != 0 {
                self.sort_from(&mut keyed[start..end], depth + at_once);
            }
            start = end;
        }
    }

    /// Returns the length in characters of the common prefix of two suffixes, longer than any piece
    /// if both words end there.
    fn common(&self, a: u32, b: u32) -> u32 {
        let (a, b) = (a as usize, b as usize);
        let most = self.longest + 1;
        for length in 1..most {
            let [one, other] = [a, b].map(|at| self.words.sorted(at + length));
            if one != other {
                return length as u32;
            }
            if one == END {
                break;
            }
        }
        most as u32
    }

    /// Finds the substrings in sorted suffixes that are followed by different characters.
    fn find(&mut self, start: usize, end: usize) {
        let mut open: Vec<(u32, u32)> = Vec::new();
        for next in start + 1..=end {
            let common = match next < end {
                true => self.common(self.suffixes[next - 1], self.suffixes[next]),
                false => 0,
            };
            let mut from = next as u32 - 1;
            while let Some(&(length, begin)) = open.last().filter(|top| top.0 > common) {
                open.pop();
                from = begin;
                if length >= 2 && length as usize <= self.longest {
                    let places = next as u32 - begin;
                    self.found.push(Substring { start: begin, places, length });
                }
            }
            if open.last().is_none_or(|top| top.0 < common) {
                open.push((common, from));
            }
        }
    }
}
