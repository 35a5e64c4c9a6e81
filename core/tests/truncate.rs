//! Texts cut to a number of tokens, beside trying every place where they can be cut.

use std::cell::Cell;
use std::ops::Range;

use bpe_core::polling::with_check;
use bpe_core::{Encoding, Error, Normalization, Request, SpecialTokens, Splitter, Vocabulary};
use proptest::prelude::*;

mod support;

const FAMILIES: [&str; 4] = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    bpe_core::split::DEEPSEEK,
];

const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// Tokens for which a shorter text may have more tokens, tokens of many bytes, and special tokens.
fn encoding(pattern: &str, normalization: Normalization) -> Encoding {
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

fn kinds() -> impl Strategy<Value = (&'static str, Normalization)> {
    let normalization = prop::sample::select(vec![Normalization::None, Normalization::Nfc]);
    (prop::sample::select(FAMILIES.to_vec()), normalization)
}

fn texts() -> impl Strategy<Value = String> {
    texts_of(0..40)
}

/// Texts of this many parts.
fn texts_of(count: Range<usize>) -> impl Strategy<Value = String> {
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

fn requests(encoding: &Encoding, is_allowed: bool) -> Request {
    let names = is_allowed.then_some("<|a|>").into_iter().chain(Some("<|end of text|>"));
    Request::allowing(encoding.special_tokens().select(names))
}

fn run(count: Range<usize>) -> impl Strategy<Value = String> {
    let parts =
        "a b 1 12 123 - 的 é ab １２３ 𝟏𝟐𝟑".split(' ').chain([" ", "\n"]).collect::<Vec<_>>();
    (prop::sample::select(parts), count).prop_map(|(part, count)| part.repeat(count))
}

fn places(text: &str) -> impl DoubleEndedIterator<Item = usize> {
    (0..=text.len()).filter(|&place| text.is_char_boundary(place))
}

/// The longest prefix that fits, by trying them all.
fn prefix(encoding: &Encoding, text: &str, limit: usize, request: &Request) -> usize {
    let fits = |&end: &usize| encoding.count(&text[..end], limit, request).unwrap() <= limit;
    places(text).rev().find(fits).unwrap()
}

/// Where the longest suffix that fits starts.
fn suffix(encoding: &Encoding, text: &str, limit: usize, request: &Request) -> usize {
    let fits = |&start: &usize| encoding.count(&text[start..], limit, request).unwrap() <= limit;
    places(text).find(fits).unwrap()
}

/// What is kept on either side is as long as a search through every place finds.
fn is_the_longest(
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
fn chunks_are_the_longest(
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

proptest! {
    #![proptest_config(support::config(200))]

    #[test]
    fn what_is_kept_is_the_longest_that_fits(
        (pattern, normalization) in kinds(),
        text in texts(),
        is_allowed in any::<bool>(),
        limit in 0..60usize,
    ) {
        let encoding = encoding(pattern, normalization);
        let request = requests(&encoding, is_allowed);
        let expected = prefix(&encoding, &text, limit, &request);
        let kept = encoding.truncate(&text, limit, &request).unwrap();
        prop_assert_eq!(&text[..kept], &text[..expected]);
        let expected = suffix(&encoding, &text, limit, &request);
        let kept = encoding.truncate_left(&text, limit, &request).unwrap();
        prop_assert_eq!(&text[kept..], &text[expected..]);
    }

    #[test]
    fn chunks_are_the_longest_that_fit(
        (pattern, normalization) in kinds(),
        text in texts(),
        is_allowed in any::<bool>(),
        limit in 8..40usize,
        overlap in 0..8usize,
    ) {
        let encoding = encoding(pattern, normalization);
        let request = requests(&encoding, is_allowed);
        chunks_are_the_longest(&encoding, &text, (limit, overlap), &request)?;
    }
}

proptest! {
    #![proptest_config(support::config(12))]

    /// Many more parts than are kept, so that the rest of the text is not looked at.
    #[test]
    fn what_is_kept_of_a_long_text_is_the_longest_that_fits(
        (pattern, normalization) in kinds(),
        text in texts_of(100..300),
        is_allowed in any::<bool>(),
        limits in prop::collection::vec(0..120usize, 3),
    ) {
        let encoding = encoding(pattern, normalization);
        let request = requests(&encoding, is_allowed);
        is_the_longest(&encoding, &text, &limits, &request)?;
    }
}

proptest! {
    #![proptest_config(support::config(60))]

    /// Digits and runs of one character, where a cut moves the borders of all that follow.
    #[test]
    fn runs_are_cut_where_they_just_fit(
        (pattern, normalization) in kinds(),
        runs in prop::collection::vec((run(0..4), run(1..18)), 1..12),
        limits in prop::collection::vec(0..60usize, 3),
    ) {
        let encoding = encoding(pattern, normalization);
        let request = Request::ORDINARY;
        // A cut is safe behind each x.
        let text: String = runs.into_iter().map(|(first, second)| first + &second + "x.").collect();
        is_the_longest(&encoding, &text, &limits, &request)?;
    }
}

/// Vocabularies of few letters: tokens that are merged of two others, and some that may be out of reach.
fn vocabularies() -> impl Strategy<Value = (Vec<&'static str>, Vec<Vec<u8>>)> {
    let letters = [
        &["a"][..],
        &["a", "b"],
        &["a", "b", "é"],
        &["-", "/"],
        &[" ", "\n"],
        &["a", "的", "é"],
        &["-", "。"],
    ];
    let merges = prop::collection::vec(any::<[prop::sample::Index; 2]>(), 1..15);
    let others =
        prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 2..32), 0..3);
    (prop::sample::select(letters.to_vec()), merges, others).prop_map(
        |(letters, merges, others)| {
            let mut parts: Vec<Vec<u8>> = letters.concat().bytes().map(|byte| vec![byte]).collect();
            let mut tokens: Vec<Vec<u8>> = Vec::new();
            for merge in merges {
                let token = merge.map(|part| part.get(&parts).clone()).concat();
                if token.len() <= 40 && !tokens.contains(&token) {
                    parts.push(token.clone());
                    tokens.push(token);
                }
            }
            for other in others {
                let token = other.iter().map(|letter| *letter.get(letters)).collect::<String>();
                if !tokens.contains(&token.clone().into_bytes()) {
                    tokens.push(token.into_bytes());
                }
            }
            (letters.to_vec(), tokens)
        },
    )
}

/// Runs and mixtures of a vocabulary's letters, each before a place where a cut is safe.
fn texts_of_letters() -> impl Strategy<Value = Vec<(bool, Vec<prop::sample::Index>, &'static str)>>
{
    let ends = vec!["x.", "x.", "x. ", ".x.", "x.<|a|>", "x.e\u{301}x.", "x's."];
    let letters = prop::collection::vec(any::<prop::sample::Index>(), 1..58);
    prop::collection::vec((prop::bool::weighted(0.3), letters, prop::sample::select(ends)), 1..4)
}

proptest! {
    #![proptest_config(support::config(300))]

    /// Of tokens that are all of the same few letters, which tokens a cut leaves is hardest to tell.
    #[test]
    fn parts_are_the_longest_with_any_vocabulary(
        (pattern, normalization) in kinds(),
        (letters, tokens) in vocabularies(),
        parts in texts_of_letters(),
        (is_allowed, ends_in_letters) in (prop::bool::weighted(0.3), any::<bool>()),
        limits in prop::collection::vec(0..60usize, 2),
        // (No character has more than three bytes.)
        (limit, overlap) in (3..9usize, any::<prop::sample::Index>()),
    ) {
        let encoding = encoding_of_bytes(pattern, tokens).with_normalization(normalization);
        let mut text = String::new();
        for (number, (is_run, part, end)) in (1..).zip(&parts) {
            let index = |at: usize| part[if *is_run { 0 } else { at }].get(&letters);
            text.extend((0..part.len()).map(|at| *index(at)));
            if number < parts.len() || !ends_in_letters {
                text += end;
            }
        }
        let request = if is_allowed { requests(&encoding, true) } else { Request::ORDINARY };
        is_the_longest(&encoding, &text, &[limit, limits[0], limits[1]], &request)?;
        // (Cutting more of such text into few tokens each would take more work than is done.)
        let text = &text[..places(&text).rfind(|&place| place <= 40).unwrap()];
        chunks_are_the_longest(&encoding, text, (limit, overlap.index(limit / 2 + 1)), &request)?;
    }
}

/// As many bytes as six a token would not be enough.
#[test]
fn tokens_may_have_many_bytes() {
    let encoding = encoding(FAMILIES[0], Normalization::None);
    let request = Request::ORDINARY;
    let text = "abcabcabcabc----------------".repeat(200);
    for limit in (0..400).step_by(10) {
        let kept = 14 * limit;
        assert_eq!(encoding.truncate(&text, limit, &request), Ok(kept));
        assert_eq!(encoding.truncate_left(&text, limit, &request), Ok(text.len() - kept));
        let chunks = encoding.chunk(&text, limit + 1, 0, &request).unwrap();
        assert_eq!(chunks.len(), 400_usize.div_ceil(limit + 1));
    }
}

/// What is read at first has none of its groups of digits as they are in the longest suffix.
#[test]
fn a_suffix_may_be_longer_than_what_is_read_at_first() {
    let encoding = encoding(FAMILIES[1], Normalization::None);
    let text = format!("{}1{}", "x.".repeat(300), "𝟏𝟐𝟑".repeat(18));
    let start = text.len() - 18 * "𝟏𝟐𝟑".len();
    assert_eq!(encoding.truncate_left(&text, 18, &Request::ORDINARY), Ok(start));
}

/// A cut among digits moves all of their groups, behind which may stand a special token.
#[test]
fn digits_are_cut_where_they_just_fit() {
    let encoding = encoding(FAMILIES[1], Normalization::None);
    let request = requests(&encoding, true);
    for digits in ["1", "1234"] {
        for end in ["<|a|>x.x.x.", "x.x.x."] {
            let text = digits.repeat(100 / digits.len()) + end;
            is_the_longest(&encoding, &text, &(0..80).collect::<Vec<_>>(), &request).unwrap();
        }
    }
}

/// Halving finds a place where one character more is too much.
#[test]
fn long_pieces_are_cut_where_they_just_fit() {
    for pattern in FAMILIES {
        let encoding = encoding(pattern, Normalization::Nfc);
        let request = Request::ORDINARY;
        let count = |text: &str| encoding.count(text, usize::MAX, &request).unwrap();
        for piece in ["a", "abc", "的", " ", "-", "🦀", "e\u{301}", "a的。"] {
            let text = piece.repeat(1500);
            for limit in [0, 1, 7, 100, 333, 1000] {
                let end = encoding.truncate(&text, limit, &request).unwrap();
                assert!(count(&text[..end]) <= limit, "{piece:?} {limit}");
                let more = places(&text).find(|&place| place > end);
                assert!(more.is_none_or(|more| count(&text[..more]) > limit), "{piece:?} {limit}");
                let start = encoding.truncate_left(&text, limit, &request).unwrap();
                assert!(count(&text[start..]) <= limit, "{piece:?} {limit}");
                let more = places(&text).rev().find(|&place| place < start);
                assert!(more.is_none_or(|more| count(&text[more..]) > limit), "{piece:?} {limit}");
            }
        }
    }
}

/// Words are one token each where an exclamation mark follows, or stands before, however far.
#[test]
fn patterns_may_look_far() {
    let request = Request::ORDINARY;
    let ahead = encoding(r"a+(?=.*!)|.", Normalization::None);
    let behind = encoding(r"!.*|.", Normalization::None);
    for word in ["aaaa ", "aa ", "aaaaaaaaaaaa ", "a", "aaaaaaaa"] {
        let words = word.repeat(15);
        for limit in [0, 1, 2, 3, 5, 7, 10, 20, 33, 64] {
            let text = format!("{words}!");
            let expected = prefix(&ahead, &text, limit, &request);
            assert_eq!(ahead.truncate(&text, limit, &request), Ok(expected), "{word:?} {limit}");
            let text = format!("!{words}");
            let expected = suffix(&behind, &text, limit, &request);
            let found = behind.truncate_left(&text, limit, &request);
            assert_eq!(found, Ok(expected), "{word:?} {limit}");
        }
    }
}

/// An encoding of these tokens, each also in the order of its merges, behind all bytes.
fn encoding_of(pattern: &str, tokens: &[String]) -> Encoding {
    encoding_of_bytes(pattern, tokens.iter().map(|token| token.as_bytes().to_vec()).collect())
}

/// The same of tokens that may be no text.
fn encoding_of_bytes(pattern: &str, tokens: Vec<Vec<u8>>) -> Encoding {
    let bytes = (0..=255).map(|byte: u8| vec![byte]);
    let vocabulary = Vocabulary::build(bytes.chain(tokens).zip(0..).collect()).unwrap();
    let special = SpecialTokens::new([("<|a|>".to_owned(), 900)]).unwrap();
    Encoding::new(vocabulary, Splitter::new(pattern).unwrap(), special).unwrap()
}

/// The first half of a long word may have many more tokens than all of it.
#[test]
fn a_long_token_may_begin_like_many() {
    let alphabet: Vec<char> = ('a'..='z').chain('A'..='Z').chain('à'..='ö').collect();
    // Merged from the right, so that no beginning of the word is a token.
    for size in [30, 40, 60] {
        let word: Vec<char> = alphabet.iter().copied().cycle().take(size).collect();
        let tokens: Vec<String> =
            (2..=size).map(|length| word[size - length..].iter().collect()).collect();
        let encoding = encoding_of(FAMILIES[0], &tokens);
        let word = tokens.last().unwrap();
        for text in [format!("{word}.x.x.x"), format!("x.{word}zzzz.x"), format!("{word}.{word}.x")]
        {
            is_the_longest(&encoding, &text, &[0, 1, 2, 3, 4, 5, 10, 30, 60], &Request::ORDINARY)
                .unwrap();
        }
    }
}

/// A character more may turn one token into many.
#[test]
fn a_part_may_have_fewer_tokens_than_is_passed() {
    let powers = |character: &str| (1..=5).map(|power| character.repeat(1 << power)).collect();
    let mut tokens: Vec<String> = powers("a");
    tokens.insert(0, "ab".to_owned());
    let encoding = encoding_of(FAMILIES[0], &tokens);
    let text = format!("{}b", "a".repeat(32));
    is_the_longest(&encoding, &text, &[1, 2, 3], &Request::ORDINARY).unwrap();
    tokens[0] = "ba".to_owned();
    let encoding = encoding_of(FAMILIES[0], &tokens);
    let text = format!("b{}", "a".repeat(32));
    is_the_longest(&encoding, &text, &[1, 2, 3], &Request::ORDINARY).unwrap();
}

/// In the name of a special token, words end that end nowhere in the text; what is read of the text may
/// end, or begin, inside of one.
#[test]
fn special_tokens_may_stand_side_by_side() {
    for pattern in FAMILIES {
        let encoding = encoding(pattern, Normalization::None);
        let request = requests(&encoding, true);
        for (before, behind) in [("", ""), ("ab abc", ""), ("", "x.x"), ("B的", "BBBB!!!")] {
            for name in ["<|a|>", "<|end of text|>"] {
                let text = format!("{before}{}{behind}", name.repeat(40));
                is_the_longest(&encoding, &text, &(0..40).collect::<Vec<_>>(), &request).unwrap();
                let chunks = encoding.chunk(&text, 10, 0, &request).unwrap();
                for Range { start, end } in &chunks[..chunks.len() - 1] {
                    let count = encoding.count(&text[*start..*end], 99, &request);
                    assert_eq!(count, Ok(10), "{text:?} {start}");
                }
            }
        }
    }
}

/// What is read at first may begin inside of a name, of which it has more tokens than the whole has.
#[test]
fn a_name_may_begin_before_what_is_read() {
    let encoding = encoding(FAMILIES[0], Normalization::None);
    let request = requests(&encoding, true);
    let text = format!("{}{}{}", "B".repeat(100), "<|end of text|>".repeat(8), "-".repeat(11));
    is_the_longest(&encoding, &text, &(0..30).collect::<Vec<_>>(), &request).unwrap();
}

/// Punctuation and the beginning of a special token's name may be one token.
#[test]
fn a_name_may_be_cut_where_that_saves_tokens() {
    let tokens = ["!<", "?!<"].map(str::to_owned);
    let encoding = encoding_of(FAMILIES[0], &tokens);
    let request = requests(&encoding, true);
    for text in ["?!<|a|>", "?!<|a|>?!<|a|>", &"?!<|a|>".repeat(50)] {
        is_the_longest(&encoding, text, &(0..20).collect::<Vec<_>>(), &request).unwrap();
    }
}

/// Normalized, U+FB38 is a letter and a mark, which belongs to the punctuation behind it.
#[test]
fn a_cut_is_safe_beside_characters_that_stay() {
    let tokens = ["\u{5bc}-", "\u{5d8}\u{5bc}", "--"].map(str::to_owned);
    for pattern in FAMILIES {
        let encoding = encoding_of(pattern, &tokens).with_normalization(Normalization::Nfc);
        let text = format!("a{}\u{fb38}--- B{}", "的".repeat(20), "B".repeat(20));
        is_the_longest(&encoding, &text, &(0..90).collect::<Vec<_>>(), &Request::ORDINARY).unwrap();
    }
}

/// Cut before its mark, a letter ends a contraction that the letter with the mark does not.
#[test]
fn a_cut_may_change_what_is_normalized() {
    let tokens = ["do", "don", "'t", "don't"].map(str::to_owned);
    let encoding = encoding_of(O200K, &tokens).with_normalization(Normalization::Nfc);
    for text in ["don't\u{323}", "don't\u{323}don't\u{323}", &"x don't\u{323}. ".repeat(20)] {
        is_the_longest(&encoding, text, &(0..30).collect::<Vec<_>>(), &Request::ORDINARY).unwrap();
    }
}

/// What is read of a long text may end inside of a contraction, or before the small letter of a word.
#[test]
fn more_text_may_join_pieces() {
    let joined = ["do", "don", "'t", "don't", " don", " don't", "AB", "ABc", "的ABc", " 的ABc"];
    for width in 50..90 {
        let word = "y".repeat(width);
        let tokens: Vec<String> = (2..=width).map(|length| word[..length].to_owned()).collect();
        let encoding = encoding_of(O200K, &[&tokens[..], &joined.map(str::to_owned)].concat());
        for end in ["don't", "的ABc", "\u{30a}ABc"] {
            let text = format!("{word} {end}{}", ". x".repeat(30));
            is_the_longest(&encoding, &text, &(0..12).collect::<Vec<_>>(), &Request::ORDINARY)
                .unwrap();
        }
    }
}

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

/// A cut inside of such a token may leave a character that is one token.
#[test]
fn tokens_may_begin_and_end_inside_of_characters() {
    let limits: Vec<usize> = (0..20).collect();
    let longest = |tokens: [&[&[u8]]; 4], text: &str| {
        let powers = [2, 4, 8].map(|count| vec![b'a'; count]);
        let others = [2, 3].map(|count| vec![b'b'; count]);
        // The last one is out of reach, but might cover what no other token does.
        let [first, second, third, last] = tokens.map(|token| token.concat());
        let tokens = powers.into_iter().chain([first, second, third]).chain(others).chain([last]);
        let encoding = encoding_of_bytes(FAMILIES[0], tokens.collect());
        is_the_longest(&encoding, text, &limits, &Request::ORDINARY).unwrap();
    };
    // Two bytes of the character are merged if another token has the third.
    let eight = &[b'a'; 8];
    let text = format!("{}的{}", "a".repeat(8), "b".repeat(30));
    let tokens: [&[&[u8]]; 4] =
        [&[eight, b"\xe7"], &[b"\x9a\x84"], &[b"\xe7\x9a\x84"], &[b"\xe7\x9a\x84bbb"]];
    longest(tokens, &text);
    let text = format!("{}的{}", "b".repeat(30), "a".repeat(8));
    let tokens: [&[&[u8]]; 4] =
        [&[b"\x84", eight], &[b"\xe7\x9a"], &[b"\xe7\x9a\x84"], &[b"bbb\xe7\x9a\x84"]];
    longest(tokens, &text);
    let tokens: [&[&[u8]]; 4] =
        [&[b"\x84", eight], &[b"\xe7\x9a"], &[b"\xe7\x9a\x84"], &[b"\xe7\x9a\x84", &[b'a'; 12]]];
    longest(tokens, &format!("x.cde的{}", "a".repeat(40)));
}

/// Where a word, or signs before a word, are cut into other pieces if the text is cut, these may have
/// fewer tokens.
#[test]
fn a_cut_may_make_other_pieces() {
    let limits: Vec<usize> = (0..20).collect();
    let longest = |tokens: &[String], text: &str| {
        let encoding = encoding_of(O200K, tokens);
        is_the_longest(&encoding, text, &limits, &Request::ORDINARY).unwrap();
    };
    // Without a small letter behind them, the capitals are a piece of their own.
    let mut tokens = ["ª", "ªA", "ªª", "ªªª"].map(str::to_owned).to_vec();
    tokens.extend((1..=4).map(|power| "B".repeat(1 << power)));
    tokens.push(format!("A{}", "B".repeat(16)));
    longest(&tokens, &format!("ªªªA{}c", "B".repeat(40)));
    // With one sign before them, the marks are part of the word.
    let mut tokens: Vec<String> = (1..=5).map(|power| "!".repeat(1 << power)).collect();
    tokens.extend(["\u{301}", "ab", "abc"].map(str::to_owned));
    tokens.extend((1..=8).map(|count| "\u{301}".repeat(count) + "abc"));
    tokens.push(format!("!{}abc", "\u{301}".repeat(8)));
    longest(&tokens, &format!("{}{}abc", "!".repeat(33), "\u{301}".repeat(8)));
    // And without any sign, if that is where a chunk begins.
    let encoding = encoding_of(O200K, &tokens);
    let text = format!("{}{}abc{}", "!".repeat(33), "\u{301}".repeat(60), " x".repeat(30));
    for limit in 5..30 {
        chunks_are_the_longest(&encoding, &text, (limit, 0), &Request::ORDINARY).unwrap();
    }
}

/// A cut may part a letter from its mark, or one mark from another that is put before it.
#[test]
fn a_cut_may_change_the_characters_beside_it() {
    let limits: Vec<usize> = (0..20).collect();
    let longest = |pattern: &str, tokens: &[&str], text: &str| {
        let tokens: Vec<String> = tokens.iter().map(|&token| token.to_owned()).collect();
        let encoding = encoding_of(pattern, &tokens).with_normalization(Normalization::Nfc);
        is_the_longest(&encoding, text, &limits, &Request::ORDINARY).unwrap();
    };
    // (Twice the token out of reach would cover what takes three.)
    let tokens = ["ze", "é", "aa", "aaa", "qq", "qqqq", "qqqqqqqq", "éqqqqqqqq"];
    longest(FAMILIES[0], &tokens, &format!("aaaaaaze\u{301}{}", "q".repeat(40)));
    longest(FAMILIES[0], &["zy", "zyx", "zyxe"], &format!("zyxe\u{301}{}", "q".repeat(40)));
    let text = format!("{}\u{301}\u{323}{}", "ª".repeat(4), "ª".repeat(20));
    longest(O200K, &["ª", "\u{301}", "\u{323}", "\u{323}ª", "ªªªªªªªª"], &text);
}

/// Signs may be one token with a special token's name, which they are not where it is allowed.
#[test]
fn a_special_token_may_be_all_signs() {
    let (name, signs) = ("<||>".to_owned(), "-/".repeat(17));
    let mut tokens = ["<|", "<||", "<||>"].map(str::to_owned).to_vec();
    tokens.extend((0..signs.len()).rev().map(|start| signs[start..].to_owned() + &name));
    let bytes = (0..=255).map(|byte: u8| vec![byte]);
    let tokens = bytes.chain(tokens.into_iter().map(String::into_bytes));
    let vocabulary = Vocabulary::build(tokens.zip(0..).collect()).unwrap();
    let special = SpecialTokens::new([(name.clone(), 900)]).unwrap();
    let splitter = Splitter::new(FAMILIES[0]).unwrap();
    let encoding = Encoding::new(vocabulary, splitter, special).unwrap();
    let request = Request::allowing(encoding.special_tokens().select([name.as_str()]));
    let text = signs + &name;
    is_the_longest(&encoding, &text, &(0..36).collect::<Vec<_>>(), &request).unwrap();
}

/// Where a piece starts may depend on what stands before.
#[test]
fn patterns_may_look_behind() {
    let encoding = encoding(r"(?<=c)a+|.", Normalization::None);
    let text = "BBBBBcaaaaBBBBBBBBBB";
    is_the_longest(&encoding, text, &(0..20).collect::<Vec<_>>(), &Request::ORDINARY).unwrap();
}

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

#[test]
fn disallowed_names_are_refused_wherever_they_stand() {
    let encoding = encoding(FAMILIES[0], Normalization::None);
    let text = format!("{}<|a|>", "a b c ".repeat(1000));
    let mut request = Request::ORDINARY;
    assert_eq!(encoding.truncate(&text, 1, &request), Ok(1));
    request.disallowed = bpe_core::request::Disallowed::AllOthers;
    let refused = Error::DisallowedSpecial { name: "<|a|>".to_owned() };
    assert_eq!(encoding.truncate(&text, 1, &request), Err(refused.clone()));
    assert_eq!(encoding.truncate_left(&text, 1, &request), Err(refused.clone()));
    assert_eq!(encoding.chunk(&text, 9, 0, &request), Err(refused));
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
