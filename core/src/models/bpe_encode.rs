//! Encodes runs and pieces of text by byte pair encoding.

use crate::Request;
use crate::polling::poll;
use crate::split::Piece;

use super::Questions;
use super::bpe::{Bpe, Covering};
use super::characters::Characters;
use super::cuts::Cut;
use crate::components::bytes::{spaced, swapped, text_length, text_of};
use crate::components::offsets::joined;
use crate::components::split::{Plan, Split};
use crate::error::Result;

impl Bpe {
    /// Implements [`Bpe::encode_normalized`] over bytes.
    pub(super) fn append_bytes(&self, text: &str, split: &Split, ids: &mut Vec<u32>) -> Result<()> {
        let is_prefixed = matches!(split.plan(), Plan::Pattern { prefix_space: true, .. });
        if self.needs_list(text.as_bytes()) || is_prefixed && self.needs_list(b" ") {
            let append = |piece: &str| {
                self.each_token(piece, &mut |id, _| {
                    ids.push(id);
                    Ok(())
                })
            };
            return split.each_piece(text, append);
        }
        let from = ids.len();
        match split.plan() {
            _ if text.is_empty() => {}
            Plan::Pattern { prefix_space: true, .. } if !text.starts_with(' ') => {
                self.core.encode(&joined(" ", text)?, &Request::ORDINARY, ids)?;
            }
            Plan::Pattern { .. } => self.core.encode(text, &Request::ORDINARY, ids)?,
            Plan::Steps(steps) => {
                let pieces = steps.cut(text)?.into_iter();
                let pieces = pieces.map(|range| Piece { start: range.start, end: range.end });
                self.core.encode_pieces(text, &pieces.collect::<Vec<_>>(), ids)?;
            }
            Plan::Metaspace(_) | Plan::Marked(..) | Plan::Rewritten => {}
        }
        self.finish(&mut ids[from..]);
        Ok(())
    }

    /// Implements [`Bpe::encode_normalized`] over characters.
    pub(super) fn append_characters(
        &self,
        text: &str,
        is_first: bool,
        split: &Split,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let mut append = |text: &str| self.append_swapped(text, ids);
        match split.plan() {
            Plan::Metaspace(metaspace) => {
                let is_marked = text.starts_with(' ');
                let text = spaced(text, !is_marked && metaspace.prepends(text, is_first))?;
                if !metaspace.split && !text.is_empty() {
                    return append(&text);
                }
                metaspace.parts(&text, ' ')?.into_iter().try_for_each(|part| append(&text[part]))
            }
            Plan::Steps(steps) => {
                let parts = steps.cut(text)?.into_iter();
                parts.map(|part| swapped(&text[part])).try_for_each(|text| append(&text?))
            }
            Plan::Pattern { .. } | Plan::Marked(..) | Plan::Rewritten => Ok(()),
        }
    }

    /// Implements [`Bpe::each_token`] for a piece that represents bytes.
    pub(super) fn encode_bytes(&self, piece: &[u8], found: Covering<'_>) -> Result<()> {
        if let Some(listed) = &self.table.listed
            && self.needs_list(piece)
        {
            if self.table.header.ignore_merges {
                let text = text_of(piece);
                if let Some(id) = self.token_to_id(&text) {
                    return found(id, text.len());
                }
            }
            return listed.merge(piece, found);
        }
        let mut ids = Vec::new();
        self.core.encode_piece(piece, &mut ids)?;
        for &id in &ids {
            let bytes = self.core.token_bytes(id).unwrap_or_default();
            found(self.file_id(id), text_length(bytes))?;
        }
        Ok(())
    }

    /// Implements [`Bpe::each_token`] over characters.
    pub(super) fn encode_characters(
        &self,
        characters: &Characters,
        piece: &str,
        found: Covering<'_>,
    ) -> Result<()> {
        let swapped = swapped(piece)?;
        if let Some(id) = self.whole(&swapped)? {
            return found(id, piece.len());
        }
        let kept = characters.without_dropped(&swapped);
        let text = kept.as_deref().unwrap_or(&swapped);
        let mut ids = Vec::new();
        characters.cutter().each_part(text, |part| match part {
            Cut::Known(range) => {
                ids.clear();
                self.append_known(&text[range], &mut ids)?;
                let length = |id| self.id_to_token(id).map_or(0, |text| text.len());
                ids.iter().try_for_each(|&id| found(id, length(id)))
            }
            Cut::Unknown(range) => characters.each_unknown(&text[range], &mut *found),
        })
    }

    /// Returns the token that equals a whole [swapped] piece, if the model looks up whole pieces.
    fn whole(&self, piece: &str) -> Result<Option<u32>> {
        if !self.table.header.ignore_merges {
            return Ok(None);
        }
        Ok(self.token_to_id(&swapped(piece)?))
    }

    /// Appends the ids of a [swapped] piece over characters.
    pub(super) fn append_swapped(&self, piece: &str, ids: &mut Vec<u32>) -> Result<()> {
        if let Some(id) = self.whole(piece)? {
            ids.push(id);
            return Ok(());
        }
        let Some(characters) = self.characters() else { return Ok(()) };
        let kept = characters.without_dropped(piece);
        let text = kept.as_deref().unwrap_or(piece);
        if !self.table.is_core {
            return characters.cutter().each_part(text, |part| match part {
                Cut::Known(range) => self.append_known(&text[range], ids),
                Cut::Unknown(range) => characters.each_unknown(&text[range], |id, _| {
                    ids.push(id);
                    Ok(())
                }),
            });
        }
        let mut cuts = characters.cutter().cuts(text, self.table.with_bytes.is_some());
        loop {
            let from = ids.len();
            self.core.encode_cut(text, |batch| Ok(cuts.fill(batch)), ids)?;
            self.finish(&mut ids[from..]);
            let Some(range) = cuts.unknown() else { return Ok(()) };
            poll(range.len())?;
            characters.each_unknown(&text[range], |id, _| {
                ids.push(id);
                Ok(())
            })?;
        }
    }

    /// Appends the ids of a nonempty piece of characters that are tokens.
    fn append_known(&self, piece: &str, ids: &mut Vec<u32>) -> Result<()> {
        let from = ids.len();
        match &self.table.listed {
            Some(listed) if !self.table.is_core => listed.merge(piece.as_bytes(), |id, _| {
                ids.push(id);
                Ok(())
            }),
            _ => {
                poll(piece.len())?;
                self.core.encode_piece(piece.as_bytes(), ids)?;
                self.finish(&mut ids[from..]);
                Ok(())
            }
        }
    }

    /// Converts ids of the core to ids of the file.
    fn finish(&self, ids: &mut [u32]) {
        let table = &*self.table;
        let id_of = table.with_bytes.as_ref().or(table.ids.as_ref().map(|ids| &ids.id_of));
        if let Some(id_of) = id_of {
            for id in ids {
                *id = id_of[*id as usize];
            }
        }
    }
}
