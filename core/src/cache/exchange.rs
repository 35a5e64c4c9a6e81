//! What the caches of a pool tell each other, so that what one thread has learnt need not be learnt
//! by the others.
//!
//! A cache belongs to one call at a time, so that looking up needs no lock. When a call gets a cache
//! that has learnt enough since it last did so, it tells the ledger first, and hears what other
//! caches have told in the meantime. Nobody waits for a lock: in a process that was forked while a
//! thread held one, the caches tell each other nothing.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::table::Entry;
use crate::ablation::Mechanism;

/// How many entries of each kind are kept for caches that have not heard of them.
const KEPT: usize = 1 << 12;
/// A cache that has learnt so many of a kind tells of them.
const WORTH_TELLING: usize = 64;
/// How many of a kind it tells of at most. What it learns beyond that in one call stays its own.
const TOLD: usize = 1 << 10;
/// How many it hears of at most for each that it tells, the latest: so hearing takes less time than
/// learning, however many caches there are.
const HEARD: usize = 4;
/// How often a lock is tried before something is forgotten. Whoever has it needs some microseconds,
/// unless a fork left it behind.
const PATIENCE: usize = 10_000;
/// Up to how many caches are counted.
const COUNTED: usize = 0xff;

/// What caches told last.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Counts how often everything was forgotten. Caches of an earlier generation are not used.
    generation: AtomicUsize,
    /// The generation of the cache that joined last, and in the lowest byte how many of it did.
    joined: AtomicUsize,
    pub(super) short: Told<2>,
    pub(super) long: Told<4>,
}

impl Default for Exchange {
    fn default() -> Self {
        Self {
            generation: AtomicUsize::new(1),
            joined: AtomicUsize::new(0),
            short: Told::default(),
            long: Told::default(),
        }
    }
}

impl Exchange {
    /// Never zero.
    pub(crate) fn generation(&self) -> usize {
        self.generation.load(Ordering::Acquire)
    }

    /// Counts a new cache of this generation.
    pub(crate) fn join(&self, generation: usize) {
        let first = generation * (COUNTED + 1);
        let join = |joined: usize| match joined & !COUNTED == first {
            false => Some(first + 1),
            true => (joined & COUNTED < COUNTED).then_some(joined + 1),
        };
        // An error says that there are more than are counted.
        let _ = self.joined.fetch_update(Ordering::Relaxed, Ordering::Relaxed, join);
    }

    /// Whether a cache of this generation has others to tell.
    fn is_wanted(&self, generation: usize) -> bool {
        Mechanism::Exchange.is_used()
            && self.joined.load(Ordering::Relaxed) > generation * (COUNTED + 1) + 1
    }

    /// Forgets everything: a new generation begins.
    pub(crate) fn clear(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.short.clear();
        self.long.clear();
    }
}

