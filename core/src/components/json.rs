//! Writes JSON.

use crate::memory::ask_for;

use serde::Serialize;

use crate::error::{Error, Result};

/// Writes a value as JSON, with line breaks if `pretty`.
pub(crate) fn text_of<T: Serialize>(value: &T, pretty: bool) -> Result<String> {
    let json = match pretty {
        true => serde_json::to_string_pretty(value),
        false => serde_json::to_string(value),
    };
    json.map_err(|error| Error::Invalid(error.to_string()))
}

/// Appends a value as JSON.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T, mut before: Vec<u8>) -> Result<Vec<u8>> {
    serde_json::to_writer(&mut before, value).map_err(|error| Error::Invalid(error.to_string()))?;
    Ok(before)
}

/// Fails if memory cannot hold `count` tokens as separately allocated texts.
pub(crate) fn ask_for_tokens(count: usize) -> Result<()> {
    const TOKEN: usize = 512;
    ask_for(count.saturating_mul(TOKEN))
}
