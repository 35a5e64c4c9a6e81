//! Cuts a text before white space into words that can be normalized one by one.

use bpe_core::memory::push;
use bpe_core::split::{WordChecks, WordRules, WordSpaces, WordSplitter, Words as Cut};

use super::user_defined::UserDefined;
use crate::bytes::MARK;
use crate::charsmap::{Charsmap, Part};
use crate::error::Result;
use crate::settled::Bits;

/// White space that text may be cut before.
const SPACES: [char; 4] = [' ', '\t', '\n', '\r'];

/// Where a text is cut.
#[derive(Debug)]
pub(crate) struct Words {
    splitter: WordSplitter,
    only_blank: bool,
    /// In order, the characters that may become white space or nothing at an end of a word.
    unsure: Vec<char>,
    /// Other characters.
    permitted: Box<Bits>,
    /// In order, the characters that are in a rule after others.
    later: Vec<char>,
    /// Whether printable ASCII stays as it is beside ASCII, and is not in a rule after others.
    keeps_ascii: bool,
}

impl Words {
    /// The words that a normalizer permits, which `keeps` some characters; `None` if it has to see whole
    /// texts.
    pub(super) fn new(
        charsmap: Option<&Charsmap>,
        user_defined: &UserDefined,
        keeps: impl Fn(char) -> bool,
    ) -> Result<Option<Self>> {
        let (mut unsure, mut later) = (vec![MARK], Vec::new());
        let mut spaces = [' ', '\0', '\0', '\0'];
        let mut is_local = !user_defined.any(|piece| piece.contains(SPACES));
        let note = |part: Part<'_>| {
            let Part { character, rule, is_first, is_last } = part;
            let is_end = |end: Option<char>| end.is_none_or(|it| matches!(it, ' ' | MARK));
            let is_unsure = rule
                .is_some_and(|new| is_end(new.chars().next()) || is_end(new.chars().next_back()));
            if !is_first {
                is_local &= !is_unsure && !SPACES.contains(&character);
                return push(&mut later, character);
            }
            if let Some(place) = SPACES.iter().position(|&space| space == character) {
                is_local &= is_last;
                if rule == Some(" ") {
                    spaces[place] = character;
                }
                if rule == Some(" ") && character == ' ' {
                    return Ok(());
                }
            }
            if is_unsure { push(&mut unsure, character) } else { Ok(()) }
        };
        let are_all = charsmap.map_or(Ok(true), |charsmap| charsmap.each_character(note))?;
        for list in [&mut unsure, &mut later] {
            list.sort_unstable();
            list.dedup();
        }
        let only_blank = spaces != SPACES;
        let is_sure = |it: char| unsure.binary_search(&it).is_err();
        let are_plain =
            (' '..='~').all(is_sure) && (!only_blank || SPACES.into_iter().all(is_sure));
        if !(are_all && is_local && are_plain) {
            return Ok(None);
        }
        let rules = WordRules { spaces: WordSpaces::Rows, only_blank, ..WordRules::default() };
        let (splitter, permitted) = (WordSplitter::new(rules), Box::new(Bits::new()));
        let is_later = |it: char| later.binary_search(&it).is_ok();
        let keeps_ascii = ('!'..='~').all(|it| keeps(it) && !is_later(it));
        Ok(Some(Self { splitter, only_blank, unsure, permitted, later, keeps_ascii }))
    }

    /// Whether a text can be cut beside a character and white space.
    pub(crate) fn permits(&self, character: char) -> bool {
        self.permitted.get(character, |it| self.unsure.binary_search(&it).is_err())
    }

    pub(crate) fn is_space(&self, character: char) -> bool {
        character == ' ' || !self.only_blank && SPACES.contains(&character)
    }

    /// Whether words can be cut between characters of printable ASCII, as what they are.
    pub(crate) fn keeps_ascii(&self) -> bool {
        self.keeps_ascii
    }

    /// The characters before and after a place of a text that no rule crosses, if they stay what they
    /// are.
    pub(crate) fn beside(
        &self,
        keeps: impl Fn(char) -> bool,
        text: &str,
        place: usize,
    ) -> Option<(char, char)> {
        let mut rest = text[place..].chars();
        let (before, after) = (text[..place].chars().next_back()?, rest.next()?);
        let is_later = |it: char| self.later.binary_search(&it).is_ok();
        let are_kept = [before, after].into_iter().all(|it| !is_later(it) && keeps(it));
        (are_kept && !rest.next().is_some_and(is_later)).then_some((before, after))
    }

    /// The words of a text.
    pub(crate) fn cut<'a>(&self, text: &'a str, checks: WordChecks<'a>) -> Cut<'a> {
        self.splitter.words(text, checks)
    }
}
