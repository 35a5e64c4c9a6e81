//! The normalizer of a SentencePiece model: applies the longest rule, marks spaces, and puts a mark
//! before or after the text.
//!
//! User-defined pieces stay unchanged.

use std::borrow::Cow;
use std::ops::Range;

use crate::char_boundary::floor;
use crate::memory::{reserve, reserve_text};
use crate::once::OnceBox;
use crate::polling::poll;
use memchr::memchr_iter;

use crate::components::bytes::{MARK, has_marks};
use crate::components::charsmap::Charsmap;
use crate::components::cut_points::Bits;
use crate::components::offsets::{AlignedText, joined, limit};
use crate::components::spec::SentencePieceNormalizer as Spec;
use crate::error::{Error, Result};

use super::user_defined::UserDefined;
use super::words::Words;

#[derive(Debug)]
pub(crate) struct Normalizer {
    charsmap: Option<Charsmap>,
    user_defined: UserDefined,
    add_dummy_prefix: bool,
    pub(crate) remove_extra_whitespaces: bool,
    treat_whitespace_as_suffix: bool,
    escape_whitespaces: bool,
    /// Whether an ASCII character stays unchanged before another ASCII character.
    is_kept: [bool; 128],
    /// Further characters that stay unchanged next to any neighbor.
    kept: Box<Bits>,
    /// Cuts texts into words; created on first use.
    words: OnceBox<Option<Words>>,
}

/// A normalized text, and the original position of each byte.
#[derive(Default)]
struct Written {
    text: String,
    places: Option<Vec<usize>>,
    limit: usize,
    /// Text that replaces a space.
    mark: &'static str,
}

impl Written {
    #[inline]
    fn push(&mut self, text: &str, place: usize, is_kept: bool) -> Result<()> {
        if self.text.len() > self.limit {
            return Err(self.too_long());
        }
        self.text.push_str(text);
        if let Some(places) = &mut self.places {
            reserve(places, text.len())?;
            let kept = |at| place + floor(text, at);
            places.extend((0..text.len()).map(|at| if is_kept { kept(at) } else { place }));
        }
        Ok(())
    }

    #[cold]
    fn too_long(&self) -> Error {
        let what = format!("replacing that makes more than {} bytes of a text", self.limit);
        Error::unsupported("normalizer", what)
    }

    /// Removes a mark at the end, and returns its position in the original.
    fn pop(&mut self, mark: &str) -> Option<usize> {
        let length = self.text.strip_suffix(mark)?.len();
        self.text.truncate(length);
        let Some(places) = &mut self.places else { return Some(0) };
        let place = places.get(length).copied();
        places.truncate(length);
        place
    }
}

impl Normalizer {
    pub(crate) fn new(spec: &Spec, path: &str) -> Result<Self> {
        let charsmap = match &*spec.precompiled_charsmap {
            "" => None,
            base64 => Some(Charsmap::new(base64, path)?),
        };
        let user_defined = UserDefined::new(spec.user_defined.iter().map(|text| (&**text, 0)))?;
        let mut normalizer = Self {
            charsmap,
            user_defined,
            add_dummy_prefix: spec.add_dummy_prefix,
            remove_extra_whitespaces: spec.remove_extra_whitespaces,
            treat_whitespace_as_suffix: spec.treat_whitespace_as_suffix,
            escape_whitespaces: spec.escape_whitespaces,
            is_kept: [false; 128],
            kept: Box::new(Bits::new()),
            words: OnceBox::new(),
        };
        for byte in 0..128 {
            normalizer.is_kept[usize::from(byte)] = !normalizer.changes_ascii(byte);
        }
        Ok(normalizer)
    }

    /// Whether a rule or a user-defined piece begins with this character followed by at most one
    /// more ASCII character.
    fn changes_ascii(&self, byte: u8) -> bool {
        let is_ruled = |charsmap: &Charsmap| {
            charsmap.has_rule(&[byte]) || (1..128).any(|next| charsmap.leads_to(&[byte, next]))
        };
        self.user_defined.begins_with(byte) || self.charsmap.as_ref().is_some_and(is_ruled)
    }

