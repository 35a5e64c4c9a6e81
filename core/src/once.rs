//! Values made on first use, without a lock.
//!
//! `std::sync::OnceLock` makes other threads wait for the one that makes the value. If the process
//! forks meanwhile, the child does not have that thread and waits forever. With [`OnceBox`] every
//! early thread makes a value, and all but the first are dropped.

pub use once_cell::race::OnceBox;
