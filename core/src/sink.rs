//! What a walk leaves behind. The walk is one; the sinks at its end differ.

use std::ops::ControlFlow;

/// Takes the ids of a walk, batch by batch.
pub trait Sink {
    /// Whether [`Sink::piece`] is to be called. A constant, so that it costs nothing when false.
    const WANTS_PIECES: bool = false;

    /// Where the walk appends ids.
    fn ids(&mut self) -> &mut Vec<u32>;

    /// Called after every batch of pieces; `Break` ends the walk.
    fn batch_done(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// A piece (or special token) starts at byte `start` of the text; its ids follow.
    fn piece(&mut self, start: usize) {
        let _ = start;
    }
}

/// Keeps every id.
impl Sink for Vec<u32> {
    fn ids(&mut self) -> &mut Vec<u32> {
        self
    }
}

/// Counts ids, and stops once there are more than `limit`.
#[derive(Debug)]
pub struct Count {
    batch: Vec<u32>,
    /// How many ids came by; above `limit` the walk has ended early.
    pub total: usize,
    limit: usize,
}

impl Count {
    /// Counts everything.
    pub fn all() -> Self {
        Self::till(usize::MAX)
    }

    /// Counts until there are more than `limit` ids.
    pub fn till(limit: usize) -> Self {
        Self { batch: Vec::new(), total: 0, limit }
    }
}

impl Sink for Count {
    fn ids(&mut self) -> &mut Vec<u32> {
        &mut self.batch
    }

    fn batch_done(&mut self) -> ControlFlow<()> {
        self.total += self.batch.len();
        self.batch.clear();
        if self.total > self.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Keeps every id and where each piece starts.
#[derive(Debug, Default)]
pub struct Pieces {
    /// All ids, in order.
    pub ids: Vec<u32>,
    /// `(byte offset of the piece in the text, index of its first id)`, ascending.
    pub starts: Vec<(usize, usize)>,
}

impl Sink for Pieces {
    const WANTS_PIECES: bool = true;

    fn ids(&mut self) -> &mut Vec<u32> {
        &mut self.ids
    }

    fn piece(&mut self, start: usize) {
        self.starts.push((start, self.ids.len()));
    }
}
