//! Encodes one text on several threads.

use std::ops::Range;

use crate::Pipeline;
use crate::error::{Error, Result};
use crate::memory::append;
use crate::polling;
use crate::request::Request;
use crate::special_tokens::Selection;
use crate::threads::{cores, in_order};

/// Bytes of text that justify another thread; starting a thread takes about 20 microseconds.
const WORTH_A_THREAD: usize = 64 * 1024;

/// The average number of shares per thread, enough to keep all threads busy until the end.
const SHARES_PER_THREAD: usize = 6;

impl Pipeline {
    /// Appends the ids of a text like [`Pipeline::encode_text`], on up to `threads` threads.
    ///
    /// The text is cut where a cut changes no id: at special tokens, and at safe cuts. Short texts,
    /// and texts without such a position, are encoded on this thread alone.
    pub fn encode_on_threads(
        &self,
        text: &str,
        request: &Request,
        threads: usize,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let threads = threads.min(cores()).min(text.len() / WORTH_A_THREAD);
        if threads <= 1 {
            return self.encode_text(text, request, ids);
        }
        self.check(text, request)?;
        let text = &*self.normalization().apply(text)?;
        let share = text.len() / (threads * SHARES_PER_THREAD);
        encode_in_shares(self, text, &request.allowed, threads, share, ids)
    }
}

fn encode_in_shares(
    pipeline: &Pipeline,
    text: &str,
    allowed: &Selection,
    threads: usize,
    share: usize,
    ids: &mut Vec<u32>,
) -> Result<()> {
    let (runs, shares) = shares(pipeline, text, allowed, share)?;
    let work = |share: usize, part: &mut ShareIds| {
        part.ids.clear();
        part.error = runs[shares[share].clone()].iter().find_map(|run| {
            let Range { start, end } = run.text;
            let mut encode = || {
                if start < end {
                    let is_first = start == 0;
                    pipeline.encode_run(&text[start..end], is_first, &mut part.ids)?;
                }
                run.special.map_or(Ok(()), |id| {
                    part.ids.push(id);
                    Ok(())
                })
            };
            encode().err()
        });
    };
    in_order(
        shares.len(),
        threads,
        work,
        |job| {
            job();
            polling::poll(1)
        },
        |part: &ShareIds| {
            append(ids, &part.ids)?;
            part.error.clone().map_or(Ok(()), Err)
        },
    )
}

/// Cuts a normalized text into runs that can be encoded separately. Returns the runs, and the range
/// of runs of each share, which has at least `share` bytes.
fn shares(
    pipeline: &Pipeline,
    text: &str,
    allowed: &Selection,
    share: usize,
) -> Result<(Vec<Run>, Vec<Range<usize>>)> {
    let (_, found) = pipeline.find_in_text(text, allowed, 0, &[])?;
    let (mut runs, mut shares) = (Vec::new(), Vec::new());
    // The first run and the first byte of the current share.
    let (mut first, mut begin) = (0, 0);
    let mut position = 0;
    for index in 0..=found.len() {
        let special = found.get(index);
        let end = special.map_or(text.len(), |special| special.start);
        while begin + share < end {
            let near = (begin + share).max(position) - position;
            let Some(cut) = pipeline.safe_cut(&text[position..end], near) else { break };
            runs.push(Run { text: position..position + cut, special: None });
            shares.push(first..runs.len());
            (first, begin, position) = (runs.len(), position + cut, position + cut);
        }
        let id = special.and_then(|special| special.ids.as_slice().first().copied());
        runs.push(Run { text: position..end, special: id });
        let Some(special) = special else { break };
        position = special.end;
        if position >= begin + share {
            shares.push(first..runs.len());
            (first, begin) = (runs.len(), position);
        }
    }
    shares.push(first..runs.len());
    Ok((runs, shares))
}

/// A run of text or a part of a run, and the special token after it.
#[derive(Debug)]
struct Run {
    text: Range<usize>,
    special: Option<u32>,
}

