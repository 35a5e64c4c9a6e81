//! Finds stop strings in text that arrives in parts.

use std::collections::HashMap;

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton;
pub use aho_corasick::automaton::StateID;
use aho_corasick::nfa::contiguous::NFA;

use crate::error::{Error, Result};

/// The most bytes that stop strings may have together.
pub const MOST_BYTES: usize = 1 << 16;

/// An automaton for stop strings. A state is the longest end of the text that begins a stop string.
#[derive(Debug)]
pub struct Stops {
    automaton: NFA,
    start: StateID,
    /// The length in bytes of each state but the first.
    lengths: HashMap<StateID, usize>,
    /// Whether a stop string begins with this byte; most bytes of a text need no more.
    begins: [bool; 256],
}

impl Stops {
    /// Builds the automaton. `None` without stop strings.
    ///
    /// Fails with [`Error::StopString`] for an empty stop string, and for more than [`MOST_BYTES`]
    /// together.
    pub fn new(stops: &[impl AsRef<str>]) -> Result<Option<Self>> {
        check(stops)?;
        let invalid = |error: &dyn std::fmt::Display| Error::StopString(error.to_string());
        let automaton = NFA::new(stops.iter().map(AsRef::as_ref)).map_err(|it| invalid(&it))?;
        let start = automaton.start_state(Anchored::No).map_err(|it| invalid(&it))?;
        let mut made = Self { automaton, start, lengths: HashMap::new(), begins: [false; 256] };
        for stop in stops {
            let mut state = start;
            for (length, &byte) in (1..).zip(stop.as_ref().as_bytes()) {
                made.begins[usize::from(byte)] |= length == 1;
                state = made.automaton.next_state(Anchored::No, state, byte);
                made.lengths.insert(state, length);
            }
        }
        Ok((!stops.is_empty()).then_some(made))
    }

    /// Returns the state before any text.
    pub fn start(&self) -> StateID {
        self.start
    }

    /// Returns the state after one more byte.
    #[inline]
    pub fn next(&self, state: StateID, byte: u8) -> StateID {
        if state == self.start && !self.begins[usize::from(byte)] {
            return state;
        }
        self.automaton.next_state(Anchored::No, state, byte)
    }

    /// Returns true if a stop string may begin somewhere in these bytes.
    #[inline]
    pub fn may_begin_in(&self, bytes: &[u8]) -> bool {
        bytes.iter().any(|&byte| self.begins[usize::from(byte)])
    }

    /// Returns the number of bytes at the end of the text that may still become a stop string.
    #[inline]
    pub fn held(&self, state: StateID) -> usize {
        self.lengths.get(&state).copied().unwrap_or(0)
    }

    /// Returns the longest stop string that ends here: its index, and its length in bytes. Of equal
    /// strings, the first one.
    #[inline]
    pub fn stop(&self, state: StateID) -> Option<(usize, usize)> {
        if !self.automaton.is_match(state) {
            return None;
        }
        let stop = self.automaton.match_pattern(state, 0);
        Some((stop.as_usize(), self.automaton.pattern_len(stop)))
    }
}

fn check(stops: &[impl AsRef<str>]) -> Result<()> {
    let total: usize = stops.iter().map(|stop| stop.as_ref().len()).sum();
    if total > MOST_BYTES {
        return Err(Error::StopString(format!(
            "the stop strings have {total} bytes together; {MOST_BYTES} are possible"
        )));
    }
    match stops.iter().position(|stop| stop.as_ref().is_empty()) {
        Some(index) => Err(Error::StopString(format!(
            "stop string {index} is empty, so any text would end at once; leave it out"
        ))),
        None => Ok(()),
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
            let mut state = automaton.start();
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
