//! The scalar scanner: where the piece ends that begins here. It is the truth that the block
//! cutter is held to.
//!
//! Its time is linear in the text: a character is looked at a bounded number of times before it
//! is in a piece, because each rule stops at most one character, or one run of capitals, before
//! the furthest character that it looked at; whitespace is looked at once more.

use super::chars::{self, CASELESS, HAN, LETTER, MARK, NEWLINE, NUMBER, SPACE, class_at};
use super::deepseek;
use super::rules::{Contraction, Family, Rules};

/// The end of the piece that begins at `start`: more than `start`, at most `bytes.len()`.
/// `bytes` is UTF-8, `start` a character boundary before its end and itself the end of a piece
/// or the start of the text.
#[inline]
pub(super) fn next_piece<F: Family>(bytes: &[u8], start: usize) -> usize {
    let rules = &F::RULES;
    if rules.three_splits {
        return deepseek::next_piece(bytes, start);
    }
    let Some((class, width)) = class_at(bytes, start) else { return start };
    let byte = bytes[start];
    if rules.han_runs && class & HAN != 0 {
        return run(bytes, start + width, |class| class & HAN != 0);
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

/// The first position from `at` on whose character is not `inside`.
#[inline(always)]
pub(super) fn run(bytes: &[u8], mut at: usize, inside: impl Fn(u8) -> bool) -> usize {
    while let Some((class, width)) = class_at(bytes, at) {
        if !inside(class) {
            break;
        }
        at += width;
    }
    at
}

/// The end of the word whose first letter is at `start`.
#[inline(always)]
fn word<F: Family>(bytes: &[u8], start: usize) -> usize {
    let rules = &F::RULES;
    let end = if rules.case_runs {
        case_run::<F>(bytes, start)
    } else {
        run(bytes, start, |class| rules.is_letter(class))
    };
    if rules.contraction == Contraction::Suffix && bytes.get(end) == Some(&b'\'') {
        return end + contraction(bytes, end, rules.contraction);
    }
    end
}

/// The end of `[upper, caseless]* [lower, caseless]+`, or else of `[upper, caseless]+`.
/// The first part takes all it can; when no small letter follows, it gives back what stands
/// after its last caseless character, which then is the second part.
#[inline(always)]
fn case_run<F: Family>(bytes: &[u8], start: usize) -> usize {
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
    let end = run(bytes, at, |class| class & Rules::LAST != 0 && rules.is_letter(class));
    if end == at && after_caseless > start { after_caseless } else { end }
}

/// How many bytes the contraction at `at` has, its apostrophe included; 0 when there is none.
#[inline]
pub(super) fn contraction(bytes: &[u8], at: usize, kind: Contraction) -> usize {
    let letter = |offset: usize| {
        let byte = bytes.get(at + offset).copied().unwrap_or(0);
        if kind != Contraction::Lower && byte.is_ascii_uppercase() { byte | 0x20 } else { byte }
    };
    match (letter(1), letter(2)) {
        (b's' | b't' | b'm' | b'd', _) => 2,
        (b'l', b'l') | (b'v' | b'r', b'e') => 3,
        // U+017F, the long s, is an s to patterns that ignore case.
        (0xC5, 0xBF) if kind != Contraction::Lower => 3,
        _ => 0,
    }
}

/// The end of the piece whose first digit is at `start`.
#[inline(always)]
fn digits<F: Family>(bytes: &[u8], start: usize) -> usize {
    if F::RULES.digits == 0 {
        return run(bytes, start, |class| class & NUMBER != 0);
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

/// The end of the run of punctuation that goes on at `at`, with its tail.
#[inline(always)]
fn punctuation<F: Family>(bytes: &[u8], at: usize) -> usize {
    let rules = &F::RULES;
    let mut end = run(bytes, at, |class| rules.is_punct(class));
    while bytes.get(end).is_some_and(|byte| rules.punct_tail.contains(byte)) {
        end += 1;
    }
    end
}

/// The end of the piece of whitespace that begins at `start`.
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

/// The first position from `near` on where the text can be cut in two without changing a piece,
/// in any family and no matter what stands before the character left of it.
///
/// That character is a letter or a digit, in every family part of a word, of digits or of a
/// run of Han. What follows is whitespace or punctuation: no word goes on there (an apostrophe
/// might begin its contraction, a mark might belong to it), nor do digits, nor a run of Han
/// (which any character of that script may belong to). And no rule for words, digits or Han
/// looks further than the first character behind its piece, nor tells such a character from
/// the end of the text.
pub(super) fn safe_cut(text: &str, near: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = near.saturating_sub(1).min(bytes.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
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

/// The most bytes of an apostrophe and what is cut off with it.
const LONGEST_CONTRACTION: usize = 3;

/// Whether the pieces before `border`, where one of them ends, are the same wherever the text is cut
/// behind it.
///
/// Rules for what is not whitespace take all that they can, whatever stands behind it, so that less
/// text changes nothing before its end. (Capitals behind a caseless letter are looked at, and taken
/// only if a small letter follows, which no cut brings about.) Only the rules for whitespace, and in
/// DeepSeek's splits that for what is of no kind, give back what they have taken.
pub(super) fn is_settled<F: Family>(text: &str, border: usize) -> bool {
    let bytes = text.as_bytes();
    let Some(last) = text[..border].chars().next_back() else { return true };
    let is_space = chars::class(last as u32) & SPACE != 0;
    !is_space && (!F::RULES.three_splits || deepseek::is_of_a_kind(bytes, border))
}

/// Whether the pieces before `border`, where one of them ends, are the same however the text goes on: no
/// contraction and no word of capitals before a small letter may still come about.
pub(super) fn is_final<F: Family>(text: &str, border: usize) -> bool {
    let (rules, bytes) = (&F::RULES, text.as_bytes());
    let last = text.len().saturating_sub(LONGEST_CONTRACTION - 1);
    let is_open = rules.contraction != Contraction::None
        && memchr::memchr(b'\'', &bytes[last..]).is_some_and(|quote| last + quote <= border);
    let is_word = || run(bytes, border, |class| rules.is_letter(class)) == text.len();
    !(is_open || rules.case_runs && is_word())
}

/// The same where it is cut at `end`: whitespace around the border is cut in the same way, too, if the
/// character that ends it stays.
pub(super) fn is_settled_in<F: Family>(text: &str, border: usize, end: usize) -> bool {
    is_settled::<F>(text, border) || space_end::<F>(&text[..end], border).is_some()
}

/// The end of the whitespace behind `border`, where a piece ends: a cut of `text` behind that leaves the
/// pieces before `border` as they are. `None` if `text` ends there, too.
pub(super) fn space_end<F: Family>(text: &str, border: usize) -> Option<usize> {
    let end = run(text.as_bytes(), border, |class| class & SPACE != 0);
    (!F::RULES.three_splits && end < text.len()).then_some(end)
}
