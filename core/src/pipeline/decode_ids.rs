//! Decodes ids to text.

use std::borrow::Cow;
use std::sync::Arc;

use crate::memory::{append, ask_for, with_capacity};
use crate::once::OnceBox;
use crate::polling::poll;
use crate::stream_pool::StreamTables;
use crate::token_table::{TokenKind, TokenTable};

use crate::components::bytes::byte_of;
use crate::components::decode::{ByteRuns, Decoder, append_raw_bytes, joined_with, lossy_text};
use crate::error::{Error, Result};
use crate::pipeline::assembly::{Pipeline, Tables};

/// Maximum number of leading ids whose whole text a decoder may drop.
const MAX_DROPPED: usize = 256;

/// Number of ids for whose decoding a table of all tokens is built.
const LONG_LIST: usize = 4096;

/// Memory in bytes for a token in a list and the copy that a decoder makes.
const TOKEN: usize = 128;

impl Pipeline {
    /// Decodes ids to text. Skips unknown ids and, with `skip_special_tokens`, special tokens.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        if let Some(Decoder::ByteLevel) = self.decoder() {
            return lossy_text(self.decode_bytes(ids, skip_special_tokens)?);
        }
        let skipped = |text: &str| skip_special_tokens && self.added().is_special(text);
        // Tokens take many small allocations, so check their total size first.
        ask_for(ids.len().saturating_mul(TOKEN))?;
        let tokens = ids.iter().filter_map(|&id| self.id_to_token(id));
        let tokens = match self.decoder() {
            // Bytes before and after a piece without text are decoded separately.
            Some(Decoder::SentencePiece(_)) => {
                tokens.map(|it| if skipped(&it) { String::new() } else { it }).collect::<Vec<_>>()
            }
            _ => tokens.filter(|token| !skipped(token)).collect::<Vec<_>>(),
        };
        match self.decoder() {
            Some(decoder) => decoder.decode(tokens),
            None => joined_with(&tokens, " "),
        }
    }

    /// Decodes ids to bytes; only for the decoder `ByteLevel`. Skips unknown ids, except that a
    /// tokenizer made from an encoding fails on them.
    pub fn decode_bytes(&self, ids: &[u32], skip_special_tokens: bool) -> Result<Vec<u8>> {
        self.check_byte_level("bytes that are not UTF-8 are shown as U+FFFD; leave out `errors`")?;
        if let Some(direct) = self.direct() {
            return self.decode_plain(direct, ids, skip_special_tokens);
        }
        let mut bytes = with_capacity(ids.len().saturating_mul(5))?;
        let made = self.table.get().map(|tables| &tables.after);
        let table = if ids.len() < LONG_LIST { made } else { self.token_table().ok() };
        for &id in ids {
            let before = bytes.len();
            let kind = match table {
                Some(table) => {
                    bytes.extend_from_slice(table.get(id));
                    table.kind(id)
                }
                None => self.append_raw_token(id, &mut bytes)?,
            };
            if kind == TokenKind::Special && skip_special_tokens {
                bytes.truncate(before);
            }
        }
        Ok(bytes)
    }

    /// Fails unless the decoder is `ByteLevel`.
    fn check_byte_level(&self, reason: &str) -> Result<()> {
        match self.decoder() {
            Some(Decoder::ByteLevel) => Ok(()),
            _ => Err(Error::refused("decoder", format!("under any but ByteLevel, {reason}"))),
        }
    }

    /// Appends the bytes that an id adds to a text under the decoder `ByteLevel`, and returns the
    /// kind of the id. For tokenizers of files only.
    fn append_raw_token(&self, id: u32, bytes: &mut Vec<u8>) -> Result<TokenKind> {
        let other = match (
            self.added().text(id),
            self.model().bpe_by_ranks().and_then(|bpe| bpe.token_bytes(id)),
        ) {
            (Some(text), _) => Cow::Borrowed(text),
            (None, Some(token)) => {
                bytes.extend_from_slice(token);
                return Ok(TokenKind::Ordinary);
            }
            (None, None) => match self.model().id_to_token(id) {
                Some(text) => Cow::Owned(text),
                None => return Ok(TokenKind::Absent),
            },
        };
        append_raw_bytes(&other, bytes)?;
        Ok(if self.added().is_special(&other) { TokenKind::Special } else { TokenKind::Ordinary })
    }

    /// Like [`Pipeline::append_raw_token`], for any other decoder.
    fn append_decoded(&self, id: u32, bytes: &mut Vec<u8>) -> Result<TokenKind> {
        let Some(token) = self.id_to_token(id) else { return Ok(TokenKind::Absent) };
        let kind =
            if self.added().is_special(&token) { TokenKind::Special } else { TokenKind::Ordinary };
        if self.decoder().is_none() {
            // Decoding joins tokens with spaces.
            bytes.extend_from_slice(b" ");
            bytes.extend_from_slice(token.as_bytes());
            return Ok(kind);
        }
        let decoder = self.decoder().map(|decoder| decoder.bytes_after_others(&token));
        let Some(decoded) = decoder.transpose()?.flatten() else {
            return Err(Error::unsupported(
                "decoder",
                "one under which an id has no bytes of its own",
            ));
        };
        bytes.extend_from_slice(&decoded.0);
        Ok(kind)
    }

    /// Returns the token tables for streams, which emit text before later ids are known: a table
    /// for ids after other ids and, if ids have different text at the start, a table for the first
    /// id. Fails for a decoder under which an id may change earlier text.
    pub fn stream_tables(&self) -> Result<StreamTables> {
        let skips_unknown = self.skips_unknown_ids();
        if let Some(Decoder::ByteLevel) = self.decoder() {
            let after = self.token_table()?.clone();
            return Ok(StreamTables { after, first: None, skips_unknown });
        }
        if !self.decoder().is_none_or(Decoder::keeps_tokens) {
            let reason = "under this one an id may change text before it, which a pool has given away; \
                          decode with a DecodeStream";
            return Err(Error::refused("decoder", reason));
        }
        let tables = self.tables()?;
        let first = tables.first.get_or_try_init(|| {
            self.table_of(|id, bytes| self.append_decoded_first(id, bytes)).map(Box::new)
        })?;
        let (after, first) = (tables.after.clone(), Some(first.clone()));
        Ok(StreamTables { after, first, skips_unknown })
    }

    /// Like [`Pipeline::append_raw_token`], at the start of a text, for any other decoder.
    fn append_decoded_first(&self, id: u32, bytes: &mut Vec<u8>) -> Result<TokenKind> {
        let Some(token) = self.id_to_token(id) else { return Ok(TokenKind::Absent) };
        let kind =
            if self.added().is_special(&token) { TokenKind::Special } else { TokenKind::Ordinary };
        let text = match self.decoder() {
            Some(decoder) => decoder.decode(vec![token])?,
            None => token,
        };
        bytes.extend_from_slice(text.as_bytes());
        Ok(kind)
    }

    /// Returns the bytes that each id adds after other ids, computed on first use. Fails if the
    /// decoder lets other ids change these bytes.
    pub fn token_table(&self) -> Result<&Arc<TokenTable>> {
        match self.direct() {
            Some(direct) => direct.token_table(),
            None => Ok(&self.tables()?.after),
        }
    }

    fn tables(&self) -> Result<&Tables> {
        self.table.get_or_try_init(|| {
            let after = self.table_of(|id, bytes| match self.decoder() {
                Some(Decoder::ByteLevel) => self.append_raw_token(id, bytes),
                _ => self.append_decoded(id, bytes),
            })?;
            Ok(Box::new(Tables { after, first: OnceBox::new() }))
        })
    }

    /// Builds a table of the bytes that `append` appends for each id.
    fn table_of(
        &self,
        append: impl Fn(u32, &mut Vec<u8>) -> Result<TokenKind>,
    ) -> Result<Arc<TokenTable>> {
        let added = self.added().by_id().last().map(|&(id, _)| id);
        let largest = added.max(self.model().max_id());
        let mut table = TokenTable::with_largest_id(largest)?;
        let mut bytes = Vec::new();
        for id in 0..largest.map_or(0, |id| id + 1) {
            bytes.clear();
            let kind = append(id, &mut bytes)?;
            table.push(&bytes, kind)?;
        }
        let unspelled = self.model().unspelled();
        if let Some(id) = unspelled.filter(|&id| self.added().token(id).is_none()) {
            table.set_unspelled(id);
        }
        Ok(Arc::new(table))
    }

    /// Whether decoding skips ids without a token rather than failing.
    pub fn skips_unknown_ids(&self) -> bool {
        self.direct().is_none()
    }

    /// Returns true if `id` is the id of a token.
    pub fn has_token(&self, id: u32) -> bool {
        if let Some(direct) = self.direct() {
            return direct.token_bytes(id).is_some();
        }
        self.id_to_token(id).is_some()
    }

    /// Appends the bytes that an id adds after other ids.
    pub fn append_token(&self, id: u32, bytes: &mut Vec<u8>) -> Result<()> {
        let token = match self.direct() {
            Some(direct) => direct.token_bytes(id).ok_or(Error::UnknownId(id.into()))?,
            None => self.token_table()?.get(id),
        };
        bytes.extend_from_slice(token);
        Ok(())
    }

    /// Returns how many leading bytes decoding drops from `bytes`, the bytes of `ids`.
    pub fn dropped_prefix(&self, ids: &[u32], bytes: &[u8]) -> Result<usize> {
        if let Some(Decoder::ByteLevel) = self.decoder() {
            return Ok(0);
        }
        let is_byte =
            |id: &u32| self.id_to_token(*id).is_some_and(|token| byte_of(&token).is_some());
        let (mut read, mut without_text) = (Vec::new(), 0);
        // Decoding drops ids without a token.
        let mut known = ids.iter().enumerate().filter(|(_, id)| self.id_to_token(**id).is_some());
        let mut next = known.next();
        while let Some((place, id)) = next {
            next = known.next();
            self.append_token(*id, &mut read)?;
            // Adjacent bytes are decoded together.
            if is_byte(id) && next.is_some_and(|(_, id)| is_byte(id)) {
                continue;
            }
            let text = self.decode(&ids[..=place], false)?;
            if text.is_empty() && place < MAX_DROPPED {
                without_text = read.len();
                continue;
            }
            return match std::str::from_utf8(&read) {
                Ok(all) if all.ends_with(&text) => Ok(all.len() - text.len()),
                // Invalid bytes become U+FFFD, and no such byte is dropped.
                Err(_) => Ok(without_text),
                Ok(_) => {
                    Err(Error::refused("decoder", "it changes more than the beginning of a text"))
                }
            };
        }
        Ok(bytes.len())
    }

    /// Returns how decoding shows tokens of single bytes, which are decoded in runs; `None` if the
    /// bytes of all tokens are decoded together, with U+FFFD for each incomplete character.
    pub fn byte_runs(&self) -> Option<ByteRuns> {
        self.decoder().and_then(Decoder::byte_runs)
    }

    /// Returns true if an id is part of a [byte run](Pipeline::byte_runs).
    pub fn is_byte(&self, id: u32) -> Result<bool> {
        if self.token_table()?.get(id).len() != 1 {
            return Ok(false);
        }
        let decoded = self.decoder().zip(self.id_to_token(id));
        let decoded = decoded.map(|(decoder, token)| decoder.bytes_after_others(&token));
        Ok(decoded.transpose()?.flatten().is_some_and(|(_, is_byte)| is_byte))
    }

    /// Appends the decoded bytes of `ids`.
    pub fn append_bytes(&self, ids: &[u32], bytes: &mut Vec<u8>) -> Result<()> {
        if let Some(direct) = self.direct() {
            return direct.append_bytes(ids, bytes);
        }
        match self.decoder() {
            Some(Decoder::ByteLevel) => {
                append(bytes, &self.decode_bytes(ids, false)?)?;
                Ok(())
            }
            decoder if decoder.is_none_or(Decoder::keeps_tokens) => {
                append(bytes, self.decode(ids, false)?.as_bytes())?;
                Ok(())
            }
            _ => {
                append(bytes, &self.decode_with_starts(ids)?.0)?;
                Ok(())
            }
        }
    }

    /// Returns the bytes that ids append to earlier text, and where the bytes of each id start.
    pub(crate) fn bytes_after_others(&self, ids: &[u32]) -> Result<(Vec<u8>, Vec<usize>)> {
        let (mut bytes, mut starts) = (Vec::new(), with_capacity(ids.len())?);
        for &id in ids {
            poll(1)?;
            starts.push(bytes.len());
            self.append_token(id, &mut bytes)?;
        }
        Ok((bytes, starts))
    }

    /// Decodes `ids` to bytes, and returns where the bytes of each id start.
    pub fn decode_with_starts(&self, ids: &[u32]) -> Result<(Vec<u8>, Vec<usize>)> {
        let (mut bytes, mut starts) = self.bytes_after_others(ids)?;
        let first = self.dropped_prefix(ids, &bytes)?;
        if first > 0 {
            bytes.drain(..first);
            starts.iter_mut().for_each(|start| *start = start.saturating_sub(first));
        }
        Ok((bytes, starts))
    }
}
