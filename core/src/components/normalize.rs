//! Normalizers replace text, with or without tracking offsets.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::Normalization;
use crate::memory::{push, reserve, reserve_text, with_capacity};
use unicode_normalization_alignments::char::is_combining_mark;
use unicode_normalization_alignments::{
    IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfd_quick, is_nfkc_quick, is_nfkd_quick,
};

use crate::components::bert::{self, Bert};
use crate::components::bytes::{CHAR_OF, MARK};
use crate::components::charsmap::Charsmap;
use crate::components::cut_points::is_settled;
use crate::components::offsets::{AlignedText, Change, joined, limit, replaced};
use crate::components::regex::Regex;
use crate::components::sentencepiece;
use crate::components::spec;
use crate::error::{Error, Result};

/// A normalizer, ready to run.
#[derive(Debug, Clone)]
pub(crate) enum Normalizer {
    Form(Form),
    Lowercase,
    /// Replaces each character with the characters that a function emits: at most [`MOST`] bytes.
    Each(fn(char, &mut dyn FnMut(char))),
    /// Removes the characters for which a function returns false.
    Keep(fn(char) -> bool),
    Bert(Bert),
    Precompiled(Arc<Charsmap>),
    Replace(Regex, String),
    Prepend(String),
    Strip {
        left: bool,
        right: bool,
    },
    Sequence(Vec<Normalizer>),
    SentencePiece(Arc<sentencepiece::Normalizer>),
}

fn only(mut characters: impl Iterator<Item = char>) -> Option<char> {
    characters.next().filter(|_| characters.next().is_none())
}

/// Returns the character if the text is a single whitespace character.
fn only_space(text: &str) -> Option<char> {
    only(text.chars()).filter(|only| only.is_whitespace())
}

/// How a normalizer treats whitespace at the ends of a text and in runs.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(crate) left: bool,
    pub(crate) right: bool,
    /// Normalizers for runs of whitespace.
    pub(crate) rows: Vec<Normalizer>,
}

/// Context that a normalizer needs near whitespace.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Locality {
    /// Parts of a text are independent only between
    /// [settled](crate::components::cut_points::is_settled) characters.
    pub(crate) needs_settled: bool,
    /// May replace characters with whitespace or with characters that are not settled.
    pub(crate) unsettles: bool,
    /// Parts of a text are independent at every ASCII character, which stays unchanged.
    pub(crate) is_everywhere: bool,
    /// Parts of a text are independent between two printable ASCII characters, which may only
    /// change case.
    pub(crate) keeps_printable: bool,
    /// Puts spaces around Han characters.
    pub(crate) isolates_han: bool,
    /// Parts of a text are independent only if the whitespace between them is dropped.
    pub(crate) needs_dropped: bool,
}

impl Locality {
    /// Returns the locality of this normalizer followed by another.
    fn then(self, next: Self) -> Option<Self> {
        // Rules may join the single space that remains of a run with the next character.
        let is_moved = self.needs_settled || self.unsettles || self.needs_dropped;
        (!(next.needs_settled && is_moved)).then_some(Self {
            needs_settled: self.needs_settled || next.needs_settled,
            unsettles: self.unsettles || next.unsettles,
            is_everywhere: self.is_everywhere && next.is_everywhere,
            keeps_printable: self.keeps_printable && next.keeps_printable,
            isolates_han: self.isolates_han || next.isolates_han,
            needs_dropped: self.needs_dropped || next.needs_dropped,
        })
    }
}

/// Maximum number of bytes that [`Normalizer::Each`] turns a character into.
const MOST: usize = 12;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

