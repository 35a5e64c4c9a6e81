//! Pre-tokenizers: text into pieces.

use std::ops::Range;

use bpe_core::once::LockFreeOnce;
use unicode_categories::UnicodeCategories;

use crate::aligned::Aligned;
use crate::bytes::CHAR_OF;
use crate::error::Result;
use crate::normalize::compile;
use crate::regex::Regex;
use crate::spec::{self, Behavior};

/// GPT-2's pattern, which `ByteLevel` splits by.
pub(crate) const GPT2: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

static GPT2_REGEX: LockFreeOnce<Regex> = LockFreeOnce::new();

fn words() -> &'static regex::Regex {
    static WORDS: LockFreeOnce<regex::Regex> = LockFreeOnce::new();
    WORDS.get_or_init(|| regex::Regex::new(r"\w+|[^\w\s]+").expect("the pattern is well-formed"))
}

/// A pre-tokenizer that is ready to run: steps, each of which splits every piece further.
#[derive(Debug, Clone, Default)]
pub(crate) struct PreTokenizer(Vec<Step>);

#[derive(Debug, Clone)]
enum Step {
    /// The pieces begin with a space.
    PrefixSpace,
    Split {
        by: By,
        behavior: Behavior,
        invert: bool,
    },
    /// Every byte becomes the character that stands for it.
    Bytes,
}

/// What splits.
#[derive(Debug, Clone)]
enum By {
    Regex(Regex),
    Words,
    Characters(fn(char) -> bool),
}

fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation() || UnicodeCategories::is_punctuation(character)
}

impl PreTokenizer {
    pub(crate) fn new(spec: Option<&spec::PreTokenizer>) -> Result<Self> {
        let mut steps = Vec::new();
        if let Some(spec) = spec {
            add_steps(spec, &mut steps)?;
        }
        Ok(Self(steps))
    }

    /// Whether what it leaves are the characters that stand for bytes.
    pub(crate) fn is_byte_level(&self) -> bool {
        self.0.iter().any(|step| matches!(step, Step::Bytes))
    }

    /// Splits every piece further. Pieces that come to nothing are dropped.
    pub(crate) fn split(&self, pieces: Vec<Aligned>) -> Result<Vec<Aligned>> {
        let mut pieces = pieces;
        for step in &self.0 {
            match step {
                Step::PrefixSpace => {
                    for piece in &mut pieces {
                        if !piece.text.starts_with(' ') {
                            piece.prepend(" ");
                        }
                    }
                }
                Step::Bytes => pieces.iter_mut().for_each(into_byte_characters),
                Step::Split { by, behavior, invert } => {
                    let mut parts = Vec::with_capacity(pieces.len());
                    for piece in &pieces {
                        let found = by.cut(&piece.text, *invert)?;
                        let kept = behave(found, *behavior).into_iter();
                        let kept = kept.filter(|range| !range.is_empty());
                        parts.extend(kept.map(|range| piece.slice(range)));
                    }
                    pieces = parts;
                }
            }
        }
        Ok(pieces)
    }
}

fn add_steps(spec: &spec::PreTokenizer, steps: &mut Vec<Step>) -> Result<()> {
    let (by, behavior, invert) = match spec {
        &spec::PreTokenizer::ByteLevel { add_prefix_space, use_regex, .. } => {
            if add_prefix_space {
                steps.push(Step::PrefixSpace);
            }
            if use_regex {
                let by = By::Regex(GPT2_REGEX.get_or_try_init(|| Regex::new(GPT2))?.clone());
                steps.push(Step::Split { by, behavior: Behavior::Isolated, invert: false });
            }
            steps.push(Step::Bytes);
            return Ok(());
        }
        spec::PreTokenizer::Sequence { pretokenizers } => {
            return pretokenizers.iter().try_for_each(|part| add_steps(part, steps));
        }
        spec::PreTokenizer::Split { pattern, behavior, invert } => {
            (By::Regex(compile(pattern)?), *behavior, *invert)
        }
        spec::PreTokenizer::Digits { individual_digits } => {
            let behavior =
                if *individual_digits { Behavior::Isolated } else { Behavior::Contiguous };
            (By::Characters(char::is_numeric), behavior, false)
        }
        spec::PreTokenizer::Punctuation { behavior } => {
            (By::Characters(is_punctuation), *behavior, false)
        }
        spec::PreTokenizer::Whitespace => (By::Words, Behavior::Removed, true),
        spec::PreTokenizer::WhitespaceSplit => {
            (By::Characters(char::is_whitespace), Behavior::Removed, false)
        }
    };
    steps.push(Step::Split { by, behavior, invert });
    Ok(())
}

