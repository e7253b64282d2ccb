//! The signal that ends the runs of a plan early: by the caller, after a late wake-up, or without an answer.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use latlab_sys::sleep::{current_thread, interrupt};

use crate::facts::LateWakeup;
use crate::host::tracing::Tracing;
use crate::units::Nanos;

/// The part of a trace that is kept: before the slot was due, and until the trace was stopped.
const TRACED_BEFORE: Nanos = Nanos::from_millis(10);
const TRACED_AFTER: Nanos = Nanos::from_millis(1);

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
    /// The trace that a late wake-up stops, or why it could not be started; `None` if no late wake-up ends a run.
    tracing: Option<io::Result<Tracing>>,
}

impl StopSignal {
    /// A signal whose flag of the caller is `requested`; a late wake-up stops `tracing`.
    pub(super) fn new(requested: &Arc<AtomicBool>, tracing: Option<io::Result<Tracing>>) -> StopSignal {
        StopSignal { requested: Arc::clone(requested), tracing, ..StopSignal::default() }
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

    /// Stops the trace after `late`, which ended its run, so that the events before it are not overwritten.
    pub(super) fn stop_tracing(&self, late: &LateWakeup) {
        self.wakeup_was_late.store(true, Ordering::Relaxed);
        let LateWakeup { seq, due_ns, woke_ns, .. } = late;
        if let Some(Ok(tracing)) = &self.tracing {
            tracing.stop(&format!("latlab: slot {seq} was due at {due_ns} ns and woke at {woke_ns} ns"));
        }
    }

    /// Whether a late wake-up has ended a run.
    pub(super) fn wakeup_was_late(&self) -> bool {
        self.wakeup_was_late.load(Ordering::Relaxed)
    }

    /// The trace around `late`.
    ///
    /// # Errors
    /// Tracing could not be started, or its buffer cannot be read.
    pub(super) fn trace_around(&self, late: &LateWakeup) -> io::Result<String> {
        let from = Nanos(late.due_ns.saturating_sub(TRACED_BEFORE.0));
        let to = Nanos(late.woke_ns.saturating_add(TRACED_AFTER.0));
        match &self.tracing {
            Some(Ok(tracing)) => tracing.between(from, to),
            Some(Err(error)) => Err(copy_of(error)),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

fn copy_of(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error)
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
