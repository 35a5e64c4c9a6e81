//! The scanner against the regex engine, family by family.

use super::pattern::{self, Pattern, PatternPieces};
use super::rules::{Family, FamilyName, FamilyVisitor, SPELLINGS};
use super::{BATCH, Method, Piece, Splitter, Tier, scan};
use crate::error::Error;

/// A character of each kind that some rule of some family tells apart.
pub(super) const ALPHABET: &[char] = &[
    'a',
    's',
    'A',
    'T',
    'l',
    'L',
    'r',
    'E',
    'ǅ',
    'ß',
    'ſ',
    'ʰ',
    'ª',
    'あ',
    '的',
    '々',
    '\u{301}',
    '\u{16FF0}',
    '1',
    '٣',
    '〇',
    '²',
    ' ',
    '\t',
    '\n',
    '\r',
    '\u{A0}',
    '\u{85}',
    '\u{3000}',
    '\'',
    '/',
    '!',
    '’',
    '，',
    '⺀',
    '\u{1F600}',
    '\u{1C}',
    '\u{378}',
    '\u{0}',
];

/// The same from a seed: xorshift.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

struct Scan<'a>(&'a str);

impl FamilyVisitor for Scan<'_> {
    type Output = Vec<Piece>;

    fn visit<F: Family>(self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut start = 0;
        while start < self.0.len() {
            let end = scan::next_piece::<F>(self.0.as_bytes(), start);
            assert!(end > start, "no progress at {start} of {:?}", self.0);
            pieces.push(Piece { start, end });
            start = end;
        }
        pieces
    }
}

/// What the scanner says.
pub(super) fn scanned(family: FamilyName, text: &str) -> Vec<Piece> {
    family.visit(Scan(text))
}

/// What the regex engine says.
fn matched(pattern: &Pattern, text: &str) -> Result<Vec<Piece>, Error> {
    let mut matches: PatternPieces = pattern.matches(text);
    let mut batch = [Piece::default(); BATCH];
    let mut pieces = Vec::new();
    loop {
        let count = matches.fill(&mut batch)?;
        if count == 0 {
            return Ok(pieces);
        }
        pieces.extend_from_slice(&batch[..count]);
    }
}

/// Every spelling with its regex, backtracking as the reference does.
fn oracles() -> Vec<(FamilyName, Pattern)> {
    SPELLINGS
        .iter()
        .map(|(family, spelling)| {
            (*family, Pattern::Backtracking(pattern::compile(spelling).unwrap()))
        })
        .collect()
}

fn check(oracles: &[(FamilyName, Pattern)], text: &str) {
    for (family, pattern) in oracles {
        assert_eq!(scanned(*family, text), matched(pattern, text).unwrap(), "{family:?} {text:?}");
    }
}

/// All strings of `length` characters of `alphabet`.
fn exhaustive(alphabet: &[char], length: usize, mut check: impl FnMut(&str)) {
    let mut digits = vec![0; length];
    let mut text = String::new();
    loop {
        text.clear();
        text.extend(digits.iter().map(|&digit| alphabet[digit]));
        check(&text);
        let Some(at) = digits.iter().rposition(|&digit| digit + 1 < alphabet.len()) else { return };
        digits[at] += 1;
        digits[at + 1..].fill(0);
    }
}

