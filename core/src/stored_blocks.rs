//! Prompts cut into blocks for a store outside of the process: keys and values, which are checked before
//! they are used.
//!
//! A block ends where the ids before and after do not depend on each other. Its key is a hash of its
//! first bytes and of the key before; its value tells how far it goes. So a reader, who follows a prompt
//! from value to value, neither looks for the ends of blocks nor encodes. Keys and values change with
//! [`hash_bytes`] and with this file: then the version in `bpe_engine/serving/conversation_cache.py` must.

use std::borrow::Cow;

use crate::engine::Engine;
use crate::engine::conversation::normalize_runs;
use crate::engine::segments::{Fixed, FixedIds, Prompt};
use crate::error::Result;
use crate::hash::{fold, hash_bytes};
use crate::memory::{append, collected, push, reserve};
use crate::normalize::Normalization;
use crate::prefix_cache::{End, Sizes, block_end, encode_part, searched};
use crate::request::Request;

/// The bytes at the beginning of a block that are its key, and the fewest that it has.
const KEYED: usize = 2048;

const SIZES: Sizes = Sizes { spacing: 8192, least: KEYED, given: 0 };

/// The most bytes of the text of a block, and the most given ids.
const MOST: usize = 1 << 24;

/// What a value begins with: the root, a checksum of the ids, and the lengths in bytes of the text and of
/// the fixed places.
const HEADER: usize = 32;

/// A hash of a tokenizer and a version, or of a beginning of a prompt for that tokenizer.
pub type Key = [u64; 2];

/// A prompt, of which a beginning is known.
#[derive(Debug)]
pub struct StoredPrompt<'a> {
    text: Cow<'a, str>,
    fixed: Vec<Fixed>,
    root: Key,
    /// The key of the last known block, and its end.
    key: Key,
    end: End,
    /// The ids up to there.
    ids: Vec<u32>,
}

/// A block that was encoded, and its key.
pub type NewBlock = (Key, Vec<u8>);

impl<'a> StoredPrompt<'a> {
    /// Reads a text with the special tokens of `request`.
    pub fn of_text<E: Engine + ?Sized>(
        engine: &E,
        text: &'a str,
        request: &Request,
        root: Key,
    ) -> Result<Self> {
        // The empty name, which every text contains, may be disallowed.
        request.check(engine.special_tokens()?, "")?;
        let (text, fixed) = searched(engine, text, request)?;
        Ok(Self { text, fixed, root, key: root, end: End::default(), ids: Vec::new() })
    }

    /// Reads a prompt. The ids of its text must depend on its text alone
    /// ([`Engine::ignores_segments`]).
    pub fn of_prompt<E: Engine + ?Sized>(engine: &E, prompt: Prompt, root: Key) -> Result<Self> {
        let (text, fixed) = prompt.into_parts();
        let (text, fixed) = match engine.normalization() {
            Normalization::None => (text, fixed),
            form => normalize_runs(form, &text, fixed)?,
        };
        let end = End::default();
        Ok(Self { text: text.into(), fixed, root, key: root, end, ids: Vec::new() })
    }

    /// Returns the bytes that are not known.
    pub fn rest(&self) -> usize {
        self.text.len() - self.end.at
    }

    /// Returns the number of ids that are known.
    pub fn known(&self) -> usize {
        self.ids.len()
    }

    /// Returns the key of the next block; `None` if too little text is left.
    pub fn next_key(&self) -> Option<Key> {
        let beginning = self.text.as_bytes().get(self.end.at..self.end.at + KEYED)?;
        let hash = hash_bytes(beginning, self.key);
        Some([hash, fold(hash ^ self.key[0], self.key[1])])
    }

    /// Takes the value of the next key, unless it is that of another text or damaged.
    pub fn take<E: Engine + ?Sized>(&mut self, engine: &E, key: Key, value: &[u8]) -> Result<bool> {
        let Some((end, ids)) = self.checked(engine, value)? else { return Ok(false) };
        reserve(&mut self.ids, ids.len() / 4)?;
        self.ids.extend(words(ids));
        (self.key, self.end) = (key, end);
        Ok(true)
    }

