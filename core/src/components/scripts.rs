//! The scripts that `UnicodeScripts` tells apart.

use std::num::NonZero;

/// Stretches of one script, as `examples/unicode_scripts.rs` writes them: the first code point in
/// three bytes, the lowest first, and the number of the script; 0 for no script.
const TABLE: &[[u8; 4]] = include_bytes!("scripts.bin").as_chunks().0;

/// The number of a script.
pub(crate) type Script = NonZero<u8>;

/// The script of a character; `None` for spaces and what Unicode 9.0 does not assign.
pub(crate) fn script_of(character: char) -> Option<Script> {
    let code_point = u32::from(character);
    let place =
        TABLE.partition_point(|&[a, b, c, _]| u32::from_le_bytes([a, b, c, 0]) <= code_point);
    place.checked_sub(1).and_then(|place| Script::new(TABLE[place][3]))
}
