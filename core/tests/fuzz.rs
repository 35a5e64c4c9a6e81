//! Fuzzes on the stable toolchain: random input against plain oracles.
//!
//! Each target stops at the first failure, which is shrunk and printed. `FUZZ_CASES=1000000 cargo
//! test --release --test fuzz` runs that many cases of each target (`make fuzz`).

#[path = "support/cases.rs"]
mod cases;
#[path = "support/patterns.rs"]
mod patterns;
mod support;

use std::collections::HashSet;

use bpe_core::segments::Prompt;
use bpe_core::special_tokens::Selection;
use bpe_core::split::{BATCH, Batch, Piece};
use bpe_core::{
    Direct, Error, Normalization, Pipeline, Request, SpecialTokens, Splitter, Vocabulary, rank_file,
};
use cases::fuzz;
use patterns::PATTERNS;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestCaseResult;

/// Returns the pieces of `text` as `(start, end)`.
fn cut(splitter: &Splitter, text: &str) -> Result<Vec<(usize, usize)>, Error> {
    let mut batch: Batch = [Piece::default(); BATCH];
    let mut cursor = splitter.pieces(text);
    let mut pieces = Vec::new();
    loop {
        let count = cursor.fill(&mut batch)?;
        if count == 0 {
            return Ok(pieces);
        }
        pieces.extend(batch[..count].iter().map(|piece| (piece.start, piece.end)));
    }
}

/// Checks that pieces are nonempty slices of the text at character boundaries, in order.
fn check_shape(text: &str, pieces: &[(usize, usize)]) -> TestCaseResult {
    let mut position = 0;
    for &(start, end) in pieces {
        prop_assert!(position <= start && start < end && text.get(start..end).is_some());
        position = end;
    }
    Ok(())
}

/// Fragments of regex syntax, some rare or broken.
const ATOMS: &str = r". \s \S \p{L} \p{Lu} [^\s] [a-c&&[^b]] \b ^ $ \z \Z (?=a) (?!a) (?<=a) (?<!ab) (?<=a+) \1
    \k<x> (?<x>a) (?i) (?i:s) (?>a+) \K \G \R \X \N \h \x{110000} \u{41} [ ) ( ] \ () {9999}
    {1000}{1000} \p{Nope} (?(1)a|b) (?R) (?# [[:alpha:]] |";

const QUANTIFIERS: &[&str] = &["", "", "", "*", "+", "?", "++", "*+", "+?", "{2}", "{1,3}", "{0}"];

/// Generates regex source, mostly well-formed, partly hostile.
fn pattern() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        4 => "[a-c ]",
        3 => select(ATOMS.split_whitespace().collect::<Vec<_>>()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    let quantified = (atom, select(QUANTIFIERS)).prop_map(|(atom, quantifier)| atom + quantifier);
    quantified.prop_recursive(6, 40, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            vec(inner.clone(), 1..4).prop_map(|parts| parts.join("|")),
            (inner, select(QUANTIFIERS)).prop_map(|(part, times)| format!("(?:{part}){times}")),
        ]
    })
}

#[test]
fn hostile_patterns_compile_or_fail_and_never_panic() {
    fuzz((pattern(), "[abc s\n的]{0,40}"), |(pattern, text)| {
        if let Ok(splitter) = Splitter::new(&pattern)
            && let Ok(pieces) = cut(&splitter, &text)
        {
            check_shape(&text, &pieces)?;
        }
        Ok(())
    });
}

#[test]
fn deep_patterns_and_long_texts_do_not_overflow_the_stack() {
    let nests = [("(", ")"), ("(?:", ")*"), ("(?=", ")"), ("[", "]"), ("a|(", ")"), ("(?>", ")+")];
    for depth in [10, 100, 1_000, 100_000] {
        for (open, close) in nests {
            let pattern = open.repeat(depth) + "a" + &close.repeat(depth);
            if let Ok(splitter) = Splitter::new(&pattern) {
                let _ = cut(&splitter, "aaaa b");
            }
        }
    }
    for pattern in [r"(?:\s+(?!\S)|\s+|\S+)", r"(?:a|b(?!c))+|.", r"(?:\s+(?!\S))+|."] {
        let splitter = Splitter::new(pattern).unwrap();
        for text in [" ".repeat(200_000), "a".repeat(200_000), " ".repeat(200_000) + "x"] {
            if let Ok(pieces) = cut(&splitter, &text) {
                check_shape(&text, &pieces).unwrap();
            }
        }
    }
}