fn into_byte_characters(piece: &mut Aligned) {
    let mut origins = Vec::with_capacity(piece.origins.len());
    let mut text = String::with_capacity(piece.text.len() * 2);
    let mut at = 0;
    for character in piece.text.chars() {
        // Every byte of a character comes from where its first one does.
        let origin = piece.origins[at];
        for &byte in &piece.text.as_bytes()[at..at + character.len_utf8()] {
            let stands = CHAR_OF[usize::from(byte)];
            text.push(stands);
            origins.extend(std::iter::repeat_n(origin, stands.len_utf8()));
        }
        at += character.len_utf8();
    }
    *piece = Aligned { text, origins };
}

/// A stretch of a text, and whether it counts as a match.
type Stretch = (Range<usize>, bool);

impl By {
    /// The whole text, cut where the matches begin and end.
    fn cut(&self, text: &str, invert: bool) -> Result<Vec<Stretch>> {
        let mut stretches = Vec::new();
        let mut last = 0;
        let mut add = |range: Range<usize>| {
            if last != range.start {
                stretches.push((last..range.start, invert));
            }
            last = range.end;
            stretches.push((range, !invert));
        };
        match self {
            Self::Regex(regex) => regex.each(text, add)?,
            Self::Words => words().find_iter(text).for_each(|found| add(found.range())),
            Self::Characters(is_match) => {
                for (at, character) in text.char_indices().filter(|&(_, c)| is_match(c)) {
                    add(at..at + character.len_utf8());
                }
            }
        }
        if last != text.len() {
            stretches.push((last..text.len(), invert));
        }
        Ok(stretches)
    }
}

/// The pieces that are left of the stretches of a text.
fn behave(stretches: Vec<Stretch>, behavior: Behavior) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::with_capacity(stretches.len());
    let mut before = false;
    match behavior {
        Behavior::Isolated => return stretches.into_iter().map(|(range, _)| range).collect(),
        Behavior::Removed => {
            return stretches.into_iter().filter(|&(_, is)| !is).map(|(range, _)| range).collect();
        }
        Behavior::Contiguous => {
            for (range, is_match) in stretches {
                match pieces.last_mut() {
                    Some(last) if is_match == before => last.end = range.end,
                    _ => pieces.push(range),
                }
                before = is_match;
            }
        }
        Behavior::MergedWithPrevious => {
            for (range, is_match) in stretches {
                match pieces.last_mut() {
                    Some(last) if is_match && !before => last.end = range.end,
                    _ => pieces.push(range),
                }
                before = is_match;
            }
        }
        Behavior::MergedWithNext => {
            for (range, is_match) in stretches.into_iter().rev() {
                match pieces.last_mut() {
                    Some(next) if is_match && !before => next.start = range.start,
                    _ => pieces.push(range),
                }
                before = is_match;
            }
            pieces.reverse();
        }
    }
    pieces
}

/// How a pre-tokenizer cuts text whose bytes the model then takes as they are.
#[derive(Debug, Clone)]
pub(crate) enum Plan {
    /// By a pattern that the core has a scanner for, perhaps with a space before the text.
    Pattern { pattern: String, prefix_space: bool },
    /// By steps.
    Steps(PreTokenizer),
    /// Its pieces are no parts of the text.
    Rewritten,
}

