//! Makes Python lists of token ids from cached `int` objects.
//!
//! A list is filled with pointers to existing `int`s, since creating an `int` takes longer than
//! finding the token.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use bpe_core::ablation::Mechanism;
use bpe_core::memory::{Zeroed, advise_huge_pages, prefetch};
use bpe_core::once::OnceBox;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::objects::{new_int, push};

/// Ids below this limit have an `int` in the table. Larger ids occur only in vocabularies with gaps
/// or very many tokens; their `int`s are created each time.
const READY: usize = 1 << 18;

/// The `int` of each id, created on first use and kept until the process ends: at most `READY`
/// objects of 32 bytes, shared by all encodings. Null until created.
type Ints = [AtomicPtr<ffi::PyObject>; READY];

/// Memory of the table.
static TABLE: OnceBox<Zeroed> = OnceBox::new();

/// The first list of at least this many ids puts the table on one huge page, because first access
/// to hundreds of small pages would take longer than creating the `int`s. For a shorter list,
/// zeroing 2 MiB would take longer than encoding the text.
const LONG_LIST: usize = 4096;

/// True after the first long list.
static HAD_LONG: AtomicBool = AtomicBool::new(false);

/// Returns the table for a list of `count` ids, if there is memory.
fn ints(count: usize) -> Option<&'static Ints> {
    let make = || Zeroed::on_small_pages(size_of::<Ints>()).map(Box::new).ok_or(());
    let memory = TABLE.get_or_try_init(make).ok()?;
    if count >= LONG_LIST && !HAD_LONG.swap(true, Ordering::Relaxed) {
        memory.use_huge_pages();
    }
    // SAFETY: the memory stays until the process ends, is aligned to more than a pointer, has room
    // for `READY` pointers, all null at first, and is only used here.
    Some(unsafe { &*memory.as_ptr().cast::<Ints>() })
}

/// Returns a list of the ids.
pub fn list<'py>(py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
    let Some(ints) = ints(ids.len()) else {
        return filled(py, ids.len(), |index| make(py, ids[index]));
    };
    filled(py, ids.len(), |index| {
        prefetch_ints(ints, ids, index);
        int(py, ints, ids[index])
    })
}

/// Returns a list of `count` numbers, decoded from `runs` of a number and its repetitions.
pub fn repeated<'py>(
    py: Python<'py>,
    count: usize,
    runs: impl Iterator<Item = (u32, usize)>,
) -> PyResult<Bound<'py, PyList>> {
    let mut numbers = runs.flat_map(|(number, times)| std::iter::repeat_n(number, times));
    let mut next = move || numbers.next().unwrap_or(0);
    match ints(count) {
        Some(ints) => filled(py, count, |_| int(py, ints, next())),
        None => filled(py, count, |_| make(py, next())),
    }
}

/// Returns a list of zeros and ones: a one for each nonzero byte.
pub fn bits<'py>(py: Python<'py>, bits: &[u8]) -> PyResult<Bound<'py, PyList>> {
    let ints = [new_int(py, 0)?, new_int(py, 1)?];
    filled(py, bits.len(), |index| ints[usize::from(bits[index] != 0)].clone().into_ptr())
}

/// Returns a list of positions in a text.
pub fn positions<'py>(py: Python<'py>, positions: &[usize]) -> PyResult<Bound<'py, PyList>> {
    filled(py, positions.len(), |index| {
        // SAFETY: attached.
        unsafe { ffi::PyLong_FromSize_t(positions[index]) }
    })
}

/// Returns a list of `count` items. `item` returns a reference that the list takes over, or null
/// with an exception set (a `Result` of that size would go through memory for each item).
#[inline(always)]
fn filled<'py>(
    py: Python<'py>,
    count: usize,
    mut item: impl FnMut(usize) -> *mut ffi::PyObject,
) -> PyResult<Bound<'py, PyList>> {
    let (list, items) = with_room(py, count)?;
    advise_huge_pages(ptr::slice_from_raw_parts(items, count));
    // SAFETY (of its calls): `size` items have been written, and null items may follow.
    let set_size = |size: usize| unsafe {
        (*list.as_ptr().cast::<ffi::PyVarObject>()).ob_size = size as ffi::Py_ssize_t;
    };
    for index in 0..count {
        let item = item(index);
        if item.is_null() {
            set_size(index);
            return Err(PyErr::fetch(py));
        }
        // SAFETY: the list has room for `count` items, no other code has seen it, and it takes over
        // the reference.
        unsafe { items.add(index).write(item) };
    }
    set_size(count);
    Ok(list)
}