/// The ids of a share of a text.
#[derive(Debug, Default)]
struct ShareIds {
    ids: Vec<u32>,
    error: Option<Error>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::normalize::Normalization;
    use crate::test_patterns::PATTERNS;
    use crate::{SpecialTokens, Splitter, Vocabulary};

    /// Returns a pipeline with single bytes, and with a token across each position where a cut
    /// could be wrong.
    fn pipeline(pattern: &str) -> Pipeline {
        let words =
            [" a", "a ", "  ", "'s", "a'", ", ", "的。", "。的", "的的", "|>", "<|", "\n\n", "11"];
        let bytes = (0..=255).map(|byte: u8| (vec![byte], u32::from(byte)));
        let words = words.iter().zip(256..).map(|(word, id)| (word.as_bytes().to_vec(), id));
        let special = [("<|a|>", 900), ("<|a|>b", 901), ("a ", 902), ("|", 903)];
        let special = special.map(|(name, id)| (name.to_owned(), id));
        let vocabulary = Vocabulary::build(bytes.chain(words).collect()).unwrap();
        let special = SpecialTokens::new(special).unwrap();
        let splitter = Splitter::new(pattern).unwrap();
        Pipeline::of_ranks(vocabulary, splitter, special, Normalization::None).unwrap()
    }

    fn check(pipeline: &Pipeline, text: &str, allowed: &Selection, threads: usize, share: usize) {
        let (mut expected, mut ids) = (Vec::new(), vec![7]);
        pipeline.encode_text(text, &Request::allowing(allowed.clone()), &mut expected).unwrap();
        encode_in_shares(pipeline, text, allowed, threads, share, &mut ids).unwrap();
        assert_eq!(ids[1..], expected, "{text:?} {allowed:?} in shares of {share}");
    }

    proptest! {
        #![proptest_config(crate::test_support::config(256))]

        #[test]
        fn ids_are_those_of_one_thread(
            parts in prop::collection::vec(prop::sample::select(vec![
                "a", "B", " ", "  ", "\n", "\r\n", "'s", "'", "的", "的的", "。", "，", "1", "11",
                "<|a|>", "<|a|>b", "<|", "|>", "|", "/", "é", "e\u{301}", "\u{3000}", "🦀", "ſ",
            ]), 0..80),
            allowed in prop::sample::subsequence(vec!["<|a|>", "<|a|>b", "a ", "|"], 0..=4),
            share in 1usize..60,
        ) {
            let text = parts.concat();
            for pattern in PATTERNS {
                let pipeline = pipeline(pattern);
                let allowed = pipeline.special_tokens().unwrap().select(allowed.iter().copied());
                for allowed in [&allowed, &Selection::None, &Selection::All] {
                    check(&pipeline, &text, allowed, 1, share);
                }
                check(&pipeline, &text, &allowed, 3, share);
            }
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let pipeline = pipeline(PATTERNS[1]);
        let text = "的的的。a word, <|a|>11 的".repeat(20_000);
        let (_, shares) = shares(&pipeline, &text, &Selection::None, 50_000).unwrap();
        assert!(shares.len() >= text.len() / 51_000, "{}", shares.len());
        for allowed in [Selection::None, Selection::All] {
            let (mut expected, mut ids) = (Vec::new(), Vec::new());
            let request = Request::allowing(allowed);
            pipeline.encode_text(&text, &request, &mut expected).unwrap();
            pipeline.encode_on_threads(&text, &request, 4, &mut ids).unwrap();
            assert!(ids == expected);
        }
    }

    #[test]
    fn texts_without_a_cut_are_one_share() {
        let text = "的".repeat(100_000);
        for pattern in [PATTERNS[1], "(?s:.)"] {
            let pipeline = pipeline(pattern);
            assert_eq!(shares(&pipeline, &text, &Selection::All, 1000).unwrap().1.len(), 1);
            check(&pipeline, &text, &Selection::All, 3, 1000);
        }
    }
}
