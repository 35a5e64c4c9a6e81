//! Components of tokenizer files: normalizers, pre-tokenizers, post-processors, decoders, added
//! tokens.

pub(crate) mod added;
mod added_search;
pub mod arrangement;
mod bert;
pub(crate) mod bytes;
mod charsmap;
pub(crate) mod cut_points;
pub(crate) mod decode;
pub mod encoding;
pub(crate) mod json;
pub(crate) mod normalize;
pub(crate) mod offsets;
pub mod post;
mod regex;
pub mod run_length;
mod scripts;
pub(crate) mod sentencepiece;
pub mod spec;
pub(crate) mod split;
pub(crate) mod trie;

pub use added::AddedToken;
pub use bytes::text_of;
pub use decode::ByteRuns;
pub use encoding::Encoding;

use crate::error::Result;

/// Returns a function that normalizes a text.
pub fn normalize(spec: &spec::Normalizer) -> Result<impl Fn(&str) -> Result<String> + use<>> {
    let ready = normalize::Normalizer::new(spec, "normalizer")?;
    Ok(move |text: &str| Ok(ready.apply(text.into())?.into_owned()))
}

/// Returns a function that decodes tokens to text.
pub fn decode(spec: &spec::Decoder) -> Result<impl Fn(Vec<String>) -> Result<String> + use<>> {
    let ready = decode::Decoder::new(spec)?;
    Ok(move |tokens| ready.decode(tokens))
}
