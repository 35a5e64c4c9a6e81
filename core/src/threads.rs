//! Divides work among threads and delivers the results in order.
//!
//! Threads live as long as the call, so none survives into a fork or waits for another call.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::polling;
use crate::system::can_map;

/// Bytes of memory that a thread may need to start: its stack, and some heap.
const MEMORY: usize = 4 << 20;

/// Maximum wait of the calling thread before it calls `aside` again.
const PATIENCE: Duration = Duration::from_millis(50);

/// Returns the number of threads that this process can run in parallel.
pub fn cores() -> usize {
    /// 0 before the first call.
    static CORES: AtomicUsize = AtomicUsize::new(0);
    match CORES.load(Ordering::Relaxed) {
        0 => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            CORES.store(cores, Ordering::Relaxed);
            cores
        }
        cores => cores,
    }
}

/// Runs `shares` shares of work on this thread and up to `threads - 1` other threads.
///
/// `work` writes the result of its share; results are reused, so it must clear the old contents.
/// `take` receives the results on this thread, in the order of the shares, while other shares are
/// in progress; its first error ends the call. This thread works and waits inside `aside`, which
/// must call the function it receives. While this thread waits, `aside` is called at least every
/// `PATIENCE`; its error also ends the call. Work on the other threads then fails at its next check
/// ([`polling::poll`]).
///
/// ```
/// use bpe_core::threads::in_order;
///
/// let mut squares = Vec::new();
/// let work = |share: usize, square: &mut usize| *square = share * share;
/// let take = |square: &usize| Ok::<_, ()>(squares.push(*square));
/// in_order(5, 2, work, |job| Ok(job()), take).unwrap();
/// assert_eq!(squares, [0, 1, 4, 9, 16]);
/// ```
pub fn in_order<R: Default + Send, E>(
    shares: usize,
    threads: usize,
    work: impl Fn(usize, &mut R) + Sync,
    aside: impl Fn(&mut (dyn FnMut() + Send)) -> std::result::Result<(), E>,
    mut take: impl FnMut(&R) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let threads = threads.min(shares);
    // Starting a thread without enough memory would abort the process.
    let has_memory = || can_map(threads.saturating_mul(MEMORY));
    let Some(queue) = (threads > 1 && has_memory()).then(|| Queue::new(shares, threads)) else {
        let mut result = R::default();
        for share in 0..shares {
            aside(&mut || work(share, &mut result))?;
            take(&result)?;
        }
        return Ok(());
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If a thread cannot be started, this thread does its share.
            let helper = || {
                polling::with_check(&|| !queue.is_stopped(), || while queue.work_on_one(&work) {});
            };
            let _ = std::thread::Builder::new().spawn_scoped(scope, helper);
        }
        // When this thread returns or unwinds, the other threads stop after their current shares.
        let _stop = StopOnDrop(&queue);
        for share in 0..shares {
            let mut result = None;
            while result.is_none() {
                result = queue.done(share);
                if result.is_none() {
                    aside(&mut || {
                        if !queue.work_on_one(&work) {
                            queue.wait_for(share);
                        }
                    })?;
                }
            }
            match result {
                Some(Ok(result)) => {
                    take(&result)?;
                    queue.use_again(result);
                }
                Some(Err(panic)) => resume_unwind(panic),
                None => unreachable!("the loop above ends with a result"),
            }
        }
        Ok(())
    })
}

/// Outcome of a share: a result, or the panic of `work`.
type Outcome<R> = std::result::Result<R, Box<dyn Any + Send>>;

/// Pending shares, and results that have not been taken yet.
struct Queue<R> {
    shares: usize,
    state: Mutex<Progress<R>>,
    changed: Condvar,
}

struct Progress<R> {
    next: usize,
    is_stopped: bool,
    /// Outcomes of finished shares, indexed by share.
    done: Vec<Option<Outcome<R>>>,
    /// Results already taken, for reuse; never more than the reserved capacity.
    spare: Vec<R>,
}

impl<R: Default + Send> Queue<R> {
    /// Allocates all memory now, because an error could not be reported when a result is stored.
    fn new(shares: usize, threads: usize) -> Queue<R> {
        let done = (0..shares).map(|_| None).collect::<Vec<_>>();
        let spare = Vec::with_capacity(2 * threads);
        let state = Progress { next: 0, is_stopped: false, done, spare };
        Self { shares, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Locks the state; no code that holds the lock can panic half-way.
    fn lock(&self) -> MutexGuard<'_, Progress<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the next share; returns false if none is left.
    fn work_on_one(&self, work: &(impl Fn(usize, &mut R) + Sync)) -> bool {
        let mut state = self.lock();
        let share = state.next;
        if share >= self.shares {
            return false;
        }
        state.next += 1;
        let mut result = state.spare.pop().unwrap_or_default();
        drop(state);
        let outcome = catch_unwind(AssertUnwindSafe(|| work(share, &mut result)));
        self.lock().done[share] = Some(outcome.map(|()| result));
        self.changed.notify_one();
        true
    }

    fn done(&self, share: usize) -> Option<Outcome<R>> {
        self.lock().done[share].take()
    }

    fn use_again(&self, result: R) {
        let mut state = self.lock();
        if state.spare.len() < state.spare.capacity() {
            state.spare.push(result);
        }
    }

    /// Waits until another thread has finished the share, or until the timeout.
    fn wait_for(&self, share: usize) {
        let waiting = |state: &mut Progress<R>| state.done[share].is_none();
        drop(self.changed.wait_timeout_while(self.lock(), PATIENCE, waiting));
        polling::ask_next();
    }

    /// Returns true once no more results are wanted.
    fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }
}

struct StopOnDrop<'a, R: Default + Send>(&'a Queue<R>);

impl<R: Default + Send> Drop for StopOnDrop<'_, R> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.next = self.0.shares;
        state.is_stopped = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_once<E>(job: &mut (dyn FnMut() + Send)) -> std::result::Result<(), E> {
        job();
        Ok(())
    }

    #[test]
    fn a_panic_is_passed_on() {
        for threads in [1, 3] {
            let work = |share: usize, _: &mut ()| assert!(share != 20, "share 20");
            let run = || in_order(50, threads, work, at_once, |_: &()| Ok::<_, ()>(()));
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        }
    }
}
