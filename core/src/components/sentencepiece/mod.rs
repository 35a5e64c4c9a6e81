//! SentencePiece model files: protocol buffer, normalizer and decoder.

mod decoder;
mod normalizer;
mod proto;
mod user_defined;
mod words;

pub(crate) use decoder::Decoder;
pub(crate) use normalizer::Normalizer;
pub(crate) use proto::ModelProto;
pub(crate) use user_defined::UserDefined;
pub(crate) use words::Words;
