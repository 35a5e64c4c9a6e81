//! The walk that gives ids only: whole stretches of text go to the core.

use std::borrow::Cow;

use bpe_core::sink::Pieces;

use crate::detail::{Limit, limited};
use crate::error::Result;
use crate::tokenizer::Tokenizer;

/// Where the ids of each piece begin, and whether it is an added token.
type Starts = Vec<(usize, bool)>;

impl Tokenizer {
    /// Whether [`Tokenizer::ids`] can be asked.
    pub(crate) fn is_fast(&self) -> bool {
        self.scanned().is_some() && self.model().is_core()
    }

    /// Appends the ids of one sequence, or of one word of it.
    pub(crate) fn append_ids(&self, text: &str, limit: Limit, ids: &mut Vec<u32>) -> Result<()> {
        let from = ids.len();
        let mut starts = limit.is_some().then(Vec::new);
        let (mut outer, mut inner) = (Vec::new(), Vec::new());
        self.added().split_raw(text, &mut outer);
        for (range, id) in outer {
            if let Some(id) = id {
                push_added(id, ids, &mut starts);
                continue;
            }
            let stretch = match self.normalizer() {
                None => Cow::Borrowed(&text[range]),
                Some(normalizer) => normalizer.apply(Cow::Borrowed(&text[range]))?,
            };
            if self.added().none_normalized() {
                self.append_stretch(&stretch, ids, &mut starts)?;
                continue;
            }
            inner.clear();
            self.added().split_normalized(&stretch, &mut inner);
            for (range, id) in inner.drain(..) {
                match id {
                    Some(id) => push_added(id, ids, &mut starts),
                    None => self.append_stretch(&stretch[range], ids, &mut starts)?,
                }
            }
        }
        if let Some(starts) = starts {
            let end = |index: usize| starts.get(index).map_or(ids.len(), |&(start, _)| start);
            let is_added: Vec<bool> = starts.iter().map(|&(_, is_added)| is_added).collect();
            let count = |index: usize| Ok(end(index + 1) - end(index));
            let kept = limited(&is_added, limit, count)?;
            let (start, end) = (end(kept.start), end(kept.end));
            ids.truncate(end);
            ids.drain(from..start);
        }
        Ok(())
    }

    /// A stretch without added tokens.
    fn append_stretch(
        &self,
        stretch: &str,
        ids: &mut Vec<u32>,
        starts: &mut Option<Starts>,
    ) -> Result<()> {
        let text = match self.scanned() {
            Some(true) if !stretch.is_empty() && !stretch.starts_with(' ') => {
                Cow::Owned(format!(" {stretch}"))
            }
            _ => Cow::Borrowed(stretch),
        };
        let from = ids.len();
        match starts {
            None => self.model().encode(&text, ids)?,
            Some(starts) => {
                let mut pieces = Pieces { ids: std::mem::take(ids), starts: Vec::new() };
                self.model().encode(&text, &mut pieces)?;
                *ids = pieces.ids;
                starts.extend(pieces.starts.iter().map(|&(_, first)| (first, false)));
            }
        }
        self.model().finish(&mut ids[from..]);
        Ok(())
    }
}

fn push_added(id: u32, ids: &mut Vec<u32>, starts: &mut Option<Starts>) {
    if let Some(starts) = starts {
        starts.push((ids.len(), true));
    }
    ids.push(id);
}
