//! The scanner against the regex engine, family by family.

use super::{
    ALPHABET, Random, exhaustive, linear_spellings, matched, oracles, random_text, scanned,
};
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
    let letters = ['a', 'A', '的', '\u{301}', '\'', 's', ' ', '!', '\n'];
    exhaustive(&letters, 4, |text| check(&oracles, text));
    let spaces = ['a', ' ', '\n', '!', '/', '\u{3000}', '1'];
    exhaustive(&spaces, 5, |text| check(&oracles, text));
}

#[test]
fn random_strings_are_cut_as_by_the_regex() {
    let oracles = oracles();
    let mut random = Random::new(1);
    for _ in 0..10_000 {
        check(&oracles, &random_text(&mut random, 40, 6));
    }
}

/// Contexts that show the class of the character in the middle.
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

fn check_code_points(oracles: &[(FamilyName, Pattern)], step: u32, contexts: &[(&str, &str)]) {
    let mut text = String::new();
    for c in (0..=char::MAX as u32).step_by(step as usize).filter_map(char::from_u32) {
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
    // Every code point is compared class by class in `chars`; here a sample of them in context.
    check_code_points(&oracles, 97, CONTEXTS);
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
    exhaustive(&ALPHABET[..24], 4, |text| check(&oracles, text));
    let mut random = Random::new(2);
    for _ in 0..50_000 {
        check(&oracles, &random_text(&mut random, 60, 9));
    }
}

#[test]
#[ignore = "takes a minute"]
fn many_code_points_are_cut_as_by_the_regex() {
    check_code_points(&oracles(), 5, CONTEXTS);
}

#[test]
fn every_spelling_is_cut_by_its_family() {
    for (family, spelling) in SPELLINGS {
        assert_eq!(FamilyName::of_pattern(spelling), Some(*family));
        // A space more is another pattern.
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

#[test]
fn a_piece_ends_where_it_is_said_to_if_it_is_cut() {
    let mut random = Random::new(5);
    let (mut cuts, mut prefixes, mut suffixes) = (0, 0, 0);
    for _ in 0..20_000 {
        let text = random_text(&mut random, 12, 4);
        for (family, spelling) in linear_spellings() {
            let splitter = Splitter::new(spelling).unwrap();
            for Piece { start, end } in scanned(family, &text) {
                let piece = splitter.cut_piece(&text, start).unwrap();
                assert_eq!(piece.end(), end, "{family:?} {text:?} at {start}");
                let places: Vec<usize> =
                    (start..=text.len()).filter(|&at| text.is_char_boundary(at)).collect();
                for from in places.iter().copied().filter(|&from| piece.covers(from)) {
                    for cut in places.iter().copied().filter(|&cut| from < cut) {
                        let Some(known) = piece.end_with_cut(&text, from, cut) else { continue };
                        cuts += 1;
                        let found = splitter.piece_end(&text[..cut], from);
                        assert_eq!(found, Some(known), "{family:?} {text:?} {from}..{cut}");
                    }
                }
                let ends = piece.prefixes(&text).unwrap_or(0..0);
                for end in ends.filter(|&end| text.is_char_boundary(end)) {
                    prefixes += 1;
                    let found = splitter.piece_end(&text[..end], start);
                    assert_eq!(found, Some(end), "{family:?} {text:?} {start}..{end}");
                }
                for place in piece.suffixes(&text).filter(|&place| text.is_char_boundary(place)) {
                    suffixes += 1;
                    let found = splitter.piece_end(&text, place);
                    assert_eq!(found, Some(end), "{family:?} {text:?} from {place}");
                }
            }
        }
    }
    let counts = [cuts, prefixes, suffixes];
    assert!(counts.iter().all(|&count| count > 100_000), "{counts:?}");
}

/// The splitter of the first spelling of a family.
fn splitter_of(family: FamilyName) -> Splitter {
    let spelling = SPELLINGS.iter().find(|(spelled, _)| *spelled == family).unwrap().1;
    Splitter::new(spelling).unwrap()
}

/// What a cut leaves of a piece is known without another look at the text, where that can be.
#[test]
fn what_is_left_of_a_piece_is_known() {
    use FamilyName::{Kimi, Nemotron, O200k, Olmo3, R50k};
    // A piece that is a text, the ends up to each of which it is one, and the starts.
    for (family, text, prefixes, suffixes) in [
        (R50k, "abcd", 2..5, 0..4),
        (R50k, " abcd", 2..6, 1..5),
        (R50k, "的的的", 6..10, 0..9),
        (R50k, "----", 2..5, 1..3),
        (R50k, " ----", 2..6, 1..4),
        (R50k, " \n\n ", 2..5, 0..4),
        (Olmo3, "    ", 2..5, 0..4),
        (O200k, "ABcd", 2..5, 0..4),
        (O200k, " ABcd", 2..6, 1..5),
        (Nemotron, "的的的", 6..10, 0..9),
        (Kimi, " ----", 2..6, 1..4),
    ] {
        let piece = splitter_of(family).cut_piece(text, 0).unwrap();
        assert_eq!(piece.prefixes(text), Some(prefixes.clone()), "{family:?} {text:?}");
        assert_eq!(piece.suffixes(text), suffixes, "{family:?} {text:?}");
        assert!(piece.covers(0), "{family:?} {text:?}");
        for cut in prefixes {
            assert_eq!(piece.end_with_cut(text, 0, cut), Some(cut), "{family:?} {text:?} {cut}");
        }
    }
    let text = "   a";
    let piece = splitter_of(R50k).cut_piece(text, 0).unwrap();
    assert!((0..3).all(|start| piece.covers(start)) && !piece.covers(3));
    let ends = [3, 4].map(|cut| piece.end_with_cut(text, 0, cut));
    assert_eq!(ends, [Some(3), Some(2)]);
}

/// Borders stay, as far as the rules tell.
#[test]
fn borders_are_known_to_stay() {
    use FamilyName::{DeepSeek, R50k};
    assert!(splitter_of(DeepSeek).is_settled("ab cd", 2));
    let splitter = splitter_of(R50k);
    assert_eq!(splitter.space_end("a   b", 3), Some(4));
    assert_eq!([4, 5].map(|end| splitter.is_settled_in("a   b", 3, end)), [false, true]);
    // An apostrophe before the border, too far from the end for a contraction, and one behind it.
    assert!(splitter.is_final("x' ab", 2) && splitter.is_final("a '", 1));
    assert!(!splitter.is_final("x'", 1));
    assert!(splitter.is_final("--bc", 2));
}

#[test]
fn settled_borders_stay_where_the_text_is_cut() {
    let mut random = Random::new(6);
    let mut settled = 0;
    for _ in 0..20_000 {
        let text = random_text(&mut random, 12, 4);
        for (family, spelling) in SPELLINGS {
            let splitter = Splitter::new(spelling).unwrap();
            let pieces = scanned(*family, &text);
            for (before, border) in pieces.iter().map(|piece| piece.end).enumerate() {
                for end in (border..=text.len()).filter(|&end| text.is_char_boundary(end)) {
                    if splitter.is_settled_in(&text, border, end) {
                        settled += 1;
                        let cut = scanned(*family, &text[..end]);
                        assert_eq!(cut[..=before], pieces[..=before], "{family:?} {text:?} {end}");
                    }
                }
            }
        }
    }
    assert!(settled > 100_000);
}

#[test]
fn final_borders_stay_where_the_text_goes_on() {
    let mut random = Random::new(7);
    let mut kept = 0;
    for _ in 0..20_000 {
        let text = random_text(&mut random, 12, 4);
        for (family, spelling) in SPELLINGS {
            let splitter = Splitter::new(spelling).unwrap();
            let pieces = scanned(*family, &text);
            for end in (1..text.len()).filter(|&end| text.is_char_boundary(end)) {
                let window = &text[..end];
                let ends = scanned(*family, window).into_iter().map(|piece| piece.end).enumerate();
                for (before, border) in ends {
                    if border < end
                        && splitter.is_settled(window, border)
                        && splitter.is_final(window, border)
                    {
                        kept += 1;
                        let cut = scanned(*family, window);
                        assert_eq!(cut[..=before], pieces[..=before], "{family:?} {text:?} {end}");
                    }
                }
            }
        }
    }
    assert!(kept > 100_000, "{kept}");
}
