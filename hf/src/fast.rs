//! The walk that gives ids only: whole stretches of text go to the core.

use std::borrow::Cow;

use crate::error::Result;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// Whether [`Tokenizer::append_ids`] can be asked.
    pub(crate) fn is_fast(&self) -> bool {
        self.scanned().is_some() && self.model().is_core()
    }

    /// Appends the ids of one sequence, or of one word of it.
    pub(crate) fn append_ids(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        let (mut outer, mut inner) = (Vec::new(), Vec::new());
        self.added().split_raw(text, &mut outer);
        for (range, id) in outer {
            if let Some(id) = id {
                ids.push(id);
                continue;
            }
            let stretch = match self.normalizer() {
                None => Cow::Borrowed(&text[range]),
                Some(normalizer) => normalizer.apply(Cow::Borrowed(&text[range]))?,
            };
            if self.added().none_normalized() {
                self.append_stretch(&stretch, ids)?;
                continue;
            }
            inner.clear();
            self.added().split_normalized(&stretch, &mut inner);
            for (range, id) in inner.drain(..) {
                match id {
                    Some(id) => ids.push(id),
                    None => self.append_stretch(&stretch[range], ids)?,
                }
            }
        }
        Ok(())
    }

    /// A stretch without added tokens.
    fn append_stretch(&self, stretch: &str, ids: &mut Vec<u32>) -> Result<()> {
        let from = ids.len();
        if self.scanned() == Some(true) && !stretch.is_empty() && !stretch.starts_with(' ') {
            self.model().encode(&format!(" {stretch}"), ids)?;
        } else {
            self.model().encode(stretch, ids)?;
        }
        self.model().finish(&mut ids[from..]);
        Ok(())
    }
}
