//! Texts, encodings, and a search through every place where a text can be cut.

use std::ops::Range;

use bpe_core::{Encoding, Normalization, Request, SpecialTokens, Splitter, Vocabulary};
use proptest::prelude::*;

pub const FAMILIES: [&str; 4] = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    bpe_core::split::DEEPSEEK,
];

pub const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// Tokens for which a shorter text may have more tokens, tokens of many bytes, and special tokens.
pub fn encoding(pattern: &str, normalization: Normalization) -> Encoding {
    let words = "ab abc bca aa aaaa 's 11 123 é 的。 １２３ 𝟏𝟐𝟑 -- ---- -------- -< >- ---------------- abcabc \
                 abcabcabcabc";
    let spaces = [" a", " ab", "  ", "    ", "        ", "\n\n"];
    let words = words.split(' ').chain(spaces);
    let bytes = (0..=255).map(|byte: u8| (vec![byte], u32::from(byte)));
    let words = words.zip(256..).map(|(word, id)| (word.as_bytes().to_vec(), id));
    let vocabulary = Vocabulary::build(bytes.chain(words).collect()).unwrap();
    let special = [("<|a|>", 900), ("<|end of text|>", 901)];
    let special = SpecialTokens::new(special.map(|(name, id)| (name.to_owned(), id))).unwrap();
    let splitter = Splitter::new(pattern).unwrap();
    Encoding::new(vocabulary, splitter, special).unwrap().with_normalization(normalization)
}

pub fn kinds() -> impl Strategy<Value = (&'static str, Normalization)> {
    let normalization = prop::sample::select(vec![Normalization::None, Normalization::Nfc]);
    (prop::sample::select(FAMILIES.to_vec()), normalization)
}

pub fn texts() -> impl Strategy<Value = String> {
    texts_of(0..40)
}

/// Texts of this many parts.
pub fn texts_of(count: Range<usize>) -> impl Strategy<Value = String> {
    let pieces = vec![
        "a",
        "ab",
        "abc",
        "bca",
        "B",
        " ",
        "  ",
        "\n",
        "\r\n",
        "'s",
        "'",
        "的",
        "。",
        "1",
        "1234",
        "é",
        "e\u{301}",
        "\u{323}",
        "🦀",
        "-",
        "--------",
        "<|a|>",
        "<|end of text|>",
        "<|a",
        "|>",
    ];
    // Between safe cuts, since a longer suffix is not sure to be found where there are none.
    let long = (prop::sample::select(vec!["abc", "a", "-", "  ", "的", "e\u{301}"]), 30..60usize)
        .prop_map(|(piece, count)| format!("x.{}x.", piece.repeat(count)));
    let piece = prop_oneof![12 => prop::sample::select(pieces).prop_map(str::to_owned), 1 => long];
    prop::collection::vec(piece, count).prop_map(|pieces| pieces.concat())
}

pub fn requests(encoding: &Encoding, is_allowed: bool) -> Request {
    let names = is_allowed.then_some("<|a|>").into_iter().chain(Some("<|end of text|>"));
    Request::allowing(encoding.special_tokens().select(names))
}

pub fn run(count: Range<usize>) -> impl Strategy<Value = String> {
    let parts =
        "a b 1 12 123 - 的 é ab １２３ 𝟏𝟐𝟑".split(' ').chain([" ", "\n"]).collect::<Vec<_>>();
    (prop::sample::select(parts), count).prop_map(|(part, count)| part.repeat(count))
}

pub fn places(text: &str) -> impl DoubleEndedIterator<Item = usize> {
    (0..=text.len()).filter(|&place| text.is_char_boundary(place))
}

/// The longest prefix that fits, by trying them all.
pub fn prefix(encoding: &Encoding, text: &str, limit: usize, request: &Request) -> usize {
    let fits = |&end: &usize| encoding.count(&text[..end], limit, request).unwrap() <= limit;
    places(text).rev().find(fits).unwrap()
}

/// Where the longest suffix that fits starts.
pub fn suffix(encoding: &Encoding, text: &str, limit: usize, request: &Request) -> usize {
    let fits = |&start: &usize| encoding.count(&text[start..], limit, request).unwrap() <= limit;
    places(text).find(fits).unwrap()
}

/// What is kept on either side is as long as a search through every place finds.
pub fn is_the_longest(
    encoding: &Encoding,
    text: &str,
    limits: &[usize],
    request: &Request,
) -> Result<(), TestCaseError> {
    for &limit in limits {
        let expected = prefix(encoding, text, limit, request);
        let kept = encoding.truncate(text, limit, request).unwrap();
        prop_assert_eq!(&text[..kept], &text[..expected], "{}", limit);
        let expected = suffix(encoding, text, limit, request);
        let kept = encoding.truncate_left(text, limit, request).unwrap();
        prop_assert_eq!(&text[kept..], &text[expected..], "{}", limit);
    }
    Ok(())
}

/// Each chunk begins with what `overlap` asks for, is as long as a search through every place finds, and
/// no part of a special token.
pub fn chunks_are_the_longest(
    encoding: &Encoding,
    text: &str,
    (limit, overlap): (usize, usize),
    request: &Request,
) -> Result<(), TestCaseError> {
    let mut special = Vec::new();
    let mut from = 0;
    let names = encoding.special_tokens();
    while let Some((found, _)) = names.find_allowed(text, from, &request.allowed) {
        special.push(found.start..found.end);
        from = found.end;
    }
    let whole = |place: usize| {
        special.iter().find(|span: &&Range<usize>| span.start < place && place < span.end)
    };
    let chunk = |start: usize| {
        let mut end = start + prefix(encoding, &text[start..], limit, request);
        while let Some(span) = whole(end).filter(|span| span.start > start) {
            end = start + prefix(encoding, &text[start..span.start], limit, request);
        }
        end
    };
    let mut last = 0..0;
    for Range { start, end } in encoding.chunk(text, limit, overlap, request).unwrap() {
        prop_assert_eq!(end, chunk(start));
        prop_assert!(start <= last.end && last.end < end);
        let again = suffix(encoding, &text[last.clone()], overlap, request);
        let mut wanted = if overlap > 0 { last.start + again } else { last.end };
        while let Some(span) = whole(wanted) {
            wanted = span.end + suffix(encoding, &text[span.end..last.end], overlap, request);
        }
        // Less is repeated only where nothing new would fit.
        let is_full = wanted < start && chunk(wanted) <= last.end;
        prop_assert!(start == wanted || is_full, "{:?} {}, not {}", last, start, wanted);
        last = start..end;
    }
    prop_assert_eq!(last.end, text.len());
    Ok(())
}

/// An encoding of these tokens, each also in the order of its merges, behind all bytes.
pub fn encoding_of(pattern: &str, tokens: &[String]) -> Encoding {
    encoding_of_bytes(pattern, tokens.iter().map(|token| token.as_bytes().to_vec()).collect())
}

/// The same of tokens that may be no text.
pub fn encoding_of_bytes(pattern: &str, tokens: Vec<Vec<u8>>) -> Encoding {
    let bytes = (0..=255).map(|byte: u8| vec![byte]);
    let vocabulary = Vocabulary::build(bytes.chain(tokens).zip(0..).collect()).unwrap();
    let special = SpecialTokens::new([("<|a|>".to_owned(), 900)]).unwrap();
    Encoding::new(vocabulary, Splitter::new(pattern).unwrap(), special).unwrap()
}
