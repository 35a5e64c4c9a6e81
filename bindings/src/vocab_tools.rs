//! Native functions for `vocab_tools`: learning, auditing, and merging bytes.

use std::collections::HashMap;

use bpe_core::audit::{self, Merging, RoundTrip, Utf8, Whole};
use bpe_core::memory::reserve;
use bpe_core::train::extend::{self, Novelty, Options, Progress, Ranks, Word};
use bpe_core::{
    Direct, Error, Normalization, Request, SpecialTokens, Splitter, Vocabulary, rank_file,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::errors::OrRaise;
use crate::objects::{ROW, ask_for, collected, listed, new_bytes, push};
use crate::pipeline::PyPipeline;
use crate::progress::ProgressReporter;
use crate::{gil, ranks};

fn vocabulary(ranks: &Bound<'_, PyDict>) -> PyResult<Vocabulary> {
    ranks::build(ranks.py(), ranks::from_dict(ranks)?)
}

type MergeRow<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, &'static str, i128, usize);
type PathRow = (Vec<usize>, Vec<usize>, Vec<u32>, bool);

/// Learns the merges that make words one token each; see `vocab_tools.learn_merges`.
///
/// `ranks` is the base, bytes to id; `words` has (bytes, frequency). Returns the merges, (left,
/// right, "new" | "in base" | "repeated", frequency, words), and one path per word: (ends of the
/// first pieces, ends of the last pieces, numbers of its merges, whether it was omitted because of
/// a character that is cut twice). `progress(words done, words)` is called at intervals.
#[pyfunction]
#[pyo3(signature = (ranks, words, *, max_tokens=None, min_frequency=None, whole_characters=false, count_repeats=false, progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn learn_merges<'py>(
    py: Python<'py>,
    ranks: &Bound<'py, PyDict>,
    #[pyo3(from_py_with = listed)] words: Vec<(Vec<u8>, i64)>,
    max_tokens: Option<usize>,
    min_frequency: Option<i64>,
    whole_characters: bool,
    count_repeats: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Vec<MergeRow<'py>>, Vec<PathRow>)> {
    let base: Ranks =
        ranks::from_dict(ranks)?.iter().map(|(token, id)| (token.to_vec(), id)).collect();
    let options = Options { max_tokens, min_frequency, whole_characters, count_repeats };
    let mut reporter = ProgressReporter::new(progress);
    let learned = py.detach(|| {
        let words: Vec<Word<'_>> =
            words.iter().map(|(bytes, frequency)| Word { bytes, frequency: *frequency }).collect();
        let mut report = |now: Progress| reporter.report(now.finished, now.words);
        extend::learn(&base, &words, &options, &mut report)
    });
    let Ok(learned) = learned else { return Err(reporter.failure()) };
    ask_for(learned.merges.len() + learned.paths.len(), 2 * ROW)?;
    let merges = learned.merges.into_iter().map(|merge| {
        let novelty = match merge.novelty {
            Novelty::New => "new",
            Novelty::InBase => "in base",
        };
        let (left, right) = (new_bytes(py, &merge.left)?, new_bytes(py, &merge.right)?);
        Ok((left, right, novelty, merge.frequency, merge.words))
    });
    let paths = learned.paths.into_iter();
    let paths = paths.map(|path| (path.first, path.last, path.merges, path.blocked));
    Ok((collected(merges)?, paths.collect()))
}

/// Returns the ids left after merging each of `pieces`, without splitting the piece or looking it
/// up as a whole; `None` if a remaining byte is not a token.
#[pyfunction]
pub fn merge_bytes(
    py: Python<'_>,
    ranks: &Bound<'_, PyDict>,
    #[pyo3(from_py_with = listed)] pieces: Vec<Vec<u8>>,
) -> PyResult<Vec<Option<Vec<u32>>>> {
    let vocabulary = vocabulary(ranks)?;
    ask_for(pieces.iter().map(Vec::len).sum::<usize>() + pieces.len(), ROW)?;
    Ok(py.detach(|| pieces.iter().map(|piece| audit::merge_alone(&vocabulary, piece)).collect()))
}

/// Returns, for each token in the order of ids, the ids of the two tokens of its last merge; `None`
/// for single bytes, and for tokens that merging cannot produce.
#[pyfunction]
pub fn token_splits(
    py: Python<'_>,
    ranks: &Bound<'_, PyDict>,
) -> PyResult<Vec<Option<(u32, u32)>>> {
    let vocabulary = vocabulary(ranks)?;
    ask_for(vocabulary.len(), ROW)?;
    let id = |part: u32| ((part as usize) < vocabulary.len()).then(|| vocabulary.id(part));
    let split = |rank| {
        let (left, right) = vocabulary.split(rank)?;
        Some((id(left)?, id(right)?))
    };
    Ok(py.detach(|| (0..vocabulary.len() as u32).map(split).collect()))
}

/// Number of tokens in each text, and number of occurrences of each id.
type TokenCounts = (Vec<usize>, Vec<(u32, u64)>);

/// Returns the number of tokens of each of `texts`, and the count of each id as `(id, count)` by
/// ascending id. Text never becomes a special token.
#[pyfunction]
pub fn count_tokens(
    py: Python<'_>,
    source: &Bound<'_, PyPipeline>,
    #[pyo3(from_py_with = listed)] texts: Vec<String>,
) -> PyResult<TokenCounts> {
    let pipeline = &*PyPipeline::current(source)?;
    let counted: bpe_core::Result<_> = gil::detached(py, || {
        let mut lengths = Vec::new();
        reserve(&mut lengths, texts.len())?;
        let mut times: HashMap<u32, u64> = HashMap::new();
        let mut ids = Vec::new();
        for text in &texts {
            bpe_core::polling::poll(text.len())?;
            ids.clear();
            pipeline.encode_text(text, &Request::ORDINARY, &mut ids)?;
            lengths.push(ids.len());
            for &id in &ids {
                *times.entry(id).or_default() += 1;
            }
        }
        let mut times = times.into_iter().collect::<Vec<_>>();
        times.sort_unstable();
        Ok((lengths, times))
    })?;
    let (lengths, times) = counted.or_raise()?;
    ask_for(lengths.len() + times.len(), ROW)?;
    Ok((lengths, times))
}

