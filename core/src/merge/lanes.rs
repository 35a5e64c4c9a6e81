//! Merges many short pieces at once, in vector lanes.
//!
//! Each look-up depends on the result of the previous look-up, so a single piece waits for memory
//! again and again. Here each piece has a lane of a block, whose rows hold the first part of each
//! piece, then the second part, and so on. In each step every piece merges its lowest-ranked pair,
//! all resulting pairs are looked up together, and vector instructions move the parts up and find
//! the next lowest ranks.

use super::initial::first_parts;
use crate::ablation::Mechanism;
use crate::split::Piece;
#[cfg(target_arch = "x86_64")]
use crate::tier::Instructions;
use crate::tier::Tier;
use crate::vocabulary::{NONE, PairProbe, Pairs, Vocabulary};

/// Number of pieces in a block: the number of ranks in the widest vectors.
const LANES: usize = 16;
/// Number of blocks processed at once.
const BLOCKS: usize = 4;
/// Number of rows in a block; pieces have fewer bytes.
const ROWS: usize = 32;
/// Number of low bits of a rank in a block, which hold the row number.
const ROW_BITS: u32 = ROWS.trailing_zeros();
/// Rank of two parts that do not merge.
const NOTHING: u32 = NONE << ROW_BITS;
/// Maximum number of pairs looked up together.
const LOOKUPS: usize = 512;

/// Maximum length in bytes of a piece to merge in lanes.
pub(crate) const LANES_LIMIT: usize = ROWS - 1;

/// Merges many pieces at once; reuses its buffers.
#[derive(Debug)]
pub(crate) struct LaneMerger {
    tier: Tier,
    /// `None` until first use.
    buffers: Option<Box<Buffers>>,
}

#[derive(Debug)]
struct Buffers {
    blocks: [LaneBlock; BLOCKS],
    lookups: Lookups,
}

/// One value for each lane.
type Row = [u32; LANES];

/// A block of pieces, one per lane.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct LaneBlock {
    parts: [Row; ROWS],
    /// Rank of the merge of each part with the next part, shifted left by [`ROW_BITS`].
    ranks: [Row; ROWS],
    /// Lowest of `ranks` per lane, with its row number.
    lowest: Row,
    /// Rows of the parts that have merged with the next part, which is still in place.
    merged: Row,
    /// Number of parts in each piece.
    counts: Row,
    /// Maximum number of parts in any piece.
    height: usize,
    /// One bit for each lane whose piece still merges.
    active: u32,
}

/// A pair to look up, and the cell for its rank.
#[derive(Debug, Clone, Copy, Default)]
struct Lookup {
    probe: PairProbe,
    cell: Cell,
}

/// Block, row and lane number, eight bits each.
#[derive(Debug, Clone, Copy, Default)]
struct Cell(usize);

impl Cell {
    #[inline(always)]
    fn new(block: usize, row: usize, lane: usize) -> Self {
        Self(block << 16 | row << 8 | lane)
    }

    /// Returns the rank in the cell.
    #[inline(always)]
    fn rank(self, blocks: &mut [LaneBlock]) -> &mut u32 {
        &mut blocks[self.0 >> 16].ranks[(self.0 >> 8) % ROWS][self.0 % LANES]
    }
}

/// Pairs that are looked up together.
#[derive(Debug)]
struct Lookups {
    pending: [Lookup; LOOKUPS],
    count: usize,
}

impl LaneMerger {
    pub(crate) fn new(tier: Tier) -> Self {
        Self { tier, buffers: None }
    }

