//! Takes names out of texts.

use std::ops::Range;

use crate::conversation::floor_boundary;
use crate::error::Result;
use crate::memory::push;
use crate::special_tokens::Names;

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

    #[test]
    fn deep_nesting_takes_linear_time() {
        let names = Names::new(["<|a|>".to_owned()]).unwrap();
        let text = "<|".repeat(100_000) + &"a|>".repeat(100_000);
        assert_eq!(strip(&names, &text), "");
    }
}
