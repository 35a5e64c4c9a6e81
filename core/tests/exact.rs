//! Tests every path from a piece to its ids against the plain merge rule.
//!
//! The vocabularies are small and the alphabets tiny, so that all cases occur in combination:
//! tokens that cross characters, tokens that merging cannot reach, bytes that are not tokens, ranks
//! out of order, ids with gaps and ids near the end of their range.

#[path = "support/merge.rs"]
mod merge;
mod support;

use std::collections::HashMap;

use bpe_core::sink::Count;
use bpe_core::vocabulary::image::Aligned;
use bpe_core::{Direct, Error, Request, SpecialTokens, Splitter, Vocabulary};
use merge::by_the_rule;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

type Token = (Vec<u8>, u32);

/// Parts of texts and tokens: characters, or only some bytes of a character.
const ALPHABETS: &[&[&[u8]]] = &[
    &[b"a", b"b"],
    &[b"a", b"b", b"c"],
    &[b"\0", b"\x01"],
    &[b"\0", b"\xff", b"\x80"],
    &[b"\xe4", b"\xb8", b"\x80"],
    &[b"\xe4\xb8\x80", b"\xe4\xb8\x81"],
    &[b"\xe4\xb8\x80", b"\xe4\xb8\x81", b"\xe4", b"\xb8", b"\x80", b"\x81"],
    &[b"\xe4\xb8\x80", b"\xe5\x88\xb0", b"\xe5\x88", b"\xb8\x80", b"a"],
    &[b"\xe5\x88\xb0", b"\xe5\xb0\x88", b"\xe5", b"\x88\xb0"],
    &[b"\xd0\xb0", b"\xd1\x80", b"\xd0", b"\x80", b" "],
    &[b"\xf0\x9f\x98\x80", b"\xf0\x9f\x98\x81", b"\xf0\x9f", b"\x98"],
    &[b"\xf0\x9f\x98\x80", b"\xe4\xb8\x80", b"\xb8\x80\xe4", b"a"],
];

/// Distribution of the ids of a vocabulary.
#[derive(Debug, Clone, Copy)]
enum Numbers {
    Ranks,
    Gaps,
    /// From some rank on, ids do not fit in 24 bits.
    Large,
    /// Ids end at the largest possible id.
    Last,
}

/// A small vocabulary, and pieces made of its tokens and their parts.
#[derive(Debug, Clone)]
struct Case {
    tokens: Vec<Token>,
    pieces: Vec<Vec<u8>>,
}

#[derive(Debug, Clone)]
struct Bytes {
    all: bool,
    missing: Vec<Index>,
    /// Position of each byte among the other tokens; without positions all bytes come first.
    places: Vec<Index>,
}

const LONGEST_TOKEN: usize = 300;
const LONGEST_PIECE: usize = 200;

/// Returns the tokens in the order of their ranks: bytes, then learned tokens, then `extra` at
/// other positions, where a token may rank before its parts.
fn in_order(
    alphabet: &[&[u8]],
    bytes: &Bytes,
    learned: &[(Index, Index)],
    extra: &[(Vec<Index>, Index)],
) -> Vec<Vec<u8>> {
    let mut singles: Vec<u8> =
        if bytes.all { (0..=255).collect() } else { alphabet.concat().to_vec() };
    singles.sort_unstable();
    singles.dedup();
    let mut order: Vec<Vec<u8>> = singles.iter().map(|&byte| vec![byte]).collect();
    let used = |order: &[Vec<u8>]| -> Vec<Vec<u8>> {
        let of_alphabet = |token: &&Vec<u8>| {
            token.len() > 1 || alphabet.iter().any(|atom| atom.contains(&token[0]))
        };
        order.iter().filter(of_alphabet).cloned().collect()
    };
    let add = |order: &mut Vec<Vec<u8>>, place: Option<Index>, token: Vec<u8>| {
        if token.len() <= LONGEST_TOKEN && !order.contains(&token) {
            let place = place.map_or(order.len(), |place| place.index(order.len() + 1));
            order.insert(place, token);
        }
    };
    for (left, right) in learned {
        let parts = used(&order);
        add(&mut order, None, [left.get(&parts).clone(), right.get(&parts).clone()].concat());
    }
    for (atoms, place) in extra {
        let token: Vec<u8> = atoms.iter().flat_map(|atom| atom.get(alphabet).to_vec()).collect();
        add(&mut order, Some(*place), token);
    }
    for missing in &bytes.missing {
        let gone = missing.get(&singles);
        if order.len() > 1 {
            order.retain(|token| token != &[*gone]);
        }
    }
    for (place, byte) in bytes.places.iter().zip(alphabet.concat()) {
        if let Some(at) = order.iter().position(|token| token == &[byte]) {
            let token = order.remove(at);
            order.insert(place.index(order.len() + 1), token);
        }
    }
    order
}

