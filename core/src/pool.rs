//! Workspaces that calls borrow, so that short-lived threads find a filled cache.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::ablation::Mechanism;
use crate::cache::{Cache, CacheSize};
use crate::error::Result;
use crate::lookup::{PieceEncoder, ProbeBatch, Resolve};
use crate::polling::poll;
use crate::split::{BATCH, Batch, Piece, Words};

/// Number of concurrent calls that find a workspace with a cache. Further calls run without a
/// cache, and are only slower.
pub const WORKSPACES: usize = 16;

/// Buffers and cache of one call.
#[derive(Debug)]
pub struct Workspace {
    /// `None` if caching is off, if memory runs out, and in workspaces outside the pool.
    cache: Option<Cache>,
    /// Generation of the pool to which the cache belongs.
    generation: usize,
    /// Pieces cut from a text, to be looked up.
    pub(crate) batch: Batch,
    probes: ProbeBatch,
}

impl Workspace {
    fn new() -> Box<Self> {
        Box::new(Self {
            cache: None,
            generation: 0,
            batch: [Piece::default(); BATCH],
            probes: ProbeBatch::default(),
        })
    }

    /// Returns the batch, and an encoder for its pieces.
    #[inline(always)]
    pub(crate) fn parts<'a, R: Resolve>(
        &'a mut self,
        resolver: &'a R,
    ) -> (&'a mut Batch, PieceEncoder<'a, R>) {
        (&mut self.batch, PieceEncoder::new(resolver, self.cache.as_mut(), &mut self.probes))
    }
}

/// A slot for a workspace, which is created when first needed. Slots are two cache lines apart,
/// since processors fetch lines in pairs: threads that lock neighboring slots do not share a line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot(Mutex<Option<Box<Workspace>>>);

/// The workspaces of one encoding, each created on first use.
#[derive(Debug)]
pub struct Pool {
    slots: [Slot; WORKSPACES],
    /// Number of times that all caches were cleared; caches of earlier generations are never used.
    generation: AtomicUsize,
    caching: AtomicBool,
    cache_bytes: AtomicUsize,
}

/// Exclusive use of a workspace until dropped.
#[derive(Debug)]
pub(crate) enum Lease<'a> {
    /// A workspace of the pool.
    Pooled { workspace: MutexGuard<'a, Option<Box<Workspace>>>, generation: &'a AtomicUsize },
    /// A new workspace without a cache.
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
    /// Also drops the cache if the caches were cleared during the call.
    #[inline(always)]
    fn drop(&mut self) {
        if let Lease::Pooled { workspace: slot, generation } = self
            && let Some(workspace) = &**slot
            && workspace.generation != generation.load(Ordering::Acquire)
        {
            **slot = None;
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            slots: Default::default(),
            generation: AtomicUsize::new(1),
            caching: AtomicBool::new(true),
            cache_bytes: AtomicUsize::new(CacheSize::DEFAULT.bytes()),
        }
    }
}

