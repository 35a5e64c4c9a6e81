//! The scores of pieces, as SentencePiece compares them.

use super::piece::Version;

/// The order of scores: a number for each, the same for equal ones.
pub(crate) fn order_of_scores(scores: &[f32], version: Version) -> Vec<i32> {
    let zero = |score: f32| if version == Version::V021 { score + 0.0 } else { score };
    let order = |&score: &f32| {
        let bits = zero(score).to_bits() as i32;
        // Negative numbers are in the reverse order.
        if bits < 0 { !bits | i32::MIN } else { bits }
    };
    scores.iter().map(order).collect::<Vec<_>>()
}

/// The scores of tokens with single precision.
pub(crate) fn single(scores: &[f64]) -> Vec<f32> {
    let mut singles = vec![0.0; scores.len()];
    singles.iter_mut().zip(scores).for_each(|(single, &score)| *single = score as f32);
    singles
}
