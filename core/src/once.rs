//! Values that are made when they are first needed, without a lock.
//!
//! `std::sync::OnceLock` has other threads wait for the one that makes the value. In a process
//! that forks meanwhile, that thread is gone and the child waits for ever. Here every thread that
//! comes early makes a value, and all but the first are thrown away.

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A place for a value that is made once.
pub struct LockFreeOnce<T> {
    /// Null, or from `Box::into_raw`.
    value: AtomicPtr<T>,
    owned: PhantomData<Box<T>>,
}

// SAFETY: as for `OnceLock`: threads that share it share the value (`Sync`), and any of them may
// be the one whose value is kept, for another to drop (`Send`).
unsafe impl<T: Send + Sync> Sync for LockFreeOnce<T> {}
// SAFETY: it owns the value.
unsafe impl<T: Send> Send for LockFreeOnce<T> {}

impl<T> LockFreeOnce<T> {
    /// Without a value yet.
    pub const fn new() -> Self {
        Self { value: AtomicPtr::new(ptr::null_mut()), owned: PhantomData }
    }

    /// With a value that is there already.
    pub fn with(value: Box<T>) -> Self {
        Self { value: AtomicPtr::new(Box::into_raw(value)), owned: PhantomData }
    }

    /// The value, if it has been made.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: null, or a value that was complete when it was stored (`Release`), which stays
        // in place until `self` is dropped.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// The value, to be changed, if it has been made.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: as in `get`; nobody else holds a reference to `self`.
        unsafe { self.value.get_mut().as_mut() }
    }

    /// The value; `make` makes it if nobody has.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let Ok(value) = self.get_or_try_init(|| Ok::<_, Infallible>(make()));
        value
    }

    /// The value, made by `make` if there is none.
    pub fn get_or_try_init<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let made = Box::into_raw(Box::new(make()?));
        let kept =
            self.value.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
        match kept {
            // SAFETY: as in `get`.
            Ok(_) => Ok(unsafe { &*made }),
            Err(other) => {
                // SAFETY: nobody else has seen `made`.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as in `get`.
                Ok(unsafe { &*other })
            }
        }
    }
}

impl<T> Default for LockFreeOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for LockFreeOnce<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: from `Box::into_raw`, and nobody holds a reference to `self` any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for LockFreeOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockFreeOnce").field(&self.get()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn all_threads_see_one_value_and_the_others_are_dropped() {
        let counted = Arc::new(());
        let once = LockFreeOnce::new();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|id| {
                    let (once, counted) = (&once, counted.clone());
                    scope.spawn(move || {
                        let make = || Ok::<_, Infallible>((id, counted));
                        once.get_or_try_init(make).unwrap().0
                    })
                })
                .collect();
            let seen: Vec<i32> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert!(seen.iter().all(|&id| id == seen[0]));
        });
        assert_eq!(Arc::strong_count(&counted), 2);
        drop(once);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn a_value_that_is_there_is_kept_and_can_be_changed() {
        let mut once = LockFreeOnce::with(Box::new(3));
        assert_eq!(once.get_or_init(|| 4), &3);
        *once.get_mut().unwrap() = 5;
        assert_eq!(once.get(), Some(&5));
        assert_eq!(LockFreeOnce::<u8>::new().get_mut(), None);
    }

    #[test]
    fn an_error_leaves_it_empty() {
        let once = LockFreeOnce::new();
        assert_eq!(once.get_or_try_init(|| Err::<u8, _>("no")), Err("no"));
        assert_eq!(once.get(), None);
        assert_eq!(once.get_or_try_init(|| Ok::<_, &str>(7)), Ok(&7));
    }
}
