//! Tokenizers with exactly the ids of tiktoken, Hugging Face's tokenizers and SentencePiece: one
//! [`Pipeline`] for every file. The ranks of tiktoken, for example:
//!
//! ```
//! use bpe_core::{Normalization, Pipeline, Request, SpecialTokens, Splitter, Vocabulary, rank_file};
//!
//! let ranks = rank_file::parse(b"YQ== 0\nYg== 1\nYWI= 2\n")?; // a, b, ab
//! let special = SpecialTokens::new([("<end>".to_owned(), 3)])?;
//! let (vocabulary, splitter) = (Vocabulary::from_ranks(ranks)?, Splitter::new(r"\w+")?);
//! let pipeline = Pipeline::of_ranks(vocabulary, splitter, special, Normalization::None)?;
//!
//! let mut ids = Vec::new();
//! pipeline.encode_text("aba", &Request::ORDINARY, &mut ids)?;
//! assert_eq!(ids, [2, 0]);
//! assert_eq!(pipeline.decode(&ids, false)?, "aba");
//! # Ok::<(), bpe_core::Error>(())
//! ```
//!
//! The documented modules are the public API. The others are public only for the crates of this
//! repository, and change without notice.
//!
//! # Inside
//!
//! Text flows one way:
//!
//! ```text
//! text ──> normalize ──> special_tokens ──> split ──> lookup ──> sink
//!                                                       │
//!                                           cache / vocabulary / merge
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | [`pipeline`] | the tokenizer: struct, walks, and file formats |
//! | [`components`] | normalizers, pre-tokenizers, post-processors, decoders, added tokens |
//! | `models` | BPE, WordPiece, WordLevel, Unigram, the models of SentencePiece |
//! | [`abilities`] | functions over every pipeline: truncation, conversations, healing |
//! | [`direct`] | the loop of pipelines of ranks: special tokens, NFC or no normalization, one pattern, BPE by rank |
//! | [`fixed`] | positions of a text whose ids are not the result of encoding |
//! | [`request`] | the special tokens that a caller allows and disallows |
//! | `char_boundary` | rounds positions to characters |
//! | `code_points` | converts text stored by interpreters as code points to UTF-8 |
//! | [`normalize`] | Unicode normalization before all other steps |
//! | [`special_tokens`] | finds special tokens in text |
//! | [`split`] | cuts text into pieces |
//! | `lookup` | finds the ids of many pieces at once |
//! | [`vocabulary`] | maps the bytes of tokens to ids and back |
//! | `cache` | keeps the ids of pieces seen before |
//! | `rule` | the merge rule, implemented literally |
//! | `merge` | merges the bytes of a piece that is not itself a token |
//! | [`sink`] | collects the results of a walk: ids, a count, positions |
//! | `pool` | workspaces with caches, which calls borrow |
//! | [`offsets`] | finds the bytes of the text that each token covers |
//! | [`fingerprint`] | SHA-256 of everything that decides the ids of an encoding |
//! | `sorted_tokens` | tokens sorted by their bytes |
//! | `token_table` | the bytes of every id in one buffer, and a trie over them |
//! | [`stream_pool`] | decodes the ids of many requests as they arrive |
//! | `stops` | finds stop strings in text that arrives in parts |
//! | [`rank_file`] | the `.tiktoken` format |
//! | [`train`] | learns vocabularies from text, and the merges that make given words one token |
//! | `audit` | audits a vocabulary token by token |
//! | `ablation` | disables mechanisms, to measure them |
//! | `polling` | lets a caller stop long work, and counts work |
//! | `once` | `OnceBox`: values created on first use, without a lock |
//! | `memory` | huge pages, prefetching, allocations that may fail |
//! | `hash` | hashes of short keys |
//! | `threads` | divides work among threads |
//! | `tier` | chooses the vector instructions |
//! | [`error`] | the error type |
//!
//! # Glossary
//!
//! | term | meaning |
//! |---|---|
//! | text | a UTF-8 string, normalized if the encoding requires normalization |
//! | span | a range of bytes of a text |
//! | piece | a span that the pattern matches; merges never cross its ends |
//! | boundary | a position inside a piece that no token crosses |
//! | segment | a part of a prompt (see [`segments`]); in `lookup`, the part of a piece between two boundaries |
//! | token | a string of bytes that has an id; a special token has a name instead |
//! | id | the number of a token in the interface, any `u32` |
//! | rank | the index of a token in the order of ids, and the priority of its merge |
//! | part | the unit of merging: a rank, or a number for a single byte that is not a token |
//! | pair | two neighboring parts |
//! | merge | the step that replaces a pair by one part |
//! | split | the pair of the last merge of a token; the pieces of a text |
//! | run | repetitions of one character or part; in [`segments`], the text between two special tokens |
//! | cut | a position at which text can be encoded in two parts without changing an id |
//! | batch | pieces that pass through a stage together |
//! | cache set | the two entries of a cache table that may hold a key |
//! | eviction | the removal of the older entry of a set when a new one is inserted |
//! | prefetch | a hint to the processor to load memory that will be read soon |

