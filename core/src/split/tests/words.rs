//! Tests the cutter of words against the rules, character by character, on every tier.

use super::{ALPHABET, Random, random_text};
use crate::split::words::{Apart, WordChecks, WordRules, WordSpaces, WordSplitter};
use crate::split::{BATCH, Piece};
use crate::tier::Tier;

const MORE: &[char] = &[
    '«', '»', '，', '。', '“', '＄', '\u{2028}', '〉', '\u{301f}', '！', '’', '…', ' ', ' ', '\n',
    '\r', '\t', '!', '~', '`', '\u{3400}', '\u{4dbf}', '\u{4dc0}', '\u{9fff}', 'x',
];

fn permits(character: char) -> bool {
    (character as u32).is_multiple_of(3)
}

/// Whether two characters are apart: by any rule.
fn are_apart(before: char, after: char) -> bool {
    (before as u32 + 3 * after as u32) % 5 < 2
}

/// Whether a character of several bytes is isolated as punctuation is.
fn is_wide(character: char) -> bool {
    matches!(
        character,
        '«' | '·' | '»' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{203e}' | '、'..='〃' | '〈'..='】'
            | '！'..='＃' | '％'..='＊' | '，'..='／' | '：' | '；' | '？' | '＠'
    )
}

fn is_plain(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='~')
}

/// The words by the rules.
fn expected(rules: WordRules, is_picky: bool, is_cut: bool, text: &str) -> Vec<Piece> {
    let characters: Vec<(usize, char)> = text.char_indices().collect();
    let is_space = |c: char| c == ' ' || !rules.only_blank && matches!(c, '\t' | '\n' | '\r');
    let accepts = |place: Option<&(usize, char)>| {
        !is_picky || place.is_none_or(|&(_, c)| is_plain(c) || permits(c))
    };
    let is_alone = |c: char| {
        rules.isolates_punctuation && (c.is_ascii_punctuation() || is_wide(c))
            || rules.isolates_han && matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
    };
    let (mut words, mut start, mut was_space) = (Vec::new(), 0, false);
    let mut end_word = |start: usize, end: usize| {
        if start < end {
            words.push(Piece { start, end });
        }
    };
    for (index, &(at, c)) in characters.iter().enumerate() {
        let end = at + c.len_utf8();
        let before = index.checked_sub(1).and_then(|before| characters.get(before));
        let after = characters.get(index + 1);
        let may_cut = is_space(c) && accepts(before) && accepts(after);
        let is_dropped = match rules.spaces {
            WordSpaces::Dropped => true,
            WordSpaces::Last => after.is_none_or(|&(_, c)| is_space(c)),
            WordSpaces::Rows => false,
        };
        let is_apart = |&(_, before): &(usize, char)| {
            (before.is_ascii_punctuation() || c.is_ascii_punctuation())
                && !is_space(before)
                && !is_space(c)
                && are_apart(before, c)
        };
        if may_cut && is_dropped || is_alone(c) {
            end_word(start, at);
            if is_alone(c) {
                end_word(at, end);
            }
            start = end;
        } else if may_cut && !(rules.spaces == WordSpaces::Rows && was_space)
            || is_cut && before.is_some_and(is_apart)
        {
            end_word(start, at);
            start = at;
        }
        was_space = is_space(c);
    }
    end_word(start, text.len());
    words
}

fn found(splitter: &WordSplitter, is_picky: bool, is_cut: bool, text: &str) -> Vec<Piece> {
    let mut ascii = [[0; 128]; 128];
    for (before, row) in (0..).zip(&mut ascii) {
        for (after, place) in (0..).zip(row) {
            *place = u8::from(are_apart(char::from(before), char::from(after)));
        }
    }
    let others = |text: &str, place: usize| {
        let before = text[..place].chars().next_back().unwrap();
        are_apart(before, text[place..].chars().next().unwrap())
    };
    let apart = is_cut.then_some(Apart { ascii: &ascii, others: &others });
    let checks = WordChecks { permits: is_picky.then_some(&permits), apart };
    let mut words = splitter.words(text, checks);
    let mut batch = [Piece::default(); BATCH];
    let mut pieces = Vec::new();
    loop {
        match words.fill(&mut batch) {
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
            text.insert(place, random.pick(alphabet));
        }
        let bits = random.below(64);
        let flag = |bit: usize| bits >> bit & 1 == 1;
        let rules = WordRules {
            spaces: random.pick(&[WordSpaces::Dropped, WordSpaces::Last, WordSpaces::Rows]),
            only_blank: flag(1),
            isolates_punctuation: flag(2),
            isolates_han: flag(3),
        };
        let expected = expected(rules, flag(4), flag(5), &text);
        for tier in Tier::all() {
            let splitter = WordSplitter::with_tier(rules, tier);
            assert_eq!(found(&splitter, flag(4), flag(5), &text), expected, "{rules:?} {text:?}");
        }
    }
}
