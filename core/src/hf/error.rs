//! The errors of tokenizer files.

use crate::memory::ask_for;

pub use crate::{Error, Result};

/// Fails if so many tokens, written as texts in many small allocations, have no room in memory.
pub(crate) fn ask_for_tokens(count: usize) -> Result<()> {
    const TOKEN: usize = 512;
    ask_for(count.saturating_mul(TOKEN))
}
