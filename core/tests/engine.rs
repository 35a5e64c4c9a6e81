//! Tests the abilities of engines over [`Encoding`] and over a small engine of the tests.

#[path = "support/patterns.rs"]
mod patterns;
mod support;
#[path = "support/syllables.rs"]
mod syllables;

use std::ops::Range;

use bpe_core::special_tokens::Selection;
use bpe_core::{
    Encoding, Engine, Error, Normalization, Request, SpecialTokens, Splitter, Vocabulary,
};
use patterns::PATTERNS;
use proptest::prelude::*;
use proptest::sample::select;
use syllables::Syllables;

fn encoding(normalization: Normalization) -> Encoding {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let words = ["ab", " a", "  ", "bca", " bca", "é", "的。"].map(|word| word.as_bytes().to_vec());
    let vocabulary = Vocabulary::build(bytes.chain(words).zip(0..).collect()).unwrap();
    let special = SpecialTokens::new([("<s>".to_owned(), 900)]).unwrap();
    let splitter = Splitter::new(PATTERNS[1]).unwrap();
    Encoding::new(vocabulary, splitter, special).unwrap().with_normalization(normalization)
}

fn engines() -> [Box<dyn Engine>; 3] {
    [
        Box::new(encoding(Normalization::None)),
        Box::new(encoding(Normalization::Nfc)),
        Box::new(Syllables::new()),
    ]
}

fn ids(engine: &dyn Engine, text: &str, request: &Request) -> Vec<u32> {
    let mut ids = Vec::new();
    engine.encode_text(text, request, &mut ids).unwrap();
    ids
}

fn texts() -> impl Strategy<Value = String> {
    let parts = ["a", "ab", "abcabc", "bca ", " ", "  ", "_", "é", "e\u{301}", "的。", "<s>", "<s"];
    prop::collection::vec((select(parts.to_vec()), 1..40_usize), 0..40).prop_map(|parts| {
        parts.iter().map(|(part, times)| part.repeat(times % 9 * times)).collect()
    })
}

proptest! {
    #![proptest_config(support::config(100))]

    #[test]
    fn abilities_agree_with_encode(text in texts(), limit in 0..400_usize) {
        for engine in engines() {
            let engine = &*engine;
            for allowed in [Selection::None, Selection::All] {
                let request = Request::allowing(allowed);
                let expected = ids(engine, &text, &request);
                let (found, spans) = engine.encode_with_spans(&text, &request).unwrap();
                prop_assert_eq!(&found, &expected);
                prop_assert!(spans.iter().all(|span| text.get(span.clone()).is_some()));
                prop_assert_eq!(engine.count(&text, usize::MAX, &request).unwrap(), expected.len());
                let count = engine.count(&text, limit, &request).unwrap();
                prop_assert!(count == expected.len() || count > limit && expected.len() > limit);
                let (_, total) = engine.token_ends(&text, &request.allowed, 0..usize::MAX).unwrap();
                prop_assert_eq!(total, expected.len());
                let (bytes, starts) = engine.decode_with_starts(&expected).unwrap();
                let mut decoded = Vec::new();
                engine.append_bytes(&expected, &mut decoded).unwrap();
                prop_assert_eq!(&bytes, &decoded);
                prop_assert!(starts.is_sorted() && starts.len() == expected.len());
                prop_assert!(engine.is_canonical(&expected).unwrap() || text.contains("<s"));
            }
        }
    }

    #[test]
    fn parts_fit_and_end_where_tokens_do(text in texts(), limit in 1..60_usize, overlap in 0..60_usize) {
        for engine in engines() {
            let engine = &*engine;
            let request = Request::allowing(Selection::All);
            let ends = ends_of(engine, &text, &request);
            let count = |part: &str| ids(engine, part, &request).len();
            let end = engine.truncate(&text, limit, &request).unwrap();
            let start = engine.truncate_left(&text, limit, &request).unwrap();
            prop_assert!(count(&text[..end]) <= limit && count(&text[start..]) <= limit);
            prop_assert!(ends.contains(&end) && ends.contains(&start), "{text:?} {end} {start}");
            let chunks = match engine.chunk(&text, limit, overlap % limit, &request) {
                Err(Error::ChunkTooSmall { .. }) => continue,
                chunks => chunks.unwrap(),
            };
            let mut last = 0..0;
            for chunk in chunks {
                prop_assert!(chunk.start <= last.end && last.end < chunk.end);
                prop_assert!(count(&text[chunk.clone()]) <= limit);
                last = chunk;
            }
            prop_assert_eq!(last.end, text.len());
        }
    }
}

/// The places where a token of `text` ends, and both ends of the text.
fn ends_of(engine: &dyn Engine, text: &str, request: &Request) -> Vec<usize> {
    let (_, spans) = engine.encode_with_spans(text, request).unwrap();
    let is_end = |pair: &[Range<usize>]| (pair[0].end <= pair[1].start).then_some(pair[0].end);
    let ends = spans.windows(2).filter_map(is_end);
    ends.chain([0, text.len()]).collect()
}

#[test]
fn long_texts_are_encoded_on_threads_and_cut_from_both_sides() {
    let text = "abc bca  的。<s> ab ".repeat(20_000);
    for engine in engines() {
        let request = Request::allowing(Selection::All);
        let expected = ids(&*engine, &text, &request);
        let mut found = Vec::new();
        engine.encode_on_threads(&text, &request, 4, &mut found).unwrap();
        assert!(found == expected);
        for limit in [1000, 50_000] {
            let end = engine.truncate(&text, limit, &request).unwrap();
            let start = engine.truncate_left(&text, limit, &request).unwrap();
            let kept = [&text[..end], &text[start..]].map(|part| ids(&*engine, part, &request));
            assert!(kept.iter().all(|kept| kept.len() <= limit && kept.len() + 8 > limit));
            assert!(engine.count(&text, limit, &request).unwrap() > limit);
        }
    }
}

#[test]
fn special_tokens_are_found_and_disallowed() {
    for engine in engines() {
        let found = engine.find_special("a<s> b<s>").unwrap();
        assert_eq!(found, [("<s>", 1..4), ("<s>", 6..9)]);
        let request = Request {
            allowed: Selection::None,
            disallowed: bpe_core::request::Disallowed::AllOthers,
        };
        for text in ["a<s>", "a<s> b<s>"] {
            let refused = Err(Error::DisallowedSpecial { name: "<s>".into() });
            assert_eq!(engine.count(text, 1, &request), refused);
            assert_eq!(engine.truncate(text, 1, &request), refused);
        }
    }
}
