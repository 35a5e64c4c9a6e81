//! Tests the word splitter, on every tier, against the rules applied character by character.

use super::{ALPHABET, Random, random_text};
use crate::split::{BATCH, Batch, Piece, WordRules, WordSplitter, Words};
use crate::tier::Tier;

const MORE: &str = "«»，。“＄\u{2028}〉\u{301f}！’…  \n\r\t!~`\u{3400}\u{4dbf}\u{4dc0}\u{9fff}x";

fn permits(character: char) -> bool {
    (character as u32).is_multiple_of(3)
}

type Fill = fn(&mut Words<'_>, &mut Batch) -> usize;

fn found(splitter: &WordSplitter, is_picky: bool, text: &str, fill: Fill) -> Vec<Piece> {
    let mut words = splitter.words(text, is_picky.then_some(&permits));
    let mut batch = [Piece::default(); BATCH];
    let mut pieces = Vec::new();
    loop {
        match fill(&mut words, &mut batch) {
            0 => return pieces,
            count => pieces.extend_from_slice(&batch[..count]),
        }
    }
}

#[test]
fn words_are_those_of_the_rules() {
    let mut random = Random::new(7);
    for round in 0..20_000 {
        let length = if round % 500 == 0 { 20_000 } else { 150 };
        let mut text = random_text(&mut random, length, 80);
        for _ in 0..random.below(10) {
            let place = random.below(text.len() + 1);
            let place = (place..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap();
            let alphabet = if random.below(4) == 0 { ALPHABET } else { MORE };
            text.insert(place, random.letter(alphabet));
        }
        let bits = random.below(32);
        let flag = |bit: usize| bits >> bit & 1 == 1;
        let rules = WordRules {
            keeps_spaces: flag(0),
            only_blank: flag(1),
            isolates_punctuation: flag(2),
            isolates_han: flag(3),
        };
        let find = |tier, fill: Fill| {
            let splitter = WordSplitter::with_tier(rules, tier);
            found(&splitter, flag(4), &text, fill)
        };
        let expected = find(Tier::best(), |words, batch| words.fill_plainly(batch));
        for tier in Tier::all() {
            assert_eq!(
                find(tier, |words, batch| words.fill(batch)),
                expected,
                "{rules:?} {text:?}"
            );
        }
    }
}
