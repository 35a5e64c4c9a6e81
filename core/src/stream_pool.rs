//! Decodes the ids of many requests as they arrive: one call per step of a model.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::stops::{State, Stops};
use crate::token_table::{TokenKind, TokenTable};

/// Maximum number of bytes in an incomplete character.
const MOST_PENDING: usize = 3;

const BROKEN: &str = "\u{fffd}";

/// Open streams, each with a number that is never reused.
#[derive(Debug)]
pub struct StreamPool {
    tables: StreamTables,
    streams: HashMap<u32, Stream, BuildHasherDefault<Numbers>>,
    next: u32,
}

/// Bytes that ids add to streams.
#[derive(Debug, Clone)]
pub struct StreamTables {
    /// Bytes that each id adds after other ids.
    pub after: Arc<TokenTable>,
    /// Bytes of each id at the start of a text; `None` if these are the same bytes.
    pub first: Option<Arc<TokenTable>>,
    /// Whether ids without a token are skipped instead of refused.
    pub skips_unknown: bool,
}

/// Stream options.
#[derive(Debug)]
pub struct Options {
    /// Strings that end the stream.
    pub stops: Option<Box<Stops>>,
    /// Whether special tokens are dropped.
    pub skips_special: bool,
    /// Minimum number of characters per step; less text waits for a later step.
    pub min_chars: usize,
}

/// Text that a step emits.
#[derive(Debug, Clone, Copy)]
pub enum Text<'a> {
    /// All bytes of an id, which are whole characters.
    Token(u32),
    /// Other text.
    Part(&'a str),
}

/// The stop string that ended a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Index of the string among the stop strings.
    pub stop: usize,
    /// Index in the stream of the id that completed the string.
    pub id: usize,
}

#[derive(Debug)]
struct Stream {
    options: Options,
    /// Bytes of an incomplete character, and whether the prompt began the character.
    pending: Vec<u8>,
    is_from_prompt: bool,
    /// Complete characters that have not been emitted.
    text: String,
    /// Number of bytes of `text` that were counted as characters, and their number of characters.
    counted: (usize, usize),
    /// State of the stop strings after `text`.
    state: State,
    ids: usize,
    /// Whether the next id with text is at the start of a text, where ids have different bytes.
    is_first: bool,
    found: Option<Found>,
}

/// Hashes the numbers of streams, which the pool assigns: callers cannot choose colliding numbers.
#[derive(Debug, Default)]
struct Numbers(u64);

impl Hasher for Numbers {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl StreamPool {
    /// Creates an empty pool.
    pub fn new(tables: StreamTables) -> Self {
        Self { tables, streams: HashMap::default(), next: 0 }
    }

    /// Returns the number of open streams.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Returns true if no stream is open.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Opens a stream after the ids of a prompt, whose text the stream does not emit. Returns the
    /// stream's number.
    ///
    /// A character that the prompt begins and the stream completes belongs to the stream; if the
    /// stream does not complete it, the character is dropped.
    pub fn open(&mut self, prompt: &[u32], options: Options) -> Result<u32> {
        self.check_ids(prompt)?;
        let mut tail = Vec::new();
        for &id in prompt.iter().rev() {
            if tail.len() >= MOST_PENDING {
                break;
            }
            let bytes = self.tables.after.bytes_of(id, options.skips_special);
            let last = &bytes[bytes.len().saturating_sub(MOST_PENDING)..];
            tail.splice(..0, last.iter().copied());
        }
        let pending = tail.split_off(whole_characters(&tail, false, false).end);
        while self.streams.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let slot = self.next;
        self.next = slot.wrapping_add(1);
        let stream = Stream {
            state: State::default(),
            is_from_prompt: !pending.is_empty(),
            pending,
            text: String::new(),
            counted: (0, 0),
            ids: 0,
            is_first: self.tables.first.is_some()
                && !prompt.iter().any(|&id| self.tables.after.shows(id, options.skips_special)),
            options,
            found: None,
        };
        self.streams
            .try_reserve(1)
            .map_err(|_| Error::OutOfMemory { bytes: size_of::<Stream>() })?;
        self.streams.insert(slot, stream);
        Ok(slot)
    }

