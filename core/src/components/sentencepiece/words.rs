//! Cuts a text before whitespace into words that can be normalized independently.

use crate::split::{Piece, WordRules, WordSplitter, Words as Cut};

use super::user_defined::UserDefined;
use crate::components::bytes::MARK;
use crate::components::charsmap::{Charsmap, Rule};
use crate::components::cut_points::Bits;
use crate::error::Result;

/// Whitespace before which text may be cut.
const SPACES: [char; 4] = [' ', '\t', '\n', '\r'];

/// Decides where a text is cut into words.
#[derive(Debug)]
pub(crate) struct Words {
    splitter: WordSplitter,
    only_blank: bool,
    /// Characters that may become whitespace or vanish at either end of a word, in ascending order.
    unsure: Vec<char>,
    /// Characters that permit a cut.
    permitted: Box<Bits>,
}

impl Words {
    /// Returns the rules for a normalizer; `None` if the normalizer must see whole texts.
    pub(super) fn new(
        charsmap: Option<&Charsmap>,
        user_defined: &UserDefined,
    ) -> Result<Option<Self>> {
        let mut unsure = vec![MARK];
        let mut spaces = [' ', '\0', '\0', '\0'];
        let mut is_local = !SPACES.iter().any(|&space| user_defined.ascii[space as usize]);
        let note = |part: Rule<'_>| {
            let Rule { character, rule, is_first, is_last } = part;
            let is_end = |end: Option<char>| end.is_none_or(|it| matches!(it, ' ' | MARK));
            let is_unsure = rule
                .is_some_and(|new| is_end(new.chars().next()) || is_end(new.chars().next_back()));
            if !is_first {
                is_local &= !is_unsure && !SPACES.contains(&character);
                return Ok(());
            }
            if let Some(place) = SPACES.iter().position(|&space| space == character) {
                // A space in the text becomes a mark, like the space put before the text.
                is_local &= is_last && (character != ' ' || matches!(rule, None | Some(" ")));
                if rule == Some(" ") {
                    spaces[place] = character;
                }
                if rule == Some(" ") && character == ' ' {
                    return Ok(());
                }
            }
            if is_unsure {
                {
                    unsure.push(character);
                    Ok(())
                }
            } else {
                Ok(())
            }
        };
        let are_all = charsmap.map_or(Ok(true), |charsmap| charsmap.each_character(note))?;
        unsure.sort_unstable();
        unsure.dedup();
        let only_blank = spaces != SPACES;
        let is_sure = |it: char| unsure.binary_search(&it).is_err();
        let are_plain =
            (' '..='~').all(is_sure) && (!only_blank || SPACES.into_iter().all(is_sure));
        if !(are_all && is_local && are_plain) {
            return Ok(None);
        }
        let rules = WordRules { keeps_spaces: true, only_blank, ..WordRules::default() };
        let (splitter, permitted) = (WordSplitter::new(rules), Box::new(Bits::new()));
        Ok(Some(Self { splitter, only_blank, unsure, permitted }))
    }

    /// Whether a text can be cut between this character and whitespace.
    pub(crate) fn permits(&self, character: char) -> bool {
        self.permitted.get(character, |it| self.unsure.binary_search(&it).is_err())
    }

    pub(crate) fn is_space(&self, character: char) -> bool {
        character == ' ' || !self.only_blank && SPACES.contains(&character)
    }

    /// Drops all but the last whitespace character at the start of each word, if a run of
    /// whitespace becomes one mark.
    pub(crate) fn leave_out_spaces(&self, text: &[u8], words: &mut [Piece]) {
        let is_space = |at: usize| text[at] <= b' ' && self.is_space(text[at].into());
        for Piece { start, end } in words {
            while *start + 1 < *end && is_space(*start + 1) && is_space(*start) {
                *start += 1;
            }
        }
    }

    /// Returns the words of a text, cut next to the characters that [`Words::permits`].
    pub(crate) fn cut<'a>(&self, text: &'a str, permits: &'a dyn Fn(char) -> bool) -> Cut<'a> {
        self.splitter.words(text, Some(permits))
    }
}
