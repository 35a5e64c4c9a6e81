//! Writes JSON, as far as there is memory.

use crate::memory::append;
use serde::Serialize;

use crate::hf::error::{Error, Result};

/// Writes a value as JSON, with line breaks if `pretty`.
pub(crate) fn text_of<T: Serialize>(value: &T, pretty: bool) -> Result<String> {
    let json = match pretty {
        true => finished(Written(Vec::new()), |out| serde_json::to_writer_pretty(out, value)),
        false => json(value, Vec::new()),
    };
    String::from_utf8(json?).map_err(|error| Error::Invalid(error.to_string()))
}

/// Appends a value as JSON.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T, before: Vec<u8>) -> Result<Vec<u8>> {
    finished(Written(before), |out| serde_json::to_writer(out, value))
}

fn finished(
    mut json: Written,
    write: impl FnOnce(&mut Written) -> serde_json::Result<()>,
) -> Result<Vec<u8>> {
    match write(&mut json) {
        Ok(()) => Ok(json.0),
        Err(error) if error.is_io() => Err(Error::OutOfMemory { bytes: json.0.len() }),
        Err(error) => Err(Error::Invalid(error.to_string())),
    }
}

/// JSON that grows only as far as there is memory.
struct Written(Vec<u8>);

impl std::io::Write for Written {
    fn write(&mut self, json: &[u8]) -> std::io::Result<usize> {
        append(&mut self.0, json).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        Ok(json.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
