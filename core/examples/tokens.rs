//! Prints the tokens of a text in the vocabulary of a `.tiktoken` file.
//!
//! ```text
//! cargo run -p bpe-core --example tokens [FILE.tiktoken] [TEXT]
//! ```

use std::error::Error;

use bpe_core::{Direct, Request, SpecialTokens, Splitter, Vocabulary, rank_file};

const PATTERN: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/r50k_base.tiktoken");
    let ranks = std::fs::read(arguments.next().as_deref().unwrap_or(default))?;
    let text = arguments.next().unwrap_or_else(|| "Hello, world!".to_owned());

    let vocabulary = Vocabulary::from_ranks(rank_file::parse(&ranks)?)?;
    let encoding = Direct::new(vocabulary, Splitter::new(PATTERN)?, SpecialTokens::new([])?)?;
    let mut ids = Vec::new();
    encoding.encode(&text, &Request::ORDINARY, &mut ids)?;
    for &id in &ids {
        let bytes = encoding.token_bytes(id).unwrap_or_default();
        println!("{id:>8} {:?}", String::from_utf8_lossy(bytes));
    }
    assert_eq!(encoding.decode_bytes(&ids)?, text.as_bytes());
    Ok(())
}
