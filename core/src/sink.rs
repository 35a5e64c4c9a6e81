//! Sinks receive the pieces and ids of a walk over text.

use std::ops::{ControlFlow, Range};

use crate::error::Result;
use crate::memory::reserve;

/// Positions in the text that a sink receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// No positions.
    Unwanted,
    /// Positions of special tokens, and of pieces without a gap between them.
    Joined,
    /// Positions of special tokens and of each piece. Slower, since pieces are looked up one by
    /// one.
    Each,
}

/// Receives the ids of a walk, batch by batch.
pub trait Sink {
    /// Calls of [`Sink::piece`] and [`Sink::special`] that the sink needs. A constant, so that
    /// unwanted positions cost nothing.
    const PLACES: Places = Places::Unwanted;

    /// Returns the vector that the walk appends ids to.
    fn ids(&mut self) -> &mut Vec<u32>;

    /// Makes room before a batch of `pieces` pieces with at most `ids` ids in total.
    fn reserve(&mut self, pieces: usize, ids: usize) -> Result<()> {
        let _ = pieces;
        reserve(self.ids(), ids)
    }

    /// Called after every batch of pieces; `Break` ends the walk.
    fn batch_done(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Takes the bytes of the text covered by a piece, or by pieces without a gap between them;
    /// their ids follow.
    fn piece(&mut self, bytes: Range<usize>) {
        let _ = bytes;
    }

    /// Takes the bytes of the text covered by a special token; its id follows.
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

/// Keeps every id and the start of each piece.
#[derive(Debug, Default)]
pub struct Pieces {
    /// All ids, in order.
    pub ids: Vec<u32>,
    /// `(byte offset of the piece in the text, index of its first id)`, in ascending order.
    pub starts: Vec<(usize, usize)>,
}

impl Sink for Pieces {
    const PLACES: Places = Places::Each;

    fn ids(&mut self) -> &mut Vec<u32> {
        &mut self.ids
    }

    fn reserve(&mut self, pieces: usize, ids: usize) -> Result<()> {
        reserve(&mut self.starts, pieces)?;
        reserve(&mut self.ids, ids)
    }

    fn piece(&mut self, bytes: Range<usize>) {
        self.starts.push((bytes.start, self.ids.len()));
    }
}
