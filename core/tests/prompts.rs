//! Tests segments and conversations against plain encoding, on the published patterns and others.

#[path = "support/patterns.rs"]
mod patterns;

use bpe_core::conversation::{Conversation, stable_prefix};
use bpe_core::special_tokens::Selection;
use bpe_core::{Normalization, Pipeline, Request, SpecialTokens, Splitter, Vocabulary};
use patterns::PATTERNS;
use proptest::prelude::*;

/// A pattern with look-ahead.
const ODD_PATTERN: &str = r"\w+(?=\s)|\w|\s+$|\W";

/// An encoding of bytes, tokens across every position where a cut could be wrong, and names within
/// names.
fn encoding(pattern: &str, normalization: Normalization) -> Pipeline {
    let words = [" a", "a ", "  ", "'s", "a'", ", ", "的。", "|>", "<|", "\n\n", "11", "é"];
    let bytes = (0..=255).map(|byte: u8| (vec![byte], u32::from(byte)));
    let words = words.iter().zip(256..).map(|(word, id)| (word.as_bytes().to_vec(), id));
    let special = [("<|a|>", 900), ("<|a|>b", 901), ("<|K|>", 902)];
    let special = special.map(|(name, id)| (name.to_owned(), id));
    let vocabulary = Vocabulary::build(bytes.chain(words).collect()).unwrap();
    let special = SpecialTokens::new(special).unwrap();
    let splitter = Splitter::new(pattern).unwrap();
    Pipeline::of_ranks(vocabulary, splitter, special, normalization).unwrap()
}

fn encode(encoding: &Pipeline, text: &str, allowed: &Selection) -> Vec<u32> {
    let mut ids = Vec::new();
    encoding.encode_text(text, &Request::allowing(allowed.clone()), &mut ids).unwrap();
    ids
}

const SENTENCE: &str = "lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod \
    tempor incididunt ut labore et dolore magna aliqua. ";

fn texts() -> impl Strategy<Value = String> {
    let short = [
        "a", "B", " ", "  ", "\n", "\r\n", "'s", "'", "的", "。", "1", "11", "<|a|>", "b", "<|a",
        "|>", "<|", "é", "e", "\u{301}", "\u{338}", "\u{212a}", "🦀",
    ];
    let pieces = [&short[..], &["a long line of words. ", SENTENCE]].concat();
    prop::collection::vec(prop::sample::select(pieces), 0..60).prop_map(|pieces| pieces.concat())
}

const NORMALIZATIONS: [Normalization; 2] = [Normalization::None, Normalization::Nfc];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn updates_equal_encode(texts in prop::collection::vec((texts(), 0usize..4000), 1..8)) {
        for pattern in PATTERNS.into_iter().chain([ODD_PATTERN]) {
            for normalization in NORMALIZATIONS {
                let encoding = encoding(pattern, normalization);
                for allowed in [Selection::None, Selection::All] {
                    let mut conversation = Conversation::default();
                    let mut current = String::new();
                    let request = Request::allowing(allowed.clone());
                    for (more, cut) in &texts {
                        let before = conversation.ids().to_vec();
                        let kept = if cut % 3 == 0 {
                            current.push_str(more);
                            conversation.append_text(&encoding, None, more, &request).unwrap()
                        } else {
                            let mut cut = *cut % (current.len() + 1);
                            while !current.is_char_boundary(cut) {
                                cut -= 1;
                            }
                            current.truncate(cut);
                            current.push_str(&more.repeat(1 + cut % 3));
                            conversation.update_text(&encoding, &current, &request).unwrap()
                        };
                        let expected = encode(&encoding, &current, &allowed);
                        prop_assert_eq!(conversation.ids(), &expected);
                        prop_assert_eq!(&before[..kept], &expected[..kept]);
                    }
                }
            }
        }
    }

    #[test]
    fn stable_ids_stay(text in texts(), more in prop::collection::vec(texts(), 6)) {
        for pattern in PATTERNS.into_iter().chain([ODD_PATTERN]) {
            for normalization in NORMALIZATIONS {
                let encoding = encoding(pattern, normalization);
                for allowed in [Selection::None, Selection::All] {
                    let (ids, bytes) =
                        stable_prefix(&encoding, &text, &Request::allowing(allowed.clone())).unwrap();
                    prop_assert_eq!(&ids, &encode(&encoding, &text[..bytes], &allowed));
                    for more in &more {
                        let whole = format!("{text}{more}");
                        let whole = encode(&encoding, &whole, &allowed);
                        prop_assert_eq!(&whole[..ids.len()], &ids);
                    }
                }
            }
        }
    }
}
