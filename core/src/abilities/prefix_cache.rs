//! Encodes shared prefixes of prompts once: a tree of text blocks with their ids.
//!
//! A prompt is cut into blocks at positions where its ids can also be cut. The end of a block
//! depends on nothing before the block, and its ids depend only on its contents. A path from the
//! root is therefore a prefix of prompts, and prompts with a common prefix share its path. Blocks
//! are found by a hash and compared in full.
//!
//! Blocks are parts of normalized text whose special tokens are known. They end at safe cuts, and
//! after special tokens. The blocks also form a list, the most recently used first, with parents
//! before their children. Memory is bounded by dropping the last blocks.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use crate::Pipeline;
use crate::abilities::conversation::normalize_runs;
use crate::error::Result;
use crate::fixed::Fixed;
use crate::hash::{fold, hash_bytes, random_seeds};
use crate::memory::reserve;
use crate::normalize::Normalization;
use crate::pipeline::segments::Prompt;
use crate::request::Request;

/// Minimum number of bytes of a block that ends inside text.
const SPACING: usize = 1024;

/// Minimum size in bytes of a block that ends after a special token. A given id counts as 4 bytes.
const LEAST: usize = 256;

/// Text at the end of a prompt with at most this many bytes is encoded again each time.
const LONG_TAIL: usize = 4 * SPACING;

/// Placeholder index for no block, at both ends of the list.
const NONE: u32 = u32::MAX;

/// Parent of the blocks that begin prompts.
const ROOT: u32 = u32::MAX - 1;

/// A prompt that is cut into blocks.
#[derive(Debug)]
pub struct Plan<'a> {
    text: Cow<'a, str>,
    fixed: Vec<Fixed>,
    blocks: Vec<Block>,
}

/// A block of a plan.
#[derive(Debug)]
struct Block {
    text: Range<usize>,
    /// The special tokens and given ids inside the block.
    fixed: Range<usize>,
    /// False for a block that the cache does not keep.
    is_kept: bool,
    hash: u64,
}

/// The cached part of a plan.
#[derive(Debug)]
pub struct Known {
    /// The ids of the cached part.
    pub ids: Vec<u32>,
    /// The number of cached blocks.
    blocks: usize,
    /// The last cached block, and its serial number.
    last: Option<(u32, u64)>,
}

/// A plan after its unknown blocks were encoded.
#[derive(Debug)]
pub struct Encoded {
    /// All ids of the prompt.
    pub ids: Vec<u32>,
    /// The end of each new block, as an index into `ids`.
    ends: Vec<usize>,
    /// The number of cached ids.
    known_ids: usize,
    known: Known,
}

/// Counts since the cache was created.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stats {
    /// Number of prompts.
    pub prompts: u64,
    /// Number of ids in all prompts.
    pub ids: u64,
    /// Number of ids that came from the cache.
    pub reused: u64,
    /// Number of dropped blocks.
    pub evicted: u64,
}

/// A bounded tree of blocks.
#[derive(Debug)]
pub struct PrefixCache {
    nodes: Vec<Node>,
    free: Vec<u32>,
    /// Blocks by parent and hash.
    children: HashMap<(u32, u64), u32>,
    seeds: [u64; 2],
    first: u32,
    last: u32,
    memory: usize,
    max_memory: usize,
    serial: u64,
    stats: Stats,
}

/// A block in the tree. A free block has the serial number 0.
#[derive(Debug, Default)]
struct Node {
    text: Box<str>,
    fixed: Box<[Fixed]>,
    ids: Box<[u32]>,
    key: (u32, u64),
    serial: u64,
    /// The neighbors in the list.
    before: u32,
    after: u32,
}

impl<'a> Plan<'a> {
    /// Plans a text, in which `request` allows special tokens, as a
    /// [`Conversation`](crate::abilities::conversation::Conversation) reads it.
    pub fn of_text(
        pipeline: &Pipeline,
        text: &'a str,
        request: &Request,
        seeds: [u64; 2],
    ) -> Result<Self> {
        let text = pipeline.normalization().apply(text)?;
        request.check(pipeline.special_tokens()?, &text)?;
        let (_, fixed) = pipeline.find_in_text(&text, &request.allowed, 0, &[])?;
        Ok(Self::new(pipeline, text, fixed, seeds))
    }

    /// Plans a prompt. The ids of its text must depend on its text alone
    /// ([`Pipeline::ignores_segments`]).
    pub fn of_prompt(pipeline: &Pipeline, prompt: Prompt, seeds: [u64; 2]) -> Result<Self> {
        let (text, fixed) = prompt.into_parts();
        let (text, fixed) = match pipeline.normalization() {
            Normalization::None => (text, fixed),
            normalization => normalize_runs(normalization, &text, fixed)?,
        };
        Ok(Self::new(pipeline, text.into(), fixed, seeds))
    }