impl Normalizer {
    pub(crate) fn new(spec: &spec::Normalizer, path: &str) -> Result<Self> {
        Ok(match spec {
            spec::Normalizer::NFC => Self::Form(Form::Nfc),
            spec::Normalizer::NFD => Self::Form(Form::Nfd),
            spec::Normalizer::NFKC => Self::Form(Form::Nfkc),
            spec::Normalizer::NFKD => Self::Form(Form::Nfkd),
            spec::Normalizer::Lowercase => Self::Lowercase,
            spec::Normalizer::StripAccents => Self::Keep(|c| !is_combining_mark(c)),
            spec::Normalizer::Nmt => {
                Self::Sequence(vec![Self::Keep(bert::is_kept_by_nmt), Self::Each(bert::nmt_space)])
            }
            spec::Normalizer::ByteLevel => Self::Each(byte_characters),
            &spec::Normalizer::BertNormalizer {
                clean_text,
                handle_chinese_chars,
                strip_accents,
                lowercase,
            } => {
                let strip_accents = strip_accents.unwrap_or(lowercase);
                Self::Bert(Bert { clean_text, handle_chinese_chars, strip_accents, lowercase })
            }
            spec::Normalizer::Precompiled { precompiled_charsmap } => {
                Self::Precompiled(Arc::new(Charsmap::new(precompiled_charsmap, path)?))
            }
            spec::Normalizer::Replace { pattern, content } => {
                let regex = compile(pattern)?;
                if !content.is_empty() && certainly_matches_nothing(pattern) {
                    return Err(inserts(path));
                }
                Self::Replace(regex, content.clone())
            }
            spec::Normalizer::Prepend { prepend } if prepend.is_empty() => {
                return Err(Error::unsupported(format!("{path}.prepend"), "an empty text"));
            }
            spec::Normalizer::Prepend { prepend } => Self::Prepend(prepend.clone()),
            &spec::Normalizer::Strip { strip_left, strip_right } => {
                Self::Strip { left: strip_left, right: strip_right }
            }
            spec::Normalizer::Sequence { normalizers } => {
                let parts = normalizers.iter().enumerate();
                let part = |(index, part)| Self::new(part, &format!("{path}.normalizers[{index}]"));
                Self::Sequence(parts.map(part).collect::<Result<_>>()?)
            }
            spec::Normalizer::SentencePiece(spec) => {
                Self::SentencePiece(Arc::new(sentencepiece::Normalizer::new(spec, path)?))
            }
        })
    }

