//! Matches patterns written for backtracking engines in linear time.
//!
//! Published patterns are alternations of plain alternatives and of `\s+(?!\S)`, sometimes with
//! possessive repeats for backtracking engines. A backtracking engine keeps one state per character
//! of a run and gives up on long runs. Here the pattern is decomposed into plain regexes, which
//! automata match in linear time:
//!
//! - a possessive repeat becomes a greedy repeat, where giving characters back could never help;
//! - the alternative `\s+(?!\S)` becomes `\s+`, and the last character of its match is given back
//!   when something other than whitespace follows.

use fancy_regex::{Assertion, Expr, Regex, RegexInput};
use regex::Regex as PlainRegex;

use super::Piece;
use super::chars::{self, SPACE};
use super::compile::{compile, limit};
use crate::error::Result;

/// The alternative that [`Linear`] replaces.
const SPACES: &str = r"\s+(?!\S)";

/// A pattern `before|\s+(?!\S)|after`, or a pattern without that alternative.
#[derive(Debug, Clone)]
pub(super) struct Linear {
    /// `before|\s+|after`, or the whole pattern.
    any: Regex,
    spaces: Option<Spaces>,
}

#[derive(Debug, Clone)]
struct Spaces {
    /// Alternatives before the whitespace alternative; `None` if there are none.
    before: Option<Regex>,
    /// `before|after`; `None` if there is only the whitespace alternative.
    others: Option<Regex>,
}

impl Linear {
    /// Decomposes `pattern`; `None` if it needs the backtracking engine.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        let expr = Expr::parse_tree(pattern).ok()?.expr;
        let spaces = Expr::parse_tree(SPACES).ok()?.expr;
        let alternatives = match expr {
            Expr::Alt(alternatives) => alternatives,
            other => vec![other],
        };
        let at = alternatives.iter().position(|alternative| *alternative == spaces);
        let plain: Vec<String> = alternatives
            .into_iter()
            .enumerate()
            .map(
                |(index, alternative)| {
                    if Some(index) == at { Some(r"\s+".to_owned()) } else { plain(alternative) }
                },
            )
            .collect::<Option<_>>()?;
        let build = |alternatives: &[String]| compile(&alternatives.join("|")).ok();
        let any = build(&plain)?;
        let Some(at) = at else { return Some(Self { any, spaces: None }) };
        let mut others = plain.clone();
        others.remove(at);
        let spaces = Spaces {
            before: if at > 0 { Some(build(&plain[..at])?) } else { None },
            others: if others.is_empty() { None } else { Some(build(&others)?) },
        };
        Some(Self { any, spaces: Some(spaces) })
    }

    /// Returns the next nonempty match at or after `*position`, and advances the position past it.
    pub(super) fn next_piece(&self, text: &str, position: &mut usize) -> Result<Option<Piece>> {
        while *position <= text.len() {
            let found =
                self.any.find_from_pos(text, *position).map_err(|e| limit(*position, &e))?;
            let Some(found) = found else { break };
            let (start, end) = (found.start(), found.end());
            let end = match &self.spaces {
                Some(spaces) if end > start && is_whitespace(&text[start..end]) => {
                    spaces.end(text, start, end)?
                }
                _ => Some(end),
            };
            match end {
                Some(end) if end > start => {
                    *position = end;
                    return Ok(Some(Piece { start, end }));
                }
                // No match at `start`, or an empty match.
                _ => *position = start + text[start..].chars().next().map_or(1, char::len_utf8),
            }
        }
        *position = text.len() + 1;
        Ok(None)
    }
}

impl Spaces {
    /// Returns the end of the pattern's match at `start`, where `before|\s+|after` matches the
    /// whitespace `start..end`; `None` if the pattern itself does not match there.
    fn end(&self, text: &str, start: usize, end: usize) -> Result<Option<usize>> {
        let anchored = |regex: &Option<Regex>| match regex {
            None => Ok(None),
            Some(regex) => regex
                .find_input(RegexInput::new(text).from_pos(start).anchored(true))
                .map(|found| found.map(|found| found.end()))
                .map_err(|error| limit(start, &error)),
        };
        if let Some(end) = anchored(&self.before)? {
            return Ok(Some(end));
        }
        if end == text.len() {
            return Ok(Some(end));
        }
        let last = text[start..end].chars().next_back().map_or(0, char::len_utf8);
        if end - last > start {
            return Ok(Some(end - last));
        }
        anchored(&self.others)
    }
}

