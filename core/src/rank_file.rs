//! The `.tiktoken` format: `base64(token bytes) SPACE rank`, one token a line.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::{Error, Result};
use crate::vocabulary::MAX_ID;

/// Parses a rank file into `(token bytes, rank)`, in the order of its lines.
///
/// Empty lines are skipped and Windows line ends are taken. Whether tokens or ranks repeat is
/// for [`crate::Vocabulary::build`] to say.
pub fn parse(contents: &[u8]) -> Result<Vec<(Vec<u8>, u32)>> {
    contents
        .split(|&byte| byte == b'\n')
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_ascii()))
        .filter(|(_, line)| !line.is_empty())
        .map(|(line, text)| {
            parse_line(text).map_err(|reason| Error::RankFile {
                line,
                reason: format!("{reason} in \"{}\"", text.escape_ascii()),
            })
        })
        .collect()
}

fn parse_line(line: &[u8]) -> std::result::Result<(Vec<u8>, u32), String> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let (Some(token), Some(rank), None) = (fields.next(), fields.next(), fields.next()) else {
        return Err("expected base64(token), a space and the rank".into());
    };
    let token = STANDARD.decode(token).map_err(|error| format!("bad base64 ({error})"))?;
    if token.is_empty() {
        return Err("an empty token".into());
    }
    let rank = std::str::from_utf8(rank)
        .ok()
        .and_then(|digits| digits.parse::<u32>().ok())
        .filter(|&rank| rank <= MAX_ID)
        .ok_or_else(|| format!("the rank is not a whole number from 0 to {MAX_ID}"))?;
    Ok((token, rank))
}
