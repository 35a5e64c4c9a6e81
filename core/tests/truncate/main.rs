//! Texts cut to a number of tokens, beside trying every place where they can be cut.

mod cases;
mod chunks;
mod random;
#[path = "../support/mod.rs"]
mod support;
mod texts;
mod work;
