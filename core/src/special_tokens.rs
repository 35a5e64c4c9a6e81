//! Finds special tokens in text.

use std::collections::HashMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind, StartKind};
use memchr::memmem::Finder;

use crate::error::{Error, Result};

/// Special tokens of an encoding: names, ids, and a searcher for all names.
#[derive(Debug, Clone)]
pub struct SpecialTokens {
    by_name: HashMap<String, u32>,
    by_id: HashMap<u32, String>,
    all: Names,
}

/// A selection of an encoding's special tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// No special tokens.
    None,
    /// All special tokens.
    All,
    /// One flag for each name in [`SpecialTokens::all`].
    Some(Vec<bool>),
}

impl Selection {
    /// Returns true if the name at this index is selected.
    pub fn contains(&self, name: usize) -> bool {
        match self {
            Selection::None => false,
            Selection::All => true,
            Selection::Some(flags) => flags[name],
        }
    }
}

/// The span of a special token's name in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// First byte of the name.
    pub start: usize,
    /// Byte after the name.
    pub end: usize,
    /// Index of the name in [`Names::names`].
    pub name: usize,
}

/// A set of names to search for in texts, leftmost-longest.
#[derive(Debug, Clone)]
pub struct Names {
    names: Vec<String>,
    shortest: usize,
    longest: usize,
    searcher: Option<Searcher>,
}

/// Finds names in a text, leftmost-longest.
#[derive(Debug, Clone)]
pub struct Automaton {
    automaton: AhoCorasick,
    /// Number of patterns before the first name: 1 with a [`ballast`].
    first: usize,
}

impl Automaton {
    /// Builds an automaton for `names`. With `anchored`, the automaton can also search at a single
    /// position.
    pub fn new(names: &[impl AsRef<[u8]>], anchored: bool) -> Result<Self> {
        // Building a DFA takes quadratic time for a name such as "aaaa...".
        let is_long = names.iter().any(|name| name.as_ref().len() > 1024);
        let ballast = ballast(names.len());
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .start_kind(if anchored { StartKind::Both } else { StartKind::Unanchored })
            .kind((is_long || anchored).then_some(AhoCorasickKind::ContiguousNFA))
            .build(ballast.iter().map(Vec::as_slice).chain(names.iter().map(AsRef::as_ref)))
            .map_err(|error| Error::SpecialToken(error.to_string()))?;
        Ok(Self { automaton, first: ballast.iter().len() })
    }

    /// Returns the first match in UTF-8 text: the index of the name, and its span.
    pub fn find<'a>(&self, text: impl Into<Input<'a>>) -> Option<(usize, Range<usize>)> {
        let found = self.automaton.find(text.into())?;
        Some((found.pattern().as_usize() - self.first, found.range()))
    }
}

/// Returns a pattern that occurs in no text, to put before `names` names.
///
/// The crate swaps all states that end a pattern to the front, and then follows each cycle of swaps
/// once for every state in the cycle. If nearly all states end a name (`t1`, `t10`, `t100`), the
/// swaps form one cycle, which takes quadratic time. The states of this pattern come first, join
/// the swaps, and keep the cycles short.
fn ballast(names: usize) -> Option<Vec<u8>> {
    /// Number of states in each cycle of swaps.
    const CYCLE: usize = 16;
    /// For fewer names, even one cycle takes hardly any time.
    const MANY: usize = 512;
    // 0xff does not occur in UTF-8.
    (names >= MANY).then(|| vec![0xff; names / CYCLE])
}

/// Searches for the common prefix of all names, nearly always `<|`, before searching for names:
/// most texts do not contain the prefix and need one fast scan.
#[derive(Debug, Clone)]
struct Searcher {
    /// `None` if names have no common prefix.
    beginning: Option<Finder<'static>>,
    names: Automaton,
}

impl Searcher {
    /// Creates a searcher for `names`, which are sorted and nonempty.
    fn new(names: &[String]) -> Result<Self> {
        // A common prefix of the first and the last name is a prefix of all names.
        let (first, last) = (names[0].as_bytes(), names[names.len() - 1].as_bytes());
        let alike = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let beginning = (alike > 0).then(|| Finder::new(&first[..alike]).into_owned());
        Ok(Self { beginning, names: Automaton::new(names, false)? })
    }

    /// Returns the first match at or after byte `from`.
    fn find(&self, bytes: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
        let rest = &bytes[from..];
        let skipped = match &self.beginning {
            Some(beginning) => beginning.find(rest)?,
            None => 0,
        };
        self.names.find(Input::new(bytes).range(from + skipped..))
    }
}