fn numbered(order: Vec<Vec<u8>>, numbers: Numbers) -> Vec<Token> {
    let count = order.len() as u32;
    let id = |rank: u32| match numbers {
        Numbers::Ranks => rank,
        Numbers::Gaps => rank * 3 + rank / 5 + 1,
        Numbers::Large if rank < count / 2 => rank,
        Numbers::Large => (1 << 24) - 2 + rank,
        Numbers::Last => u32::MAX - count + rank,
    };
    order.into_iter().zip(0..).map(|(token, rank)| (token, id(rank))).collect()
}

fn cases(pieces: usize) -> impl Strategy<Value = Case> {
    let bytes = (any::<bool>(), vec(any::<Index>(), 0..3), vec(any::<Index>(), 0..4), 0..4u8)
        .prop_map(|(all, missing, places, kind)| Bytes {
            all,
            missing: if kind & 1 == 0 { vec![] } else { missing },
            places: if kind & 2 == 0 { vec![] } else { places },
        });
    let learned = vec(any::<(Index, Index)>(), 0..40);
    let extra = prop_oneof![
        2 => Just(vec![]),
        1 => vec((vec(any::<Index>(), 1..8), any::<Index>()), 0..8),
        1 => vec((vec(any::<Index>(), 1..5), any::<Index>()), 8..40),
    ];
    let numbers = select(vec![Numbers::Ranks, Numbers::Gaps, Numbers::Large, Numbers::Last]);
    // Atoms of the alphabet; concatenated tokens; a few repeated atoms.
    let piece = prop_oneof![
        vec(any::<Index>(), 1..20).prop_map(|indexes| (0, indexes)),
        vec(any::<Index>(), 20..200).prop_map(|indexes| (0, indexes)),
        vec(any::<Index>(), 1..30).prop_map(|indexes| (1, indexes)),
        vec(any::<Index>(), 2..5).prop_map(|indexes| (2, indexes)),
    ];
    let vocabulary = (select(ALPHABETS), bytes, learned, extra, numbers);
    (vocabulary, vec(piece, 1..pieces)).prop_map(|(vocabulary, pieces)| {
        let (alphabet, bytes, learned, extra, numbers) = vocabulary;
        let order = in_order(alphabet, &bytes, &learned, &extra);
        let piece = |(kind, indexes): (u8, Vec<Index>)| {
            let atoms = indexes.iter().map(|index| index.get(alphabet).to_vec());
            let mut piece: Vec<u8> = match kind {
                0 => atoms.flatten().collect(),
                1 => indexes.iter().flat_map(|index| index.get(&order).clone()).collect(),
                _ => {
                    let few: Vec<u8> = atoms.skip(1).flatten().collect();
                    few.repeat(1 + indexes[0].index(60))
                }
            };
            piece.truncate(LONGEST_PIECE);
            piece
        };
        let pieces = pieces.into_iter().map(piece).collect();
        Case { tokens: numbered(order, numbers), pieces }
    })
}

/// Patterns: each piece is the whole text, or words and the whitespace between them.
const WHOLE: &str = r"(?s).+";
const WORDS: &str = r"\S+|\s+";

fn encoding(vocabulary: Vocabulary, pattern: &str) -> Direct {
    let none: [(String, u32); 0] = [];
    let special_tokens = SpecialTokens::new(none).expect("no special tokens");
    let splitter = Splitter::new(pattern).expect("a pattern");
    Direct::new(vocabulary, splitter, special_tokens).expect("an encoding")
}

/// Returns the ids, or the byte without an id.
fn outcome(result: bpe_core::Result<()>, ids: Vec<u32>) -> Result<Vec<u32>, u8> {
    match result {
        Ok(()) => Ok(ids),
        Err(Error::MissingByte { byte }) => Err(byte),
        Err(error) => panic!("{error}"),
    }
}

