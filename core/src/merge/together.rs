//! Merging of many pieces at once, side by side.
//!
//! Which pair is looked up next depends on what the last look-up found, so that a piece on its own
//! waits for memory again and again. Here each piece has a lane of a block, whose rows hold the
//! first part of each piece, then the second, and so on. In each step every piece merges its two
//! parts of the lowest rank, all the pairs that this makes are looked up together, and vector
//! instructions move the parts up and find the next lowest ranks.

use std::hint::select_unpredictable;

use crate::split::Piece;
use crate::tier::{Kind, Tier};
use crate::vocabulary::{NONE, Neighbours, Pairs, Sought, Vocabulary, three_byte_char};

/// How many pieces share a block: as many as ranks fit into the widest vectors.
const LANES: usize = 16;
/// How many blocks are under way at once.
const BLOCKS: usize = 4;
/// Pieces have less bytes than a block has rows.
const ROWS: usize = 32;
/// Below the ranks in a block there is room for the number of a row.
const ROW_BITS: u32 = ROWS.trailing_zeros();
/// Where two parts do not merge.
const NOTHING: u32 = NONE << ROW_BITS;
/// How many pairs are looked up together at most.
const WANTED: usize = 512;

/// Pieces of up to this many bytes are merged here.
pub(crate) const TOGETHER_LIMIT: usize = ROWS - 1;

/// Room to merge pieces.
#[derive(Debug)]
pub(crate) struct Together {
    tier: Tier,
    /// None before it is first needed.
    room: Option<Box<Room>>,
}

#[derive(Debug)]
struct Room {
    blocks: [Block; BLOCKS],
    list: List,
}

/// One value for each lane.
type Row = [u32; LANES];

/// Pieces side by side.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Block {
    parts: [Row; ROWS],
    /// The rank of what each part and the one behind it merge into, above [`ROW_BITS`] zeros.
    ranks: [Row; ROWS],
    /// The lowest of `ranks`, each with the number of its row.
    lowest: Row,
    /// The rows of the parts that have merged with the one behind it, which is still there.
    merged: Row,
    /// How many parts there are.
    counts: Row,
    /// No piece has more parts.
    height: usize,
    /// One bit for each lane with a piece that still merges.
    active: u32,
}

/// A pair that is looked up, and where its rank belongs.
#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    sought: Sought,
    block: u16,
    row: u8,
    lane: u8,
}

/// Pairs that are looked up together.
#[derive(Debug)]
struct List {
    wanted: [Wanted; WANTED],
    count: usize,
}

impl Default for Together {
    fn default() -> Self {
        Self { tier: Tier::from_environment(), room: None }
    }
}

impl Together {
    /// Tells `done` the ids of each of `pieces` of `text`, each of 1 to [`TOGETHER_LIMIT`] bytes,
    /// with what came beside it, in any order. Leaves out pieces that hold a byte that is no
    /// token. For ordered vocabularies only.
    pub(crate) fn merge<T: Copy>(
        &mut self,
        vocabulary: &Vocabulary,
        text: &[u8],
        pieces: &[(Piece, T)],
        mut done: impl FnMut(Piece, T, &[u32]),
    ) {
        let pairs = vocabulary.pairs();
        let Room { blocks, list } = &mut **self.room.get_or_insert_with(Room::new);
        for pieces in pieces.chunks(LANES * BLOCKS) {
            let blocks = &mut blocks[..pieces.len().div_ceil(LANES)];
            for (piece, _) in pieces {
                pairs.approach_bytes(&text[piece.start..piece.end]);
            }
            for (index, pieces) in pieces.chunks(LANES).enumerate() {
                blocks[index].clear(pieces.iter().map(|(piece, _)| piece.end - piece.start));
                for (lane, (piece, _)) in pieces.iter().enumerate() {
                    if list.count > WANTED - ROWS {
                        list.find(pairs, blocks);
                    }
                    let piece = &text[piece.start..piece.end];
                    blocks[index].start(pairs, piece, index, lane, list);
                }
            }
            loop {
                list.find(pairs, blocks);
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
                    block.merge_lowest(index, list);
                }
            }
        }
    }
}

impl Room {
    fn new() -> Box<Self> {
        let block = Block {
            parts: [[NONE; LANES]; ROWS],
            ranks: [[NOTHING; LANES]; ROWS],
            lowest: [NOTHING; LANES],
            merged: [0; LANES],
            counts: [0; LANES],
            height: 0,
            active: 0,
        };
        let list = List { wanted: [Wanted::default(); WANTED], count: 0 };
        Box::new(Self { blocks: [block; BLOCKS], list })
    }
}

impl List {
    /// Adds the pair if it is wanted. That is not branched on: it cannot be predicted.
    #[inline(always)]
    fn add_if(&mut self, is_wanted: bool, left: u32, right: u32, [block, row, lane]: [usize; 3]) {
        self.wanted[self.count % WANTED] = Wanted {
            sought: Sought::new(left, right),
            block: block as u16,
            row: row as u8,
            lane: lane as u8,
        };
        self.count += usize::from(is_wanted);
    }

