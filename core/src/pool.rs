//! Caches that calls borrow, so that short-lived threads do not start with an empty one.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::cache::Cache;

/// How many calls at once find a cache. More calls than that go without, and lose nothing but
/// time.
pub const CACHES: usize = 16;

/// The caches of one encoding, each made when it is first needed.
#[derive(Debug)]
pub struct Pool {
    caches: [Mutex<Option<Box<Cache>>>; CACHES],
    enabled: AtomicBool,
}

/// A cache that a call has for itself until it is dropped.
pub struct Lease<'a>(MutexGuard<'a, Option<Box<Cache>>>);

impl Lease<'_> {
    #[inline(always)]
    pub fn cache(&mut self) -> &mut Cache {
        self.0.get_or_insert_with(Default::default)
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self { caches: Default::default(), enabled: AtomicBool::new(true) }
    }
}

impl Pool {
    /// A cache that nobody uses at the moment; `None` when all are in use or caching is off.
    /// Never waits.
    pub fn borrow(&self) -> Option<Lease<'_>> {
        if !self.enabled.load(Ordering::Relaxed) {
            return None;
        }
        let home = home();
        (0..CACHES).find_map(|i| match self.caches[(home + i) % CACHES].try_lock() {
            Ok(guard) => Some(Lease(guard)),
            Err(TryLockError::Poisoned(poisoned)) => {
                // A panic under way may have left it half written.
                let mut guard = poisoned.into_inner();
                *guard = None;
                Some(Lease(guard))
            }
            Err(TryLockError::WouldBlock) => None,
        })
    }

    /// Forgets everything. Caches in use at the moment are waited for.
    pub fn clear(&self) {
        for cache in &self.caches {
            *cache.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = None;
        }
    }

    /// Turns caching on or off; off forgets everything too.
    pub fn set_enabled(&self, enabled: bool) {
        self.enabled.store(enabled, Ordering::Relaxed);
        if !enabled {
            self.clear();
        }
    }

    /// Whether caching is on.
    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }
}

/// Where this thread looks first, so that threads seldom meet.
fn home() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static HOME: Cell<Option<usize>> = const { Cell::new(None) });
    HOME.with(|home| {
        home.get().unwrap_or_else(|| {
            let mine = NEXT.fetch_add(1, Ordering::Relaxed) % CACHES;
            home.set(Some(mine));
            mine
        })
    })
}