/// Returns a new list and its memory with room for `count` items. Python would first fill the
/// memory with zeros; builds without the GIL allocate lists differently and keep that behavior.
#[inline(always)]
fn with_room(
    py: Python<'_>,
    count: usize,
) -> PyResult<(Bound<'_, PyList>, *mut *mut ffi::PyObject)> {
    const FILLED_BY_PYTHON: bool = cfg!(Py_GIL_DISABLED);
    let length = ffi::Py_ssize_t::try_from(count)?;
    let bytes = count.saturating_mul(size_of::<*mut ffi::PyObject>());
    // SAFETY: attached. `PyList_New` returns a list, or null with an exception set. An empty list
    // has no memory for items; the memory assigned here comes from the allocator that frees it.
    unsafe {
        let made = ffi::PyList_New(if FILLED_BY_PYTHON { length } else { 0 });
        let list = Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked();
        let object = made.cast::<ffi::PyListObject>();
        if !FILLED_BY_PYTHON && count > 0 {
            let items = ffi::PyMem_Malloc(bytes).cast::<*mut ffi::PyObject>();
            if items.is_null() {
                ffi::PyErr_NoMemory();
                return Err(PyErr::fetch(py));
            }
            (*object).ob_item = items;
            (*object).allocated = length;
        }
        Ok((list, (*object).ob_item))
    }
}

/// Appends a list to `lists` for each of `rows`, with garbage collection paused.
///
/// Up to version 3.11, Python searches for reference cycles after every few hundred new lists and
/// reads every item of each: for long rows, this takes as long as creating the rows. New lists of
/// `int`s have no cycles.
pub fn append_lists<'py, 'a>(
    py: Python<'py>,
    rows: impl Iterator<Item = &'a [u32]>,
    lists: &mut Vec<Bound<'py, PyList>>,
) -> PyResult<()> {
    let _pause = GarbagePause::new(py);
    for ids in rows {
        push(lists, list(py, ids)?)?;
    }
    Ok(())
}

/// Pauses garbage collection until dropped. The setting applies to the whole process, so the GIL
/// must not be released meanwhile; builds without the GIL do not pause.
struct GarbagePause {
    was_enabled: bool,
}

impl GarbagePause {
    fn new(_: Python<'_>) -> Self {
        // SAFETY: attached.
        Self { was_enabled: cfg!(not(Py_GIL_DISABLED)) && unsafe { ffi::PyGC_Disable() } == 1 }
    }
}

impl Drop for GarbagePause {
    fn drop(&mut self) {
        if self.was_enabled {
            // SAFETY: attached, since `new` was and the GIL was not released.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}

/// Number of ids to prefetch ahead: the pointers to `int`s, and the `int`s themselves.
const POINTER_AHEAD: usize = 128;
const INT_AHEAD: usize = 48;

/// Prefetches the `int`s of ids after `ids[index]`, and the pointers to them: both may be anywhere
/// in memory.
#[inline(always)]
fn prefetch_ints(ints: &Ints, ids: &[u32], index: usize) {
    if let Some(slot) = ids.get(index + POINTER_AHEAD).and_then(|&id| ints.get(id as usize)) {
        prefetch(slot);
    }
    if let Some(slot) = ids.get(index + INT_AHEAD).and_then(|&id| ints.get(id as usize)) {
        let int = slot.load(Ordering::Relaxed);
        if !int.is_null() {
            // SAFETY: a pointer in the table is an `int` that lives until the process ends.
            prefetch(unsafe { &*int });
        }
    }
}

/// Returns the `int` of `id`, as a reference that the caller owns, or null with an exception set.
#[inline(always)]
fn int(py: Python<'_>, ints: &Ints, id: u32) -> *mut ffi::PyObject {
    let slot = ints.get(id as usize).filter(|_| Mechanism::IntCache.is_used());
    let Some(slot) = slot else { return make(py, id) };
    let int = slot.load(Ordering::Acquire);
    if int.is_null() {
        return make_first(py, id, slot);
    }
    // SAFETY: attached; a pointer in the table is an `int` to which the table holds a reference
    // until the process ends, so it is alive.
    unsafe { ffi::Py_INCREF(int) };
    int
}

/// Creates the `int` of an id whose table entry is empty.
#[cold]
fn make_first(py: Python<'_>, id: u32, slot: &AtomicPtr<ffi::PyObject>) -> *mut ffi::PyObject {
    let made = make(py, id);
    if made.is_null() {
        return made;
    }
    live_forever(made);
    // The table keeps the reference from `make`, unless another thread was first.
    let int =
        match slot.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: attached; this is the only reference to `made`, which no other code has
                // seen.
                unsafe { ffi::Py_DECREF(made) };
                other
            }
        };
    // SAFETY: as in `int`.
    unsafe { ffi::Py_INCREF(int) };
    int
}

/// Disables reference counting of an `int` in builds without the GIL: each count would make a
/// thread wait for the memory that another thread has just written. The table keeps the `int`
/// anyway; if two threads create the same `int` at once, the second object remains in memory.
#[cfg(Py_GIL_DISABLED)]
fn live_forever(int: *mut ffi::PyObject) {
    // SAFETY: no other code has seen the object. Python does not count references of objects with
    // this value, as for None.
    unsafe { (*int).ob_ref_local.store(u32::MAX, Ordering::Relaxed) };
}

#[cfg(not(Py_GIL_DISABLED))]
fn live_forever(_: *mut ffi::PyObject) {}

/// Returns a new `int`, or null with an exception set.
fn make(_: Python<'_>, id: u32) -> *mut ffi::PyObject {
    // SAFETY: attached.
    unsafe { ffi::PyLong_FromUnsignedLong(id.into()) }
}
