//! Reads the `.tiktoken` format: `base64(token bytes) SPACE rank`, one token per line.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::{Error, Result};
use crate::memory::reserve;
use crate::polling::poll;
use crate::vocabulary::{MAX_ID, RankList};

/// Parses a rank file into tokens and ranks, in the order of its lines.
///
/// Reads lines as tiktoken does: they end with `\n`, `\r` or both, any whitespace separates the
/// two fields, a rank may have a plus sign, leading zeros and underscores between digits, and empty
/// lines are skipped. Base64 is stricter than in tiktoken: characters outside the alphabet and bits
/// after the last byte are refused. Repeated tokens and ranks are left to
/// [`crate::Vocabulary::from_ranks`].
pub fn parse(contents: &[u8]) -> Result<RankList> {
    // Most lines have more than 16 bytes.
    let mut list = RankList::with_capacity(contents.len() / 16, contents.len() / 2);
    for (number, line) in lines(contents) {
        poll(line.len())?;
        parse_line(line, &mut list).map_err(|problem| match problem {
            Problem::Line(reason) => {
                Error::RankFile { line: number, reason: format!("{reason} in {}", quoted(line)) }
            }
            Problem::Other(error) => error,
        })?;
    }
    Ok(list)
}

/// Returns the nonempty lines, each with its number from 1.
pub fn lines(contents: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut rest = contents;
    let numbered = (1..).map_while(move |number| {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        let end_of_line = if after.starts_with(b"\r\n") { 2 } else { after.len().min(1) };
        rest = &after[end_of_line..];
        Some((number, line))
    });
    numbered.filter(|(_, line)| !line.is_empty())
}

/// Reason why a line cannot be read.
enum Problem {
    Line(String),
    Other(Error),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

fn parse_line(line: &[u8], list: &mut RankList) -> std::result::Result<(), Problem> {
    let mut fields = line.split(is_space).filter(|field| !field.is_empty());
    let (Some(token), Some(rank), None) = (fields.next(), fields.next(), fields.next()) else {
        return Err(Problem::Line("expected base64(token), a space and the rank".into()));
    };
    let rank = parse_rank(rank).ok_or_else(|| {
        Problem::Line(format!("the rank is not a whole number from 0 to {MAX_ID}"))
    })?;
    list.push_with(rank, |bytes| {
        // Whisper's rank file has an empty token, written as padding alone.
        if token.iter().all(|&byte| byte == b'=') {
            return Ok(());
        }
        reserve(bytes, base64::decoded_len_estimate(token.len()))?;
        STANDARD
            .decode_vec(token, bytes)
            .map_err(|error| Problem::Line(format!("bad base64 ({error})")))
    })
}

/// Returns true for the whitespace between fields, as in Python's `bytes.split`.
fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c)
}

/// Parses a whole number like Python's `int`; `None` if it cannot be an id.
fn parse_rank(field: &[u8]) -> Option<u32> {
    let digits = field.strip_prefix(b"+").unwrap_or(field);
    let is_number = digits
        .split(|&byte| byte == b'_')
        .all(|group| !group.is_empty() && group.iter().all(u8::is_ascii_digit));
    let append = |value: u64, digit: &u8| {
        let value = if *digit == b'_' { value } else { value * 10 + u64::from(digit - b'0') };
        (value <= MAX_ID.into()).then_some(value)
    };
    let value = is_number.then(|| digits.iter().try_fold(0, append))??;
    u32::try_from(value).ok()
}

/// Quotes the first bytes of a line for messages.
fn quoted(line: &[u8]) -> String {
    const LONGEST: usize = 80;
    match line.get(..LONGEST) {
        Some(start) if line.len() > LONGEST => {
            format!("\"{}\"... ({} bytes)", start.escape_ascii(), line.len())
        }
        _ => format!("\"{}\"", line.escape_ascii()),
    }
}
