//! Byte-level BPE. Text flows one way:
//!
//! ```text
//! text ──> special_tokens ──> split ──> pieces ──> sink
//!                                         │
//!                             cache / vocabulary / merge
//! ```
//!
//! | room | what it does |
//! |---|---|
//! | [`code_points`] | text as interpreters store it, into UTF-8 |
//! | [`normalize`] | rewrites the text first, for encodings that ask for it |
//! | [`special_tokens`] | finds the spans of the text that are special tokens |
//! | [`split`] | cuts the text between them into pieces |
//! | `pieces` | finds the ids of pieces, of many at once |
//! | [`vocabulary`] | bytes of a token <-> its id |
//! | [`cache`] | remembers the ids of pieces |
//! | `merge` | the tokens of a piece that is no token itself |
//! | [`sink`] | what a walk leaves behind: ids, a count, offsets |
//! | [`encoding`] | runs the stages |
//! | [`parallel`] | one text on several threads |
//! | [`offsets`] | where in the text each token stands |
//! | [`fit`] | how much of a text fits into a number of tokens |
//! | [`inspect`] | pieces of a text; whether ids are canonical |
//! | [`unstable`] | what a text that is still being typed may become |
//! | [`rank_file`] | the `.tiktoken` format |
//! | [`learn`] | the merges that make given words one token each |
//! | [`tier`] | which vector instructions are used |
//! | [`audit`] | what is wrong with a vocabulary, token by token |
//! | [`ablation`] | leaves mechanisms out, to measure them |

pub mod ablation;
pub mod audit;
pub mod cache;
pub mod code_points;
pub mod encoding;
pub mod error;
pub(crate) mod hash;
pub mod inspect;
pub mod interrupt;
pub(crate) mod lookup;
pub mod memory;
pub(crate) mod merge;
pub mod normalize;
pub mod offsets;
pub mod pool;
pub mod rank_file;
pub mod sink;
pub mod special_tokens;
pub mod split;
pub mod threads;
pub mod tier;
pub mod train;
pub mod truncate;
pub mod unstable;
pub mod vocabulary;

pub use encoding::Encoding;
pub use error::{Error, Result};
pub use normalize::Normalization;
pub use sink::Sink;
pub use special_tokens::SpecialTokens;
pub use split::Splitter;
pub use vocabulary::Vocabulary;
