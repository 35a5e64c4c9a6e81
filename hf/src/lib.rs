//! `tokenizer.json` files on top of `bpe-core`, with exactly the results of Hugging Face's
//! `tokenizers`. Text flows one way:
//!
//! ```text
//! text ─> added tokens ─> normalizer ─> added tokens ─> pre-tokenizer ─> model ─> post-processor
//! ```
//!
//! There are two walks. [`fast`] gives ids only, for pre-tokenizers that amount to one pattern of
//! `bpe-core`. [`detail`] follows every byte through every step, and gives tokens, offsets and
//! words as well. What neither can do exactly is refused when the file is read.
//!
//! | module | what it does |
//! |---|---|
//! | [`spec`] | the components of a file, as JSON has them |
//! | [`file`] | a whole file: reading and writing |
//! | `bytes` | the characters that stand for bytes in byte-level vocabularies |
//! | `lists` | the tokens and merges of a file, as they are read |
//! | `build` | a vocabulary of the core out of them |
//! | `listed` | merging by the list, where no vocabulary says the same |
//! | `model` | the vocabulary, ready to run |
//! | `added` | finds added tokens in text |
//! | `names` | looks for the names of many tokens at once |
//! | `regex` | Oniguruma, whose syntax the patterns of the files have |
//! | `aligned` | text with the place in the original that each byte came from |
//! | `normalize`, `split` | normalizers and pre-tokenizers |
//! | [`detail`], `fast`, `to_text` | the two walks, and the walk back |
//! | [`post`] | truncation, post-processors, padding |
//! | [`encoding`], [`runs`] | what a walk results in |
//! | `decode` | decoders: tokens to text |
//! | `encode` | inputs through a walk and what is done with its ids |
//! | [`tokenizer`] | all of it together |

mod added;
mod aligned;
mod build;
mod bytes;
mod decode;
pub mod detail;
mod encode;
pub mod encoding;
mod error;
mod fast;
pub mod file;
mod listed;
mod lists;
mod model;
mod names;
mod normalize;
pub mod post;
mod regex;
pub mod runs;
pub mod spec;
mod split;
mod to_text;
pub mod tokenizer;

pub use added::AddedToken;
pub use bytes::text_of;
pub use encode::Encoded;
pub use encoding::Encoding;
pub use error::{Error, Result};
pub use tokenizer::Sequence;
pub use tokenizer::{Input, Tokenizer};

/// The text that a normalizer makes of `text`.
pub fn normalize(spec: &spec::Normalizer, text: &str) -> Result<String> {
    Ok(normalize::Normalizer::new(spec, "normalizer")?.apply(text.into())?.into_owned())
}

/// The pieces that a pre-tokenizer makes of `text`, with their places in it, in characters.
pub fn pre_tokenize(spec: &spec::PreTokenizer, text: &str) -> Result<Vec<detail::PlacedPiece>> {
    detail::pre_tokenize(&split::PreTokenizer::new(Some(spec))?, text)
}

/// The text that a decoder makes of tokens.
pub fn decode(spec: &spec::Decoder, tokens: Vec<String>) -> Result<String> {
    decode::Decoder::new(spec)?.decode(tokens)
}
