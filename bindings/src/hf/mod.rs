//! Tokenizer files: the native half of `bpe_engine.hf`.

mod components;
mod decode;
mod encode;
mod encoding;
pub mod input;
mod lazy;
mod settings;
mod vocabulary;

pub use components::{HfComponent, hf_added_tokens, hf_component, hf_content_hash, hf_process};
pub use encode::{SHARE, encode_all, encode_each};
pub use encoding::{HfEncoding, direction, list_of_encodings};
pub use settings::truncation_strategy;