    fn mark(&self) -> &'static str {
        if self.escape_whitespaces { "\u{2581}" } else { " " }
    }

    /// Whether a nonempty text gets a mark in front.
    pub(crate) fn prepends(&self) -> bool {
        self.add_dummy_prefix
    }

    /// See `Normalizer::marks_spaces`.
    pub(crate) fn marks_spaces(&self) -> Option<bool> {
        let is_plain = self.charsmap.is_none()
            && self.user_defined.is_empty()
            && self.escape_whitespaces
            && !self.remove_extra_whitespaces
            && !(self.treat_whitespace_as_suffix && self.add_dummy_prefix);
        is_plain.then_some(self.add_dummy_prefix)
    }

    /// See `Normalizer::boundary`.
    pub(crate) fn boundary(&self, before: char, after: char) -> Option<(char, char)> {
        let marked = |character| if character == ' ' { MARK } else { character };
        self.marks_spaces().map(|_| (marked(before), marked(after)))
    }

    /// Normalizes a text. Fails if the result is much longer than `limit` bytes.
    pub(crate) fn apply(&self, text: &str, limit: usize) -> Result<String> {
        self.apply_with(self.mark(), text, limit)
    }

    fn apply_with(&self, mark: &'static str, text: &str, limit: usize) -> Result<String> {
        let mut written = Written { mark, limit, ..Written::default() };
        let spaces = if mark.len() > 1 { text.len() / 2 } else { 1 };
        reserve_text(&mut written.text, text.len() + spaces)?;
        self.write(text, &mut written)?;
        Ok(written.text)
    }

    /// Returns the [swapped](crate::components::bytes::swapped) form of a normalized text; `None`
    /// if the text must go through both steps.
    pub(crate) fn swapped(&self, text: &str) -> Result<Option<String>> {
        let makes_marks = |charsmap: &Charsmap| has_marks(charsmap.replacements());
        let is_plain = self.escape_whitespaces
            && self.user_defined.is_empty()
            && !self.charsmap.as_ref().is_some_and(makes_marks);
        if !is_plain || has_marks(text) {
            return Ok(None);
        }
        self.apply_with(" ", text, limit(text.len())).map(Some)
    }

    /// Normalizes a text, with SentencePiece's offsets: each byte extends to the start of the next
    /// byte.
    pub(crate) fn align(&self, text: &mut AlignedText, limit: usize) -> Result<()> {
        let places = Some(Vec::with_capacity(text.text.len()));
        let mut written = Written { places, limit, mark: self.mark(), ..Written::default() };
        let end = self.write(&text.text, &mut written)?;
        let places = written.places.unwrap_or_default();
        let last = text.origins.last().map_or(0, |origin| origin.1);
        let origin = |place: usize| text.origins.get(place).map_or(last, |origin| origin.0);
        let ends = if text.is_whole { whole_ends(&places, end) } else { next(&places, end) };
        let pairs = places.iter().zip(&ends);
        let origins = pairs.map(|(&start, &end)| (origin(start), origin(end))).collect::<Vec<_>>();
        text.set(written.text, origins);
        Ok(())
    }

    /// Writes the normalized text. Returns the end of that text in the original.
    fn write(&self, text: &str, written: &mut Written) -> Result<usize> {
        let mut start = 0;
        if self.remove_extra_whitespaces {
            start = self.after_spaces(text)?;
        }
        if start == text.len() {
            return Ok(start);
        }
        if self.add_dummy_prefix && !self.treat_whitespace_as_suffix {
            written.push(written.mark, start, false)?;
        }
        self.write_rest(text, start, self.remove_extra_whitespaces, written)?;
        let mut end = text.len();
        while self.remove_extra_whitespaces
            && let Some(place) = written.pop(written.mark)
        {
            end = place;
        }
        if self.add_dummy_prefix && self.treat_whitespace_as_suffix {
            written.push(written.mark, end, false)?;
        }
        Ok(end)
    }

    /// Writes a text from `start` on, without leading whitespace if `after_space`.
    fn write_rest(
        &self,
        text: &str,
        start: usize,
        mut after_space: bool,
        written: &mut Written,
    ) -> Result<()> {
        self.each_range(text, start, |range, rule| match rule {
            Some(rule) => self.write_rule(rule, range.start, &mut after_space, written),
            None => self.write_kept(text, range, &mut after_space, written),
        })
    }

    /// Returns the rules for words to normalize separately; `None` if texts must be normalized
    /// whole.
    pub(crate) fn words(&self) -> Result<Option<&Words>> {
        if !self.escape_whitespaces || self.treat_whitespace_as_suffix && self.add_dummy_prefix {
            return Ok(None);
        }
        Ok(self
            .words
            .get_or_try_init(|| {
                Words::new(self.charsmap.as_ref(), &self.user_defined).map(Box::new)
            })?
            .as_ref())
    }

    /// Returns the text as a sequence of words: strips whitespace at the ends that normalization
    /// removes, and puts a space where normalization puts a mark in front. `None` if the text must
    /// be normalized whole.
    pub(crate) fn bounded<'a>(&self, words: &Words, text: &'a str) -> Result<Option<Cow<'a, str>>> {
        let is_space = |it| words.is_space(it);
        let permits = |it: Option<char>| it.is_none_or(|it| is_space(it) || words.permits(it));
        let removes = self.remove_extra_whitespaces;
        let text = if removes { text.trim_matches(is_space) } else { text };
        let ends = [text.chars().next(), text.chars().next_back().filter(|_| removes)];
        if !ends.into_iter().all(permits) {
            return Ok(None);
        }
        let is_prefixed = self.add_dummy_prefix && !text.is_empty();
        Ok(Some(if is_prefixed { joined(" ", text)?.into() } else { text.into() }))
    }

    /// Replaces a text with the normalized form of a word.
    pub(crate) fn write_word(&self, word: &str, into: &mut String) -> Result<()> {
        into.clear();
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let is_plain = |byte: &u8| self.is_kept.get(usize::from(*byte)).is_some_and(|&kept| kept);
        let spaces = word.bytes().take_while(|byte| *byte == b' ').count();
        if word.as_bytes()[spaces..].iter().all(|byte| is_plain(byte) && !is_space(byte)) {
            let marks = if self.remove_extra_whitespaces { spaces.min(1) } else { spaces };
            reserve_text(into, marks * self.mark().len() + word.len())?;
            into.extend(std::iter::repeat_n(self.mark(), marks));
            into.push_str(&word[spaces..]);
            return Ok(());
        }
        let (mark, limit) = (self.mark(), limit(word.len()));
        let mut written = Written { text: std::mem::take(into), mark, limit, places: None };
        self.write_rest(word, 0, false, &mut written)?;
        *into = written.text;
        Ok(())
    }

    /// Returns the length of the prefix of a text that becomes spaces.
    fn after_spaces(&self, text: &str) -> Result<usize> {
        let mut start = 0;
        while start < text.len() {
            let rest = &text[start..];
            let length = match self.rule(rest)? {
                Some((length, " ")) => length,
                None if rest.starts_with(' ') => 1,
                _ => break,
            };
            poll(length)?;
            start += length;
        }
        Ok(start)
    }

    /// Returns the length of the prefix of a text that matches a user-defined piece or a rule, and
    /// its replacement.
    fn rule<'a>(&'a self, text: &'a str) -> Result<Option<(usize, &'a str)>> {
        if let Some((length, _)) = self.user_defined.longest(text) {
            return Ok(Some((length, &text[..length])));
        }
        Ok(self.charsmap.as_ref().map(|charsmap| charsmap.longest(text)).transpose()?.flatten())
    }

    /// Calls `found` with each part of a text from `start`, and its replacement; `None` for a part
    /// that stays unchanged, apart from spaces.
    fn each_range(
        &self,
        text: &str,
        mut start: usize,
        mut found: impl FnMut(Range<usize>, Option<&str>) -> Result<()>,
    ) -> Result<()> {
        while start < text.len() {
            let (kept, rule) = self.kept(&text[start..])?;
            if kept > 0 {
                poll(kept)?;
                found(start..start + kept, None)?;
                start += kept;
            }
            if let Some((length, new)) = rule {
                poll(length)?;
                found(start..start + length, Some(new))?;
                start += length;
            }
        }
        Ok(())
    }

    /// Returns the length of the unchanged prefix of a text, and the rule after it.
    fn kept<'a>(&'a self, text: &'a str) -> Result<(usize, Option<(usize, &'a str)>)> {
        let (bytes, mut at) = (text.as_bytes(), 0);
        let is_kept = |&byte: &u8| self.is_kept.get(usize::from(byte)).is_some_and(|&kept| kept);
        loop {
            let run = at;
            at =
                bytes[at..].iter().position(|byte| !is_kept(byte)).map_or(text.len(), |it| at + it);
            // The last character may begin a rule with non-ASCII characters.
            if run < at && bytes.get(at).is_some_and(|byte| !byte.is_ascii()) {
                at -= 1;
            }
            let Some(character) = text[at..].chars().next() else { return Ok((at, None)) };
            let begins_none = |character: char| {
                let mut text = [0; 4];
                let text = character.encode_utf8(&mut text).as_bytes();
                let leads = |charsmap: &Charsmap| charsmap.leads_to(text);
                !self.user_defined.begins_with(text[0])
                    && !self.charsmap.as_ref().is_some_and(leads)
            };
            if !self.kept.get(character, begins_none)
                && let Some(rule) = self.rule(&text[at..])?
            {
                return Ok((at, Some(rule)));
            }
            at += character.len_utf8();
        }
    }

    /// Writes a part that stays unchanged, apart from its spaces.
    fn write_kept(
        &self,
        text: &str,
        range: Range<usize>,
        after_space: &mut bool,
        written: &mut Written,
    ) -> Result<()> {
        let mark = written.mark;
        let bytes = &text.as_bytes()[range.clone()];
        let spaces = memchr_iter(b' ', bytes).count();
        reserve_text(&mut written.text, bytes.len() + spaces * (mark.len() - 1))?;
        let mut start = range.start;
        for word in bytes.split(|&byte| byte == b' ') {
            let end = start + word.len();
            if start < end {
                written.push(&text[start..end], start, true)?;
                *after_space = false;
            }
            if end < range.end && !*after_space {
                written.push(mark, end, false)?;
                *after_space = self.remove_extra_whitespaces;
            }
            start = end + 1;
        }
        Ok(())
    }

    fn write_rule(
        &self,
        new: &str,
        place: usize,
        after_space: &mut bool,
        written: &mut Written,
    ) -> Result<()> {
        let new = if *after_space { new.trim_start_matches(' ') } else { new };
        if new.is_empty() {
            return Ok(());
        }
        for (index, part) in new.split(' ').enumerate() {
            if index > 0 {
                written.push(written.mark, place, false)?;
            }
            written.push(part, place, false)?;
        }
        *after_space = self.remove_extra_whitespaces && new.ends_with(' ');
        Ok(())
    }
}

fn next(places: &[usize], end: usize) -> Vec<usize> {
    places.iter().skip(1).copied().chain([end]).take(places.len()).collect::<Vec<_>>()
}

/// Returns the next larger position after each position.
fn whole_ends(places: &[usize], end: usize) -> Vec<usize> {
    let mut ends: Vec<usize> = Vec::with_capacity(places.len());
    let (mut larger, mut last) = (end, usize::MAX);
    for &place in places.iter().rev() {
        if place < last && last != usize::MAX {
            larger = last;
        }
        last = place;
        ends.push(larger);
    }
    ends.reverse();
    ends
}