fn is_whitespace(text: &str) -> bool {
    text.chars().all(|c| chars::class(c as u32) & SPACE != 0)
}

/// Translates an alternative to plain regex syntax if the meaning is the same: plain regexes
/// support the whole alternative, and possessive repeats occur only where greedy repeats match the
/// same text.
fn plain(alternative: Expr) -> Option<String> {
    let items = match alternative {
        Expr::Concat(items) => items,
        other => vec![other],
    };
    let mut result = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        result.push(match item {
            // Nothing after an alternative can fail and backtrack into it, so the rest of the
            // alternative alone decides.
            Expr::AtomicGroup(repeat) => without_possession(repeat, &items[index + 1..])?,
            other => other.clone(),
        });
    }
    if !result.iter().all(is_plain) {
        return None;
    }
    let mut text = String::new();
    Expr::Concat(result).to_str(&mut text, 1);
    Some(text)
}

/// Returns the greedy repeat if it matches the same text as the possessive repeat before `rest`.
fn without_possession(repeat: &Expr, rest: &[Expr]) -> Option<Expr> {
    let Expr::Repeat { child, greedy: true, .. } = repeat else { return None };
    let same = rest.iter().all(never_fails)
        || rest.first().is_some_and(|next| cannot_begin_with(next, child));
    same.then(|| repeat.clone())
}

/// Returns true if plain regexes support everything in `expr`.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Concat(_) | Expr::Alt(_) | Expr::Group(_) | Expr::Repeat { .. } => {
            expr.children_iter().all(is_plain)
        }
        Expr::Empty | Expr::Any { .. } | Expr::Literal { .. } | Expr::Delegate { .. } => true,
        Expr::Assertion(assertion) => matches!(
            assertion,
            Assertion::StartText
                | Assertion::EndText
                | Assertion::StartLine { .. }
                | Assertion::EndLine { .. }
                | Assertion::WordBoundary
                | Assertion::NotWordBoundary
        ),
        _ => false,
    }
}

/// Returns true if `expr` matches at every position, possibly the empty text.
fn never_fails(expr: &Expr) -> bool {
    match expr {
        Expr::Repeat { lo: 0, .. } | Expr::Empty => true,
        Expr::AtomicGroup(inner) => never_fails(inner),
        _ => false,
    }
}

/// Returns true if no match of `expr` begins with a character of `class`.
fn cannot_begin_with(expr: &Expr, class: &Expr) -> bool {
    match expr {
        Expr::Assertion(Assertion::EndText) => single(class).is_some(),
        Expr::AtomicGroup(inner) => cannot_begin_with(inner, class),
        Expr::Repeat { child, lo: 1.., .. } => cannot_begin_with(child, class),
        _ => match (single(expr), single(class)) {
            (Some(first), Some(class)) => are_disjoint(&first, &class),
            _ => false,
        },
    }
}

/// Returns `expr` as a class if it always matches exactly one character.
fn single(expr: &Expr) -> Option<String> {
    let is_single = match expr {
        Expr::Delegate { casei: false, .. } => true,
        Expr::Literal { val, casei: false } => val.chars().count() == 1,
        _ => false,
    };
    is_single.then(|| {
        let mut text = String::new();
        expr.to_str(&mut text, 3);
        text
    })
}

/// Returns true if the classes share no character.
fn are_disjoint(one: &str, other: &str) -> bool {
    let Ok(both) = PlainRegex::new(&format!("[{one}&&{other}]")) else { return false };
    let mut buffer = [0; 4];
    !(0..=char::MAX as u32)
        .filter_map(char::from_u32)
        .any(|c| both.is_match(c.encode_utf8(&mut buffer)))
}
