//! Tokenizers of `tokenizer.json` files and of SentencePiece, with exactly the results of Hugging
//! Face's `tokenizers`:
//!
//! ```
//! use bpe_core::hf::{Input, Sequence, Pipeline};
//!
//! let json = r#"{"pre_tokenizer": {"type": "Whitespace"}, "added_tokens": [], "model": {
//!     "type": "WordLevel", "vocab": {"a": 0, "b": 1, "<unk>": 2}, "unk_token": "<unk>"}}"#;
//! let tokenizer = Pipeline::from_json(json)?;
//! let input = Input { first: Sequence::Text("b a c"), second: None };
//! let encoding = tokenizer.encode_fully(input, true, true, true)?;
//! assert_eq!(encoding.ids, [1, 0, 2]);
//! assert_eq!(tokenizer.decode(&encoding.ids, true)?, "b a <unk>");
//! assert_eq!(tokenizer.token_to_id("b"), Some(1));
//! # Ok::<(), bpe_core::hf::Error>(())
//! ```
//!
//! # Inside
//!
//! Text flows one way:
//!
//! ```text
//! text ─> added tokens ─> normalizer ─> added tokens ─> pre-tokenizer ─> model ─> post-processor
//! ```
//!
//! One walk encodes text, and a tracer takes what it finds. A list of ids passes whole stretches of
//! text to the model. With details, every byte is followed through every step to tokens, offsets and
//! words. A file that cannot be encoded exactly is refused when it is read.
//!
//! | module | contents |
//! |---|---|
//! | [`spec`] | the components of a file, as in its JSON |
//! | [`io`] | reads and writes whole files |
//! | `json` | writes JSON |
//! | `bytes` | the characters that represent bytes in byte-level vocabularies |
//! | `model` | the questions to a model; BPE: its lists as read, built for the core, and ready to run; models of words |
//! | `added` | finds added tokens in text |
//! | `added_search` | searches for the names of many tokens at once |
//! | `regex` | Oniguruma, whose syntax the patterns in files use |
//! | `offsets` | text with the place in the original of each byte |
//! | `normalize`, `split` | normalizers and pre-tokenizers |
//! | `bert`, `charsmap`, `scripts` | `BertNormalizer`, `Precompiled`, and the table of `UnicodeScripts` |
//! | `trie` | finds the tokens that a text begins with |
//! | `sentencepiece` | SentencePiece's files, and how it normalizes and decodes |
//! | `pieces` | reads a `.model` as a tokenizer |
//! | `walk`, [`details`] | the walk; its pieces, with tokens, offsets and words |
//! | `decode_ids` | decodes ids to text |
//! | [`post`] | truncation, post-processors, padding |
//! | [`encoding`], [`run_length`] | the result of a walk |
//! | `decode` | decoders: tokens to text |
//! | [`arrangement`] | where a post-processor adds ids |
//! | `encode` | encodes inputs: chooses the walk, then truncates and post-processes |
//! | [`tokenizer`] | combines all components |
//! | `fingerprint` | names a tokenizer by what decides its ids |
//! | `beginning` | encodes as much of a text as truncation keeps |
//! | `chunks` | looks up text between two spaces before normalizing |
//! | [`count`] | counts the words that training learns from |
//! | `control_tokens` | the tokens that untrusted text must not produce |
//! | `of_ranks` | pipelines of ranks, with a direct stage |
//! | `engine` | the questions that abilities ask a pipeline |
//! | `quiet`, `stable` | places of a text at which what follows changes nothing |
//! | [`segments`] | prompts of segments |
//! | `prompt` | segments and conversations: where added tokens may come from |

mod added;
mod added_search;
pub mod arrangement;
mod beginning;
mod bert;
mod bytes;
mod charsmap;
mod chunks;
mod control_tokens;
pub mod count;
mod decode;
mod decode_ids;
pub mod details;
mod encode;
pub mod encoding;
mod engine;
mod error;
mod fingerprint;
pub mod io;
mod json;
mod model;
mod normalize;
mod of_ranks;
mod offsets;
mod pieces;
pub mod post;
mod prompt;
pub(crate) mod quiet;
mod regex;
pub mod run_length;
mod scripts;
pub mod segments;
mod sentencepiece;
mod settled;
pub mod spec;
mod split;
pub(crate) mod stable;
pub mod tokenizer;
mod trie;
mod walk;

pub use added::AddedToken;
pub use bytes::text_of;
pub use decode::ByteRuns;
pub use encode::{CutOff, Encoded, RowLengths};
pub use encoding::Encoding;
pub use error::{Error, Result};
pub use model::Version;
pub use tokenizer::Sequence;
pub use tokenizer::{Input, Pipeline};

/// Normalizes `text`.
pub fn normalize(spec: &spec::Normalizer, text: &str) -> Result<String> {
    Ok(normalize::Normalizer::new(spec, "normalizer")?.apply(text.into())?.into_owned())
}

/// Splits `text` into pieces with their offsets in it, in characters.
pub fn pre_tokenize(spec: &spec::PreTokenizer, text: &str) -> Result<Vec<details::PlacedPiece>> {
    details::pre_tokenize(&split::PreTokenizer::new(Some(spec))?, text)
}

/// Decodes tokens to text.
pub fn decode(spec: &spec::Decoder, tokens: Vec<String>) -> Result<String> {
    decode::Decoder::new(spec)?.decode(tokens)
}