    /// Fails if a stream is not open, or an id is unknown.
    pub fn check(&self, slots: &[u32], ids: &[u32]) -> Result<()> {
        if let Some(&slot) = slots.iter().find(|slot| !self.streams.contains_key(slot)) {
            return Err(Error::UnknownStream(slot));
        }
        self.check_ids(ids)
    }

    /// Takes the next ids of a stream, checked by the caller, and passes text that is final to
    /// `give`.
    ///
    /// Returns the result of `give`, and the stop string that ended the stream. Fails if the stream
    /// is not open.
    #[inline]
    pub fn step<T>(
        &mut self,
        slot: u32,
        ids: &[u32],
        give: impl FnOnce(Text<'_>) -> T,
    ) -> Result<(T, Option<Found>)> {
        let stream = self.streams.get_mut(&slot).ok_or(Error::UnknownStream(slot))?;
        if let &[id] = ids
            && stream.passes(&self.tables.after, id)
        {
            stream.ids += 1;
            return Ok((give(Text::Token(id)), None));
        }
        stream.push_ids(&self.tables, ids);
        let certain = stream.certain();
        let given = give(Text::Part(&stream.text[..certain]));
        stream.text.drain(..certain);
        Ok((given, stream.found))
    }

    /// Closes a stream. Returns the remaining text; an incomplete character becomes U+FFFD.
    pub fn close(&mut self, slot: u32) -> Result<String> {
        let mut stream = self.streams.remove(&slot).ok_or(Error::UnknownStream(slot))?;
        if !stream.pending.is_empty() && !stream.is_from_prompt {
            stream.push_text(BROKEN);
        }
        Ok(stream.text)
    }

    fn check_ids(&self, ids: &[u32]) -> Result<()> {
        if self.tables.skips_unknown {
            return Ok(());
        }
        match ids.iter().find(|&&id| self.tables.after.kind(id) == TokenKind::Absent) {
            Some(&id) => Err(Error::UnknownId(id.into())),
            None => Ok(()),
        }
    }
}

impl Stream {
    /// Returns true if a step can emit all bytes of an id: they are whole characters, and no text
    /// is pending before or after them.
    #[inline]
    fn passes(&self, table: &TokenTable, id: u32) -> bool {
        let Options { stops, skips_special, min_chars } = &self.options;
        table.is_text(id)
            && !self.is_first
            && self.text.is_empty()
            && self.pending.is_empty()
            && self.found.is_none()
            && *min_chars <= 1
            && !(*skips_special && table.kind(id) == TokenKind::Special)
            && !stops.as_ref().is_some_and(|stops| stops.may_begin_in(table.get(id)))
    }

    fn push_ids(&mut self, tables: &StreamTables, ids: &[u32]) {
        for &id in ids {
            if self.found.is_some() {
                return;
            }
            let table = match &tables.first {
                Some(first) if self.is_first => first,
                _ => &tables.after,
            };
            self.is_first &= !table.shows(id, self.options.skips_special);
            self.push_bytes(table.bytes_of(id, self.options.skips_special));
            self.ids += 1;
        }
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        if self.pending.is_empty() {
            self.push_characters(bytes);
            return;
        }
        let mut joined = std::mem::take(&mut self.pending);
        joined.extend_from_slice(bytes);
        self.push_characters(&joined);
    }

    /// Adds the complete characters of some bytes, and keeps the remaining bytes.
    fn push_characters(&mut self, bytes: &[u8]) {
        if let Ok(text) = std::str::from_utf8(bytes) {
            self.is_from_prompt &= text.is_empty();
            self.push_text(text);
            return;
        }
        let whole = whole_characters(bytes, self.is_from_prompt, false);
        self.is_from_prompt &= whole.end == 0;
        self.pending.extend_from_slice(&bytes[whole.end..]);
        for chunk in bytes[whole].utf8_chunks() {
            self.push_text(chunk.valid());
            if !chunk.invalid().is_empty() {
                self.push_text(BROKEN);
            }
        }
    }

