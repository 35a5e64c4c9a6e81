//! The tokens of a piece that is no token itself.

use crate::error::{Error, Result};
use crate::vocabulary::Vocabulary;

/// Appends the ranks of `piece` to `out`: starting from single bytes, the adjacent pair whose
/// concatenation has the lowest rank is merged, leftmost on ties, until none is left.
pub fn merge(vocabulary: &Vocabulary, piece: &[u8], out: &mut Vec<u32>) -> Result<()> {
    let mut bounds: Vec<usize> = (0..=piece.len()).collect();
    loop {
        let best = (0..bounds.len().saturating_sub(2))
            .filter_map(|i| Some((vocabulary.rank(&piece[bounds[i]..bounds[i + 2]])?, i)))
            .min();
        let Some((_, i)) = best else { break };
        bounds.remove(i + 1);
    }
    for window in bounds.windows(2) {
        let bytes = &piece[window[0]..window[1]];
        let rank = vocabulary.rank(bytes).ok_or(Error::MissingByte { byte: bytes[0] })?;
        out.push(rank);
    }
    Ok(())
}
