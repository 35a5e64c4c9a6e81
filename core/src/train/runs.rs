//! Counts in sorted files: more pieces than memory holds are written out in parts, and added up as
//! the files are read side by side.
//!
//! A file is eight bytes that say what it is; each piece as its length (4 bytes), its count (8
//! bytes) and its bytes, in the order of bytes, numbers little-endian; and an end, the length
//! `u32::MAX` with the number of pieces.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use super::piece_table::PieceTable;

const MAGIC: &[u8; 8] = b"bperuns1";
const END: u32 = u32::MAX;

/// Writes a file of counts, piece by piece.
#[derive(Debug)]
pub struct RunWriter {
    file: BufWriter<File>,
    pieces: u64,
}

impl RunWriter {
    /// Begins a file; one that exists is replaced.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        file.write_all(MAGIC)?;
        Ok(Self { file, pieces: 0 })
    }

    /// The next piece, above all before it.
    pub fn write(&mut self, piece: &[u8], count: u64) -> io::Result<()> {
        let length = u32::try_from(piece.len()).ok().filter(|&length| length != END);
        let length = length.ok_or_else(|| io::Error::other("a piece has 4 GiB or more"))?;
        self.file.write_all(&length.to_le_bytes())?;
        self.file.write_all(&count.to_le_bytes())?;
        self.pieces += 1;
        self.file.write_all(piece)
    }

    /// Ends the file, and waits until it is on the disk.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.write_all(&END.to_le_bytes())?;
        self.file.write_all(&self.pieces.to_le_bytes())?;
        self.file.into_inner()?.sync_all()
    }
}

/// Writes all of a table to a file.
pub fn write_table(table: &PieceTable, order: &[u32], path: &Path) -> io::Result<()> {
    let mut writer = RunWriter::create(path)?;
    for &number in order {
        let (piece, count) = table.get(number as usize);
        writer.write(piece, count)?;
    }
    writer.finish()
}

/// Reads a file of counts, piece by piece.
#[derive(Debug)]
struct RunReader {
    file: BufReader<File>,
    piece: Vec<u8>,
    count: u64,
    pieces: u64,
}

impl RunReader {
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = BufReader::with_capacity(1 << 18, File::open(path)?);
        let mut magic = [0; MAGIC.len()];
        file.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Err(damaged("it is no file of counts"));
        }
        Ok(Self { file, piece: Vec::new(), count: 0, pieces: 0 })
    }

    /// Reads the next piece; false at the end.
    fn next(&mut self) -> io::Result<bool> {
        let mut length = [0; 4];
        let mut count = [0; 8];
        self.file.read_exact(&mut length)?;
        self.file.read_exact(&mut count)?;
        let length = u32::from_le_bytes(length);
        self.count = u64::from_le_bytes(count);
        if length == END {
            let whole = self.count == self.pieces;
            return if whole { Ok(false) } else { Err(damaged("pieces are missing")) };
        }
        self.pieces += 1;
        // Not reserved at once: a damaged length must not ask for all memory.
        self.piece.clear();
        let read = (&mut self.file).take(length.into()).read_to_end(&mut self.piece)?;
        if read < length as usize { Err(damaged("it ends within a piece")) } else { Ok(true) }
    }
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the file of counts is damaged: {reason}"))
}

/// The sum of several files, in the order of bytes.
#[derive(Debug)]
pub struct MergedRuns {
    readers: Vec<RunReader>,
    /// The next piece of each file.
    next: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    piece: Vec<u8>,
}

impl MergedRuns {
    /// Opens the files.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> io::Result<Self> {
        let mut merged = Self { readers: Vec::new(), next: BinaryHeap::new(), piece: Vec::new() };
        for path in paths {
            merged.readers.push(RunReader::open(path.as_ref())?);
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

    /// The next piece, with its counts in all files added up; `None` at the end.
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
