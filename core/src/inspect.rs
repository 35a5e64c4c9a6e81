//! Questions about a text or its ids that take no walk into a sink.

use crate::encoding::Encoding;
use crate::error::Result;
use crate::special_tokens::Selection;
use crate::split::{BATCH, Batch, Piece};

/// The pieces of `text`, special tokens in `allowed` as pieces of their own. Text that the
/// pattern does not match is in no piece.
pub fn split(encoding: &Encoding, text: &str, allowed: &Selection) -> Result<Vec<String>> {
    let mut pieces = Vec::new();
    let mut position = 0;
    loop {
        let special = encoding.special_tokens().find_allowed(text, position, allowed);
        let end = special.map_or(text.len(), |(found, _)| found.start);
        split_stretch(encoding, &text[position..end], &mut pieces)?;
        let Some((found, _)) = special else { return Ok(pieces) };
        pieces.push(text[found.start..found.end].to_owned());
        position = found.end;
    }
}

fn split_stretch(encoding: &Encoding, text: &str, out: &mut Vec<String>) -> Result<()> {
    let mut batch: Batch = [Piece::default(); BATCH];
    let mut pieces = encoding.splitter().pieces(text);
    loop {
        let count = pieces.fill(&mut batch)?;
        if count == 0 {
            return Ok(());
        }
        out.extend(batch[..count].iter().map(|piece| text[piece.start..piece.end].to_owned()));
    }
}

/// Whether encoding the text of `ids` gives `ids`: the ids of special tokens stand for special
/// tokens, and the text between them is ordinary.
pub fn is_canonical(encoding: &Encoding, ids: &[u32]) -> Result<bool> {
    let is_special = |id: &u32| encoding.vocabulary().rank_of_id(*id).is_none();
    for stretch in ids.split(is_special) {
        let Ok(text) = String::from_utf8(encoding.decode_bytes(stretch)?) else {
            return Ok(false);
        };
        let mut encoded = Vec::with_capacity(stretch.len());
        encoding.encode(&text, &Selection::None, &mut encoded)?;
        if encoded != stretch {
            return Ok(false);
        }
    }
    Ok(true)
}
