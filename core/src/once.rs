//! Values created on first use, without a lock.
//!
//! `std::sync::OnceLock` makes other threads wait for the thread that creates the value. If the
//! process forks meanwhile, the child lacks that thread and waits forever. With [`OnceBox`], every
//! thread that finds no value creates one, and only the first value is kept.

pub use once_cell::race::OnceBox;
