//! Cuts text into words character by character: the reference for the windows of `words`, in tests
//! and in the ablation benchmark.

use super::word_rules::{Permits, WordRules};
use super::{Batch, Piece};

/// Writes the words of `text` from byte `at` into `batch` and returns their number; advances `at`
/// to where the next call continues.
pub(super) fn fill(
    rules: WordRules,
    permits: Permits<'_>,
    text: &str,
    at: &mut usize,
    batch: &mut Batch,
) -> usize {
    let words = batch.iter_mut().map_while(|word| {
        *word = next(rules, permits, text, at)?;
        Some(())
    });
    words.count()
}

/// Returns the next word and advances `at` to its end.
fn next(rules: WordRules, permits: Permits<'_>, text: &str, at: &mut usize) -> Option<Piece> {
    let is_space = |c: char| c == ' ' || !rules.only_blank && matches!(c, '\t' | '\n' | '\r');
    let is_alone = |c: char| {
        rules.isolates_punctuation && (c.is_ascii_punctuation() || is_wide_punctuation(c))
            || rules.isolates_han && matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
    };
    let may_be_beside = |c: char| {
        let is_plain = matches!(c, '\t' | '\n' | '\r' | ' '..='~');
        is_plain || permits.is_none_or(|permits| permits(c))
    };
    let mut start = *at;
    for (place, c) in text[start..].char_indices().map(|(place, c)| (*at + place, c)) {
        let end = place + c.len_utf8();
        let (before, after) = (text[..place].chars().next_back(), text[end..].chars().next());
        let may_cut =
            is_space(c) && before.is_none_or(may_be_beside) && after.is_none_or(may_be_beside);
        let is_dropped = may_cut && !rules.keeps_spaces;
        if start == place {
            start = if is_dropped { end } else { place };
            continue;
        }
        let begins = may_cut && !(rules.keeps_spaces && before.is_some_and(is_space));
        let are_alone = is_alone(c) || before.is_some_and(is_alone);
        if begins || are_alone {
            *at = place;
            return Some(Piece { start, end: place });
        }
    }
    *at = text.len();
    (start < text.len()).then_some(Piece { start, end: text.len() })
}

/// Whether a multi-byte character is isolated like punctuation.
fn is_wide_punctuation(character: char) -> bool {
    matches!(
        character,
        '«' | '·' | '»' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{203e}' | '、'..='〃' | '〈'..='】'
            | '！'..='＃' | '％'..='＊' | '，'..='／' | '：' | '；' | '？' | '＠'
    )
}
