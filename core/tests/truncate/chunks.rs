//! Chunks, one behind the other.

use std::ops::Range;

use bpe_core::{Error, Normalization, Request};

use super::texts::*;

/// Chunks that begin inside of a long word have the tokens of what is left of it.
#[test]
fn chunks_begin_anywhere_in_a_long_word() {
    let encoding = encoding(FAMILIES[1], Normalization::None);
    let request = Request::ORDINARY;
    for word in ["abcabcab", "aaaab", "abé", "bca的。"] {
        let text = word.repeat(400);
        for (limit, overlap) in [(1, 0), (2, 1), (5, 0), (7, 6), (30, 11)] {
            let Ok(chunks) = encoding.chunk(&text, limit, overlap, &request) else { continue };
            for Range { start, end } in chunks {
                // (All that is read of the rest to find where it is cut.)
                let rest = &text
                    [start..places(&text).find(|&at| at >= start + 1500).unwrap_or(text.len())];
                assert_eq!(encoding.truncate(rest, limit, &request), Ok(end - start), "{word:?}");
            }
        }
    }
}

/// A run that ends sooner says nothing of longer ones, which longer tokens may cover.
#[test]
fn short_runs_say_nothing_of_long_ones() {
    let powers: Vec<String> = (1..=7).map(|power| "a".repeat(1 << power)).collect();
    let encoding = encoding_of(FAMILIES[0], &powers);
    let request = Request::ORDINARY;
    let text = format!("{}.{}", "a".repeat(40), "a".repeat(600));
    let chunks = encoding.chunk(&text, 1, 0, &request).unwrap();
    assert_eq!(chunks[..4], [0..32, 32..40, 40..41, 41..169]);
    // As many as two tokens of it cover, and some more; 64 bytes of something else before.
    let powers = powers.into_iter().chain((1..=6).map(|power| "-".repeat(1 << power)));
    let encoding = encoding_of(FAMILIES[0], &powers.collect::<Vec<_>>());
    for (dashes, count) in [(0, 96), (0, 100), (64, 100)] {
        let text = format!("{}{}.{}", "-".repeat(dashes), "a".repeat(count), "a".repeat(600));
        for (limit, overlap) in [(2, 0), (2, 1), (3, 1), (3, 2), (4, 2), (4, 3)] {
            let mut last: Range<usize> = 0..0;
            for Range { start, end } in encoding.chunk(&text, limit, overlap, &request).unwrap() {
                let again = suffix(&encoding, &text[last.clone()], overlap, &request);
                assert_eq!(start, last.start + again, "{dashes} {count} {limit} {overlap}");
                let expected = prefix(&encoding, &text[start..], limit, &request);
                assert_eq!(end - start, expected, "{dashes} {count} {limit} {overlap}");
                last = start..end;
            }
        }
    }
    // Of a run of more than 64 characters not all ends are tried; of what is left of it they are.
    let encoding = encoding_of(FAMILIES[0], &["aa".to_owned(), "a".repeat(20)]);
    let text = "a".repeat(100) + ".";
    let chunks = encoding.chunk(&text, 1, 0, &request).unwrap();
    for Range { start, end } in chunks.into_iter().filter(|chunk| chunk.start >= 36) {
        assert_eq!(end - start, prefix(&encoding, &text[start..], 1, &request), "{start}");
    }
}

/// A cut inside of a name would fit more of the text, since a token reaches into the name there.
#[test]
fn chunks_begin_and_end_beside_special_tokens() {
    let encoding = encoding(FAMILIES[0], Normalization::None);
    let request = requests(&encoding, true);
    let chunks = |text, limit, overlap| encoding.chunk(text, limit, overlap, &request).unwrap();
    assert_eq!(chunks("-<|a|>-<|a|>", 1, 0), [0..1, 1..6, 6..7, 7..12]);
    assert_eq!(chunks("<|a|>-<|a|>-", 2, 1), [0..6, 5..11, 6..12]);
    assert_eq!(chunks("B<|a|>-B", 3, 1), [0..7, 6..8]);
}

/// What a chunk begins with is given up in steps that grow, so that this takes few tries.
#[test]
fn overlap_gives_way_to_what_is_new() {
    let encoding = encoding(FAMILIES[0], Normalization::None);
    let chunks = encoding.chunk("BBBBBBBB\u{1f980}", 8, 7, &Request::ORDINARY);
    assert_eq!(chunks, Ok(vec![0..8, 6..12]));
}

/// Without overlap chunks have all of the text, what has no tokens included.
#[test]
fn chunks_are_side_by_side() {
    let encoding = encoding(r"\w+", Normalization::None);
    let chunks = encoding.chunk("B B  B", 1, 0, &Request::ORDINARY);
    assert_eq!(chunks, Ok(vec![0..2, 2..5, 5..6]));
    let chunks = encoding.chunk("B B  B", 2, 1, &Request::ORDINARY);
    assert_eq!(chunks, Ok(vec![0..5, 1..6]));
}

#[test]
fn a_character_of_too_many_tokens_is_named() {
    let encoding = encoding(FAMILIES[1], Normalization::None);
    let chunks = |text: &str, limit| encoding.chunk(text, limit, 0, &Request::ORDINARY);
    assert_eq!(chunks("a🦀b", 4), Ok(vec![0..1, 1..5, 5..6]));
    let refused = Error::ChunkTooSmall { character: "🦀".to_owned(), max_tokens: 3 };
    assert_eq!(chunks("a🦀b", 3), Err(refused));
}

/// Nothing is known of where the pieces of such a pattern begin: each candidate is encoded.
#[test]
fn chunks_of_other_patterns_are_the_longest_that_fit() {
    let request = Request::ORDINARY;
    for pattern in [r"\s*\S+|\s+", r"[^\n]+|\n+"] {
        let encoding = encoding(pattern, Normalization::None);
        let text = "abc bca, ab 1234 'saaa --------- 的。\n".repeat(80);
        for (limit, overlap) in [(5, 0), (7, 3)] {
            let mut last: Range<usize> = 0..0;
            for Range { start, end } in encoding.chunk(&text, limit, overlap, &request).unwrap() {
                let rest = &text[start..];
                assert_eq!(encoding.truncate(rest, limit, &request), Ok(end - start), "{start}");
                assert!(start <= last.end && last.end < end);
                last = start..end;
            }
        }
    }
}
