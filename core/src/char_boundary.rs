//! Rounds byte positions in a text to character boundaries.

/// Returns the last character boundary at or before byte `position`.
pub fn floor(text: &str, position: usize) -> usize {
    let mut boundary = position.min(text.len());
    while !text.is_char_boundary(boundary) {
        boundary -= 1;
    }
    boundary
}

/// Returns the first character boundary at or after byte `position`, or the end of the text.
pub fn ceil(text: &str, position: usize) -> usize {
    let mut boundary = position.min(text.len());
    while !text.is_char_boundary(boundary) {
        boundary += 1;
    }
    boundary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_rounded_to_characters() {
        let text = "aé🦀";
        let floors = [0, 1, 1, 3, 3, 3, 3, 7, 7, 7];
        let ceils = [0, 1, 3, 3, 7, 7, 7, 7, 7, 7];
        for position in 0..10 {
            assert_eq!(floor(text, position), floors[position]);
            assert_eq!(ceil(text, position), ceils[position]);
        }
    }
}
