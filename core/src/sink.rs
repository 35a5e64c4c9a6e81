//! Sinks: they receive the pieces and ids of a walk over text.

use std::ops::{ControlFlow, Range};

use crate::error::Result;
use crate::memory::reserve;

/// The positions in the text that a sink is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// No positions.
    Unwanted,
    /// Positions of special tokens, and of pieces that follow each other without a gap.
    Joined,
    /// Positions of special tokens and of each piece. Slower, since pieces are looked up one by
    /// one.
    Each,
}

/// Takes the ids of a walk, batch by batch.
pub trait Sink {
    /// The calls of [`Sink::piece`] and [`Sink::special`] that the sink needs. A constant, so that
    /// positions cost nothing where they are unwanted.
    const PLACES: Places = Places::Unwanted;

    /// Returns the vector that the walk appends ids to.
    fn ids(&mut self) -> &mut Vec<u32>;

    /// Called before a batch of `pieces` pieces, which have at most `ids` ids together, to make
    /// room for them.
    fn reserve(&mut self, pieces: usize, ids: usize) -> Result<()> {
        let _ = pieces;
        reserve(self.ids(), ids)
    }

    /// Called after every batch of pieces; `Break` ends the walk.
    fn batch_done(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Takes the bytes of the text that a piece covers, or pieces without a gap between them; their
    /// ids follow.
    fn piece(&mut self, bytes: Range<usize>) {
        let _ = bytes;
    }

    /// Takes the bytes of the text that a special token covers; its id follows.
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

/// Counts ids, and stops once there are more than `limit`.
#[derive(Debug)]
pub struct Count {
    batch: Vec<u32>,
    /// The number of ids counted; above `limit`, the walk has ended early.
    pub total: usize,
    limit: usize,
}

impl Count {
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