    /// Calls `done` with each of `pieces`, its associated value and its ids, in any order. A piece
    /// has 1 to [`LANES_LIMIT`] bytes of `text`. Skips pieces with a byte that is not a token. For
    /// ordered vocabularies only.
    pub(crate) fn merge<T: Copy>(
        &mut self,
        vocabulary: &Vocabulary,
        text: &[u8],
        pieces: &[(Piece, T)],
        mut done: impl FnMut(Piece, T, &[u32]),
    ) {
        if !Mechanism::Lanes.is_used() {
            let mut ids = Vec::new();
            for &(piece, with) in pieces {
                ids.clear();
                let merged = super::merge(vocabulary, &text[piece.start..piece.end], &mut ids);
                if merged.is_ok() && vocabulary.turn_into_ids(&mut ids).is_ok() {
                    done(piece, with, &ids);
                }
            }
            return;
        }
        if pieces.is_empty() {
            return; // Fills the pairs of an image only for pieces to merge.
        }
        // Without memory for the pairs, no piece is merged here; each piece then fails separately.
        let Ok(pairs) = vocabulary.pairs() else { return };
        let Buffers { blocks, lookups } = &mut **self.buffers.get_or_insert_with(Buffers::new);
        for pieces in pieces.chunks(LANES * BLOCKS) {
            let blocks = &mut blocks[..pieces.len().div_ceil(LANES)];
            for (piece, _) in pieces {
                pairs.prefetch_start(&text[piece.start..piece.end]);
            }
            for (index, pieces) in pieces.chunks(LANES).enumerate() {
                blocks[index].clear(pieces.iter().map(|(piece, _)| piece.end - piece.start));
                for (lane, (piece, _)) in pieces.iter().enumerate() {
                    if lookups.count > LOOKUPS - ROWS {
                        lookups.find(pairs, blocks);
                    }
                    let piece = &text[piece.start..piece.end];
                    blocks[index].start(pairs, piece, index, lane, lookups);
                }
            }
            loop {
                lookups.find(pairs, blocks);
                for (block, pieces) in blocks.iter_mut().zip(pieces.chunks(LANES)) {
                    if block.active != 0 {
                        block.advance(self.tier);
                        block.finish(|lane, ids| {
                            if vocabulary.turn_into_ids(ids).is_ok() {
                                let (piece, what) = pieces[lane];
                                done(piece, what, ids);
                            }
                        });
                    }
                }
                if blocks.iter().all(|block| block.active == 0) {
                    break;
                }
                for (index, block) in blocks.iter_mut().enumerate() {
                    block.merge_lowest(index, lookups);
                }
            }
        }
    }
}

impl Buffers {
    fn new() -> Box<Self> {
        let block = LaneBlock {
            parts: [[NONE; LANES]; ROWS],
            ranks: [[NOTHING; LANES]; ROWS],
            lowest: [NOTHING; LANES],
            merged: [0; LANES],
            counts: [0; LANES],
            height: 0,
            active: 0,
        };
        let lookups = Lookups { pending: [Lookup::default(); LOOKUPS], count: 0 };
        Box::new(Self { blocks: [block; BLOCKS], lookups })
    }
}

impl Lookups {
    /// Adds the pair if `is_wanted`; branch-free, since the condition is unpredictable.
    #[inline(always)]
    fn add_if(&mut self, is_wanted: bool, left: u32, right: u32, cell: Cell) {
        self.pending[self.count % LOOKUPS] = Lookup { probe: PairProbe::new(left, right), cell };
        self.count += usize::from(is_wanted);
    }

    /// Looks up all pairs and writes their ranks into the blocks.
    #[inline(never)]
    fn find(&mut self, pairs: &Pairs, blocks: &mut [LaneBlock]) {
        let pending = &mut self.pending[..self.count];
        self.count = 0;
        for Lookup { probe, .. } in &mut *pending {
            pairs.prefetch(probe);
        }
        for Lookup { probe, .. } in &mut *pending {
            pairs.prefetch_slot(probe);
        }
        for &mut Lookup { probe, cell } in pending {
            *cell.rank(blocks) = pairs.found(probe) << ROW_BITS;
        }
    }
}

impl LaneBlock {
    /// Clears the rows that pieces of these lengths need.
    fn clear(&mut self, lengths: impl ExactSizeIterator<Item = usize>) {
        self.active = ((1u64 << lengths.len()) - 1) as u32;
        self.height = 0;
        self.merged = [ROWS as u32; LANES];
        self.ranks[..=lengths.max().unwrap_or(0)].fill([NOTHING; LANES]);
    }

