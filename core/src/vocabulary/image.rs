//! Stores a vocabulary as one block of bytes, created when the package is built and read in place.
//!
//! Layout, all numbers little-endian: a magic number, two flags, then the sections, each a `u64`
//! length in bytes, padding to 64 bytes, the contents, and padding to 64 bytes; the seeds of a hash
//! table precede its sections. To keep packages small, starts of tokens are stored as lengths, and
//! the slots of pairs are filled at the first merge. An image is written and read by the same
//! version of this crate; it is not a file format.

use bytemuck::Pod;

use super::boundaries::Boundaries;
use super::pairs::Pairs;
use super::perfect_hash::PerfectHash;
use super::tokens::Tokens;
use super::{Section, Vocabulary};
use crate::error::{Error, Result};
use crate::memory::with_capacity;
use crate::once::OnceBox;

const MAGIC: u64 = u64::from_le_bytes(*b"bpeimg05");
const ALIGNMENT: usize = 64;

/// Bytes with the alignment that an image needs.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Aligned<B: ?Sized>(pub B);

impl Vocabulary {
    /// Returns this vocabulary as an image.
    pub fn to_image(&self) -> Vec<u8> {
        let Self { tokens, pairs, filled: _, boundaries, ordered, all_reachable: _ } = self;
        let mut image = Writer(Vec::new());
        image.words(&[MAGIC]);
        image.words(&[*ordered, pairs.every_byte].map(u64::from));
        image.section(&tokens.arena);
        // Lengths compress better than starts.
        image.section(&tokens.starts.windows(2).map(|at| at[1] - at[0]).collect::<Vec<_>>());
        image.section(&tokens.ids);
        image.perfect_hash(&tokens.short);
        image.perfect_hash(&tokens.long);
        image.section(&tokens.unreachable);
        image.section(&pairs.bytes);
        image.section(&pairs.neighbors);
        image.section(&pairs.characters);
        image.section(&pairs.splits);
        image.words(&pairs.by_pair.seeds);
        image.section(&pairs.by_pair.buckets);
        image.section(&boundaries.pairs);
        image.section(&boundaries.open);
        image.0
    }

    /// Reads an image in place. Refuses anything except the result of [`Vocabulary::to_image`] of
    /// this version at an address aligned like [`Aligned`].
    pub fn from_image(image: &'static [u8]) -> Result<Self> {
        let mut image = Reader { image, position: 0 };
        let [magic] = image.words()?;
        let [ordered, every_byte] = image.words()?;
        if magic != MAGIC {
            return Err(Error::Vocabulary("not a vocabulary image of this version".into()));
        }
        let tokens = Tokens {
            arena: image.section()?,
            starts: starts(&image.section::<u32>()?)?.into(),
            ids: image.section()?,
            short: image.perfect_hash()?,
            long: image.perfect_hash()?,
            unreachable: image.section()?,
        };
        let pairs = Pairs {
            bytes: image.section()?,
            every_byte: every_byte != 0,
            neighbors: image.section()?,
            characters: image.section()?,
            splits: image.section()?,
            by_pair: PerfectHash {
                seeds: image.words()?,
                buckets: image.section()?,
                slots: Section::default(),
            },
        };
        let boundaries = Boundaries { pairs: image.section()?, open: image.section()? };
        let all_reachable = tokens.all_reachable();
        let (filled, ordered) = (OnceBox::new(), ordered != 0);
        Ok(Self { tokens, pairs, filled, boundaries, ordered, all_reachable })
    }
}

/// Returns the start of each token, given the lengths, and the end of the last token.
fn starts(lengths: &[u32]) -> Result<Vec<u32>> {
    let mut starts = with_capacity(lengths.len() + 1)?;
    let mut end = 0_u32;
    starts.push(end);
    for &length in lengths {
        end = end.wrapping_add(length);
        starts.push(end);
    }
    Ok(starts)
}

struct Writer(Vec<u8>);

impl Writer {
    fn words(&mut self, words: &[u64]) {
        words.iter().for_each(|word| self.0.extend_from_slice(&word.to_le_bytes()));
    }

    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(ALIGNMENT), 0);
    }

    fn section<T: Pod>(&mut self, section: &[T]) {
        let bytes: &[u8] = bytemuck::cast_slice(section);
        self.words(&[bytes.len() as u64]);
        self.pad();
        self.0.extend_from_slice(bytes);
        self.pad();
    }

    fn perfect_hash(&mut self, table: &PerfectHash) {
        self.words(&table.seeds);
        self.section(&table.buckets);
        self.section(&table.slots);
    }
}

struct Reader {
    image: &'static [u8],
    position: usize,
}

impl Reader {
    fn bytes(&mut self, count: usize) -> Result<&'static [u8]> {
        let end = self.position.checked_add(count);
        let bytes = end.and_then(|end| self.image.get(self.position..end));
        let bytes =
            bytes.ok_or_else(|| Error::Vocabulary("a vocabulary image that is cut off".into()))?;
        self.position += count;
        Ok(bytes)
    }

    fn words<const N: usize>(&mut self) -> Result<[u64; N]> {
        let mut words = [0; N];
        for word in &mut words {
            let bytes = self.bytes(8)?;
            *word = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        }
        Ok(words)
    }

    fn pad(&mut self) -> Result<()> {
        let padding = self.position.next_multiple_of(ALIGNMENT) - self.position;
        self.bytes(padding).map(drop)
    }

    fn section<T: Pod>(&mut self) -> Result<Section<T>> {
        let [length] = self.words()?;
        self.pad()?;
        let bytes = self.bytes(length as usize)?;
        self.pad()?;
        bytemuck::try_cast_slice(bytes).map(Section::Borrowed).map_err(|error| {
            Error::Vocabulary(format!("a vocabulary image at an odd address ({error})"))
        })
    }

    fn perfect_hash(&mut self) -> Result<PerfectHash> {
        Ok(PerfectHash { seeds: self.words()?, buckets: self.section()?, slots: self.section()? })
    }
}
