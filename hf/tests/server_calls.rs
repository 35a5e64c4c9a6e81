//! The calls of servers: one text, segments, offsets, streams.

use bpe_hf::{Error, Segment, Tokenizer};

/// All bytes as tokens, some words, and a special token.
fn tokenizer() -> Tokenizer {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let base64 = |bytes: &[u8]| {
        let digits = |chunk: &[u8]| {
            let bits = chunk.iter().fold(0, |bits, &byte| bits << 8 | usize::from(byte));
            let bits = bits << (8 * (3 - chunk.len()));
            let digit = |place| char::from(DIGITS[bits >> (18 - 6 * place) & 63]);
            let known = (0..=chunk.len()).map(digit);
            known.chain("=".repeat(3 - chunk.len()).chars()).collect::<String>()
        };
        bytes.chunks(3).map(digits).collect::<String>()
    };
    let bytes = (0..=255).map(|byte: u8| vec![byte]);
    let words = ["he", "hel", "lo", "hello", " h", "é", "漢"].map(|word| word.as_bytes().to_vec());
    let ranks: String = bytes
        .chain(words)
        .enumerate()
        .map(|(rank, token)| format!("{} {rank}\n", base64(&token)))
        .collect();
    Tokenizer::from_ranks(ranks.as_bytes(), r" ?\p{L}+|(?s:.)", [("<end>".into(), 300)]).unwrap()
}

const TEXTS: [&str; 6] = ["", "hello", "hello<end>", "é漢字🦀 x", "a<end><end>b", "\u{fffd}ok"];

#[test]
fn ordinary_text_has_no_special_token() {
    let tokenizer = tokenizer();
    for text in TEXTS {
        let trusted = tokenizer.encode_text(text, true).unwrap();
        let ordinary = tokenizer.encode_ordinary(text).unwrap();
        assert_eq!(trusted.contains(&300), text.contains("<end>"));
        assert!(!ordinary.iter().any(|&id| tokenizer.is_special(id)));
        for ids in [trusted, ordinary] {
            assert_eq!(tokenizer.decode(&ids, false).unwrap(), text);
        }
    }
}

#[test]
fn segments_are_joined_but_make_no_special_token() {
    let tokenizer = tokenizer();
    let joined = [Segment::Untrusted("hel"), Segment::Trusted("lo")];
    assert_eq!(tokenizer.encode_segments(&joined), tokenizer.encode_ordinary("hello"));
    let halves = [Segment::Trusted("<en"), Segment::Untrusted("d>")];
    assert_eq!(tokenizer.encode_segments(&halves), tokenizer.encode_ordinary("<end>"));
    assert_eq!(tokenizer.encode_segments(&[Segment::Special("<end>")]), Ok(vec![300]));
    let unknown = tokenizer.encode_segments(&[Segment::Special("<start>")]);
    assert!(matches!(unknown, Err(Error::Invalid(reason)) if reason.contains("<start>")));
}

#[test]
fn offsets_cover_the_text() {
    let tokenizer = tokenizer();
    for text in TEXTS {
        let (ids, offsets) = tokenizer.encode_with_offsets(text, true).unwrap();
        assert_eq!(ids, tokenizer.encode_text(text, true).unwrap());
        assert_eq!(ids.len(), offsets.len());
        assert!(offsets.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        assert_eq!(offsets.last().map_or(0, |span| span.1), text.chars().count());
    }
}

#[test]
fn a_stream_gives_the_text_of_all_ids() {
    let tokenizer = tokenizer();
    for text in TEXTS {
        let ids = tokenizer.encode_text(text, false).unwrap();
        for prompt in 0..=ids.len() {
            let before = tokenizer.decode(&ids[..prompt], false).unwrap();
            if before.ends_with('\u{fffd}') {
                continue; // Ends inside a character.
            }
            let mut stream = tokenizer.decode_stream(&ids[..prompt], false).unwrap();
            let steps =
                ids[prompt..].iter().map(|&id| stream.step(id).unwrap().unwrap_or_default());
            assert_eq!(before + &steps.collect::<String>(), text);
        }
    }
}

#[test]
fn a_missing_file_is_named() {
    let missing = Tokenizer::from_file("no/tokenizer.json").unwrap_err();
    assert!(missing.to_string().contains("no/tokenizer.json"), "{missing}");
}