impl Plan {
    /// `is_scanned` says of a pattern whether the core has a scanner for it.
    pub(crate) fn new(
        spec: Option<&spec::PreTokenizer>,
        is_scanned: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        let mut flat = Vec::new();
        if let Some(spec) = spec {
            flatten(spec, &mut flat);
        }
        let Some((spec::PreTokenizer::ByteLevel { add_prefix_space, use_regex, .. }, before)) =
            flat.split_last()
        else {
            return Ok(Self::Rewritten);
        };
        let is_byte_level =
            |part: &&spec::PreTokenizer| matches!(part, spec::PreTokenizer::ByteLevel { .. });
        let (add_prefix_space, use_regex) = (*add_prefix_space, *use_regex);
        if before.is_empty() && use_regex {
            return Ok(Self::Pattern { pattern: GPT2.to_owned(), prefix_space: add_prefix_space });
        }
        if add_prefix_space || before.iter().any(is_byte_level) {
            return Ok(Self::Rewritten);
        }
        let patterns: Option<Vec<&str>> =
            before.iter().map(|part| isolated_pattern(part)).collect();
        Ok(match patterns.as_deref() {
            Some(&[pattern]) if !use_regex && is_scanned(pattern) => {
                Self::Pattern { pattern: pattern.to_owned(), prefix_space: false }
            }
            Some(patterns) if !use_regex && *patterns == DEEPSEEK => {
                Self::Pattern { pattern: bpe_core::split::DEEPSEEK.to_owned(), prefix_space: false }
            }
            _ => {
                let mut steps = PreTokenizer::new(spec)?;
                steps.0.retain(|step| !matches!(step, Step::Bytes));
                Self::Steps(steps)
            }
        })
    }
}

/// The patterns of DeepSeek V3.
const DEEPSEEK: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥\u{3040}-ゟ゠-ヿ]+",
    concat!(
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^"##,
        "\r\n",
        r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[",
        "\r\n",
        r"]*|\s*[",
        "\r\n",
        r"]+|\s+(?!\S)|\s+"
    ),
];

/// The pattern whose matches are pieces of their own, as is what stands between them.
fn isolated_pattern(spec: &spec::PreTokenizer) -> Option<&str> {
    let spec::PreTokenizer::Split { pattern: spec::Pattern::Regex(pattern), behavior, invert } =
        spec
    else {
        return None;
    };
    // Of a pattern that matches everywhere nothing is removed.
    let keeps_all = match behavior {
        Behavior::Isolated => true,
        Behavior::Removed => *invert && !DEEPSEEK.contains(&pattern.as_str()),
        _ => false,
    };
    keeps_all.then_some(pattern)
}

impl PreTokenizer {
    /// The pieces of a text, for steps that leave it as it is.
    pub(crate) fn cut(&self, text: &str) -> Result<Vec<Range<usize>>> {
        let mut pieces = vec![Range { start: 0, end: text.len() }];
        for step in &self.0 {
            let Step::Split { by, behavior, invert } = step else { continue };
            let mut parts = Vec::with_capacity(pieces.len());
            for piece in pieces {
                let found = by.cut(&text[piece.clone()], *invert)?;
                let kept = behave(found, *behavior).into_iter().filter(|range| !range.is_empty());
                parts.extend(kept.map(|part| piece.start + part.start..piece.start + part.end));
            }
            pieces = parts;
        }
        pieces.retain(|piece| !piece.is_empty());
        Ok(pieces)
    }
}

fn flatten<'a>(spec: &'a spec::PreTokenizer, parts: &mut Vec<&'a spec::PreTokenizer>) {
    match spec {
        spec::PreTokenizer::Sequence { pretokenizers } => {
            pretokenizers.iter().for_each(|part| flatten(part, parts));
        }
        other => parts.push(other),
    }
}
