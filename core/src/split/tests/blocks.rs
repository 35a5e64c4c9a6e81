//! Tests the block cutter against the scanner, on every tier.

use std::ops::Range;

use super::{ALPHABET, Random, exhaustive, linear_spellings, matched, random_text, scanned};
use crate::split::pattern::Pattern;
use crate::split::rules::FamilyName;
use crate::split::{BATCH, Method, Piece, Splitter};
use crate::tier::Tier;

#[test]
fn the_time_is_linear_and_nothing_overflows() {
    const LENGTH: usize = 1_000_000;
    const UNITS: &str =
        " |\n|的|a|A|' |\u{301}|的A|1|!|\t|\u{3000}|!\n| \n|'s|e\u{301}A|〇|/\n|・|\u{0}";
    let mut texts: Vec<String> =
        UNITS.split('|').map(|unit| unit.repeat(LENGTH / unit.len())).collect();
    texts.push(" ".repeat(LENGTH) + "x");
    texts.push("\n".to_owned() + &" ".repeat(LENGTH) + "x");
    for text in &texts {
        for family in FamilyName::ALL {
            let pieces = scanned(*family, text);
            assert_eq!(pieces.first().unwrap().start, 0);
            assert!(pieces.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!(pieces.last().unwrap().end, text.len());
        }
    }
    let tiers = Tier::all();
    for text in &texts {
        check_tiers(&tiers, text);
    }
    // The patterns themselves, matched by automata.
    for (family, spelling) in linear_spellings() {
        let pattern = Pattern::new(spelling).unwrap();
        for text in &texts[..4] {
            assert_eq!(matched(&pattern, text).unwrap(), scanned(family, text), "{spelling}");
        }
    }
}

/// Returns the pieces that the block cutter finds.
fn cut(family: FamilyName, tier: Tier, text: &str) -> Vec<Piece> {
    let splitter = Splitter { pattern: "".into(), method: Method::Family(family, tier) };
    let mut pieces = splitter.pieces(text);
    let mut batch = [Piece::default(); BATCH];
    let mut all = Vec::new();
    loop {
        let count = pieces.fill(&mut batch).unwrap();
        if count == 0 {
            return all;
        }
        all.extend_from_slice(&batch[..count]);
    }
}

fn check_tiers(tiers: &[Tier], text: &str) {
    for &family in FamilyName::ALL {
        let expected = scanned(family, text);
        for &tier in tiers {
            let found = cut(family, tier, text);
            if found != expected {
                let at =
                    found.iter().zip(&expected).position(|(found, expected)| found != expected);
                let at = at.unwrap_or(found.len().min(expected.len()));
                let near = expected.get(at.saturating_sub(3)).map_or(0, |piece| piece.start);
                panic!(
                    "{family:?} {tier:?}: {:?} for {:?} in {:?}",
                    &found[at.min(found.len())..found.len().min(at + 2)],
                    &expected[at.min(expected.len())..expected.len().min(at + 2)],
                    text[near..].chars().take(90).collect::<String>(),
                );
            }
        }
    }
}

#[test]
fn blocks_cut_short_strings_as_the_scanner() {
    let tiers = Tier::all();
    for length in 0..=2 {
        exhaustive(ALPHABET, length, |text| check_tiers(&tiers, text));
    }
    exhaustive("aA的\u{301}'s !\n/", 4, |text| {
        check_tiers(&tiers, text);
    });
}

/// Hard cases: contractions, marks, digits, whitespace, scripts.
const CASES: &str = "don't|'ſx|he'lL've's|O'RE'D| 's|''t|的AB的C|的ABc|aéB的AB c|x\u{301}A|!!\u{301}!a| !\u{301}\n\n/|\
    \u{301}A|!\u{301}A|12345|1٣٣٣1|〇1〇的⺀a| \n \n  x|  \n|!\n/\n/\n!|!\n//a|\u{A0}\u{A0}a|\
    \u{3000} \u{3000}!|\t\n\t|！\r\n  |😀😀\u{200D}a|的，的| \u{85}\n\u{2028}b|ǅa'S|🇩a|    1|\
    \u{16FF0}a|.ab\u{301}é.é| .ab!!ab|ア・イか\u{3099}\u{3097}x\u{3097}ア|\u{0}\u{0}a\u{0}\u{0}|\
    a\u{200D}\u{200D}的|  \n  的  1|—a…的。b|龥龦々한";

/// Cuts hard cases at each offset of a window, with and without more text after them.
#[test]
fn blocks_cut_at_every_offset_as_the_scanner() {
    let tiers = Tier::all();
    let fillers = ["b", " ", "word ", "的", "é", "!", "\n", "7", "あ", "Zz", "😀"];
    for case in CASES.split('|') {
        for filler in fillers {
            for offset in 0..70 {
                let mut text: String = filler.chars().cycle().take(offset).collect();
                text.push_str(case);
                check_tiers(&tiers, &text);
                text.extend(filler.chars().cycle().take(80));
                text.push_str(case);
                check_tiers(&tiers, &text);
            }
        }
    }
}

/// Runs of characters that the masks leave to the scanner, spanning more than one batch.
#[test]
fn blocks_cut_hard_characters_in_a_row_as_the_scanner() {
    let tiers = Tier::all();
    let units = ["👩\u{200D}", "a\u{200D}b", "\u{0}", "٣٣", "!!\u{301}", "的⺀", "アａ\u{3097}x"];
    for unit in units {
        for gap in ["", " ", "word ", "a long word and \n others "] {
            let unit = format!("{unit}{gap}");
            for count in [2, 9, 40, 1500] {
                check_tiers(&tiers, &unit.repeat(count));
            }
        }
    }
}

fn check_random_texts(seed: u64, count: usize) {
    let tiers = Tier::all();
    let mut random = Random::new(seed);
    for _ in 0..count {
        check_tiers(&tiers, &random_text(&mut random, 150, 12));
        check_tiers(&tiers, &random_text(&mut random, 60, 150));
        check_tiers(&tiers, &random_words(&mut random, 60));
    }
}

/// Returns text-like input: words, numbers and punctuation of several scripts.
fn random_words(random: &mut Random, count: usize) -> String {
    const WORDS: &str = "the| of| House| don't|I'll| WE'VE|camelCase|HTTPServer| 1234567|42|, |.|\n\n|\n    |\
    ;\n//| /*|();|\r\n|\t\t|的时候|。|使用API的|Привет| мир|ёлка|Ελλάδα| कुत्ता|हिन्दी|العربية| ٣٤٥|\
    こんにちは|カタカナー|한국어| 👍🏽|❤️|—|…|“x”|e\u{301}|\u{A0}|\u{3000}|ﬁ|x'|'s| if (a == b) {|\
    <div class=\"x\">|http://a.b/c?d=1|   | \n \n|ſ|'ſ|〇|一二三〇|⺀|Ⅷ|½|\u{200D}|\u{0}|ア・イ|\
    \u{3097}|龥龦|.method|$value|@é";
    let words: Vec<&str> = WORDS.split('|').collect();
    (0..random.below(count)).map(|_| random.pick(&words)).collect()
}

#[test]
fn blocks_cut_random_texts_as_the_scanner() {
    check_random_texts(5, 1_500);
}

#[test]
#[ignore = "takes a minute"]
fn blocks_cut_many_random_texts_as_the_scanner() {
    check_random_texts(6, 30_000);
}

/// Checks every `step`-th code point, 24 code points at a time.
fn check_code_points(codes: Range<u32>, step: usize) {
    let tiers = Tier::all();
    let mut text = String::new();
    for first in codes.step_by(24 * step) {
        text.clear();
        for c in (first..first + 24).filter_map(char::from_u32) {
            text.extend(['a', c, ' ', c, c, '1', c, '!', c, 'A', c, '\n']);
        }
        check_tiers(&tiers, &text);
    }
}

#[test]
fn blocks_classify_code_points_as_the_scanner() {
    check_code_points(0..0x2_0000, 1);
    // Ideographs, private-use and unassigned code points.
    check_code_points(0x2_0000..char::MAX as u32 + 1, 31);
}

#[test]
#[ignore = "takes a minute"]
fn blocks_classify_all_ideographs_as_the_scanner() {
    check_code_points(0x2_0000..0x3_4000, 1);
}

#[test]
fn batches_may_end_anywhere() {
    let tiers = Tier::all();
    for length in [60, 64, 65, 127, 128, 190, 191, 192, 193, 255, 256, 257, 300, 1000] {
        check_tiers(&tiers, &"a ".repeat(length));
        check_tiers(&tiers, &"1".repeat(length));
        check_tiers(&tiers, &("\n".to_owned() + &"1 ".repeat(length)));
    }
}

#[test]
fn a_tier_is_never_above_the_processor() {
    let mut names = vec!["portable", "neon", "avx2", "avx512"];
    names.retain(|name| Tier::named(name).is_some());
    for (index, name) in names.iter().enumerate() {
        let tier = Tier::chosen(Some(name));
        assert!(names[..=index].contains(&tier.name()), "{name}: {tier:?}");
    }
    assert_eq!(Tier::chosen(None), Tier::best());
    assert_eq!(Tier::chosen(Some("")), Tier::best());
    assert_eq!(Tier::chosen(Some("avx512")), Tier::best());
}
