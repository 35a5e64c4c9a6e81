//! Applies DeepSeek's three splits in turn: digits, then Chinese and Japanese, then a pattern that
//! sees only the text between the earlier matches.
//!
//! Text that the pattern does not match is also a piece. Time is linear: each rule looks at most
//! one character beyond its piece, except that whitespace is examined twice.

use super::chars::{self, LETTER, MARK, NEWLINE, NUMBER, SPACE, class_at};

/// Character kinds that the third split distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharacterKind {
    /// `[\p{L}\p{M}]`
    Word,
    /// `[\p{P}\p{S}]`
    Punctuation,
    /// `[\r\n]`
    Newline,
    /// `[\s--\r\n]`
    Space,
    Other,
}

/// A run that the first two splits produce: all Chinese and Japanese, or without such characters.
#[derive(Clone, Copy)]
struct Run<'a> {
    bytes: &'a [u8],
    is_cjk: bool,
}

/// Returns the end of the piece at `start`, with the preconditions of `scan::next_piece`.
pub(super) fn next_piece(bytes: &[u8], start: usize) -> usize {
    let Some((class, width)) = class_at(bytes, start) else { return start };
    if class & NUMBER != 0 {
        return digits(bytes, start);
    }
    let run = Run { bytes, is_cjk: is_cjk(&bytes[start..]) };
    let next = start + width;
    let following = run.kind(next).map(|(kind, _)| kind);
    match (run.kind_of(class, start), following) {
        (CharacterKind::Word, _)
        | (CharacterKind::Space | CharacterKind::Other, Some(CharacterKind::Word)) => {
            run.skip(next, CharacterKind::Word)
        }
        (CharacterKind::Punctuation, _) => {
            let letters = bytes[next..].iter().take_while(|byte| byte.is_ascii_alphabetic());
            match letters.count() {
                letters @ 1.. if width == 1 => next + letters,
                _ => run.punctuation(next),
            }
        }
        (CharacterKind::Space, Some(CharacterKind::Punctuation)) if bytes[start] == b' ' => {
            run.punctuation(next)
        }
        (CharacterKind::Space | CharacterKind::Newline, _) => run.whitespace(start),
        (CharacterKind::Other, _) => run.others(next),
    }
}

/// Returns the end of up to three digits.
fn digits(bytes: &[u8], start: usize) -> usize {
    let mut end = start;
    for _ in 0..3 {
        match class_at(bytes, end) {
            Some((class, width)) if class & NUMBER != 0 => end += width,
            _ => break,
        }
    }
    end
}

/// Returns true if the text starts with one of `[一-龥\u3040-\u30ff]`.
#[inline]
fn is_cjk(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0xE5..=0xE8, ..]
            | [0xE4, 0xB8..=0xBF, ..]
            | [0xE9, 0x80..=0xBD, ..]
            | [0xE9, 0xBE, 0x80..=0xA5, ..]
            | [0xE3, 0x81..=0x83, ..]
    )
}

impl Run<'_> {
    /// Returns the kind and the width of the character at `at`; `None` at the end of the run.
    #[inline]
    fn kind(&self, at: usize) -> Option<(CharacterKind, usize)> {
        let (class, width) = class_at(self.bytes, at)?;
        let goes_on = class & NUMBER == 0 && is_cjk(&self.bytes[at..]) == self.is_cjk;
        goes_on.then(|| (self.kind_of(class, at), width))
    }

    /// Returns the kind of the character at `at`, which has class `class` and is not a digit.
    fn kind_of(&self, class: u8, at: usize) -> CharacterKind {
        if class & (LETTER | MARK) != 0 {
            CharacterKind::Word
        } else if class & NEWLINE != 0 {
            CharacterKind::Newline
        } else if class & SPACE != 0 {
            CharacterKind::Space
        } else if chars::is_punctuation(self.bytes, at) {
            CharacterKind::Punctuation
        } else {
            CharacterKind::Other
        }
    }

    /// Returns the first position at or after `at` whose character is of a different kind.
    fn skip(&self, mut at: usize, wanted: CharacterKind) -> usize {
        while let Some((kind, width)) = self.kind(at)
            && kind == wanted
        {
            at += width;
        }
        at
    }

    /// Returns the end of the punctuation that continues at `at`, with the newlines after it.
    fn punctuation(&self, at: usize) -> usize {
        let end = self.skip(at, CharacterKind::Punctuation);
        self.skip(end, CharacterKind::Newline)
    }

    /// Returns the end of whitespace: after its last newline, at the end of the run, or before its
    /// last character.
    fn whitespace(&self, start: usize) -> usize {
        let (mut end, mut last, mut after_newline) = (start, start, start);
        let is_end = loop {
            let Some((kind, width)) = self.kind(end) else { break true };
            if !matches!(kind, CharacterKind::Space | CharacterKind::Newline) {
                break false;
            }
            last = end;
            end += width;
            if kind == CharacterKind::Newline {
                after_newline = end;
            }
        };
        if after_newline > start {
            after_newline
        } else if is_end || last == start {
            end
        } else {
            last
        }
    }

    /// Returns the end of a run of characters that no rule matches and that do not lead a word.
    fn others(&self, mut at: usize) -> usize {
        while let Some((CharacterKind::Other, width)) = self.kind(at)
            && !matches!(self.kind(at + width), Some((CharacterKind::Word, _)))
        {
            at += width;
        }
        at
    }
}