fn piece_ids(encoding: &Direct, piece: &[u8]) -> Result<Vec<u32>, u8> {
    let mut ids = Vec::new();
    let result = encoding.encode_piece(piece, &mut ids);
    outcome(result, ids)
}

/// Returns the ids of a text, and checks that every sink gives the same ids.
fn text_ids(encoding: &Direct, text: &str) -> Result<Vec<u32>, u8> {
    let mut ids = Vec::new();
    let result = encoding.encode(text, &Request::ORDINARY, &mut ids);
    if result.is_ok() {
        let mut count = Count::till(usize::MAX);
        encoding.encode(text, &Request::ORDINARY, &mut count).unwrap();
        let (spanned, _) = encoding.encode_with_spans(text, &Request::ORDINARY, true).unwrap();
        assert_eq!((count.total, &spanned), (ids.len(), &ids));
        assert_eq!(encoding.decode_bytes(&ids).unwrap(), text.as_bytes());
    }
    outcome(result, ids)
}

/// Checks each piece twice, then all pieces again.
fn check_pieces(encoding: &Direct, case: &Case) -> Result<(), TestCaseError> {
    let ids: HashMap<Vec<u8>, u32> = case.tokens.iter().cloned().collect();
    let wanted: Vec<_> = case.pieces.iter().map(|piece| by_the_rule(&ids, piece)).collect();
    for round in 0..3 {
        for (piece, wanted) in case.pieces.iter().zip(&wanted) {
            for _ in 0..2 - round / 2 {
                prop_assert_eq!(
                    &piece_ids(encoding, piece),
                    wanted,
                    "round {}, piece b\"{}\"",
                    round,
                    piece.escape_ascii()
                );
            }
        }
        if round == 1 {
            encoding.workspaces().set_caching(false);
        }
    }
    encoding.workspaces().set_caching(true);
    Ok(())
}

/// Removes bytes that are not UTF-8.
fn as_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(char::REPLACEMENT_CHARACTER, "")
}

proptest! {
    #![proptest_config(support::config(700))]

    #[test]
    fn pieces_merge_by_the_rule(case in cases(24)) {
        let vocabulary = Vocabulary::build(case.tokens.clone()).expect("a vocabulary");
        check_pieces(&encoding(vocabulary, WHOLE), &case)?;
    }

    #[test]
    fn texts_merge_by_the_rule(case in cases(40)) {
        let ids: HashMap<Vec<u8>, u32> = case.tokens.iter().cloned().collect();
        let vocabulary = Vocabulary::build(case.tokens.clone()).expect("a vocabulary");
        let texts: Vec<String> = case.pieces.iter().map(|piece| as_text(piece)).collect();
        let together = texts.join(" ");
        let whole = encoding(vocabulary.clone(), WHOLE);
        let words = encoding(vocabulary, WORDS);
        let spaces = regex::Regex::new(WORDS).expect("a pattern");
        for text in texts.iter().chain([&together]) {
            let by_word = || {
                spaces.find_iter(text).map(|piece| by_the_rule(&ids, piece.as_str().as_bytes()))
            };
            let by_word: Result<Vec<Vec<u32>>, u8> = by_word().collect();
            let wanted = by_word.map(|ids| ids.concat());
            for _ in 0..2 {
                prop_assert_eq!(&text_ids(&words, text), &wanted, "words of {:?}", text);
            }
            if !text.is_empty() && text.len() <= LONGEST_PIECE {
                let wanted = by_the_rule(&ids, text.as_bytes());
                for _ in 0..2 {
                    prop_assert_eq!(&text_ids(&whole, text), &wanted, "whole {:?}", text);
                }
            }
        }
    }
}

proptest! {
    // Images are never freed, and each takes more than a megabyte.
    #![proptest_config(support::config(100))]

    #[test]
    fn images_merge_by_the_rule(case in cases(24)) {
        let built = Vocabulary::build(case.tokens.clone()).expect("a vocabulary");
        let read = read_back(&built.to_image());
        prop_assert_eq!(read.is_ordered(), built.is_ordered());
        prop_assert_eq!(read.all_reachable(), built.all_reachable());
        for rank in 0..built.len() as u32 {
            prop_assert_eq!(read.token(rank), built.token(rank));
            prop_assert_eq!(read.id(rank), built.id(rank));
            prop_assert_eq!(read.split(rank), built.split(rank));
            prop_assert_eq!(read.rank(built.token(rank)), Some(rank));
            prop_assert_eq!(read.rank_of_id(built.id(rank)), Some(rank));
        }
        check_pieces(&encoding(read, WHOLE), &case)?;
    }
}

