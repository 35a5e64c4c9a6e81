//! Finds the end of one piece with scalar code: the reference for the block cutter.
//!
//! Time is linear in the text: each character is examined a bounded number of times before a piece
//! contains it, because each rule stops at most one character, or one run of capitals, before the
//! furthest character examined; whitespace is examined once more.

use super::chars::{CASELESS, HAN, LETTER, MARK, NEWLINE, NUMBER, SPACE, class_at};
use super::deepseek;
use super::rules::{Contraction, Family, Rules};
use crate::char_boundary::floor;

/// Returns the end of the piece that begins at `start`: more than `start`, at most `bytes.len()`.
/// `bytes` is UTF-8, `start` a character boundary before its end, and also the end of a piece or
/// the start of the text.
#[inline]
pub(super) fn next_piece<F: Family>(bytes: &[u8], start: usize) -> usize {
    let rules = &F::RULES;
    if rules.three_splits {
        return deepseek::next_piece(bytes, start);
    }
    let Some((class, width)) = class_at(bytes, start) else { return start };
    let byte = bytes[start];
    if rules.han_runs && class & HAN != 0 {
        return skip(bytes, start + width, |class| class & HAN != 0);
    }
    if matches!(rules.contraction, Contraction::Lower | Contraction::AnyCase) && byte == b'\'' {
        let length = contraction(bytes, start, rules.contraction);
        if length > 0 {
            return start + length;
        }
    }
    if rules.is_letter(class) {
        return word::<F>(bytes, start);
    }
    let next = start + width;
    let next_class = class_at(bytes, next).map_or(0, |(class, _)| class);
    if rules.is_letter(next_class) && rules.is_prefix(class, byte) {
        return word::<F>(bytes, next);
    }
    if class & NUMBER != 0 {
        return digits::<F>(bytes, start);
    }
    if rules.digits == 0 && byte == b' ' && next_class & NUMBER != 0 {
        return digits::<F>(bytes, next);
    }
    if rules.is_punct(class) {
        return punctuation::<F>(bytes, next);
    }
    if byte == b' ' && next < bytes.len() && rules.is_punct(next_class) {
        return punctuation::<F>(bytes, next);
    }
    whitespace::<F>(bytes, start)
}

/// Returns the first position at or after `at` whose character is not `inside`.
#[inline(always)]
pub(super) fn skip(bytes: &[u8], mut at: usize, inside: impl Fn(u8) -> bool) -> usize {
    while let Some((class, width)) = class_at(bytes, at) {
        if !inside(class) {
            break;
        }
        at += width;
    }
    at
}

/// Returns the end of the word whose first letter is at `start`.
#[inline(always)]
fn word<F: Family>(bytes: &[u8], start: usize) -> usize {
    let rules = &F::RULES;
    let end = if rules.case_runs {
        cased_word::<F>(bytes, start)
    } else {
        skip(bytes, start, |class| rules.is_letter(class))
    };
    if rules.contraction == Contraction::Suffix && bytes.get(end) == Some(&b'\'') {
        return end + contraction(bytes, end, rules.contraction);
    }
    end
}

/// Returns the end of `[upper, caseless]* [lower, caseless]+`, otherwise of `[upper, caseless]+`.
/// The first part is greedy. If no lowercase letter follows, it gives back the capitals after its
/// last caseless character, which then is the second part.
#[inline(always)]
fn cased_word<F: Family>(bytes: &[u8], start: usize) -> usize {
    let rules = &F::RULES;
    let mut at = start;
    let mut after_caseless = start;
    while let Some((class, width)) = class_at(bytes, at) {
        if class & Rules::FIRST == 0 || !rules.is_letter(class) {
            break;
        }
        at += width;
        if class & (CASELESS | MARK) != 0 {
            after_caseless = at;
        }
    }
    let end = skip(bytes, at, |class| class & Rules::LAST != 0 && rules.is_letter(class));
    if end == at && after_caseless > start { after_caseless } else { end }
}

/// Returns the length in bytes of the contraction at `at`, with its apostrophe; 0 if there is none.
#[inline]
pub(super) fn contraction(bytes: &[u8], at: usize, kind: Contraction) -> usize {
    let letter = |offset: usize| {
        let byte = bytes.get(at + offset).copied().unwrap_or(0);
        if kind != Contraction::Lower && byte.is_ascii_uppercase() { byte | 0x20 } else { byte }
    };
    match (letter(1), letter(2)) {
        (b's' | b't' | b'm' | b'd', _) => 2,
        (b'l', b'l') | (b'v' | b'r', b'e') => 3,
        // Case-insensitive patterns match U+017F, the long s, as an s.
        (0xC5, 0xBF) if kind != Contraction::Lower => 3,
        _ => 0,
    }
}

/// Returns the end of the piece whose first digit is at `start`.
#[inline(always)]
fn digits<F: Family>(bytes: &[u8], start: usize) -> usize {
    if F::RULES.digits == 0 {
        return skip(bytes, start, |class| class & NUMBER != 0);
    }
    let mut at = start;
    for _ in 0..F::RULES.digits {
        match class_at(bytes, at) {
            Some((class, width)) if class & NUMBER != 0 => at += width,
            _ => break,
        }
    }
    at
}

/// Returns the end of the punctuation that continues at `at`, with its tail.
#[inline(always)]
fn punctuation<F: Family>(bytes: &[u8], at: usize) -> usize {
    let rules = &F::RULES;
    let mut end = skip(bytes, at, |class| rules.is_punct(class));
    while bytes.get(end).is_some_and(|byte| rules.punct_tail.contains(byte)) {
        end += 1;
    }
    end
}

/// Returns the end of the whitespace piece that begins at `start`.
#[inline(always)]
fn whitespace<F: Family>(bytes: &[u8], start: usize) -> usize {
    let rules = &F::RULES;
    let mut end = start;
    let mut last = start;
    let mut after_newline = start;
    while let Some((class, width)) = class_at(bytes, end) {
        if class & SPACE == 0 {
            break;
        }
        last = end;
        end += width;
        if class & NEWLINE != 0 {
            after_newline = end;
        }
    }
    if rules.end_space_first && end == bytes.len() {
        end
    } else if rules.newline_run && after_newline > start {
        after_newline
    } else if end == bytes.len() || last == start {
        end
    } else {
        last
    }
}

/// Returns the first position at or after `near` at which the text can be cut in two without
/// changing a piece, in any family, for any text before the character to the left.
///
/// That character is a letter or a digit: in every family, part of a word, of digits or of a run of
/// Han characters. The next character is whitespace or punctuation: no word continues there (an
/// apostrophe might begin a contraction, a mark might belong to the word), nor do digits, nor a run
/// of Han (which may contain any character of that script). And no rule for words, digits or Han
/// looks further than the first character after its piece, nor distinguishes such a character from
/// the end of the text.
pub(super) fn safe_cut(text: &str, near: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = floor(text, near.saturating_sub(1));
    let mut before = 0;
    while let Some((class, width)) = class_at(bytes, at) {
        if at >= near
            && before & (LETTER | NUMBER) != 0
            && class & (LETTER | NUMBER | MARK | HAN) == 0
            && bytes[at] != b'\''
        {
            return Some(at);
        }
        before = class;
        at += width;
    }
    None
}
