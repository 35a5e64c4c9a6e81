//! Tests `truncate` and `chunk`: parts end where tokens end, and encode to at most the requested
//! number of tokens.

#[path = "support/patterns.rs"]
mod patterns;
mod support;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;

use bpe_core::char_boundary;
use bpe_core::polling::with_check;
use bpe_core::{Error, Normalization, Pipeline, Request, SpecialTokens, Splitter, Vocabulary};
use patterns::PATTERNS;
use proptest::prelude::*;
use proptest::sample::{Index, select};

const CL100K: &str = PATTERNS[1];

/// Patterns that skip text, look back, look far ahead, and depend on all earlier text.
const ODD_PATTERNS: [&str; 4] = [r"\w+", r"(?<=c)a+|.", r"a+(?=.*!)|\s+|.", r"!.*|(?s:.)"];

/// Tokens that let a part of a text have more tokens than the whole text.
const WORDS: &str =
    "ab abc bca aa aaaa 's 11 123 é 的。 -- ---- -------- -< >- abcabc abcabcabcabc";

/// Returns an encoding with all bytes, words and `tokens` as tokens.
fn encoding(pattern: &str, normalization: Normalization, tokens: Vec<Vec<u8>>) -> Pipeline {
    let bytes = (0..=255).map(|byte: u8| vec![byte]);
    let words = WORDS.split(' ').chain([" a", " ab", "  ", "    ", "\n\n"]);
    let mut known = BTreeSet::new();
    let all = bytes.chain(words.map(|word| word.as_bytes().to_vec())).chain(tokens);
    let all: Vec<Vec<u8>> = all.filter(|token| known.insert(token.clone())).collect();
    let vocabulary = Vocabulary::build(all.into_iter().zip(0..).collect()).unwrap();
    let special = [("<|a|>", 900), ("<|a|>b", 901), ("abab", 902), ("<|end of text|>", 903)];
    let special = SpecialTokens::new(special.map(|(name, id)| (name.to_owned(), id))).unwrap();
    Pipeline::of_ranks(vocabulary, Splitter::new(pattern).unwrap(), special, normalization).unwrap()
}

/// Returns the ends of the tokens of `text`, and both ends of the text.
fn token_ends(engine: &Pipeline, text: &str, request: &Request) -> BTreeSet<usize> {
    let (_, spans) = engine.encode_with_spans(text, request).unwrap();
    let between = spans.windows(2).filter(|pair| pair[0].end <= pair[1].start);
    let ends = between.map(|pair| pair[0].end).chain(spans.last().map(|last| last.end));
    ends.chain([0, text.len()]).collect()
}

/// Checks both sides of a truncated text.
fn check_truncated(
    engine: &Pipeline,
    text: &str,
    limit: usize,
    request: &Request,
) -> Result<(), TestCaseError> {
    let count = |part: &str| engine.count(part, usize::MAX, request).unwrap();
    let ends = token_ends(engine, text, request);
    let end = engine.truncate(text, limit, request).unwrap();
    let start = engine.truncate_left(text, limit, request).unwrap();
    prop_assert!(count(&text[..end]) <= limit && ends.contains(&end), "{text:?} {limit} {end}");
    prop_assert!(count(&text[start..]) <= limit && ends.contains(&start), "{text:?} {limit}");
    if count(text) <= limit {
        prop_assert_eq!((end, start), (text.len(), 0));
    }
    Ok(())
}

/// Checks that a part of a text is truncated like the whole text, for any text after (before) it.
fn check_part(
    engine: &Pipeline,
    text: &str,
    (limit, from_left): (usize, bool),
    cut: usize,
    request: &Request,
) -> Result<bool, TestCaseError> {
    let kept = match from_left {
        true => text.len() - engine.truncate_left(text, limit, request).unwrap(),
        false => engine.truncate(text, limit, request).unwrap(),
    };
    // The character next to the cut may be half of a surrogate pair.
    let mut part = text.to_owned();
    match from_left {
        true => part.replace_range(..char_boundary::ceil(text, cut), "\u{fffd}"),
        false => part.replace_range(char_boundary::floor(text, cut).., "\u{fffd}"),
    }
    let found = engine.truncate_part(&part, limit, from_left, request).unwrap();
    if let Some(found) = &found {
        prop_assert!(found.len() == kept, "{text:?} {limit} {from_left} {cut}: {found:?} {kept}");
    }
    Ok(found.is_some())
}

