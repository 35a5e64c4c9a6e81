//! Merges parts, treating equal neighbors as one run: a line of dashes or a megabyte of spaces is
//! halved again and again, without visiting each part.
//!
//! For ordered vocabularies only: a merge creates no merge of its own rank or a lower rank, so the
//! merges of one rank may be done in any order. (Of three consecutive equal parts the first two
//! merge, which affects only one run.)

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::initial::FirstPart;
use crate::error::Result;
use crate::memory::reserve;
use crate::polling::poll;
use crate::rule::NONE;
use crate::vocabulary::Pairs;

/// A part and its number of repetitions. Neighboring runs have different parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    part: u32,
    count: u32,
    previous: u32,
    next: u32,
    /// Rank of merging two parts of the run, if it has two, and rank of merging its last part with
    /// the first part of the next run; or [`NONE`].
    inner: u32,
    outer: u32,
}

impl Run {
    pub(super) fn new(part: u32, count: u32) -> Self {
        Self { part, count, previous: END, next: END, inner: NONE, outer: NONE }
    }
}

/// Bytes of ordinary text that take as long as one merge.
const BYTES_PER_MERGE: usize = 8;

/// End of the list.
const END: u32 = u32::MAX;

/// A linked list of runs, and a heap of merge candidates, lowest first.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
    head: u32,
    /// From the highest bit: rank, run, and whether the candidate is the outer merge of the run.
    candidates: BinaryHeap<Reverse<u64>>,
}

fn candidate(rank: u32, run: u32, is_outer: bool) -> Reverse<u64> {
    Reverse(u64::from(rank) << 33 | u64::from(run) << 1 | u64::from(is_outer))
}

impl Runs {
    /// Clears the list and reserves room for `count` parts.
    pub(super) fn clear(&mut self, count: usize) -> Result<()> {
        self.head = 0;
        self.runs.clear();
        reserve(&mut self.runs, count)
    }

    #[inline(always)]
    pub(super) fn add(&mut self, table: &Pairs, first: FirstPart) {
        let runs = &mut self.runs;
        let index = runs.len() as u32;
        if let Some(last) = runs.last_mut() {
            if last.part == first.part {
                last.count += 1;
                return;
            }
            last.outer =
                if first.is_known { first.rank } else { table.merged(last.part, first.part) };
            last.next = index;
        }
        runs.push(Run { previous: index.wrapping_sub(1), ..Run::new(first.part, 1) });
    }

    pub(super) fn push(&mut self, run: Run) {
        self.runs.push(run);
    }

    /// Merges the added parts; at least one part has been added.
    pub(super) fn merge_all(&mut self, table: &Pairs) -> Result<()> {
        let mut candidates = std::mem::take(&mut self.candidates).into_vec();
        candidates.clear();
        reserve(&mut candidates, self.runs.len())?;
        for (run, index) in self.runs.iter_mut().zip(0..) {
            if run.count > 1 {
                run.inner = table.merged(run.part, run.part);
                if run.inner != NONE {
                    candidates.push(candidate(run.inner, index, false));
                }
            }
            if run.outer != NONE {
                candidates.push(candidate(run.outer, index, true));
            }
        }
        self.candidates = candidates.into();
        let mut merges = 0;
        while let Some(Reverse(candidate)) = self.candidates.pop() {
            let (rank, run) = ((candidate >> 33) as u32, (candidate >> 1) as u32);
            // A candidate is stale if its run now has different parts or neighbors.
            let Run { inner, outer, .. } = self.runs[run as usize];
            if candidate & 1 != 0 {
                if outer == rank {
                    self.merge_outer(table, run, rank)?;
                }
            } else if inner == rank {
                self.merge_inner(table, run, rank)?;
            }
            merges += 1;
        }
        poll(BYTES_PER_MERGE * merges)
    }

    /// Merges the parts of a run in pairs.
    fn merge_inner(&mut self, table: &Pairs, run: u32, merged: u32) -> Result<()> {
        let Run { count, .. } = self.runs[run as usize];
        self.runs[run as usize].count = count % 2;
        self.runs[run as usize].inner = NONE;
        self.insert_before(table, run, merged, count / 2)
    }

