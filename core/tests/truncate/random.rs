//! Random texts and vocabularies.

use bpe_core::Request;
use proptest::prelude::*;

use super::support;
use super::texts::*;

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
