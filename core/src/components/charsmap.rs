//! `Precompiled`: the normalizer of a SentencePiece model, as `tokenizers` runs it.
//!
//! The rules form a trie, a double array over bytes, whose leaves are offsets in a list of
//! replacements that end with U+0000. A grapheme cluster of fewer than six bytes is replaced as a
//! whole if any prefix of it has a rule, by the shortest such prefix; otherwise its characters are
//! replaced. SentencePiece itself applies the longest rule and ignores clusters
//! ([`Charsmap::longest`]).

use std::ops::Range;

use crate::polling::poll;
use base64::Engine;
use unicode_segmentation::UnicodeSegmentation;

use crate::components::cut_points::{Bits, is_settled};
use crate::components::encoding::copied;
use crate::components::spec::BASE64;
use crate::error::{Error, Result};

#[derive(Debug)]
pub(crate) struct Charsmap {
    trie: Vec<u32>,
    replacements: String,
    /// Characters for which [`Charsmap::is_kept`] holds.
    kept: Box<Bits>,
}

/// One character of a key in the charsmap, with the rule that ends at it, if any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule<'a> {
    pub(crate) character: char,
    /// Replacement of the text up to and including the character, if that text has a rule.
    pub(crate) rule: Option<&'a str>,
    pub(crate) is_first: bool,
    /// Whether no rule extends this text.
    pub(crate) is_last: bool,
}

/// Maximum number of visits per unit of a trie; above it, the trie is malformed.
const MOST_VISITS: usize = 16;

/// Maximum length in bytes of a cluster that is looked up.
const LONGEST: usize = 5;

impl Charsmap {
    /// Reads the rules from base64. `path` is the JSON path in the file.
    pub(crate) fn new(base64: &str, path: &str) -> Result<Self> {
        let malformed =
            |what: &str| Error::Invalid(format!("{path}.precompiled_charsmap: malformed: {what}"));
        let bytes = BASE64.decode(base64).map_err(|error| malformed(&error.to_string()))?;
        let (size, bytes) = bytes.split_first_chunk().ok_or_else(|| malformed("no size"))?;
        // The size is in bytes; an incomplete last unit is not read.
        let units = u32::from_le_bytes(*size) as usize / 4;
        let (trie, replacements) =
            bytes.split_at_checked(units * 4).ok_or_else(|| malformed("a trie that is cut off"))?;
        let units = trie.chunks_exact(4);
        let trie = units
            .map(|unit| u32::from_le_bytes([unit[0], unit[1], unit[2], unit[3]]))
            .collect::<Vec<_>>();
        if trie.is_empty() {
            return Err(malformed("an empty trie"));
        }
        let replacements = String::from_utf8(copied(replacements)?)
            .map_err(|_| malformed("replacements that are not UTF-8"))?;
        Ok(Self { trie, replacements, kept: Box::new(Bits::new()) })
    }

    /// Returns all replacements, separated by U+0000.
    pub(crate) fn replacements(&self) -> &str {
        &self.replacements
    }

    /// Returns the replacement of the shortest prefix of `part` that has a rule.
    fn rule(&self, part: &str) -> Result<Option<&str>> {
        let mut found = None;
        self.walk(part.as_bytes(), |_, start| {
            found = start;
            found.is_none()
        })?;
        found.map(|start| self.replacement(start)).transpose()
    }

    /// Whether the line end `\r\n`, which is one cluster, has a different rule than `\r` alone.
    pub(crate) fn joins_line_ends(&self) -> Result<bool> {
        Ok(self.rule("\r\n")? != self.rule("\r")?)
    }

    /// Returns the length of the longest prefix of `text` that has a rule, and its replacement.
    pub(crate) fn longest(&self, text: &str) -> Result<Option<(usize, &str)>> {
        let mut found = None;
        self.walk(text.as_bytes(), |length, start| {
            found = start.map(|start| (length, start)).or(found);
            true
        })?;
        let Some((length, start)) = found else { return Ok(None) };
        if !text.is_char_boundary(length) {
            return Err(malformed());
        }
        Ok(Some((length, self.replacement(start)?)))
    }

    /// Whether there is a rule for these bytes.
    pub(crate) fn has_rule(&self, bytes: &[u8]) -> bool {
        let mut has_rule = false;
        let walked = self.walk(bytes, |length, start| {
            has_rule |= length == bytes.len() && start.is_some();
            true
        });
        walked.is_err() || has_rule
    }

    /// Whether there may be a rule that begins with these bytes.
    pub(crate) fn leads_to(&self, bytes: &[u8]) -> bool {
        let mut reached = 0;
        let walked = self.walk(bytes, |length, _| {
            reached = length;
            true
        });
        walked.is_err() || reached == bytes.len()
    }