    fn new(
        pipeline: &Pipeline,
        text: Cow<'a, str>,
        fixed: Vec<Fixed>,
        seeds: [u64; 2],
    ) -> Plan<'a> {
        let mut blocks = Vec::new();
        let (mut position, mut index) = (0, 0);
        while position < text.len() || index < fixed.len() {
            let block = next_block(pipeline, &text, &fixed, position, index, seeds);
            (position, index) = (block.text.end, block.fixed.end);
            blocks.push(block);
        }
        Self { text, fixed, blocks }
    }

    /// Returns the number of bytes of text that are not cached.
    pub fn new_size(&self, known: &Known) -> usize {
        self.blocks.get(known.blocks).map_or(0, |block| self.text.len() - block.text.start)
    }

    /// Encodes the unknown blocks.
    pub fn encode(&self, pipeline: &Pipeline, mut known: Known) -> Result<Encoded> {
        let mut ids = std::mem::take(&mut known.ids);
        let known_ids = ids.len();
        let mut ends = Vec::new();
        for block in &self.blocks[known.blocks..] {
            let mut position = block.text.start;
            let mut is_first = position == 0 && block.fixed.start == 0;
            for fixed in &self.fixed[block.fixed.clone()] {
                if position < fixed.start {
                    pipeline.encode_run(&self.text[position..fixed.start], is_first, &mut ids)?;
                }
                ids.extend_from_slice(fixed.ids.as_slice());
                (position, is_first) = (fixed.end, false);
            }
            if position < block.text.end {
                pipeline.encode_run(&self.text[position..block.text.end], is_first, &mut ids)?;
            }
            ends.push(ids.len());
        }
        Ok(Encoded { ids, ends, known_ids, known })
    }

    /// Returns the text of a block, and its fixed positions.
    fn contents(&self, block: &Block) -> (&str, &[Fixed]) {
        (&self.text[block.text.clone()], &self.fixed[block.fixed.clone()])
    }
}

/// Returns the block that begins at byte `start`, before the fixed position `first`.
fn next_block(
    pipeline: &Pipeline,
    text: &str,
    fixed: &[Fixed],
    start: usize,
    first: usize,
    seeds: [u64; 2],
) -> Block {
    let (end, index, is_closed) = block_end(pipeline, text, fixed, start, first);
    let block = &text[start..end];
    let mut hash = hash_bytes(block.as_bytes(), seeds);
    for fixed in &fixed[first..index] {
        let ids = hash_bytes(bytemuck::cast_slice(fixed.ids.as_slice()), seeds);
        hash = fold(hash ^ seeds[0], ids ^ fixed.start.wrapping_sub(start) as u64);
    }
    let is_kept = is_closed || block.len() > LONG_TAIL;
    Block { text: start..end, fixed: first..index, is_kept, hash }
}

/// Returns the end of the block at byte `start`: a byte offset, the number of fixed positions
/// before it, and false if the block ends only because the text does.
fn block_end(
    pipeline: &Pipeline,
    text: &str,
    fixed: &[Fixed],
    start: usize,
    first: usize,
) -> (usize, usize, bool) {
    let near = start + SPACING;
    let (mut position, mut index, mut given) = (start, first, 0);
    loop {
        let next = fixed.get(index);
        let end = next.map_or(text.len(), |fixed| fixed.start);
        if end > near.max(position)
            && let Some(cut) =
                pipeline.safe_cut(&text[position..end], near.saturating_sub(position))
        {
            return (position + cut, index, true);
        }
        let Some(next) = next else { return (text.len(), index, false) };
        position = next.end;
        index += 1;
        given += size_of_val(next.ids.as_slice());
        // A special token that includes the spaces around it may reach the next special token.
        let covers = fixed.get(index).is_some_and(|after| after.start < position);
        if !covers && position - start + given >= LEAST {
            return (position, index, true);
        }
    }
}