    /// Merges the last part of a run with the first part of the next run.
    fn merge_outer(&mut self, table: &Pairs, run: u32, merged: u32) -> Result<()> {
        let next = self.runs[run as usize].next;
        for run in [run, next] {
            let run = &mut self.runs[run as usize];
            run.count -= 1;
            if run.count == 1 {
                run.inner = NONE;
            }
        }
        if self.runs[run as usize].count == 0 {
            self.unlink(run);
        }
        self.insert_before(table, next, merged, 1)
    }

    fn unlink(&mut self, run: u32) {
        let Run { previous, next, .. } = self.runs[run as usize];
        self.runs[run as usize].inner = NONE;
        self.runs[run as usize].outer = NONE;
        if previous == END {
            self.head = next;
        } else {
            self.runs[previous as usize].next = next;
        }
        if next != END {
            self.runs[next as usize].previous = previous;
        }
    }

    /// Inserts parts before a run, removes the run if it is empty, and finds the ranks of the new
    /// merges.
    fn insert_before(&mut self, table: &Pairs, next: u32, part: u32, count: u32) -> Result<()> {
        let previous = self.runs[next as usize].previous;
        let mut this = END;
        // Equal neighbors become one run.
        if previous != END && self.runs[previous as usize].part == part {
            this = previous;
        }
        let is_gone = self.runs[next as usize].count == 0;
        if is_gone {
            let after = self.runs[next as usize].next;
            if after != END && self.runs[after as usize].part == part {
                self.unlink(next);
                if this == END {
                    this = after;
                } else {
                    self.runs[this as usize].count += self.runs[after as usize].count;
                    self.unlink(after);
                }
            } else if this == END {
                let run = &mut self.runs[next as usize];
                (run.part, run.outer) = (part, NONE);
                this = next;
            } else {
                self.unlink(next);
            }
        } else if this == END {
            this = self.runs.len() as u32;
            reserve(&mut self.runs, 1)?;
            self.runs.push(Run { part, count: 0, previous, next, inner: NONE, outer: NONE });
            self.runs[next as usize].previous = this;
            if previous == END {
                self.head = this;
            } else {
                self.runs[previous as usize].next = this;
            }
        }
        let run = &mut self.runs[this as usize];
        run.count += count;
        if run.count > 1 && run.inner == NONE {
            run.inner = table.merged(part, part);
            if run.inner != NONE {
                self.candidates.push(candidate(run.inner, this, false));
            }
        }
        self.find_outer(table, this);
        let previous = self.runs[this as usize].previous;
        if previous != END {
            self.find_outer(table, previous);
        }
        Ok(())
    }

    /// Finds the rank of merging a run with the next run.
    fn find_outer(&mut self, table: &Pairs, index: u32) {
        let Run { part, next, .. } = self.runs[index as usize];
        let next = if next == END { None } else { self.runs.get(next as usize) };
        let rank = next.map_or(NONE, |next| table.merged(part, next.part));
        self.runs[index as usize].outer = rank;
        if rank != NONE {
            self.candidates.push(candidate(rank, index, true));
        }
    }

    pub(super) fn append_all(&self, out: &mut Vec<u32>) -> Result<()> {
        self.each(|part, count| {
            reserve(out, count)?;
            out.resize(out.len() + count, part);
            Ok(true)
        })
    }

    pub(super) fn first_part(&self) -> u32 {
        self.runs[self.head as usize].part
    }

    /// Calls `take` with each part and its number of repetitions, until `take` returns `false`.
    pub(super) fn each(&self, mut take: impl FnMut(u32, usize) -> Result<bool>) -> Result<()> {
        let mut index = self.head;
        while index != END {
            let Run { part, count, next, .. } = self.runs[index as usize];
            if !take(part, count as usize)? {
                break;
            }
            index = next;
        }
        Ok(())
    }
}
