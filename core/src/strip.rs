//! Takes names out of texts.

use std::ops::Range;

use crate::conversation::floor_boundary;
use crate::error::Result;
use crate::memory::{append, push, reserve, reserve_text};
use crate::normalize::{Normalization, starts_stretch};
use crate::special_tokens::Names;

/// How often all of a text is searched and normalized, before its parts are looked at one by one.
const ROUNDS: usize = 32;

/// A character, and the text that it comes from.
type Item = (char, u32);

/// Normalized texts without any of `names`, whether it stands in one of them or across several, and
/// without those that come about when others are taken out and what is left is normalized. What
/// normalization makes of characters of several texts is of the first.
pub fn strip(names: &Names, normalization: Normalization, texts: &[&str]) -> Result<Vec<String>> {
    let mut items = Vec::new();
    for (number, text) in (0..).zip(texts) {
        reserve(&mut items, text.len())?;
        items.extend(text.chars().map(|character| (character, number)));
    }
    for _ in 0..ROUNDS {
        items = normalized(normalization, items)?;
        let text = text_of(&items)?;
        let kept = without_names(names, &text)?;
        if kept.len() == 1 && kept[0] == (0..text.len()) {
            return split(&items, texts.len());
        }
        let pieces = pieces(&items, &text, &kept)?;
        if normalization == Normalization::None || !pieces.windows(2).any(interacts) {
            return split(&joined(&pieces)?, texts.len());
        }
        items = joined(&pieces)?;
    }
    items = normalized(normalization, items)?;
    let text = text_of(&items)?;
    let kept = without_names(names, &text)?;
    split(&settled(names, normalization, &pieces(&items, &text, &kept)?)?, texts.len())
}

/// Whether normalization looks at two neighbours together.
fn interacts(neighbours: &[&[Item]]) -> bool {
    neighbours[1].first().is_some_and(|&(first, _)| !starts_stretch(first))
}

fn text_of(items: &[Item]) -> Result<String> {
    let mut text = String::new();
    reserve_text(&mut text, items.iter().map(|&(character, _)| character.len_utf8()).sum())?;
    text.extend(items.iter().map(|&(character, _)| character));
    Ok(text)
}

fn joined(pieces: &[&[Item]]) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    reserve(&mut items, pieces.iter().map(|piece| piece.len()).sum())?;
    items.extend(pieces.iter().copied().flatten());
    Ok(items)
}

/// The characters of the byte ranges `kept` of `text`.
fn pieces<'a>(items: &'a [Item], text: &str, kept: &[Range<usize>]) -> Result<Vec<&'a [Item]>> {
    let (mut character, mut byte) = (0, 0);
    let mut index = |at: usize| {
        character += text[byte..at].chars().count();
        byte = at;
        character
    };
    let mut pieces = Vec::new();
    reserve(&mut pieces, kept.len())?;
    pieces.extend(kept.iter().map(|range| &items[index(range.start)..index(range.end)]));
    Ok(pieces)
}

/// The text of each number.
fn split(items: &[Item], count: usize) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    reserve(&mut texts, count)?;
    texts.resize(count, String::new());
    for &(character, number) in items {
        let text = &mut texts[number as usize];
        reserve_text(text, character.len_utf8())?;
        text.push(character);
    }
    Ok(texts)
}

fn normalized(normalization: Normalization, items: Vec<Item>) -> Result<Vec<Item>> {
    let text = text_of(&items)?;
    let (normal, alignment) = normalization.align(&text)?;
    if *normal == text {
        return Ok(items);
    }
    let mut result = Vec::new();
    reserve(&mut result, normal.len())?;
    let mut characters = text.char_indices().map(|(at, _)| at).enumerate().peekable();
    let mut current = 0;
    for (at, character) in normal.char_indices() {
        let origin = alignment.original(at..at + character.len_utf8()).start;
        while let Some((index, _)) = characters.next_if(|&(_, start)| start <= origin) {
            current = index;
        }
        result.push((character, items[current].1));
    }
    Ok(result)
}