type Line<'py> = (Bound<'py, PyBytes>, u32, usize);

/// Numbers of malformed lines, with the reasons.
type Problems = Vec<(usize, String)>;

/// Parses the lines of a rank file: `(token, id, line number)` of valid lines, and `(line number,
/// problem)` of the other lines. Does not check for repeated tokens and ids.
#[pyfunction]
pub fn parse_rank_lines<'py>(
    py: Python<'py>,
    contents: &[u8],
) -> PyResult<(Vec<Line<'py>>, Problems)> {
    let (mut tokens, mut bad) = (Vec::new(), Vec::new());
    ask_for(contents.iter().filter(|&&byte| byte == b'\n').count(), 2 * ROW)?;
    for (number, line) in rank_file::lines(contents) {
        match rank_file::parse(line) {
            Ok(parsed) => {
                for (token, id) in parsed.iter() {
                    push(&mut tokens, (new_bytes(py, token)?, id, number))?;
                }
            }
            Err(Error::RankFile { reason, .. }) => bad.push((number, reason)),
            Err(other) => bad.push((number, other.to_string())),
        }
    }
    Ok((tokens, bad))
}

/// Audits every token of an encoding; see `vocab_tools.check_vocabulary`.
///
/// Returns columns, with one entry per token in the order of ids: `ids`; `crosses`; and, as names
/// of variants, `utf8`, `merging`, `whole`, `round_trip`. With `nfc`, text is normalized first.
/// `merged` and `encoded` map an id to the ids that replace it, if they differ.
#[pyfunction]
#[pyo3(signature = (ranks, pattern, special_tokens, *, nfc=false, progress=None))]
pub fn audit_tokens<'py>(
    py: Python<'py>,
    ranks: &Bound<'py, PyDict>,
    pattern: &str,
    #[pyo3(from_py_with = listed)] special_tokens: Vec<(String, u32)>,
    nfc: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let vocabulary = vocabulary(ranks)?;
    let total = vocabulary.len();
    let normalization = if nfc { Normalization::Nfc } else { Normalization::None };
    let mut reporter = ProgressReporter::new(progress);
    let (encoding, audits) = py
        .detach(|| {
            let splitter = Splitter::new(pattern)?;
            let encoding = Direct::new(vocabulary, splitter, SpecialTokens::new(special_tokens)?)?
                .with_normalization(normalization);
            let audits = audit::audit(&encoding, &mut |done| reporter.report(done, total))?;
            Ok((encoding, audits))
        })
        .or_raise()?;
    let Some(audits) = audits else { return Err(reporter.failure()) };
    let vocabulary = encoding.vocabulary();
    let ids: Vec<u32> = (0..total as u32).map(|rank| vocabulary.id(rank)).collect();
    let columns = PyDict::new(py);
    let (merged, encoded) = (PyDict::new(py), PyDict::new(py));
    for (&id, audit) in ids.iter().zip(&audits) {
        if !audit.merged.is_empty() {
            merged.set_item(id, &audit.merged)?;
        }
        if !audit.encoded.is_empty() {
            encoded.set_item(id, &audit.encoded)?;
        }
    }
    columns.set_item("ids", ids)?;
    columns.set_item("merged", merged)?;
    columns.set_item("encoded", encoded)?;
    columns.set_item("crosses", PyList::new(py, audits.iter().map(|audit| audit.crosses))?)?;
    for (name, value) in [
        ("utf8", (|audit| utf8_name(audit.utf8)) as fn(&audit::TokenAudit) -> &'static str),
        ("merging", |audit| merging_name(audit.merging)),
        ("whole", |audit| whole_name(audit.whole)),
        ("round_trip", |audit| round_trip_name(audit.round_trip)),
    ] {
        let column = audits.iter().map(|audit| PyString::intern(py, value(audit)));
        columns.set_item(name, PyList::new(py, column)?)?;
    }
    Ok(columns)
}

fn utf8_name(utf8: Utf8) -> &'static str {
    match utf8 {
        Utf8::Valid => "valid",
        Utf8::Prefix => "prefix",
        Utf8::Suffix => "suffix",
        Utf8::Middle => "middle",
        Utf8::Nonsense => "nonsense",
    }
}

fn merging_name(merging: Merging) -> &'static str {
    match merging {
        Merging::Reached => "reached",
        Merging::NoParts => "no parts",
        Merging::PartsUnreached => "parts unreached",
        Merging::Blocked => "blocked",
        Merging::MissingByte => "missing byte",
    }
}

fn whole_name(whole: Whole) -> &'static str {
    match whole {
        Whole::NotText => "not text",
        Whole::Yes => "yes",
        Whole::OnlyInside => "only inside",
        Whole::Never => "never",
    }
}

fn round_trip_name(class: RoundTrip) -> &'static str {
    match class {
        RoundTrip::Ok => "OK",
        RoundTrip::OkSpecial => "OK_SPECIAL",
        RoundTrip::UnreachableSingleToken => "UNREACHABLE_SINGLE_TOKEN",
        RoundTrip::UnreachableMultiToken => "UNREACHABLE_MULTI_TOKEN",
        RoundTrip::UnreachableSpecial => "UNREACHABLE_SPECIAL",
        RoundTrip::Undecodeable => "UNDECODEABLE",
    }
}
