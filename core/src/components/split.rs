//! Pre-tokenizers cut text into pieces.

use std::ops::Range;

use crate::Splitter;
use crate::memory::{push, reserve, reserve_text, with_capacity};
use crate::polling::poll;
use memchr::memchr_iter;
use unicode_categories::UnicodeCategories;

use crate::components::bytes::{CHAR_OF, MARK, represents_byte};
use crate::components::normalize::compile;
use crate::components::offsets::AlignedText;
use crate::components::regex::{Regex, scanner};
use crate::components::scripts::script_of;
use crate::components::spec::{self, Behavior};
use crate::error::{Error, Result};

/// GPT-2's pattern, used by `ByteLevel`.
pub(crate) const GPT2: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// A pre-tokenizer, ready to run: a list of steps that split every piece further.
#[derive(Debug, Clone, Default)]
pub(crate) struct PreTokenizer(Vec<Step>);

#[derive(Debug, Clone)]
enum Step {
    /// Adds a space before pieces that do not begin with a space.
    PrefixSpace,
    Split {
        by: By,
        behavior: Behavior,
        invert: bool,
    },
    /// Replaces every byte with the character that represents it.
    Bytes,
    Metaspace(spec::Metaspace),
}

/// Matches to split by.
#[derive(Debug, Clone)]
enum By {
    Regex(Regex),
    Words,
    Characters(fn(char) -> bool),
    /// The words of [`bert`].
    Bert,
    /// The pieces of [`scripts`].
    Scripts,
    /// Pieces of this many characters.
    Length(usize),
}

/// Receives the pieces of a text, in order.
type EachPiece<'a> = &'a mut dyn FnMut(Range<usize>) -> Result<()>;

#[derive(PartialEq)]
enum CharacterKind {
    Word,
    Space,
    Other,
}

fn kind(character: char) -> CharacterKind {
    if is_word(character) {
        CharacterKind::Word
    } else if character.is_whitespace() {
        CharacterKind::Space
    } else {
        CharacterKind::Other
    }
}

/// Whether `\w` matches the character.
pub(crate) fn is_word(character: char) -> bool {
    // Never fails: the tables are compiled in.
    regex_syntax::try_is_word_character(character).unwrap_or(false)
}

fn is_punctuation(character: char) -> bool {
    match character.is_ascii() {
        true => character.is_ascii_punctuation(),
        false => UnicodeCategories::is_punctuation(character),
    }
}

impl PreTokenizer {
    pub(crate) fn new(spec: Option<&spec::PreTokenizer>) -> Result<Self> {
        let mut steps = Vec::new();
        if let Some(spec) = spec {
            add_steps(spec, &mut steps)?;
        }
        Ok(Self(steps))
    }

    /// Returns true if no step cuts a text without spaces.
    pub(crate) fn cuts_at_spaces_only(&self) -> bool {
        let is_space = |by: &By| matches!(by, By::Regex(Regex::Text(text)) if &**text == " ");
        let is_kept =
            |step: &Step| matches!(step, Step::Split { by, invert: false, .. } if is_space(by));
        self.0.iter().all(is_kept)
    }

    /// Returns true if no step cuts near these two characters in any context.
    pub(crate) fn ignores(&self, characters: [char; 2]) -> bool {
        self.0.iter().all(|step| {
            let Step::Split { by: By::Regex(Regex::Text(text)), .. } = step else { return false };
            !characters.iter().any(|&character| text.contains(character))
        })
    }

