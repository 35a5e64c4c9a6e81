//! How much is worked on.

use std::cell::Cell;
use std::ops::Range;

use bpe_core::polling::with_check;
use bpe_core::{Normalization, Request};

use super::texts::*;

/// How many bytes of text a call works on, in the mean of many calls.
fn work(call: impl Fn() -> usize) -> usize {
    /// What is worked on between two checks, and how often the call is repeated.
    const INTERVAL: usize = 1 << 17;
    const TIMES: usize = 16;
    let checks = Cell::new(0);
    let check = || {
        checks.set(checks.get() + 1);
        true
    };
    with_check(&check, || (0..TIMES).map(|_| call()).max());
    checks.get() * INTERVAL / TIMES
}

/// What is kept is worked on a few times, and hardly anything else of the text.
#[test]
fn truncating_works_on_little_more_than_is_kept() {
    let encoding = encoding(FAMILIES[1], Normalization::None);
    let request = Request::ORDINARY;
    // The factor of what is kept that a prefix may take, and a suffix: where no cut is safe, the
    // whole suffix is encoded for each that is tried.
    for (part, of_prefix, of_suffix) in [
        ("abc bca, ", 5, 10),
        ("的。 ", 5, 13),
        ("123 ", 5, 13),
        ("a\n", 5, 13),
        ("a", 3, 28),
        ("-", 6, 36),
        (" ", 5, 40),
        ("----------------------------------------  ", 5, 50),
    ] {
        let text = part.repeat(500_000 / part.len());
        for limit in [0, 30, 700, 3000] {
            let prefix = || encoding.truncate(&text, limit, &request).unwrap();
            let suffix = || encoding.truncate_left(&text, limit, &request).unwrap();
            let worked = work(prefix);
            assert!(worked <= of_prefix * prefix() + 16_000, "{part:?} {limit}: {worked}");
            let (worked, kept) = (work(suffix), text.len() - suffix());
            assert!(worked <= of_suffix * kept + 16_000, "{part:?} {limit}: {worked}");
        }
    }
}

/// Each cut of such text makes other text of what is normalized, so that each candidate is encoded: what
/// they all take is bounded.
#[test]
fn chunking_takes_bounded_work() {
    let encoding = encoding(FAMILIES[1], Normalization::Nfc);
    let request = Request::ORDINARY;
    let stack = format!("a{}", "\u{327}\u{301}".repeat(50));
    for part in ["\u{f71}\u{f72}", "\u{327}\u{301}", &stack] {
        let text = part.repeat(10_000 / part.len());
        for (limit, overlap) in [(20, 0), (26, 13)] {
            let chunks = encoding.chunk(&text, limit, overlap, &request).unwrap();
            let kept: usize = chunks.iter().map(Range::len).sum();
            let worked = work(|| encoding.chunk(&text, limit, overlap, &request).unwrap().len());
            assert!(worked <= 120 * kept, "{part:?} {limit} {overlap}: {worked} for {kept}");
            // A character more would be too much.
            for Range { start, end } in chunks {
                let longer = places(&text).find(|&place| place > end).unwrap_or(end);
                let [count, more] = [end, longer]
                    .map(|end| encoding.count(&text[start..end], 99, &request).unwrap());
                assert!(count <= limit && (more > limit || end == text.len()), "{part:?} {start}");
            }
        }
    }
}

/// Where no more may be encoded, a chunk is found of which the first characters alone have too many
/// tokens.
#[test]
fn a_chunk_is_found_after_much_work() {
    // Marks that change places, rows of which are tokens, and a word of which no beginning is one.
    let (marks, word) = (["\u{f71}", "\u{f72}"], "的一是不了在人有我");
    let mut tokens: Vec<Vec<u8>> = vec![b"\xe0\xbd".to_vec()];
    for power in 0..=6 {
        tokens.extend(marks.map(|mark| mark.repeat(1 << power).into_bytes()));
    }
    tokens.extend((0..word.len() - 1).rev().map(|start| word.as_bytes()[start..].to_vec()));
    let encoding = encoding_of_bytes(FAMILIES[1], tokens).with_normalization(Normalization::Nfc);
    // (Of an odd number, so that the last chunks of marks are short, too.)
    let text = marks.concat().repeat(301) + word + "xx.";
    let chunks = encoding.chunk(&text, 2, 0, &Request::ORDINARY).unwrap();
    assert_eq!(chunks[chunks.len() - 2].len(), word.len() + 1);
}
