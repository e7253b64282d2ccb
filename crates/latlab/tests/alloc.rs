//! Armed threads do not allocate: an allocator counts the calls of the measuring and the reflecting thread.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_ulong};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use latlab::recording::manifest::RunEnding;
use latlab::recording::{RecordingWriter, Store};

#[path = "alloc/armed.rs"]
mod armed;
#[path = "alloc/connected.rs"]
mod connected;
#[cfg(feature = "dds")]
#[path = "alloc/dds.rs"]
mod dds;
mod runs;
mod skip;
#[path = "alloc/sleeping.rs"]
mod sleeping;
#[path = "alloc/streaming.rs"]
mod streaming;
#[path = "alloc/xdp.rs"]
mod xdp;

/// The allocator of the system, which counts the calls of threads that enabled counting.
struct Counting;

thread_local! {
    static COUNT: Cell<Option<u64>> = const { Cell::new(None) };
    /// Whether this thread is one in which the DDS library receives, once that was asked.
    static RECEIVES: Cell<Option<bool>> = const { Cell::new(None) };
}

static OF_ALL_THREADS: AtomicU64 = AtomicU64::new(0);
/// Calls of the threads in which the DDS library receives.
static OF_LIBRARY_THREADS: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    /// prctl(2).
    fn prctl(option: c_int, name: *mut c_char, ...) -> c_int;
}

/// Whether this thread has the name of one in which Cyclone DDS receives (`recv…`) or passes samples on (`dq.…`).
fn receives() -> bool {
    const GET_NAME: c_int = 16;
    let mut name = [0u8; 16];
    // SAFETY: the name of a thread has at most 16 bytes; the other arguments are not used.
    unsafe { prctl(GET_NAME, name.as_mut_ptr().cast(), 0 as c_ulong, 0 as c_ulong, 0 as c_ulong) };
    name.starts_with(b"recv") || name.starts_with(b"dq.")
}

fn count() {
    OF_ALL_THREADS.fetch_add(1, Ordering::Relaxed);
    let receives = RECEIVES.try_with(Cell::get).ok().flatten().unwrap_or_else(receives);
    _ = RECEIVES.try_with(|known| known.set(Some(receives)));
    OF_LIBRARY_THREADS.fetch_add(receives.into(), Ordering::Relaxed);
    // A thread that ends has no counter any more.
    _ = COUNT.try_with(|count| count.set(count.get().map(|calls| calls + 1)));
}

// SAFETY: every call is passed to the allocator of the system unchanged; counting touches a thread-local
// `Cell` without a destructor, which does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls to the allocator on this thread since counting was enabled; enables it the first time.
fn calls_so_far() -> u64 {
    COUNT.get().unwrap_or_else(|| {
        COUNT.set(Some(0));
        0
    })
}

/// Calls to the allocator by all threads of this process.
#[cfg(feature = "dds")]
fn calls_of_all_threads() -> u64 {
    OF_ALL_THREADS.load(Ordering::Relaxed)
}

/// Calls to the allocator by the threads in which the DDS library receives.
#[cfg(feature = "dds")]
fn calls_of_library_threads() -> u64 {
    OF_LIBRARY_THREADS.load(Ordering::Relaxed)
}

/// Calls to the allocator that `work` makes on this thread.
fn calls_of(work: impl FnOnce()) -> u64 {
    COUNT.set(Some(0));
    work();
    COUNT.take().unwrap_or(0)
}

#[test]
fn allocations_are_counted() {
    assert!(calls_of(|| drop(std::hint::black_box(vec![1u8; 100]))) >= 2);
}

#[test]
fn recording_events_allocates_nothing_even_if_the_ring_is_full() {
    let store = Store::temporary().expect("store");
    let mut writer = RecordingWriter::create(&store, None, runs::manifest("00000000000a110c")).expect("created");
    let mut log = writer.start(Arc::new(AtomicBool::new(false))).expect("started");
    let mut filled = 0;
    // More events than the ring holds, faster than any disk: whether some are dropped or not, nothing is allocated.
    let calls = calls_of(|| {
        while log.dropped() == 0 && filled < 3_000_000 {
            runs::fill(&mut log, filled..filled + 1_000);
            filled += 1_000;
        }
    });
    assert_eq!(calls, 0);
    assert!(log.written() > 1_000_000 || log.dropped() > 0);
    let finished = writer.finish(log, RunEnding::Completed, None).expect("finished");
    assert!(finished.manifest.rows > Some(0));
}