/// Pieces that are normalized, and in which together no name stands, put together one by one:
/// normalized at their borders, and without the names that this makes.
fn settled(names: &Names, normalization: Normalization, pieces: &[&[Item]]) -> Result<Vec<Item>> {
    // No name is longer, in characters.
    let most = names.longest();
    let mut left: Vec<Item> = Vec::new();
    for &piece in pieces {
        // What follows: `front`, which may hold names, and then `rest`.
        let (mut front, mut rest) = (Vec::new(), piece);
        loop {
            join(normalization, &mut left, &mut front, &mut rest)?;
            let tail = left.len().min(most);
            let head = rest.len().min(most);
            let window = joined(&[&left[left.len() - tail..], &front, &rest[..head]])?;
            let text = text_of(&window)?;
            let Some(found) = names.find(&text, 0) else { break };
            let first = text[..found.start].chars().count();
            let last = first + text[found.start..found.end].chars().count();
            left.truncate(left.len() - tail);
            append(&mut left, &window[..first])?;
            let behind = tail + front.len();
            rest = &rest[last.saturating_sub(behind)..];
            front.clear();
            append(&mut front, &window[last.min(behind)..behind])?;
        }
        reserve(&mut left, front.len() + rest.len())?;
        left.extend(front);
        left.extend_from_slice(rest);
    }
    Ok(left)
}

/// Normalizes where `left` ends and what follows begins.
fn join(
    normalization: Normalization,
    left: &mut Vec<Item>,
    front: &mut Vec<Item>,
    rest: &mut &[Item],
) -> Result<()> {
    let starts = |&(character, _): &Item| starts_stretch(character);
    let Some(first) = front.first().or(rest.first()) else { return Ok(()) };
    if left.is_empty() || starts(first) {
        return Ok(());
    }
    let mut stretch = left.split_off(left.iter().rposition(starts).unwrap_or(0));
    let end = front.iter().position(starts).unwrap_or(front.len());
    reserve(&mut stretch, end)?;
    stretch.extend(front.drain(..end));
    if front.is_empty() {
        let end = rest.iter().position(starts).unwrap_or(rest.len());
        append(&mut stretch, &rest[..end])?;
        *rest = &rest[end..];
    }
    let stretch = normalized(normalization, stretch)?;
    reserve(front, stretch.len())?;
    front.splice(..0, stretch);
    Ok(())
}

/// The parts of a text that are left when every one of `names` is taken out, and every one that
/// only comes about thereby. Takes linear time.
pub fn without_names(names: &Names, text: &str) -> Result<Vec<Range<usize>>> {
    let mut kept: Vec<Range<usize>> = Vec::new();
    let mut position = 0;
    while let Some(found) = names.find(text, position) {
        if found.start > position {
            push(&mut kept, position..found.start)?;
        }
        position = found.end;
        // What stood before the name and what stands behind it may be a name together.
        while let Some((before, behind)) = across(names, text, &kept, position) {
            take_back(&mut kept, before);
            position += behind;
        }
    }
    if position < text.len() {
        push(&mut kept, position..text.len())?;
    }
    Ok(kept)
}

/// How many bytes at the end of what is kept, and how many from `position` on, are a name.
fn across(
    names: &Names,
    text: &str,
    kept: &[Range<usize>],
    position: usize,
) -> Option<(usize, usize)> {
    let most = names.longest().saturating_sub(1);
    let mut parts = Vec::new();
    let mut before = 0;
    for range in kept.iter().rev() {
        let length = range.len().min(most - before);
        let start = ceil_boundary(text, range.end - length);
        parts.push(&text[start..range.end]);
        before += range.end - start;
        if length < range.len() || before >= most {
            break;
        }
    }
    let behind = &text[position..floor_boundary(text, (position + most).min(text.len()))];
    let window: String = parts.into_iter().rev().chain([behind]).collect();
    let mut from = 0;
    while let Some(found) = names.find(&window, from).filter(|found| found.start < before) {
        if found.end > before {
            return Some((before - found.start, found.end - before));
        }
        from = found.end;
    }
    None
}

/// Takes bytes off the end of what is kept.
fn take_back(kept: &mut Vec<Range<usize>>, mut bytes: usize) {
    while let Some(last) = kept.last_mut().filter(|_| bytes > 0) {
        let taken = last.len().min(bytes);
        last.end -= taken;
        bytes -= taken;
        if last.start == last.end {
            kept.pop();
        }
    }
}