impl PrefixCache {
    /// Creates a cache that takes at most `max_memory` bytes.
    pub fn new(max_memory: usize) -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            children: HashMap::new(),
            seeds: random_seeds(),
            first: NONE,
            last: NONE,
            memory: 0,
            max_memory,
            serial: 0,
            stats: Stats::default(),
        }
    }

    /// Returns the seeds of the hashes, for plans.
    pub fn seeds(&self) -> [u64; 2] {
        self.seeds
    }

    /// Returns the memory in use, in bytes.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Returns the number of blocks.
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// Returns true if no block is in the cache.
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// Returns the counts.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Counts a prompt that was encoded without the cache.
    pub fn count_other(&mut self, ids: usize) {
        self.stats.prompts += 1;
        self.stats.ids += ids as u64;
    }

    /// Drops all blocks.
    pub fn clear(&mut self) {
        let Self { max_memory, seeds, serial, stats, .. } = *self;
        *self = Self { seeds, serial, stats, ..Self::new(max_memory) };
    }

    /// Finds the longest cached prefix of a prompt.
    pub fn find(&mut self, plan: &Plan<'_>) -> Result<Known> {
        let mut path = Vec::new();
        let mut count = 0;
        for block in plan.blocks.iter().take_while(|block| block.is_kept) {
            let parent = path.last().copied().unwrap_or(ROOT);
            let Some(node) = self.child(parent, block.hash) else { break };
            if !self.nodes[node as usize].has(plan, block) {
                break;
            }
            count += self.nodes[node as usize].ids.len();
            path.push(node);
        }
        let mut ids = Vec::new();
        reserve(&mut ids, count)?;
        for &node in &path {
            ids.extend_from_slice(&self.nodes[node as usize].ids);
        }
        for &node in path.iter().rev() {
            self.unlink(node);
            self.link_after(NONE, node);
        }
        let last = path.last().map(|&node| (node, self.nodes[node as usize].serial));
        Ok(Known { ids, blocks: path.len(), last })
    }

    /// Adds the blocks of a prompt that [`PrefixCache::find`] did not find, if memory allows.
    pub fn insert(&mut self, plan: &Plan<'_>, encoded: &Encoded) {
        self.stats.prompts += 1;
        self.stats.ids += encoded.ids.len() as u64;
        let mut start = encoded.known_ids;
        self.stats.reused += start as u64;
        let mut parent = match encoded.known.last {
            None => ROOT,
            Some((last, serial))
                if self.nodes.get(last as usize).is_some_and(|node| node.serial == serial) =>
            {
                last
            }
            // The parent block was dropped in the meantime.
            Some(_) => return,
        };
        for (block, &end) in plan.blocks[encoded.known.blocks..].iter().zip(&encoded.ends) {
            if !block.is_kept {
                break;
            }
            match self.child(parent, block.hash) {
                Some(node) if self.nodes[node as usize].has(plan, block) => parent = node,
                Some(_) => break,
                None => match self.add(parent, plan, block, &encoded.ids[start..end]) {
                    Some(node) => parent = node,
                    None => break,
                },
            }
            start = end;
        }
    }

    fn child(&self, parent: u32, hash: u64) -> Option<u32> {
        self.children.get(&(parent, hash)).copied()
    }

    /// Adds a block, unless that would drop its parent.
    fn add(&mut self, parent: u32, plan: &Plan<'_>, block: &Block, ids: &[u32]) -> Option<u32> {
        let (text, fixed) = plan.contents(block);
        let size = memory_of(text, fixed, ids);
        while self.memory.saturating_add(size) > self.max_memory {
            if self.last == NONE || self.last == parent {
                return None;
            }
            self.evict();
        }
        let key = (parent, block.hash);
        self.serial += 1;
        let node = Node {
            text: text.into(),
            fixed: fixed.iter().map(|fixed| fixed.moved_back(block.text.start)).collect(),
            ids: ids.into(),
            key,
            serial: self.serial,
            before: NONE,
            after: NONE,
        };
        let index = if let Some(index) = self.free.pop() {
            self.nodes[index as usize] = node;
            index
        } else {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        };
        self.children.insert(key, index);
        self.link_after(if parent == ROOT { NONE } else { parent }, index);
        self.memory += size;
        Some(index)
    }

    /// Drops the least recently used block: the last one in the list, which has no children.
    fn evict(&mut self) {
        let last = self.last;
        self.unlink(last);
        let node = std::mem::take(&mut self.nodes[last as usize]);
        self.children.remove(&node.key);
        self.free.push(last);
        self.memory -= memory_of(&node.text, &node.fixed, &node.ids);
        self.stats.evicted += 1;
    }

    fn unlink(&mut self, index: u32) {
        let Node { before, after, .. } = self.nodes[index as usize];
        match before {
            NONE => self.first = after,
            before => self.nodes[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.nodes[after as usize].before = before,
        }
    }

    /// Puts a block into the list: after another block, or first.
    fn link_after(&mut self, before: u32, index: u32) {
        let after = match before {
            NONE => std::mem::replace(&mut self.first, index),
            before => std::mem::replace(&mut self.nodes[before as usize].after, index),
        };
        match after {
            NONE => self.last = index,
            after => self.nodes[after as usize].before = index,
        }
        let node = &mut self.nodes[index as usize];
        (node.before, node.after) = (before, after);
    }
}

impl Node {
    /// Returns true if the block has these contents.
    fn has(&self, plan: &Plan<'_>, block: &Block) -> bool {
        let (text, fixed) = plan.contents(block);
        let is_same = |(own, other): (&Fixed, &Fixed)| {
            own.start + block.text.start == other.start
                && own.end + block.text.start == other.end
                && own.ids.as_slice() == other.ids.as_slice()
        };
        *self.text == *text
            && self.fixed.len() == fixed.len()
            && self.fixed.iter().zip(fixed).all(is_same)
    }
}

/// Returns the memory of a block in bytes: its contents, its element in the vector, which may be
/// half full, and its entry in the table.
fn memory_of(text: &str, fixed: &[Fixed], ids: &[u32]) -> usize {
    const OVERHEAD: usize = 2 * size_of::<Node>() + 96;
    let given: usize = fixed.iter().map(|fixed| size_of_val(fixed.ids.as_slice())).sum();
    OVERHEAD + text.len() + size_of_val(fixed) + given + size_of_val(ids)
}
