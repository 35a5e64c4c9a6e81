//! Measures splitting, in nanoseconds per piece and MB/s, for each family and tier.
//!
//! ```text
//! cargo run --release -p bpe-core --example split_speed -- FILE...
//! ```

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bpe_core::split::{BATCH, Batch, Piece, Splitter};
use bpe_core::tier::Tier;

/// A spelling of each family, by its name.
const PATTERNS: &[(&str, &str)] = &[
    ("r50k", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"),
    (
        "cl100k",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
    (
        "qwen2",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "o200k",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "kimi",
        r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
];

/// The number of pieces of `text`.
fn split(splitter: &Splitter, text: &str, batch: &mut Batch) -> usize {
    let mut pieces = splitter.pieces(text);
    let mut total = 0;
    while let Ok(count @ 1..) = pieces.fill(black_box(batch)) {
        total += count;
    }
    total
}

/// How long `text` takes: the sum over short stretches of it of the best of several runs, so that
/// what else the machine does is left out.
fn time(splitter: &Splitter, text: &str) -> (usize, Duration) {
    const STRETCH: usize = 1 << 17;
    const ROUNDS: usize = 7;
    let mut batch = [Piece::default(); BATCH];
    let (mut pieces, mut total) = (0, Duration::ZERO);
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.len().min(STRETCH);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (stretch, after) = rest.split_at(end);
        // A short text is split often enough for the clock.
        let repeats = 1 + STRETCH / 2 / stretch.len();
        let mut best = Duration::MAX;
        let mut count = 0;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            for _ in 0..repeats {
                count = split(splitter, black_box(stretch), &mut batch);
            }
            best = best.min(start.elapsed());
        }
        pieces += count;
        total += best / repeats as u32;
        rest = after;
    }
    (pieces, total)
}

fn main() -> ExitCode {
    let mut texts = vec![("\"hello world\"".to_owned(), "hello world".to_owned())];
    for path in std::env::args().skip(1) {
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
                texts.push((name, text));
            }
            Err(error) => {
                eprintln!("{path}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!(
        "{:14} {:8} {:9} {:>9} {:>8} {:>8}",
        "text", "family", "tier", "pieces", "ns/piece", "MB/s"
    );
    for (name, text) in &texts {
        for (family, pattern) in PATTERNS {
            for tier in ["portable", "avx2", "avx512"].into_iter().filter_map(Tier::named) {
                let splitter = match Splitter::with_tier(pattern, tier) {
                    Ok(splitter) => splitter,
                    Err(error) => {
                        eprintln!("{error}");
                        return ExitCode::FAILURE;
                    }
                };
                let (pieces, time) = time(&splitter, text);
                let nanoseconds = time.as_nanos() as f64;
                println!(
                    "{name:14} {family:8} {:9} {pieces:9} {:8.2} {:8.0}",
                    tier.name(),
                    nanoseconds / pieces as f64,
                    text.len() as f64 / nanoseconds * 1e3,
                );
            }
        }
    }
    ExitCode::SUCCESS
}
