//! Scores of pieces, compared as in SentencePiece.

use super::piece::Version;

/// Maps scores to integers in the same order; equal scores map to equal integers.
pub(crate) fn order_of_scores(scores: &[f32], version: Version) -> Vec<i32> {
    let zero = |score: f32| if version == Version::V021 { score + 0.0 } else { score };
    let order = |&score: &f32| {
        let bits = zero(score).to_bits() as i32;
        // The bits of negative floats, read as integers, are in reverse order.
        if bits < 0 { !bits | i32::MIN } else { bits }
    };
    scores.iter().map(order).collect::<Vec<_>>()
}

/// Rounds the scores to single precision.
pub(crate) fn single(scores: &[f64]) -> Vec<f32> {
    let mut singles = vec![0.0; scores.len()];
    singles.iter_mut().zip(scores).for_each(|(single, &score)| *single = score as f32);
    singles
}
