//! Tests the abilities of pipelines of ranks and of a file.

#[path = "support/patterns.rs"]
mod patterns;
mod support;

use std::ops::Range;

use bpe_core::special_tokens::Selection;
use bpe_core::{Error, Normalization, Pipeline, Request, SpecialTokens, Splitter, Vocabulary};
use patterns::PATTERNS;
use proptest::prelude::*;
use proptest::sample::select;

fn of_ranks(normalization: Normalization) -> Pipeline {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let words = ["ab", " a", "  ", "bca", " bca", "é", "的。"].map(|word| word.as_bytes().to_vec());
    let vocabulary = Vocabulary::build(bytes.chain(words).zip(0..).collect()).unwrap();
    let special = SpecialTokens::new([("<s>".to_owned(), 900)]).unwrap();
    let splitter = Splitter::new(PATTERNS[1]).unwrap();
    Pipeline::of_ranks(vocabulary, splitter, special, normalization).unwrap()
}

/// A file whose text begins with a mark, and whose special token takes the spaces before it.
fn of_file() -> Pipeline {
    let bytes = (0..=255).map(|byte| format!("<0x{byte:02X}>"));
    let characters = "abc_<s\u{2581}".chars().map(String::from);
    let words =
        ["ab", "\u{2581}a", "\u{2581}\u{2581}", "bc", "bca", "\u{2581}bca"].map(String::from);
    let tokens: Vec<String> = bytes.chain(characters).chain(words).collect();
    let vocab: Vec<String> =
        tokens.iter().enumerate().map(|(id, token)| format!("{token:?}: {id}")).collect();
    let json = r#"{
        "added_tokens": [{"id": 900, "content": "<s>", "single_word": false, "lstrip": true,
            "rstrip": false, "normalized": false, "special": true}],
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first",
            "split": false},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "byte_fallback": true, "vocab": {VOCAB}, "merges": [
            ["a", "b"], ["▁", "a"], ["▁", "▁"], ["b", "c"], ["bc", "a"], ["▁", "bca"]]}}"#;
    Pipeline::from_json(&json.replace("VOCAB", &vocab.join(","))).unwrap()
}

fn pipelines() -> [Pipeline; 3] {
    [of_ranks(Normalization::None), of_ranks(Normalization::Nfc), of_file()]
}

