//! Normalizers: text into other text, with or without the way back.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization_alignments::{
    IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfd_quick, is_nfkc_quick, is_nfkd_quick,
};

use crate::aligned::Aligned;
use crate::error::{Error, Result};
use crate::regex::Regex;
use crate::spec;

/// A normalizer that is ready to run.
#[derive(Debug, Clone)]
pub(crate) enum Normalizer {
    Form(Form),
    Lowercase,
    Replace(Regex, String),
    Prepend(String),
    Strip { left: bool, right: bool },
    Sequence(Vec<Normalizer>),
}

/// A Unicode normalization form.
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
        })
    }

    /// The text that `text` is normalized to.
    pub(crate) fn apply<'a>(&self, text: Cow<'a, str>) -> Result<Cow<'a, str>> {
        let limit = limit(text.len());
        self.apply_within(text, limit)
    }

    fn apply_within<'a>(&self, text: Cow<'a, str>, limit: usize) -> Result<Cow<'a, str>> {
        Ok(match self {
            Self::Form(form) if form.leaves(&text) => text,
            Self::Form(form) => Cow::Owned(form.changes(&text).map(|(c, _)| c).collect()),
            Self::Lowercase => Cow::Owned(text.chars().flat_map(char::to_lowercase).collect()),
            Self::Replace(regex, content) => {
                let stretches = matches(regex, content, &text, limit)?;
                if stretches.is_empty() {
                    return Ok(text);
                }
                let mut new = String::with_capacity(text.len());
                let mut last = 0;
                for Range { start, end } in stretches {
                    new.push_str(&text[last..start]);
                    new.push_str(content);
                    last = end;
                }
                new.push_str(&text[last..]);
                Cow::Owned(new)
            }
            Self::Prepend(_) if text.is_empty() => text,
            Self::Prepend(prefix) => Cow::Owned(format!("{prefix}{text}")),
            &Self::Strip { left, right } => {
                let stripped = if left { text.trim_start() } else { &text };
                let stripped = if right { stripped.trim_end() } else { stripped };
                if stripped.len() == text.len() { text } else { Cow::Owned(stripped.to_owned()) }
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

    /// The same with the way back.
    pub(crate) fn align(&self, text: &mut Aligned) -> Result<()> {
        let limit = limit(text.text.len());
        self.align_within(text, limit)
    }

    fn align_within(&self, text: &mut Aligned, limit: usize) -> Result<()> {
        match self {
            Self::Form(form) => {
                if !form.leaves(&text.text) {
                    let old = text.text.clone();
                    text.transform(form.changes(&old), 0);
                }
            }
            Self::Lowercase => {
                let old = text.text.clone();
                let lower = old.chars().flat_map(|character| {
                    let places = character.to_lowercase().enumerate();
                    places.map(|(index, lower)| (lower, usize::from(index == 0)))
                });
                text.transform(lower, 0);
            }
            Self::Replace(regex, content) => {
                let stretches = matches(regex, content, &text.text, limit)?;
                text.replace(&stretches, content);
            }
            Self::Prepend(prefix) => text.prepend(prefix),
            &Self::Strip { left, right } => {
                let end = if right { text.text.trim_end().len() } else { text.text.len() };
                let start = text.text.len() - text.text.trim_start().len();
                let start = if left { start.min(end) } else { 0 };
                *text = text.slice(start..end);
            }
            Self::Sequence(parts) => {
                parts.iter().try_for_each(|part| part.align_within(text, limit))?;
            }
        }
        Ok(())
    }
}

/// How long a text of `length` bytes may get while it is normalized or decoded: a file whose
/// replacements double it again and again would fill any memory.
pub(crate) fn limit(length: usize) -> usize {
    length.saturating_mul(1024).max(1 << 20)
}

/// Whether a pattern is known to match the empty text somewhere, as `a*` and `\b` do.
fn certainly_matches_nothing(pattern: &spec::Pattern) -> bool {
    match pattern {
        spec::Pattern::String(text) => text.is_empty(),
        spec::Pattern::Regex(regex) => regex_syntax::parse(regex)
            .is_ok_and(|parsed| parsed.properties().minimum_len() == Some(0)),
    }
}

/// Inserting where nothing was is refused: what comes from where is then a matter of the
/// implementation.
fn inserts(path: &str) -> Error {
    Error::unsupported(format!("{path}.pattern"), "a pattern that matches the empty text")
}

/// Compiles a pattern.
pub(crate) fn compile(pattern: &spec::Pattern) -> Result<Regex> {
    match pattern {
        spec::Pattern::String(text) => Regex::new(&::regex::escape(text)),
        spec::Pattern::Regex(regex) => Regex::new(regex),
    }
}

/// What becomes `content`. Whether a pattern with lookaround matches nothing shows only here.
fn matches(regex: &Regex, content: &str, text: &str, limit: usize) -> Result<Vec<Range<usize>>> {
    let mut stretches = Vec::new();
    if !text.is_empty() {
        regex.each(text, |stretch| stretches.push(stretch))?;
    }
    if !content.is_empty() && stretches.iter().any(Range::is_empty) {
        return Err(inserts("normalizer"));
    }
    if stretches.len().saturating_mul(content.len()).saturating_add(text.len()) > limit {
        return Err(Error::unsupported(
            "normalizer",
            format!("replacing that makes more than {limit} bytes of a text"),
        ));
    }
    Ok(stretches)
}

impl Form {
    /// Whether the text certainly stays as it is.
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

    /// The characters of the form, each with how many of the text's it stands for.
    fn changes(self, text: &str) -> Box<dyn Iterator<Item = (char, usize)> + '_> {
        // There a number above 0 says that the character is inserted, one below it how many more
        // than one it stands for.
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
