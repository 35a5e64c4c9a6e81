//! The tokens as a trie over their bytes, for finding the longest token that a text starts with.
//!
//! Laid out as a double array: the children of a unit lie in the block of 256 units that its
//! base points into, at base XOR byte. Every base belongs to one unit only, so that the byte
//! alone tells whether a unit is the child that was asked for.
//!
//! Source: Aoe, "An efficient digital search algorithm by using a double-array structure",
//! IEEE Transactions on Software Engineering 15 (9), 1989.

use super::tokens::Tokens;
use super::{NONE, RANK_BITS, Section};

/// Base (high bits), label (9 bits) and rank + 1 of the token that ends here (0: none).
type Unit = u64;

const LABEL_SHIFT: u32 = RANK_BITS + 1;
const BASE_SHIFT: u32 = LABEL_SHIFT + 9;
const LABEL_MASK: u64 = 0x1ff;
const RANK_MASK: u64 = (1 << LABEL_SHIFT) - 1;
/// No byte is this label.
const NO_LABEL: u64 = 0x1ff;
/// The first block stays empty: units without children point at it.
const NOWHERE: usize = 0;
const ROOT_BASE: usize = 256;
/// A trie with more units is not built: the vocabulary is merged without it.
const MAX_UNITS: usize = 1 << 26;

/// The reachable tokens of a vocabulary, by their bytes.
#[derive(Debug, Clone)]
pub(crate) struct Trie {
    pub(super) units: Section<Unit>,
    /// By rank: the longest other token that the token starts with, or [`NONE`].
    pub(super) shorter: Section<u32>,
}

impl Trie {
    /// `None` when the tokens need too many units.
    pub(super) fn build(tokens: &Tokens) -> Option<Self> {
        let mut ranks: Vec<u32> =
            (0..tokens.len() as u32).filter(|&rank| tokens.is_reachable(rank)).collect();
        ranks.sort_unstable_by_key(|&rank| tokens.bytes(rank));
        let units = Builder::new().build(tokens, &ranks)?;
        let mut trie = Self { units: units.into(), shorter: vec![].into() };
        let mut shorter = vec![NONE; tokens.len()];
        for &rank in &ranks {
            let bytes = tokens.bytes(rank);
            shorter[rank as usize] = trie.longest(&bytes[..bytes.len() - 1]);
        }
        trie.shorter = shorter.into();
        Some(trie)
    }

    /// The longest reachable token that `text` starts with, or [`NONE`].
    #[inline(always)]
    pub(crate) fn longest(&self, text: &[u8]) -> u32 {
        let mut longest = 0;
        let mut base = ROOT_BASE;
        for &byte in text {
            let Some(&unit) = self.units.get(base ^ usize::from(byte)) else { break };
            if unit >> LABEL_SHIFT & LABEL_MASK != u64::from(byte) {
                break;
            }
            let rank = unit & RANK_MASK;
            if rank != 0 {
                longest = rank;
            }
            base = (unit >> BASE_SHIFT) as usize;
        }
        (longest as u32).wrapping_sub(1)
    }

    /// The longest token that the token with this rank starts with, itself apart; or [`NONE`].
    #[inline(always)]
    pub(crate) fn shorter(&self, rank: u32) -> u32 {
        self.shorter[rank as usize]
    }
}

/// Units under construction.
struct Builder {
    units: Vec<Unit>,
    base_taken: Vec<bool>,
    /// Every block before this one is full, or nearly.
    first_block: usize,
}

impl Builder {
    fn new() -> Self {
        let mut builder = Self { units: vec![], base_taken: vec![], first_block: 1 };
        builder.grow();
        builder.grow();
        builder.base_taken[ROOT_BASE] = true;
        builder
    }

    fn grow(&mut self) {
        self.units.resize(self.units.len() + 256, NO_LABEL << LABEL_SHIFT);
        self.base_taken.resize(self.units.len(), false);
    }

    fn is_free(&self, unit: usize) -> bool {
        self.units[unit] >> LABEL_SHIFT & LABEL_MASK == NO_LABEL
    }

    /// `ranks` are sorted by their bytes.
    fn build(mut self, tokens: &Tokens, ranks: &[u32]) -> Option<Vec<Unit>> {
        self.reserve(ROOT_BASE, &labels(tokens, ranks, 0));
        // Each entry: tokens that share their first `depth` bytes, and the base of their node.
        let mut work = vec![(ranks, 0usize, ROOT_BASE)];
        while let Some((ranks, depth, base)) = work.pop() {
            let label = |rank: &u32| tokens.bytes(*rank)[depth];
            let groups: Vec<&[u32]> = ranks.chunk_by(|a, b| label(a) == label(b)).collect();
            for group in groups {
                let byte = label(&group[0]);
                let ends = tokens.bytes(group[0]).len() == depth + 1;
                let rank = if ends { u64::from(group[0]) + 1 } else { 0 };
                let rest = if ends { &group[1..] } else { group };
                let mut child_base = NOWHERE;
                let unit = base ^ usize::from(byte);
                if !rest.is_empty() {
                    let labels = labels(tokens, rest, depth + 1);
                    child_base = self.room(&labels)?;
                    self.reserve(child_base, &labels);
                    work.push((rest, depth + 1, child_base));
                }
                self.units[unit] =
                    (child_base as u64) << BASE_SHIFT | u64::from(byte) << LABEL_SHIFT | rank;
            }
        }
        Some(self.units)
    }

    /// Takes the units of children whose turn comes later.
    fn reserve(&mut self, base: usize, labels: &[u8]) {
        for &label in labels {
            self.units[base ^ usize::from(label)] = u64::from(label) << LABEL_SHIFT;
        }
    }

    /// A base that nobody has, with free units for all labels.
    fn room(&mut self, labels: &[u8]) -> Option<usize> {
        let mut block = self.first_block;
        loop {
            if block * 256 == self.units.len() {
                if self.units.len() >= MAX_UNITS {
                    return None;
                }
                self.grow();
            }
            let base = (block * 256..block * 256 + 256).find(|&base| {
                !self.base_taken[base]
                    && labels.iter().all(|&label| self.is_free(base ^ usize::from(label)))
            });
            if let Some(base) = base {
                self.base_taken[base] = true;
                return Some(base);
            }
            if labels.len() == 1 && block == self.first_block {
                self.first_block += 1;
            }
            block += 1;
        }
    }
}

/// The bytes that stand at `depth` in sorted tokens, all of them longer than that.
fn labels(tokens: &Tokens, ranks: &[u32], depth: usize) -> Vec<u8> {
    let mut labels: Vec<u8> = ranks.iter().map(|&rank| tokens.bytes(rank)[depth]).collect();
    labels.dedup();
    labels
}
