//! The tokenizer: special tokens, normalizer, split, model, post-processor, decoder. A `tokenizer.json`
//! gives exactly the results of Hugging Face's `tokenizers`:
//!
//! ```
//! use bpe_core::pipeline::{Input, Pipeline, Sequence};
//!
//! let json = r#"{"pre_tokenizer": {"type": "Whitespace"}, "added_tokens": [], "model": {
//!     "type": "WordLevel", "vocab": {"a": 0, "b": 1, "<unk>": 2}, "unk_token": "<unk>"}}"#;
//! let tokenizer = Pipeline::from_json(json)?;
//! let input = Input { first: Sequence::Text("b a c"), second: None };
//! let encoding = tokenizer.encode_fully(input, true, true, true)?;
//! assert_eq!(encoding.ids, [1, 0, 2]);
//! assert_eq!(tokenizer.decode(&encoding.ids, true)?, "b a <unk>");
//! assert_eq!(tokenizer.token_to_id("b"), Some(1));
//! # Ok::<(), bpe_core::Error>(())
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
//! A pipeline of ranks does all steps in one loop, [`Direct`](crate::Direct). Every other pipeline
//! has one walk, whose results go to a tracer. A list of ids passes whole runs of text to the
//! model. With details, every byte is followed through every step to tokens, offsets and words. A
//! file that cannot be encoded exactly is refused when it is read.
//!
//! | module | contents |
//! |---|---|
//! | `assembly` | the struct, its components, and their setters |
//! | `of_ranks`, `as_ranks` | pipelines of ranks, and the conversion of a file to one |
//! | `json_file`, `sentencepiece_file`, `tekken_file` | reads and writes whole files |
//! | `walk`, `tokens` | the walk; its pieces, with tokens, offsets and words |
//! | `encode` | encodes inputs: chooses the walk, then truncates and post-processes |
//! | `early_end` | encodes only as much of a text as truncation keeps |
//! | `chunks` | looks up text between two spaces before normalizing |
//! | `decode_ids` | decodes ids to text, and makes token tables |
//! | `fingerprint` | SHA-256 of everything that decides the ids of a pipeline |
//! | `runs` | encodes texts, and the runs between special tokens |
//! | `special_in_text` | finds special tokens in texts and prompts |
//! | `spans` | the bytes of a text that each id comes from |
//! | `cuts` | positions at which a run can be cut |
//! | [`segments`], `trusted` | prompts of segments, and the added tokens that each segment may produce |
//! | `control_tokens` | the tokens that untrusted text must not produce |
//! | `independent`, `stable` | positions of a text at which later text changes nothing |
//! | [`count`] | counts the words that training learns from |

mod as_ranks;
mod assembly;
mod chunks;
mod control_tokens;
pub mod count;
mod cuts;
mod decode_ids;
mod early_end;
mod encode;
mod fingerprint;
pub(crate) mod independent;
mod json_file;
mod of_ranks;
mod runs;
pub mod segments;
mod sentencepiece_file;
mod spans;
mod special_in_text;
pub(crate) mod stable;
mod tekken_file;
pub(crate) mod tokens;
mod trusted;
pub(crate) mod walk;

pub use crate::models::Version;
pub use assembly::{Input, Pipeline, Sequence};
pub use encode::{CutOff, Encoded, RowLengths};
pub use tokens::pre_tokenize;
