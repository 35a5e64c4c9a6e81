//! The merge rule, written as simply as possible.

use std::collections::HashMap;

/// Returns the ids of a piece: one id if the piece is a token; otherwise the two neighbors whose
/// concatenation has the lowest rank merge, leftmost on ties, until no pair merges. Fails with the
/// first remaining byte that is not a token.
pub fn by_the_rule(ids: &HashMap<Vec<u8>, u32>, piece: &[u8]) -> Result<Vec<u32>, u8> {
    if let Some(&id) = ids.get(piece) {
        return Ok(vec![id]);
    }
    let mut parts: Vec<Vec<u8>> = piece.iter().map(|&byte| vec![byte]).collect();
    loop {
        let joins = parts.windows(2).enumerate();
        let ranked = joins.filter_map(|(at, pair)| Some((*ids.get(&pair.concat())?, at)));
        let Some((_, at)) = ranked.min() else { break };
        let right = parts.remove(at + 1);
        parts[at].extend(right);
    }
    parts.iter().map(|part| ids.get(part).copied().ok_or(part[0])).collect()
}