fn check_chunks(
    engine: &Pipeline,
    text: &str,
    (limit, overlap): (usize, usize),
    request: &Request,
) -> Result<(), TestCaseError> {
    let count = |part: &str| engine.count(part, usize::MAX, request).unwrap();
    let chunks = match engine.chunk(text, limit, overlap, request) {
        Ok(chunks) => chunks,
        Err(Error::ChunkTooSmall { character, max_tokens }) => {
            prop_assert!(text.contains(&character) && count(&character) > max_tokens);
            return Ok(());
        }
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    let ends = token_ends(engine, text, request);
    let mut last = 0..0;
    for Range { start, end } in chunks {
        prop_assert!(last.start <= start && start <= last.end && last.end < end);
        prop_assert!(count(&text[start..end]) <= limit, "{text:?} {limit} {start}..{end}");
        prop_assert!(count(&text[start..last.end]) <= overlap, "{text:?} {overlap} {start}");
        // Only characters between two token ends are cut apart, and only if they do not fit.
        let next = *ends.range(end..).next().unwrap();
        let is_apart = next > end && count(&text[last.end..next]) > limit;
        prop_assert!(next == end || is_apart, "{text:?} {limit} {start}..{end}");
        last = start..end;
    }
    prop_assert_eq!(last.end, text.len());
    Ok(())
}

/// Parts of texts, in addition to whitespace and marks.
const SNIPPETS: &str = "a ab abc bca B ABC 's 'll ' 的 。 1 1234 é 🦀 - -------- ! <|a|> <|a|>b abab <|end of text|> <|a |> ªAB";

fn texts() -> impl Strategy<Value = String> {
    let marks = ["e\u{301}", "\u{323}", "\u{f71}\u{f72}", "\u{212a}", "\u{fb38}"];
    let parts = SNIPPETS.split(' ').chain([" ", "  ", "\n", "\r\n"]).chain(marks);
    let part = select(parts.collect::<Vec<_>>());
    let times = prop_oneof![6 => Just(1), 1 => 2..12_usize, 1 => 30..90_usize];
    let parts = (part, times).prop_map(|(part, times)| part.repeat(times));
    prop::collection::vec(parts, 0..30).prop_map(|parts| parts.concat())
}

/// Generates encodings with random tokens of letters and marks, some with parts of characters.
fn encodings() -> impl Strategy<Value = Pipeline> {
    let token = prop_oneof![
        "[ab1 -]{2,12}".prop_map(String::into_bytes),
        "(a|的|é|\u{301}){1,4}".prop_map(String::into_bytes),
        ("(a|的|é|🦀){1,4}", any::<Index>()).prop_map(|(text, at)| {
            let at = at.index(text.len());
            text.into_bytes().split_off(at)
        }),
    ];
    let normalization = select(vec![Normalization::None, Normalization::Nfc]);
    let patterns = [&PATTERNS[..], &[bpe_core::split::DEEPSEEK], &ODD_PATTERNS].concat();
    (select(patterns), normalization, prop::collection::vec(token, 0..12))
        .prop_map(|(pattern, normalization, tokens)| encoding(pattern, normalization, tokens))
}

/// Allows all special tokens, some or none.
fn requests(encoding: &Pipeline, allowed: usize) -> Request {
    let special = encoding.special_tokens().unwrap();
    match allowed {
        0 => Request::ORDINARY,
        1 => Request::allowing(special.select(["<|a|>", "<|end of text|>"])),
        _ => Request::allowing(bpe_core::special_tokens::Selection::All),
    }
}

proptest! {
    #![proptest_config(support::config(1500))]

    #[test]
    fn parts_hold_the_contract(
        encoding in encodings(),
        text in texts(),
        limits in prop::collection::vec(0..90_usize, 3),
        (limit, overlap) in (1..24_usize, any::<Index>()),
        allowed in 0..3_usize,
    ) {
        let request = requests(&encoding, allowed);
        for limit in limits {
            check_truncated(&encoding, &text, limit, &request)?;
        }
        check_chunks(&encoding, &text, (limit, 0), &request)?;
        check_chunks(&encoding, &text, (limit, overlap.index(limit)), &request)?;
    }

    #[test]
    fn parts_are_truncated_as_all_of_the_text(
        encoding in encodings(),
        text in prop::collection::vec(texts(), 1..5),
        (limit, from_left) in (0..200_usize, any::<bool>()),
        cut in any::<Index>(),
        allowed in 0..3_usize,
    ) {
        let text = text.concat();
        let cut = cut.index(text.len() + 1);
        check_part(&encoding, &text, (limit, from_left), cut, &requests(&encoding, allowed))?;
    }
}

/// Parts of ordinary text have nearly as many tokens as requested, since its tokens do not change.
#[test]
fn parts_of_ordinary_text_have_all_tokens_asked_for() {
    let encoding = encoding(CL100K, Normalization::Nfc, Vec::new());
    let text = "abc bca 's, 1234 é 的。\n\n  ab".repeat(300);
    let count = |part: &str| encoding.count(part, usize::MAX, &Request::ORDINARY).unwrap();
    for limit in [1, 10, 100, 1000, 5000] {
        let end = encoding.truncate(&text, limit, &Request::ORDINARY).unwrap();
        let start = encoding.truncate_left(&text, limit, &Request::ORDINARY).unwrap();
        let kept = [count(&text[..end]), count(&text[start..])];
        assert!(kept.iter().all(|&kept| kept <= limit && kept + 2 >= limit), "{limit} {kept:?}");
    }
}

#[test]
fn a_part_of_a_long_text_is_enough() {
    let encoding = encoding(CL100K, Normalization::Nfc, Vec::new());
    for part in ["abc bca ", "的。", "1", "a", "-", "\n", "é🦀 ", "--------\n"] {
        let text = part.repeat(60_000 / part.len());
        for limit in [0, 10, 500] {
            for (from_left, cut) in [(false, 20_000), (true, 40_000)] {
                let wanted = (limit, from_left);
                let found = check_part(&encoding, &text, wanted, cut, &Request::ORDINARY);
                assert!(found.unwrap(), "{part:?} {limit} {from_left}");
            }
        }
    }
}

/// Keeps names whole, even if the window that is read first ends or begins inside a name.
#[test]
fn names_are_cut_neither_by_chunks_nor_by_windows() {
    let encoding = encoding(CL100K, Normalization::None, Vec::new());
    let request = requests(&encoding, 1);
    for before in 0..40 {
        let text = format!(
            "{}{}{}",
            "x ".repeat(before),
            "<|end of text|>".repeat(30),
            "-".repeat(before)
        );
        for limit in [1, 2, 20, 31, 40] {
            check_truncated(&encoding, &text, limit, &request).unwrap();
            check_chunks(&encoding, &text, (limit, limit / 2), &request).unwrap();
            for chunk in encoding.chunk(&text, limit, limit / 2, &request).unwrap() {
                let chunk = &text[chunk];
                assert_eq!(chunk.matches("<|").count(), chunk.matches("|>").count());
            }
        }
    }
}

#[test]
fn disallowed_names_are_refused_anywhere() {
    let encoding = encoding(CL100K, Normalization::None, Vec::new());
    let text = format!("{}<|a|>", "a b c ".repeat(1000));
    let mut request = Request::ORDINARY;
    request.disallowed = bpe_core::request::Disallowed::AllOthers;
    let refused = Error::DisallowedSpecial { name: "<|a|>".to_owned() };
    assert_eq!(encoding.truncate(&text, 3, &request), Err(refused.clone()));
    assert_eq!(encoding.truncate_left(&text, 3, &request), Err(refused.clone()));
    assert_eq!(encoding.chunk(&text, 3, 0, &request), Err(refused));
}

#[test]
fn a_character_that_does_not_fit_is_an_error() {
    let encoding = encoding(CL100K, Normalization::None, Vec::new());
    let refused = Error::ChunkTooSmall { character: "🦀".to_owned(), max_tokens: 3 };
    assert_eq!(encoding.chunk("ab🦀", 3, 2, &Request::ORDINARY), Err(refused));
    assert_eq!(encoding.truncate("🦀ab", 3, &Request::ORDINARY), Ok(0));
    assert_eq!(encoding.truncate_left("ab🦀", 3, &Request::ORDINARY), Ok("ab🦀".len()));
}

/// Characters that share tokens are cut apart only where necessary.
#[test]
fn characters_that_share_tokens_are_cut_apart() {
    let encoding = encoding(CL100K, Normalization::Nfc, vec![b"\x84\xe7".to_vec()]);
    let request = Request::ORDINARY;
    let ends = |limit: usize| -> Vec<usize> {
        let chunks = encoding.chunk("的的的的", limit, 0, &request).unwrap();
        chunks.iter().map(|chunk| chunk.end).collect()
    };
    assert_eq!((ends(9), ends(8), ends(3)), (vec![12], vec![6, 12], vec![3, 6, 9, 12]));
    // Normalization sees the whole text as one run, in which no token ends.
    let marks = "\u{f71}\u{f72}".repeat(2000);
    let chunks = encoding.chunk(&marks, 50, 20, &request).unwrap();
    assert!(chunks.len() < 2000);
    assert!(encoding.truncate(&marks, 50, &request).unwrap() <= 3);
}

/// A mark may join a letter across any number of other marks.
#[test]
fn marks_far_from_their_letter_are_read() {
    let encoding = encoding(PATTERNS[0], Normalization::Nfc, Vec::new());
    for count in [1, 60, 1000] {
        for marks in ["\u{f71}", "\u{f71}\u{f72}"] {
            let text = format!("<|a|>b{}\u{323} end", marks.repeat(count));
            for limit in [0, 5, 6, 7, 3 * count, 6 * count] {
                check_truncated(&encoding, &text, limit, &Request::ORDINARY).unwrap();
            }
            assert_eq!(encoding.truncate(&text, 6, &Request::ORDINARY), Ok(5));
        }
    }
}

/// Returns the average number of bytes of text that a call processes.
fn work<T>(call: impl Fn() -> T) -> usize {
    const BETWEEN_CHECKS: usize = 1 << 17;
    const TIMES: usize = 16;
    let checks = Cell::new(0);
    let check = || {
        checks.set(checks.get() + 1);
        true
    };
    with_check(&check, || (0..TIMES).for_each(|_| drop(call())));
    checks.get() * BETWEEN_CHECKS / TIMES
}

/// The bytes processed are bounded by a small multiple of the bytes kept, plus a constant.
#[test]
fn work_is_bounded_by_what_is_kept() {
    let request = Request::ORDINARY;
    let stack = format!("a{}", "\u{327}\u{301}".repeat(50));
    for normalization in [Normalization::None, Normalization::Nfc] {
        let encoding = encoding(CL100K, normalization, Vec::new());
        for part in [
            "abc bca, ",
            "的。 ",
            "123 ",
            "1",
            "a\n",
            "a",
            "-",
            " ",
            "\n",
            "e\u{301}",
            "🦀",
            "--------------------------------  ",
            "--------\n",
            "\u{f71}\u{f72}",
            &stack,
        ] {
            let text = part.repeat(100_000 / part.len());
            for limit in [0, 30, 2000] {
                let prefix = || encoding.truncate(&text, limit, &request).unwrap();
                let (worked, kept) = (work(prefix), prefix());
                assert!(
                    worked <= 8 * kept + 24_000 + 8 * limit,
                    "{part:?} {limit}: {worked} {kept}"
                );
                let suffix = || encoding.truncate_left(&text, limit, &request).unwrap();
                let (worked, kept) = (work(suffix), text.len() - suffix());
                assert!(
                    worked <= 8 * kept + 24_000 + 8 * limit,
                    "{part:?} {limit}: {worked} {kept}"
                );
            }
            let text = &text[..text.len() / part.len() / 10 * part.len()];
            for (limit, overlap) in [(12, 0), (12, 11), (400, 0), (60, 59)] {
                let chunks = encoding.chunk(text, limit, overlap, &request).unwrap();
                let kept: usize = chunks.iter().map(Range::len).sum();
                let worked = work(|| encoding.chunk(text, limit, overlap, &request).unwrap());
                assert!(
                    worked <= 16 * kept + 24_000,
                    "{part:?} {limit} {overlap}: {worked} {kept}"
                );
            }
        }
    }
}