// The build script makes vocabulary images and compiles only vocabularies.
#![cfg_attr(not(feature = "pipeline"), allow(dead_code, unused_imports))]

#[cfg(feature = "pipeline")]
pub mod abilities;
#[doc(hidden)]
pub mod ablation;
#[cfg(feature = "pipeline")]
#[doc(hidden)]
pub mod audit;
#[cfg(feature = "pipeline")]
#[doc(hidden)]
pub mod cache;
#[cfg(feature = "pipeline")]
#[doc(hidden)]
pub mod char_boundary;
#[cfg(feature = "pipeline")]
#[doc(hidden)]
pub mod code_points;
#[cfg(feature = "pipeline")]
pub mod components;
#[cfg(feature = "pipeline")]
pub mod direct;
pub mod error;
#[cfg(feature = "pipeline")]
pub mod fingerprint;
#[cfg(feature = "pipeline")]
pub mod fixed;
pub(crate) mod hash;
#[cfg(feature = "pipeline")]
pub mod lookup;
#[doc(hidden)]
pub mod memory;
#[cfg(feature = "pipeline")]
#[doc(hidden)]
pub mod merge;
#[cfg(feature = "pipeline")]
mod models;
#[cfg(feature = "pipeline")]
pub mod normalize;
#[cfg(feature = "pipeline")]
pub mod offsets;
#[doc(hidden)]
pub mod once;
#[cfg(feature = "pipeline")]
pub mod pipeline;
#[doc(hidden)]
pub mod polling;
#[cfg(feature = "pipeline")]
#[doc(hidden)]
pub mod pool;
pub mod rank_file;
#[cfg(feature = "pipeline")]
pub mod request;
#[doc(hidden)]
pub mod rule;
#[cfg(feature = "pipeline")]
pub mod sink;
#[cfg(feature = "pipeline")]
#[doc(hidden)]
pub mod sorted_tokens;
#[cfg(feature = "pipeline")]
pub mod special_tokens;
#[cfg(feature = "pipeline")]
pub mod split;
#[cfg(feature = "pipeline")]
#[doc(hidden)]
pub mod stops;
#[cfg(feature = "pipeline")]
pub mod stream_pool;
#[cfg(feature = "pipeline")]
#[doc(hidden)]
pub mod threads;
#[doc(hidden)]
pub mod tier;
#[cfg(feature = "pipeline")]
#[doc(hidden)]
pub mod token_table;
#[cfg(feature = "pipeline")]
pub mod train;
pub mod vocabulary;

#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod test_support;

#[cfg(test)]
#[path = "../tests/support/patterns.rs"]
mod test_patterns;

#[cfg(feature = "pipeline")]
#[doc(hidden)]
pub use abilities::{conversation, heal, prefix_cache, shown};
#[cfg(feature = "pipeline")]
pub use direct::Direct;
pub use error::{Error, Result};
#[cfg(feature = "pipeline")]
pub use normalize::Normalization;
#[cfg(feature = "pipeline")]
pub use pipeline::{Pipeline, segments};
#[cfg(feature = "pipeline")]
pub use request::Request;
#[cfg(feature = "pipeline")]
pub use sink::Sink;
#[cfg(feature = "pipeline")]
pub use special_tokens::SpecialTokens;
#[cfg(feature = "pipeline")]
pub use split::Splitter;
pub use vocabulary::Vocabulary;
