//! Tests audits of tokens made for the purpose.

#[path = "support/patterns.rs"]
mod patterns;

use std::ops::ControlFlow;

use bpe_core::audit::{Merging, RoundTrip, TokenAudit, Utf8, Whole, audit, utf8};
use bpe_core::{Direct, Normalization, SpecialTokens, Splitter, Vocabulary};
use patterns::PATTERNS;

const GPT2: &str = PATTERNS[0];

fn audit_of(pattern: &str, longer: &[&[u8]], normalization: Normalization) -> Vec<TokenAudit> {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let tokens = bytes.chain(longer.iter().map(|token| token.to_vec()));
    let vocabulary = Vocabulary::build(tokens.zip(0..).collect()).unwrap();
    let specials = SpecialTokens::new([("<|end|>".to_owned(), 100_000)]).unwrap();
    let encoding = Direct::new(vocabulary, Splitter::new(pattern).unwrap(), specials).unwrap();
    let encoding = encoding.with_normalization(normalization);
    let audits = audit(&encoding, &mut |_| ControlFlow::Continue(())).unwrap();
    audits.unwrap().split_off(256)
}

#[test]
fn sound_tokens_pass() {
    let longer = [&b"ab"[..], b"abc", b" a", "é".as_bytes()];
    for found in audit_of(GPT2, &longer, Normalization::None) {
        assert_eq!(found.utf8, Utf8::Valid);
        assert_eq!(found.merging, Merging::Reached);
        assert_eq!((found.whole, found.round_trip), (Whole::Yes, RoundTrip::Ok));
        assert!(found.merged.is_empty() && found.encoded.is_empty());
    }
}

#[test]
fn merging_has_reasons() {
    let found = audit_of(GPT2, &[b"xyz", b"xyzw"], Normalization::None);
    assert_eq!(found[0].merging, Merging::NoParts);
    assert_eq!(found[1].merging, Merging::PartsUnreached);
    let found = audit_of(GPT2, &[b"bc", b"cd", b"ab", b"abcd"], Normalization::None);
    assert_eq!(found[3].merging, Merging::Blocked);
    assert_eq!(found[3].merged, [97, 256, 100]);
    // It is handed over whole, so its text still gives it back.
    assert_eq!((found[3].whole, found[3].round_trip), (Whole::Yes, RoundTrip::Ok));
}

#[test]
fn pieces_are_looked_for_in_context() {
    let found = audit_of(GPT2, &[b"a b", b"'s", b"'sx"], Normalization::None);
    assert_eq!(found[0].whole, Whole::Never);
    assert_eq!(found[0].round_trip, RoundTrip::UnreachableMultiToken);
    assert_eq!(found[0].encoded, [97, 32, 98]);
    assert_eq!(found[1].whole, Whole::Yes);
    assert_eq!(found[2].whole, Whole::Never);
}

#[test]
fn context_can_make_a_piece_whole() {
    // Alone, "ab" is cut; after a digit it is not. "bc" comes up inside "1bcd" only.
    let pattern = r"(?<=1)ab|1bc.|.";
    let found = audit_of(pattern, &[b"ab", b"bc"], Normalization::None);
    assert_eq!(found[0].whole, Whole::Yes);
    assert_eq!(found[1].whole, Whole::OnlyInside);
}

#[test]
fn specials_and_normalization_change_the_round_trip() {
    let longer = [&b"<|end|>"[..], b"[PAD]", b"e\xcc\x81x"];
    let found = audit_of(GPT2, &longer, Normalization::Nfc);
    assert_eq!(found[0].round_trip, RoundTrip::UnreachableSpecial);
    assert_eq!(found[0].encoded, [100_000]);
    assert_eq!(found[1].round_trip, RoundTrip::UnreachableSpecial);
    assert_eq!(found[2].round_trip, RoundTrip::UnreachableMultiToken);
}

#[test]
fn bytes_are_told_apart() {
    for (bytes, expected) in [
        (&b"\xe7\x8c"[..], (Utf8::Prefix, false)),
        (b"a\xe7\x8c", (Utf8::Prefix, true)),
        (b"\x8c\xab", (Utf8::Suffix, false)),
        (b"\xaba", (Utf8::Suffix, true)),
        (b"\xab\xe7", (Utf8::Middle, true)),
        (b"\x80\x80\x80\x80", (Utf8::Nonsense, false)),
        (b"\xe7a", (Utf8::Nonsense, false)),
        (b"\xc0", (Utf8::Nonsense, false)),
        (b"\xed\xa0", (Utf8::Nonsense, false)),
    ] {
        assert_eq!(utf8(bytes), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn it_can_be_ended() {
    let tokens = (0..5000u32).map(|i| (format!("t{i}").into_bytes(), i)).collect();
    let encoding = Direct::new(
        Vocabulary::build(tokens).unwrap(),
        Splitter::new(GPT2).unwrap(),
        SpecialTokens::new([]).unwrap(),
    );
    let ended = audit(&encoding.unwrap(), &mut |_| ControlFlow::Break(()));
    assert_eq!(ended, Ok(None));
}
