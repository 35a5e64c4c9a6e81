//! Lets a caller stop long work, and counts the work done.
//!
//! Work that may take long reports to [`poll`]. After every [`INTERVAL`], `poll` calls the check
//! that [`with_check`] has set for this thread. A thread without a check pays for one comparison.
//! No code here reads a clock, so tests can count the work of a call.

use std::cell::Cell;
use std::ptr::NonNull;

use crate::error::{Error, Result};

/// Returns whether work may continue; after `false`, always `false`.
pub type Check<'a> = &'a dyn Fn() -> bool;

/// Work between two checks, in bytes of text or the equivalent. Ordinary text of this size takes
/// about 20 milliseconds, the slowest text about 300.
pub const INTERVAL: u64 = 1 << 22;

thread_local! {
    /// Work that may still be reported before the next check.
    static BUDGET: Cell<u64> = const { Cell::new(u64::MAX) };
    /// Initial value of the budget.
    static GRANTED: Cell<u64> = const { Cell::new(u64::MAX) };
    /// Work reported before the current budget.
    static BEFORE: Cell<u64> = const { Cell::new(0) };
    static CHECK: Cell<Option<NonNull<dyn Fn() -> bool>>> = const { Cell::new(None) };
}

/// Runs `work`; once `check` returns `false`, [`poll`] inside `work` returns
/// [`Error::Interrupted`].
pub fn with_check<T>(check: Check<'_>, work: impl FnOnce() -> T) -> T {
    let pointer = NonNull::from(check);
    // SAFETY: only the lifetime changes. The pointer is read in `ask` on this thread alone, and
    // `Restore` removes it before this function returns or unwinds, while `check` is borrowed.
    let pointer = unsafe {
        std::mem::transmute::<NonNull<dyn Fn() -> bool + '_>, NonNull<dyn Fn() -> bool>>(pointer)
    };
    let _restore = Restore { budget: BUDGET.get(), check: CHECK.replace(Some(pointer)) };
    grant(INTERVAL);
    work()
}

/// Restores the outer check and its budget.
struct Restore {
    budget: u64,
    check: Option<NonNull<dyn Fn() -> bool>>,
}

impl Drop for Restore {
    fn drop(&mut self) {
        grant(self.budget);
        CHECK.set(self.check);
    }
}

/// Reports that `work` bytes of text, or the equivalent, are about to be processed.
#[inline(always)]
pub fn poll(work: usize) -> Result<()> {
    match BUDGET.get().checked_sub(work as u64) {
        Some(budget) => {
            BUDGET.set(budget);
            Ok(())
        }
        None => ask(work as u64),
    }
}

/// Makes the next [`poll`] call the check, for a thread that has waited instead of worked.
pub fn ask_next() {
    if CHECK.get().is_some() {
        grant(0);
    }
}

/// Returns the work that this thread has reported so far.
pub fn work_done() -> u64 {
    BEFORE.get() + (GRANTED.get() - BUDGET.get())
}

fn grant(budget: u64) {
    BEFORE.set(work_done());
    GRANTED.set(budget);
    BUDGET.set(budget);
}

#[cold]
fn ask(work: u64) -> Result<()> {
    BEFORE.set(BEFORE.get() + work);
    let Some(check) = CHECK.get() else {
        grant(u64::MAX);
        return Ok(());
    };
    // SAFETY: set by `with_check`, which has not returned and borrows the check until then.
    let may_go_on = unsafe { check.as_ref() }();
    grant(if may_go_on { INTERVAL } else { 0 });
    if may_go_on { Ok(()) } else { Err(Error::Interrupted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_ends_the_work_and_is_gone_after_it() {
        let asked = Cell::new(0);
        let check = || {
            asked.set(asked.get() + 1);
            asked.get() < 3
        };
        let polls = with_check(&check, || {
            let polls = (0..).take_while(|_| poll(1000).is_ok()).count();
            assert_eq!(poll(1), Err(Error::Interrupted));
            polls
        });
        assert_eq!((asked.get(), polls), (4, 3 * (INTERVAL as usize / 1000) + 2));
        for _ in 0..10_000 {
            assert_eq!(poll(1 << 20), Ok(()));
        }
        assert_eq!(asked.get(), 4);
    }

    #[test]
    fn a_check_within_another_gives_way_to_it() {
        let outer = || false;
        with_check(&outer, || {
            with_check(&|| true, || assert_eq!(poll(1 << 30), Ok(())));
            assert_eq!(poll(1 << 30), Err(Error::Interrupted));
        });
    }
}
