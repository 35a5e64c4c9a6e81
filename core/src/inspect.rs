//! Inspects text and ids: pieces, and whether ids are canonical.

use std::borrow::Cow;
use std::ops::Range;

use crate::encoding::Encoding;
use crate::error::Result;
use crate::memory::{push, with_capacity};
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

    /// Returns the special tokens in `text`, leftmost-longest: their names, and their bytes in the
    /// given text.
    pub fn find_special(&self, text: &str) -> Result<Vec<(&str, Range<usize>)>> {
        let (normal, alignment) = self.normalization().align(text)?;
        let all = self.special_tokens().all();
        let mut spans = Vec::new();
        let mut from = 0;
        while let Some(found) = all.find(&normal, from) {
            let name = all.names()[found.name].as_str();
            push(&mut spans, (name, alignment.original(found.start..found.end)))?;
            from = found.end;
        }
        Ok(spans)
    }

    /// Returns true if encoding the text of `ids` gives `ids`, with the ids of special tokens as
    /// special tokens and the text between them as ordinary text.
    pub fn is_canonical(&self, ids: &[u32]) -> Result<bool> {
        let bytes = self.decode_bytes(ids)?;
        let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(false) };
        if matches!(self.normalization().apply(text)?, Cow::Owned(normal) if normal != text) {
            return Ok(false);
        }
        let is_special = |id: &u32| self.vocabulary().rank_of_id(*id).is_none();
        for stretch in ids.split(is_special) {
            let Ok(text) = String::from_utf8(self.decode_bytes(stretch)?) else {
                return Ok(false);
            };
            let mut encoded = with_capacity(stretch.len())?;
            self.encode_normal(&text, &Selection::None, &mut encoded)?;
            if encoded != stretch {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
