//! The scripts that `UnicodeScripts` tells apart.

mod table;

use std::num::NonZero;

use table::TABLE;

/// The number of a script.
pub(crate) type Script = NonZero<u8>;

/// The script of a character; `None` for spaces and what Unicode 9.0 does not assign.
pub(crate) fn script_of(character: char) -> Option<Script> {
    let code_point = u32::from(character);
    let place = TABLE.partition_point(|&(start, _)| start <= code_point);
    place.checked_sub(1).and_then(|place| Script::new(TABLE[place].1))
}
