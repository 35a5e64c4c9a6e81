//! The walk that gives ids only: whole stretches of text go to the core.

use std::borrow::Cow;

use bpe_core::memory::push;
use bpe_core::split::Piece;

use crate::error::Result;
use crate::split::Plan;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// Whether [`Tokenizer::append_ids`] can be asked.
    pub(crate) fn is_fast(&self) -> bool {
        !matches!(self.plan(), Plan::Rewritten) && self.model().is_core()
    }

    /// Appends the ids of one sequence, or of one word of it.
    pub(crate) fn append_ids(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        self.added().each_raw(text, |range, id| {
            if let Some(id) = id {
                return Ok(push(ids, id)?);
            }
            let stretch = match self.normalizer() {
                None => Cow::Borrowed(&text[range]),
                Some(normalizer) => normalizer.apply(Cow::Borrowed(&text[range]))?,
            };
            self.added().each_normalized(&stretch, |range, id| {
                if let Some(id) = id {
                    return Ok(push(ids, id)?);
                }
                self.append_stretch(&stretch[range], ids)
            })
        })
    }

    /// A stretch without added tokens.
    fn append_stretch(&self, stretch: &str, ids: &mut Vec<u32>) -> Result<()> {
        let from = ids.len();
        let model = self.model();
        match self.plan() {
            _ if stretch.is_empty() => {}
            Plan::Pattern { prefix_space: true, .. } if !stretch.starts_with(' ') => {
                model.encode(&format!(" {stretch}"), ids)?;
            }
            Plan::Pattern { .. } => model.encode(stretch, ids)?,
            Plan::Steps(steps) => {
                let pieces = steps.cut(stretch)?.into_iter();
                let pieces: Vec<Piece> =
                    pieces.map(|range| Piece { start: range.start, end: range.end }).collect();
                model.encode_pieces(stretch, &pieces, ids)?;
            }
            Plan::Rewritten => {}
        }
        model.finish(&mut ids[from..]);
        Ok(())
    }
}
