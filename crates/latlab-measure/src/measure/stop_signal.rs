//! The signal that ends the runs of a plan early: by the caller, after a late wake-up, or without an answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use latlab_sys::sleep::{current_thread, interrupt};

use crate::units::Nanos;

/// Ends the runs of a plan early. Loops that send read the flag of the caller. Threads that sleep have a flag of their own,
/// since a late wake-up sets it too, and are woken by a signal.
#[derive(Debug, Default)]
pub(super) struct StopSignal {
    requested: Arc<AtomicBool>,
    sleep_over: AtomicBool,
    sleeping: Mutex<Vec<i32>>,
    wakeup_was_late: AtomicBool,
    /// The time without an answer after which the runs ended.
    unanswered_for: OnceLock<Nanos>,
}

impl StopSignal {
    /// A signal whose flag of the caller is `requested`.
    pub(super) fn new(requested: &Arc<AtomicBool>) -> StopSignal {
        StopSignal { requested: Arc::clone(requested), ..StopSignal::default() }
    }

    /// The flag of the caller; a full disk and the loss of the agent set it too.
    pub(super) fn requested(&self) -> &AtomicBool {
        &self.requested
    }

    /// Ends the runs, since no probe was answered for `span`.
    pub(super) fn end_unanswered(&self, span: Nanos) {
        // Only the first time counts.
        let _ = self.unanswered_for.set(span);
        self.requested.store(true, Ordering::Relaxed);
    }

    /// The time without an answer after which the runs ended; `None` if they did not end for that reason.
    pub(super) fn unanswered_for(&self) -> Option<Nanos> {
        self.unanswered_for.get().copied()
    }

    /// The flag of threads that sleep.
    pub(super) fn sleep_over(&self) -> &AtomicBool {
        &self.sleep_over
    }

    /// Whether threads must end their sleep.
    pub(super) fn is_sleep_over(&self) -> bool {
        self.sleep_over.load(Ordering::Relaxed)
    }

    /// Sets the flag of threads that sleep.
    pub(super) fn end_sleep(&self) {
        self.sleep_over.store(true, Ordering::Relaxed);
    }

    /// Forwards the caller's request to the threads that sleep. To be called repeatedly: a thread that is about to sleep
    /// misses the signal.
    pub(super) fn forward(&self) {
        if self.requested.load(Ordering::Relaxed) {
            self.end_sleep();
        }
        if self.is_sleep_over() {
            let sleeping = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
            // A thread that has just ended needs no signal.
            sleeping.iter().for_each(|thread| _ = interrupt(*thread));
        }
    }

    /// Has the calling thread woken by [`forward`](StopSignal::forward) until the result is dropped.
    pub(super) fn register(&self) -> RegisteredThread<'_> {
        let thread = current_thread();
        self.sleeping.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        RegisteredThread { stop: self, thread }
    }

    /// Notes that a late wake-up has ended a run.
    pub(super) fn note_late_wakeup(&self) {
        self.wakeup_was_late.store(true, Ordering::Relaxed);
    }

    /// Whether a late wake-up has ended a run.
    pub(super) fn wakeup_was_late(&self) -> bool {
        self.wakeup_was_late.load(Ordering::Relaxed)
    }
}

/// A thread that [`StopSignal::forward`] wakes.
pub(super) struct RegisteredThread<'a> {
    stop: &'a StopSignal,
    thread: i32,
}

impl Drop for RegisteredThread<'_> {
    fn drop(&mut self) {
        let mut sleeping = self.stop.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        sleeping.retain(|thread| *thread != self.thread);
    }
}
