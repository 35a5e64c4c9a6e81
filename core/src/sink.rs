//! What a walk leaves behind. The walk is one; the sinks at its end differ.

use std::ops::{ControlFlow, Range};

use crate::error::Result;
use crate::memory::reserve;

/// Takes the ids of a walk, batch by batch.
pub trait Sink {
    /// Whether [`Sink::piece`] and [`Sink::special`] are to be called. A constant, so that it costs nothing when false.
    const WANTS_PIECES: bool = false;

    /// Where the walk appends ids.
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

    /// A piece is these bytes of the text; its ids follow.
    fn piece(&mut self, bytes: Range<usize>) {
        let _ = bytes;
    }

    /// A special token is these bytes of the text; its id follows.
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
    /// How many ids were counted; above `limit` the walk has ended early.
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
    const WANTS_PIECES: bool = true;

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