/// A text of up to `length` characters, with runs of one character planted into it.
pub(super) fn random_text(random: &mut Random, length: usize, longest_run: usize) -> String {
    let mut text = String::new();
    let few: Vec<char> = (0..1 + random.below(8)).map(|_| random.pick(ALPHABET)).collect();
    let narrow = random.below(2) == 0;
    for _ in 0..random.below(length + 1) {
        let c = if narrow { random.pick(&few) } else { random.pick(ALPHABET) };
        let run = if random.below(12) == 0 { 1 + random.below(longest_run) } else { 1 };
        text.extend(std::iter::repeat_n(c, run));
    }
    text
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
#[ignore = "takes minutes"]
fn thorough() {
    let oracles = oracles();
    exhaustive(ALPHABET, 3, |text| check(&oracles, text));
    exhaustive(&ALPHABET[..24], 4, |text| check(&oracles, text));
    check_code_points(&oracles, 1, CONTEXTS);
    let mut random = Random::new(2);
    for _ in 0..500_000 {
        check(&oracles, &random_text(&mut random, 60, 9));
    }
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

/// Patterns that the automata take, and texts on which backtracking can still be asked.
#[test]
fn linear_patterns_match_as_by_backtracking() {
    let own = [
        r"\s+(?!\S)",
        r"\s+(?!\S)|a",
        r"a|\s+(?!\S)",
        r"a| s|\s+(?!\S)|\s",
        r"|\s+(?!\S)|a",
        r"\s+(?!\S)|",
        r"a*|\s+(?!\S)|\s\n",
        r"\s+(?!\S)|\s+(?:a|A)",
        r"^\s|\bs|\s+(?!\S)|\s+$",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
        r"a++s|\s+(?!\S)|.",
        r"[aA]{1,2}+1+ ++|\s+(?!\S)",
    ];
    let mut compared: Vec<(Pattern, Pattern)> = Vec::new();
    for spelling in own.iter().chain(SPELLINGS.iter().map(|(_, spelling)| spelling)) {
        let linear = Pattern::new(spelling).unwrap();
        assert!(matches!(linear, Pattern::Linear(_)), "{spelling}");
        compared.push((linear, Pattern::Backtracking(pattern::compile(spelling).unwrap())));
    }
    let mut compare = |text: &str| {
        for (linear, oracle) in &compared {
            assert_eq!(matched(linear, text), matched(oracle, text), "{linear:?} {text:?}");
        }
    };
    exhaustive(&['a', 'A', ' ', '\n', 's', '1', '!'], 4, &mut compare);
    let mut random = Random::new(3);
    for _ in 0..5_000 {
        compare(&random_text(&mut random, 30, 6));
    }
}

#[test]
fn possessive_repeats_that_matter_stay_possessive() {
    for spelling in [
        r"a++a|s",
        r"(?:xa++)ab|a",
        r"(?>a|ab)c|.",
        r"(a)\1|\s+(?!\S)",
        r"(?=a)a|\s+(?!\S)",
        r"a++.|s",
        r"[aA]{1,2}+1?a",
    ] {
        assert!(matches!(Pattern::new(spelling).unwrap(), Pattern::Backtracking(_)), "{spelling}");
    }
}

#[test]
fn the_time_is_linear_and_nothing_overflows() {
    const LENGTH: usize = 1_000_000;
    let mut texts: Vec<String> = [
        " ",
        "\n",
        "的",
        "a",
        "A",
        "' ",
        "\u{301}",
        "的A",
        "1",
        "!",
        "\t",
        "\u{3000}",
        "!\n",
        " \n",
        "'s",
        "e\u{301}A",
        "〇",
        "/\n",
    ]
    .iter()
    .map(|unit| unit.repeat(LENGTH / unit.len()))
    .collect();
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
    // The patterns themselves, by automata.
    for (family, spelling) in SPELLINGS {
        let pattern = Pattern::new(spelling).unwrap();
        for text in &texts[..4] {
            assert_eq!(matched(&pattern, text).unwrap(), scanned(*family, text), "{spelling}");
        }
    }
}

#[test]
fn bad_patterns_are_errors() {
    let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
    let open = "(".repeat(50_000);
    let stars = format!("a{}", "*".repeat(30_000));
    let look = format!("{}a{}", "(?=".repeat(20_000), ")".repeat(20_000));
    let class = "[".repeat(50_000);
    let bombs = [
        "(a{1000}){1000}",
        r"(?:\p{L}{1000}){1000}",
        r"(?:a|\g<0>{9}){9}",
        "[z-a]",
        r"\p{Nonsense}",
        "(?<a>b)(?<a",
        "\\",
        "*",
        r"(?<=a+)\1",
    ];
    let long = [&deep, &open, &stars, &look, &class];
    for bad in long.into_iter().map(String::as_str).chain(bombs) {
        let found = Splitter::new(bad).map(|_| ());
        let shown: String = bad.chars().take(40).collect();
        match found {
            Err(Error::Pattern { reason, .. }) => assert!(!reason.is_empty()),
            other => panic!("{shown}: {other:?}"),
        }
    }
}

#[test]
fn nested_classes_and_long_alternations_compile_or_fail_cleanly() {
    for pattern in [
        "[a".repeat(3_000) + &"]".repeat(3_000),
        "a".to_owned() + &"{2}".repeat(20_000),
        "a|".repeat(40_000),
        "(?i:é)".repeat(2_000),
        "((?=a)a{1000}){1000}{1000}".into(),
        "(?:(?:(?=a)a){1000}){1000}".into(),
        "a{2,1}".into(),
    ] {
        if let Err(error) = Splitter::new(&pattern) {
            assert!(matches!(error, Error::Pattern { .. }), "{error:?}");
        }
    }
}

#[test]
fn an_engine_that_gives_up_says_where() {
    let pattern = Pattern::new(r"x|(?:a|a)+(?=b)").unwrap();
    let text = "xx".to_owned() + &"a".repeat(40);
    match matched(&pattern, &text) {
        Err(Error::PatternLimit { position: 2, reason }) => assert!(!reason.is_empty()),
        other => panic!("{other:?}"),
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

/// Every tier that this processor has.
fn tiers() -> Vec<Tier> {
    let mut tiers: Vec<Tier> =
        ["portable", "avx2", "avx512"].into_iter().filter_map(Tier::named).collect();
    tiers.dedup();
    tiers
}

/// What the block cutter says.
fn cut(family: FamilyName, tier: Tier, text: &str) -> Vec<Piece> {
    let splitter = Splitter { method: Method::Family(family, tier) };
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
    let tiers = tiers();
    for length in 0..=2 {
        exhaustive(ALPHABET, length, |text| check_tiers(&tiers, text));
    }
    exhaustive(&['a', 'A', '的', '\u{301}', '\'', 's', ' ', '!', '\n', '/'], 4, |text| {
        check_tiers(&tiers, text);
    });
}

/// A hard case at each place of a window, with the text going on behind it or not.
#[test]
fn blocks_cut_at_every_offset_as_the_scanner() {
    let tiers = tiers();
    let cases = [
        "don't",
        "'ſx",
        "he'lL've's",
        "O'RE'D",
        " 's",
        "''t",
        "的AB的C",
        "的ABc",
        "aéB的AB c",
        "x\u{301}A",
        "!!\u{301}!a",
        " !\u{301}\n\n/",
        "\u{301}A",
        "!\u{301}A",
        "12345",
        "1٣٣٣1",
        "〇1〇的⺀a",
        " \n \n  x",
        "  \n",
        "!\n/\n/\n!",
        "!\n//a",
        "\u{A0}\u{A0}a",
        "\u{3000} \u{3000}!",
        "\t\n\t",
        "！\r\n  ",
        "😀😀\u{200D}a",
        "的，的",
        " \u{85}\n\u{2028}b",
        "ǅa'S",
        "🇩a",
        "    1",
        "\u{16FF0}a",
    ];
    let fillers = ["b", " ", "word ", "的", "é", "!", "\n", "7", "あ", "Zz", "😀"];
    for case in cases {
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

fn check_random_texts(seed: u64, count: usize) {
    let tiers = tiers();
    let mut random = Random::new(seed);
    for _ in 0..count {
        check_tiers(&tiers, &random_text(&mut random, 150, 12));
        check_tiers(&tiers, &random_text(&mut random, 60, 150));
        check_tiers(&tiers, &random_words(&mut random, 60));
    }
}

/// Something like text: words, numbers and punctuation of several scripts.
fn random_words(random: &mut Random, count: usize) -> String {
    const PARTS: &[&str] = &[
        "the",
        " of",
        " House",
        " don't",
        "I'll",
        " WE'VE",
        "camelCase",
        "HTTPServer",
        " 1234567",
        "42",
        ", ",
        ".",
        "\n\n",
        "\n    ",
        ";\n//",
        " /*",
        "();",
        "\r\n",
        "\t\t",
        "的时候",
        "。",
        "使用API的",
        "Привет",
        " мир",
        "ёлка",
        "Ελλάδα",
        " कुत्ता",
        "हिन्दी",
        "العربية",
        " ٣٤٥",
        "こんにちは",
        "カタカナー",
        "한국어",
        " 👍🏽",
        "❤️",
        "—",
        "…",
        "“x”",
        "e\u{301}",
        "\u{A0}",
        "\u{3000}",
        "ﬁ",
        "x'",
        "'s",
        " if (a == b) {",
        "<div class=\"x\">",
        "http://a.b/c?d=1",
        "   ",
        " \n \n",
        "ſ",
        "'ſ",
        "〇",
        "一二三〇",
        "⺀",
        "Ⅷ",
        "½",
        "\u{200D}",
        "\u{0}",
    ];
    (0..random.below(count)).map(|_| random.pick(PARTS)).collect()
}

#[test]
fn blocks_cut_random_texts_as_the_scanner() {
    check_random_texts(5, 1_500);
}

#[test]
#[ignore = "takes minutes"]
fn blocks_cut_many_random_texts_as_the_scanner() {
    check_random_texts(6, 300_000);
}

#[test]
fn blocks_classify_every_code_point_as_the_scanner() {
    let tiers = tiers();
    let mut text = String::new();
    for first in (0..=char::MAX as u32).step_by(24) {
        text.clear();
        for c in (first..first + 24).filter_map(char::from_u32) {
            text.extend(['a', c, ' ', c, c, '1', c, '!', c, 'A', c, '\n']);
        }
        check_tiers(&tiers, &text);
    }
}

#[test]
fn batches_may_end_anywhere() {
    let tiers = tiers();
    for length in [60, 64, 65, 127, 128, 190, 191, 192, 193, 255, 256, 257, 300, 1000] {
        check_tiers(&tiers, &"a ".repeat(length));
        check_tiers(&tiers, &"1".repeat(length));
        check_tiers(&tiers, &("\n".to_owned() + &"1 ".repeat(length)));
    }
}
