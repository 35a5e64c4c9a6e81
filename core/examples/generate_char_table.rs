//! Writes `src/split/char_table.bin` from the Unicode tables of the `regex` crate, so that the
//! families and the regex path always agree on the class of a character.
//!
//! ```text
//! cargo run --release -p bpe-core --example generate_char_table            # writes the file
//! cargo run --release -p bpe-core --example generate_char_table -- --check # fails if it differs
//! ```

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use regex::Regex;

/// Character class of each bit, in the order of the constants in `src/split/chars.rs`.
const CLASSES: [&str; 8] = [
    r"[\p{Lu}\p{Lt}]",
    r"\p{Ll}",
    r"[\p{Lm}\p{Lo}]",
    r"\p{M}",
    r"\p{N}",
    r"\s",
    r"[\r\n]",
    r"\p{Han}",
];

/// Characters in none of [`CLASSES`], except control, format and unassigned characters.
const PUNCTUATION: &str = r"[\p{P}\p{S}]";

/// Number of code points in a row: their UTF-8 differs only in the last byte.
const ROW: usize = 64;

/// Calls `found` with each character of a class.
fn each_of(class: &str, mut found: impl FnMut(usize)) {
    let all: String = (0..=char::MAX as u32).filter_map(char::from_u32).collect();
    let regex = Regex::new(class).expect("the class is valid");
    for found_run in regex.find_iter(&all) {
        found_run.as_str().chars().for_each(|c| found(c as usize));
    }
}

/// Returns the class of every code point, and whether it is [`PUNCTUATION`].
fn classes() -> Vec<(u8, bool)> {
    let mut classes = vec![(0, false); char::MAX as usize + 1];
    for (bit, class) in CLASSES.iter().enumerate() {
        each_of(class, |c| classes[c].0 |= 1 << bit);
    }
    each_of(PUNCTUATION, |c| classes[c].1 = true);
    classes
}

/// Returns the contents of the file, in the layout that `src/split/char_table.rs` describes.
fn table() -> Vec<u8> {
    let classes = classes();
    let mut rows: Vec<&[(u8, bool)]> = Vec::new();
    let mut numbers: HashMap<&[(u8, bool)], usize> = HashMap::new();
    let mut table = Vec::new();
    for row in classes.chunks(ROW) {
        let number = *numbers.entry(row).or_insert_with(|| {
            rows.push(row);
            rows.len() - 1
        });
        table.extend(u16::try_from(number).expect("few different rows").to_le_bytes());
    }
    table.extend(rows.iter().flat_map(|row| row.iter().map(|(class, _)| class)));
    for row in rows {
        let bits = row.iter().rev().fold(0u64, |bits, (_, is)| bits << 1 | u64::from(*is));
        table.extend(bits.to_le_bytes());
    }
    table
}

fn main() -> ExitCode {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/split/char_table.bin");
    let wanted = table();
    match std::env::args().nth(1).as_deref() {
        None => {
            if let Err(error) = std::fs::write(&path, wanted) {
                eprintln!("{}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        }
        Some("--check") => {
            if std::fs::read(&path).is_ok_and(|found| found == wanted) {
                return ExitCode::SUCCESS;
            }
            eprintln!("{} is out of date: run this example without --check", path.display());
            return ExitCode::FAILURE;
        }
        Some(other) => {
            eprintln!("unknown argument {other:?}: use --check, or nothing");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
