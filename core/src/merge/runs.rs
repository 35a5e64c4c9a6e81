//! Merging of one character over and over (a ruler of dashes, a megabyte of spaces), without
//! looking at each of them: equal neighbours are counted.

use crate::vocabulary::{NONE, Pairs, three_byte_char};

/// A part, and how often it stands there in a row. Neighbours have different parts.
type Run = (u32, usize);

/// Appends the parts of `piece`, if it is one character over and over. False, and nothing is
/// appended, when it is not, or when what the character is depends on its neighbours. For ordered
/// vocabularies only.
pub(super) fn merge_run(pairs: &Pairs, piece: &[u8], out: &mut Vec<u32>) -> bool {
    let Some(run) = single(pairs, piece) else { return false };
    let mut runs = vec![run];
    while let Some((left, right, merged)) = next_merge(pairs, &runs) {
        runs = merge_everywhere(&runs, left, right, merged);
    }
    for (part, count) in runs {
        out.resize(out.len() + count, part);
    }
    true
}

/// The piece as one run.
fn single(pairs: &Pairs, piece: &[u8]) -> Option<Run> {
    let repeats = |width: usize| piece[width..] == piece[..piece.len() - width];
    match three_byte_char(piece) {
        Some(code_point) => {
            let part = pairs.character(code_point);
            let whole = part != NONE && piece.len().is_multiple_of(3) && repeats(3);
            whole.then_some((part, piece.len() / 3))
        }
        None => repeats(1).then(|| (pairs.byte(piece[0]), piece.len())),
    }
}

/// The merge with the lowest rank: two parts and what they become.
fn next_merge(pairs: &Pairs, runs: &[Run]) -> Option<(u32, u32, u32)> {
    let within = runs.iter().filter(|(_, count)| *count > 1).map(|&(part, _)| (part, part));
    let between = runs.array_windows().map(|&[(left, _), (right, _)]| (left, right));
    within
        .chain(between)
        .map(|(left, right)| (left, right, pairs.merged(left, right)))
        .filter(|&(_, _, merged)| merged != NONE)
        .min_by_key(|&(_, _, merged)| merged)
}

/// Merges every place where `right` follows `left`, from left to right. No other merge comes in
/// between: whatever merges with the result ranks after it.
fn merge_everywhere(runs: &[Run], left: u32, right: u32, merged: u32) -> Vec<Run> {
    let mut after = Runs(Vec::with_capacity(runs.len() + 2));
    let mut taken = 0;
    for (i, &(part, count)) in runs.iter().enumerate() {
        // The run before may have taken the first of this one.
        let count = count - taken;
        taken = 0;
        if part == left && left == right {
            after.add(merged, count / 2);
            after.add(part, count % 2);
        } else if part == left && count > 0 && runs.get(i + 1).is_some_and(|run| run.0 == right) {
            after.add(part, count - 1);
            after.add(merged, 1);
            taken = 1;
        } else {
            after.add(part, count);
        }
    }
    after.0
}

struct Runs(Vec<Run>);

impl Runs {
    fn add(&mut self, part: u32, count: usize) {
        match self.0.last_mut() {
            _ if count == 0 => {}
            Some(last) if last.0 == part => last.1 += count,
            _ => self.0.push((part, count)),
        }
    }
}