    /// Adds text up to the first stop string, which is dropped.
    fn push_text(&mut self, text: &str) {
        if self.found.is_some() {
            return;
        }
        let Some(stops) = &self.options.stops else {
            self.text.push_str(text);
            return;
        };
        for (index, &byte) in text.as_bytes().iter().enumerate() {
            self.state = stops.next(self.state, byte);
            if let Some((stop, length)) = stops.stop(self.state) {
                self.text.push_str(&text[..=index]);
                self.text.truncate(self.text.len() - length);
                self.found = Some(Found { stop, id: self.ids });
                self.pending.clear();
                return;
            }
        }
        self.text.push_str(text);
    }

    /// Returns the number of bytes of `text` that no later id can change, if they have enough
    /// characters. Counts each character once.
    fn certain(&mut self) -> usize {
        if self.found.is_some() {
            return self.text.len();
        }
        let held = self.options.stops.as_ref().map_or(0, |stops| stops.held(self.state));
        let end = self.text.len() - held;
        if self.options.min_chars > 1 {
            let (bytes, chars) = &mut self.counted;
            *chars += self.text[*bytes..end].chars().count();
            *bytes = end;
            if *chars < self.options.min_chars {
                return 0;
            }
            self.counted = (0, 0);
        }
        end
    }
}

impl TokenTable {
    /// Returns true if an id is a token that a stream shows.
    fn shows(&self, id: u32, skips_special: bool) -> bool {
        match self.kind(id) {
            TokenKind::Absent => false,
            TokenKind::Special => !skips_special,
            TokenKind::Ordinary => true,
        }
    }

    /// Returns the bytes that an id adds to a text.
    #[inline]
    fn bytes_of(&self, id: u32, skips_special: bool) -> &[u8] {
        if skips_special && self.kind(id) == TokenKind::Special { &[] } else { self.get(id) }
    }
}

/// Returns the range of bytes whose text does not depend on the bytes that follow: all but the
/// start of a character at the end.
///
/// With `is_from_prompt`, the bytes begin inside a character that a prompt began; if that character
/// is broken, the range begins after it. With `keeps_surrogates`, a surrogate counts as a
/// character.
pub fn whole_characters(
    bytes: &[u8],
    is_from_prompt: bool,
    keeps_surrogates: bool,
) -> Range<usize> {
    let is_incomplete = |&at: &usize| match bytes[at..] {
        [0xED, 0xA0..=0xBF] => keeps_surrogates,
        ref rest => std::str::from_utf8(rest)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none()),
    };
    let last = bytes.len().saturating_sub(MOST_PENDING)..bytes.len();
    let end = last.clone().find(is_incomplete).unwrap_or(last.end);
    let broken = match (bytes, bytes.utf8_chunks().next()) {
        ([0xED, 0xA0..=0xBF, 0x80..=0xBF, ..], _) if keeps_surrogates => 0,
        ([0xED, 0xA0..=0xBF, _, ..], _) if keeps_surrogates => 2,
        (_, Some(chunk)) if chunk.valid().is_empty() => chunk.invalid().len(),
        _ => 0,
    };
    if is_from_prompt { broken.min(end)..end } else { 0..end }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ids 0 to 255 are the bytes, 256 is special, 257 absent, 258 ordinary.
    fn pool() -> StreamPool {
        let mut table = TokenTable::with_largest_id(Some(258)).unwrap();
        for byte in 0..=255 {
            table.push(&[byte], TokenKind::Ordinary).unwrap();
        }
        table.push(b"<end>", TokenKind::Special).unwrap();
        table.push(b"", TokenKind::Absent).unwrap();
        table.push("ab é".as_bytes(), TokenKind::Ordinary).unwrap();
        StreamPool::new(StreamTables { after: Arc::new(table), first: None, skips_unknown: false })
    }

    fn options(stops: &[&str], skips_special: bool, min_chars: usize) -> Options {
        Options { stops: Stops::new(stops).unwrap().map(Box::new), skips_special, min_chars }
    }

    fn step(pool: &mut StreamPool, slot: u32, ids: &[u32]) -> (String, Option<Found>) {
        pool.check(&[slot], ids).unwrap();
        let table = pool.tables.after.clone();
        let give = |text: Text<'_>| match text {
            Text::Part(text) => text.to_owned(),
            Text::Token(id) => String::from_utf8(table.get(id).to_vec()).unwrap(),
        };
        pool.step(slot, ids, give).unwrap()
    }