    /// Splits every piece further. Drops empty pieces. `is_first` is true if the original of the
    /// pieces begins the text.
    pub(crate) fn split(
        &self,
        pieces: Vec<AlignedText>,
        is_first: bool,
    ) -> Result<Vec<AlignedText>> {
        let mut pieces = pieces;
        for step in &self.0 {
            match step {
                Step::PrefixSpace => {
                    for piece in &mut pieces {
                        if !piece.text.starts_with(' ') {
                            piece.prepend(" ")?;
                        }
                    }
                }
                Step::Bytes => pieces.iter_mut().try_for_each(into_byte_characters)?,
                Step::Metaspace(metaspace) => {
                    let mut parts = with_capacity(pieces.len())?;
                    for piece in pieces {
                        mark_spaces(metaspace, piece, is_first, &mut parts)?;
                    }
                    pieces = parts;
                }
                Step::Split { by, behavior, invert } => {
                    let mut parts = with_capacity(pieces.len())?;
                    for piece in &pieces {
                        for range in by.parts(&piece.text, *behavior, *invert)? {
                            push(&mut parts, piece.slice(range)?)?;
                        }
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
                let by = By::Regex(Regex::new(GPT2)?);
                steps.push(Step::Split { by, behavior: Behavior::Isolated, invert: false });
            }
            steps.push(Step::Bytes);
            return Ok(());
        }
        spec::PreTokenizer::Metaspace(metaspace) => {
            steps.push(Step::Metaspace(metaspace.clone()));
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
        &spec::PreTokenizer::CharDelimiterSplit { delimiter } => {
            let delimiter = delimiter.encode_utf8(&mut [0; 4]).into();
            (By::Regex(Regex::Text(delimiter)), Behavior::Removed, false)
        }
        spec::PreTokenizer::BertPreTokenizer => (By::Bert, Behavior::Isolated, false),
        spec::PreTokenizer::UnicodeScripts => (By::Scripts, Behavior::Isolated, false),
        spec::PreTokenizer::FixedLength { length: 0 } => {
            return Err(Error::unsupported("pre_tokenizer.length", "a length of 0"));
        }
        &spec::PreTokenizer::FixedLength { length } => {
            (By::Length(length), Behavior::Isolated, false)
        }
    };
    steps.push(Step::Split { by, behavior, invert });
    Ok(())
}

fn into_byte_characters(piece: &mut AlignedText) -> Result<()> {
    // Each byte becomes at most two bytes.
    let mut origins = with_capacity(piece.origins.len() * 2)?;
    let mut text = String::new();
    reserve_text(&mut text, piece.text.len() * 2)?;
    let mut at = 0;
    for character in piece.text.chars() {
        poll(character.len_utf8())?;
        // All bytes of a character have the origin of the first byte.
        let origin = piece.origins[at];
        for &byte in &piece.text.as_bytes()[at..at + character.len_utf8()] {
            let new = CHAR_OF[usize::from(byte)];
            text.push(new);
            origins.extend(std::iter::repeat_n(origin, new.len_utf8()));
        }
        at += character.len_utf8();
    }
    (piece.text, piece.origins) = (text, origins);
    Ok(())
}

/// Replaces the spaces of a piece, prepends the replacement, and appends the resulting parts.
fn mark_spaces(
    metaspace: &spec::Metaspace,
    mut piece: AlignedText,
    is_first: bool,
    parts: &mut Vec<AlignedText>,
) -> Result<()> {
    let mut mark = [0; 4];
    let mark = &*metaspace.replacement.encode_utf8(&mut mark);
    let spaces: Vec<Range<usize>> =
        memchr_iter(b' ', piece.text.as_bytes()).map(|at| at..at + 1).collect::<Vec<_>>();
    piece.replace(&spaces, mark)?;
    let begins = |origin: &(usize, usize)| origin.0 <= piece.begin;
    let is_first = is_first && piece.origins.first().is_some_and(begins);
    if metaspace.prepends(&piece.text, is_first) {
        piece.prepend(mark)?;
    }
    for range in metaspace.parts(&piece.text, metaspace.replacement)? {
        push(parts, piece.slice(range)?)?;
    }
    Ok(())
}

/// How a pre-tokenizer treats the characters of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Pieces may differ from parts of the text.
    Rewrites,
    /// Drops all whitespace, judging each position only by the two characters around it.
    DropsSpaces,
    /// Cuts, judging each position only by the two characters around it.
    CutsByCharacter,
    /// Cuts by other rules.
    Cuts,
    /// Combines the effects of its parts.
    Combines,
}

impl spec::PreTokenizer {
    fn effect(&self) -> Effect {
        match self {
            Self::ByteLevel { .. } | Self::Metaspace(_) => Effect::Rewrites,
            Self::Whitespace | Self::WhitespaceSplit | Self::BertPreTokenizer => {
                Effect::DropsSpaces
            }
            Self::Digits { .. } | Self::Punctuation { .. } => Effect::CutsByCharacter,
            Self::Split { .. } | Self::CharDelimiterSplit { .. } => Effect::Cuts,
            Self::UnicodeScripts | Self::FixedLength { .. } => Effect::Cuts,
            Self::Sequence { .. } => Effect::Combines,
        }
    }

    /// Whether the characters of pieces represent bytes; `before` says so for the text itself.
    pub(crate) fn represents_bytes(&self, before: bool) -> bool {
        match self {
            Self::ByteLevel { .. } => true,
            Self::Metaspace(metaspace) => before && represents_byte(metaspace.replacement),
            Self::Sequence { pretokenizers } => {
                pretokenizers.iter().fold(before, |before, part| part.represents_bytes(before))
            }
            _ => before && !self.rewrites(),
        }
    }

    /// Whether the start of a text is treated differently.
    pub(crate) fn marks_beginning(&self) -> bool {
        match self {
            Self::ByteLevel { .. } => false,
            Self::Metaspace(metaspace) => !metaspace.is_local(),
            Self::Sequence { pretokenizers } => pretokenizers.iter().any(Self::marks_beginning),
            _ => self.rewrites(),
        }
    }

    /// Whether the pre-tokenizer judges each position only by the two characters around it.
    fn is_of_characters(&self) -> bool {
        matches!(self.effect(), Effect::CutsByCharacter | Effect::DropsSpaces)
    }

    /// Whether the pre-tokenizer drops all whitespace.
    fn drops_spaces(&self) -> bool {
        self.effect() == Effect::DropsSpaces
    }

    /// Whether the pre-tokenizer drops characters or replaces spaces with marks.
    fn changes_characters(&self) -> bool {
        let removes = |behavior: &Behavior| *behavior == Behavior::Removed;
        match self {
            Self::Split { behavior, .. } | Self::Punctuation { behavior, .. } => removes(behavior),
            Self::CharDelimiterSplit { .. } => true,
            Self::ByteLevel { .. } => false,
            _ => self.drops_spaces() || self.rewrites(),
        }
    }

    /// Whether pieces may differ from parts of the text.
    fn rewrites(&self) -> bool {
        self.effect() == Effect::Rewrites
    }
}

/// Whether parts drop all whitespace, and judge each position only by the two characters around it.
fn drop_spaces(parts: &[&spec::PreTokenizer]) -> bool {
    parts.iter().all(|part| part.is_of_characters()) && parts.iter().any(|part| part.drops_spaces())
}

impl spec::Metaspace {
    /// Whether all pieces of a text are treated alike.
    pub(crate) fn is_local(&self) -> bool {
        self.prepend_scheme != spec::PrependScheme::First
    }

    /// Whether the replacement is prepended to this text.
    pub(crate) fn prepends(&self, text: &str, is_first: bool) -> bool {
        let is_prepended = match self.prepend_scheme {
            spec::PrependScheme::Always => true,
            spec::PrependScheme::First => is_first,
            spec::PrependScheme::Never => false,
        };
        is_prepended && !text.is_empty() && !text.starts_with(self.replacement)
    }

    /// Returns the parts of a text with `mark` as the replacement.
    pub(crate) fn parts(&self, text: &str, mark: char) -> Result<Vec<Range<usize>>> {
        let mut parts = Vec::new();
        self.each_part(text, mark, |part| push(&mut parts, part))?;
        Ok(parts)
    }

    /// Calls `found` with each of [`Self::parts`].
    pub(crate) fn each_part(
        &self,
        text: &str,
        mark: char,
        mut found: impl FnMut(Range<usize>) -> Result<()>,
    ) -> Result<()> {
        match self.split {
            true => each_marked(text, mark, found),
            false if text.is_empty() => Ok(()),
            false => found(0..text.len()),
        }
    }
}

/// Cuts a text before each mark, and calls `found` with each nonempty part.
pub(crate) fn each_marked(
    text: &str,
    mark: char,
    mut found: impl FnMut(Range<usize>) -> Result<()>,
) -> Result<()> {
    let mut start = 0;
    for (at, _) in text.match_indices(mark).filter(|&(at, _)| at > 0) {
        poll(at - start)?;
        found(start..at)?;
        start = at;
    }
    if start < text.len() { found(start..text.len()) } else { Ok(()) }
}

/// A range of a text, and whether it is a match.
type CutRange = (Range<usize>, bool);

impl By {
    /// Returns the nonempty pieces of a text.
    fn parts(&self, text: &str, behavior: Behavior, invert: bool) -> Result<Vec<Range<usize>>> {
        let mut parts = Vec::new();
        match self {
            Self::Bert => bert(text, &mut |part| push(&mut parts, part))?,
            Self::Scripts => scripts(text, &mut |part| push(&mut parts, part))?,
            Self::Length(length) => each_of_length(text, *length, |part| push(&mut parts, part))?,
            Self::Characters(is_match) if behavior == Behavior::Removed && !invert => {
                each_between(text, is_match, |part| push(&mut parts, part))?;
            }
            _ => parts = behave(self.cut(text, invert)?, behavior)?,
        }
        parts.retain(|part| !part.is_empty());
        Ok(parts)
    }

    /// Cuts the whole text at the starts and ends of matches.
    fn cut(&self, text: &str, invert: bool) -> Result<Vec<CutRange>> {
        let mut ranges = Vec::new();
        let mut last = 0;
        let mut add = |range: Range<usize>| {
            poll(range.end - last)?;
            if last != range.start {
                push(&mut ranges, (last..range.start, invert))?;
            }
            last = range.end;
            push(&mut ranges, (range, !invert))
        };
        match self {
            Self::Regex(regex) => regex.each(text, add)?,
            Self::Words => {
                // Finds the matches of `\w+|[^\w\s]+`.
                let mut characters = text.char_indices().peekable();
                while let Some((start, first)) = characters.next() {
                    let (kind, mut end) = (kind(first), start + first.len_utf8());
                    while let Some((at, next)) = characters.next_if(|&(_, c)| self::kind(c) == kind)
                    {
                        end = at + next.len_utf8();
                    }
                    if kind != CharacterKind::Space {
                        add(start..end)?;
                    }
                }
            }
            Self::Characters(is_match) => {
                for (at, character) in text.char_indices().filter(|&(_, c)| is_match(c)) {
                    add(at..at + character.len_utf8())?;
                }
            }
            Self::Bert | Self::Scripts | Self::Length(_) => {}
        }
        if last != text.len() {
            push(&mut ranges, (last..text.len(), invert))?;
        }
        Ok(ranges)
    }
}

/// Calls `found` with the words of `BertPreTokenizer`: cuts at whitespace, and around punctuation.
fn bert(text: &str, found: EachPiece<'_>) -> Result<()> {
    let mut start = 0;
    for (at, character) in text.char_indices() {
        let is_space = character.is_whitespace();
        if !is_space && !is_punctuation(character) {
            continue;
        }
        poll(at - start)?;
        let end = at + character.len_utf8();
        found(start..at)?;
        if !is_space {
            found(at..end)?;
        }
        start = end;
    }
    found(start..text.len())
}

/// Calls `found` with the pieces of `UnicodeScripts`: cuts where the script changes. Spaces and
/// unassigned characters belong to any script; at the start they are dropped, as in `tokenizers`.
fn scripts(text: &str, found: EachPiece<'_>) -> Result<()> {
    let (mut last, mut start) = (None, text.len());
    for (at, character) in text.char_indices() {
        let script = script_of(character);
        if script.is_none() || script == last {
            continue;
        }
        if last.is_some() {
            poll(at - start)?;
            found(start..at)?;
        }
        (last, start) = (script, at);
    }
    found(start..text.len())
}

/// Calls `found` with the runs between dropped characters.
fn each_between(
    text: &str,
    is_left_out: impl Fn(char) -> bool,
    mut found: impl FnMut(Range<usize>) -> Result<()>,
) -> Result<()> {
    let mut start = 0;
    for (at, character) in text.char_indices().filter(|&(_, it)| is_left_out(it)) {
        poll(at - start)?;
        found(start..at)?;
        start = at + character.len_utf8();
    }
    found(start..text.len())
}

fn each_of_length(
    text: &str,
    length: usize,
    mut found: impl FnMut(Range<usize>) -> Result<()>,
) -> Result<()> {
    let mut start = 0;
    while start < text.len() {
        let next = text[start..].char_indices().nth(length);
        let end = next.map_or(text.len(), |(at, _)| start + at);
        poll(end - start)?;
        found(start..end)?;
        start = end;
    }
    Ok(())
}

/// Cuts text into pieces.
#[derive(Debug)]
pub(crate) struct Split {
    /// The pre-tokenizer as in the file.
    spec: Option<spec::PreTokenizer>,
    steps: PreTokenizer,
    plan: Plan,
    /// Whether all whitespace is dropped, and text beyond whitespace never changes a piece.
    drops_spaces: bool,
}

impl Split {
    pub(crate) fn new(spec: Option<spec::PreTokenizer>) -> Result<Self> {
        let steps = PreTokenizer::new(spec.as_ref())?;
        let is_scanned = |pattern: &str| {
            let splitter = scanner(pattern).and_then(|_| Splitter::new(pattern).ok());
            splitter.is_some_and(|splitter| splitter.is_family())
        };
        let plan = Plan::new(spec.as_ref(), is_scanned)?;
        let mut parts = Vec::new();
        spec.iter().for_each(|spec| flatten(spec, &mut parts));
        let drops_spaces = drop_spaces(&parts);
        Ok(Self { spec, steps, plan, drops_spaces })
    }

    /// Returns the split of a pipeline of ranks, whose direct stage does the splitting.
    pub(crate) fn of_ranks() -> Self {
        let plan = Plan::Pattern { pattern: String::new(), prefix_space: false };
        Self { spec: None, steps: PreTokenizer::default(), plan, drops_spaces: false }
    }

    pub(crate) fn spec(&self) -> Option<&spec::PreTokenizer> {
        self.spec.as_ref()
    }

    pub(crate) fn steps(&self) -> &PreTokenizer {
        &self.steps
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether pieces consist of characters that represent bytes.
    pub(crate) fn is_byte_level(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.represents_bytes(false))
    }

    /// Returns the core's splitter: for the pattern, or arbitrary if the core receives pieces.
    pub(crate) fn splitter(&self) -> Result<Splitter> {
        Splitter::new(match &self.plan {
            Plan::Pattern { pattern, .. } => pattern,
            _ => GPT2,
        })
    }

    /// Whether text is cut only at spaces.
    pub(crate) fn cuts_at_spaces(&self) -> bool {
        matches!(&self.plan, Plan::Steps(steps) if steps.cuts_at_spaces_only())
    }

    /// Whether all whitespace is dropped, and text beyond whitespace never changes a piece.
    pub(crate) fn drops_spaces(&self) -> bool {
        self.drops_spaces
    }

    /// Whether a step drops or rewrites characters before bytes are represented.
    pub(crate) fn may_change_characters(&self) -> bool {
        let mut parts = Vec::new();
        self.spec.iter().for_each(|spec| flatten(spec, &mut parts));
        self.is_byte_level() && parts.iter().any(|part| part.changes_characters())
    }

    /// Whether each ASCII punctuation character is a separate piece.
    pub(crate) fn isolates_punctuation(&self) -> bool {
        self.steps.0.iter().any(|step| matches!(step, Step::Split { by: By::Bert, .. }))
    }

    /// Whether every step keeps the character and the ASCII text around it in one piece, apart from
    /// the mark before the piece.
    pub(crate) fn keeps(&self, character: char) -> bool {
        !character.is_ascii_whitespace()
            && self.steps.0.iter().all(|step| match step {
                Step::Split { by: By::Characters(is_match), .. } => !is_match(character),
                Step::Split { by: By::Words, .. } => is_word(character),
                Step::Split { by: By::Bert, .. } => {
                    !is_punctuation(character) && !character.is_whitespace()
                }
                Step::Metaspace(metaspace) => character != metaspace.replacement,
                _ => false,
            })
    }

    /// Whether text is cut between these two characters in any context, so that both parts have the
    /// same pieces as the whole.
    pub(crate) fn cuts(&self, before: char, after: char) -> bool {
        match &self.plan {
            Plan::Metaspace(metaspace) => metaspace.split && after == metaspace.replacement,
            _ if self.drops_spaces => before.is_whitespace() || after.is_whitespace(),
            _ => false,
        }
    }

    /// Calls `found` with the nonempty pieces of a text, until `found` fails.
    pub(crate) fn each_piece(
        &self,
        text: &str,
        mut found: impl FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        let pieces = self.steps.split(vec![AlignedText::original(text, 0..text.len())?], true)?;
        let mut pieces = pieces.iter().filter(|piece| !piece.text.is_empty());
        pieces.try_for_each(|piece| found(&piece.text))
    }
}

/// Combines ranges into pieces as `behavior` says.
fn behave(ranges: Vec<CutRange>, behavior: Behavior) -> Result<Vec<Range<usize>>> {
    let mut pieces: Vec<Range<usize>> = with_capacity(ranges.len())?;
    let mut before = false;
    match behavior {
        Behavior::Isolated => pieces.extend(ranges.into_iter().map(|(range, _)| range)),
        Behavior::Removed => {
            pieces.extend(ranges.into_iter().filter(|&(_, is)| !is).map(|(range, _)| range));
        }
        Behavior::Contiguous => {
            for (range, is_match) in ranges {
                match pieces.last_mut() {
                    Some(last) if is_match == before => last.end = range.end,
                    _ => pieces.push(range),
                }
                before = is_match;
            }
        }
        Behavior::MergedWithPrevious => {
            for (range, is_match) in ranges {
                match pieces.last_mut() {
                    Some(last) if is_match && !before => last.end = range.end,
                    _ => pieces.push(range),
                }
                before = is_match;
            }
        }
        Behavior::MergedWithNext => {
            for (range, is_match) in ranges.into_iter().rev() {
                match pieces.last_mut() {
                    Some(next) if is_match && !before => next.start = range.start,
                    _ => pieces.push(range),
                }
                before = is_match;
            }
            pieces.reverse();
        }
    }
    Ok(pieces)
}

/// How text is cut for the core, which reads the bytes of the text unchanged.
#[derive(Debug, Clone)]
pub(crate) enum Plan {
    /// By a pattern with a scanner in the core, optionally after adding a space.
    Pattern { pattern: String, prefix_space: bool },
    /// By steps.
    Steps(PreTokenizer),
    /// By marking spaces, over characters.
    Metaspace(spec::Metaspace),
    /// By steps that drop spaces, then by putting a mark before each piece.
    Marked(PreTokenizer, spec::Metaspace),
    /// The core cannot cut: the pieces are not parts of the text.
    Rewritten,
}

impl Plan {
    /// Chooses the plan. `is_scanned` tells whether the core has a scanner for a pattern.
    pub(crate) fn new(
        spec: Option<&spec::PreTokenizer>,
        is_scanned: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        let mut flat = Vec::new();
        if let Some(spec) = spec {
            flatten(spec, &mut flat);
        }
        let (add_prefix_space, use_regex, before) = match &flat[..] {
            [spec::PreTokenizer::Metaspace(metaspace)] if metaspace.replacement == MARK => {
                return Ok(Self::Metaspace(metaspace.clone()));
            }
            [before @ .., spec::PreTokenizer::Metaspace(metaspace)]
                if drop_spaces(before) && metaspace.is_local() =>
            {
                let mut steps = PreTokenizer::new(spec)?;
                steps.0.pop();
                return Ok(Self::Marked(steps, metaspace.clone()));
            }
            [before @ .., spec::PreTokenizer::ByteLevel { add_prefix_space, use_regex, .. }] => {
                (*add_prefix_space, *use_regex, before)
            }
            parts => (false, false, parts),
        };
        if before.len() < flat.len() && before.is_empty() && use_regex {
            return Ok(Self::Pattern { pattern: GPT2.to_owned(), prefix_space: add_prefix_space });
        }
        if add_prefix_space || before.iter().any(|part| part.rewrites()) {
            return Ok(Self::Rewritten);
        }
        if before.len() == flat.len() {
            return Ok(Self::Steps(PreTokenizer::new(spec)?));
        }
        let patterns: Option<Vec<&str>> =
            before.iter().map(|part| isolated_pattern(part)).collect();
        Ok(match patterns.as_deref() {
            Some(&[pattern]) if !use_regex && is_scanned(pattern) => {
                Self::Pattern { pattern: pattern.to_owned(), prefix_space: false }
            }
            Some(patterns) if !use_regex && *patterns == DEEPSEEK => {
                Self::Pattern { pattern: crate::split::DEEPSEEK.to_owned(), prefix_space: false }
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

/// Returns the pattern of a split whose pieces are the matches and the text between them.
fn isolated_pattern(spec: &spec::PreTokenizer) -> Option<&str> {
    let spec::PreTokenizer::Split { pattern: spec::Pattern::Regex(pattern), behavior, invert } =
        spec
    else {
        return None;
    };
    // A pattern that matches everywhere leaves nothing to remove.
    let keeps_all = match behavior {
        Behavior::Isolated => true,
        Behavior::Removed => *invert && !DEEPSEEK.contains(&pattern.as_str()),
        _ => false,
    };
    keeps_all.then_some(pattern)
}

impl PreTokenizer {
    /// Cuts a text by steps that do not change characters.
    pub(crate) fn cut(&self, text: &str) -> Result<Vec<Range<usize>>> {
        let mut pieces = vec![Range { start: 0, end: text.len() }];
        for step in &self.0 {
            let Step::Split { by, behavior, invert } = step else { continue };
            let mut parts = with_capacity(pieces.len())?;
            for piece in pieces {
                let found = by.parts(&text[piece.clone()], *behavior, *invert)?;
                reserve(&mut parts, found.len())?;
                let place = |part: Range<usize>| piece.start + part.start..piece.start + part.end;
                parts.extend(found.into_iter().map(place));
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
