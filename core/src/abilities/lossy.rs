//! Decodes ids to text, with U+FFFD for invalid UTF-8. Which bytes are invalid depends on the bytes
//! that are decoded together.

use std::iter::repeat_n;

use crate::Pipeline;
pub use crate::components::ByteRuns;
use crate::error::Result;
use crate::memory::reserve;
use crate::stream_pool::whole_characters;

const BROKEN: &str = "\u{fffd}";

/// Decodes `ids` as the beginning of a text if `is_first`, otherwise as a continuation. Returns the
/// bytes of the text, and where the bytes of each id start. The bytes are UTF-8 if the pipeline has
/// [byte runs](Pipeline::byte_runs).
pub fn decode(pipeline: &Pipeline, ids: &[u32], is_first: bool) -> Result<(Vec<u8>, Vec<usize>)> {
    let (bytes, starts) = match is_first {
        true => pipeline.decode_with_starts(ids)?,
        false => pipeline.bytes_after_others(ids)?,
    };
    let Some(runs) = pipeline.byte_runs() else { return Ok((bytes, starts)) };
    let (mut shown, mut places) = (Vec::with_capacity(bytes.len()), Vec::with_capacity(ids.len()));
    let mut first = 0;
    while first < ids.len() {
        let next = first + run_length(pipeline, &ids[first..])?.max(1);
        let part = starts[first]..starts.get(next).copied().unwrap_or(bytes.len());
        let kept = are_kept(runs, &bytes[part.clone()])?;
        let ends = starts[first + 1..next].iter().copied().chain([part.end]);
        for (&start, end) in starts[first..next].iter().zip(ends) {
            places.push(shown.len());
            for at in start..end {
                match kept[at - part.start] {
                    true => shown.extend_from_slice(&bytes[at..=at]),
                    false => shown.extend_from_slice(BROKEN.as_bytes()),
                }
            }
        }
        first = next;
    }
    Ok((shown, places))
}

/// Returns the text of [`decode`] from the id with index `from` on, starting at the character
/// boundary at or before this id.
pub fn decode_from(
    pipeline: &Pipeline,
    ids: &[u32],
    is_first: bool,
    from: usize,
) -> Result<Vec<u8>> {
    let (mut bytes, starts) = decode(pipeline, ids, is_first)?;
    let mut start = starts.get(from).copied().unwrap_or(bytes.len());
    while bytes.get(start).is_some_and(|byte| byte & 0xC0 == 0x80) && start > 0 {
        start -= 1;
    }
    bytes.drain(..start);
    Ok(bytes)
}

/// Returns how many leading ids have text that no later id can change.
pub fn settled(pipeline: &Pipeline, ids: &[u32]) -> Result<usize> {
    let Some(runs) = pipeline.byte_runs() else { return Ok(ids.len()) };
    let mut open = ids.len();
    while open > 0 && is_in_run(pipeline, ids[open - 1])? {
        open -= 1;
    }
    if runs == ByteRuns::Whole {
        return Ok(open);
    }
    let (bytes, starts) = pipeline.bytes_after_others(&ids[open..])?;
    let end = whole_characters(&bytes, false, false).end;
    Ok(open + starts.partition_point(|&start| start < end))
}

/// Returns the length of the run at the start of `ids`.
fn run_length(pipeline: &Pipeline, ids: &[u32]) -> Result<usize> {
    let mut length = 0;
    while length < ids.len() && is_in_run(pipeline, ids[length])? {
        length += 1;
    }
    Ok(length)
}

/// Whether an id is part of a byte run, or is unknown and so does not end the run.
fn is_in_run(pipeline: &Pipeline, id: u32) -> Result<bool> {
    Ok(pipeline.is_byte(id)? || !pipeline.has_token(id))
}

/// Returns, for each byte of a run or of another token, whether decoding keeps the byte.
fn are_kept(runs: ByteRuns, bytes: &[u8]) -> Result<Vec<bool>> {
    let mut kept = Vec::new();
    reserve(&mut kept, bytes.len())?;
    for chunk in bytes.utf8_chunks() {
        kept.extend(repeat_n(true, chunk.valid().len()));
        kept.extend(repeat_n(false, chunk.invalid().len()));
    }
    if runs == ByteRuns::Whole && kept.contains(&false) {
        kept.fill(false);
    }
    Ok(kept)
}
