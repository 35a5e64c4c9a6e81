//! Texts for which a shorter part may have more tokens, each for a reason of its own.

use std::ops::Range;

use bpe_core::{Encoding, Error, Normalization, Request, SpecialTokens, Splitter, Vocabulary};

use super::texts::*;

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
    // Two tokens, and five behind them: their product is a limit of which their sum leaves room.
    let tokens: [&[&[u8]]; 4] =
        [&[b"\x81\xf0"], &[b"\xf0\x9d"], &[b"\x90\x81"], &["\u{1d401}".as_bytes()]];
    longest(tokens, &format!("x.z\u{10400}{}", "\u{1d401}".repeat(12)));
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
