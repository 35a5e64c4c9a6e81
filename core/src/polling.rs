//! Lets a caller end long work.
//!
//! Work reports what it has done to [`poll`], wherever it may take long; every now and then that
//! asks the check that [`with_check`] has set for this thread. A thread without a check pays for
//! one comparison.

use std::cell::Cell;
use std::ptr::NonNull;

use crate::error::{Error, Result};

/// Whether work may go on.
pub type Check<'a> = &'a dyn Fn() -> bool;

/// How much work is done between two checks: bytes of text or anything that takes as long.
/// Ordinary text of this size takes less than a millisecond, the worst some ten.
const INTERVAL: u64 = 1 << 17;

thread_local! {
    /// The work that may still be done before the check is asked.
    static BUDGET: Cell<u64> = const { Cell::new(u64::MAX) };
    static CHECK: Cell<Option<NonNull<dyn Fn() -> bool>>> = const { Cell::new(None) };
}

/// Runs `work`; when `check` answers `false` meanwhile, [`poll`] in it is
/// [`Error::Interrupted`].
pub fn with_check<T>(check: Check<'_>, work: impl FnOnce() -> T) -> T {
    let pointer = NonNull::from(check);
    // SAFETY: only the lifetime changes. The pointer is read in `ask` on this thread alone, and
    // `Restore` takes it away before this function returns or unwinds, while `check` is borrowed.
    let pointer = unsafe {
        std::mem::transmute::<NonNull<dyn Fn() -> bool + '_>, NonNull<dyn Fn() -> bool>>(pointer)
    };
    let _restore =
        Restore { budget: BUDGET.replace(INTERVAL), check: CHECK.replace(Some(pointer)) };
    work()
}

/// Puts back what was set before.
struct Restore {
    budget: u64,
    check: Option<NonNull<dyn Fn() -> bool>>,
}

impl Drop for Restore {
    fn drop(&mut self) {
        BUDGET.set(self.budget);
        CHECK.set(self.check);
    }
}

/// Reports that `work` bytes of text, or what takes as long, are about to be worked on.
#[inline(always)]
pub fn poll(work: usize) -> Result<()> {
    match BUDGET.get().checked_sub(work as u64) {
        Some(budget) => {
            BUDGET.set(budget);
            Ok(())
        }
        None => ask(),
    }
}

/// Asks the check now.
#[cold]
pub fn ask() -> Result<()> {
    let Some(check) = CHECK.get() else {
        BUDGET.set(u64::MAX);
        return Ok(());
    };
    BUDGET.set(INTERVAL);
    // SAFETY: set by `with_check`, which has not returned: it borrows the check until then.
    if unsafe { check.as_ref() }() { Ok(()) } else { Err(Error::Interrupted) }
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
        let done = with_check(&check, || (0..).take_while(|_| poll(1000).is_ok()).count());
        assert_eq!(asked.get(), 3);
        assert!(done >= 2 * INTERVAL as usize / 1000, "{done}");
        for _ in 0..10_000 {
            assert_eq!(poll(1 << 20), Ok(()));
        }
        assert_eq!(asked.get(), 3);
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
