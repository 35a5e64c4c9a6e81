//! Writes `core/src/components/scripts.bin`: the scripts of Unicode 9.0, as used by
//! `UnicodeScripts` in `tokenizers`.
//!
//! ```text
//! cargo run -p bpe-core --example unicode_scripts > core/src/components/scripts.bin
//! ```
//!
//! The scripts come from the crate `unicode-script`, for the characters that `regex-syntax` reports
//! as assigned in Unicode 9.0, except the few that Unicode later moved to another script.

use std::io::Write;

use regex_syntax::hir::{Class, HirKind};
use unicode_script::{Script, UnicodeScript};

/// Name for characters without a script.
const UNASSIGNED: &str = "";

fn main() {
    let assigned = assigned();
    let mut output = std::io::stdout().lock();
    let mut names = vec![UNASSIGNED];
    let mut last = UNASSIGNED;
    for code_point in 0..=u32::from(char::MAX) {
        let name = match char::from_u32(code_point) {
            Some(character) if assigned.contains(&code_point) => name(character),
            _ => UNASSIGNED,
        };
        if name != last {
            let place = names.iter().position(|other| *other == name);
            let number = place.unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            let [first @ .., _] = code_point.to_le_bytes();
            output.write_all(&first).and_then(|()| output.write_all(&[number as u8])).unwrap();
            last = name;
        }
    }
}

/// Returns the code points assigned in Unicode 9.0.
fn assigned() -> std::collections::HashSet<u32> {
    let pattern = regex_syntax::parse(r"\p{Age=9.0}").expect("a class");
    let HirKind::Class(Class::Unicode(class)) = pattern.kind() else { panic!("not a class") };
    let stretches = class.iter().map(|range| u32::from(range.start())..=u32::from(range.end()));
    stretches.flatten().collect()
}

/// Returns the script of a character; `UnicodeScripts` treats kana as Han and gives spaces no
/// script.
fn name(character: char) -> &'static str {
    match (character, character.script()) {
        (' ', _) => UNASSIGNED,
        ('\u{589}' | '\u{61c}', _) => Script::Common.full_name(),
        ('\u{953}' | '\u{954}', _) => Script::Devanagari.full_name(),
        ('\u{30fc}', _) | (_, Script::Hiragana | Script::Katakana) => Script::Han.full_name(),
        (_, Script::Unknown) => UNASSIGNED,
        (_, script) => script.full_name(),
    }
}
