//! Sorted files of counts, for pieces that do not fit in memory; files are merged while they are
//! read.
//!
//! A file holds the pieces in byte order, each as its length (4 bytes), its count (8 bytes) and its
//! bytes, with little-endian numbers. Files are temporary: only the process that wrote them reads
//! them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use super::piece_table::PieceTable;

/// Writes a file of counts, piece by piece.
#[derive(Debug)]
pub struct CountWriter {
    file: BufWriter<File>,
}

impl CountWriter {
    /// Creates the file, or replaces an existing file.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: BufWriter::with_capacity(1 << 20, File::create(path)?) })
    }

    /// Writes the next piece, which must be greater than all earlier pieces.
    pub fn write(&mut self, piece: &[u8], count: u64) -> io::Result<()> {
        let length = u32::try_from(piece.len());
        let length = length.map_err(|_| io::Error::other("a piece has 4 GiB or more"))?;
        self.file.write_all(&length.to_le_bytes())?;
        self.file.write_all(&count.to_le_bytes())?;
        self.file.write_all(piece)
    }

    /// Flushes the buffer.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes all pieces of a table to a file, in the given order.
pub fn write_table(table: &PieceTable, order: &[u32], path: &Path) -> io::Result<()> {
    let mut writer = CountWriter::create(path)?;
    for &number in order {
        let (piece, count) = table.get(number as usize);
        writer.write(piece, count)?;
    }
    writer.finish()
}

/// Reads a file of counts, piece by piece.
#[derive(Debug)]
struct CountReader {
    file: BufReader<File>,
    piece: Vec<u8>,
    count: u64,
}

impl CountReader {
    fn open(path: &Path) -> io::Result<Self> {
        let file = BufReader::with_capacity(1 << 18, File::open(path)?);
        Ok(Self { file, piece: Vec::new(), count: 0 })
    }

    /// Reads the next piece; returns false at the end of the file.
    fn next(&mut self) -> io::Result<bool> {
        if self.file.fill_buf()?.is_empty() {
            return Ok(false);
        }
        let mut length = [0; 4];
        let mut count = [0; 8];
        self.file.read_exact(&mut length)?;
        self.file.read_exact(&mut count)?;
        self.count = u64::from_le_bytes(count);
        self.piece.clear();
        let length = u64::from(u32::from_le_bytes(length));
        let read = (&mut self.file).take(length).read_to_end(&mut self.piece)?;
        if (read as u64) < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(true) }
    }
}

/// Merges several files: yields each piece once, with the sum of its counts, in byte order.
#[derive(Debug)]
pub struct MergedCounts {
    readers: Vec<CountReader>,
    /// The next piece of each file.
    next: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    piece: Vec<u8>,
}

impl MergedCounts {
    /// Opens the files.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> io::Result<Self> {
        let mut merged = Self { readers: Vec::new(), next: BinaryHeap::new(), piece: Vec::new() };
        for path in paths {
            merged.readers.push(CountReader::open(path.as_ref())?);
            merged.advance(merged.readers.len() - 1)?;
        }
        Ok(merged)
    }

    fn advance(&mut self, reader: usize) -> io::Result<()> {
        if self.readers[reader].next()? {
            let piece = std::mem::take(&mut self.readers[reader].piece);
            self.next.push(Reverse((piece, reader)));
        }
        Ok(())
    }

    /// Returns the next piece and the sum of its counts; `None` at the end.
    pub fn next_piece(&mut self) -> io::Result<Option<(&[u8], u64)>> {
        let Some(Reverse((piece, reader))) = self.next.pop() else { return Ok(None) };
        let mut count = self.readers[reader].count;
        self.advance(reader)?;
        while self.next.peek().is_some_and(|Reverse((other, _))| *other == piece) {
            let Some(Reverse((_, reader))) = self.next.pop() else { break };
            count = count.saturating_add(self.readers[reader].count);
            self.advance(reader)?;
        }
        self.piece = piece;
        Ok(Some((&self.piece, count)))
    }
}
