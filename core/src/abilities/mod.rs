//! Abilities of every tokenizer, one file each: methods of [`Pipeline`](crate::Pipeline), or
//! functions that take one.

pub mod conversation;
pub mod heal;
mod inspect;
pub mod lossy;
mod parallel;
pub mod prefix_cache;
pub mod truncate;
