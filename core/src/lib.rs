//! Tokenizers with exactly the ids of tiktoken, Hugging Face's tokenizers and SentencePiece: one
//! [`Pipeline`] for every file. For example, with tiktoken's ranks:
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
//! | merge | the step that replaces a pair with one part |
//! | split | the pair of the last merge of a token; the pieces of a text |
//! | run | repetitions of one character or part; in [`segments`], the text between two special tokens |
//! | cut | a position at which text can be encoded in two parts without changing an id |
//! | batch | pieces that pass through a stage together |
//! | cache set | the two entries of a cache table that may hold a key |
//! | eviction | the removal of the older entry of a set when a new entry is inserted |
//! | prefetch | a hint to the processor to load memory that will be read soon |

// The build script makes vocabulary images and compiles only vocabularies.
#![cfg_attr(not(feature = "pipeline"), allow(dead_code, unused_imports))]

#[doc(hidden)]
pub mod ablation;
pub mod error;
pub(crate) mod hash;
#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub mod once;
#[doc(hidden)]
pub mod polling;
pub mod rank_file;
#[doc(hidden)]
pub mod rule;
#[doc(hidden)]
pub mod system;
#[doc(hidden)]
pub mod tier;
pub mod vocabulary;

/// Everything except vocabularies.
#[cfg(feature = "pipeline")]
#[path = ""]
mod whole {
    pub mod abilities;
    #[doc(hidden)]
    pub mod audit;
    #[doc(hidden)]
    pub mod cache;
    #[doc(hidden)]
    pub mod char_boundary;
    #[doc(hidden)]
    pub mod code_points;
    pub mod components;
    pub mod direct;
    pub mod fingerprint;
    pub mod fixed;
    pub mod lookup;
    #[doc(hidden)]
    pub mod merge;
    pub(crate) mod models;
    pub mod normalize;
    pub mod offsets;
    pub mod pipeline;
    #[doc(hidden)]
    pub mod pool;
    pub mod request;
    pub mod sink;
    #[doc(hidden)]
    pub mod sorted_tokens;
    pub mod special_tokens;
    pub mod split;
    #[doc(hidden)]
    pub mod stops;
    pub mod stream_pool;
    #[doc(hidden)]
    pub mod threads;
    #[doc(hidden)]
    pub mod token_table;
    pub mod train;

    #[doc(hidden)]
    pub use abilities::{conversation, heal, lossy, prefix_cache};
    pub use direct::Direct;
    pub use normalize::Normalization;
    pub use pipeline::{Pipeline, segments};
    pub use request::Request;
    pub use sink::Sink;
    pub use special_tokens::SpecialTokens;
    pub use split::Splitter;
}

#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod test_support;

#[cfg(test)]
#[path = "../tests/support/patterns.rs"]
mod test_patterns;

pub use error::{Error, Result};
pub use vocabulary::Vocabulary;
#[cfg(feature = "pipeline")]
pub use whole::*;
