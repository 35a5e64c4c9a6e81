//! Prompts cut into blocks for a store outside of the process: keys and values, which are checked before
//! they are used.
//!
//! A block ends where the ids before and after do not depend on each other. Its key is a hash of its
//! first bytes and of the key before; its value tells how far it goes. So a reader, who follows a prompt
//! from value to value, neither looks for the ends of blocks nor encodes. Keys and values change with
//! `hash_bytes` and with this file: then the version in `bpe_engine/serving/conversation_cache.py` must.

use std::borrow::Cow;

use crate::engine::Engine;
use crate::engine::conversation::normalize_runs;
use crate::engine::segments::{Fixed, FixedIds, Prompt};
use crate::error::Result;
use crate::hash::{FIXED_SEEDS, fold, hash_bytes};
use crate::memory::{collected, push, reserve};
use crate::normalize::Normalization;
use crate::prefix_cache::{
    End, Sizes, block_end, encode_part, given_cut, is_given_cut, names, searched,
};
use crate::request::Request;

/// The bytes at the beginning of a block that are its key, and the fewest that it has.
const KEYED: usize = 2048;

/// The fewest bytes of a block that ends inside text.
const SPACING: usize = 8192;

/// The bytes before the end of a prompt in which a shorter last block ends.
const TAIL: usize = 512;

/// The most bytes of the text of a block, and the most given ids.
const MOST: usize = 1 << 24;

/// The bytes before the text of a value: the root, a checksum of the ids, and the lengths in bytes of the
/// text and of the fixed places.
const HEADER: usize = 32;

/// A hash of a tokenizer and a version, or of a beginning of a prompt for that tokenizer.
pub type Key = [u64; 2];

/// A prompt, of which a beginning is known.
#[derive(Debug)]
pub struct StoredPrompt<'a> {
    text: Cow<'a, str>,
    kind: Kind,
    root: Key,
    /// The key of the last known block, and its end.
    key: Key,
    end: End,
    /// The ids up to there.
    ids: Vec<u32>,
    /// Whether another block has the next key.
    has_rival: bool,
}