/// Generates bytes that more or less resemble a rank file.
fn rank_file_bytes() -> impl Strategy<Value = Vec<u8>> {
    const RANKS: &str = "-1 +1 4294967294 4294967295 4294967296 1.0 0x1 ٣ 99999999999999999999";
    let ranks: Vec<&str> = RANKS.split(' ').chain([""]).collect();
    let token = prop_oneof![
        4 => select(&["YQ==", "YWI=", "YWJj", "4w==", "/w=="][..]).prop_map(str::to_owned),
        1 => "[A-Za-z0-9+/=]{0,9}",
    ];
    let rank = prop_oneof![
        4 => (0..60_u32).prop_map(|rank| rank.to_string()),
        1 => select(ranks).prop_map(str::to_owned),
    ];
    let separator = select(&[" ", " ", " ", "\t", "", "  ", "\u{a0}"][..]);
    let end = select(&["\n", "\n", "\r\n", "\n\n", "", "\r"][..]);
    let line = (token, separator, rank, end)
        .prop_map(|(token, separator, rank, end)| token + separator + &rank + end);
    let file = vec(line, 0..12).prop_map(|lines| lines.concat().into_bytes());
    let damage = vec((any::<Index>(), any::<u8>()), 1..4);
    prop_oneof![
        3 => file.clone(),
        2 => (file, damage).prop_map(|(mut file, damage)| {
            for (place, byte) in damage {
                if !file.is_empty() {
                    let place = place.index(file.len());
                    file[place] = byte;
                }
            }
            file
        }),
        1 => vec(any::<u8>(), 0..80),
    ]
}

#[test]
fn hostile_rank_files_are_read_or_refused() {
    fuzz(rank_file_bytes(), |bytes| {
        let lines: Vec<&[u8]> = bytes.split(|byte| b"\r\n".contains(byte)).collect();
        match rank_file::parse(&bytes) {
            Err(Error::RankFile { line, .. }) => prop_assert!((1..=lines.len()).contains(&line)),
            Err(other) => prop_assert!(false, "{other:?}"),
            Ok(tokens) => {
                let filled = lines.iter().filter(|line| !line.is_empty());
                prop_assert_eq!(tokens.len(), filled.count(), "a line was dropped");
                let names: HashSet<_> = tokens.iter().map(|(token, _)| token).collect();
                let ids: HashSet<_> = tokens.iter().map(|(_, id)| id).collect();
                let count = tokens.len();
                let sound = count > 0 && names.len() == count && ids.len() == count;
                drop((names, ids));
                prop_assert_eq!(Vocabulary::from_ranks(tokens).is_ok(), sound);
            }
        }
        Ok(())
    });
}

#[test]
fn special_tokens_are_found_leftmost_longest() {
    let names = btree_map("[ab<|>]{1,4}", any::<bool>(), 1..6);
    fuzz((names, "[ab<|> 的]{0,30}"), |(names, text)| {
        let named: Vec<_> = names.keys().cloned().zip(300_u32..).collect();
        let specials = SpecialTokens::new(named.clone()).unwrap();
        let tokens = (0..=255_u8).map(|byte| (vec![byte], u32::from(byte))).collect();
        let splitter = Splitter::new(r"(?s:.)").unwrap();
        let vocabulary = Vocabulary::build(tokens).unwrap();
        let encoding = Direct::new(vocabulary, splitter, specials.clone()).unwrap();

        let allowed = names.iter().filter(|(_, allowed)| **allowed).map(|(name, _)| name.as_str());
        let allowed = specials.select(allowed.chain(["unknown"]));
        let mut ids = Vec::new();
        encoding.encode(&text, &Request::allowing(allowed.clone()), &mut ids).unwrap();
        prop_assert_eq!(encoding.decode_bytes(&ids).unwrap(), text.as_bytes());

        let flags: Vec<bool> = names.values().copied().collect();
        let (mut expected, mut position) = (Vec::new(), 0);
        for (start, end, id) in naive_special(&named, &flags, &text) {
            expected.extend(text.as_bytes()[position..start].iter().copied().map(u32::from));
            expected.push(id);
            position = end;
        }
        expected.extend(text.as_bytes()[position..].iter().copied().map(u32::from));
        prop_assert_eq!(ids, expected);

        let hit = names.iter().any(|(name, allowed)| !allowed && text.contains(name.as_str()));
        prop_assert_eq!(specials.find_disallowed(&text, &allowed).is_some(), hit);
        Ok(())
    });
}

/// Finds `names` in `text`, leftmost-longest. After a name that is not allowed, the search
/// continues one byte later.
fn naive_special(
    names: &[(String, u32)],
    allowed: &[bool],
    text: &str,
) -> Vec<(usize, usize, u32)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let here =
            (0..names.len()).filter(|&i| text.as_bytes()[at..].starts_with(names[i].0.as_bytes()));
        match here.max_by_key(|&i| names[i].0.len()) {
            Some(i) if allowed[i] => {
                found.push((at, at + names[i].0.len(), names[i].1));
                at += names[i].0.len();
            }
            _ => at += 1,
        }
    }
    found
}

