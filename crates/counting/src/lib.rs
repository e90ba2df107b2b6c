//! An allocator that counts what each thread allocates, for the tests of what allocates nothing.
//!
//! ```
//! #[global_allocator]
//! static COUNTING: hopcast_counting::Counting = hopcast_counting::Counting;
//! assert_eq!(hopcast_counting::allocations(|| drop(vec![0; 9])), 1);
//! assert_eq!(hopcast_counting::peak_bytes(|| (0..3).for_each(|_| drop(vec![0_u8; 9]))), 9);
//! ```
#![allow(unsafe_code, reason = "a global allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes that this thread has allocated and nobody has freed; what others free here may make it negative.
    static HELD: Cell<i64> = const { Cell::new(0) };
    /// The most that it was since the last look.
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

fn hold(bytes: i64) {
    let held = HELD.get() + bytes;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

// SAFETY: as the system's allocator, which does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        hold(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        hold(-(layout.size() as i64));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Number of allocations by this thread while `work` runs.
pub fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// The most bytes that this thread holds at a time while `work` runs, beyond those before.
pub fn peak_bytes(work: impl FnOnce()) -> u64 {
    let before = HELD.get();
    PEAK.set(before);
    work();
    PEAK.get().saturating_sub(before).unsigned_abs()
}
