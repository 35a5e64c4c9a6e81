//! Splits standard input repeatedly, for `release/targets.sh FOLDER count`. PATTERN is the number
//! of a pattern in `tests/support/patterns.rs`.
//!
//! ```text
//! split PATTERN TIMES < TEXT
//! ```

use std::hint::black_box;

use bpe_core::split::{BATCH, Piece, Splitter};

#[path = "../tests/support/patterns.rs"]
mod patterns;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let splitter = Splitter::new(patterns::PATTERNS[arguments[1].parse::<usize>()?])?;
    let text = std::io::read_to_string(std::io::stdin())?;
    let mut batch = [Piece::default(); BATCH];
    for _ in 0..arguments[2].parse()? {
        let mut pieces = splitter.pieces(&text);
        while black_box(pieces.fill(&mut batch)?) > 0 {}
    }
    Ok(())
}
