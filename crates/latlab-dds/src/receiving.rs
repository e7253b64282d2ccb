//! The handover of work to the threads in which the library receives.

use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ffi::{self, DdsEntity, Matched};

/// Work for a receiving thread: whether it is done.
type Work<'a> = dyn FnMut() -> bool + Send + 'a;

/// What is known of the samples of a reader, and work for the threads that receive them. A clone is the same.
#[derive(Clone, Debug, Default)]
pub struct Receiving(Arc<Inbox>);

#[derive(Debug, Default)]
struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Work that a thread in [`Receiving::run_within`] lends; that thread removes it before it returns.
    work: Option<Lent>,
    done: bool,
    /// Samples came since the last [`Receiving::wait`].
    arrived: bool,
    /// A writer came or went since the last [`Receiving::take_matched`].
    matched: bool,
}

#[derive(Debug)]
struct Lent(*mut Work<'static>);

// SAFETY: the work is `Send`, and is used by one thread at a time, which holds the lock.
unsafe impl Send for Lent {}

impl Receiving {
    /// Calls `work` at once, and then each time that samples came, in the thread that received them, until it returns true,
    /// writers have come or gone since [`Receiving::take_matched`], or `span` has passed. Returns whether `work` did. While
    /// it runs no further sample is received.
    pub fn run_within(&self, span: Duration, work: &mut Work<'_>) -> bool {
        let mut state = self.0.lock();
        if work() {
            return true;
        }
        let work: *mut Work<'_> = work;
        // SAFETY: only the lifetime changes. The pointer is removed below, before this function returns and before its
        // reference is used again, and the thread that uses it holds the lock.
        state.work = Some(Lent(unsafe { std::mem::transmute::<*mut Work<'_>, *mut Work<'static>>(work) }));
        state.done = false;
        let waited = self.0.changed.wait_timeout_while(state, span, |state| !state.done && !state.matched);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.work = None;
        state.done
    }

    /// Waits until samples came since the last call, writers have come or gone since [`Receiving::take_matched`], or `span`
    /// has passed; returns whether samples came.
    pub fn wait(&self, span: Duration) -> bool {
        let waited = self.0.changed.wait_timeout_while(self.0.lock(), span, |state| !state.arrived && !state.matched);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.arrived)
    }

    /// Whether a writer of the reader's topic came or went since the last [`Receiving::take_matched`].
    pub fn is_matched(&self) -> bool {
        self.0.lock().matched
    }

    /// Whether a writer of the reader's topic came or went since the last call.
    pub fn take_matched(&self) -> bool {
        std::mem::take(&mut self.0.lock().matched)
    }

    /// The address of what [`ReaderListener`] notifies.
    fn as_ptr(&self) -> *mut c_void {
        Arc::as_ptr(&self.0).cast_mut().cast()
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrive(&self) {
        let mut state = self.lock();
        match &state.work {
            Some(Lent(work)) => {
                // SAFETY: the owner of the work waits until it has the lock again.
                let done = unsafe { (**work)() };
                if !done {
                    return;
                }
                (state.work, state.done) = (None, true);
            }
            None => state.arrived = true,
        }
        // The woken thread, which may share the CPU, would wait for the lock.
        drop(state);
        self.changed.notify_all();
    }

    fn match_again(&self) {
        self.lock().matched = true;
        self.changed.notify_all();
    }
}

/// A listener of the library that notifies a [`Receiving`]; freed when this is dropped.
pub(crate) struct ReaderListener(*mut ffi::Listener);

impl ReaderListener {
    /// The library copies it into each reader; `receiving` must outlive these readers.
    pub(crate) fn new(receiving: &Receiving) -> ReaderListener {
        // SAFETY: the listener was just created, and the callbacks have the types that the library calls.
        unsafe {
            let listener = ffi::dds_create_listener(receiving.as_ptr());
            ffi::dds_lset_data_available(listener, on_data_available);
            ffi::dds_lset_subscription_matched(listener, on_subscription_matched);
            ReaderListener(listener)
        }
    }

    pub(crate) fn as_ptr(&self) -> *const ffi::Listener {
        self.0
    }
}

impl Drop for ReaderListener {
    fn drop(&mut self) {
        // SAFETY: it was created and is freed once.
        unsafe { ffi::dds_delete_listener(self.0) };
    }
}

extern "C" fn on_data_available(_reader: DdsEntity, inbox: *mut c_void) {
    // SAFETY: the owner of the reader keeps the inbox, and the library ends callbacks before a reader is deleted.
    unsafe { &*inbox.cast::<Inbox>() }.arrive();
}

extern "C" fn on_subscription_matched(_reader: DdsEntity, _status: Matched, inbox: *mut c_void) {
    // SAFETY: as above.
    unsafe { &*inbox.cast::<Inbox>() }.match_again();
}
