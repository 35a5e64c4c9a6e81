//! What the caches of a pool tell each other, so that what one thread has learnt need not be learnt
//! by the others.
//!
//! A cache belongs to one call at a time, so that looking up needs no lock. When a call gets a cache
//! that has learnt enough since it last did so, it tells the ledger first, and hears what other
//! caches have told in the meantime.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::table::Entry;

/// How many entries of each kind are kept for caches that have not heard of them.
const KEPT: usize = 1 << 12;
/// A cache that has learnt so many of a kind tells of them.
const WORTH_TELLING: usize = 64;
/// How many of a kind it tells of at most. What it learns beyond that in one call stays its own.
const TOLD: usize = 1 << 10;
/// How many it hears of at most for each that it tells, the latest: so hearing takes less time than
/// learning, however many caches there are.
const HEARD: usize = 4;

/// What caches told last.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Ledger {
    /// How many caches there are. (Should it be wrong for a moment, while everything is being
    /// forgotten, then caches tell what nobody hears, or do not tell.)
    caches: AtomicUsize,
    pub(super) short: Told<2>,
    pub(super) long: Told<4>,
}

impl Ledger {
    /// Counts a new cache.
    pub(crate) fn join(&self) {
        self.caches.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets everything, before the generation changes. Never waits.
    pub(crate) fn clear(&self) {
        self.caches.store(0, Ordering::Relaxed);
        self.short.clear();
        self.long.clear();
    }
}

/// Entries of one kind.
#[derive(Debug, Default)]
pub(super) struct Told<const W: usize>(Mutex<Latest<W>>);

#[derive(Debug, Default)]
struct Latest<const W: usize> {
    /// The generation of the caches that told them.
    generation: usize,
    /// How many were ever told.
    count: usize,
    /// The last of them.
    entries: VecDeque<Entry<W>>,
}

impl<const W: usize> Told<W> {
    /// Tells the news of a table of this generation. Returns what others told that it has not
    /// heard of. Never waits: what cannot be told now can be told later.
    fn exchange(&self, generation: usize, news: &mut News<W>) -> Vec<Entry<W>> {
        let Ok(mut latest) = self.0.try_lock() else { return Vec::new() };
        let Latest { generation: current, count, entries } = &mut *latest;
        if *current > generation {
            // Everything was forgotten while the call was under way.
            return Vec::new();
        }
        if *current < generation {
            entries.clear();
            *current = generation;
        }
        let new = (*count - news.position).min(HEARD * news.learnt.len()).min(entries.len());
        let heard = entries.range(entries.len() - new..).copied().collect();
        entries.drain(..(entries.len() + news.learnt.len()).saturating_sub(KEPT));
        *count += news.learnt.len();
        news.position = *count;
        entries.extend(news.learnt.drain(..));
        heard
    }

    fn clear(&self) {
        if let Ok(mut latest) = self.0.try_lock() {
            latest.entries = VecDeque::new();
        }
    }
}

/// What a table has learnt and not told.
#[derive(Debug, Default)]
pub(super) struct News<const W: usize> {
    is_wanted: bool,
    learnt: Vec<Entry<W>>,
    /// How many entries had been told when this table last heard of them.
    position: usize,
}

impl<const W: usize> News<W> {
    #[inline(always)]
    pub(super) fn add(&mut self, entry: Entry<W>) {
        if self.is_wanted && self.learnt.len() < TOLD {
            self.learnt.push(entry);
        }
    }

