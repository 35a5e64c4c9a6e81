//! Scripts that `UnicodeScripts` distinguishes.

use std::num::NonZero;

/// Ranges of one script, as written by `examples/unicode_scripts.rs`: the first code point in three
/// bytes, in ascending order, and the number of the script; 0 for no script.
const TABLE: &[[u8; 4]] = include_bytes!("scripts.bin").as_chunks().0;

pub(crate) type Script = NonZero<u8>;

/// Returns the script of a character; `None` for spaces and for characters unassigned in Unicode
/// 9.0.
pub(crate) fn script_of(character: char) -> Option<Script> {
    let code_point = u32::from(character);
    let place =
        TABLE.partition_point(|&[a, b, c, _]| u32::from_le_bytes([a, b, c, 0]) <= code_point);
    place.checked_sub(1).and_then(|place| Script::new(TABLE[place][3]))
}
