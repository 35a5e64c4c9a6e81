//! Learning vocabularies from text.

pub mod extend;
