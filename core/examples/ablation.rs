//! Worker of `python -m benchmarks.ablation`, run once with all mechanisms and once without each.
//!
//! ```text
//! ablation MECHANISM RANKS PATTERN
//! ```
//!
//! Disables MECHANISM unless it is empty. Answers each line of standard input, `ROW FILE`, with one
//! line: the CPU time of the row on the text of the file, in microseconds. One process answers all
//! lines, so the vocabulary is built only once.

use std::collections::HashMap;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Duration;

use bpe_core::ablation::leave_out;
use bpe_core::char_boundary;
use bpe_core::threads::in_order;
use bpe_core::{Direct, Request, SpecialTokens, Splitter, Vocabulary, rank_file};

type Failure = Box<dyn std::error::Error>;

/// Size in bytes of a document and of a prompt, for rows that encode many documents.
const DOCUMENT: usize = 4096;
const PROMPT: usize = 11;
/// Number of times that the row `again` encodes a text for one measurement.
const PASSES: u32 = 3;

/// The even and the odd lines of a file.
struct Halves {
    even: String,
    odd: String,
}

impl Halves {
    fn read(path: &str) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)?;
        let lines = |parity| {
            let lines = text.split_inclusive('\n').enumerate();
            lines.filter(|(i, _)| i % 2 == parity).map(|(_, line)| line).collect()
        };
        Ok(Self { even: lines(0), odd: lines(1) })
    }
}

/// Cuts `text` into parts of about `size` bytes.
fn documents(text: &str, size: usize) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (document, after) = rest.split_at(char_boundary::ceil(rest, size));
        documents.push(document);
        rest = after;
    }
    documents
}

/// Returns the CPU time of this process.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes only to `time`.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "no clock of CPU time");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = cpu_time();
    work();
    cpu_time() - start
}

/// Encodes documents one by one, or on several threads.
fn encode(encoding: &Direct, documents: &[&str], threads: usize) {
    let work = |i: usize, ids: &mut Vec<u32>| {
        ids.clear();
        encoding.encode(documents[i], &Request::ORDINARY, ids).expect("ids of a document");
        black_box(ids);
    };
    let Ok(()) = in_order(
        documents.len(),
        threads,
        work,
        |job| {
            job();
            Ok(())
        },
        |_| Ok::<_, std::convert::Infallible>(()),
    );
}

fn time(encoding: &Direct, row: &str, Halves { even, odd }: &Halves) -> Result<Duration, Failure> {
    encoding.workspaces().clear();
    Ok(match row {
        // A new encoding, which has seen no text.
        "fresh" => timed(|| encode(encoding, &[odd], 1)),
        // An encoding that has seen other text of the same kind.
        "first" => {
            encode(encoding, &[even], 1);
            timed(|| encode(encoding, &[odd], 1))
        }
        // An encoding that has seen this text.
        "again" => {
            encode(encoding, &[even, odd], 1);
            timed(|| (0..PASSES).for_each(|_| encode(encoding, &[odd], 1))) / PASSES
        }
        // Documents or prompts, one call each.
        "documents" | "prompts" => {
            let size = if row == "prompts" { PROMPT } else { DOCUMENT };
            encode(encoding, &documents(even, size), 1);
            let documents = documents(odd, size);
            timed(|| encode(encoding, &documents, 1))
        }
        // Each word between spaces is one call.
        "words" => {
            let words: Vec<&str> = odd.split_whitespace().collect();
            timed(|| encode(encoding, &words, 1))
        }
        // Documents on two threads.
        "threads" => {
            encode(encoding, &documents(even, DOCUMENT), 2);
            let documents = documents(odd, DOCUMENT);
            timed(|| encode(encoding, &documents, 2))
        }
        // The documents again, each equally likely on either thread.
        "threads-again" => {
            encode(encoding, &documents(even, DOCUMENT), 2);
            let documents = documents(odd, DOCUMENT);
            encode(encoding, &documents, 2);
            timed(|| encode(encoding, &documents, 2))
        }
        _ => return Err(format!("no row {row:?}").into()),
    })
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, mechanism, ranks, pattern] = arguments.as_slice() else {
        return Err("usage: ablation MECHANISM RANKS PATTERN".into());
    };
    leave_out(mechanism)?;
    let vocabulary = Vocabulary::from_ranks(rank_file::parse(&std::fs::read(ranks)?)?)?;
    let encoding = Direct::new(vocabulary, Splitter::new(pattern)?, SpecialTokens::new([])?)?;
    let mut texts = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (row, path) = line.split_once(' ').ok_or("expected: ROW FILE")?;
        if !texts.contains_key(path) {
            texts.insert(path.to_owned(), Halves::read(path)?);
        }
        println!("{}", time(&encoding, row, &texts[path])?.as_nanos() as f64 / 1e3);
        std::io::stdout().flush()?;
    }
    Ok(())
}