    /// Whether the normalizer is an empty sequence, which leaves text unchanged.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Sequence(parts) if parts.is_empty())
    }

    /// Returns whether the normalizer puts a mark before a text; `None` if it does anything other
    /// than that and replacing spaces with marks.
    pub(crate) fn marks_spaces(&self) -> Option<bool> {
        if let Self::SentencePiece(normalizer) = self {
            return normalizer.marks_spaces();
        }
        let is_mark = |text: &str| text.chars().eq([MARK]);
        let parts = match self {
            Self::Sequence(parts) => parts,
            part => std::slice::from_ref(part),
        };
        let (mut is_prefixed, mut is_marked) = (false, false);
        for part in parts {
            match part {
                Self::Prepend(prefix) if is_mark(prefix) && !is_prefixed => is_prefixed = true,
                Self::Replace(Regex::Text(wanted), mark) if &**wanted == " " && is_mark(mark) => {
                    is_marked = true;
                }
                _ => return None,
            }
        }
        is_marked.then_some(is_prefixed)
    }

    pub(crate) fn apply<'a>(&self, text: Cow<'a, str>) -> Result<Cow<'a, str>> {
        let limit = limit(text.len());
        self.apply_within(text, limit)
    }

    fn apply_within<'a>(&self, text: Cow<'a, str>, limit: usize) -> Result<Cow<'a, str>> {
        Ok(match self {
            Self::Form(form) if form.leaves(&text) => text,
            Self::Form(form) => Cow::Owned(collected(&text, form.changes(&text).map(|(c, _)| c))?),
            Self::Lowercase => {
                Cow::Owned(collected(&text, text.chars().flat_map(char::to_lowercase))?)
            }
            Self::Each(each) => {
                let mut new = String::new();
                reserve_text(&mut new, text.len())?;
                for character in text.chars() {
                    reserve_text(&mut new, MOST)?;
                    each(character, &mut |made| new.push(made));
                }
                Cow::Owned(new)
            }
            Self::Keep(keep) if text.chars().all(keep) => text,
            Self::Keep(keep) => Cow::Owned(collected(&text, text.chars().filter(|&c| keep(c)))?),
            Self::Bert(bert) => bert.apply(text)?,
            Self::Precompiled(charsmap) => {
                let mut new = String::new();
                reserve_text(&mut new, text.len())?;
                charsmap.each_range(&text, |range, rule| {
                    new.push_str(rule.unwrap_or(&text[range]));
                    if new.len() > limit { Err(too_long(limit)) } else { Ok(()) }
                })?;
                Cow::Owned(new)
            }
            Self::SentencePiece(normalizer) => Cow::Owned(normalizer.apply(&text, limit)?),
            Self::Replace(regex, content) => {
                let ranges = matches(regex, content, &text, limit)?;
                if ranges.iter().all(|range| &text[range.clone()] == content) {
                    return Ok(text);
                }
                Cow::Owned(replaced(&text, &ranges, content)?)
            }
            Self::Prepend(_) if text.is_empty() => text,
            Self::Prepend(prefix) => Cow::Owned(joined(prefix, &text)?),
            &Self::Strip { left, right } => {
                let stripped = if left { text.trim_start() } else { &text };
                let stripped = if right { stripped.trim_end() } else { stripped };
                if stripped.len() == text.len() { text } else { Cow::Owned(joined(stripped, "")?) }
            }
            Self::Sequence(parts) => {
                let mut text = text;
                for part in parts {
                    text = part.apply_within(text, limit)?;
                }
                text
            }
        })
    }

    /// Whether the normalizer prepends text to every text.
    pub(crate) fn prepends(&self) -> bool {
        match self {
            Self::Prepend(_) => true,
            Self::SentencePiece(normalizer) => normalizer.prepends(),
            Self::Sequence(parts) => parts.iter().any(Self::prepends),
            _ => false,
        }
    }

    /// Returns the normalized characters before and after a cut between two parts of a text; `None`
    /// if they depend on the rest of the text, or if the parts do not normalize to parts of the
    /// whole, apart from [prepended](Self::prepends) text.
    pub(crate) fn boundary(&self, before: char, after: char) -> Option<(char, char)> {
        match self {
            Self::Replace(Regex::Text(wanted), content) => {
                let mut wanted = wanted.chars();
                let (Some(wanted), None) = (wanted.next(), wanted.next()) else { return None };
                let last = content.chars().next_back()?;
                let first = content.chars().next()?;
                Some((
                    if before == wanted { last } else { before },
                    if after == wanted { first } else { after },
                ))
            }
            Self::Sequence(parts) => {
                let boundary = |(before, after), part: &Self| part.boundary(before, after);
                parts.iter().try_fold((before, after), boundary)
            }
            Self::Prepend(_) => Some((before, after)),
            Self::SentencePiece(normalizer) => normalizer.boundary(before, after),
            _ => None,
        }
    }

    /// Returns a sequence of this normalizer and `others`.
    pub(crate) fn and(self, others: &[Self]) -> Self {
        match others {
            [] => self,
            _ => Self::Sequence(std::iter::once(self).chain(others.iter().cloned()).collect()),
        }
    }

    /// Removes trailing steps that change only whitespace at the ends of a text or in runs, if
    /// `is_space` accepts their replacement.
    pub(crate) fn without_ends(&self, is_space: impl Fn(&str) -> bool) -> (Self, Ends) {
        let parts = match self {
            Self::Sequence(parts) => &parts[..],
            part => std::slice::from_ref(part),
        };
        let mut ends = Ends::default();
        let is_last = |part: &&Self| match part {
            Self::Strip { left, right } => {
                (ends.left, ends.right) = (ends.left || *left, ends.right || *right);
                true
            }
            // Content other than whitespace must not be stripped afterwards.
            Self::Replace(Regex::Blanks(_), content)
                if is_space(content)
                    && (content.trim().is_empty() || !(ends.left || ends.right)) =>
            {
                ends.rows.insert(0, (*part).clone());
                true
            }
            _ => false,
        };
        let count = parts.iter().rev().take_while(is_last).count();
        (Self::Sequence(parts[..parts.len() - count].to_vec()), ends)
    }

    /// Returns the context that the normalizer needs near whitespace, if the text between spaces,
    /// tabs and line ends can be normalized independently.
    pub(crate) fn locality(&self) -> Option<Locality> {
        let none = Locality { is_everywhere: true, keeps_printable: true, ..Locality::default() };
        Some(match self {
            // NFKD turns some punctuation, such as U+203E, into other kinds of characters.
            Self::Form(Form::Nfc | Form::Nfkc | Form::Nfkd) => {
                Locality { is_everywhere: false, ..none }
            }
            Self::Form(Form::Nfd) | Self::Lowercase | Self::Keep(_) => none,
            Self::Bert(bert) => Locality { isolates_han: bert.handle_chinese_chars, ..none },
            Self::Each(_) => none,
            Self::Precompiled(_) => Locality { needs_settled: true, ..Locality::default() },
            Self::Replace(Regex::Text(wanted), _) if wanted.contains(char::is_whitespace) => {
                return None;
            }
            Self::Replace(Regex::Text(_), content) => {
                let is_printable = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_graphic);
                let bytes = content.as_bytes();
                let unsettles = !(is_printable(bytes.first()) && is_printable(bytes.last()));
                Locality { unsettles, ..Locality::default() }
            }
            Self::Replace(Regex::Spaces, content) if &**content == " " => {
                Locality { needs_dropped: true, is_everywhere: false, ..none }
            }
            Self::Sequence(parts) => {
                let mut parts = parts.iter().map(Self::locality);
                parts.try_fold(none, |before, part| before.then(part?))?
            }
            _ => return None,
        })
    }

    /// Whether the normalizer may create one of these marks from a text whose characters create
    /// none on their own, or may join characters that whitespace separates.
    pub(crate) fn writes(&self, marks: &[u8]) -> bool {
        let has_mark = |text: &str| text.bytes().any(|byte| marks.contains(&byte));
        match self {
            Self::Replace(_, content) | Self::Prepend(content) => has_mark(content),
            Self::Sequence(parts) => parts.iter().any(|part| part.writes(marks)),
            // Rules may treat a space and its neighbor as one unit.
            Self::Precompiled(_) | Self::SentencePiece(_) => true,
            Self::Form(_) | Self::Lowercase | Self::Each(_) | Self::Keep(_) | Self::Bert(_) => {
                false
            }
            Self::Strip { .. } => false,
        }
    }

    /// Returns the whitespace that a whitespace character becomes; `None` for any other result.
    pub(crate) fn space(&self, space: char) -> Option<char> {
        match self {
            Self::Form(_) => space.is_ascii().then_some(space),
            Self::Lowercase | Self::Replace(..) | Self::Strip { .. } => Some(space),
            Self::Keep(keep) => keep(space).then_some(space),
            Self::Bert(bert) => Some(if bert.clean_text { ' ' } else { space }),
            Self::Each(_) => self.single(space).filter(|made| made.is_whitespace()),
            Self::Precompiled(charsmap) if space == '\r' && charsmap.joins_line_ends().ok()? => {
                None
            }
            Self::Precompiled(charsmap) => {
                charsmap.replaced(space).ok()?.map_or(Some(space), only_space)
            }
            Self::Sequence(parts) => parts.iter().try_fold(space, |space, part| part.space(space)),
            Self::Prepend(_) | Self::SentencePiece(_) => None,
        }
    }

    /// Returns the character that this character becomes next to characters of another text, or
    /// characters that also become one character each; `None` if it may become anything else.
    pub(crate) fn single(&self, character: char) -> Option<char> {
        match self {
            Self::Form(_) if character.is_ascii() => Some(character),
            // Other settled characters never combine with the character before.
            Self::Form(form) if is_settled(character) => {
                let text = String::from(character);
                only(form.changes(&text).map(|(made, _)| made))
            }
            Self::Lowercase => only(character.to_lowercase()),
            Self::Keep(keep) => keep(character).then_some(character),
            Self::Each(each) => {
                let mut made = String::new();
                each(character, &mut |character| made.push(character));
                only(made.chars())
            }
            Self::Bert(_) if character.is_ascii() || is_settled(character) => {
                let made = self.apply(String::from(character).into()).ok()?;
                only(made.chars())
            }
            Self::Precompiled(charsmap) if is_settled(character) => {
                match charsmap.replaced(character).ok()? {
                    Some(rule) => only(rule.chars()),
                    None => Some(character),
                }
            }
            Self::Replace(Regex::Text(wanted), _) => {
                (!wanted.contains(character)).then_some(character)
            }
            Self::Replace(Regex::Blanks(_), _) => (character != ' ').then_some(character),
            Self::Replace(Regex::Spaces, _) => (!character.is_whitespace()).then_some(character),
            Self::Sequence(parts) => {
                parts.iter().try_fold(character, |character, part| part.single(character))
            }
            _ => None,
        }
    }

    /// Returns the Unicode form of the text to which tokens decode, if the normalizer otherwise
    /// only puts a mark before a text and marks spaces.
    pub(crate) fn token_form(&self) -> Result<Normalization> {
        let mut found = Normalization::None;
        let parts = match self {
            Self::Sequence(parts) => parts,
            part => std::slice::from_ref(part),
        };
        for part in parts {
            match part {
                Self::Form(Form::Nfc) => found = Normalization::Nfc,
                Self::Prepend(prefix) if prefix.chars().eq([MARK]) => {}
                _ if part.marks_spaces() == Some(false) => {}
                Self::SentencePiece(normalizer) if normalizer.marks_spaces().is_some() => {}
                _ => {
                    return Err(Error::refused(
                        "normalizer",
                        "it changes text so that tokens have other bytes than the text",
                    ));
                }
            }
        }
        Ok(found)
    }

    /// Normalizes `text`, keeping the origin of each byte.
    pub(crate) fn align(&self, text: &mut AlignedText) -> Result<()> {
        let limit = limit(text.text.len());
        self.align_within(text, limit)
    }

    fn align_within(&self, text: &mut AlignedText, limit: usize) -> Result<()> {
        match self {
            Self::Form(form) => {
                if !form.leaves(&text.text) {
                    let old = joined(&text.text, "")?;
                    text.compose(form.changes(&old))?;
                }
            }
            Self::Lowercase => {
                let old = joined(&text.text, "")?;
                let lower = old.chars().flat_map(|character| {
                    let places = character.to_lowercase().enumerate();
                    places.map(|(index, lower)| (lower, usize::from(index == 0)))
                });
                text.transform(lower, 0)?;
            }
            Self::Each(each) => {
                let mut changes: Vec<Change> = with_capacity(text.text.len())?;
                for character in text.text.chars() {
                    let first = changes.len();
                    reserve(&mut changes, MOST)?;
                    each(character, &mut |made| changes.push((made, 0)));
                    changes[first].1 = 1;
                }
                text.transform(changes, 0)?;
            }
            Self::Keep(keep) => text.keep(keep)?,
            Self::Bert(bert) => {
                bert_steps(bert).iter().try_for_each(|step| step.align_within(text, limit))?;
            }
            Self::Precompiled(charsmap) => {
                let mut rules = Vec::new();
                let mut length = text.text.len();
                charsmap.each_range(&text.text, |range, rule| {
                    let Some(rule) = rule else { return Ok(()) };
                    length += rule.len();
                    push(&mut rules, (range, joined(rule, "")?))?;
                    if length > limit { Err(too_long(limit)) } else { Ok(()) }
                })?;
                text.rewrite(&rules)?;
            }
            Self::SentencePiece(normalizer) => normalizer.align(text, limit)?,
            Self::Replace(regex, content) => {
                let ranges = matches(regex, content, &text.text, limit)?;
                text.replace(&ranges, content)?;
            }
            Self::Prepend(prefix) => text.prepend(prefix)?,
            &Self::Strip { left, right } => {
                let end = if right { text.text.trim_end().len() } else { text.text.len() };
                let start = text.text.len() - text.text.trim_start().len();
                let start = if left { start.min(end) } else { 0 };
                *text = text.slice(start..end)?;
            }
            Self::Sequence(parts) => {
                parts.iter().try_for_each(|part| part.align_within(text, limit))?;
            }
        }
        Ok(())
    }
}