#[derive(Debug)]
enum Kind {
    /// Given text, whose blocks are texts of their own: known ones are neither normalized nor searched.
    Given,
    /// Text with the places of its special tokens, between which it is normalized.
    Fixed(Vec<Fixed>, Normalization),
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
        let cut = match names(engine, request)? {
            Some(names) => given_cut(engine, text, SPACING, &names),
            None => None,
        };
        if cut.is_some() {
            return Ok(Self::new(text.into(), Kind::Given, root.map(|half| !half)));
        }
        let (text, fixed) = searched(engine, text, request)?;
        Ok(Self::new(text, Kind::Fixed(fixed, Normalization::None), root))
    }

    /// Reads a prompt. The ids of its text must depend on its text alone
    /// ([`Engine::ignores_segments`]).
    pub fn of_prompt<E: Engine + ?Sized>(engine: &E, prompt: Prompt, root: Key) -> Self {
        let (text, fixed) = prompt.into_parts();
        Self::new(text.into(), Kind::Fixed(fixed, engine.normalization()), root)
    }

    fn new(text: Cow<'a, str>, kind: Kind, root: Key) -> Self {
        let (end, ids, has_rival) = (End::default(), Vec::new(), false);
        Self { text, kind, root, key: root, end, ids, has_rival }
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
    pub fn take<E: Engine + ?Sized>(
        &mut self,
        engine: &E,
        request: &Request,
        key: Key,
        value: &[u8],
    ) -> Result<bool> {
        let Some((end, ids)) = self.checked(engine, request, value)? else {
            self.has_rival = true;
            return Ok(false);
        };
        let (start, count) = (self.ids.len(), ids.len() / size_of::<u32>());
        // The first block tells how many ids there will be, about.
        let likely = if start == 0 { self.text.len() / (end.at / count.max(1)).max(1) } else { 0 };
        reserve(&mut self.ids, count.max(likely))?;
        self.ids.resize(start + count, 0);
        bytemuck::cast_slice_mut(&mut self.ids[start..]).copy_from_slice(ids);
        (self.key, self.end) = (key, end);
        Ok(true)
    }

    /// Returns the end of a block and the bytes of its ids, if it is the next of the prompt.
    fn checked<'v, E: Engine + ?Sized>(
        &self,
        engine: &E,
        request: &Request,
        value: &'v [u8],
    ) -> Result<Option<(End, &'v [u8])>> {
        let Some((header, value)) = value.split_first_chunk::<HEADER>() else { return Ok(None) };
        let [one, other, sum, sizes] = bytemuck::cast::<[u8; HEADER], [u64; 4]>(*header);
        let [text, fixed] = [sizes & u64::from(u32::MAX), sizes >> 32].map(|half| half as usize);
        let Some((text, value)) = value.split_at_checked(text) else { return Ok(None) };
        let Some((fixed, ids)) = value.split_at_checked(fixed) else { return Ok(None) };
        let at = self.end.at + text.len();
        let is_same = [one, other] == self.root
            && self.text.as_bytes().get(self.end.at..at) == Some(text)
            && self.text.is_char_boundary(at)
            && text.len() >= KEYED
            && ids.len().is_multiple_of(size_of::<u32>())
            && sum == checksum(ids, self.root);
        if !is_same {
            return Ok(None);
        }
        let Kind::Fixed(places, _) = &self.kind else {
            let rest = &self.text[self.end.at..];
            let is_cut = text.len() == rest.len()
                || match names(engine, request)? {
                    Some(names) => {
                        self.is_safe(engine, at) && is_given_cut(engine, rest, text.len(), &names)
                    }
                    None => false,
                };
            return Ok((is_cut && fixed.is_empty()).then_some((End { at, index: 0 }, ids)));
        };
        let mut end = End { at, index: self.end.index };
        while places.get(end.index).is_some_and(|next| next.start < at) {
            end.index += 1;
        }
        // Given ids at the end may belong to it or not.
        let mut size: usize = places[self.end.index..end.index].iter().map(written_size).sum();
        while size < fixed.len()
            && let Some(next) = places.get(end.index).filter(|next| next.start == at)
        {
            size += written_size(next);
            end.index += 1;
        }
        if written(&places[self.end.index..end.index], self.end.at)? != fixed {
            return Ok(None);
        }
        Ok(self.is_cut(engine, end).then_some((end, ids)))
    }

    /// Returns true if text can be cut between the characters at a byte.
    fn is_safe<E: Engine + ?Sized>(&self, engine: &E, at: usize) -> bool {
        let before = self.text[..at].chars().next_back().map_or(0, char::len_utf8);
        let after = self.text[at..].chars().next().map_or(0, char::len_utf8);
        engine.safe_cut(&self.text[at - before..at + after], before) == Some(before)
    }

    /// Returns true if the ids before and after a place do not depend on each other.
    fn is_cut<E: Engine + ?Sized>(&self, engine: &E, end: End) -> bool {
        let Kind::Fixed(places, form) = &self.kind else { return false };
        let inside = &places[self.end.index..end.index];
        inside.iter().all(|fixed| fixed.end <= end.at)
            && (inside.last().is_some_and(|fixed| fixed.end == end.at)
                || places.get(end.index).is_some_and(|next| next.start == end.at)
                || end.at == self.text.len()
                || *form == Normalization::None && self.is_safe(engine, end.at))
    }

    /// Returns the end of the next block, and false for the end of the prompt.
    fn next_end<E: Engine + ?Sized>(&self, engine: &E, request: &Request) -> Result<(End, bool)> {
        let (places, form) = match &self.kind {
            Kind::Fixed(places, form) => (places, *form),
            Kind::Given => {
                let Some(names) = names(engine, request)? else { return Ok((self.end, false)) };
                let rest = &self.text[self.end.at..];
                // A shorter block never takes the place of a longer one.
                let tail = rest.len().saturating_sub(if self.has_rival { 0 } else { TAIL });
                let mut places = [SPACING, tail.max(KEYED)].into_iter();
                let cut = places.find_map(|near| match near < rest.len() {
                    true => given_cut(engine, rest, near, &names),
                    false => None,
                });
                let at = self.end.at + cut.unwrap_or(rest.len());
                return Ok((End { at, index: 0 }, cut.is_some()));
            }
        };
        let spacing = if form == Normalization::None { SPACING } else { usize::MAX };
        let sizes = Sizes { spacing, least: KEYED, given: 0 };
        let (end, is_closed) = block_end(engine, &self.text, places, self.end, &sizes);
        let given: usize =
            places[self.end.index..end.index].iter().map(|fixed| fixed.ids.as_slice().len()).sum();
        let is_block = is_closed && (KEYED..MOST).contains(&(end.at - self.end.at)) && given < MOST;
        if is_block {
            return Ok((end, true));
        }
        Ok((End { at: self.text.len(), index: places.len() }, false))
    }

    /// Appends the ids up to an end.
    fn encode_to<E: Engine + ?Sized>(
        &mut self,
        engine: &E,
        request: &Request,
        end: End,
    ) -> Result<()> {
        let End { at: start, index: first } = self.end;
        let is_first = start == 0 && first == 0;
        let part = &self.text[start..end.at];
        let (text, fixed) = match &self.kind {
            Kind::Given => searched(engine, part, request)?,
            Kind::Fixed(places, form) => {
                let fixed = places[first..end.index].iter();
                let fixed = collected(fixed.map(|fixed| fixed.moved_back(start)))?;
                match form {
                    Normalization::None => (part.into(), fixed),
                    form => {
                        let (text, fixed) = normalize_runs(*form, part, fixed)?;
                        (text.into(), fixed)
                    }
                }
            }
        };
        encode_part(engine, &text, &fixed, 0..text.len(), is_first, &mut self.ids)
    }

    /// Encodes the rest, with the special tokens of `request`. Returns all ids, and the blocks that were
    /// not known; `None` for a prompt without any block.
    pub fn encode<E: Engine + ?Sized>(
        mut self,
        engine: &E,
        request: &Request,
    ) -> Result<Option<(Vec<u32>, Vec<NewBlock>)>> {
        let mut blocks = Vec::new();
        loop {
            let (start, from) = (self.end.at, self.ids.len());
            let (end, is_block) = self.next_end(engine, request)?;
            if !is_block && self.ids.is_empty() {
                return Ok(None);
            }
            self.encode_to(engine, request, end)?;
            let Some(key) = self.next_key().filter(|_| is_block) else {
                return Ok(Some((self.ids, blocks)));
            };
            let ids: &[u8] = bytemuck::cast_slice(&self.ids[from..]);
            let fixed = match &self.kind {
                Kind::Given => Vec::new(),
                Kind::Fixed(places, _) => written(&places[self.end.index..end.index], start)?,
            };
            let sizes = (end.at - start) as u64 | (fixed.len() as u64) << 32;
            let header = [self.root[0], self.root[1], checksum(ids, self.root), sizes];
            let text = &self.text.as_bytes()[start..end.at];
            let mut value = Vec::new();
            reserve(&mut value, HEADER + text.len() + fixed.len() + ids.len())?;
            for part in [bytemuck::bytes_of(&header), text, &fixed, ids] {
                value.extend_from_slice(part);
            }
            push(&mut blocks, (key, value))?;
            (self.key, self.end, self.has_rival) = (key, end, false);
        }
    }
}

/// Returns a hash of ids in four lanes, of which none waits for another.
fn checksum(ids: &[u8], root: Key) -> u64 {
    const LANES: usize = 4;
    let mut lanes = [root[0], root[1], !root[0], !root[1]];
    let (chunks, rest) = ids.as_chunks::<{ LANES * size_of::<Key>() }>();
    for chunk in chunks {
        let keys: [Key; LANES] = bytemuck::cast(*chunk);
        for (lane, key) in lanes.iter_mut().zip(keys) {
            *lane = fold(*lane ^ key[0], key[1] ^ FIXED_SEEDS[0]) ^ key[0];
        }
    }
    hash_bytes(bytemuck::cast_slice(&lanes), root) ^ hash_bytes(rest, [ids.len() as u64, root[1]])
}

/// Returns the bytes that [`written`] takes for a place.
fn written_size(fixed: &Fixed) -> usize {
    (4 + fixed.ids.as_slice().len()) * size_of::<u32>()
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