    /// Returns the end of a block and the bytes of its ids, if it is the next of the prompt.
    fn checked<'v, E: Engine + ?Sized>(
        &self,
        engine: &E,
        value: &'v [u8],
    ) -> Result<Option<(End, &'v [u8])>> {
        let Some((header, value)) = value.split_at_checked(HEADER) else { return Ok(None) };
        let mut fields = header.chunks_exact(8).map(|field| field.try_into().unwrap_or([0; 8]));
        let [one, other, sum, sizes] = [0; 4].map(|_: u8| fields.next().unwrap_or([0; 8]));
        let [text, fixed] = halves(u64::from_ne_bytes(sizes));
        let Some((text, value)) = value.split_at_checked(text) else { return Ok(None) };
        let Some((fixed, ids)) = value.split_at_checked(fixed) else { return Ok(None) };
        let at = self.end.at + text.len();
        let is_same = [one, other].map(u64::from_ne_bytes) == self.root
            && self.text.as_bytes().get(self.end.at..at) == Some(text)
            && self.text.is_char_boundary(at)
            && text.len() >= KEYED
            && ids.len().is_multiple_of(4)
            && u64::from_ne_bytes(sum) == hash_bytes(ids, self.root);
        if !is_same {
            return Ok(None);
        }
        let mut end = End { at, index: self.end.index };
        while self.fixed.get(end.index).is_some_and(|next| next.start < at) {
            end.index += 1;
        }
        // Given ids at the end may belong to it or not.
        loop {
            if written(&self.fixed[self.end.index..end.index], self.end.at)? == fixed {
                let is_cut = self.is_cut(engine, end);
                return Ok(is_cut.then_some((end, ids)));
            }
            match self.fixed.get(end.index) {
                Some(next) if next.start == at => end.index += 1,
                _ => return Ok(None),
            }
        }
    }

    /// Returns true if the ids before and after a place do not depend on each other.
    fn is_cut<E: Engine + ?Sized>(&self, engine: &E, end: End) -> bool {
        let inside = &self.fixed[self.end.index..end.index];
        if inside.iter().any(|fixed| fixed.end > end.at) {
            return false;
        }
        let touches = inside.last().is_some_and(|fixed| fixed.end == end.at)
            || self.fixed.get(end.index).is_some_and(|next| next.start == end.at);
        let before = self.text[..end.at].chars().next_back().map_or(0, char::len_utf8);
        let after = self.text[end.at..].chars().next().map_or(0, char::len_utf8);
        touches
            || after == 0
            || engine.safe_cut(&self.text[end.at - before..end.at + after], before) == Some(before)
    }

    /// Encodes the rest. Returns all ids, and the blocks that were not known; `None` for a prompt without
    /// any block.
    pub fn encode<E: Engine + ?Sized>(
        mut self,
        engine: &E,
    ) -> Result<Option<(Vec<u32>, Vec<NewBlock>)>> {
        let mut blocks = Vec::new();
        loop {
            let End { at: start, index: first } = self.end;
            let (end, is_closed) = block_end(engine, &self.text, &self.fixed, self.end, &SIZES);
            let given: usize =
                self.fixed[first..end.index].iter().map(|fixed| fixed.ids.as_slice().len()).sum();
            let is_block = is_closed && (KEYED..MOST).contains(&(end.at - start)) && given < MOST;
            if !is_block && self.ids.is_empty() {
                return Ok(None);
            }
            let end =
                if is_block { end } else { End { at: self.text.len(), index: self.fixed.len() } };
            let (from, fixed) = (self.ids.len(), &self.fixed[first..end.index]);
            let is_first = start == 0 && first == 0;
            encode_part(engine, &self.text, fixed, start..end.at, is_first, &mut self.ids)?;
            if !is_block {
                return Ok(Some((self.ids, blocks)));
            }
            let (ids, fixed) = (&self.ids[from..], written(fixed, start)?);
            let ids: &[u8] = bytemuck::cast_slice(ids);
            let sizes = (end.at - start) as u64 | (fixed.len() as u64) << 32;
            let mut value = Vec::new();
            reserve(&mut value, HEADER + end.at - start + fixed.len() + ids.len())?;
            for field in [self.root[0], self.root[1], hash_bytes(ids, self.root), sizes] {
                value.extend_from_slice(&field.to_ne_bytes());
            }
            append(&mut value, &self.text.as_bytes()[start..end.at])?;
            append(&mut value, &fixed)?;
            append(&mut value, ids)?;
            let Some(key) = self.next_key() else { return Ok(Some((self.ids, blocks))) };
            push(&mut blocks, (key, value))?;
            (self.key, self.end) = (key, end);
        }
    }
}

/// Writes fixed places, relative to byte `start`.
fn written(fixed: &[Fixed], start: usize) -> Result<Vec<u8>> {
    let numbers = fixed.iter().flat_map(|fixed| {
        let ids = fixed.ids.as_slice();
        let is_given = u32::from(matches!(fixed.ids, FixedIds::Given(_)));
        let place = [fixed.start - start, fixed.end - start, ids.len()].map(|it| it as u32);
        place.into_iter().chain([is_given]).chain(ids.iter().copied())
    });
    collected(numbers.flat_map(u32::to_ne_bytes))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
}

/// Returns the lower and the upper half.
fn halves(number: u64) -> [usize; 2] {
    [number & u64::from(u32::MAX), number >> 32].map(|half| half as usize)
}
