//! Tests the regex path: which patterns run in linear time, which are errors, and that no pattern
//! overflows the stack.

use super::{Random, compile, exhaustive, linear_spellings, matched, random_text};
use crate::error::Error;
use crate::split::pattern::Pattern;
use crate::split::{BATCH, Piece, Splitter};

/// Automata find the same pieces as backtracking, in texts short enough for backtracking.
#[test]
fn linear_patterns_match_as_by_backtracking() {
    let own = [
        r"\s+(?!\S)",
        r"\s+(?!\S)|a",
        r"\s+(?!\S)|a+",
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
    for spelling in own.into_iter().chain(linear_spellings().map(|(_, spelling)| spelling)) {
        let linear = Pattern::new(spelling).unwrap();
        assert!(matches!(linear, Pattern::Linear(_)), "{spelling}");
        compared.push((linear, Pattern::Backtracking(compile::compile(spelling).unwrap())));
    }
    let mut compare = |text: &str| {
        for (linear, oracle) in &compared {
            assert_eq!(matched(linear, text), matched(oracle, text), "{linear:?} {text:?}");
        }
    };
    exhaustive("aA \ns1!", 4, &mut compare);
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
fn long_patterns_are_refused_and_not_shown_whole() {
    let shown = |pattern: &str| match compile::compile(pattern) {
        Err(Error::Pattern { pattern, reason }) => (pattern, reason),
        other => panic!("{other:?}"),
    };
    assert!(compile::compile(&"é".repeat(50_000)).is_ok());
    let (pattern, reason) = shown(&"é".repeat(50_001));
    assert_eq!(pattern, "é".repeat(1000) + "...");
    assert_eq!(reason, "it has 100002 bytes, and at most 100000 are supported");
    assert_eq!(shown("(a").0, "(a");
    let all = "é".repeat(999) + "(";
    assert_eq!(shown(&all).0, all);
}

#[test]
fn empty_matches_are_no_pieces() {
    for pattern in [r"(?=a)|b", r"(a)\1|b|"] {
        let splitter = Splitter::new(pattern).unwrap();
        let mut batch = [Piece::default(); BATCH];
        let mut pieces = splitter.pieces("ab b");
        assert_eq!(pieces.fill(&mut batch), Ok(2), "{pattern}");
        assert_eq!([batch[0], batch[1]].map(|piece| (piece.start, piece.end)), [(1, 2), (3, 4)]);
        assert_eq!(pieces.fill(&mut batch), Ok(0));
        assert!(!splitter.is_family());
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
fn the_regex_path_has_no_safe_cut_and_drops_what_does_not_match() {
    let splitter = Splitter::new("[ab]+|").unwrap();
    assert_eq!(splitter.safe_cut("ab ab", 0), None);
    let mut batch = [Piece::default(); BATCH];
    let mut pieces = splitter.pieces("xab--b的a");
    assert_eq!(pieces.fill(&mut batch), Ok(3));
    let found: Vec<_> = batch[..3].iter().map(|piece| (piece.start, piece.end)).collect();
    assert_eq!(found, [(1, 3), (5, 6), (9, 10)]);
    assert_eq!(pieces.fill(&mut batch), Ok(0));
}