fn ids(pipeline: &Pipeline, text: &str, request: &Request) -> Vec<u32> {
    let mut ids = Vec::new();
    pipeline.encode_text(text, request, &mut ids).unwrap();
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
        for pipeline in pipelines() {
            let pipeline = &pipeline;
            for allowed in [Selection::None, Selection::All] {
                let request = Request::allowing(allowed);
                let expected = ids(pipeline, &text, &request);
                let (found, spans) = pipeline.encode_with_spans(&text, &request).unwrap();
                prop_assert_eq!(&found, &expected);
                prop_assert!(spans.iter().all(|span| text.get(span.clone()).is_some()));
                prop_assert_eq!(pipeline.count(&text, usize::MAX, &request).unwrap(), expected.len());
                let count = pipeline.count(&text, limit, &request).unwrap();
                prop_assert!(count == expected.len() || count > limit && expected.len() > limit);
                let (_, total) = pipeline.token_ends(&text, &request.allowed, 0..usize::MAX).unwrap();
                prop_assert_eq!(total, expected.len());
                let (bytes, starts) = pipeline.decode_with_starts(&expected).unwrap();
                let mut decoded = Vec::new();
                pipeline.append_bytes(&expected, &mut decoded).unwrap();
                prop_assert_eq!(&bytes, &decoded);
                prop_assert!(starts.is_sorted() && starts.len() == expected.len());
                // The file's decoder leaves out a space at the beginning.
                let is_kept = !text.contains("<s") && !text.starts_with(' ');
                prop_assert!(pipeline.is_canonical(&expected).unwrap() || !is_kept);
            }
        }
    }

    #[test]
    fn parts_fit_and_end_where_tokens_do(text in texts(), limit in 1..60_usize, overlap in 0..60_usize) {
        for pipeline in pipelines() {
            let pipeline = &pipeline;
            let request = Request::allowing(Selection::All);
            let ends = ends_of(pipeline, &text, &request);
            let count = |part: &str| ids(pipeline, part, &request).len();
            let end = pipeline.truncate(&text, limit, &request).unwrap();
            let start = pipeline.truncate_left(&text, limit, &request).unwrap();
            prop_assert!(count(&text[..end]) <= limit && count(&text[start..]) <= limit);
            prop_assert!(ends.contains(&end) && ends.contains(&start), "{text:?} {end} {start}");
            let chunks = match pipeline.chunk(&text, limit, overlap % limit, &request) {
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
fn ends_of(pipeline: &Pipeline, text: &str, request: &Request) -> Vec<usize> {
    let (_, spans) = pipeline.encode_with_spans(text, request).unwrap();
    let is_end = |pair: &[Range<usize>]| (pair[0].end <= pair[1].start).then_some(pair[0].end);
    let ends = spans.windows(2).filter_map(is_end);
    ends.chain([0, text.len()]).collect()
}

#[test]
fn long_texts_are_encoded_on_threads_and_cut_from_both_sides() {
    let text = "abc bca  的。<s> ab ".repeat(20_000);
    for pipeline in pipelines() {
        let request = Request::allowing(Selection::All);
        let expected = ids(&pipeline, &text, &request);
        let mut found = Vec::new();
        pipeline.encode_on_threads(&text, &request, 4, &mut found).unwrap();
        assert!(found == expected);
        for limit in [1000, 50_000] {
            let end = pipeline.truncate(&text, limit, &request).unwrap();
            let start = pipeline.truncate_left(&text, limit, &request).unwrap();
            let kept = [&text[..end], &text[start..]].map(|part| ids(&pipeline, part, &request));
            assert!(kept.iter().all(|kept| kept.len() <= limit && kept.len() + 8 > limit));
            assert!(pipeline.count(&text, limit, &request).unwrap() > limit);
        }
    }
}

#[test]
fn special_tokens_are_found_and_disallowed() {
    for pipeline in pipelines() {
        let found = pipeline.find_special("a<s> b<s>").unwrap();
        assert_eq!(found, [("<s>", 1..4), ("<s>", 6..9)]);
        let request = Request {
            allowed: Selection::None,
            disallowed: bpe_core::request::Disallowed::AllOthers,
        };
        for text in ["a<s>", "a<s> b<s>"] {
            let refused = Err(Error::DisallowedSpecial { name: "<s>".into() });
            assert_eq!(pipeline.count(text, 1, &request), refused);
            assert_eq!(pipeline.truncate(text, 1, &request), refused);
        }
    }
}

/// A byte-level file with one merge, these normalizers and these added tokens.
fn byte_level_file(normalizer: &str, added: &str) -> Pipeline {
    let letters = (0..=255u8).map(|byte| bpe_core::components::text_of(&[byte]));
    let tokens: Vec<String> = letters.chain(["ab".to_owned()]).collect();
    let vocab: Vec<String> =
        tokens.iter().enumerate().map(|(id, token)| format!("{token:?}: {id}")).collect();
    let json = format!(
        r#"{{"added_tokens": [{added}], "normalizer": {normalizer},
        "pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true}},
        "decoder": {{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true}},
        "model": {{"type": "BPE", "vocab": {{{}}}, "merges": [["a", "b"]]}}}}"#,
        vocab.join(",")
    );
    Pipeline::from_json(&json).unwrap()
}

fn added(id: u32, content: &str, flags: &str) -> String {
    format!(
        r#"{{"id": {id}, "content": {content:?}, "single_word": false, "lstrip": false,
        "rstrip": false, {flags}}}"#
    )
}

const RAW: &str = r#""normalized": false, "special": true"#;
const NORMAL: &str = r#""normalized": true, "special": true"#;

#[test]
fn files_become_pipelines_of_ranks() {
    for (normalizer, flags) in [("null", RAW), (r#"{"type": "NFC"}"#, NORMAL)] {
        let file = byte_level_file(normalizer, &added(257, "<s>", flags));
        let ranks = file.same_ranks().unwrap();
        assert!(std::ptr::eq(file.ranks().unwrap(), &**ranks.direct().unwrap().vocabulary()));
        for text in ["ab<s>abab e\u{301} 的", "", "<s", "<s><s>a"] {
            for allowed in [Selection::All, Selection::None] {
                let request = Request::allowing(allowed);
                assert_eq!(ids(&ranks, text, &request), ids(&file, text, &request), "{text:?}");
            }
        }
    }
}

#[test]
fn what_ranks_cannot_express_is_named() {
    let cases = [
        (r#"{"type": "NFKC"}"#, String::new(), "normalizer: NFKC"),
        (r#"{"type": "NFC"}"#, added(257, "<s>", RAW), "added_tokens[0].normalized: false"),
        ("null", added(256, "ab", RAW), "added_tokens[0]: the special token 'ab'"),
        (
            "null",
            [added(257, "|>", RAW), added(258, "<|end|>", NORMAL)].join(","),
            "added_tokens: names that overlap by '|>'",
        ),
    ];
    for (normalizer, added, reason) in cases {
        let error = byte_level_file(normalizer, &added).as_ranks(false).unwrap_err().to_string();
        assert!(error.starts_with(reason), "{error}");
        assert!(error.ends_with(" cannot be part of an Encoding"), "{error}");
    }
}