    /// Looks up all pairs, and tells the blocks.
    #[inline(never)]
    fn find(&mut self, pairs: &Pairs, blocks: &mut [Block]) {
        let wanted = &mut self.wanted[..self.count];
        self.count = 0;
        for Wanted { sought, .. } in &mut *wanted {
            pairs.approach(sought);
        }
        for Wanted { sought, .. } in &mut *wanted {
            pairs.approach_slot(sought);
        }
        for &mut Wanted { sought, block, row, lane } in wanted {
            let rank = pairs.found(sought) << ROW_BITS;
            blocks[usize::from(block)].ranks[usize::from(row) % ROWS][usize::from(lane) % LANES] =
                rank;
        }
    }
}

impl Block {
    /// Makes room for pieces of these lengths.
    fn clear(&mut self, lengths: impl ExactSizeIterator<Item = usize>) {
        self.active = ((1u64 << lengths.len()) - 1) as u32;
        self.height = 0;
        self.merged = [ROWS as u32; LANES];
        self.ranks[..=lengths.max().unwrap_or(0)].fill([NOTHING; LANES]);
    }

    /// Starts with single bytes, but for what is certain to merge with each other: characters of
    /// three bytes that are complete before anything else can take a part of them, and pairs of
    /// bytes.
    ///
    /// Two neighbouring bytes are certain to when their merge ranks before every merge that could
    /// take the first from the left, or the second from the right: both are still single bytes when
    /// the turn of their rank comes. To do it at once changes nothing, since whatever merges with
    /// the result ranks after it.
    #[inline(never)]
    fn start(&mut self, pairs: &Pairs, piece: &[u8], block: usize, lane: usize, list: &mut List) {
        let lane = lane % LANES;
        let next_to = |position: usize| match piece.get(position..position + 2) {
            Some(pair) => pairs.neighbours(pair[0], pair[1]),
            None => &Neighbours::NONE,
        };
        let mut count = 0;
        let mut position = 0;
        let mut before = &Neighbours::NONE;
        let mut here = next_to(0);
        let mut last = NONE;
        // Whether the last part is more than one byte, so that what it merges into is looked up.
        let mut is_long = false;
        // Whether the byte at `position` belongs to the last part.
        let mut is_inside = false;
        while position < piece.len() {
            let byte = piece[position];
            if byte & 0xf0 == 0xe0
                && !is_inside
                && let Some(code_point) = three_byte_char(&piece[position..])
                && let character = pairs.character(code_point)
                && character != NONE
            {
                let row = usize::wrapping_sub(count, 1);
                list.add_if(count > 0, last, character, [block, row, lane]);
                self.parts[count % ROWS][lane] = character;
                (last, is_long) = (character, true);
                count += 1;
                position += 3;
                (before, here) = (next_to(position - 1), next_to(position));
                continue;
            }
            let next = next_to(position + 1);
            let is_pair = (here.rank < before.taken_left) & (here.rank < next.taken_right);
            let part = select_unpredictable(is_pair, here.rank, pairs.byte(byte));
            let is_wanted = !is_inside & (is_long | is_pair) & (count > 0);
            list.add_if(is_wanted, last, part, [block, usize::wrapping_sub(count, 1), lane]);
            // Inside a part, the next one overwrites what is written here.
            self.parts[count % ROWS][lane] = part;
            self.ranks[count % ROWS][lane] = here.rank << ROW_BITS;
            last = select_unpredictable(is_inside, last, part);
            is_long = select_unpredictable(is_inside, is_long, is_pair);
            count += usize::from(!is_inside);
            is_inside = is_pair;
            (before, here) = (here, next);
            position += 1;
        }
        // Nothing is behind the last part.
        self.ranks[(count - 1) % ROWS][lane] = NOTHING;
        self.ranks[count % ROWS][lane] = NOTHING;
        self.counts[lane] = count as u32;
        self.height = self.height.max(count);
    }

    /// Merges the lowest two parts of each piece, and asks for the ranks of the pairs that the
    /// result is in.
    #[inline(never)]
    fn merge_lowest(&mut self, block: usize, list: &mut List) {
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
            list.add_if(row > 0, left, part, [block, before, lane]);
            // Behind it the second of the two is still there.
            let right = self.parts[(row + 2) % ROWS][lane];
            list.add_if(row + 1 < count, part, right, [block, row + 1, lane]);
        }
    }

    /// Moves what is behind the merged parts up by a row, and finds the lowest ranks.
    #[inline(always)]
    fn advance(&mut self, tier: Tier) {
        match tier.kind() {
            // SAFETY: the processor has what the kind of a tier asks for.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { self.advance_avx512() },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { self.advance_avx2() },
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

    /// [`Block::advance`], to be compiled for vectors of any width.
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

    /// Tells `done` the parts of the pieces that merge no further.
    #[inline(always)]
    fn finish(&mut self, mut done: impl FnMut(usize, &mut [u32])) {
        let ended = (0..LANES).fold(0, |ended, lane| {
            ended | u32::from(self.lowest[lane] >= NOTHING) << lane
        });
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

/// The lanes whose bits are set.
fn bits(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}

/// `condition ? yes : no`, for loops that become vector instructions: by branches or
/// conditional moves they would become a gather.
#[inline(always)]
fn choose(condition: bool, yes: u32, no: u32) -> u32 {
    let mask = u32::from(condition).wrapping_neg();
    no ^ (no ^ yes) & mask
}