/// Collects the characters that replace `old` into a text; fails if memory runs out.
fn collected(old: &str, characters: impl Iterator<Item = char>) -> Result<String> {
    let mut text = String::new();
    reserve_text(&mut text, old.len())?;
    for character in characters {
        reserve_text(&mut text, character.len_utf8())?;
        text.push(character);
    }
    Ok(text)
}

fn too_long(limit: usize) -> Error {
    let what = format!("replacing that makes more than {limit} bytes of a text");
    Error::unsupported("normalizer", what)
}

/// Returns the steps of `BertNormalizer`, in order.
fn bert_steps(bert: &Bert) -> Vec<Normalizer> {
    let mut steps = Vec::new();
    if bert.clean_text {
        steps.extend([Normalizer::Keep(bert::is_clean), Normalizer::Each(bert::space)]);
    }
    if bert.handle_chinese_chars {
        steps.push(Normalizer::Each(bert::set_apart));
    }
    if bert.strip_accents {
        steps.extend([Normalizer::Form(Form::Nfd), Normalizer::Keep(bert::is_no_accent)]);
    }
    if bert.lowercase {
        steps.push(Normalizer::Lowercase);
    }
    steps
}

/// Calls `found` with the characters that represent the bytes of a character.
fn byte_characters(character: char, found: &mut dyn FnMut(char)) {
    let mut bytes = [0; 4];
    character.encode_utf8(&mut bytes).bytes().for_each(|byte| found(CHAR_OF[usize::from(byte)]));
}