/// Entries of one kind. (In a line of memory of its own, since many read what lies around.)
#[derive(Debug, Default)]
#[repr(align(128))]
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
    /// heard of. What cannot be told now can be told later.
    fn exchange(&self, ledger: &Exchange, generation: usize, news: &mut News<W>) -> Vec<Entry<W>> {
        let mut heard = Vec::with_capacity(HEARD * news.learnt.len());
        let Ok(mut latest) = self.0.try_lock() else { return heard };
        if ledger.generation() != generation {
            // Everything has been forgotten since the call began.
            return heard;
        }
        let Latest { generation: told_by, count, entries } = &mut *latest;
        if *told_by != generation {
            *told_by = generation;
            *entries = VecDeque::with_capacity(KEPT);
        }
        let new = (*count - news.position).min(HEARD * news.learnt.len()).min(entries.len());
        heard.extend(entries.range(entries.len() - new..));
        entries.drain(..(entries.len() + news.learnt.len()).saturating_sub(KEPT));
        *count += news.learnt.len();
        news.position = *count;
        entries.extend(news.learnt.drain(..));
        heard
    }

    fn clear(&self) {
        for _ in 0..PATIENCE {
            if let Ok(mut latest) = self.0.try_lock() {
                latest.entries = VecDeque::new();
                return;
            }
            std::hint::spin_loop();
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
        ledger: &Exchange,
        told: &Told<W>,
        generation: usize,
    ) -> Option<Vec<Entry<W>>> {
        self.is_wanted = ledger.is_wanted(generation);
        (self.learnt.len() >= WORTH_TELLING).then(|| told.exchange(ledger, generation, self))
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::{Exchange, KEPT, TOLD, WORTH_TELLING};
    use crate::cache::{Cache, LongKey};
    use crate::vocabulary::key;

    const GENERATION: usize = 1;

    /// Caches that know of each other.
    fn caches<const N: usize>(ledger: &Exchange) -> [Cache; N] {
        let mut caches = std::array::from_fn(|_| {
            ledger.join(ledger.generation());
            Cache::new().expect("memory")
        });
        for cache in &mut caches {
            cache.exchange(ledger, ledger.generation());
        }
        caches
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
        let ledger = Exchange::default();
        let mut caches = caches::<3>(&ledger);
        let range = |i: usize| i * 1000..i * 1000 + 2 * WORTH_TELLING;
        for (i, cache) in (0..).zip(&mut caches) {
            learn(cache, range(i));
            cache.exchange(&ledger, GENERATION);
        }
        // All but those that need the third table; fewer where two belong into one set.
        let (all, told) = (4 * WORTH_TELLING, 3 * WORTH_TELLING - 10);
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
        let ledger = Exchange::default();
        let [mut cache] = caches(&ledger);
        cache.exchange(&ledger, GENERATION);
        learn(&mut cache, 0..1000);
        assert_eq!(cache.short.news.learnt.len(), 0);
        assert_eq!(cache.long.news.learnt.len(), 0);
    }

    #[test]
    fn what_is_forgotten_is_not_told() {
        let ledger = Exchange::default();
        let mut old = caches::<2>(&ledger);
        for (i, cache) in (0..).zip(&mut old) {
            learn(cache, i * 1000..i * 1000 + 500);
        }
        old[0].exchange(&ledger, GENERATION);
        // A call goes on with the other one while everything is forgotten.
        ledger.clear();
        assert_eq!(ledger.short.0.lock().expect("nobody panics").entries.capacity(), 0);
        old[1].exchange(&ledger, GENERATION);
        assert_eq!(ledger.short.0.lock().expect("nobody panics").entries.capacity(), 0);
        let mut new = caches::<2>(&ledger);
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
    fn caches_of_one_generation_are_counted() {
        let ledger = Exchange::default();
        for generation in 1..4 {
            assert_eq!(ledger.generation(), generation);
            assert!(!ledger.is_wanted(generation));
            ledger.join(generation);
            assert!(!ledger.is_wanted(generation));
            for _ in 0..300 {
                ledger.join(generation);
                assert!(ledger.is_wanted(generation) && !ledger.is_wanted(generation + 1));
            }
            ledger.clear();
        }
    }

    #[test]
    fn there_is_a_bound() {
        let ledger = Exchange::default();
        let mut caches = caches::<2>(&ledger);
        let mut first = 0;
        for (turn, count) in
            [100, 3000, 70, 2000, 3000, 333].into_iter().cycle().take(60).enumerate()
        {
            let cache = &mut caches[turn % 2];
            learn(cache, first..first + count);
            first += count;
            assert!(cache.short.news.learnt.len() <= TOLD);
            assert!(cache.short.news.learnt.capacity() <= TOLD);
            cache.exchange(&ledger, GENERATION);
            assert!(cache.short.news.learnt.len() < WORTH_TELLING);
        }
        let latest = ledger.short.0.lock().expect("nobody panics");
        assert_eq!(latest.entries.len(), KEPT);
        assert_eq!(latest.entries.capacity(), KEPT);
    }

    /// Each cache has its own pieces, which fit. What the others tell must not push them out.
    #[test]
    fn what_is_heard_pushes_out_nothing() {
        const OWN: usize = 60_000;
        let mut misses = [0; 2];
        for (is_telling, misses) in (0..).zip(&mut misses) {
            let ledger = Exchange::default();
            let mut caches = caches::<3>(&ledger);
            for pass in 0..4 {
                for first in (0..OWN).step_by(500) {
                    for (i, cache) in (0..).zip(&mut caches) {
                        if is_telling == 1 {
                            cache.exchange(&ledger, GENERATION);
                        }
                        for number in i * OWN + first..i * OWN + first + 500 {
                            let key = key(format!("{number:09}").as_bytes(), 0, 9);
                            let mut found = vec![];
                            if !cache.append(key, &mut found) {
                                *misses += usize::from(pass > 1);
                                found.push(number as u32);
                                cache.put(key, &found);
                            }
                            assert_eq!(found, [number as u32]);
                        }
                    }
                }
            }
        }
        let [alone, telling] = misses;
        assert!(telling <= alone + alone / 4, "{telling} misses, {alone} if nobody tells");
    }
}