    /// Puts a piece into a lane and requests the unknown ranks.
    #[inline(never)]
    fn start(
        &mut self,
        pairs: &Pairs,
        piece: &[u8],
        block: usize,
        lane: usize,
        lookups: &mut Lookups,
    ) {
        let lane = lane % LANES;
        let mut count = 0_usize;
        let mut last = NONE;
        first_parts(pairs, piece, |first| {
            // The first part has no predecessor, so this cell is not the rank of a merge.
            let before = count.wrapping_sub(1) % ROWS;
            lookups.add_if(!first.is_known, last, first.part, Cell::new(block, before, lane));
            self.ranks[before][lane] = first.rank << ROW_BITS;
            self.parts[count % ROWS][lane] = first.part;
            last = first.part;
            count += 1;
        });
        self.counts[lane] = count as u32;
        self.height = self.height.max(count);
    }

    /// Merges the lowest-ranked pair of each piece, and requests the ranks of the result's pairs.
    #[inline(never)]
    fn merge_lowest(&mut self, block: usize, lookups: &mut Lookups) {
        self.height = self.height.saturating_sub(1);
        for lane in bits(self.active) {
            let row = self.lowest[lane] as usize % ROWS;
            let part = self.lowest[lane] >> ROW_BITS;
            let count = self.counts[lane] as usize - 1;
            self.counts[lane] = count as u32;
            self.merged[lane] = row as u32;
            self.parts[row][lane] = part;
            let before = row.wrapping_sub(1) % ROWS;
            let left = self.parts[before][lane];
            lookups.add_if(row > 0, left, part, Cell::new(block, before, lane));
            // The next row still has the second part of the merged pair.
            let right = self.parts[(row + 2) % ROWS][lane];
            lookups.add_if(row + 1 < count, part, right, Cell::new(block, row + 1, lane));
        }
    }

    /// Moves the parts after each merge up by a row, and finds the lowest ranks.
    #[inline(always)]
    fn advance(&mut self, tier: Tier) {
        match tier.kind() {
            // SAFETY: the tier guarantees the instructions.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => unsafe { self.advance_avx512() },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { self.advance_avx2() },
            _ => self.advance_rows(),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn advance_avx512(&mut self) {
        self.advance_rows();
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn advance_avx2(&mut self) {
        self.advance_rows();
    }

    /// The body of [`LaneBlock::advance`], compiled for vectors of any width.
    #[inline(always)]
    fn advance_rows(&mut self) {
        let Self { parts, ranks, merged, .. } = self;
        let mut lowest = [NONE; LANES];
        for row in 0..self.height.min(ROWS - 1) {
            let number = row as u32;
            let [part, next_part] = [parts[row], parts[row + 1]];
            let [rank, next_rank] = [ranks[row], ranks[row + 1]];
            for lane in 0..LANES {
                let merged = merged[lane];
                parts[row][lane] = choose(merged < number, next_part[lane], part[lane]);
                let rank = choose(merged <= number, next_rank[lane], rank[lane]);
                ranks[row][lane] = rank;
                lowest[lane] = lowest[lane].min(rank | number);
            }
        }
        self.lowest = lowest;
    }

    /// Calls `done` with the parts of completely merged pieces.
    #[inline(always)]
    fn finish(&mut self, mut done: impl FnMut(usize, &mut [u32])) {
        let ended = (0..LANES)
            .fold(0, |ended, lane| ended | u32::from(self.lowest[lane] >= NOTHING) << lane);
        for lane in bits(self.active & ended) {
            let mut parts = [NONE; ROWS];
            let parts = &mut parts[..(self.counts[lane] as usize).min(ROWS)];
            for (part, row) in parts.iter_mut().zip(&self.parts) {
                *part = row[lane];
            }
            done(lane, parts);
        }
        self.active &= !ended;
    }
}

/// Iterates over the lanes whose bits are set.
fn bits(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}

/// Branch-free `condition ? yes : no`, for loops that compile to vector instructions; branches
/// would compile to a gather.
#[inline(always)]
fn choose(condition: bool, yes: u32, no: u32) -> u32 {
    let mask = u32::from(condition).wrapping_neg();
    no ^ (no ^ yes) & mask
}
