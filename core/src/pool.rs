//! Workspaces that calls borrow, so that short-lived threads do not start with an empty cache.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::ablation::Mechanism;
use crate::cache::{Cache, Exchange};
use crate::lookup::{PieceEncoder, ProbeBatch};
use crate::split::{BATCH, Batch, Piece};
use crate::vocabulary::Vocabulary;

/// How many calls at once find a workspace with a cache. More calls than that go without, and
/// lose nothing but time.
pub const WORKSPACES: usize = 16;

/// What one call needs to work with.
#[derive(Debug)]
pub struct Workspace {
    /// `None` when caching is off, where there is no memory for it, and in a workspace that is
    /// not of the pool.
    cache: Option<Cache>,
    /// The pool's generation that the cache belongs to.
    generation: usize,
    /// Pieces that were cut and not yet looked up.
    pub(crate) batch: Batch,
    ahead: ProbeBatch,
}

impl Workspace {
    fn new() -> Box<Self> {
        Box::new(Self {
            cache: None,
            generation: 0,
            batch: [Piece::default(); BATCH],
            ahead: ProbeBatch::default(),
        })
    }

    /// The batch, and what turns pieces into ids.
    #[inline(always)]
    pub(crate) fn parts<'a>(
        &'a mut self,
        vocabulary: &'a Vocabulary,
    ) -> (&'a mut Batch, PieceEncoder<'a>) {
        (&mut self.batch, PieceEncoder::new(vocabulary, self.cache.as_mut(), &mut self.ahead))
    }
}

/// A workspace, when it is first needed. Far enough from the next one that two threads do not
/// write to the same line of memory, or to a neighbour that is fetched with it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Place(Mutex<Option<Box<Workspace>>>);

/// The workspaces of one encoding, each made when it is first needed.
#[derive(Debug)]
pub struct Pool {
    workspaces: [Place; WORKSPACES],
    ledger: Exchange,
    caching: AtomicBool,
}

/// A workspace that a call has for itself until it is dropped.
#[derive(Debug)]
pub(crate) enum Lease<'a> {
    /// One of the pool.
    Pooled { workspace: MutexGuard<'a, Option<Box<Workspace>>>, ledger: &'a Exchange },
    /// A new one, without a cache.
    Own(Box<Workspace>),
}

impl Lease<'_> {
    #[inline(always)]
    pub(crate) fn workspace(&mut self) -> &mut Workspace {
        match self {
            Lease::Pooled { workspace, .. } => workspace.get_or_insert_with(Workspace::new),
            Lease::Own(workspace) => workspace,
        }
    }
}

impl Drop for Lease<'_> {
    /// If everything was forgotten while the call was under way, so is this workspace.
    #[inline(always)]
    fn drop(&mut self) {
        if let Lease::Pooled { workspace: place, ledger } = self
            && place.as_ref().is_some_and(|own| own.generation != ledger.generation())
        {
            **place = None;
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            workspaces: Default::default(),
            ledger: Exchange::default(),
            caching: AtomicBool::new(true),
        }
    }
}

impl Pool {
    /// A workspace that nobody uses at the moment, or a new one without a cache when all are in
    /// use. Never waits.
    pub(crate) fn borrow(&self) -> Lease<'_> {
        let home = HOME.get();
        let count = if Mechanism::Pool.is_used() { WORKSPACES } else { 1 };
        for i in 0..count {
            let place = (home + i) % count;
            let workspace = &self.workspaces[place].0;
            let mut guard = match workspace.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Poisoned(poisoned)) => {
                    // A panic under way may have left it half written.
                    workspace.clear_poison();
                    let mut guard = poisoned.into_inner();
                    *guard = None;
                    guard
                }
            };
            let workspace = guard.get_or_insert_with(Workspace::new);
            let generation = self.ledger.generation();
            if workspace.generation != generation {
                workspace.generation = generation;
                workspace.cache = if self.is_caching() { Cache::new() } else { None };
                if workspace.cache.is_some() {
                    self.ledger.join(generation);
                }
            }
            if let Some(cache) = &mut workspace.cache {
                cache.exchange(&self.ledger, generation);
            }
            if i > 0 {
                HOME.set(place);
            }
            return Lease::Pooled { workspace: guard, ledger: &self.ledger };
        }
        Lease::Own(Workspace::new())
    }

    /// Forgets everything. A call under way keeps its cache to its end, and nobody uses it after.
    /// Never waits: a lock may be held by a thread that a fork left behind.
    pub fn clear(&self) {
        self.ledger.clear();
        for workspace in &self.workspaces {
            if let Ok(mut workspace) = workspace.0.try_lock() {
                *workspace = None;
            }
        }
    }

    /// Turns caching on or off, and forgets everything.
    pub fn set_caching(&self, caching: bool) {
        self.caching.store(caching, Ordering::Relaxed);
        self.clear();
    }

    /// Whether caching is on.
    pub fn is_caching(&self) -> bool {
        self.caching.load(Ordering::Relaxed)
    }
}

thread_local! {
    /// Where this thread looks first: the workspace it had last, so that threads seldom meet. New
    /// threads all begin at the same end, so that a short-lived one finds the cache that another
    /// one filled, and there are no more workspaces than calls at once.
    static HOME: Cell<usize> = const { Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::Pool;

    #[test]
    fn what_a_call_under_way_holds_is_forgotten_when_it_ends() {
        let pool = Pool::default();
        let is_kept = || pool.workspaces.iter().any(|place| place.0.lock().unwrap().is_some());
        drop(pool.borrow());
        assert!(is_kept());
        let lease = pool.borrow();
        pool.clear();
        drop(lease);
        assert!(!is_kept());
    }
}
