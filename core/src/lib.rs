//! Byte-level BPE. Text flows one way:
//!
//! ```text
//! text ──> normalize ──> special_tokens ──> split ──> lookup ──> sink
//!                                                       │
//!                                           cache / vocabulary / merge
//! ```
//!
//! | room | what it does |
//! |---|---|
//! | [`encoding`] | owns the parts, and runs the stages |
//! | [`request`] | what a caller asks for beside the text: special tokens allowed and disallowed |
//! | [`code_points`] | text as interpreters store it, into UTF-8 |
//! | [`normalize`] | rewrites the text first, for encodings that ask for it |
//! | [`special_tokens`] | finds the spans of the text that are special tokens |
//! | [`split`] | cuts the text between them into pieces |
//! | `lookup` | finds the ids of pieces, of many at once |
//! | [`vocabulary`] | bytes of a token <-> its id |
//! | [`cache`] | remembers the ids of pieces |
//! | `merge` | the tokens of a piece that is no token itself |
//! | [`sink`] | what a walk leaves behind: ids, a count, positions |
//! | [`pool`] | workspaces, caches among them, that calls borrow |
//! | [`threads`] | one text on several threads |
//! | [`offsets`] | where in the text each token stands |
//! | `longest_tokens` | how long tokens may be that begin, or end, with some bytes |
//! | [`truncate`] | how much of a text fits into a number of tokens |
//! | [`inspect`] | pieces of a text; whether ids are canonical |
//! | [`segments`] | prompts of trusted and untrusted parts |
//! | [`conversation`] | texts that grow and change, encoded where they changed |
//! | [`strip`] | takes names out of texts |
//! | [`unstable`] | what a text that is still being typed may become |
//! | [`sorted_tokens`] | tokens in the order of their bytes |
//! | [`rank_file`] | the `.tiktoken` format |
//! | [`train`] | vocabularies learned from text, and the merges that make given words one token |
//! | [`audit`] | what is wrong with a vocabulary, token by token |
//! | [`ablation`] | leaves mechanisms out, to measure them |
//! | [`polling`] | lets a caller end long work |
//! | [`once`] | values made when first needed, without a lock |
//! | [`memory`] | huge pages, prefetching, allocations that may fail |
//! | [`tier`] | which vector instructions are used |
//! | [`error`] | everything that can go wrong |
//!
//! # Glossary
//!
//! | term | meaning |
//! |---|---|
//! | text | a UTF-8 string, normalized if the encoding asks for it |
//! | span | a range of bytes of a text |
//! | piece | a span that the pattern matches; merges never cross its ends |
//! | segment | the part of a piece between two boundaries, which no token crosses; in [`segments`], a part of a prompt |
//! | token | a string of bytes that has an id; a special token has a name instead |
//! | id | the number that a token has for the caller, any `u32` |
//! | rank | the place of a token in the order of ids: dense, and the priority of its merge |
//! | merge | the step that replaces two neighbouring tokens by the one they make up |
//! | batch | pieces that are split off, or looked up, before the next stage runs |
//! | cache set | the two entries of a cache table in which a key may stand |
//! | eviction | what happens to the older entry when a set takes in a new one |
//! | prefetch | a hint to the processor to load memory that is read a little later |

pub mod ablation;
pub mod audit;
pub mod cache;
pub mod code_points;
pub mod conversation;
pub mod encoding;
pub mod error;
pub(crate) mod hash;
pub mod inspect;
pub(crate) mod longest_tokens;
pub(crate) mod lookup;
pub mod memory;
pub(crate) mod merge;
pub mod normalize;
pub mod offsets;
pub mod once;
pub mod polling;
pub mod pool;
pub mod rank_file;
pub mod request;
pub(crate) mod rule;
pub mod segments;
pub mod sink;
pub mod sorted_tokens;
pub mod special_tokens;
pub mod split;
pub mod strip;
pub mod threads;
pub mod tier;
pub mod train;
pub mod truncate;
pub mod unstable;
pub mod vocabulary;

#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod test_support;

pub use encoding::Encoding;
pub use error::{Error, Result};
pub use normalize::Normalization;
pub use request::Request;
pub use sink::Sink;
pub use special_tokens::SpecialTokens;
pub use split::Splitter;
pub use vocabulary::Vocabulary;
