//! Abilities of every tokenizer, one file each: methods of [`Pipeline`](crate::Pipeline), or
//! functions over it.

pub mod conversation;
pub mod heal;
mod inspect;
pub mod lossy;
mod parallel;
pub mod prefix_cache;
pub mod truncate;
