//! Sinks receive the pieces and ids of a walk over text.

use std::ops::{ControlFlow, Range};

use crate::error::Result;
use crate::memory::reserve;

/// Receives the ids of a walk, batch by batch.
pub trait Sink {
    /// Whether the sink needs the calls of [`Sink::piece`] and [`Sink::special`]. A constant, so
    /// that sinks without positions have no overhead.
    const HAS_POSITIONS: bool = false;

    /// Returns the vector to which the walk appends ids.
    fn ids(&mut self) -> &mut Vec<u32>;

    /// Makes room before a batch of pieces with at most `ids` ids in total.
    fn reserve(&mut self, ids: usize) -> Result<()> {
        reserve(self.ids(), ids)
    }

    /// Called after every batch of pieces; `Break` ends the walk.
    fn batch_done(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Receives the byte range of contiguous pieces, whose ids follow.
    fn piece(&mut self, bytes: Range<usize>) {
        let _ = bytes;
    }

    /// Receives the byte range of a special token, whose id follows.
    fn special(&mut self, bytes: Range<usize>) {
        self.piece(bytes);
    }
}

/// Keeps every id.
impl Sink for Vec<u32> {
    fn ids(&mut self) -> &mut Vec<u32> {
        self
    }
}

/// Counts ids and stops above `limit`.
#[derive(Debug)]
pub struct Count {
    batch: Vec<u32>,
    /// Number of ids counted; above `limit`, the walk has ended early.
    pub total: usize,
    limit: usize,
}

impl Count {
    /// Creates a counter that stops above `limit` ids.
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
