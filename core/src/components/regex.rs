//! Matches patterns with Oniguruma, the regex engine of `tokenizers`. Nearly all patterns match the
//! same in other engines, but only Oniguruma, or a scanner tested against Oniguruma, guarantees the
//! same matches.

use std::ops::Range;
use std::sync::Arc;

use crate::split::Scanner;
use memchr::memmem;
use onig::{MatchParam, Region, SearchOptions};

use crate::error::{Error, Result};

/// Oniguruma's error code for a failed allocation.
const NO_MEMORY: i32 = -5;

#[derive(Clone)]
pub(crate) enum Regex {
    /// A nonempty text to search for.
    Text(Arc<str>),
    /// A run of at least this many spaces, U+0020.
    Blanks(usize),
    /// A run of whitespace.
    Spaces,
    /// A published pattern.
    Published(Scanner),
    Pattern(Arc<onig::Regex>),
}

/// Returns the core's scanner for a published pattern; `None` if Oniguruma may match differently.
pub(crate) fn scanner(pattern: &str) -> Option<Scanner> {
    // In Oniguruma, `{1,3}+` is a repeated repetition, not a possessive repetition.
    let is_count = |part: &str| part.ends_with(|last: char| last.is_ascii_digit() || last == ',');
    let has_count = || pattern.match_indices("}+").any(|(at, _)| is_count(&pattern[..at]));
    Scanner::new(pattern).filter(|_| !has_count())
}

fn compiled(pattern: &str) -> Result<onig::Regex> {
    onig::Regex::new(pattern).map_err(|error| {
        Error::Invalid(format!("the pattern {pattern:?} is malformed: {}", error.description()))
    })
}

impl std::fmt::Debug for Regex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Regex")
    }
}

impl Regex {
    pub(crate) fn new(pattern: &str) -> Result<Self> {
        match pattern {
            " +" | " {1,}" => return Ok(Self::Blanks(1)),
            "  +" | " {2,}" => return Ok(Self::Blanks(2)),
            r"\s+" => return Ok(Self::Spaces),
            _ => {}
        }
        if let Some(scanner) = scanner(pattern) {
            return Ok(Self::Published(scanner));
        }
        Ok(Self::Pattern(Arc::new(compiled(pattern)?)))
    }

    /// Calls `found` with each match in `text`, in order; stops at the first error. Skips an empty
    /// match that directly follows another match.
    pub(crate) fn each(
        &self,
        text: &str,
        mut found: impl FnMut(Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let regex = match self {
            Self::Pattern(regex) => regex,
            Self::Spaces => {
                let mut end = 0;
                while let Some(start) = text[end..].find(char::is_whitespace) {
                    let start = end + start;
                    let rest = &text[start..];
                    end =
                        start + rest.find(|next: char| !next.is_whitespace()).unwrap_or(rest.len());
                    found(start..end)?;
                }
                return Ok(());
            }
            Self::Blanks(least) => {
                let mut ends = 0;
                return memchr::memchr_iter(b' ', text.as_bytes()).try_for_each(|start| {
                    if start < ends {
                        return Ok(());
                    }
                    let rest = text[start..].bytes();
                    ends = start + rest.take_while(|&byte| byte == b' ').count();
                    if ends - start < *least { Ok(()) } else { found(start..ends) }
                });
            }
            Self::Published(scanner) => {
                let mut from = 0;
                while let Some(piece) = scanner.next_piece(text, from) {
                    from = piece.end;
                    found(piece.start..piece.end)?;
                }
                return Ok(());
            }
            Self::Text(wanted) => {
                let mut places = memmem::find_iter(text.as_bytes(), wanted.as_bytes());
                return places.try_for_each(|at| found(at..at + wanted.len()));
            }
        };
        let mut region = Region::new();
        let (mut from, mut last_end) = (0, None);
        while from <= text.len() {
            region.clear();
            let at = regex
                .search_with_param(
                    text,
                    from,
                    text.len(),
                    SearchOptions::SEARCH_OPTION_NONE,
                    Some(&mut region),
                    MatchParam::default(),
                )
                .map_err(|error| match error.code() {
                    NO_MEMORY => Error::OutOfMemory { bytes: text.len() },
                    _ => Error::Invalid(format!(
                        "matching the pattern failed after byte {from} of the text: {}",
                        error.description()
                    )),
                })?;
            let Some((start, end)) = at.and_then(|_| region.pos(0)) else { return Ok(()) };
            if start == end && last_end == Some(end) {
                from += text[from..].chars().next().map_or(1, char::len_utf8);
                continue;
            }
            (from, last_end) = (end, Some(end));
            found(start..end)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(regex: &Regex, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        regex
            .each(text, |range| {
                found.push(range);
                Ok(())
            })
            .unwrap();
        found
    }

    /// Returns texts with many code points next to every kind of character.
    fn texts() -> impl Iterator<Item = String> {
        let codes = (0..0x3400).chain((0x3400..0x11_0000).step_by(7)).filter_map(char::from_u32);
        let codes: Vec<char> = codes.collect();
        let around = |&c: &char| ['a', c, c, '1', c, '!', c, ' ', c, '\n', 'A', c, '的', c];
        let texts: Vec<String> =
            codes.chunks(500).map(|codes| codes.iter().flat_map(around).collect()).collect();
        let alphabet: Vec<char> =
            "aAsStT'’ſlLreE的あ\u{301}\u{345}12٣Ⅷ  \t\n\r\u{a0}!/<|>😀".chars().collect();
        let mut state = 7u64;
        let mut next = move |bound: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % bound
        };
        let random = move |_| {
            let few = 1 + next(alphabet.len());
            (0..next(30)).map(|_| alphabet[next(few)]).collect()
        };
        let named = ["a<|startoftext|>b", "<|endoftext|>!", "!<|endoftext|>'s", "<|startoftext|"];
        texts.into_iter().chain(named.map(str::to_owned)).chain((0..2000).map(random))
    }

    #[test]
    fn scanners_find_what_oniguruma_matches() {
        let texts: Vec<String> = texts().collect();
        let mut count = 0;
        for pattern in Scanner::patterns() {
            let Some(scanner) = scanner(pattern) else { continue };
            let oracle = Regex::Pattern(Arc::new(compiled(pattern).unwrap()));
            for text in &texts {
                let found = matches(&Regex::Published(scanner), text);
                assert_eq!(found, matches(&oracle, text), "{pattern} {text:?}");
            }
            count += 1;
        }
        assert!(count > 8);
    }

    #[test]
    fn white_space_is_what_oniguruma_matches() {
        let oracle = Regex::Pattern(Arc::new(compiled(r"\s+").unwrap()));
        let all = ('\0'..=char::MAX).map(|character| format!("a{character}{character}"));
        for text in all.chain(texts()) {
            assert_eq!(matches(&Regex::Spaces, &text), matches(&oracle, &text), "{text:?}");
        }
    }
}