impl Pool {
    /// Returns a free workspace, or a new workspace without a cache if all are in use. Never waits.
    pub(crate) fn borrow(&self) -> Lease<'_> {
        let home = HOME.get();
        let count = if Mechanism::Pool.is_used() { WORKSPACES } else { 1 };
        for i in 0..count {
            let index = (home + i) % count;
            let slot = &self.slots[index].0;
            let mut guard = match slot.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Poisoned(poisoned)) => {
                    // A call that panicked may have left the workspace half written.
                    slot.clear_poison();
                    let mut guard = poisoned.into_inner();
                    *guard = None;
                    guard
                }
            };
            let workspace = guard.get_or_insert_with(Workspace::new);
            let generation = self.generation.load(Ordering::Acquire);
            if workspace.generation != generation {
                workspace.generation = generation;
                // Free the old cache first.
                workspace.cache = None;
                workspace.cache = self.new_cache();
            }
            if i > 0 {
                HOME.set(index);
            }
            return Lease::Pooled { workspace: guard, generation: &self.generation };
        }
        Lease::Own(Workspace::new())
    }

    /// Appends the ids of nonempty pieces of `text`: from the cache, or from `resolver`.
    pub fn encode_pieces(
        &self,
        resolver: &impl Resolve,
        text: &str,
        pieces: &[Piece],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        ids.reserve(pieces.len());
        let mut lease = self.borrow();
        let (_, mut encoder) = lease.workspace().parts(resolver);
        encoder.append(text.as_bytes(), pieces, ids)
    }

    /// Appends the ids of a text's words, like [`Pool::encode_pieces`].
    pub fn encode_words(
        &self,
        resolver: &impl Resolve,
        mut words: Words<'_>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let text = words.text();
        self.encode_batches(resolver, text, |batch| words.fill(batch), ids, |_, _| Ok(()))
    }

    /// Appends the ids of the pieces of a text that `fill` writes, like [`Pool::encode_pieces`],
    /// until `fill` writes no pieces. Calls `found` with each batch and all ids.
    pub fn encode_batches(
        &self,
        resolver: &impl Resolve,
        text: &str,
        mut fill: impl FnMut(&mut Batch) -> usize,
        ids: &mut Vec<u32>,
        mut found: impl FnMut(&[Piece], &mut Vec<u32>) -> Result<()>,
    ) -> Result<()> {
        let mut lease = self.borrow();
        let (batch, mut encoder) = lease.workspace().parts(resolver);
        loop {
            let pieces = match fill(batch) {
                0 => return Ok(()),
                count => &batch[..count],
            };
            poll(pieces.last().map_or(0, |last| last.end - pieces[0].start))?;
            encoder.append(text.as_bytes(), pieces, ids)?;
            found(pieces, ids)?;
        }
    }

    #[inline(never)]
    fn new_cache(&self) -> Option<Cache> {
        if self.is_caching() { Cache::new(self.cache_size()) } else { None }
    }

    /// Clears the caches. Calls in progress use their caches to the end; later calls do not. Never
    /// waits: after a fork, the thread that holds a lock may not exist.
    pub fn clear(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        for slot in &self.slots {
            if let Ok(mut workspace) = slot.0.try_lock() {
                *workspace = None;
            }
        }
    }

    /// Turns caching on or off, and clears the caches.
    pub fn set_caching(&self, caching: bool) {
        self.caching.store(caching, Ordering::Relaxed);
        self.clear();
    }

    /// Returns whether caching is on.
    pub fn is_caching(&self) -> bool {
        self.caching.load(Ordering::Relaxed)
    }

    /// Copies from `other` whether caching is on, and the size of each cache.
    pub fn set_like(&self, other: &Self) {
        self.set_cache_size(other.cache_size());
        self.set_caching(other.is_caching());
    }

    /// Sets the size of each cache, and clears the caches.
    pub fn set_cache_size(&self, size: CacheSize) {
        self.cache_bytes.store(size.bytes(), Ordering::Relaxed);
        self.clear();
    }

    /// Returns the size of each cache, even if caching is off.
    pub fn cache_size(&self) -> CacheSize {
        CacheSize::new(self.cache_bytes.load(Ordering::Relaxed)).unwrap_or(CacheSize::DEFAULT)
    }
}

thread_local! {
    /// Slot that this thread tries first: the slot it used last, so that threads seldom compete.
    /// New threads all start with the first slot, so that a short-lived thread finds a filled
    /// cache, and only as many workspaces are created as calls run at once.
    static HOME: Cell<usize> = const { Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::{Lease, Pool, WORKSPACES};

    fn workspaces(pool: &Pool) -> usize {
        pool.slots.iter().filter(|slot| slot.0.lock().is_ok_and(|slot| slot.is_some())).count()
    }

    fn has_cache(pool: &Pool) -> bool {
        pool.borrow().workspace().cache.is_some()
    }

    #[test]
    fn what_a_call_under_way_holds_is_forgotten_when_it_ends() {
        let pool = Pool::default();
        drop(pool.borrow());
        assert_eq!(workspaces(&pool), 1);
        let lease = pool.borrow();
        pool.clear();
        drop(lease);
        assert_eq!(workspaces(&pool), 0);
    }

    #[test]
    fn more_calls_at_once_than_workspaces_go_without() {
        let pool = Pool::default();
        let leases: Vec<_> = (0..WORKSPACES).map(|_| pool.borrow()).collect();
        assert!(leases.iter().all(|lease| matches!(lease, Lease::Pooled { .. })));
        let mut own = pool.borrow();
        assert!(matches!(own, Lease::Own(_)) && own.workspace().cache.is_none());
        drop((leases, own));
        assert_eq!(workspaces(&pool), WORKSPACES);
    }

    #[test]
    fn a_workspace_that_a_panic_left_is_made_anew() {
        let pool = Pool::default();
        let lost = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _lease = pool.borrow();
            panic!("a call");
        }));
        assert!(lost.is_err() && has_cache(&pool));
        assert_eq!(workspaces(&pool), 1);
    }
}
