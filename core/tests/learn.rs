//! Tests learning against a plain learner that counts all pairs anew after every merge.

mod support;

use std::collections::HashMap;
use std::ops::ControlFlow;

use bpe_core::train::extend::{
    Cancelled, Learned, Novelty, Options, Ranks, Word, existing_merges, learn,
};
use proptest::prelude::*;

type Pieces = Vec<Vec<u8>>;

fn base_of(longer: &[&[u8]]) -> Ranks {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let tokens = bytes.chain(longer.iter().map(|token| token.to_vec()));
    tokens.zip(0..).collect()
}

fn run(base: &Ranks, words: &[(&str, i64)], options: &Options) -> Learned {
    let words: Vec<Word<'_>> =
        words.iter().map(|&(word, frequency)| Word { bytes: word.as_bytes(), frequency }).collect();
    learn(base, &words, options, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn tokens(learned: &Learned) -> Pieces {
    learned.merges.iter().map(|merge| [&merge.left[..], &merge.right].concat()).collect()
}

fn pieces(base: &Ranks, word: &str) -> Pieces {
    let mut start = 0;
    let ends = existing_merges(base, word.as_bytes()).into_iter();
    ends.map(|end| word.as_bytes()[std::mem::replace(&mut start, end)..end].to_vec()).collect()
}

/// Learns merges by counting all pairs anew each time.
fn naive(base: &Ranks, words: &[(&str, i64)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut open: Vec<(Pieces, i64)> =
        words.iter().map(|&(word, frequency)| (pieces(base, word), frequency)).collect();
    let mut merges = Vec::new();
    loop {
        let mut pairs: HashMap<(Vec<u8>, Vec<u8>), (i64, usize)> = HashMap::new();
        let mut met = 0;
        for (word, frequency) in &open {
            for two in word.windows(2) {
                met += 1;
                let pair = (two[0].clone(), two[1].clone());
                pairs.entry(pair).or_insert((0, met)).0 += frequency;
            }
        }
        let best = pairs.into_iter().min_by_key(|((left, right), (frequency, met))| {
            let bytes = [&left[..], right].concat();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            (-frequency, text.chars().count(), bytes.len(), text, bytes, *met)
        });
        let Some(((left, right), _)) = best else { return merges };
        for (word, _) in &mut open {
            let mut i = 0;
            while i + 1 < word.len() {
                if word[i] == left && word[i + 1] == right {
                    let second = word.remove(i + 1);
                    word[i].extend(second);
                }
                i += 1;
            }
        }
        merges.push((left, right));
    }
}

proptest! {
    #![proptest_config(support::config(256))]

    #[test]
    fn counts_kept_up_to_date_equal_counting_anew(
        words in prop::collection::vec(("[ab猫只]{1,9}", -4i64..6), 1..12),
        base in prop::collection::vec("[ab猫只]{1,3}", 0..6),
    ) {
        let mut longer: Vec<&[u8]> =
            base.iter().map(|token| token.as_bytes()).filter(|token| token.len() > 1).collect();
        longer.sort_unstable();
        longer.dedup();
        let ranks = base_of(&longer);
        let mut words: Vec<(&str, i64)> =
            words.iter().map(|(word, frequency)| (word.as_str(), *frequency)).collect();
        words.sort_unstable();
        words.dedup_by_key(|word| word.0);
        let learned = run(&ranks, &words, &Options::default());
        let merges: Vec<_> =
            learned.merges.iter().map(|m| (m.left.clone(), m.right.clone())).collect();
        prop_assert_eq!(merges, naive(&ranks, &words));
        for path in &learned.paths {
            prop_assert_eq!(path.last.len(), 1);
        }
    }

    #[test]
    fn whole_characters_learns_text_only(
        words in prop::collection::vec(("[a猫é🦄]{1,6}", 1i64..6), 1..8),
        base in prop::collection::vec("[猫🦄]", 0..2),
    ) {
        // A part of a character, or a part and its neighbor.
        let parts = |token: &String| {
            [token.as_bytes()[..2].to_vec(), [b"a", &token.as_bytes()[..1]].concat()]
        };
        let longer: Vec<Vec<u8>> = base.iter().flat_map(parts).collect();
        let mut longer: Vec<&[u8]> = longer.iter().map(|token| &token[..]).collect();
        longer.sort_unstable();
        longer.dedup();
        let ranks = base_of(&longer);
        let words: Vec<(&str, i64)> = words.iter().map(|(word, n)| (word.as_str(), *n)).collect();
        let options = Options { whole_characters: true, ..Options::default() };
        let learned = run(&ranks, &words, &options);
        for token in tokens(&learned) {
            prop_assert!(std::str::from_utf8(&token).is_ok());
        }
        for path in &learned.paths {
            prop_assert!(path.blocked || path.last.len() == 1);
        }
    }
}

#[test]
fn overlapping_places_count_and_merge_from_the_left() {
    let learned = run(&base_of(&[]), &[("aaaaa", 1), ("bc", 3)], &Options::default());
    assert_eq!(learned.merges[0].frequency, 4);
    assert_eq!(tokens(&learned)[..2], [b"aa".to_vec(), b"bc".to_vec()]);
}

#[test]
fn paths_tell_what_happened_to_each_word() {
    let ranks = base_of(&[b"lo"]);
    let learned = run(&ranks, &[("lower", 2), ("slow", 3), ("é", 1)], &Options::default());
    assert_eq!(tokens(&learned)[..2], [&b"low"[..], b"slow"]);
    let paths = &learned.paths;
    assert_eq!([&paths[0].first, &paths[1].first], [&vec![2, 3, 4, 5], &vec![1, 3, 4]]);
    assert_eq!([&paths[0].last[..], &paths[1].last, &paths[2].last], [[5], [4], [2]]);
    assert_eq!(paths[1].merges, [0, 1]);
    assert!(paths.iter().all(|path| !path.blocked));
    assert_eq!(learned.merges[0].words, 2);
    assert_eq!((learned.merges[1].words, learned.merges[1].frequency), (1, 3));
}

#[test]
fn existing_merges_take_the_lowest_rank_first() {
    let ranks = base_of(&[b"bc", b"ab", b"aa", b"aabc"]);
    let cases: [(&str, &[usize]); 7] = [
        ("", &[]),
        ("a", &[1]),
        ("abc", &[1, 3]),
        ("ababc", &[2, 3, 5]),
        ("aaaaa", &[2, 4, 5]),
        ("aabc", &[4]),
        ("aabcaabcx", &[4, 8, 9]),
    ];
    for (word, ends) in cases {
        assert_eq!(existing_merges(&ranks, word.as_bytes()), ends, "{word}");
    }
}

#[test]
fn limits_stop_learning() {
    let ranks = base_of(&[]);
    let words = [("low", 5), ("lower", 2), ("xy", 1)];
    let options = Options { max_tokens: Some(2), ..Options::default() };
    assert_eq!(tokens(&run(&ranks, &words, &options)), [&b"lo"[..], b"low"]);
    let options = Options { min_frequency: Some(2), ..Options::default() };
    let learned = run(&ranks, &words, &options);
    assert_eq!(tokens(&learned), [&b"lo"[..], b"low", b"er", b"lower"]);
    assert_eq!(learned.paths[2].last, [1, 2]);
}

#[test]
fn characters_come_first() {
    // The base has the first two bytes of 猫; "bb" is more frequent than what completes it.
    let ranks = base_of(&[&"猫".as_bytes()[..2]]);
    let words = [("猫b", 1), ("bb", 9)];
    let options = Options { whole_characters: true, ..Options::default() };
    let learned = run(&ranks, &words, &options);
    assert_eq!(tokens(&learned), ["猫".as_bytes(), b"bb", "猫b".as_bytes()]);
}

#[test]
fn a_character_in_three_pieces_takes_no_part() {
    let options = Options { whole_characters: true, ..Options::default() };
    let learned = run(&base_of(&[]), &[("猫", 1), ("ab", 1)], &options);
    assert!(learned.paths[0].blocked && !learned.paths[1].blocked);
    assert_eq!(tokens(&learned), [b"ab"]);
}

#[test]
fn a_blocked_word_gives_no_merges() {
    // Its "ab" could be merged, but would serve no word.
    let options = Options { whole_characters: true, ..Options::default() };
    let learned = run(&base_of(&[]), &[("猫ab", 9), ("xy", 2), ("ab", 1)], &options);
    assert!(learned.paths[0].blocked && learned.paths[0].merges.is_empty());
    assert_eq!(tokens(&learned), [b"xy", b"ab"]);
    assert_eq!(learned.merges[1].frequency, 1);
    // It is counted as finished from the start.
    let mut finished = None;
    let many: Vec<String> = (0..1100).map(|i| format!("猫{i}")).collect();
    let words: Vec<Word<'_>> =
        many.iter().map(|word| Word { bytes: word.as_bytes(), frequency: 1 }).collect();
    let learned = learn(&base_of(&[]), &words, &options, &mut |now| {
        finished = Some(now.finished);
        ControlFlow::Continue(())
    });
    assert!(learned.unwrap().merges.is_empty() && finished.is_some_and(|count| count > 1000));
}

#[test]
fn a_token_that_the_vocabulary_cannot_reach_is_not_new() {
    // Nothing in the base makes "xab".
    let ranks = base_of(&[b"xab"]);
    let learned = run(&ranks, &[("xaby", 1), ("xa", 3)], &Options::default());
    let novelties: Vec<_> = learned.merges.iter().map(|merge| merge.novelty).collect();
    assert_eq!(tokens(&learned), [&b"xa"[..], b"by", b"xaby"]);
    assert_eq!(novelties, [Novelty::New; 3]);
    let learned = run(&ranks, &[("xaby", 1), ("xab", 3)], &Options::default());
    let novelties: Vec<_> = learned.merges.iter().map(|merge| merge.novelty).collect();
    assert_eq!(tokens(&learned), [&b"ab"[..], b"xab", b"xaby"]);
    assert_eq!(novelties, [Novelty::New, Novelty::InBase, Novelty::New]);
}

#[test]
fn progress_can_end_the_work() {
    let words: Vec<String> = (0..5000).map(|i| format!("word{i}")).collect();
    let words: Vec<Word<'_>> =
        words.iter().map(|word| Word { bytes: word.as_bytes(), frequency: 1 }).collect();
    let mut calls = 0;
    let result = learn(&base_of(&[]), &words, &Options::default(), &mut |_| {
        calls += 1;
        if calls == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((result, calls), (Err(Cancelled), 3));
}

#[test]
fn progress_counts_words_and_merges() {
    // 1,000 words that are one piece after the first merge, and 24 that are one from the start.
    // Progress is told before every 1,024th word is taken in, and after as many were merged.
    let words = ["ab"; 1000].into_iter().chain(["x"; 24]);
    let words: Vec<Word<'_>> =
        words.map(|word| Word { bytes: word.as_bytes(), frequency: 1 }).collect();
    let mut seen = Vec::new();
    learn(&base_of(&[]), &words, &Options::default(), &mut |now| {
        seen.push((now.finished, now.words, now.merges));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seen, [(23, 1024, 0)]);
    let mut seen = Vec::new();
    let twice: Vec<Word<'_>> = words.iter().chain(&words).copied().collect();
    learn(&base_of(&[]), &twice, &Options::default(), &mut |now| {
        seen.push((now.finished, now.words, now.merges));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seen, [(23, 2048, 0), (47, 2048, 0), (1072, 2048, 1)]);
}