    /// Tells others, if that is wanted and worth it. Returns what they told.
    #[inline(always)]
    pub(super) fn exchange(
        &mut self,
        ledger: &Ledger,
        told: &Told<W>,
        generation: usize,
    ) -> Option<Vec<Entry<W>>> {
        self.is_wanted = ledger.caches.load(Ordering::Relaxed) > 1;
        (self.learnt.len() >= WORTH_TELLING).then(|| told.exchange(generation, self))
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::{HEARD, KEPT, Ledger, TOLD, WORTH_TELLING};
    use crate::cache::{Cache, LongKey};
    use crate::vocabulary::key;

    const GENERATION: usize = 3;

    fn caches<const N: usize>(ledger: &Ledger) -> [Cache; N] {
        std::array::from_fn(|_| {
            let mut cache = Cache::new().expect("memory");
            ledger.join();
            cache.exchange(ledger, GENERATION);
            cache
        })
    }

    /// Ids of pieces by number: as many as the first table has room for, the second, or neither.
    fn ids(i: usize) -> Vec<u32> {
        (0..[1, 3, 6, 20][i % 4]).map(|k| (10 * i + k) as u32).collect()
    }

    /// Half of the pieces are short, half are long.
    fn learn(cache: &mut Cache, numbers: std::ops::Range<usize>) {
        for i in numbers {
            cache.put(key(format!("{i:09}").as_bytes(), 0, 9), &ids(i));
            cache.put(LongKey::<4>::new(format!("{i:023}").as_bytes()), &ids(i));
        }
    }

    /// How many of the pieces the cache knows; their ids have to be right.
    fn known(cache: &mut Cache, numbers: std::ops::Range<usize>) -> usize {
        let mut count = 0;
        for i in numbers {
            let mut found = vec![];
            if cache.append(key(format!("{i:09}").as_bytes(), 0, 9), &mut found) {
                assert_eq!(found, ids(i));
                count += 1;
            }
            found.clear();
            if cache.append(LongKey::<4>::new(format!("{i:023}").as_bytes()), &mut found) {
                assert_eq!(found, ids(i));
                count += 1;
            }
        }
        count
    }

    #[test]
    fn what_one_learns_the_others_hear() {
        let ledger = Ledger::default();
        let mut caches = caches::<3>(&ledger);
        // The first did not know of the others when it was given out.
        caches[0].exchange(&ledger, GENERATION);
        let range = |i: usize| i * 1000..i * 1000 + WORTH_TELLING;
        for (i, cache) in (0..).zip(&mut caches) {
            learn(cache, range(i));
            cache.exchange(&ledger, GENERATION);
        }
        // What needs the third table is known to the one that learnt it.
        let (all, told) = (2 * WORTH_TELLING, 2 * WORTH_TELLING * 3 / 4 - WORTH_TELLING / 4);
        for (i, cache) in caches.iter_mut().enumerate() {
            for of in 0..3 {
                let expected = match of.cmp(&i) {
                    Ordering::Less => told..=all,
                    Ordering::Equal => all..=all,
                    Ordering::Greater => 0..=0,
                };
                let count = known(cache, range(of));
                assert!(expected.contains(&count), "{i} of {of}: {count}");
            }
        }
        // The first hears of the others when it comes again.
        learn(&mut caches[0], range(7));
        caches[0].exchange(&ledger, GENERATION);
        assert!(known(&mut caches[0], range(1)) >= told);
        assert!(known(&mut caches[0], range(2)) >= told);
    }

    #[test]
    fn one_that_is_alone_tells_nothing() {
        let ledger = Ledger::default();
        let [mut cache] = caches(&ledger);
        cache.exchange(&ledger, GENERATION);
        learn(&mut cache, 0..1000);
        assert_eq!(cache.short.news.learnt.len(), 0);
        assert_eq!(cache.long.news.learnt.len(), 0);
    }

    #[test]
    fn what_is_forgotten_is_not_told() {
        let ledger = Ledger::default();
        let mut old = caches::<2>(&ledger);
        old[0].exchange(&ledger, GENERATION);
        for (i, cache) in (0..).zip(&mut old) {
            learn(cache, i * 1000..i * 1000 + 500);
        }
        old[0].exchange(&ledger, GENERATION);
        // A call goes on with the other one while everything is forgotten.
        let mut new = {
            ledger.clear();
            caches::<2>(&ledger)
        };
        new[0].exchange(&ledger, GENERATION + 1);
        old[1].exchange(&ledger, GENERATION);
        for (i, cache) in (2..).zip(&mut new) {
            learn(cache, i * 1000..i * 1000 + 500);
            cache.exchange(&ledger, GENERATION + 1);
            old[1].exchange(&ledger, GENERATION);
            assert_eq!(known(cache, 0..1500), 0);
        }
        assert!(known(&mut new[1], 2000..2500) > 0);
        assert_eq!(known(&mut old[1], 2000..3500), 0);
    }

    #[test]
    fn there_is_a_bound() {
        let ledger = Ledger::default();
        let mut caches = caches::<2>(&ledger);
        caches[0].exchange(&ledger, GENERATION);
        for turn in 0..20 {
            for (i, cache) in (0..).zip(&mut caches) {
                learn(cache, (2 * turn + i) * 10_000..(2 * turn + i) * 10_000 + 3000);
                assert_eq!(cache.short.news.learnt.len(), TOLD);
                assert_eq!(cache.short.news.learnt.capacity(), TOLD);
                cache.exchange(&ledger, GENERATION);
                assert_eq!(cache.short.news.learnt.len(), 0);
            }
        }
        let latest = ledger.short.0.lock().expect("nobody panics");
        assert_eq!(latest.entries.len(), KEPT);
        assert_eq!(latest.entries.capacity(), KEPT);
        assert_eq!(latest.count, 40 * TOLD);
        const { assert!(HEARD * WORTH_TELLING <= KEPT) };
    }
}