    fn bytes(text: &[u8]) -> Vec<u32> {
        text.iter().map(|&byte| byte.into()).collect()
    }

    #[test]
    fn numbers_of_open_streams_are_not_given_again() {
        let mut pool = pool();
        let first = pool.open(&[], options(&[], false, 0)).unwrap();
        pool.next = u32::MAX;
        let last = pool.open(&[], options(&[], false, 0)).unwrap();
        let next = pool.open(&[], options(&[], false, 0)).unwrap();
        assert_eq!([first, last, next], [0, u32::MAX, 1]);
    }

    #[test]
    fn prompts_may_end_inside_a_character() {
        for (prompt, stream, expected) in [
            (&b"x\xF0\x9F"[..], &b"\x98\x80!"[..], "😀!"),
            // The prompt's character stays incomplete, so the stream does not emit it.
            (b"\xF0\x9F", b"\x98!", "!"),
            (b"\xF0\x9F", b"!", "!"),
            (b"\xF0\x9F", b"\x98", ""),
            (b"\xF0\x9F\x98", b"\xF0\x9F", "\u{fffd}"),
            (b"\x9F\x98", b"\x80", "\u{fffd}"),
            (b"\xC3\xA9", b"\xA9", "\u{fffd}"),
            (b"", b"\xC3", "\u{fffd}"),
        ] {
            let mut pool = pool();
            let slot = pool.open(&bytes(prompt), options(&[], false, 0)).unwrap();
            let mut text = String::new();
            for id in bytes(stream) {
                text += &step(&mut pool, slot, &[id]).0;
            }
            text += &pool.close(slot).unwrap();
            assert_eq!(text, expected, "{prompt:?} {stream:?}");
        }
    }

    proptest! {
        #![proptest_config(crate::test_support::config(512))]

        #[test]
        fn texts_are_decoding_of_the_whole_up_to_a_stop(
            ids in prop::collection::vec(prop::sample::select(vec![
                97u32, 98, 32, 0xC3, 0xA9, 0xF0, 0x9F, 0x98, 0x80, 256, 258,
            ]), 0..24),
            sizes in prop::collection::vec(1usize..4, 24),
            stops in prop::collection::vec("[ab é\u{fffd}]{1,3}", 0..3),
            skips_special: bool,
            min_chars in 0usize..4,
        ) {
            let mut pool = pool();
            let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
            let slot = pool.open(&[], options(&stops, skips_special, min_chars)).unwrap();
            let (mut text, mut rest, mut found) = (String::new(), &ids[..], None);
            for size in sizes {
                let (now, later) = rest.split_at(size.min(rest.len()));
                rest = later;
                let (part, stop) = step(&mut pool, slot, now);
                prop_assert!(part.is_empty() || stop.is_some() || part.chars().count() >= min_chars);
                text += &part;
                found = stop;
            }
            text += &pool.close(slot).unwrap();
            let table = &pool.tables.after;
            let decode = |count: usize| {
                let bytes: Vec<&[u8]> =
                    ids[..count].iter().map(|&id| table.bytes_of(id, skips_special)).collect();
                String::from_utf8_lossy(&bytes.concat()).into_owned()
            };
            let whole = decode(ids.len());
            // Where a stop string first ends, and the length of the longest stop string there.
            let end = (0..=whole.len()).filter(|&end| whole.is_char_boundary(end)).find_map(|end| {
                let stops = stops.iter().filter(|stop| whole[..end].ends_with(**stop));
                stops.map(|stop| stop.len()).max().map(|length| (end, length))
            });
            let expected = end.map_or(&whole[..], |(end, length)| &whole[..end - length]);
            prop_assert_eq!(&text, expected);
            if let Some(found) = found {
                let (end, length) = end.unwrap();
                prop_assert_eq!(stops[found.stop], &whole[end - length..end]);
                // The text up to the id contains the stop string; text before the id may lack a
                // character.
                prop_assert!(decode(found.id + 1).len() >= end);
                prop_assert!(decode(found.id).trim_end_matches(BROKEN).len() < end);
            }
        }
    }
}
