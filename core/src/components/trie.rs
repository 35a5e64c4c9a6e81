//! A trie of tokens as a double array: finds all tokens that are prefixes of a text, byte by byte.

use crate::memory::{ask_for, push};
use crate::polling::poll;

use crate::error::{Error, Result};

pub(crate) type Node = u32;

/// Value of a node that ends no token.
const NONE: u32 = u32::MAX;
/// Parent of a free slot.
const FREE: u32 = u32::MAX;
/// Parent of the root.
const NOBODY: u32 = u32::MAX - 1;
/// Base of a node without children, beyond all slots.
const LEAF: u32 = u32::MAX;
/// Number of slots allocated together: the children of a node are in one block.
const BLOCK: usize = 256;
/// Number of free slots tried for the children of a node before a new block is allocated.
const TRIES: usize = 32;

/// Slot of a node.
#[derive(Debug, Clone, Copy)]
struct Slot {
    base: u32,
    /// Value of the token that ends at this node.
    value: u32,
}

/// Maps tokens to numbers.
///
/// The child of a node for a byte is at `base ^ byte`, if the label there is this byte. No two
/// nodes with children share a base, so the label identifies the parent. The label of a free slot
/// is a byte that leads to the slot from no base.
#[derive(Debug)]
pub(crate) struct Trie {
    labels: Vec<u8>,
    places: Vec<Slot>,
    /// Whether a token contains each byte.
    contained: [bool; 256],
}

type Entry<'a> = (&'a str, u32);

/// Tokens that begin with the bytes of a node.
struct Branch {
    node: Node,
    /// Index of the first token in the sorted list.
    start: usize,
    end: usize,
    depth: usize,
}

impl Trie {
    pub(crate) const ROOT: Node = 0;

    /// Creates a trie of tokens and their numbers. The last number of a repeated token wins.
    pub(crate) fn new<'a>(tokens: impl Iterator<Item = Entry<'a>>) -> Result<Self> {
        let mut order = Vec::new();
        for token in tokens {
            push(&mut order, token)?;
        }
        // A stable sort allocates at most the size of the list.
        ask_for(size_of_val(&*order))?;
        order.sort_by_key(|&(token, _)| token);
        let mut builder = Builder::default();
        builder.grow()?;
        builder.take(0, NOBODY);
        let mut branches = vec![Branch { node: Self::ROOT, start: 0, end: order.len(), depth: 0 }];
        let mut children = Vec::new();
        while let Some(branch) = branches.pop() {
            let start = builder.end_tokens(&branch, &order);
            let rest = &order[start..branch.end];
            children.clear();
            each_child(rest, branch.depth, |byte, len| {
                children.push((byte, len));
                Ok(())
            })?;
            builder.place(branch.node, &children)?;
            let (base, mut start) = (builder.places[branch.node as usize].base, start);
            for &(byte, len) in &children {
                let (node, end) = (base ^ u32::from(byte), start + len);
                branches.push(Branch { node, start, end, depth: branch.depth + 1 });
                start = end;
            }
        }
        Ok(builder.finish())
    }

    /// Returns the child for this byte.
    #[inline(always)]
    fn child(&self, base: u32, byte: u8) -> Option<(Node, Slot)> {
        let child = base ^ u32::from(byte);
        match self.labels.get(child as usize) {
            Some(&label) if label == byte => Some((child, *self.places.get(child as usize)?)),
            _ => None,
        }
    }

    /// Whether a token contains this byte.
    #[inline(always)]
    pub(crate) fn contains(&self, byte: u8) -> bool {
        self.contained[usize::from(byte)]
    }

    /// Returns the node that these bytes lead to from `node`.
    pub(crate) fn walk(&self, node: Node, text: &[u8]) -> Option<Node> {
        let next =
            |node: Node, &byte: &u8| Some(self.child(self.places[node as usize].base, byte)?.0);
        text.iter().try_fold(node, next)
    }

    pub(crate) fn find(&self, token: &str) -> Option<u32> {
        let value = self.places[self.walk(Self::ROOT, token.as_bytes())? as usize].value;
        (value != NONE).then_some(value)
    }

    /// Calls `found` with the number and the length of each nonempty token after `node` that is a
    /// prefix of `text`, shortest first.
    #[inline(always)]
    pub(crate) fn each_prefix(&self, node: Node, text: &[u8], mut found: impl FnMut(u32, usize)) {
        let mut base = self.places[node as usize].base;
        for (at, &byte) in text.iter().enumerate() {
            let Some((_, place)) = self.child(base, byte) else { break };
            base = place.base;
            if place.value != NONE {
                found(place.value, at + 1);
            }
        }
    }
}

