//! Checks whether ids are canonical.

use crate::Pipeline;
use crate::error::Result;
use crate::pipeline::segments::Prompt;
use crate::special_tokens::Selection;

impl Pipeline {
    /// Returns true if `ids` decode to text that encodes to `ids`: special ids are special tokens,
    /// and the text between them is ordinary text.
    pub fn is_canonical(&self, ids: &[u32]) -> Result<bool> {
        let special = self.special_tokens()?;
        let mut prompt = Prompt::default();
        let mut is_first = true;
        for run in ids.chunk_by(|&a, &b| special.name(a).is_none() && special.name(b).is_none()) {
            if let Some(name) = special.name(run[0]) {
                prompt.push_special(name, run[0])?;
            } else {
                let Some(text) = text_of(self, run, is_first)? else { return Ok(false) };
                prompt.push_text(self, &text, &Selection::None)?;
            }
            is_first = false;
        }
        if self.normalization().apply(prompt.text())? != prompt.text() {
            return Ok(false);
        }
        prompt.finish(self)?;
        let mut encoded = Vec::with_capacity(ids.len());
        prompt.encode(self, true, &mut encoded)?;
        Ok(encoded == ids)
    }
}

/// Returns the text of a run of ids; `None` if the bytes are not UTF-8.
fn text_of(pipeline: &Pipeline, ids: &[u32], is_first: bool) -> Result<Option<String>> {
    let Ok(mut text) = String::from_utf8(pipeline.bytes_after_others(ids)?.0) else {
        return Ok(None);
    };
    if is_first || pipeline.prepends(false) {
        text.drain(..pipeline.dropped_prefix(ids, text.as_bytes())?);
    }
    Ok(Some(text))
}