    /// Calls `found` with each character of each text that has a rule. Returns false if there are
    /// too many characters, or a text is malformed.
    pub(crate) fn each_character(
        &self,
        mut found: impl FnMut(Rule<'_>) -> Result<()>,
    ) -> Result<bool> {
        const NONE: usize = usize::MAX;
        // Each unit is the child of one base, determined by the unit's label.
        let mut first = vec![NONE; self.trie.len().next_multiple_of(256)];
        let mut next = vec![NONE; self.trie.len()];
        for (place, unit) in self.trie.iter().enumerate() {
            if let label @ 1..=0xff = unit & (1 << 31 | 0xff) {
                next[place] = std::mem::replace(&mut first[place ^ label as usize], place);
            }
        }
        // Texts with the same end share units.
        let mut is_seen = vec![false; self.trie.len()];
        let mut waiting = vec![(0, [0; 4], 0, true)];
        for _ in 0..MOST_VISITS * self.trie.len() {
            let Some((place, mut bytes, mut length, mut is_first)) = waiting.pop() else {
                return Ok(true);
            };
            let unit = self.trie[place];
            let base = place ^ offset(unit);
            if base | 0xff >= self.trie.len() {
                return Ok(false);
            }
            let mut child = first[base];
            if place > 0 {
                bytes[length] = unit as u8;
                length += 1;
                if let Ok(text) = std::str::from_utf8(&bytes[..length]) {
                    let start = (self.trie[base] & !(1 << 31)) as usize;
                    let rule = (unit >> 8 & 1 != 0).then(|| self.replacement(start));
                    let Ok(rule) = rule.transpose() else { return Ok(false) };
                    let character = text.chars().next().unwrap_or_default();
                    found(Rule { character, rule, is_first, is_last: child == NONE })?;
                    (length, is_first) = (0, false);
                    if std::mem::replace(&mut is_seen[place], true) {
                        continue;
                    }
                } else if length == bytes.len() || unit >> 8 & 1 != 0 {
                    return Ok(false);
                }
            }
            while child != NONE {
                waiting.push((child, bytes, length, is_first));
                child = next[child];
            }
        }
        Ok(false)
    }

    /// Calls `found` with the length of each prefix of `bytes` that is a prefix of a rule, and the
    /// start of its replacement if it is a rule, until `found` returns false.
    #[inline(always)]
    fn walk(
        &self,
        bytes: &[u8],
        mut found: impl FnMut(usize, Option<usize>) -> bool,
    ) -> Result<()> {
        let unit = |place: usize| self.trie.get(place).copied().ok_or_else(malformed);
        let mut place = offset(unit(0)?);
        for (at, &byte) in bytes.iter().enumerate().take_while(|&(_, &byte)| byte != 0) {
            place ^= usize::from(byte);
            let next = unit(place)?;
            if next & (1 << 31 | 0xff) != u32::from(byte) {
                break;
            }
            place ^= offset(next);
            let start = match next >> 8 & 1 {
                1 => Some((unit(place)? & !(1 << 31)) as usize),
                _ => None,
            };
            if !found(at + 1, start) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the replacement that begins at this offset of the list.
    fn replacement(&self, start: usize) -> Result<&str> {
        let rest = self.replacements.get(start..).ok_or_else(malformed)?;
        Ok(rest.split('\0').next().unwrap_or(rest))
    }

    /// Returns the replacement of a character that is a cluster on its own.
    pub(crate) fn replaced(&self, character: char) -> Result<Option<&str>> {
        self.rule(character.encode_utf8(&mut [0; 4]))
    }

    /// Calls `found` with each part of a text, in order, and its replacement; `None` for an
    /// unchanged part.
    ///
    /// Clusters are determined only next to characters that are not [settled](is_settled).
    pub(crate) fn each_range(
        &self,
        text: &str,
        mut found: impl FnMut(Range<usize>, Option<&str>) -> Result<()>,
    ) -> Result<()> {
        let mut start = 0;
        while start < text.len() {
            let kept = start + self.kept(&text[start..]);
            if kept > start {
                poll(kept - start)?;
                found(start..kept, None)?;
            }
            start = kept + clusters_end(&text[kept..]);
            let part = &text[kept..start];
            if part.chars().nth(1).is_none() {
                self.each_of_cluster(part, kept, &mut found)?;
                continue;
            }
            for (at, cluster) in part.grapheme_indices(true) {
                poll(cluster.len())?;
                self.each_of_cluster(cluster, kept + at, &mut found)?;
            }
        }
        Ok(())
    }

    fn each_of_cluster(
        &self,
        cluster: &str,
        start: usize,
        found: &mut impl FnMut(Range<usize>, Option<&str>) -> Result<()>,
    ) -> Result<()> {
        if cluster.len() <= LONGEST
            && let Some(rule) = self.rule(cluster)?
        {
            return found(start..start + cluster.len(), Some(rule));
        }
        for (at, character) in cluster.char_indices() {
            let range = at..at + character.len_utf8();
            let rule = self.rule(&cluster[range.clone()])?;
            found(start + range.start..start + range.end, rule)?;
        }
        Ok(())
    }

    /// Returns the length of the unchanged prefix in which each character is a cluster.
    fn kept(&self, text: &str) -> usize {
        let mut last = 0;
        for (at, character) in text.char_indices() {
            if !self.is_kept(character) {
                // The last character may begin a cluster.
                return if is_settled(character) { at } else { last };
            }
            last = at;
        }
        text.len()
    }

    /// Whether a character is settled and has no rule.
    #[inline(always)]
    fn is_kept(&self, character: char) -> bool {
        self.kept.get(character, |character| {
            let rule = self.rule(character.encode_utf8(&mut [0; 4]));
            is_settled(character) && matches!(rule, Ok(None))
        })
    }
}

/// Returns the distance from the index of a unit to the base of its children.
#[inline(always)]
fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 1 << 9) >> 6)) as usize
}

fn malformed() -> Error {
    Error::Invalid("normalizer: the charsmap is malformed".into())
}

/// Returns the end of the clusters at the start of a text: the first position between two settled
/// characters.
fn clusters_end(text: &str) -> usize {
    let mut characters = text.char_indices();
    let mut before = characters.next().is_some_and(|(_, first)| is_settled(first));
    for (at, character) in characters {
        let after = is_settled(character);
        if before && after {
            return at;
        }
        before = after;
    }
    text.len()
}
