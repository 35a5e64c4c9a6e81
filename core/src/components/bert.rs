//! `BertNormalizer` in one pass, and the character classes of `BertNormalizer` and `Nmt`.
//!
//! The categories come from `unicode_categories`, the crate that `tokenizers` uses, and follow
//! roughly Unicode 8. Unassigned characters have no category and are kept.

use std::borrow::Cow;

use crate::memory::reserve_text;
use crate::polling::poll;
use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::UnicodeNormalization;

use crate::error::Result;

/// `BertNormalizer`, with the setting for accents resolved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bert {
    pub(crate) clean_text: bool,
    pub(crate) handle_chinese_chars: bool,
    pub(crate) strip_accents: bool,
    pub(crate) lowercase: bool,
}

impl Bert {
    /// Normalizes a text. Printable ASCII is copied; each run of other characters goes through all
    /// steps at once, since no step looks beyond a printable ASCII character.
    pub(crate) fn apply<'a>(self, text: Cow<'a, str>) -> Result<Cow<'a, str>> {
        let mut rest = &*text;
        let mut run = printable(rest);
        let is_kept = !self.lowercase || !rest.bytes().any(|byte| byte.is_ascii_uppercase());
        if run == rest.len() && is_kept {
            return Ok(text);
        }
        let mut new = String::new();
        reserve_text(&mut new, rest.len())?;
        loop {
            poll(run)?;
            let start = new.len();
            new.push_str(&rest[..run]);
            if self.lowercase {
                new[start..].make_ascii_lowercase();
            }
            rest = &rest[run..];
            if rest.is_empty() {
                return Ok(Cow::Owned(new));
            }
            let end = rest.find(|c| matches!(c, ' '..='~')).unwrap_or(rest.len());
            self.push_steps(&rest[..end], &mut new)?;
            rest = &rest[end..];
            run = printable(rest);
        }
    }

    /// Appends the normalized form of a run.
    fn push_steps(self, text: &str, new: &mut String) -> Result<()> {
        let clean = |&character: &char| !self.clean_text || is_clean(character);
        let space = |character| if self.clean_text { space_of(character) } else { character };
        let set_apart = |character| {
            let space = (self.handle_chinese_chars && is_chinese(character)).then_some(' ');
            [space, Some(character), space].into_iter().flatten()
        };
        let characters = text.chars().filter(clean).map(space).flat_map(set_apart);
        if self.strip_accents {
            let parts = characters.nfd().map(|(character, _)| character);
            self.push_lower(parts.filter(|&character| is_no_accent(character)), new)
        } else {
            self.push_lower(characters, new)
        }
    }

    fn push_lower(self, characters: impl Iterator<Item = char>, new: &mut String) -> Result<()> {
        for character in characters {
            poll(character.len_utf8())?;
            reserve_text(new, 12)?;
            match self.lowercase {
                true => new.extend(character.to_lowercase()),
                false => new.push(character),
            }
        }
        Ok(())
    }
}

/// Returns the number of printable ASCII characters at the start of a text.
fn printable(text: &str) -> usize {
    text.bytes().position(|byte| !matches!(byte, b' '..=b'~')).unwrap_or(text.len())
}

/// Whether `clean_text` keeps a character.
pub(crate) fn is_clean(character: char) -> bool {
    match character {
        '\0' | '\u{fffd}' => false,
        '\t' | '\n' | '\r' | ' '..='~' => true,
        _ => !character.is_other(),
    }
}

fn space_of(character: char) -> char {
    if matches!(character, '\t' | '\n' | '\r') || character.is_whitespace() {
        ' '
    } else {
        character
    }
}

pub(crate) fn space(character: char, found: &mut dyn FnMut(char)) {
    found(space_of(character));
}

/// Whether a character gets spaces around it. The sixth range begins later than its block.
fn is_chinese(character: char) -> bool {
    matches!(
        u32::from(character),
        0x3400..=0x4dbf
            | 0x4e00..=0x9fff
            | 0xf900..=0xfaff
            | 0x20000..=0x2a6df
            | 0x2a700..=0x2b81f
            | 0x2b920..=0x2ceaf
            | 0x2f800..=0x2fa1f
    )
}

pub(crate) fn set_apart(character: char, found: &mut dyn FnMut(char)) {
    if !is_chinese(character) {
        return found(character);
    }
    found(' ');
    found(character);
    found(' ');
}

pub(crate) fn is_no_accent(character: char) -> bool {
    character.is_ascii() || !character.is_mark_nonspacing()
}

/// Whether `Nmt` keeps a character.
pub(crate) fn is_kept_by_nmt(character: char) -> bool {
    !matches!(
        character,
        '\x01'..='\x08' | '\x0b' | '\x0e'..='\x1f' | '\x7f' | '\u{8f}' | '\u{9f}'
    )
}

pub(crate) fn nmt_space(character: char, found: &mut dyn FnMut(char)) {
    let is_space = matches!(
        character,
        '\t' | '\n' | '\x0c' | '\r' | '\u{1680}' | '\u{200b}'
            ..='\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{2581}' | '\u{feff}' | '\u{fffd}'
    );
    found(if is_space { ' ' } else { character });
}
