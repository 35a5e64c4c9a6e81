//! Changes of one merge on both sides of the new token, collected before pairs are looked up: a
//! neighbor that occurs a thousand times is looked up once.

/// Change for one neighbor on one side of the new token.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Change {
    pub(super) count: i64,
    pub(super) places: u32,
    /// Index in the arena of the next position.
    pub(super) next: usize,
}

/// Neighbors on one side of a new token.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// Changes, indexed by the neighbor's id.
    pub(super) changes: Vec<Change>,
    /// Tokens that have a change.
    pub(super) touched: Vec<u32>,
    /// Neighbors and positions of the new pairs, in the order of the positions.
    pub(super) places: Vec<(u32, u32)>,
}

impl Side {
    /// Makes room for `tokens` tokens.
    pub(super) fn prepare(&mut self, tokens: usize) {
        if self.changes.len() < tokens {
            let more = tokens - self.changes.len();
            self.changes.reserve(more);
            self.changes.resize(tokens, Change::default());
        }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, neighbor: u32, position: u32, count: i64) {
        let change = &mut self.changes[neighbor as usize];
        if change.places == 0 {
            self.touched.push(neighbor);
        }
        change.places += 1;
        change.count = change.count.saturating_add(count);
        self.places.push((neighbor, position));
    }

    pub(super) fn clear(&mut self) {
        for &neighbor in &self.touched {
            self.changes[neighbor as usize] = Change::default();
        }
        self.touched.clear();
        self.places.clear();
    }
}