/// Calls `found` with each byte at `depth` of sorted tokens, and the number of tokens with the
/// byte.
fn each_child(
    order: &[Entry<'_>],
    depth: usize,
    mut found: impl FnMut(u8, usize) -> Result<()>,
) -> Result<()> {
    let byte = |(token, _): &Entry<'_>| token.as_bytes()[depth];
    let mut parts = order.chunk_by(|a, b| byte(a) == byte(b));
    parts.try_for_each(|part| found(byte(&part[0]), part.len()))
}

#[derive(Default)]
struct Builder {
    places: Vec<Slot>,
    /// Parent of the node at each slot.
    parents: Vec<Node>,
    /// Whether each slot is the base of a node with children.
    bases: Vec<bool>,
    /// For each slot and the end of all slots: the slot itself if free, otherwise a later slot
    /// without a free slot in between.
    nexts: Vec<u32>,
    /// Free slots before this slot are no longer used.
    first: usize,
}

impl Builder {
    fn grow(&mut self) -> Result<()> {
        poll(BLOCK)?;
        let length = self.places.len() + BLOCK;
        if length > LEAF as usize - BLOCK {
            return Err(Error::Invalid("model.vocab: the tokens are too long together".into()));
        }
        self.places.reserve(BLOCK);
        self.parents.reserve(BLOCK);
        self.bases.reserve(BLOCK);
        self.nexts.reserve(BLOCK + 1);
        self.places.resize(length, Slot { base: LEAF, value: NONE });
        self.parents.resize(length, FREE);
        self.bases.resize(length, false);
        self.nexts.extend(self.nexts.len() as u32..=length as u32);
        Ok(())
    }

    fn is_free(&self, place: usize) -> bool {
        self.parents[place] == FREE
    }

    fn take(&mut self, place: usize, parent: Node) {
        self.parents[place] = parent;
        self.nexts[place] = place as u32 + 1;
    }

    /// Returns the first free slot at or after `place`, or the end of all slots.
    fn next_free(&mut self, mut place: usize) -> usize {
        while self.nexts[place] as usize != place {
            // Compresses the path, which shortens the next search.
            let next = self.nexts[self.nexts[place] as usize];
            self.nexts[place] = next;
            place = next as usize;
        }
        place
    }

    /// Sets the value of a node from the first tokens of the branch, which end at the node. Returns
    /// the index of the next token.
    fn end_tokens(&mut self, branch: &Branch, order: &[Entry<'_>]) -> usize {
        let mut at = branch.start;
        while at < branch.end && order[at].0.len() == branch.depth {
            self.places[branch.node as usize].value = order[at].1;
            at += 1;
        }
        at
    }

    /// Allocates slots for the children of a node.
    fn place(&mut self, node: Node, children: &[(u8, usize)]) -> Result<()> {
        let Some(&(first, _)) = children.first() else { return Ok(()) };
        let base = match self.base(first, children) {
            Some(base) => base,
            None => {
                self.grow()?;
                self.places.len() - BLOCK
            }
        };
        self.places[node as usize].base = base as u32;
        self.bases[base] = true;
        for &(byte, _) in children {
            self.take(base ^ usize::from(byte), node);
        }
        Ok(())
    }

    /// Returns a base with free slots for all children: among the first free slots, otherwise in
    /// the last block. Gives up on the first free slot if no base fits.
    fn base(&mut self, first: u8, children: &[(u8, usize)]) -> Option<usize> {
        let base = self.base_from(self.first, first, children);
        if base.is_some() {
            return base;
        }
        let last = self.places.len() - BLOCK;
        self.first = last.min(self.next_free(self.first) + 1);
        self.base_from(last, first, children)
    }

    fn base_from(
        &mut self,
        mut place: usize,
        first: u8,
        children: &[(u8, usize)],
    ) -> Option<usize> {
        for _ in 0..TRIES {
            place = self.next_free(place);
            if place == self.places.len() {
                break;
            }
            let base = place ^ usize::from(first);
            let fits = |&(byte, _): &(u8, usize)| self.is_free(base ^ usize::from(byte));
            if !self.bases[base] && children.iter().all(fits) {
                return Some(base);
            }
            place += 1;
        }
        None
    }

    fn finish(self) -> Trie {
        let (mut labels, mut contained) = (Vec::with_capacity(self.parents.len()), [false; 256]);
        for (parents, bases) in self.parents.chunks(BLOCK).zip(self.bases.chunks(BLOCK)) {
            // Each base leads to a node in its block, so a block with a free slot has at least one
            // slot that is not a base.
            let other = bases.iter().position(|is_base| !is_base).unwrap_or_default();
            labels.extend(parents.iter().enumerate().map(|(place, &parent)| match parent {
                FREE | NOBODY => (place ^ other) as u8,
                parent => {
                    let byte = (place as u32 ^ self.places[parent as usize].base) as u8;
                    contained[usize::from(byte)] = true;
                    byte
                }
            }));
        }
        Trie { labels, places: self.places, contained }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_trie_of_many_tokens_stays_dense() {
        let mut tokens = Vec::new();
        let mut state = 1u64;
        for id in 0..30_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let text: String = (0..1 + (state >> 61))
                .map(|place| char::from_u32(97 + (state >> (8 * place) & 15) as u32).unwrap())
                .collect();
            tokens.push((text, id));
        }
        // Suffixes make long chains of few bytes.
        let others = tokens.iter().map(|(text, id)| (format!("{text}</w>"), *id));
        let tokens: Vec<_> = tokens.iter().cloned().chain(others).collect();
        let trie = Trie::new(tokens.iter().map(|(text, id)| (text.as_str(), *id))).unwrap();
        for (text, _) in &tokens {
            assert!(trie.find(text).is_some());
        }
        let nodes: HashSet<&str> =
            tokens.iter().flat_map(|(text, _)| (0..=text.len()).map(|end| &text[..end])).collect();
        assert!(trie.places.len() < 2 * nodes.len(), "{} {}", trie.places.len(), nodes.len());
    }
}