/// Whether a pattern, such as `a*` or `\b`, is known to match empty text.
fn certainly_matches_nothing(pattern: &spec::Pattern) -> bool {
    match pattern {
        spec::Pattern::String(text) => text.is_empty(),
        spec::Pattern::Regex(regex) => regex_syntax::parse(regex)
            .is_ok_and(|parsed| parsed.properties().minimum_len() == Some(0)),
    }
}

/// Returns the error for replacing an empty match: the offsets would depend on the implementation.
fn inserts(path: &str) -> Error {
    Error::unsupported(format!("{path}.pattern"), "a pattern that matches the empty text")
}

pub(crate) fn compile(pattern: &spec::Pattern) -> Result<Regex> {
    match pattern {
        spec::Pattern::String(text) if text.is_empty() => Regex::new(""),
        spec::Pattern::String(text) => Ok(Regex::Text(text.as_str().into())),
        spec::Pattern::Regex(regex) => Regex::new(regex),
    }
}

/// Returns the ranges to replace with `content`. Fails if a range is empty, which for patterns with
/// lookaround depends on the text.
fn matches(regex: &Regex, content: &str, text: &str, limit: usize) -> Result<Vec<Range<usize>>> {
    let mut ranges = Vec::new();
    if !text.is_empty() {
        regex.each(text, |range| push(&mut ranges, range))?;
    }
    if !content.is_empty() && ranges.iter().any(Range::is_empty) {
        return Err(inserts("normalizer"));
    }
    if ranges.len().saturating_mul(content.len()).saturating_add(text.len()) > limit {
        return Err(too_long(limit));
    }
    Ok(ranges)
}

impl Form {
    /// Whether a quick check shows that the text is already in this form.
    fn leaves(self, text: &str) -> bool {
        let quick = match self {
            _ if text.is_ascii() => return true,
            Self::Nfc => is_nfc_quick(text.chars()),
            Self::Nfd => is_nfd_quick(text.chars()),
            Self::Nfkc => is_nfkc_quick(text.chars()),
            Self::Nfkd => is_nfkd_quick(text.chars()),
        };
        quick == IsNormalized::Yes
    }

    /// Returns the normalized characters, each with the number of characters it replaces.
    fn changes(self, text: &str) -> Box<dyn Iterator<Item = (char, usize)> + '_> {
        // A positive number marks an inserted character; a negative number is the negated count of
        // replaced characters after the first.
        let count = |(character, change): (char, isize)| match change {
            1.. => (character, 0),
            _ => (character, 1 + change.unsigned_abs()),
        };
        match self {
            Self::Nfc => Box::new(text.nfc().map(count)),
            Self::Nfd => Box::new(text.nfd().map(count)),
            Self::Nfkc => Box::new(text.nfkc().map(count)),
            Self::Nfkd => Box::new(text.nfkd().map(count)),
        }
    }
}