/// Reads `image` at an aligned address, which is never freed.
fn read_back(image: &[u8]) -> Vocabulary {
    Vocabulary::from_image(for_good(image)).expect("an image")
}

fn for_good(image: &[u8]) -> &'static [u8] {
    let blocks: Vec<Aligned<[u8; 64]>> = image
        .chunks(64)
        .map(|chunk| {
            let mut block = [0; 64];
            block[..chunk.len()].copy_from_slice(chunk);
            Aligned(block)
        })
        .collect();
    let blocks: &'static [Aligned<[u8; 64]>] = Vec::leak(blocks);
    // SAFETY: an `Aligned` of 64 bytes is exactly those bytes, and the blocks have at least
    // `image.len()` bytes.
    unsafe { std::slice::from_raw_parts(blocks.as_ptr().cast(), image.len()) }
}

fn single_bytes() -> Vec<Vec<u8>> {
    (0..=255u8).map(|byte| vec![byte]).collect()
}

fn ids_by_place(tokens: &[Vec<u8>]) -> Vec<Token> {
    tokens.iter().cloned().zip(0..).collect()
}

/// Finds and merges tokens whose length does not fit into a byte.
#[test]
fn tokens_of_many_bytes() {
    let mut order = single_bytes();
    let mut token = b"ab".to_vec();
    while token.len() <= 4096 {
        order.push(token.clone());
        token = token.repeat(2);
    }
    // Merging never reaches these tokens.
    order.extend([15, 16, 17, 127, 128, 129, 254, 255, 256, 257, 999].map(|n| b"ba".repeat(n)));
    let tokens = ids_by_place(&order);
    let mut pieces: Vec<Vec<u8>> = order[256..].to_vec();
    pieces.extend([1, 2, 127, 128, 255, 256, 300].map(|n| b"ab".repeat(n + 1)));
    pieces.extend([15, 128, 255].map(|n| [&b"x"[..], &b"ba".repeat(n)].concat()));
    pieces.retain(|piece| piece.len() <= 1100);
    let encoding = encoding(Vocabulary::build(tokens.clone()).expect("a vocabulary"), WHOLE);
    check_pieces(&encoding, &Case { tokens, pieces }).expect("the ids of the rule");
}

/// Refuses an image that is cut off at any position.
#[test]
fn images_that_are_cut_off_are_refused() {
    let order = [b"a".to_vec(), b"b".to_vec(), b"ab".to_vec(), b"abababababababab".to_vec()];
    let vocabulary = Vocabulary::build(ids_by_place(&order)).expect("a vocabulary");
    let image = for_good(&vocabulary.to_image());
    assert!(Vocabulary::from_image(image).is_ok());
    let some = (0..4096).chain((4096..image.len()).step_by(4093)).filter(|&end| end < image.len());
    for end in some {
        assert!(Vocabulary::from_image(&image[..end]).is_err(), "{end} bytes");
    }
    // Images at unaligned addresses are also refused.
    let mut shifted = vec![0];
    shifted.extend_from_slice(image);
    assert!(Vocabulary::from_image(&for_good(&shifted)[1..]).is_err());
}

/// An image records which bytes are not tokens.
#[test]
fn images_of_missing_bytes() {
    let order = [b"a".to_vec(), b"b".to_vec(), b"ab".to_vec()];
    let every = [single_bytes(), vec![b"ab".to_vec()]].concat();
    for (order, is_missing) in [(&order[..], true), (&every, false)] {
        let vocabulary = Vocabulary::build(ids_by_place(order)).expect("a vocabulary");
        let encoding = encoding(read_back(&vocabulary.to_image()), WHOLE);
        for piece in [&b"abc"[..], &b"abc".repeat(40)] {
            let found = piece_ids(&encoding, piece);
            assert_eq!(found.err(), is_missing.then_some(b'c'), "{}", piece.escape_ascii());
        }
        assert_eq!(text_ids(&encoding, &"abc".repeat(7)).is_err(), is_missing);
    }
}
