//! Finds stop strings in text that arrives in parts.

use crate::error::{Error, Result};

/// Maximum total length of the stop strings in bytes.
pub const MOST_BYTES: usize = 1 << 16;

/// The longest suffix of the text that is a prefix of a stop string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct State(u32);

/// An automaton for stop strings, used up to the first match. Takes at most about 13 bytes of
/// memory per byte of the strings, and 8 per string.
///
/// States are ordered by length. The states that extend a state by one byte are contiguous. A state
/// without extensions is a match, at which the text ends.
#[derive(Debug)]
pub struct Stops {
    /// Last byte of each state.
    bytes: Vec<u8>,
    /// The first state that extends each state; then the number of states.
    longer: Vec<u32>,
    /// For each state, the longest other state that is its suffix.
    suffixes: Vec<u32>,
    /// The first state of each length.
    first_of_length: Vec<u32>,
    /// Each state that ends a match, in ascending order, with the index of its longest stop string.
    matches: Vec<(u32, u32)>,
    lengths: Vec<u32>,
    /// Whether a stop string begins with this byte; enough to reject most bytes of a text.
    begins: [bool; 256],
}

impl Stops {
    /// Builds the automaton; `None` without stop strings.
    ///
    /// Fails with [`Error::StopString`] for an empty stop string, and for more than [`MOST_BYTES`]
    /// in total.
    pub fn new(stops: &[impl AsRef<str>]) -> Result<Option<Self>> {
        check(stops)?;
        if stops.is_empty() {
            return Ok(None);
        }
        let text = |index: usize| stops[index].as_ref().as_bytes();
        let mut sorted: Vec<usize> = (0..stops.len()).collect();
        sorted.sort_by_key(|&index| (text(index), index));
        sorted.dedup_by_key(|index| text(*index));
        let mut made = Self {
            bytes: vec![0],
            longer: Vec::new(),
            suffixes: vec![0],
            first_of_length: Vec::new(),
            matches: Vec::new(),
            lengths: stops.iter().map(|stop| stop.as_ref().len() as u32).collect(),
            begins: [false; 256],
        };
        for &index in &sorted {
            made.begins[usize::from(text(index)[0])] = true;
        }
        // Stop strings that begin with each state of the current length.
        let mut states = vec![&sorted[..]];
        for length in 0.. {
            let first = (made.bytes.len() - states.len()) as u32;
            made.first_of_length.push(first);
            let mut next = Vec::new();
            for (state, stops) in (first..).zip(states) {
                made.longer.push(made.bytes.len() as u32);
                let whole = stops.first().copied().filter(|&index| text(index).len() == length);
                let suffix = State(made.suffixes[state as usize]);
                let at_end = || match state {
                    0 => None,
                    _ => made.stop(suffix).map(|(stop, _)| stop),
                };
                if let Some(stop) = whole.or_else(at_end) {
                    made.matches.push((state, stop as u32));
                    continue;
                }
                for stops in stops.chunk_by(|&a, &b| text(a)[length] == text(b)[length]) {
                    let byte = text(stops[0])[length];
                    let suffix = if state == 0 { State(0) } else { made.next(suffix, byte) };
                    made.bytes.push(byte);
                    made.suffixes.push(suffix.0);
                    next.push(stops);
                }
            }
            if next.is_empty() {
                break;
            }
            states = next;
        }
        made.longer.push(made.bytes.len() as u32);
        made.bytes.shrink_to_fit();
        made.longer.shrink_to_fit();
        made.suffixes.shrink_to_fit();
        made.first_of_length.shrink_to_fit();
        made.matches.shrink_to_fit();
        Ok(Some(made))
    }

    /// Returns the state after one more byte. Valid only until a match.
    #[inline]
    pub fn next(&self, mut state: State, byte: u8) -> State {
        if state.0 == 0 && !self.begins[usize::from(byte)] {
            return state;
        }
        loop {
            let index = state.0 as usize;
            let longer = self.longer[index]..self.longer[index + 1];
            let bytes = &self.bytes[longer.start as usize..longer.end as usize];
            if let Ok(place) = bytes.binary_search(&byte) {
                return State(longer.start + place as u32);
            }
            if index == 0 {
                return state;
            }
            state = State(self.suffixes[index]);
        }
    }

    /// Returns true if a stop string may begin within these bytes.
    #[inline]
    pub fn may_begin_in(&self, bytes: &[u8]) -> bool {
        bytes.iter().any(|&byte| self.begins[usize::from(byte)])
    }

    /// Returns the number of bytes at the end of the text that may still become a stop string.
    #[inline]
    pub fn held(&self, state: State) -> usize {
        if state.0 == 0 { 0 } else { self.first_of_length.partition_point(|&it| it <= state.0) - 1 }
    }

    /// Returns the longest stop string that ends here: its index, and its length in bytes. Of equal
    /// strings, returns the first.
    #[inline]
    pub fn stop(&self, state: State) -> Option<(usize, usize)> {
        let index = state.0 as usize;
        if self.longer[index] != self.longer[index + 1] {
            return None;
        }
        let place = self.matches.binary_search_by_key(&state.0, |&(state, _)| state).ok()?;
        let stop = self.matches[place].1 as usize;
        Some((stop, self.lengths[stop] as usize))
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
            let mut state = State::default();
            for end in 1..=text.len() {
                if automaton.stop(state).is_some() {
                    break;
                }
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
    fn memory_is_a_small_multiple_of_the_strings() {
        // Strings with a common long prefix, with distinct prefixes, a single string, and a
        // repeated string.
        let alike = (0..1024).map(|it| format!("{}{it:04}", "a".repeat(60))).collect();
        let different = (0..1024).map(|it| format!("{it:04}{}", "a".repeat(60))).collect();
        let kinds: [Vec<String>; 4] =
            [alike, different, vec!["ab".repeat(MOST_BYTES / 2)], vec!["a".repeat(64); 1024]];
        for stops in kinds {
            let Stops { bytes, longer, suffixes, first_of_length, matches, lengths, .. } =
                Stops::new(&stops).unwrap().unwrap();
            let numbers = [longer, suffixes, first_of_length, lengths];
            let numbers: usize = numbers.iter().map(|it| it.capacity() * size_of::<u32>()).sum();
            let memory = numbers + bytes.capacity() + matches.capacity() * size_of::<(u32, u32)>();
            assert!(memory < 14 * MOST_BYTES, "{memory}");
        }
    }
}