impl Names {
    /// Creates a searcher for `names`. Empty names match nothing.
    pub fn new(names: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        names.dedup();
        let searcher = if names.is_empty() { None } else { Some(Searcher::new(&names)?) };
        let shortest = names.iter().map(String::len).min().unwrap_or(0);
        let longest = names.iter().map(String::len).max().unwrap_or(0);
        Ok(Self { names, shortest, longest, searcher })
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the length of the longest name in bytes.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Returns the first byte of `text` from which more text may form a name, or a longer name.
    pub fn open_from(&self, text: &str) -> usize {
        let begins_a_name = |rest: &str| {
            let at = self.names.partition_point(|name| name.as_str() <= rest);
            self.names.get(at).is_some_and(|name| name.starts_with(rest))
        };
        let first = text.len().saturating_sub(self.longest.saturating_sub(1));
        (first..text.len())
            .find(|&at| text.is_char_boundary(at) && begins_a_name(&text[at..]))
            .unwrap_or(text.len())
    }

    /// Returns the first match at or after byte `from`.
    #[inline]
    pub fn find(&self, text: &str, from: usize) -> Option<Match> {
        // Starting a search costs as much as encoding a few bytes.
        if text.len() - from < self.shortest {
            return None;
        }
        let (name, Range { start, end }) = self.searcher.as_ref()?.find(text.as_bytes(), from)?;
        Some(Match { start, end, name })
    }

    /// Returns true if a name in `text` covers the byte at `place`, or begins or ends there.
    pub fn touches(&self, text: &str, place: usize) -> bool {
        let mut from = 0;
        while let Some(found) = self.find(text, from).filter(|found| found.start <= place) {
            if found.end >= place {
                return true;
            }
            from = found.start + 1;
        }
        false
    }
}

impl SpecialTokens {
    /// Creates special tokens from names and ids. Names must not be empty. If two tokens share an
    /// id (as in o200k_harmony), the id decodes to the first name.
    pub fn new(tokens: impl IntoIterator<Item = (String, u32)>) -> Result<Self> {
        let mut by_name = HashMap::new();
        let mut by_id = HashMap::new();
        for (name, id) in tokens {
            if name.is_empty() {
                return Err(Error::SpecialToken(format!(
                    "the special token with id {id} has an empty name; give it one"
                )));
            }
            by_id.entry(id).or_insert_with(|| name.clone());
            by_name.insert(name, id);
        }
        let all = Names::new(by_name.keys().cloned())?;
        Ok(Self { by_name, by_id, all })
    }

    /// Returns a searcher for all names.
    pub fn all(&self) -> &Names {
        &self.all
    }

    /// Selects the special tokens among `names`; other names are ignored.
    pub fn select<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Selection {
        let mut flags = vec![false; self.all.names.len()];
        for name in names {
            if let Ok(place) = self.all.names.binary_search_by(|other| other.as_str().cmp(name)) {
                flags[place] = true;
            }
        }
        match flags.iter().filter(|&&flag| flag).count() {
            0 => Selection::None,
            count if count == flags.len() => Selection::All,
            _ => Selection::Some(flags),
        }
    }

    /// Returns the next special token at or after byte `from` that is in `allowed`, with its id.
    ///
    /// Finds names leftmost-longest; after a name that is not allowed, continues one byte later.
    pub fn find_allowed(
        &self,
        text: &str,
        from: usize,
        allowed: &Selection,
    ) -> Option<(Match, u32)> {
        if *allowed == Selection::None {
            return None;
        }
        let mut from = from;
        loop {
            let found = self.all.find(text, from)?;
            if allowed.contains(found.name) {
                return Some((found, self.by_name[&self.all.names[found.name]]));
            }
            from = found.start + 1;
        }
    }

    /// Returns the leftmost special name in `text` that is not in `allowed`: tiktoken's
    /// `disallowed_special="all"`.
    pub fn find_disallowed(&self, text: &str, allowed: &Selection) -> Option<&str> {
        let rest = match allowed {
            Selection::All => return None,
            Selection::None => {
                return self.all.find(text, 0).map(|found| self.all.names[found.name].as_str());
            }
            Selection::Some(flags) => {
                self.all.names.iter().zip(flags).filter(|&(_, &taken)| !taken).map(|(name, _)| name)
            }
        };
        // Building a searcher takes longer than this search, which mostly finds nothing.
        self.all.find(text, 0)?;
        let rest = Names::new(rest.cloned()).ok()?;
        let found = rest.find(text, 0)?;
        let name = &rest.names[found.name];
        self.by_name.get_key_value(name).map(|(name, _)| name.as_str())
    }

    /// Returns the id of the special token with this name.
    pub fn id(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// Returns the name of the special token with this id.
    pub fn name(&self, id: u32) -> Option<&str> {
        self.by_id.get(&id).map(String::as_str)
    }

    /// Returns `(name, id)` of every special token, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.by_name.iter().map(|(name, &id)| (name.as_str(), id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_open_where_a_name_may_begin() {
        let names = |set: &[&str]| Names::new(set.iter().map(|&name| name.to_owned())).unwrap();
        let cases = [
            ("", 0),
            ("text", 4),
            ("text <", 5),
            ("text <|a|", 5),
            // A complete name, or the beginning of a longer name.
            ("text <|ab|>", 11),
            ("text <|a|>", 5),
            ("text <|a|>b", 11),
            ("text <<|", 6),
            ("<|x", 3),
        ];
        for (text, open) in cases {
            assert_eq!(
                names(&["<|a|>", "<|ab|>", "<|a|>b", "<||>"]).open_from(text),
                open,
                "{text:?}"
            );
        }
        assert_eq!(names(&["é|"]).open_from("xé"), 1);
        assert_eq!(names(&[]).open_from("text"), 4);
        assert_eq!(names(&["a"]).open_from("a"), 1);
    }

    #[test]
    fn of_many_names_each_is_found() {
        for count in [511, 512, 5000] {
            let name = |number: usize| format!("t{number}");
            let names = Names::new((0..count).map(name)).unwrap();
            for number in (0..count).step_by(7) {
                let text = format!("t {} t", name(number));
                let found = names.find(&text, 0).unwrap();
                assert_eq!(
                    (&text[found.start..found.end], found.end),
                    (&*name(number), text.len() - 2)
                );
                assert_eq!(names.names()[found.name], name(number));
                assert_eq!(names.find(&text, found.start + 1), None);
            }
        }
    }
}
