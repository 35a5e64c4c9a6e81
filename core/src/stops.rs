//! Finds stop strings in text that arrives in parts.

use std::collections::VecDeque;

use crate::error::{Error, Result};
use crate::memory::push;

/// The most bytes that stop strings may have together.
pub const MOST_BYTES: usize = 1 << 16;

/// The state before any text.
pub const START: u32 = 0;

/// An automaton for stop strings (Aho and Corasick). A state is the longest end of the text that
/// begins a stop string.
#[derive(Debug)]
pub struct Stops {
    nodes: Vec<Node>,
    /// The length of each stop string.
    lengths: Vec<usize>,
    /// Whether a stop string begins with this byte; most bytes of a text need no more.
    begins: [bool; 256],
}

/// A beginning of a stop string. Children are a linked list.
#[derive(Debug, Clone, Copy)]
struct Node {
    byte: u8,
    /// The first child, and the next sibling; [`START`] ends a list.
    child: u32,
    sibling: u32,
    /// The longest other node that this one ends with.
    fallback: u32,
    depth: u32,
    /// The longest stop string that this node ends with.
    stop: Option<u32>,
}

impl Stops {
    /// Builds the automaton. `None` without stop strings.
    ///
    /// Fails with [`Error::StopString`] for an empty stop string, and for more than [`MOST_BYTES`]
    /// together.
    pub fn new(stops: &[impl AsRef<str>]) -> Result<Option<Self>> {
        let total: usize = stops.iter().map(|stop| stop.as_ref().len()).sum();
        if total > MOST_BYTES {
            return Err(Error::StopString(format!(
                "the stop strings have {total} bytes together; {MOST_BYTES} are possible"
            )));
        }
        let root = Node { byte: 0, child: 0, sibling: 0, fallback: 0, depth: 0, stop: None };
        let mut automaton = Self { nodes: vec![root], lengths: Vec::new(), begins: [false; 256] };
        for (index, stop) in (0..).zip(stops) {
            automaton.add(index, stop.as_ref())?;
        }
        automaton.link();
        Ok((!stops.is_empty()).then_some(automaton))
    }

    fn add(&mut self, index: u32, stop: &str) -> Result<()> {
        if stop.is_empty() {
            return Err(Error::StopString(format!(
                "stop string {index} is empty, so any text would end at once; leave it out"
            )));
        }
        self.begins[usize::from(stop.as_bytes()[0])] = true;
        let mut at = START;
        for &byte in stop.as_bytes() {
            at = match self.child(at, byte) {
                Some(child) => child,
                None => {
                    let parent = self.nodes[at as usize];
                    let depth = parent.depth + 1;
                    let sibling = parent.child;
                    let node = Node { byte, child: 0, sibling, fallback: 0, depth, stop: None };
                    let new = self.nodes.len() as u32;
                    push(&mut self.nodes, node)?;
                    self.nodes[at as usize].child = new;
                    new
                }
            };
        }
        // Of equal strings, the first one counts.
        self.nodes[at as usize].stop.get_or_insert(index);
        push(&mut self.lengths, stop.len())
    }

    fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let mut child = self.nodes[node as usize].child;
        while child != START {
            let node = &self.nodes[child as usize];
            if node.byte == byte {
                return Some(child);
            }
            child = node.sibling;
        }
        None
    }

    /// Sets the fallbacks, and the stop strings that a node inherits from its fallback.
    fn link(&mut self) {
        let mut queue = VecDeque::from([START]);
        while let Some(at) = queue.pop_front() {
            let mut child = self.nodes[at as usize].child;
            while child != START {
                let Node { byte, sibling, .. } = self.nodes[child as usize];
                if at != START {
                    let fallback = self.next(self.nodes[at as usize].fallback, byte);
                    self.nodes[child as usize].fallback = fallback;
                    if self.nodes[child as usize].stop.is_none() {
                        self.nodes[child as usize].stop = self.nodes[fallback as usize].stop;
                    }
                }
                queue.push_back(child);
                child = sibling;
            }
        }
    }

    /// Returns the state after one more byte.
    #[inline]
    pub fn next(&self, state: u32, byte: u8) -> u32 {
        let mut state = state;
        loop {
            if state == START && !self.begins[usize::from(byte)] {
                return START;
            }
            if let Some(child) = self.child(state, byte) {
                return child;
            }
            if state == START {
                return START;
            }
            state = self.nodes[state as usize].fallback;
        }
    }

    /// Returns true if a stop string may begin somewhere in these bytes.
    #[inline]
    pub fn may_begin_in(&self, bytes: &[u8]) -> bool {
        bytes.iter().any(|&byte| self.begins[usize::from(byte)])
    }

    /// Returns the number of bytes at the end of the text that may still become a stop string.
    #[inline]
    pub fn held(&self, state: u32) -> usize {
        self.nodes[state as usize].depth as usize
    }

    /// Returns the longest stop string that ends here: its index, and its length in bytes.
    #[inline]
    pub fn stop(&self, state: u32) -> Option<(usize, usize)> {
        let stop = self.nodes[state as usize].stop? as usize;
        Some((stop, self.lengths[stop]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::test_support::config(512))]

        #[test]
        fn states_are_the_longest_beginnings(
            stops in prop::collection::vec("[abé]{1,5}", 1..5),
            text in "[abcé]{0,24}",
        ) {
            let automaton = Stops::new(&stops).unwrap().unwrap();
            let mut state = START;
            for end in 1..=text.len() {
                state = automaton.next(state, text.as_bytes()[end - 1]);
                let ends_with = |part: &[u8]| text.as_bytes()[..end].ends_with(part);
                let beginnings = stops.iter().flat_map(|stop| {
                    (1..=stop.len()).map(move |length| &stop.as_bytes()[..length])
                });
                let held = beginnings.filter(|part| ends_with(part)).map(<[u8]>::len).max();
                prop_assert_eq!(automaton.held(state), held.unwrap_or(0));
                let whole = stops.iter().filter(|stop| ends_with(stop.as_bytes()));
                let longest = whole.max_by_key(|stop| stop.len());
                let first = longest.map(|stop| stops.iter().position(|other| other == stop).unwrap());
                prop_assert_eq!(
                    automaton.stop(state), first.map(|index| (index, stops[index].len()))
                );
            }
        }
    }

    #[test]
    fn empty_and_huge_stop_strings_are_refused() {
        assert!(Stops::new(&[""; 0]).unwrap().is_none());
        let reason = |stops: &[String]| Stops::new(stops).unwrap_err().to_string();
        assert!(reason(&["a".into(), String::new()]).starts_with("stop string 1 is empty"));
        assert!(reason(&vec!["a".repeat(MOST_BYTES); 2]).contains("131072 bytes"));
        assert!(Stops::new(&["a".repeat(MOST_BYTES)]).is_ok());
    }
}
