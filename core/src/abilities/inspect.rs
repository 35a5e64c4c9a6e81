//! Checks whether ids are canonical.

use crate::Pipeline;
use crate::error::Result;
use crate::pipeline::segments::Prompt;
use crate::polling::poll;
use crate::special_tokens::Selection;

impl Pipeline {
    /// Returns true if encoding the text of `ids` gives `ids`, with the ids of special tokens as
    /// special tokens and the text between them as ordinary text.
    pub fn is_canonical(&self, ids: &[u32]) -> Result<bool> {
        is_canonical(self, ids)
    }
}

fn is_canonical(pipeline: &Pipeline, ids: &[u32]) -> Result<bool> {
    let special = pipeline.special_tokens()?;
    let mut prompt = Prompt::default();
    let mut is_first = true;
    for run in ids.chunk_by(|&a, &b| special.name(a).is_none() && special.name(b).is_none()) {
        if let Some(name) = special.name(run[0]) {
            prompt.push_special(name, run[0])?;
        } else {
            let Some(text) = text_of(pipeline, run, is_first)? else { return Ok(false) };
            prompt.push_text(pipeline, &text, &Selection::None)?;
        }
        is_first = false;
    }
    if pipeline.normalization().apply(prompt.text())? != prompt.text() {
        return Ok(false);
    }
    prompt.finish(pipeline)?;
    let mut encoded = Vec::with_capacity(ids.len());
    prompt.encode(pipeline, true, &mut encoded)?;
    Ok(encoded == ids)
}

/// Returns the text of a run of ids; `None` if it is not UTF-8.
fn text_of(pipeline: &Pipeline, ids: &[u32], is_first: bool) -> Result<Option<String>> {
    let mut bytes = Vec::new();
    for &id in ids {
        poll(1)?;
        pipeline.append_token(id, &mut bytes)?;
    }
    let Ok(mut text) = String::from_utf8(bytes) else { return Ok(None) };
    if is_first || pipeline.prepends(false) {
        text.drain(..pipeline.left_out(ids, text.as_bytes())?);
    }
    Ok(Some(text))
}
