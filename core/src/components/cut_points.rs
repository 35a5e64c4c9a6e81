//! Characters between which text can be cut in any context: they are in different grapheme clusters
//! before and after any normalization of characters.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ablation::Mechanism;
use unicode_normalization_alignments::UnicodeNormalization;
use unicode_normalization_alignments::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use crate::components::bert;

/// Answers for the characters up to U+1FFFF, computed in groups of 32 on first use; larger
/// characters have no bit. Several threads may compute the same answers.
#[derive(Debug)]
pub(crate) struct Bits([AtomicU64; ROWS]);

const ROWS: usize = 0x2_0000 / ROW;
/// Number of answers in a word. The bit above the answers is set once they are known.
const ROW: usize = 32;
const KNOWN: u64 = 1 << ROW;

static SETTLED: Bits = Bits::new();

impl Bits {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; ROWS])
    }

    /// Returns the answer for a character; on first use, calls `is_set` for its whole row.
    #[inline(always)]
    pub(crate) fn get(&self, character: char, is_set: impl Fn(char) -> bool) -> bool {
        let code = character as usize;
        let Some(row) = self.0.get(code / ROW) else { return false };
        let mut bits = row.load(Ordering::Relaxed);
        if bits == 0 {
            bits = find(code / ROW * ROW, is_set);
            row.store(bits, Ordering::Relaxed);
        }
        bits >> (code % ROW) & 1 != 0
    }
}

#[cold]
fn find(first: usize, is_set: impl Fn(char) -> bool) -> u64 {
    let is_set = |bit: &usize| char::from_u32((first + bit) as u32).is_some_and(&is_set);
    (0..ROW).filter(is_set).fold(KNOWN, |bits, bit| bits | 1 << bit)
}

/// Whether text can be cut between this character and any other settled character.
#[inline]
pub(crate) fn is_settled(character: char) -> bool {
    match character {
        ' '..='~' | '\t' | '\n' => true,
        // A line feed belongs to the carriage return before it.
        '\r' => false,
        _ if !Mechanism::Settled.is_used() => false,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => true,
        _ => SETTLED.get(character, finds_settled),
    }
}

/// Computes [`is_settled`] with the libraries that segment and normalize.
fn finds_settled(character: char) -> bool {
    let of = |text: String| text.nfkd().map(|(character, _)| character).collect::<String>();
    let lower = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<String>();
    let text = character.to_string();
    let (low, form) = (lower(&text), of(text.clone()));
    let forms = [of(low.clone()), lower(&form), low, form];
    is_alone(&text) && forms.iter().all(|form| *form == text || is_alone(form))
}

/// Whether a text begins with a character that no normalizer removes and that is a cluster on its
/// own, even next to a copy of itself.
fn is_alone(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let is_kept = bert::is_clean(first)
        && bert::is_kept_by_nmt(first)
        && bert::is_no_accent(first)
        && !is_combining_mark(first);
    let borders = |text: &str| text.grapheme_indices(true).map(|(at, _)| at).collect::<Vec<_>>();
    let spaced = format!(" {text}{text} ");
    let ends = [1, 1 + text.len(), 1 + 2 * text.len()];
    let found = borders(&spaced);
    is_kept && ends.iter().all(|end| found.contains(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn borders(text: &str) -> Vec<usize> {
        text.grapheme_indices(true).map(|(at, _)| at).collect()
    }

    #[test]
    fn text_is_cut_between_all_settled_characters() {
        let settled: Vec<char> = ('\0'..=char::MAX).filter(|&c| is_settled(c)).collect();
        // Clusters depend on few kinds of characters; these steps put all kinds next to each other.
        for step in [1, 7, 1013, 30_011] {
            let others = settled.iter().cycle().skip(step);
            for (a, b) in settled.iter().zip(others) {
                assert!(borders(&format!("{a}{b}")).contains(&a.len_utf8()), "{a:?} {b:?}");
            }
        }
        assert!(settled.len() > 100_000);
    }

    #[test]
    fn normal_forms_are_apart_from_white_space() {
        let decompose = |text: String| text.nfd().map(|(c, _)| c).collect::<String>();
        for character in '\0'..=char::MAX {
            let text = character.to_string();
            let first = decompose(text.clone()).chars().next().unwrap();
            let is_made_of_settled = is_settled(character) || is_settled(first);
            if !is_made_of_settled {
                continue;
            }
            // No settled character composes with the character before it.
            let parts = decompose(text.clone());
            assert!(parts.chars().skip(1).all(|part| !is_settled(part)), "{text:?}");
            // This also holds for characters that are composed from a settled character.
            assert!(borders(&format!(" {text}")).contains(&1), "{text:?}");
            assert!(borders(&format!("{text} ")).contains(&text.len()), "{text:?}");
            for form in [text.nfkd().map(|(c, _)| c).collect::<String>(), decompose(text.clone())] {
                for part in form.chars().chain(form.chars().flat_map(char::to_lowercase)) {
                    assert!(borders(&format!("{part} ")).contains(&part.len_utf8()), "{text:?}");
                }
            }
        }
    }
}