fn ceil_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strip(names: &Names, text: &str) -> String {
        without_names(names, text).unwrap().into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn names_that_come_about_are_taken_out_as_well() {
        let names = Names::new(["<|a|>".to_owned(), "é|".to_owned()]).unwrap();
        assert_eq!(strip(&names, "x<|<|a|>a|>y"), "xy");
        assert_eq!(strip(&names, "<|<|<|a|>a|>a|>"), "");
        assert_eq!(strip(&names, "éé||é<|a|>|."), ".");
        assert_eq!(strip(&names, "<|a|"), "<|a|");
    }

    proptest! {
        #[test]
        fn nothing_else_goes(
            parts in prop::collection::vec(prop::sample::select(vec![
                "<|", "a", "|>", "b", "é", "|", "<|a|>", "<|ab|>", " ",
            ]), 0..40),
        ) {
            let text = parts.concat();
            let names: Vec<_> = ["<|a|>", "<|ab|>", "é|"].map(str::to_owned).into();
            let names = Names::new(names).unwrap();
            let left = strip(&names, &text);
            prop_assert!(names.find(&left, 0).is_none(), "{} of {}", left, text);
            // The same, one name at a time.
            let mut slow = text.clone();
            while let Some(found) = names.find(&slow, 0) {
                slow.replace_range(found.start..found.end, "");
            }
            prop_assert_eq!(left, slow);
        }
    }

    proptest! {
        #![proptest_config(crate::test_support::config(2000))]

        #[test]
        fn names_are_taken_out_of_normalized_text(
            texts in prop::collection::vec(prop::collection::vec(prop::sample::select(vec![
                "<", "e", "\u{301}", "\u{323}", ">", "<e", "\u{301}>", "<\u{e9}>", "x", "|", "e|",
            ]), 0..12).prop_map(|parts| parts.concat()), 0..6),
        ) {
            let names = ["<\u{e9}>", "e|", "\u{301}|"].map(str::to_owned);
            let names = Names::new(names).unwrap();
            let parts: Vec<&str> = texts.iter().map(String::as_str).collect();
            for normalization in [Normalization::Nfc, Normalization::None] {
                let left = super::strip(&names, normalization, &parts).unwrap();
                prop_assert_eq!(left.len(), parts.len());
                let left = left.concat();
                let normal = normalization.apply(&left).unwrap();
                prop_assert!(names.find(&normal, 0).is_none(), "{:?} of {:?}", left, parts);
                // The same, by rounds over all of it.
                let mut slow = normalization.apply(&parts.concat()).unwrap().into_owned();
                while names.find(&slow, 0).is_some() {
                    slow = strip(&names, &slow);
                    slow = normalization.apply(&slow).unwrap().into_owned();
                }
                prop_assert_eq!(&*normal, &slow);
                // One piece after the other, from the start.
                let items: Vec<Item> = slow_items(&normalization.apply(&parts.concat()).unwrap());
                let text = text_of(&items).unwrap();
                let kept = without_names(&names, &text).unwrap();
                let settled = settled(&names, normalization, &pieces(&items, &text, &kept).unwrap());
                let settled = text_of(&settled.unwrap()).unwrap();
                prop_assert!(names.find(&settled, 0).is_none());
                prop_assert_eq!(&*normalization.apply(&settled).unwrap(), &settled);
            }
        }
    }

    fn slow_items(text: &str) -> Vec<Item> {
        text.chars().map(|character| (character, 0)).collect()
    }

    #[test]
    fn names_that_normalization_makes_again_and_again_take_linear_time() {
        let names = Names::new(["<\u{e9}>".to_owned()]).unwrap();
        let nested = "<e".repeat(50_000) + "<\u{e9}>" + &"\u{301}>".repeat(50_000);
        let marks = "x".to_owned() + &"<e<\u{e9}>\u{301}>\u{301}<\u{e9}>\u{323}".repeat(20_000);
        for text in [nested, marks] {
            let left = super::strip(&names, Normalization::Nfc, &[&text, &text]).unwrap();
            assert!(names.find(&left.concat(), 0).is_none());
            assert!(left[0].len() < 90_000);
        }
    }

    #[test]
    fn deep_nesting_takes_linear_time() {
        let names = Names::new(["<|a|>".to_owned()]).unwrap();
        let text = "<|".repeat(100_000) + &"a|>".repeat(100_000);
        assert_eq!(strip(&names, &text), "");
    }
}
