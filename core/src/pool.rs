//! Workspaces that calls borrow, so that short-lived threads do not start with an empty cache.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::cache::Cache;
use crate::split::{BATCH, Batch, Piece};

/// How many calls at once find a workspace with a cache. More calls than that go without, and
/// lose nothing but time.
pub const WORKSPACES: usize = 16;

/// What one call needs to work with.
#[derive(Debug)]
pub struct Workspace {
    /// `None` when caching is off, or where there is no memory for it.
    cache: Option<Cache>,
    /// The pool's generation that the cache belongs to.
    generation: usize,
    /// Pieces that were cut and not yet looked up.
    pub(crate) batch: Batch,
}

impl Workspace {
    fn new() -> Box<Self> {
        Box::new(Self { cache: None, generation: 0, batch: [Piece::default(); BATCH] })
    }

    /// The batch, and the cache.
    #[inline(always)]
    pub(crate) fn parts(&mut self) -> (&mut Batch, Option<&mut Cache>) {
        (&mut self.batch, self.cache.as_mut())
    }
}

/// The workspaces of one encoding, each made when it is first needed.
#[derive(Debug)]
pub struct Pool {
    workspaces: [Mutex<Option<Box<Workspace>>>; WORKSPACES],
    caching: AtomicBool,
    /// Counts how often everything was forgotten. Caches of an earlier generation are not used.
    generation: AtomicUsize,
}

/// A workspace that a call has for itself until it is dropped.
#[derive(Debug)]
pub enum Lease<'a> {
    Pooled(MutexGuard<'a, Option<Box<Workspace>>>),
    Own(Box<Workspace>),
}

impl Lease<'_> {
    #[inline(always)]
    pub(crate) fn workspace(&mut self) -> &mut Workspace {
        match self {
            Lease::Pooled(workspace) => workspace.get_or_insert_with(Workspace::new),
            Lease::Own(workspace) => workspace,
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            workspaces: Default::default(),
            caching: AtomicBool::new(true),
            generation: AtomicUsize::new(1),
        }
    }
}

impl Pool {
    /// A workspace that nobody uses at the moment, or a new one without a cache when all are in
    /// use. Never waits.
    pub fn borrow(&self) -> Lease<'_> {
        let home = home();
        for i in 0..WORKSPACES {
            let mut guard = match self.workspaces[(home + i) % WORKSPACES].try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Poisoned(poisoned)) => {
                    // A panic under way may have left it half written.
                    let mut guard = poisoned.into_inner();
                    *guard = None;
                    guard
                }
            };
            let workspace = guard.get_or_insert_with(Workspace::new);
            let generation = self.generation.load(Ordering::Relaxed);
            if workspace.generation != generation {
                workspace.generation = generation;
                workspace.cache = if self.is_caching() { Cache::new() } else { None };
            }
            return Lease::Pooled(guard);
        }
        Lease::Own(Workspace::new())
    }

    /// Forgets everything. A call under way keeps its cache to its end, and nobody uses it after.
    /// Never waits: a lock may be held by a thread that a fork left behind.
    pub fn clear(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        for workspace in &self.workspaces {
            if let Ok(mut workspace) = workspace.try_lock() {
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

/// Where this thread looks first, so that threads seldom meet.
#[inline]
fn home() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static HOME: Cell<usize> = const { Cell::new(usize::MAX) });
    HOME.with(|home| {
        if home.get() == usize::MAX {
            home.set(NEXT.fetch_add(1, Ordering::Relaxed) % WORKSPACES);
        }
        home.get()
    })
}
