//! Inspects text and ids: pieces, and whether ids are canonical.

use crate::encoding::Encoding;
use crate::engine::Engine;
use crate::engine::segments::Prompt;
use crate::error::Result;
use crate::polling::poll;
use crate::request::Request;
use crate::special_tokens::Selection;
use crate::split::{BATCH, Batch, Piece};

impl Encoding {
    /// Splits `text` into pieces; allowed special tokens are pieces of their own. Passes the
    /// normalized text and some of its pieces at a time to `take`. Text that the pattern does not
    /// match is in no piece.
    pub fn split(
        &self,
        text: &str,
        request: &Request,
        mut take: impl FnMut(&str, &[Piece]) -> Result<()>,
    ) -> Result<()> {
        let text = &*self.prepare(text, request)?;
        let mut batch: Batch = [Piece::default(); BATCH];
        let mut position = 0;
        loop {
            let special = self.special_tokens().find_allowed(text, position, &request.allowed);
            let end = special.map_or(text.len(), |(found, _)| found.start);
            let stretch = &text[position..end];
            let mut pieces = self.splitter().pieces(stretch);
            loop {
                let count = pieces.fill(&mut batch)?;
                if count == 0 {
                    break;
                }
                poll(batch[count - 1].end - batch[0].start)?;
                take(stretch, &batch[..count])?;
            }
            let Some((found, _)) = special else { return Ok(()) };
            take(text, &[Piece { start: found.start, end: found.end }])?;
            position = found.end;
        }
    }
}

/// See [`Engine::is_canonical`].
pub(crate) fn is_canonical<E: Engine + ?Sized>(engine: &E, ids: &[u32]) -> Result<bool> {
    let special = engine.special_tokens()?;
    let mut prompt = Prompt::default();
    let mut is_first = true;
    for run in ids.chunk_by(|&a, &b| special.name(a).is_none() && special.name(b).is_none()) {
        if let Some(name) = special.name(run[0]) {
            prompt.push_special(name, run[0]);
        } else {
            let Some(text) = text_of(engine, run, is_first)? else { return Ok(false) };
            prompt.push_text(engine, &text, &Selection::None)?;
        }
        is_first = false;
    }
    if engine.normalization().apply(prompt.text())? != prompt.text() {
        return Ok(false);
    }
    prompt.finish(engine)?;
    let mut encoded = Vec::with_capacity(ids.len());
    prompt.encode(engine, true, &mut encoded)?;
    Ok(encoded == ids)
}

/// Returns the text of a run of ids; `None` if it is not UTF-8.
fn text_of<E: Engine + ?Sized>(engine: &E, ids: &[u32], is_first: bool) -> Result<Option<String>> {
    let mut bytes = Vec::new();
    for &id in ids {
        poll(1)?;
        engine.append_token(id, &mut bytes)?;
    }
    let Ok(mut text) = String::from_utf8(bytes) else { return Ok(None) };
    if is_first || engine.prepends(false) {
        text.drain(..engine.left_out(ids, text.as_bytes())?);
    }
    Ok(Some(text))
}
