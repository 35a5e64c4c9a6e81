//! Tests the scanner against the regex engine, family by family.

use super::{ALPHABET, Random, exhaustive, matched, oracles, random_text, scanned};
use crate::split::pattern::Pattern;
use crate::split::rules::{FamilyName, SPELLINGS};
use crate::split::{Piece, Splitter, scan};

fn check(oracles: &[(FamilyName, Pattern)], text: &str) {
    for (family, pattern) in oracles {
        assert_eq!(scanned(*family, text), matched(pattern, text).unwrap(), "{family:?} {text:?}");
    }
}

#[test]
fn short_strings_are_cut_as_by_the_regex() {
    let oracles = oracles();
    check(&oracles, "");
    for length in 1..=2 {
        exhaustive(ALPHABET, length, |text| check(&oracles, text));
    }
    exhaustive("aA的\u{301}'s !\n", 4, |text| check(&oracles, text));
    exhaustive("a \n!/\u{3000}1", 5, |text| check(&oracles, text));
}

#[test]
fn random_strings_are_cut_as_by_the_regex() {
    let oracles = oracles();
    let mut random = Random::new(1);
    for _ in 0..10_000 {
        check(&oracles, &random_text(&mut random, 40, 6));
    }
}

/// Contexts that reveal the class of the character in the middle.
const CONTEXTS: &[(&str, &str)] = &[
    ("", ""),
    ("a", "a"),
    ("A", "A"),
    (" ", " "),
    ("!", "!"),
    ("1", "1"),
    ("的", "的"),
    ("\n", "b"),
    ("!!", "\n"),
];

fn check_code_points(
    oracles: &[(FamilyName, Pattern)],
    codes: impl Iterator<Item = u32>,
    contexts: &[(&str, &str)],
) {
    let mut text = String::new();
    for c in codes.filter_map(char::from_u32) {
        for (before, after) in contexts {
            text.clear();
            text.push_str(before);
            text.push(c);
            text.push_str(after);
            check(oracles, &text);
        }
    }
}

#[test]
fn code_points_are_cut_as_by_the_regex() {
    let oracles = oracles();
    // The tests of `chars` compare every class; this test samples code points in context.
    check_code_points(&oracles, (0..=char::MAX as u32).step_by(97), CONTEXTS);
    let mut text = String::new();
    for c in (0..0x3400).filter_map(char::from_u32) {
        text.clear();
        text.extend(['a', c, ' ', c, 'A', c, c, '!', c, '1', c, '\n', c]);
        check(&oracles, &text);
    }
}

#[test]
#[ignore = "takes a minute"]
fn many_strings_are_cut_as_by_the_regex() {
    let oracles = oracles();
    exhaustive(ALPHABET, 3, |text| check(&oracles, text));
    let letters: String = ALPHABET.chars().take(24).collect();
    exhaustive(&letters, 4, |text| check(&oracles, text));
    let mut random = Random::new(2);
    for _ in 0..50_000 {
        check(&oracles, &random_text(&mut random, 60, 9));
    }
}

#[test]
#[ignore = "takes a minute"]
fn many_code_points_are_cut_as_by_the_regex() {
    // Covers all planes with ideographs.
    check_code_points(&oracles(), (0..0x3_4000).step_by(5), CONTEXTS);
}

#[test]
fn every_spelling_is_cut_by_its_family() {
    for (family, spelling) in SPELLINGS {
        assert_eq!(FamilyName::of_pattern(spelling), Some(*family));
        // One extra space makes a different pattern.
        assert_eq!(FamilyName::of_pattern(&format!("{spelling} ")), None);
    }
    for family in FamilyName::ALL {
        assert!(SPELLINGS.iter().any(|(spelled, _)| spelled == family));
    }
}

#[test]
fn safe_cuts_change_no_piece() {
    let mut random = Random::new(4);
    let mut cuts = 0;
    for _ in 0..20_000 {
        let text = random_text(&mut random, 12, 3);
        let mut near = 0;
        while let Some(at) = scan::safe_cut(&text, near) {
            near = at + 1;
            cuts += 1;
            for family in FamilyName::ALL {
                let mut parts = scanned(*family, &text[..at]);
                let rest = scanned(*family, &text[at..]);
                parts.extend(rest.iter().map(|p| Piece { start: p.start + at, end: p.end + at }));
                assert_eq!(parts, scanned(*family, &text), "{family:?} {text:?} at {at}");
            }
        }
    }
    assert!(cuts > 10_000);
}

#[test]
fn safe_cuts_are_found_from_any_byte() {
    let splitter = Splitter::new(SPELLINGS[0].1).unwrap();
    let text = "你好，世界 a'b 1.";
    for near in 0..text.len() + 3 {
        let cuts = [6, 15, 19, 21];
        let expected = cuts.into_iter().find(|&cut| cut >= near);
        assert_eq!(splitter.safe_cut(text, near), expected, "{near}");
    }
}