#[test]
fn segments_are_encoded_as_text_between_special_tokens() {
    let names = btree_set("[ab<|>]{1,5}", 1..6);
    let part = select(
        &["<", "|", ">", "a", "b", "ab", "<|", "|>", " ", "\n", "的", "e\u{301}", "é", "s'"][..],
    );
    let segment = (vec(part, 0..8), 0..3_u8, vec(any::<bool>(), 5));
    let cases = (names, vec(segment, 0..7), 0..PATTERNS.len(), any::<bool>(), any::<bool>());
    fuzz(cases, |(names, segments, pattern, is_joined, is_normalized)| {
        let named: Vec<_> = names.into_iter().zip(900_u32..).collect();
        let specials = SpecialTokens::new(named.clone()).unwrap();
        let bytes = (0..=255_u8).map(|byte| (vec![byte], u32::from(byte)));
        let merged = ["ab", " a", "<|", "|>", "a>", "é", "的\n"].iter().zip(300..);
        let merged = merged.map(|(token, id)| (token.as_bytes().to_vec(), id));
        let vocabulary = Vocabulary::build(bytes.chain(merged).collect()).unwrap();
        let splitter = Splitter::new(PATTERNS[pattern]).unwrap();
        let form = if is_normalized { Normalization::Nfc } else { Normalization::None };
        let pipeline = Pipeline::of_ranks(vocabulary, splitter, specials.clone(), form).unwrap();
        let encoding = pipeline.direct().unwrap();
        let ordinary = |text: &str| {
            let mut ids = Vec::new();
            encoding.encode(text, &Request::ORDINARY, &mut ids).unwrap();
            ids
        };

        let (mut prompt, mut rendered) = (Prompt::default(), String::new());
        // Text is encoded up to the next special token, or up to the end of a segment.
        let (mut expected, mut run, mut special) = (Vec::new(), String::new(), Vec::new());
        for (parts, trust, flags) in &segments {
            let text = parts.concat();
            let flags: Vec<_> = (0..named.len())
                .map(|i| *trust == 1 || (*trust == 2 && flags[i % flags.len()]))
                .collect();
            let selection = match trust {
                0 => Selection::None,
                1 => Selection::All,
                _ => specials.select(
                    named
                        .iter()
                        .zip(&flags)
                        .filter(|&(_, &flag)| flag)
                        .map(|((name, _), _)| name.as_str()),
                ),
            };
            prompt.push_text(&pipeline, &text, &selection).unwrap();
            let mut position = 0;
            for (start, end, id) in naive_special(&named, &flags, &text) {
                run.push_str(&text[position..start]);
                expected.extend(ordinary(&std::mem::take(&mut run)));
                expected.push(id);
                special.push((rendered.len() + start, rendered.len() + end, id));
                position = end;
            }
            run.push_str(&text[position..]);
            if !is_joined {
                expected.extend(ordinary(&std::mem::take(&mut run)));
            }
            rendered.push_str(&text);
        }
        expected.extend(ordinary(&run));

        let (mut ids, mut again, mut origins) = (Vec::new(), Vec::new(), Vec::new());
        prompt.encode(&pipeline, is_joined, &mut ids).unwrap();
        prop_assert_eq!(&ids, &expected);
        prompt.encode_with_origins(&pipeline, is_joined, &mut again, &mut origins).unwrap();
        prop_assert_eq!(&ids, &again);
        prop_assert!(origins.is_sorted_by(|before, after| before.0 < after.0));
        prop_assert_eq!(origins.last().map_or(0, |run| run.0), ids.len());
        let ends = segments.iter().scan(0, |end, (parts, ..)| {
            *end += parts.concat().len();
            Some(*end)
        });
        let ends: Vec<usize> = ends.collect();
        let mut at = 0;
        for (place, id) in ids.iter().enumerate() {
            let origin = &origins[origins.partition_point(|run| run.0 <= place)].1;
            prop_assert_eq!(origin.is_special, *id >= 900);
            let (first, last) = origin.segments;
            prop_assert!(first <= last && last < segments.len());
            prop_assert!(!origin.is_special || (first == last && segments[first].1 > 0));
            if !is_normalized {
                let owner = |byte| ends.iter().position(|&end| byte < end).unwrap();
                let size = encoding.token_bytes(*id).unwrap().len();
                prop_assert_eq!(origin.segments, (owner(at), owner(at + size - 1)));
                at += size;
            }
        }

        // Segments that trust every name give the same ids as the text.
        let all = vec![true; named.len()];
        if is_joined && naive_special(&named, &all, &rendered) == special {
            let mut whole = Vec::new();
            encoding.encode(&rendered, &Request::allowing(Selection::All), &mut whole).unwrap();
            prop_assert_eq!(&ids, &whole);
        }
        Ok(())
    });
}
